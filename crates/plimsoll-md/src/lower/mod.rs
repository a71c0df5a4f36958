//! From options to a Plan.

mod ior;
mod mdtest;
mod workbench;

pub(crate) use workbench::{ADAPTIVE, BENCHMARK, CLEANUP, PRECREATE};

use crate::options::{Options, PatternOptions};
use crate::run_info::Position;
use plimsoll_plan::{
    NamePiece, NameTemplate, Note, OnError, OpKind, Operation, OperationId, Parameter, Pattern,
    Phase, Plan, Program, QuitMode, RankShift, Samples, Source, SourceKind, Stage, StageWork,
    Until, WorkDirSpec, WorkerGroup,
};
use std::time::Duration;

/// Names of the rows that object operations are counted in.
pub(crate) mod row {
    pub(crate) const MAKE_SET: &str = "make set";
    pub(crate) const CREATE: &str = "create";
    pub(crate) const STAT: &str = "stat";
    pub(crate) const READ: &str = "read";
    pub(crate) const DELETE: &str = "delete";
    pub(crate) const REMOVE_SET: &str = "remove set";
    pub(crate) const WRITE: &str = "write";
    pub(crate) const OPEN: &str = "open";
    pub(crate) const SYNC: &str = "sync";
    pub(crate) const CLOSE: &str = "close";
}

/// Greatest number an object can have, and most bytes and objects of a run.
const MAX_OBJECT_NUMBER: u128 = i64::MAX as u128;

/// The Plan of these options for so many ranks.
///
/// `position` has the numbers of the next objects, from the run-info file of an earlier run; it is
/// used when the options say so.
///
/// # Errors
/// One sentence: what so many ranks cannot do.
pub fn lower(options: &Options, ranks: u32, position: Option<&Position>) -> Result<Plan, String> {
    if ranks == 0 {
        return Err("a pattern needs at least one process".into());
    }
    let mut plan = Plan::empty(options.name().as_str());
    let mut rows = RowTable::default();
    let (pattern, parameters) = match &options.pattern {
        PatternOptions::Workbench(w) => {
            if w.rounds > w.precreate && w.phases.benchmark {
                plan.notes.push(note(
                    "more objects are read from a set than are made in it before (-I above \
                     -P): those that are made meanwhile may not be there yet",
                ));
            }
            if w.precreate == 0 && w.rounds == 0 {
                plan.notes
                    .push(note("no object is made, read or removed (-P 0 and -I 0)"));
            }
            plan.notes.extend(workbench::warning(w, ranks).map(note));
            plan.title = "each set a queue: the oldest objects are read and removed by one \
                          rank, new ones made by another"
                .into();
            (
                workbench::pattern(options, w, ranks, position, &mut rows)?,
                workbench::parameters(options, w),
            )
        }
        PatternOptions::Mdtest(m) => {
            if m.files == 0 {
                plan.notes
                    .push(note("no file is made, looked at or removed (-n 0)"));
            }
            plan.title = if m.hard {
                "small files in one directory that all ranks share".into()
            } else {
                "empty files in a directory for each rank".into()
            };
            (
                mdtest::pattern(options, m, ranks, &mut rows)?,
                mdtest::parameters(options, m),
            )
        }
        PatternOptions::Ior(i) => {
            if i.transfers == 0 {
                plan.notes
                    .push(note("nothing is written or read (--transfers 0)"));
            }
            plan.title = if i.hard {
                "transfers of an odd size, strided over one file that all ranks share".into()
            } else {
                "large sequential transfers, a file for each rank".into()
            };
            (
                ior::pattern(options, i, ranks, &mut rows)?,
                ior::parameters(options, i),
            )
        }
    };
    plan.source = Source {
        kind: SourceKind::Builtin,
        name: plan.name.clone(),
        text: as_text(&parameters),
    };
    plan.seed = options.seed;
    plan.work_dir = WorkDirSpec {
        dir: options.place.dir.clone(),
        guards: vec![pattern.root.clone()],
        temporary: false,
    };
    plan.options.keep = pattern.leaves_objects;
    plan.options.drop_caches = options.cold;
    plan.options.content = options.content.unwrap_or_default();
    plan.parameters = parameters;
    if let Some(content) = options.content {
        let content = parameter("content", content, "", "what is written");
        plan.parameters.push(content);
    }
    plan.operations = rows.0;
    plan.script = script(&pattern.stages);
    plan.quit = QuitMode::AllDone;
    plan.groups = vec![group(pattern)];
    Ok(plan)
}

