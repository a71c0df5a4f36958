//! The Plan, and its checks.

use crate::fileset::{Fileset, MAX_NAME_LETTERS};
use crate::ids::{FilesetId, OperationId, VariableId};
use crate::mix::{BusinessMetric, Mix};
use crate::operation::{OpKind, Operation};
use crate::options::RunOptions;
use crate::pattern::{Pattern, StageWork};
use crate::program::{Op, WorkerGroup};
use crate::script::{Phase, QuitMode};
use crate::seed::Stream;
use crate::source::SourcePosition;
use crate::variable::{Value, Variable};
use crate::{PLAN_SCHEMA, RelPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything that determines a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Version of this form, [`PLAN_SCHEMA`].
    pub schema_version: u32,
    /// Name of the workload.
    pub name: String,
    /// One line that describes the workload; may be empty.
    pub title: String,
    /// Origin and text of the workload.
    pub source: Source,
    /// Root of all random choices.
    pub seed: u64,
    /// Work directory.
    pub work_dir: WorkDirSpec,
    /// The workload's parameters and their values in this Plan.
    pub parameters: Vec<Parameter>,
    /// Random variables that draws refer to.
    pub variables: Vec<Variable>,
    /// Trees of files.
    pub filesets: Vec<Fileset>,
    /// Rows of the results.
    pub operations: Vec<Operation>,
    /// Groups of workers and their programs.
    pub groups: Vec<WorkerGroup>,
    /// Events per second for the limiters; `None`: limiters do not wait.
    pub event_rate: Option<f64>,
    /// Condition that ends the run.
    pub quit: QuitMode,
    /// Phases in order.
    pub script: Vec<Phase>,
    /// Whether CPU use is measured.
    pub cpu_accounting: bool,
    /// The unit of load and its criteria, for workloads that have one.
    pub metric: Option<BusinessMetric>,
    /// Options of the run.
    pub options: RunOptions,
    /// Parts of the workload that have no effect, or another effect than in Filebench.
    pub notes: Vec<Note>,
}

/// Origin of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Kind of source.
    pub kind: SourceKind,
    /// Built-in name or path of the file.
    pub name: String,
    /// The text itself.
    pub text: String,
}

/// Kinds of [`Source`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// Compiled into the program.
    Builtin,
    /// A file.
    File,
}

/// Directories of a run's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkDirSpec {
    /// Directory that every path of the Plan is relative to.
    #[serde(with = "crate::path_text")]
    #[schemars(with = "String")]
    pub dir: PathBuf,
    /// Directories below it that must be empty, missing, or marked as Plimsoll's own.
    pub guards: Vec<RelPath>,
    /// Created for this run, and removed with all its contents unless kept.
    pub temporary: bool,
}

/// A parameter of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parameter {
    /// Name without the dollar sign.
    pub name: String,
    /// Value in this Plan, as text.
    pub value: String,
    /// Value in the workload's own text.
    pub default: String,
    /// Meaning, from the comment beside its definition; may be empty.
    pub meaning: String,
}

/// A remark on the translation of the workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// One sentence.
    pub text: String,
    /// Source location.
    pub location: Option<SourcePosition>,
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self {
            text,
            location: None,
        }
    }
}

/// Reason why a Plan is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The Plan has another schema version; its number.
    #[error("the Plan has schema {0}; this program reads {PLAN_SCHEMA}")]
    Schema(u32),
    /// An index of the Plan is beyond its table.
    #[error("the Plan refers to {what} {index}, which does not exist")]
    Dangling {
        /// Name of one item of the table, such as `fileset`.
        what: &'static str,
        /// The index beyond the table.
        index: u32,
    },
    /// The parameters of a random variable are invalid.
    #[error("variable `{name}`: {reason}")]
    Variable {
        /// Name of the variable.
        name: String,
        /// The violated rule, as a sentence.
        reason: String,
    },
    /// A number is outside its range, or parts of the Plan contradict each other; one sentence.
    #[error("{0}")]
    Range(String),
    /// The trees of two filesets overlap.
    #[error("filesets `{0}` and `{1}` lie in the same directory tree")]
    Overlap(String, String),
    /// The script runs a shell command, and commands are not allowed; the command.
    #[error("the workload runs a shell command (`{0}`); allow it with --allow-commands")]
    System(String),
}

/// Name of the row of reads that a target's model of a client cache served; the server did not send their bytes.
pub const CACHED_DATA: &str = "data cache hits";

