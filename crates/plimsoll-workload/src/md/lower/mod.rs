//! Lowering of a pattern's options to a Plan.

mod io500;
mod workbench;

pub(crate) use io500::{TEST_DIR as MDTEST_DIR, directories};
pub(crate) use workbench::{ADAPTIVE, BENCHMARK, CLEANUP, PRECREATE};

use crate::md::options::{Options, PatternOptions, Place};
use crate::md::run_info::Position;
use plimsoll_plan::{
    Cold, Content, NameTemplate, Note, ObjectOp, ObjectStep, OnError, OpKind, Operation,
    OperationId, Parameter, Pattern, Phase, Plan, Program, QuitMode, RankShift, RootHandling,
    Rounds, Samples, Source, SourceKind, Stage, StageWork, Stonewall, Until, WorkDirSpec,
    WorkerGroup,
};
use std::time::Duration;

/// Row names in the results.
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
    pub(crate) const MAKE_DIR: &str = "make directory";
    pub(crate) const RENAME: &str = "rename";
    pub(crate) const REMOVE_DIR: &str = "remove directory";
}

/// Maximum of object numbers, and of the numbers of bytes and objects of a run.
const MAX_OBJECT_NUMBER: u128 = i64::MAX as u128;

/// A pattern and the texts about it in the Plan.
pub(crate) struct LoweredPattern {
    pub(crate) title: &'static str,
    pub(crate) notes: Vec<&'static str>,
    pub(crate) pattern: Pattern,
    pub(crate) parameters: Vec<Parameter>,
}

/// Properties of a Plan besides the pattern.
pub(crate) struct PlanFacts<'a> {
    pub(crate) name: &'a str,
    pub(crate) place: &'a Place,
    pub(crate) seed: u64,
    pub(crate) content: Option<Content>,
    pub(crate) cold: Cold,
}

/// Makes the Plan of a pattern for `ranks` ranks. The returned Plan has passed [`Plan::check`].
///
/// `position` has the numbers of the next objects, from the run-info file of an earlier run. `position` is used only if
/// the options have neither a precreate phase nor a start item.
///
/// # Errors
/// One sentence that states why the Plan is impossible, such as too many objects for the number of ranks.
pub fn lower(options: &Options, ranks: u32, position: Option<&Position>) -> Result<Plan, String> {
    lower_part(options, ranks, position, None)
}

/// Stages of a pattern that form a run of their own; several such runs share the files of the pattern.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// Names of the stages that the run measures.
    pub measured: &'a [&'a str],
    /// Names of earlier stages that make the files of the pattern, unmeasured and without a stonewall.
    pub prepares: &'a [&'a str],
    /// Rounds that each rank completed when an earlier run made the files; `None` for a run that makes the files.
    pub made: Option<u64>,
}

/// Makes the Plan of a part of a pattern, or of the whole pattern, as [`lower`] does. A run of a part leaves the files
/// of the pattern.
///
/// # Errors
/// As [`lower`].
pub fn lower_part(
    options: &Options,
    ranks: u32,
    position: Option<&Position>,
    part: Option<&Part<'_>>,
) -> Result<Plan, String> {
    let mut rows = RowTable::default();
    let mut lowered = lowered(options, ranks, position, &mut rows)?;
    if let Some(part) = part {
        part.select(&mut lowered.pattern);
    }
    finished(options, ranks, lowered, rows, part.is_none())
}

/// Makes the Plan of a run with one stage, on the files of a pattern that an earlier run made; `work` makes the work of
/// the stage. The run leaves the files.
///
/// # Errors
/// As [`lower`].
pub(crate) fn lower_stage(
    options: &Options,
    ranks: u32,
    name: &str,
    stonewall: Option<Duration>,
    work: impl FnOnce(&mut RowTable) -> StageWork,
) -> Result<Plan, String> {
    let mut lowered = lowered(options, ranks, None, &mut RowTable::default())?;
    let mut rows = RowTable::default();
    let work = work(&mut rows);
    let pattern = &mut lowered.pattern;
    pattern.stages = vec![Stage {
        stonewall: worn_out(stonewall),
        ..stage(name, work, OnError::Stop)
    }];
    (pattern.root_is, pattern.leaves_objects) = (RootHandling::Kept, true);
    finished(options, ranks, lowered, rows, false)
}

