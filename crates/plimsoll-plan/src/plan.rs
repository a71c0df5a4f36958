//! The Plan itself, and what must hold of it.

use crate::fileset::{Fileset, MAX_NAME_LETTERS};
use crate::ids::OperationId;
use crate::ids::{FilesetId, VariableId};
use crate::mix::{BusinessMetric, Mix};
use crate::options::RunOptions;
use crate::pattern::{Pattern, StageWork};
use crate::program::OpKind;
use crate::program::{Op, Operation, WorkerGroup};
use crate::script::{Phase, QuitMode};
use crate::seed::Stream;
use crate::variable::{Value, Variable};
use crate::{PLAN_SCHEMA, RelPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Everything a run will do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Version of this form, [`PLAN_SCHEMA`].
    pub schema_version: u32,
    /// Name of the workload.
    pub name: String,
    /// One line that says what the workload stands for; may be empty.
    pub title: String,
    /// Where the workload comes from, and its text.
    pub source: Source,
    /// Root of all random choices.
    pub seed: u64,
    /// Where files go.
    pub work_dir: WorkDirSpec,
    /// The workload's parameters and their values in this Plan.
    pub parameters: Vec<Parameter>,
    /// Random variables that draws refer to.
    pub variables: Vec<Variable>,
    /// Trees of files.
    pub filesets: Vec<Fileset>,
    /// Rows of the results.
    pub operations: Vec<Operation>,
    /// Workers and what they do.
    pub groups: Vec<WorkerGroup>,
    /// Events a second for the limiters; `None`: limiters do not wait.
    pub event_rate: Option<f64>,
    /// When a run ends.
    pub quit: QuitMode,
    /// What the controller does, in order.
    pub script: Vec<Phase>,
    /// Whether CPU use is measured.
    pub cpu_accounting: bool,
    /// What the load is a number of, and when it is carried; `None` for workloads that have no
    /// such unit.
    #[serde(default)]
    pub metric: Option<BusinessMetric>,
    /// How the run behaves.
    pub options: RunOptions,
    /// What was accepted but means nothing, or means something else than it did.
    pub notes: Vec<Note>,
}

/// Where a workload comes from.
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

/// Where files go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkDirSpec {
    /// Directory that every path of the Plan is relative to.
    #[serde(with = "crate::path_text")]
    #[schemars(with = "String")]
    pub dir: PathBuf,
    /// Directories below it that must be empty, missing, or marked as Plimsoll's own.
    pub guards: Vec<RelPath>,
    /// Made for this run, and removed with all its contents unless kept.
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
    /// What it means; from the comment beside its definition, may be empty.
    pub meaning: String,
}

/// A remark on what the Plan makes of the workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// One sentence.
    pub text: String,
    /// Where in the workload.
    pub location: Option<crate::SourcePosition>,
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self {
            text,
            location: None,
        }
    }
}

/// Why a Plan cannot be run. Front ends give the place; these are caught for every front end.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The form is of another version.
    #[error("the Plan has schema {0}; this program reads {PLAN_SCHEMA}")]
    Schema(u32),
    /// An index points nowhere.
    #[error("the Plan refers to {what} {index}, which does not exist")]
    Dangling {
        /// What is referred to.
        what: &'static str,
        /// Its index.
        index: u32,
    },
    /// A random variable cannot be drawn from.
    #[error("variable `{name}`: {reason}")]
    Variable {
        /// Name of the variable.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// A number is outside its range.
    #[error("{0}")]
    Range(String),
    /// Two filesets have the same root.
    #[error("filesets `{0}` and `{1}` lie in the same directory tree")]
    Overlap(String, String),
    /// A `system` statement without leave to run.
    #[error("the workload runs a shell command (`{0}`); allow it with --allow-commands")]
    System(String),
}

/// Name of the row of reads that a target's own model of a client's cache served; its bytes are those
/// that were not read from the server.
pub const CACHED_DATA: &str = "data cache hits";