/// Name of the row of completion delays: times from the completion of an operation of a ring until its worker sees it.
pub const COMPLETION_DELAY: &str = "completion delay";

impl Plan {
    /// Adds a row to the results and returns its index.
    pub fn add_row(
        &mut self,
        name: impl Into<String>,
        kind: OpKind,
        location: Option<SourcePosition>,
    ) -> OperationId {
        self.operations.push(Operation {
            name: name.into(),
            kind,
            location,
        });
        OperationId(self.operations.len() as u32 - 1)
    }

    /// Adds a row to the results for each procedure that a target calls on a server.
    pub fn add_procedures<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            self.add_row(name, OpKind::Rpc, None);
        }
    }

    /// Adds the row `COMPLETION_DELAY`, for a target that reports completions in a queue.
    pub fn add_completion_delay(&mut self) {
        self.add_row(COMPLETION_DELAY, OpKind::CompletionDelay, None);
    }

    /// The stream of random choices with the name `name`.
    #[must_use]
    pub fn stream(&self, name: &str) -> Stream {
        Stream::new(self.seed).named(name)
    }

    /// Number of workers of all groups.
    #[must_use]
    pub fn workers(&self) -> u64 {
        self.groups.iter().map(WorkerGroup::workers).sum()
    }

    /// Whether the workers of any group follow a schedule.
    #[must_use]
    pub fn has_schedule(&self) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|group| group.follows_schedule(self.event_rate))
    }

    /// Number of the process of a worker. Groups whose process has the same name are threads of the same processes.
    #[must_use]
    pub fn process_of(&self, group: usize, worker: u32) -> u64 {
        let of = &self.groups[group];
        let mut before: Vec<&WorkerGroup> = Vec::new();
        for g in self.groups.iter().take_while(|g| g.process != of.process) {
            if before.iter().all(|b| b.process != g.process) {
                before.push(g);
            }
        }
        let first: u64 = before.iter().map(|g| u64::from(g.process_instances)).sum();
        first + u64::from(worker / of.thread_instances.max(1))
    }

    /// Row of the results with this index.
    #[must_use]
    pub fn operation(&self, id: OperationId) -> &Operation {
        &self.operations[id.0 as usize]
    }

    /// Fileset with this index.
    #[must_use]
    pub fn fileset(&self, id: FilesetId) -> &Fileset {
        &self.filesets[id.0 as usize]
    }

    /// Root of a fileset's tree, relative to the work directory.
    ///
    /// # Panics
    /// If the name leaves the work directory, which [`Plan::check`] refuses.
    #[must_use]
    pub fn root_of(&self, id: FilesetId) -> RelPath {
        let root = self.fileset(id).root();
        root.expect("a checked Plan has filesets inside the work directory")
    }

    /// Random variable with this index.
    #[must_use]
    pub fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.0 as usize]
    }

    /// The pattern of the Plan; `None` for other workloads.
    #[must_use]
    pub fn pattern(&self) -> Option<&Pattern> {
        self.groups.iter().find_map(|g| g.program.pattern())
    }

    /// Whether any transfer of the workload bypasses the page cache.
    #[must_use]
    pub fn uses_direct_io(&self) -> bool {
        self.groups.iter().any(|g| g.program.uses_direct_io())
    }

    /// Whether the results have a row of completion delays.
    #[must_use]
    pub fn has_completion_delay(&self) -> bool {
        let is_delay = |o: &Operation| o.kind == OpKind::CompletionDelay;
        self.operations.iter().any(is_delay)
    }

    /// Whether any worker may change the file tree of the fileset.
    #[must_use]
    pub fn changes_tree(&self, id: FilesetId) -> bool {
        // The slot of an operation without a fileset may hold a file of any fileset.
        let mut changes = false;
        for group in &self.groups {
            changes |= group.program.mix().is_some_and(|m| m.changes_tree(id));
            group.program.for_each_op(&mut |_, _, op| {
                let op = op.properties();
                changes |= op.changes_tree && op.any_fileset().is_none_or(|f| f == id);
            });
        }
        changes
    }

    /// Checks that the Plan can be run: indices are within their tables, numbers are within their ranges, and file
    /// trees are disjoint.
    ///
    /// # Errors
    /// The first violation found.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.schema_version != PLAN_SCHEMA {
            return Err(PlanError::Schema(self.schema_version));
        }
        for v in &self.variables {
            v.sampler().map_err(|reason| PlanError::Variable {
                name: v.name.clone(),
                reason,
            })?;
        }
        self.check_filesets()?;
        self.check_groups()?;
        for phase in &self.script {
            match phase {
                Phase::System { command } if !self.options.allow_commands => {
                    return Err(PlanError::System(command.clone()));
                }
                Phase::Populate { filesets } => {
                    filesets.iter().try_for_each(|id| self.has_fileset(*id))?;
                }
                _ => {}
            }
        }
        match self.event_rate {
            Some(r) if !(r.is_finite() && r > 0.0) => {
                wrong(format!("the event rate must be above 0, is {r}"))
            }
            _ => Ok(()),
        }
    }

    fn has_fileset(&self, id: FilesetId) -> Result<(), PlanError> {
        exists("fileset", id.0, self.filesets.len())
    }

    fn has_row(&self, id: OperationId) -> Result<(), PlanError> {
        exists("operation", id.0, self.operations.len())
    }

    fn has_rows(&self, ids: &[OperationId]) -> Result<(), PlanError> {
        ids.iter().try_for_each(|id| self.has_row(*id))
    }

    /// Checks that the random variables of values exist.
    fn check_values(&self, values: impl IntoIterator<Item = Value>) -> Result<(), PlanError> {
        values.into_iter().try_for_each(|value| match value {
            Value::Draw(id) => exists("variable", id.0, self.variables.len()),
            Value::Const(_) => Ok(()),
        })
    }

    fn check_filesets(&self) -> Result<(), PlanError> {
        let mut roots: Vec<(RelPath, &str)> = Vec::new();
        for f in &self.filesets {
            self.check_values(f.depth.into_iter().chain([f.size]))?;
            let root = f.root().map_err(|e| PlanError::Range(e.to_string()))?;
            let (name, percent, width) = (&f.name, f.prealloc_percent, f.width.mean);
            if percent > 100 {
                return wrong(format!(
                    "fileset `{name}`: prealloc must be 0 to 100 percent, is {percent}"
                ));
            }
            if width.is_nan() || width < 2.0 {
                return wrong(format!(
                    "fileset `{name}`: dirwidth must be at least 2, is {width}"
                ));
            }
            for [min, max] in f.letters.iter().flat_map(|l| [l.before, l.after]) {
                if min > max || max > MAX_NAME_LETTERS {
                    return wrong(format!(
                        "fileset `{name}`: names have 0 to {MAX_NAME_LETTERS} letters before and \
                         after their number, not {min} to {max}"
                    ));
                }
            }
            for (other, name) in &roots {
                let inside = |a: &str, b: &str| a == b || a.starts_with(&format!("{b}/"));
                if inside(root.as_str(), other.as_str()) || inside(other.as_str(), root.as_str()) {
                    return Err(PlanError::Overlap((*name).into(), f.name.clone()));
                }
            }
            roots.push((root, &f.name));
        }
        Ok(())
    }

    fn check_groups(&self) -> Result<(), PlanError> {
        let mut outcome = self.check_mixes();
        for g in &self.groups {
            g.program.for_each_op(&mut |row, iters, op| {
                if outcome.is_ok() {
                    outcome = self.check_op(row, iters, op);
                }
            });
            if let Some(pattern) = g.program.pattern() {
                self.check_pattern(g, pattern)?;
            }
        }
        outcome
    }

    fn check_mixes(&self) -> Result<(), PlanError> {
        fn of(g: &WorkerGroup) -> Option<(&str, u64, &Mix)> {
            Some((&g.process, g.workers(), g.program.mix()?))
        }
        let mixes = || self.groups.iter().filter_map(of);
        for (name, workers, mix) in mixes() {
            mix.check(self, workers)
                .map_err(|e| PlanError::Range(format!("`{name}`: {e}")))?;
        }
        // Other workers must not create or remove files of a mix.
        let sequences = self.groups.iter().any(|g| g.program.mix().is_none());
        if mixes().next().is_some() && sequences {
            return wrong("operation mixes and sequences of steps cannot be in one Plan");
        }
        let starts = self.script.iter().filter(|p| **p == Phase::Start).count();
        if mixes().next().is_some() && starts > 1 {
            return wrong("the workers of an operation mix can be started only once");
        }
        let mut used: Vec<(FilesetId, &str)> = Vec::new();
        for (name, _, mix) in mixes() {
            for id in mix.filesets() {
                if let Some((_, other)) = used.iter().find(|(u, _)| *u == id) {
                    let set = &self.fileset(id).name;
                    return wrong(format!(
                        "fileset `{set}` has two uses, in `{other}` and in `{name}`: each needs \
                         one of its own"
                    ));
                }
                used.push((id, name));
            }
        }
        match &self.metric {
            Some(m) if m.load == 0 => wrong("a load must be at least 1"),
            Some(m) if !(m.scale > 0.0 && m.scale <= 1.0) => wrong(format!(
                "a scale must be above 0 and at most 1, is {}",
                m.scale
            )),
            _ => Ok(()),
        }
    }

    fn check_pattern(&self, group: &WorkerGroup, pattern: &Pattern) -> Result<(), PlanError> {
        if self.groups.len() > 1 || !self.filesets.is_empty() {
            return wrong("a pattern is a workload of its own: no other group, no fileset");
        }
        if pattern.ranks == 0 || group.workers() != u64::from(pattern.ranks) {
            return wrong(format!(
                "a pattern of {} ranks needs as many workers, at least 1; there are {}",
                pattern.ranks,
                group.workers()
            ));
        }
        let mut rows = Vec::new();
        pattern.for_each_row(&mut |row| rows.push(row));
        self.has_rows(&rows)?;
        let positions = pattern.positions.len();
        if positions > 0 && positions != pattern.ranks as usize {
            return wrong(format!(
                "a pattern of {} ranks has {positions} positions",
                pattern.ranks
            ));
        }
        if self.options.verify {
            return wrong("a pattern verifies its objects itself, not by the run's option");
        }
        for stage in &pattern.stages {
            let factor = stage.waiting_factor;
            if !(factor.is_finite() && factor >= 0.0) {
                return wrong(format!("the waiting factor must be 0 or more, is {factor}"));
            }
            let StageWork::Transfers(t) = &stage.work else {
                continue;
            };
            if t.size == 0 {
                return wrong("a transfer must have at least 1 byte");
            }
            if pattern.verify {
                return wrong("only whole objects can be verified, not transfers");
            }
        }
        self.script.iter().try_for_each(|phase| match phase {
            Phase::StartStage { stage } => exists("stage", *stage, pattern.stages.len()),
            _ => Ok(()),
        })
    }

    fn check_op(&self, row: OperationId, iters: Value, op: &Op) -> Result<(), PlanError> {
        self.has_row(row)?;
        self.check_values([iters])?;
        let properties = op.properties();
        if let Some(file) = properties.file {
            file.fileset.map_or(Ok(()), |f| self.has_fileset(f))?;
            file.implicit_open.map_or(Ok(()), |row| self.has_row(row))?;
            self.check_values(file.index)?;
            check_slot(file.slot)?;
        }
        let fileset = properties.fileset;
        fileset.map_or(Ok(()), |f| self.has_fileset(f))?;
        properties.slot.map_or(Ok(()), check_slot)?;
        self.check_values(properties.values.into_iter().flatten())?;
        self.has_rows(properties.rows)?;
        match op {
            Op::Delay { nanoseconds, .. } if *nanoseconds >= 1_000_000_000 => wrong(format!(
                "the nanoseconds of a delay must be below 1 000 000 000, are {nanoseconds}"
            )),
            _ => Ok(()),
        }
    }
}

