//! From a workload and a load to a Plan.

mod files;

use crate::model::{Component, RESERVED};
use crate::parse::{Workload, span_of, value_at};
use crate::settings;
use plimsoll_diagnostics::{Diagnostics, Problem, Span};
use plimsoll_plan::{
    BusinessMetric, Content, Criteria, DEDUPED_BLOCKS, DIRECT_BLOCK, FilesetId, Mix, MixFlags,
    MixRow, OpKind, Operation, OperationId, Overrides, Pacing, Parameter, Phase, Plan, Program,
    QuitMode, RelPath, Source, SourceKind, SourcePosition, Until, WorkDirSpec, WorkerGroup,
};
use std::path::PathBuf;
use toml::Spanned;

/// The data of the components may differ from that of the metric by this share.
const DATA_TOLERANCE: f64 = 0.05;

/// Most processes of a Plan.
const MAX_PROCESSES: u64 = 1_000_000;

/// What lowering needs to know besides the workload and the command line's changes.
#[derive(Debug, Clone)]
pub struct Context {
    /// Whether the workload is built in or a file.
    pub kind: SourceKind,
    /// Fresh directory for the files when none is given.
    pub temp_dir: PathBuf,
}

/// Makes the Plan of a workload for the load and the scale of `overrides`.
///
/// With `overrides.most`, the files are laid out for that load, and this one works on its part of
/// them: Plans of several loads up to it share the same trees of files. The Plan that comes back
/// has passed [`Plan::check`].
///
/// # Errors
/// Every error found, each with its place in the workload or in the setting at fault.
pub fn lower(
    workload: &Workload,
    overrides: &Overrides,
    context: &Context,
) -> Result<Plan, Diagnostics> {
    let (workload, parameters) = settings::apply(workload, &overrides.sets)?;
    let mut lowerer = Lowerer {
        workload: &workload,
        overrides,
        problems: vec![],
        load: overrides.load.unwrap_or(1),
        scale: overrides.scale.unwrap_or(1.0),
    };
    let plan = lowerer.plan(context, parameters);
    let fail = |problems| Err(Diagnostics::new(vec![workload.source.clone()], problems));
    if !lowerer.problems.is_empty() {
        return fail(lowerer.problems);
    }
    match plan.check() {
        Ok(()) => Ok(plan),
        Err(e) => fail(vec![lowerer.rejected(&e.to_string())]),
    }
}

/// How sentences of the Plan's own check begin, and the key of a component that they are about;
/// of several the first that is written.
const PLACES: [(&str, &[&str]); 17] = [
    ("a rate must", &["rate"]),
    ("a delay must", &["delay"]),
    ("direct must", &["transfers", "direct"]),
    ("osync must", &["transfers", "osync"]),
    ("commit must", &["transfers", "commit"]),
    ("an alignment must", &["transfers", "align"]),
    ("the table of read sizes", &["transfers", "read"]),
    ("the table of write sizes", &["transfers", "write"]),
    ("a working set must", &["files", "working_set"]),
    ("geometric choices must", &["files", "geometric"]),
    ("the exponent of zipf", &["files", "exponent"]),
    ("a zipf choice", &["files", "choice"]),
    ("a spot must", &["files", "spots", "percent"]),
    ("the affinity of spots", &["files", "spots", "affinity"]),
    ("accesses and multiplier", &["files", "spots"]),
    ("the percentages of a mix", &["mix"]),
    ("files that processes share", &["files"]),
];

struct Lowerer<'a> {
    workload: &'a Workload,
    overrides: &'a Overrides,
    problems: Vec<Problem>,
    load: u64,
    scale: f64,
}