fn lowered(
    options: &Options,
    ranks: u32,
    position: Option<&Position>,
    rows: &mut RowTable,
) -> Result<LoweredPattern, String> {
    if ranks == 0 {
        return Err("a pattern needs at least one process".into());
    }
    match &options.pattern {
        PatternOptions::Workbench(w) => workbench::lower(options, w, ranks, position, rows),
        PatternOptions::Mdtest(m) => io500::mdtest(options, m, ranks, rows),
        PatternOptions::Ior(i) => io500::ior(options, i, ranks, rows),
    }
}

/// The checked Plan of a lowered pattern; `is_whole` for a run of all stages.
fn finished(
    options: &Options,
    ranks: u32,
    lowered: LoweredPattern,
    rows: RowTable,
    is_whole: bool,
) -> Result<Plan, String> {
    let arguments = &options.arguments;
    let facts = PlanFacts {
        name: arguments.pattern.as_str(),
        place: &options.place,
        seed: arguments.seed,
        content: arguments.content,
        cold: options.cold,
    };
    let mut plan = plan_of(&facts, lowered, rows, ranks)?;
    plan.options.keep &= is_whole;
    Ok(plan)
}

/// Makes the Plan of a lowered pattern for `ranks` ranks. The returned Plan has passed [`Plan::check`].
///
/// # Errors
/// One sentence that states why the Plan is impossible.
pub(crate) fn plan_of(
    facts: &PlanFacts<'_>,
    lowered: LoweredPattern,
    rows: RowTable,
    ranks: u32,
) -> Result<Plan, String> {
    let (pattern, mut parameters) = (lowered.pattern, lowered.parameters);
    let text = as_text(&parameters);
    if let Some(content) = facts.content {
        parameters.push(parameter("content", content, "", "contents of writes"));
    }
    let note = |text: &str| Note {
        text: text.into(),
        location: None,
    };
    let name = facts.name;
    let mut plan = Plan {
        title: lowered.title.into(),
        source: Source {
            kind: SourceKind::Builtin,
            name: name.into(),
            text,
        },
        seed: facts.seed,
        work_dir: WorkDirSpec {
            dir: facts.place.dir.clone(),
            guards: vec![pattern.root.clone()],
            temporary: false,
        },
        parameters,
        operations: rows.0,
        script: script(&pattern.stages),
        quit: QuitMode::AllDone,
        notes: lowered.notes.into_iter().map(note).collect(),
        ..Plan::empty(name)
    };
    plan.options.keep = pattern.leaves_objects;
    plan.options.drop_caches = facts.cold;
    plan.options.content = facts.content.unwrap_or_default();
    let program = Program::Pattern(Box::new(pattern));
    plan.groups = vec![WorkerGroup::new("rank", ranks, "rank", program)];
    plan.check().map_err(|e| e.to_string())?;
    Ok(plan)
}

impl Part<'_> {
    /// Reduces a pattern to the stages of the part.
    fn select(&self, pattern: &mut Pattern) {
        let is_of = |names: &[&str], stage: &Stage| names.contains(&stage.name.as_str());
        pattern
            .stages
            .retain(|stage| is_of(self.measured, stage) || is_of(self.prepares, stage));
        for stage in &mut pattern.stages {
            let prepares = is_of(self.prepares, stage);
            if prepares {
                (stage.warm_up, stage.stonewall) = (true, None);
            }
            let rounds = match &mut stage.work {
                StageWork::Objects(work) => &mut work.rounds,
                StageWork::Transfers(work) => &mut work.rounds,
                StageWork::Search(_) => continue,
            };
            match (*rounds, self.made) {
                (Rounds::Made, Some(made)) => *rounds = Rounds::Count(made),
                (Rounds::Count(_), Some(made)) if prepares => *rounds = Rounds::Count(made),
                _ => {}
            }
        }
        let makes = self.made.is_none() || !self.prepares.is_empty();
        pattern.root_is = match makes {
            true => RootHandling::New,
            false => RootHandling::Kept,
        };
        pattern.leaves_objects = true;
    }
}

/// A pattern of empty objects in the root directory; the run creates and removes the root.
fn pattern(options: &Options, ranks: u32, stages: Vec<Stage>) -> Pattern {
    let arguments = &options.arguments;
    Pattern {
        verify: arguments.verify_read,
        content: arguments.content,
        direct: arguments.direct,
        samples: match (&arguments.latency, arguments.latency_all) {
            (None, _) => Samples::Off,
            (Some(_), false) => Samples::First,
            (Some(_), true) => Samples::All,
        },
        hold_memory: memory(arguments.lim_free_mem),
        ..Pattern::empty(options.place.root.clone(), ranks, stages)
    }
}

