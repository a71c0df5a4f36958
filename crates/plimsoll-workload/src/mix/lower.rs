//! Lowering of a workload to a Plan for a load and a scale.

mod files;

use crate::mix::model::{Component, RESERVED};
use crate::mix::parse::{Workload, value_at};
use crate::mix::settings;
use plimsoll_diagnostics::{Diagnostics, Problem, Span};
use plimsoll_plan::{
    BusinessMetric, Bytes, Content, Criteria, DEDUPED_BLOCKS, DIRECT_BLOCK, FilesetId, Mix,
    MixFiles, MixFlags, MixRow, OpKind, OperationId, Overrides, Pacing, Parameter, Phase, Plan,
    Program, QuitMode, RelPath, Source, SourceKind, SourcePosition, WorkDirSpec, WorkerGroup,
};
use std::path::PathBuf;
use toml::Spanned;

/// Tolerated relative difference between the data of the components and the data of the metric.
const DATA_TOLERANCE: f64 = 0.05;

/// Maximum number of processes of a Plan.
const MAX_PROCESSES: u64 = 1_000_000;

/// Environment of lowering.
#[derive(Debug, Clone)]
pub struct Context {
    /// Whether the workload is built in or a file.
    pub kind: SourceKind,
    /// New work directory, used if no directory is given.
    pub temp_dir: PathBuf,
}

/// Makes the Plan of a workload for the load and the scale of `overrides`. The Plan has passed [`Plan::check`].
///
/// With `overrides.most`, the files are laid out for the load `most`, and the Plan uses a part of them: Plans of
/// several loads share the same file trees.
///
/// # Errors
/// All errors, each with its source location in the workload or in the setting at fault.
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

/// Prefixes of [`Plan::check`] errors, and the path of the component's key at fault. If several entries match, the
/// first key that exists in the component applies.
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
        Span::of(0, at.span(), &self.workload.source.text)
    }

    fn problem<T>(&mut self, at: &Spanned<T>, message: impl Into<String>, label: &str) {
        let problem = Problem::new(self.span(at), message, label);
        self.problems.push(problem);
    }

    fn refuse(&mut self, message: impl Into<String>) {
        self.problems.push(Problem::of_text(0, message));
    }

    /// Locates an error of [`Plan::check`] at the value or component at fault.
    fn rejected(&self, message: &str) -> Problem {
        let components = self.workload.file.component.iter().enumerate();
        let mut named = components.filter_map(|(number, c)| {
            let name = &c.get_ref().name;
            let prefix = format!("`{}`: ", name.get_ref());
            Some((number, name, message.strip_prefix(&prefix)?))
        });
        let Some((number, name, text)) = named.next() else {
            return Problem::of_text(0, message);
        };
        let mut paths = PLACES.iter().filter(|(begin, _)| text.starts_with(begin));
        let value = paths.find_map(|(_, path)| value_at(&self.workload.source.text, number, path));
        match value {
            Some(span) => Problem::new(span, message, "this value"),
            None => Problem::new(self.span(name), message, "this component"),
        }
    }

    fn plan(&mut self, context: &Context, parameters: Vec<Parameter>) -> Plan {
        let file = &self.workload.file;
        self.check_overrides();
        self.check_metric();
        self.check_content();
        let (dir, temporary) = match &self.overrides.dir {
            Some(dir) => (dir.clone(), false),
            None => (context.temp_dir.clone(), true),
        };
        let name = self.workload.name();
        let name = name
            .split_once(" with --set")
            .map_or(name, |(name, _)| name);
        let stem = std::path::Path::new(name).file_stem().unwrap_or_default();
        let short = match context.kind {
            SourceKind::Builtin => name.into(),
            SourceKind::File => stem.to_string_lossy(),
        };
        let mut plan = Plan {
            title: file.title.clone(),
            source: Source {
                kind: context.kind,
                name: name.into(),
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

    /// Checks the command-line options.
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
            self.refuse(format!("{whose} must be above 0"));
        }
        if self.load == 0 {
            self.refuse("--load must be at least 1");
        }
        if self.overrides.most.is_some_and(|most| most < self.load) {
            self.refuse("the load is above the maximum load");
        }
        if !(self.scale > 0.0 && self.scale <= 1.0) {
            let scale = self.scale;
            self.refuse(format!(
                "--scale must be above 0 and at most 1, is {scale}; --load sets a higher load"
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
        let (stated, actual) = (data.get_ref().0, self.data());
        if stated.abs_diff(actual) as f64 > DATA_TOLERANCE * stated as f64 {
            let (stated, actual) = (Bytes(stated), Bytes(actual));
            let message = format!(
                "the components have {actual} of data files per metric, not {stated}: count × size × \
                 processes of all of them"
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
            let range = "a power of two from 512 to 64k";
            wrong.push(format!("content.block must be {range}, is {block}"));
        }
        for message in wrong {
            self.problem(table, message, "contents of writes");
        }
    }

    /// Mean bytes of data files per business metric at full scale.
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
        let components = self.workload.file.component.iter();
        let rates: Vec<f64> = components.filter_map(rate).collect();
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
        let mut script = vec![Phase::Populate { filesets }, Phase::Start];
        if !warmup.is_zero() {
            script.push(Phase::wait_for(warmup));
        }
        let measure = [Phase::OpenWindow, Phase::wait_for(time), Phase::CloseWindow];
        script.extend(measure);
        script.push(Phase::Stop);
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
        let max_load = self.overrides.most.unwrap_or(self.load);
        let parts = max_load.saturating_mul(processes);
        if processes == 0 || parts > MAX_PROCESSES {
            let message = format!("a load has 1 to {MAX_PROCESSES} processes, this has {parts}");
            self.problem(&c.processes, message, "of each metric");
            return;
        }
        let Some(files) = self.files(plan, c, parts) else {
            return;
        };
        let location = Some(self.place_of(&c.name));
        let name = c.name.get_ref().as_str();
        let mut row = |what: &str, kind: OpKind| {
            let name = match single {
                true => what.into(),
                false => format!("{name}/{what}"),
            };
            plan.add_row(name, kind, location.clone())
        };
        let mix = self.mix(c, files, &mut row);
        let largest = mix.reads.greatest().max(mix.writes.greatest());
        let program = Program::Mix(Box::new(mix));
        plan.groups.push(WorkerGroup {
            memory: largest.max(1).next_multiple_of(DIRECT_BLOCK),
            location,
            ..WorkerGroup::new(name, workers as u32, "worker", program)
        });
    }

    fn mix(
        &mut self,
        c: &Component,
        files: MixFiles,
        row: &mut impl FnMut(&str, OpKind) -> OperationId,
    ) -> Mix {
        let transfers = &c.transfers;
        Mix {
            table: self.table(c, row),
            prepare: row("prepare", OpKind::Prepare),
            pacing: c.rate.as_ref().map(|rate| Pacing {
                rate: rate.get_ref() * self.scale,
                arrivals: c.arrivals,
                start: row("start", OpKind::Start),
            }),
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
        }
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
                    "`{name}` is an operation of a user's own program, which Plimsoll does not load: \
                     only 0 is possible"
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