impl Lowerer<'_> {
    fn span<T>(&self, at: &Spanned<T>) -> Span {
        span_of(at.span(), &self.workload.source.text)
    }

    fn problem<T>(&mut self, at: &Spanned<T>, message: impl Into<String>, label: &str) {
        let problem = Problem::new(self.span(at), message, label);
        self.problems.push(problem);
    }

    fn refuse(&mut self, message: impl Into<String>) {
        self.problems.push(Problem::of_text(0, message));
    }

    /// What the Plan's own check says, at the component it is said of.
    fn rejected(&self, message: &str) -> Problem {
        let said_of = |c: &&Spanned<Component>| {
            let name = c.get_ref().name.get_ref();
            message.starts_with(&format!("`{name}`: "))
        };
        let mut components = self.workload.file.component.iter();
        let Some(number) = components.position(|c| said_of(&c)) else {
            return Problem::of_text(0, message);
        };
        let name = &self.workload.file.component[number].get_ref().name;
        let said = message.split_once("`: ").map_or(message, |(_, said)| said);
        let mut paths = PLACES.iter().filter(|(begin, _)| said.starts_with(begin));
        let value = paths.find_map(|(_, path)| value_at(&self.workload.source.text, number, path));
        match value {
            Some(span) => Problem::new(span, message, "this value"),
            // What is not written is the component's own.
            None => Problem::new(self.span(name), message, "this component"),
        }
    }

    fn plan(&mut self, context: &Context, parameters: Vec<Parameter>) -> Plan {
        let (file, name) = (&self.workload.file, self.workload.name());
        self.check_overrides();
        self.check_metric();
        self.check_content();
        let (dir, temporary) = match &self.overrides.dir {
            Some(dir) => (dir.clone(), false),
            None => (context.temp_dir.clone(), true),
        };
        let short = std::path::Path::new(name.split(" with --set").next().unwrap_or(name));
        let short = match context.kind {
            SourceKind::Builtin => short.to_string_lossy(),
            SourceKind::File => short.file_stem().unwrap_or_default().to_string_lossy(),
        };
        let mut plan = Plan {
            title: file.title.clone(),
            source: Source {
                kind: context.kind,
                name: name.split(" with --set").next().unwrap_or(name).into(),
                text: self.workload.original.to_string(),
            },
            seed: self.overrides.seed.unwrap_or(1),
            work_dir: WorkDirSpec {
                dir,
                guards: vec![RelPath::default()],
                temporary,
            },
            parameters,
            options: self.overrides.options.clone(),
            ..Plan::empty(&short)
        };
        plan.options.content = self.overrides.content.unwrap_or_else(|| self.content());
        let single = file.component.len() == 1;
        for (i, component) in file.component.iter().enumerate() {
            let before = &file.component[..i];
            self.component(&mut plan, component.get_ref(), before, single);
        }
        plan.metric = Some(self.metric());
        plan.script = self.script(&plan);
        plan
    }

    /// Options that mean nothing for a mix.
    fn check_overrides(&mut self) {
        if self.overrides.rate.is_some() {
            self.refuse(
                "--rate is for the limiters of Filebench workloads; an operation mix has a rate \
                 for each process: change it with --set COMPONENT.rate=OPS, or the load with \
                 --load",
            );
        }
        if self.overrides.quit == Some(QuitMode::FirstDone) {
            self.refuse("--quit firstdone is for workloads whose workers end by themselves");
        }
        let time = self.overrides.time;
        if time.unwrap_or(self.workload.file.run.time.0).is_zero() {
            let whose = if time.is_some() { "--time" } else { "run.time" };
            self.refuse(format!(
                "{whose} must be above 0: nothing is measured in no time"
            ));
        }
        if self.load == 0 {
            self.refuse("--load must be at least 1");
        }
        if self.overrides.most.is_some_and(|most| most < self.load) {
            self.refuse("the load is above the greatest load");
        }
        if !(self.scale > 0.0 && self.scale <= 1.0) {
            let scale = self.scale;
            self.refuse(format!(
                "--scale must be above 0 and at most 1, is {scale}; a greater load is asked for \
                 with --load"
            ));
        }
    }

    fn check_metric(&mut self) {
        let metric = self.workload.file.metric.get_ref();
        for rate in [&metric.process_rate, &metric.total_rate] {
            if !(0.0..=100.0).contains(rate.get_ref()) {
                let message = format!("a part must be 0 to 100 percent, is {}", rate.get_ref());
                self.problem(rate, message, "out of range");
            }
        }
        if self.workload.file.component.is_empty() {
            self.refuse("a workload needs at least one [[component]]");
        }
        let Some(data) = &metric.data else { return };
        let (asked, there) = (data.get_ref().0 as f64, self.data() as f64);
        if (there - asked).abs() > DATA_TOLERANCE * asked {
            let show = |n: f64| plimsoll_plan::Bytes(n as u64);
            let message = format!(
                "the components have {} of data files a metric, not {}: count × size × processes \
                 of all of them",
                show(there),
                show(asked)
            );
            self.problem(data, message, "does not agree");
        }
    }

    fn check_content(&mut self) {
        let table = &self.workload.file.content;
        let content = table.get_ref();
        let mut wrong = Vec::new();
        for (name, percent) in [
            ("compressible", content.compressible),
            ("dedupable", content.dedupable),
        ] {
            if !(0.0..=100.0).contains(&percent) {
                wrong.push(format!(
                    "content.{name} must be 0 to 100 percent, is {percent}"
                ));
            }
        }
        let groups = content.groups;
        if !(1..=DEDUPED_BLOCKS as u32).contains(&groups) {
            wrong.push(format!(
                "content.groups must be 1 to {DEDUPED_BLOCKS}, is {groups}"
            ));
        }
        let block = content.block.0;
        if !plimsoll_plan::is_block(block) {
            wrong.push(format!(
                "content.block must be a power of two from 512 to 64k, is {block}"
            ));
        }
        for message in wrong {
            self.problem(table, message, "what is written");
        }
    }

    /// Bytes of data files of a metric at full scale.
    fn data(&self) -> u64 {
        let of = |c: &Spanned<Component>| {
            let c = c.get_ref();
            let mean = c.files.get_ref().size.get_ref().0.mean();
            f64::from(*c.processes.get_ref()) * *c.files.get_ref().count.get_ref() as f64 * mean
        };
        self.workload.file.component.iter().map(of).sum::<f64>() as u64
    }

    fn metric(&self) -> BusinessMetric {
        let metric = self.workload.file.metric.get_ref();
        let rate = |c: &Spanned<Component>| {
            let c = c.get_ref();
            Some(f64::from(*c.processes.get_ref()) * c.rate.as_ref()?.get_ref())
        };
        let rates: Vec<f64> = self
            .workload
            .file
            .component
            .iter()
            .filter_map(rate)
            .collect();
        BusinessMetric {
            name: metric.name.clone(),
            load: self.load,
            scale: self.scale,
            data: self.data(),
            rate: (!rates.is_empty()).then(|| rates.iter().sum()),
            criteria: Criteria {
                process_percent: *metric.process_rate.get_ref(),
                total_percent: *metric.total_rate.get_ref(),
                latency: metric.latency.map(|l| l.0),
            },
        }
    }

    fn content(&self) -> Content {
        let content = self.workload.file.content.get_ref();
        match (content.compressible, content.dedupable) {
            (0.0, 0.0) => Content::Random,
            (compressible_percent, dedupable_percent) => Content::Blocks {
                compressible_percent,
                dedupable_percent,
                block: content.block.0,
                groups: content.groups,
            },
        }
    }

    fn script(&self, plan: &Plan) -> Vec<Phase> {
        let run = &self.workload.file.run;
        let warmup = self.overrides.warmup.unwrap_or(run.warmup.0);
        let time = self.overrides.time.unwrap_or(run.time.0);
        let filesets = (0..plan.filesets.len() as u32).map(FilesetId).collect();
        let wait = |time| Phase::Wait {
            until: Until::Elapsed { time },
            snapshots: None,
        };
        let mut script = vec![Phase::Populate { filesets }, Phase::Start];
        if !warmup.is_zero() {
            script.push(wait(warmup));
        }
        script.extend([
            Phase::OpenWindow,
            wait(time),
            Phase::CloseWindow,
            Phase::Stop,
        ]);
        script
    }

    fn component(
        &mut self,
        plan: &mut Plan,
        c: &Component,
        before: &[Spanned<Component>],
        single: bool,
    ) {
        self.check_name(c, before);
        let processes = u64::from(*c.processes.get_ref());
        let workers = self.load.saturating_mul(processes);
        let parts = self
            .overrides
            .most
            .unwrap_or(self.load)
            .saturating_mul(processes);
        if processes == 0 || parts > MAX_PROCESSES {
            let message = format!("a load has 1 to {MAX_PROCESSES} processes, this has {parts}");
            self.problem(&c.processes, message, "of each metric");
            return;
        }
        let Some(files) = self.files(plan, c, parts) else {
            return;
        };
        let place = Some(self.place_of(&c.name));
        let name = c.name.get_ref().as_str();
        let mut row = |what: &str, kind: OpKind| {
            plan.operations.push(Operation {
                name: match single {
                    true => what.into(),
                    false => format!("{name}/{what}"),
                },
                kind,
                location: place.clone(),
            });
            OperationId(plan.operations.len() as u32 - 1)
        };
        let table = self.table(c, &mut row);
        let prepare = row("prepare", OpKind::Prepare);
        let pacing = c.rate.as_ref().map(|rate| Pacing {
            rate: rate.get_ref() * self.scale,
            arrivals: c.arrivals,
            start: row("start", OpKind::Start),
        });
        let transfers = &c.transfers;
        let mix = Mix {
            table,
            prepare,
            pacing,
            delay: c.delay.0,
            reads: transfers.read.0.clone(),
            writes: transfers.write.0.clone(),
            files,
            working_set: self.working_set(c),
            flags: MixFlags {
                direct_percent: transfers.direct,
                osync_percent: transfers.osync,
                commit_percent: transfers.commit,
                align: transfers.align.0,
                overwrite: transfers.overwrite,
                keep_open: transfers.keep_open,
            },
        };
        let largest = mix.reads.greatest().max(mix.writes.greatest());
        plan.groups.push(WorkerGroup {
            process: name.into(),
            process_instances: workers as u32,
            thread: "worker".into(),
            thread_instances: 1,
            memory: largest.max(1).next_multiple_of(DIRECT_BLOCK),
            nice: 0,
            io_priority: None,
            program: Program::Mix(Box::new(mix)),
            location: Some(self.place_of(&c.name)),
        });
    }

    fn place_of<T>(&self, at: &Spanned<T>) -> SourcePosition {
        let (line, column) = self.workload.source.position(at.span().start);
        SourcePosition {
            file: self.workload.source.name.clone(),
            line,
            column,
        }
    }

    fn check_name(&mut self, c: &Component, before: &[Spanned<Component>]) {
        let name = c.name.get_ref().as_str();
        let fits = |ch: char| ch.is_ascii_alphanumeric() || ch == '-' || ch == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            let message = "a name has 1 to 64 letters, digits, `-` and `_`";
            self.problem(&c.name, message, "this name");
        }
        if RESERVED.contains(&name) {
            let message = format!("`{name}` is a key of the workload and cannot name a component");
            self.problem(&c.name, message, "this name");
        }
        let same = |other: &&Spanned<Component>| other.get_ref().name.get_ref() == name;
        if let Some(first) = before.iter().find(same) {
            let problem = Problem::new(
                self.span(&c.name),
                format!("two components have the name `{name}`"),
                "the second",
            );
            let first = self.span(&first.get_ref().name);
            self.problems.push(problem.also(first, "the first"));
        }
    }

    fn table(
        &mut self,
        c: &Component,
        row: &mut impl FnMut(&str, OpKind) -> OperationId,
    ) -> Vec<MixRow> {
        let mix = c.mix.get_ref();
        let mut table = Vec::new();
        for (op, percent) in mix.given() {
            let p = *percent.get_ref();
            if !(0.0..=100.0).contains(&p) {
                let message = format!("{op} must be 0 to 100 percent, is {p}");
                self.problem(percent, message, "out of range");
            } else if p > 0.0 {
                table.push(MixRow {
                    op,
                    percent: p,
                    row: row(op.name(), op.kind()),
                });
            }
        }
        for (name, percent) in [("custom1", &mix.custom1), ("custom2", &mix.custom2)] {
            if let Some(percent) = percent.as_ref().filter(|p| *p.get_ref() != 0.0) {
                let message = format!(
                    "`{name}` is an operation of a program of one's own, which Plimsoll does not \
                     load: only 0 is possible"
                );
                self.problem(percent, message, "not possible");
            }
        }
        let sum: f64 = table.iter().map(|r| r.percent).sum();
        if (sum - 100.0).abs() > 0.01 {
            let message = format!("the percentages of a mix must sum to 100, these sum to {sum}");
            self.problem(&c.mix, message, "this mix");
        }
        table
    }
}