fn wrong<T>(text: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError::Range(text.into()))
}

fn exists(what: &'static str, index: u32, count: usize) -> Result<(), PlanError> {
    match (index as usize) < count {
        true => Ok(()),
        false => Err(PlanError::Dangling { what, index }),
    }
}

fn check_slot(slot: u8) -> Result<(), PlanError> {
    match slot {
        0..=127 => Ok(()),
        slot => wrong(format!("fd must be 0 to 127, is {slot}")),
    }
}

impl Plan {
    /// A Plan named `name` without workers, filesets or phases.
    #[must_use]
    pub fn empty(name: &str) -> Self {
        Self {
            schema_version: PLAN_SCHEMA,
            name: name.into(),
            title: String::new(),
            source: Source {
                kind: SourceKind::Builtin,
                name: name.into(),
                text: String::new(),
            },
            seed: 1,
            work_dir: WorkDirSpec {
                dir: PathBuf::new(),
                guards: vec![RelPath::default()],
                temporary: false,
            },
            parameters: vec![],
            variables: vec![],
            filesets: vec![],
            operations: vec![],
            groups: vec![],
            event_rate: None,
            quit: QuitMode::default(),
            script: vec![],
            cpu_accounting: true,
            metric: None,
            options: RunOptions::default(),
            notes: vec![],
        }
    }
}