impl Plan {
    /// Adds rows to the results for the procedures that a target calls on a server.
    pub fn add_procedures<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        let row = |name: &str| Operation {
            name: name.into(),
            kind: OpKind::Rpc,
            location: None,
        };
        self.operations.extend(names.into_iter().map(row));
    }

    /// The stream of random choices with this name.
    #[must_use]
    pub fn stream(&self, name: &str) -> Stream {
        Stream::new(self.seed).named(name)
    }

    /// All workers of all groups.
    #[must_use]
    pub fn workers(&self) -> u64 {
        self.groups.iter().map(WorkerGroup::workers).sum()
    }

    /// Number of the process that a worker of a group belongs to. Groups whose process has the same
    /// name are threads of the same processes.
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

    /// Row of an operation.
    #[must_use]
    pub fn operation(&self, id: OperationId) -> &Operation {
        &self.operations[id.0 as usize]
    }

    /// Fileset by its index.
    #[must_use]
    pub fn fileset(&self, id: FilesetId) -> &Fileset {
        &self.filesets[id.0 as usize]
    }

    /// Root of a fileset's tree, relative to the work directory.
    ///
    /// # Panics
    /// When the name climbs out of the work directory, which [`Plan::check`] refuses.
    #[must_use]
    pub fn root_of(&self, id: FilesetId) -> RelPath {
        let root = self.fileset(id).root();
        root.expect("a checked Plan has filesets inside the work directory")
    }

    /// Variable by its index.
    #[must_use]
    pub fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.0 as usize]
    }

    /// The pattern that the workers are ranks of, if there is one.
    #[must_use]
    pub fn pattern(&self) -> Option<&Pattern> {
        self.groups.iter().find_map(|g| g.program.pattern())
    }

    /// Whether any worker may change the tree of this fileset.
    #[must_use]
    pub fn changes_tree(&self, id: FilesetId) -> bool {
        // An operation on a slot works on whatever file is there, so one that names no fileset
        // may change any of them.
        let mut changes = false;
        for group in &self.groups {
            changes |= group.program.mix().is_some_and(|m| m.changes_tree(id));
            group.program.for_each_op(&mut |_, _, op| {
                let of = match op {
                    Op::MakeDir { fileset, .. } | Op::RemoveDir { fileset, .. } => Some(*fileset),
                    _ => op.file().and_then(|f| f.fileset),
                };
                changes |= op.changes_tree() && of.is_none_or(|f| f == id);
            });
        }
        changes
    }

    /// Checks everything that must hold of a Plan before it is run.
    ///
    /// # Errors
    /// The first thing found wrong.
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
                    for id in filesets {
                        self.exists("fileset", id.0, self.filesets.len())?;
                    }
                }
                _ => {}
            }
        }
        match self.event_rate {
            Some(r) if !(r.is_finite() && r > 0.0) => Err(PlanError::Range(format!(
                "the event rate must be above 0, is {r}"
            ))),
            _ => Ok(()),
        }
    }

    fn exists(&self, what: &'static str, index: u32, count: usize) -> Result<(), PlanError> {
        if (index as usize) < count {
            Ok(())
        } else {
            Err(PlanError::Dangling { what, index })
        }
    }

    fn check_value(&self, value: Value) -> Result<(), PlanError> {
        match value {
            Value::Draw(id) => self.exists("variable", id.0, self.variables.len()),
            Value::Const(_) => Ok(()),
        }
    }

    fn check_filesets(&self) -> Result<(), PlanError> {
        let mut roots: Vec<(RelPath, &str)> = Vec::new();
        for f in &self.filesets {
            self.check_value(f.size)?;
            f.depth.map_or(Ok(()), |d| self.check_value(d))?;
            let root = f.root().map_err(|e| PlanError::Range(e.to_string()))?;
            if f.prealloc_percent > 100 {
                return Err(PlanError::Range(format!(
                    "fileset `{}`: prealloc must be 0 to 100 percent, is {}",
                    f.name, f.prealloc_percent
                )));
            }
            if f.width.mean.is_nan() || f.width.mean < 2.0 {
                return Err(PlanError::Range(format!(
                    "fileset `{}`: dirwidth must be at least 2, is {}",
                    f.name, f.width.mean
                )));
            }
            for bounds in f.letters.iter().flat_map(|l| [l.before, l.after]) {
                if bounds[0] > bounds[1] || bounds[1] > MAX_NAME_LETTERS {
                    return Err(PlanError::Range(format!(
                        "fileset `{}`: names have 0 to {MAX_NAME_LETTERS} letters before and after \
                         their number, not {} to {}",
                        f.name, bounds[0], bounds[1]
                    )));
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
        // A mix knows which of its names are there because nobody else makes or removes them.
        let sequences = self.groups.iter().any(|g| g.program.mix().is_none());
        if mixes().next().is_some() && sequences {
            return Err(PlanError::Range(
                "operation mixes and sequences of steps cannot be in one Plan".into(),
            ));
        }
        let starts = self.script.iter().filter(|p| **p == Phase::Start).count();
        if mixes().next().is_some() && starts > 1 {
            return Err(PlanError::Range(
                "the workers of an operation mix can be started once only".into(),
            ));
        }
        let mut used: Vec<(FilesetId, &str)> = Vec::new();
        for (name, _, mix) in mixes() {
            for id in mix.filesets() {
                if let Some((_, other)) = used.iter().find(|(u, _)| *u == id) {
                    let set = &self.fileset(id).name;
                    return Err(PlanError::Range(format!(
                        "fileset `{set}` has two uses, in `{other}` and in `{name}`: each needs \
                         one of its own"
                    )));
                }
                used.push((id, name));
            }
        }
        match &self.metric {
            Some(m) if m.load == 0 => Err(PlanError::Range("a load must be at least 1".into())),
            Some(m) if !(m.scale > 0.0 && m.scale <= 1.0) => Err(PlanError::Range(format!(
                "a scale must be above 0 and at most 1, is {}",
                m.scale
            ))),
            _ => Ok(()),
        }
    }

    fn check_pattern(&self, group: &WorkerGroup, pattern: &Pattern) -> Result<(), PlanError> {
        let wrong = |text: String| Err(PlanError::Range(text));
        if self.groups.len() > 1 || !self.filesets.is_empty() {
            return wrong("a pattern is a workload of its own: no other group, no fileset".into());
        }
        if pattern.ranks == 0 || group.workers() != u64::from(pattern.ranks) {
            return wrong(format!(
                "a pattern of {} ranks needs as many workers, at least 1; there are {}",
                pattern.ranks,
                group.workers()
            ));
        }
        let mut rows = Ok(());
        pattern.for_each_row(&mut |row| {
            if rows.is_ok() {
                rows = self.exists("operation", row.0, self.operations.len());
            }
        });
        rows?;
        for stage in &pattern.stages {
            let factor = stage.waiting_factor;
            if !(factor.is_finite() && factor >= 0.0) {
                return wrong(format!("the waiting factor must be 0 or more, is {factor}"));
            }
            let StageWork::Transfers(t) = &stage.work else {
                continue;
            };
            if t.size == 0 {
                return wrong("a transfer must have at least 1 byte".into());
            }
            if pattern.verify {
                return wrong("only whole objects can be verified, not transfers".into());
            }
        }
        let stages = pattern.stages.len();
        let missing = self.script.iter().find_map(|phase| match phase {
            Phase::StartStage { stage } if *stage as usize >= stages => Some(*stage),
            _ => None,
        });
        missing.map_or(Ok(()), |index| {
            Err(PlanError::Dangling {
                what: "stage",
                index,
            })
        })
    }

    fn check_op(&self, row: OperationId, iters: Value, op: &Op) -> Result<(), PlanError> {
        self.exists("operation", row.0, self.operations.len())?;
        self.check_value(iters)?;
        let filesets = self.filesets.len();
        if let Some(file) = op.file() {
            file.fileset
                .map_or(Ok(()), |f| self.exists("fileset", f.0, filesets))?;
            file.index.map_or(Ok(()), |v| self.check_value(v))?;
            if file.slot > 127 {
                return Err(PlanError::Range(format!(
                    "fd must be 0 to 127, is {}",
                    file.slot
                )));
            }
        }
        let rows = |ids: &[OperationId]| {
            ids.iter()
                .try_for_each(|r| self.exists("operation", r.0, self.operations.len()))
        };
        match op {
            Op::Read(io) | Op::Write(io) | Op::AioWrite { io, .. } => self.check_value(io.size),
            Op::ReadWhole { size, .. } | Op::WriteWhole { size, .. } | Op::Append { size, .. } => {
                self.check_value(*size)
            }
            Op::FsyncSet { fileset }
            | Op::MakeDir { fileset, .. }
            | Op::RemoveDir { fileset, .. }
            | Op::ListDir { fileset, .. } => self.exists("fileset", fileset.0, filesets),
            Op::SemPost { targets, value, .. } => {
                self.check_value(*value)?;
                rows(targets)
            }
            Op::Wakeup { targets } => rows(targets),
            Op::Limit { targets, .. } => targets.as_deref().map_or(Ok(()), rows),
            Op::FinishOnCount { value, targets } | Op::FinishOnBytes { value, targets } => {
                self.check_value(*value)?;
                targets.as_deref().map_or(Ok(()), rows)
            }
            Op::Delay {
                seconds,
                nanoseconds,
            } => match *nanoseconds < 1_000_000_000 {
                true => self.check_value(*seconds),
                false => Err(PlanError::Range(format!(
                    "the nanoseconds of a delay must be below 1 000 000 000, are {nanoseconds}"
                ))),
            },
            Op::Hog { value } | Op::TestVariable { value } => self.check_value(*value),
            _ => Ok(()),
        }
    }
}

impl Plan {
    /// A Plan with nothing in it but a name, to build on.
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
