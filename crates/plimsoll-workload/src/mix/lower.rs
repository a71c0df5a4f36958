//! Lowering of a workload to a Plan for a load and a scale.

mod files;

use crate::mix::model::{self, Component, ComponentContent, RESERVED};
use crate::mix::parse::Workload;
use crate::mix::settings;
use crate::mix::values::Size;
use plimsoll_diagnostics::{Diagnostics, Problem};
use plimsoll_plan::{
    BusinessMetric, Bytes, Content, Criteria, DEDUPED_BLOCKS, DIRECT_BLOCK, FilesetId, Mix,
    MixFiles, MixFlags, MixRow, OpKind, OperationId, Overrides, Pacing, Parameter, Phase, Plan,
    Program, QuitMode, RelPath, Source, SourceKind, SourcePosition, Until, Warmup, WorkDirSpec,
    WorkerGroup,
};
use std::path::PathBuf;

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
        number: 0,
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
const PLACES: [(&str, &str); 18] = [
    ("a rate must", "rate"),
    ("a delay must", "delay"),
    ("direct must", "transfers.direct"),
    ("osync must", "transfers.osync"),
    ("commit must", "transfers.commit"),
    ("an alignment must", "transfers.align"),
    ("fadvise", "transfers.fadvise"),
    ("the table of read sizes", "transfers.read"),
    ("the table of write sizes", "transfers.write"),
    ("a working set must", "files.working_set"),
    ("geometric choices must", "files.geometric"),
    ("the exponent of zipf", "files.exponent"),
    ("a zipf choice", "files.choice"),
    ("a spot must", "files.spots.percent"),
    ("the affinity of spots", "files.spots.affinity"),
    ("accesses and multiplier", "files.spots"),
    ("the percentages of a mix", "mix"),
    ("files that processes share", "files"),
];

struct Lowerer<'a> {
    workload: &'a Workload,
    overrides: &'a Overrides,
    problems: Vec<Problem>,
    load: u64,
    scale: f64,
    /// Number of the component that is being lowered, from 0 in the order of the workload.
    number: usize,
}