/// Parameters as command-line options, one per line.
fn as_text(parameters: &[Parameter]) -> String {
    let line = |p: &Parameter| format!("--{}={}\n", p.name, p.value);
    parameters.iter().map(line).collect()
}

/// Phases that start each stage and wait for its end; a stage that is not a warm-up has a measured window.
fn script(stages: &[Stage]) -> Vec<Phase> {
    let phases = |(stage, s): (u32, &Stage)| {
        let start = Phase::StartStage { stage };
        let wait = Phase::wait(Until::Done { at_most: None });
        match s.warm_up {
            true => vec![start, wait, Phase::Stop],
            false => vec![
                start,
                Phase::OpenWindow,
                wait,
                Phase::CloseWindow,
                Phase::Stop,
            ],
        }
    };
    (0..).zip(stages).flat_map(phases).collect()
}

/// Rows of the results, in the order of their first use.
#[derive(Default)]
pub(crate) struct RowTable(Vec<Operation>);

impl RowTable {
    pub(crate) fn id(&mut self, name: &str, kind: OpKind) -> OperationId {
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

pub(crate) fn parameter(
    name: &str,
    value: impl ToString,
    default: impl ToString,
    meaning: &str,
) -> Parameter {
    Parameter {
        name: name.into(),
        value: value.to_string(),
        default: default.to_string(),
        meaning: meaning.into(),
    }
}

/// Stonewall of IO500's patterns, after which ranks wear out.
pub(crate) fn worn_out(stonewall: Option<Duration>) -> Option<Stonewall> {
    stonewall.map(|after| Stonewall {
        after,
        wear_out: true,
    })
}

/// Converts MiB that stay free to bytes; `None` for 0.
fn memory(mib: Option<u64>) -> Option<u64> {
    mib.filter(|mib| *mib > 0).map(|mib| mib << 20)
}

pub(crate) fn template(text: &str) -> NameTemplate {
    NameTemplate::parse(text).expect("a constant of `pattern_names` is a template")
}

/// A step with one operation on the object of a round, without an offset.
pub(crate) fn object_step(op: ObjectOp, rows: &mut RowTable, owner: RankShift) -> ObjectStep {
    let (name, kind) = match op {
        ObjectOp::Create { .. } => (row::CREATE, OpKind::ObjectCreate),
        ObjectOp::Stat => (row::STAT, OpKind::Stat),
        ObjectOp::Read => (row::READ, OpKind::ObjectRead),
        ObjectOp::Delete => (row::DELETE, OpKind::Delete),
        ObjectOp::MakeDir => (row::MAKE_DIR, OpKind::MakeDir),
        ObjectOp::StatDir => (row::STAT, OpKind::Stat),
        ObjectOp::RenameDir => (row::RENAME, OpKind::Rename),
        ObjectOp::RemoveDir => (row::REMOVE_DIR, OpKind::RemoveDir),
    };
    ObjectStep {
        row: rows.id(name, kind),
        op,
        owner,
        offset: 0,
        gates: false,
    }
}

/// A shift by `ranks` ranks for every set: set number `s` shifts by `(s + 1) · ranks`.
fn by_set(ranks: i64) -> RankShift {
    RankShift {
        constant: 0,
        per_set: ranks,
    }
}

/// A shift by `ranks` ranks, the same for all sets.
pub(crate) fn by(ranks: i64) -> RankShift {
    RankShift {
        constant: ranks,
        per_set: 0,
    }
}

/// A measured stage without a waiting factor, a stonewall or a squeeze of memory.
pub(crate) fn stage(name: &str, work: StageWork, on_error: OnError) -> Stage {
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

/// Refuses a number above `MAX_OBJECT_NUMBER`; `what` names the number.
pub(crate) fn countable(what: &str, number: u128) -> Result<(), String> {
    match number {
        0..=MAX_OBJECT_NUMBER => Ok(()),
        _ => Err(format!(
            "{what} would be {number}, more than can be counted"
        )),
    }
}

/// Sets the memory squeeze of every stage; the first stage is included if `first_too`, because stages of an earlier run
/// precede it.
fn squeeze(stages: &mut [Stage], options: &Options, first_too: bool) {
    let squeeze = memory(options.arguments.lim_free_mem_phase);
    for stage in stages.iter_mut().skip(usize::from(!first_too)) {
        stage.squeeze_memory = squeeze;
    }
}