/// The options as they would be written on a command line.
fn as_text(parameters: &[Parameter]) -> String {
    let lines = parameters.iter();
    lines
        .map(|p| format!("--{}={}\n", p.name, p.value))
        .collect()
}

/// Each stage is started and ends by itself; it is measured in a window of its own, unless it is a
/// warm-up.
fn script(stages: &[Stage]) -> Vec<Phase> {
    let phases = |(stage, s): (u32, &Stage)| {
        let wait = Phase::Wait {
            until: Until::Done { at_most: None },
            snapshots: None,
        };
        let work = match s.warm_up {
            true => vec![wait],
            false => vec![Phase::OpenWindow, wait, Phase::CloseWindow],
        };
        let mut phases = vec![Phase::StartStage { stage }];
        phases.extend(work);
        phases.push(Phase::Stop);
        phases
    };
    (0..).zip(stages).flat_map(phases).collect()
}

fn group(pattern: Pattern) -> WorkerGroup {
    WorkerGroup {
        process: "rank".into(),
        process_instances: pattern.ranks,
        thread: "rank".into(),
        thread_instances: 1,
        memory: 0,
        nice: 0,
        io_priority: None,
        program: Program::Pattern(Box::new(pattern)),
        location: None,
    }
}

/// Rows of the results, each made when it is first asked for.
#[derive(Default)]
struct RowTable(Vec<Operation>);

impl RowTable {
    fn id(&mut self, name: &str, kind: OpKind) -> OperationId {
        let found = self.0.iter().position(|o| o.name == name && o.kind == kind);
        let at = found.unwrap_or_else(|| {
            self.0.push(Operation {
                name: name.into(),
                kind,
                location: None,
            });
            self.0.len() - 1
        });
        OperationId(at as u32)
    }
}

fn note(text: &str) -> Note {
    Note {
        text: text.into(),
        location: None,
    }
}

fn parameter(name: &str, value: impl ToString, default: impl ToString, meaning: &str) -> Parameter {
    Parameter {
        name: name.into(),
        value: value.to_string(),
        default: default.to_string(),
        meaning: meaning.into(),
    }
}

/// Stonewall of IO500's patterns.
fn stonewall_parameter(stonewall: Option<Duration>) -> Parameter {
    let shown = |d: Duration| d.as_secs_f64().to_string();
    let meaning = "seconds until no more is written; 0 for no limit";
    parameter(
        "stonewall-timer",
        shown(stonewall.unwrap_or_default()),
        300,
        meaning,
    )
}

fn samples(options: &Options) -> Samples {
    match (&options.latency, options.latency_all) {
        (None, _) => Samples::Off,
        (Some(_), false) => Samples::First,
        (Some(_), true) => Samples::All,
    }
}

/// MiB that are to be free, in bytes; none for 0.
fn memory(mib: u64) -> Option<u64> {
    (mib > 0).then_some(mib << 20)
}

fn text(text: &str) -> NamePiece {
    NamePiece::Text(text.into())
}

fn template(pieces: impl Into<Vec<NamePiece>>) -> NameTemplate {
    NameTemplate(pieces.into())
}

/// So many ranks further for every set.
fn by_set(ranks: i64) -> RankShift {
    RankShift {
        constant: 0,
        per_set: ranks,
    }
}

/// So many ranks further, whatever the set.
fn by(ranks: i64) -> RankShift {
    RankShift {
        constant: ranks,
        per_set: 0,
    }
}

/// A stage without waiting and stonewall, that is run once.
fn stage(name: &str, work: StageWork, on_error: OnError) -> Stage {
    Stage {
        name: name.into(),
        iteration: 0,
        warm_up: false,
        work,
        on_error,
        waiting_factor: 0.0,
        stonewall: None,
        squeeze_memory: None,
    }
}

/// Refuses what cannot be counted; `what` names the number.
fn countable(what: &str, number: u128) -> Result<(), String> {
    if number > MAX_OBJECT_NUMBER {
        return Err(format!(
            "{what} would be {number}, more than can be counted"
        ));
    }
    Ok(())
}

/// Before every stage but the first, memory is taken and freed; before the first too, if an
/// earlier run did what came before.
fn squeeze(stages: &mut [Stage], options: &Options, first_too: bool) {
    let squeeze = memory(options.squeeze_memory_mib);
    for stage in stages.iter_mut().skip(usize::from(!first_too)) {
        stage.squeeze_memory = squeeze;
    }
}