impl Lowerer<'_> {
    /// Reports an error of the value at a path of keys, such as `metric.data`; `label` stands below the value in the
    /// message.
    fn problem(&mut self, path: &str, message: impl Into<String>, label: &str) {
        let problem = Problem::new(self.workload.span(path), message, label);
        self.problems.push(problem);
    }

    /// Full path of a key of the component that is being lowered, such as `component.0.files.count`.
    fn path(&self, key: &str) -> String {
        format!("component.{}.{key}", self.number)
    }

    /// Reports an error of the value of `key` in the component that is being lowered.
    fn wrong(&mut self, key: &str, message: impl Into<String>, label: &str) {
        self.problem(&self.path(key), message, label);
    }

    fn refuse(&mut self, message: impl Into<String>) {
        self.problems.push(Problem::of_text(0, message));
    }

    /// Locates an error of [`Plan::check`] at the value or component at fault.
    fn rejected(&self, message: &str) -> Problem {
        let mut components = self.workload.file.component.iter().enumerate();
        let of = |(number, c): (usize, &Component)| {
            let prefix = format!("`{}`: ", c.name);
            Some((
                format!("component.{number}"),
                message.strip_prefix(&prefix)?,
            ))
        };
        let Some((component, text)) = components.find_map(of) else {
            return Problem::of_text(0, message);
        };
        let mut keys = PLACES.iter().filter(|(begin, _)| text.starts_with(begin));
        match keys.find_map(|(_, key)| self.workload.find(&format!("{component}.{key}"))) {
            Some(span) => Problem::new(span, message, "this value"),
            None => {
                let span = self.workload.span(&format!("{component}.name"));
                Problem::new(span, message, "this component")
            }
        }
    }

    fn plan(&mut self, context: &Context, parameters: Vec<Parameter>) -> Plan {
        let file = &self.workload.file;
        self.check_overrides();
        self.check_metric();
        self.check_content("content", file.content);
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
        plan.options.content = self.content(&ComponentContent::default());
        let single = file.component.len() == 1;
        for (number, component) in file.component.iter().enumerate() {
            self.number = number;
            self.component(&mut plan, component, single);
        }
        plan.metric = Some(self.metric());
        self.promises(&mut plan);
        plan.script = self.script(&plan);
        plan
    }

    /// Checks the command-line options.
    fn check_overrides(&mut self) {
        if let Some(rate) = self.overrides.rate {
            if !(rate.is_finite() && rate > 0.0) {
                self.refuse(format!("the rate of a mix must be above 0, is {rate}"));
            } else if self.scheduled_rate() == 0.0 {
                self.refuse(
                    "no component has a rate that could be changed: each operation starts when the previous \
                     operation has ended",
                );
            }
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
        let metric = &self.workload.file.metric;
        for (path, rate) in [
            ("metric.process_rate", metric.process_rate),
            ("metric.total_rate", metric.total_rate),
        ] {
            if !(0.0..=100.0).contains(&rate) {
                let message = format!("a part must be 0 to 100 percent, is {rate}");
                self.problem(path, message, "out of range");
            }
        }
        if self.workload.file.component.is_empty() {
            self.refuse("a workload needs at least one [[component]]");
        }
        let Some(Size(stated)) = metric.data else {
            return;
        };
        let actual = self.data();
        if stated.abs_diff(actual) as f64 > DATA_TOLERANCE * stated as f64 {
            let (stated, actual) = (Bytes(stated), Bytes(actual));
            let message = format!(
                "the components have {actual} of data files per metric, not {stated}: count × size × \
                 processes of all of them"
            );
            self.problem("metric.data", message, "does not agree");
        }
    }

    /// Checks the content of the workload or of a component, whose table has the path `path`.
    fn check_content(&mut self, path: &str, content: model::Content) {
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
            self.problem(path, message, "contents of writes");
        }
    }

    /// Mean bytes of data files per business metric at full scale.
    fn data(&self) -> u64 {
        let of =
            |c: &Component| f64::from(c.processes) * c.files.count as f64 * c.files.size.0.mean();
        self.workload.file.component.iter().map(of).sum::<f64>() as u64
    }

    /// Rate of all processes together by the workload's rates, the load and the scale, in operations per second, before
    /// a rate of the command line changes the rates.
    fn scheduled_rate(&self) -> f64 {
        self.rates().sum::<f64>() * self.load as f64 * self.scale
    }

    /// Rate of the processes of one business metric at full scale, by the workload, for each component with a rate.
    fn rates(&self) -> impl Iterator<Item = f64> {
        let components = self.workload.file.component.iter();
        components.filter_map(|c| Some(f64::from(c.processes) * c.rate?))
    }

    /// Factor by which a rate of the command line changes the rate of each component; 1 without such a rate.
    fn rate_factor(&self) -> f64 {
        let rate = self.overrides.rate;
        rate.map_or(1.0, |rate| rate / self.scheduled_rate())
    }

    fn metric(&self) -> BusinessMetric {
        let metric = &self.workload.file.metric;
        let factor = self.rate_factor();
        let rates: Vec<f64> = self.rates().map(|rate| rate * factor).collect();
        BusinessMetric {
            name: metric.name.clone(),
            load: self.load,
            scale: self.scale,
            data: self.data(),
            rate: (!rates.is_empty()).then(|| rates.iter().sum()),
            criteria: Criteria {
                process_percent: metric.process_rate,
                total_percent: metric.total_rate,
                latency: metric.latency.map(|l| l.0),
            },
        }
    }

    /// Adds the promises of the workload to the Plan, whose operations are complete.
    fn promises(&mut self, plan: &mut Plan) {
        for (number, promise) in self.workload.file.promise.iter().enumerate() {
            match plan.check_condition(&promise.condition) {
                Ok(()) => plan.promises.push(promise.clone()),
                Err(message) => {
                    let path = format!("promise.{number}.condition");
                    self.problem(&path, message, "this promise");
                }
            }
        }
    }

    /// Content of the writes of a component with its own keys `own`, unless the command line sets the content.
    fn content(&self, own: &ComponentContent) -> Content {
        if let Some(content) = self.overrides.content {
            return content;
        }
        let content = own.over(self.workload.file.content);
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
        let warmup = self.overrides.warmup.unwrap_or(Warmup::Fixed(run.warmup.0));
        let time = self.overrides.time.unwrap_or(run.time.0);
        let filesets = (0..plan.filesets.len() as u32).map(FilesetId).collect();
        let mut script = vec![Phase::Populate { filesets }, Phase::Start];
        if !warmup.is_zero() {
            script.push(Phase::wait(warmup.into()));
        }
        let until = Until::window(time, self.overrides.precision);
        let measure = [Phase::OpenWindow, Phase::wait(until), Phase::CloseWindow];
        script.extend(measure);
        script.push(Phase::Stop);
        script
    }

    fn component(&mut self, plan: &mut Plan, c: &Component, single: bool) {
        self.check_name(c);
        if c.content != ComponentContent::default() {
            let whole = c.content.over(self.workload.file.content);
            self.check_content(&self.path("content"), whole);
        }
        let processes = u64::from(c.processes);
        let workers = self.load.saturating_mul(processes);
        let max_load = self.overrides.most.unwrap_or(self.load);
        let parts = max_load.saturating_mul(processes);
        if processes == 0 || parts > MAX_PROCESSES {
            let message = format!("a load has 1 to {MAX_PROCESSES} processes, this has {parts}");
            self.wrong("processes", message, "of each metric");
            return;
        }
        let Some(files) = self.files(plan, c, parts) else {
            return;
        };
        let location = Some(self.place_of("name"));
        let name = c.name.as_str();
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
            pacing: c.rate.map(|rate| Pacing {
                rate: rate * self.scale * self.rate_factor(),
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
                fadvise: transfers.fadvise,
            },
        }
    }

    /// File, line and column of the value of `key` in the component that is being lowered.
    fn place_of(&self, key: &str) -> SourcePosition {
        let span = self.workload.span(&self.path(key));
        let (line, column) = self.workload.source.position(span.start as usize);
        SourcePosition {
            file: self.workload.source.name.clone(),
            line,
            column,
        }
    }

    fn check_name(&mut self, c: &Component) {
        let name = c.name.as_str();
        let fits = |ch: char| ch.is_ascii_alphanumeric() || ch == '-' || ch == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            let message = "a name has 1 to 64 letters, digits, `-` and `_`";
            self.wrong("name", message, "this name");
        }
        if RESERVED.contains(&name) {
            let message = format!("`{name}` is a key of the workload and cannot name a component");
            self.wrong("name", message, "this name");
        }
        let before = &self.workload.file.component[..self.number];
        if let Some(first) = before.iter().position(|other| other.name == name) {
            let span = self.workload.span(&self.path("name"));
            let message = format!("two components have the name `{name}`");
            let first = self.workload.span(&format!("component.{first}.name"));
            let problem = Problem::new(span, message, "the second").also(first, "the first");
            self.problems.push(problem);
        }
    }

    fn table(
        &mut self,
        c: &Component,
        row: &mut impl FnMut(&str, OpKind) -> OperationId,
    ) -> Vec<MixRow> {
        let mut table = Vec::new();
        for (op, percent) in c.mix.given() {
            if !(0.0..=100.0).contains(&percent) {
                let message = format!("{op} must be 0 to 100 percent, is {percent}");
                self.wrong(&format!("mix.{}", op.name()), message, "out of range");
            } else if percent > 0.0 {
                table.push(MixRow {
                    op,
                    percent,
                    row: row(op.name(), op.kind()),
                });
            }
        }
        for (name, percent) in [("custom1", c.mix.custom1), ("custom2", c.mix.custom2)] {
            if percent.unwrap_or_default() != 0.0 {
                let message = format!(
                    "`{name}` is an operation of a user's own program, which Plimsoll does not load: \
                     only 0 is possible"
                );
                self.wrong(&format!("mix.{name}"), message, "not possible");
            }
        }
        let sum: f64 = table.iter().map(|r| r.percent).sum();
        if (sum - 100.0).abs() > 0.01 {
            let message = format!("the percentages of a mix must sum to 100, these sum to {sum}");
            self.wrong("mix", message, "this mix");
        }
        table
    }
}
