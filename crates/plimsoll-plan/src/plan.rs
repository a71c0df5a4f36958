//! The Plan, and its checks.

use crate::condition::Promise;
use crate::content::Content;
use crate::fileset::{Fileset, MAX_NAME_LETTERS};
use crate::ids::{FilesetId, OperationId, VariableId};
use crate::job::Job;
use crate::mix::{BusinessMetric, Mix};
use crate::operation::{Op, OpKind, OpProperties, Operation};
use crate::options::RunOptions;
use crate::pattern::{ObjectLoop, ObjectOp, ObjectOrder, Pattern, Rounds, StageWork};
use crate::program::{Program, WorkerGroup};
use crate::script::{Phase, QuitMode};
use crate::seed::Stream;
use crate::source::SourcePosition;
use crate::variable::{Number, Value, Variable};
use crate::{PLAN_SCHEMA, RelPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Plan: everything that determines a run, resolved from a workload and the command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Version of the Plan's JSON form; a Plan of another version is refused.
    pub schema_version: u32,
    /// Name of the workload, such as `fileserver`.
    pub name: String,
    /// Title of the workload for people, in one line; may be empty.
    pub title: String,
    /// Origin of the workload, a file or the program itself, and the text of the workload.
    pub source: Source,
    /// Seed of the run, from which all random choices follow.
    pub seed: u64,
    /// Work directory, in which the run creates its files.
    pub work_dir: WorkDirSpec,
    /// Parameters of the workload, with their values in the Plan.
    pub parameters: Vec<Parameter>,
    /// Random variables of the workload, to which draws refer by index.
    pub variables: Vec<Variable>,
    /// Filesets of the workload, to which operations refer by index.
    pub filesets: Vec<Fileset>,
    /// Rows of the results, to which the programs refer by index.
    pub operations: Vec<Operation>,
    /// Groups of workers, each with the program that its workers run.
    pub groups: Vec<WorkerGroup>,
    /// Event rate: the number of events per second that the workload's limiters share; null if limiters do not wait.
    pub event_rate: Option<f64>,
    /// Quit mode: what ends the run, the time, the first worker to finish, or all workers.
    pub quit: QuitMode,
    /// Script: the phases of the run, in the order of execution.
    pub script: Vec<Phase>,
    /// Whether CPU time per operation is measured.
    pub cpu_accounting: bool,
    /// Business metric with the criteria of a valid load point; null for a workload without a business metric.
    pub metric: Option<BusinessMetric>,
    /// Promises: conditions that a valid run meets, from the workload and from `--until`; empty without promises.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<Promise>,
    /// Options of the run that do not depend on the kind of workload.
    pub options: RunOptions,
    /// Notes on parts of the workload that have no effect, or another effect than in Filebench.
    pub notes: Vec<Note>,
}

/// Origin of a workload, and the text that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Whether the workload is built into the program or was read from a file.
    pub kind: SourceKind,
    /// Name of the built-in workload, or path of the workload file.
    pub name: String,
    /// Text of the workload file or of the built-in workload, without the changes of the command line.
    pub text: String,
}

/// Place from which the text of a workload comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// The workload is built into the program.
    Builtin,
    /// The workload was read from the user's file.
    File,
}

/// Name of the file that marks a guarded directory as Plimsoll's own. The names of all files that Plimsoll adds to the
/// files of a workload begin with this name.
pub const MARKER: &str = ".plimsoll";

/// Work directory of a run, and its protection of foreign files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkDirSpec {
    /// Path of the work directory, to which every path of the Plan is relative.
    #[serde(with = "crate::path_text")]
    #[schemars(with = "String")]
    pub dir: PathBuf,
    /// Directories below the work directory that must be empty, missing, or marked as Plimsoll's own before the run, so
    /// that foreign files are never overwritten.
    pub guards: Vec<RelPath>,
    /// Whether the work directory is created for the run, and removed with all contents unless `keep` is set.
    pub temporary: bool,
}

/// A parameter of a workload, a variable that `--set` can change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parameter {
    /// Name of the parameter in the workload, without the dollar sign.
    pub name: String,
    /// Value of the parameter in the Plan, as text.
    pub value: String,
    /// Default value of the parameter, from the workload's text.
    pub default: String,
    /// Meaning of the parameter, from the comment beside the parameter's definition; may be empty.
    pub meaning: String,
}

/// Note for the user on a workload or a run, such as on an attribute that has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// Text of the note for the user, one sentence.
    pub text: String,
    /// Source location to which the note refers; null without a source location.
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
    /// The schema version of the Plan, which the variant contains, is not [`PLAN_SCHEMA`].
    #[error("the Plan has schema {0}; this program reads {PLAN_SCHEMA}")]
    Schema(u32),
    /// An index refers to an item beyond the end of a list of the Plan.
    #[error("the Plan refers to {what} {index}, which does not exist")]
    Dangling {
        /// Name of an item of the list to which the index refers, such as `fileset`.
        what: &'static str,
        /// Index in the list, which is not below the length of the list.
        index: u32,
    },
    /// The parameters of a random variable define no distribution.
    #[error("variable `{name}`: {reason}")]
    Variable {
        /// Name of the random variable, without the dollar sign.
        name: String,
        /// Violated rule of the variable's parameters, as a sentence.
        reason: String,
    },
    /// A number of the Plan is outside its range, or parts of the Plan contradict each other: the violation as a
    /// sentence.
    #[error("{0}")]
    Range(String),
    /// The trees of two filesets overlap: names of the filesets.
    #[error("filesets `{0}` and `{1}` lie in the same directory tree")]
    Overlap(String, String),
    /// The script runs a shell command, and the user has not allowed commands: the text of the command.
    #[error("the workload runs a shell command (`{0}`); allow it with --allow-commands")]
    System(String),
}

/// Name of the row of reads that a target's model of a client cache served; the server did not send their bytes.
pub const CACHED_DATA: &str = "data cache hits";

/// Name of the row of completion delays: times from the completion of an operation of a ring until its worker sees it.
pub const COMPLETION_DELAY: &str = "completion delay";

impl Plan {
    /// Adds a row to the results, and returns the index of the row in `operations`.
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

    /// Adds a row to the results for each procedure that a target calls on a server, and a row of local closes for each
    /// row of closes.
    pub fn add_procedures(&mut self, names: &[&str]) {
        if names.is_empty() {
            return;
        }
        let closes = self.operations.iter().filter(|o| o.kind == OpKind::Close);
        let kind = OpKind::LocalClose;
        let local: Vec<_> = closes.map(|o| Operation { kind, ..o.clone() }).collect();
        self.operations.extend(local);
        for name in names {
            self.add_row(*name, OpKind::Rpc, None);
        }
    }

    /// For each row of the results, the row of local closes; `None` for rows other than closes, and if the target has no
    /// server.
    #[must_use]
    pub fn local_closes(&self) -> Vec<Option<OperationId>> {
        let rows = (0..).map(OperationId).zip(&self.operations);
        let mut local = rows.filter(|(_, o)| o.kind == OpKind::LocalClose);
        let close = |o: &Operation| match o.kind {
            OpKind::Close => local.next().map(|(row, _)| row),
            _ => None,
        };
        self.operations.iter().map(close).collect()
    }

    /// Adds the row `COMPLETION_DELAY`, for a target that reports completions in a queue.
    pub fn add_completion_delay(&mut self) {
        self.add_row(COMPLETION_DELAY, OpKind::CompletionDelay, None);
    }

    /// Stream of random choices with the name `name`, derived from the Plan's seed.
    #[must_use]
    pub fn stream(&self, name: &str) -> Stream {
        Stream::new(self.seed).named(name)
    }

    /// Number of processes of all groups together.
    #[must_use]
    pub fn processes(&self) -> u64 {
        self.groups
            .iter()
            .map(|g| u64::from(g.process_instances))
            .sum()
    }

    /// Number of workers of all groups together.
    #[must_use]
    pub fn workers(&self) -> u64 {
        self.groups.iter().map(WorkerGroup::workers).sum()
    }

    /// Whether the workers of any group follow a schedule, so that operations have intended starts.
    #[must_use]
    pub fn has_schedule(&self) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|group| group.follows_schedule(self.event_rate))
    }

    /// Number of the process of worker `worker` of group `group`, from 0. Groups with the same process name are threads
    /// of the same processes.
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

    /// Row of the results with the index `id`, which must be below the length of `operations`.
    #[must_use]
    pub fn operation(&self, id: OperationId) -> &Operation {
        &self.operations[id.0 as usize]
    }

    /// Fileset with the index `id`, which must be below the length of `filesets`.
    #[must_use]
    pub fn fileset(&self, id: FilesetId) -> &Fileset {
        &self.filesets[id.0 as usize]
    }

    /// Kind of the bytes of a fileset's files.
    #[must_use]
    pub fn content_of(&self, fileset: &Fileset) -> Content {
        fileset.content.unwrap_or(self.options.content)
    }

    /// Kind of the bytes that the workers of a group write.
    #[must_use]
    pub fn content_of_group(&self, group: &WorkerGroup) -> Content {
        match &group.program {
            Program::Mix(mix) => self.content_of(self.fileset(mix.files.data)),
            _ => self.options.content,
        }
    }

    /// Different kinds of bytes that the workload writes, at least one.
    #[must_use]
    pub fn contents(&self) -> Vec<Content> {
        let mut all = Vec::new();
        for fileset in &self.filesets {
            let content = self.content_of(fileset);
            if !all.contains(&content) {
                all.push(content);
            }
        }
        if all.is_empty() {
            all.push(self.options.content);
        }
        all
    }

    /// Root of a fileset's tree, relative to the work directory.
    ///
    /// # Panics
    /// If the fileset's name leaves the work directory, which [`Plan::check`] refuses.
    #[must_use]
    pub fn root_of(&self, id: FilesetId) -> RelPath {
        let root = self.fileset(id).root();
        root.expect("a checked Plan has filesets inside the work directory")
    }

    /// Random variable with the index `id`, which must be below the length of `variables`.
    #[must_use]
    pub fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.0 as usize]
    }

    /// Prepares a number of the Plan for drawing.
    ///
    /// # Errors
    /// If the parameters of a random variable are invalid: the violated rule as a sentence.
    pub fn number(&self, value: Value) -> Result<Number, String> {
        match value {
            Value::Const(n) => Ok(Number::Same(n)),
            Value::Draw(id) => self.variable(id).sampler().map(Number::Drawn),
        }
    }

    /// Pattern that the workers of the Plan run; `None` for sequences and operation mixes.
    #[must_use]
    pub fn pattern(&self) -> Option<&Pattern> {
        self.groups.iter().find_map(|g| g.program.pattern())
    }

    /// Whether any transfer of the workload bypasses the page cache.
    #[must_use]
    pub fn uses_direct_io(&self) -> bool {
        self.groups.iter().any(|g| g.program.uses_direct_io())
    }

    /// Whether the results have a row for completion delays, which a target with io_uring records.
    #[must_use]
    pub fn has_completion_delay(&self) -> bool {
        let is_delay = |o: &Operation| o.kind == OpKind::CompletionDelay;
        self.operations.iter().any(is_delay)
    }

    /// Whether a job submits its transfers through io_uring if the target's URL has no option `io`.
    #[must_use]
    pub fn queues_transfers(&self) -> bool {
        let mut jobs = self.jobs().filter_map(Job::transfers);
        jobs.any(|transfers| transfers.access.queued)
    }

    /// Whether any worker may create, remove, rename or resize files of the fileset `id`.
    #[must_use]
    pub fn changes_tree(&self, id: FilesetId) -> bool {
        self.any_op_on(id, |op| op.changes_tree)
            || self.mixes().any(|mix| mix.changes_tree(id))
            || self
                .jobs()
                .any(|job| job.fileset == id && job.changes_tree())
    }

    /// Whether any worker may set the lengths of existing files of the fileset.
    #[must_use]
    pub fn sets_lengths(&self, id: FilesetId) -> bool {
        self.mixes().any(|mix| mix.sets_lengths(id))
    }

    /// Whether any step of a sequence that may work on the fileset satisfies `fits`.
    #[must_use]
    pub fn any_op_on(&self, id: FilesetId, fits: fn(&OpProperties<'_>) -> bool) -> bool {
        // The slot of an operation without a fileset may hold a file of any fileset.
        let may_be_on = |op: &OpProperties<'_>| op.any_fileset().is_none_or(|f| f == id);
        let fits = |op: &Op| fits(&op.properties()) && may_be_on(&op.properties());
        self.groups.iter().any(|g| g.program.any_op(fits))
    }

    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.groups.iter().filter_map(|g| g.program.job())
    }

    fn mixes(&self) -> impl Iterator<Item = &Mix> {
        self.groups.iter().filter_map(|g| g.program.mix())
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
        for promise in &self.promises {
            self.check_condition(&promise.condition)
                .map_err(PlanError::Range)?;
        }
        for phase in &self.script {
            match phase {
                Phase::System { command } if !self.options.allow_commands => {
                    return Err(PlanError::System(command.clone()));
                }
                Phase::Populate { filesets } => {
                    filesets.iter().try_for_each(|id| self.check_fileset(*id))?;
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

    fn check_fileset(&self, id: FilesetId) -> Result<(), PlanError> {
        exists("fileset", id.0, self.filesets.len())
    }

    fn check_row(&self, id: OperationId) -> Result<(), PlanError> {
        exists("operation", id.0, self.operations.len())
    }

    fn check_rows(&self, ids: &[OperationId]) -> Result<(), PlanError> {
        ids.iter().try_for_each(|id| self.check_row(*id))
    }

    /// Checks that the random variables from which values are drawn exist.
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
        self.check_mixes()?;
        for g in &self.groups {
            for (row, iters, op) in g.program.ops() {
                self.check_op(row, iters, op)?;
            }
            if let Some(pattern) = g.program.pattern() {
                self.check_pattern(g, pattern)?;
            }
            if let Some(job) = g.program.job() {
                self.check_job(g, job)?;
            }
        }
        Ok(())
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
        let others = self.groups.iter().any(|g| g.program.mix().is_none());
        if mixes().next().is_some() && others {
            return wrong("operation mixes and other programs cannot be in one Plan");
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

    fn check_job(&self, group: &WorkerGroup, job: &Job) -> Result<(), PlanError> {
        self.check_fileset(job.fileset)?;
        let mut rows = Vec::new();
        job.for_each_row(&mut |row| rows.push(row));
        self.check_rows(&rows)?;
        if let Some(transfers) = job.transfers() {
            self.check_values(transfers.directions().map(|d| d.size))?;
        }
        let fileset = self.fileset(job.fileset);
        let entries = if job.is_on_dirs() {
            fileset.leaf_dirs
        } else {
            fileset.entries
        };
        job.check(group.process_instances, entries)
            .map_err(|e| PlanError::Range(format!("job `{}`: {e}", group.process)))
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
        self.check_rows(&rows)?;
        let positions = pattern.positions.len();
        if positions > 0 && positions != pattern.ranks as usize {
            return wrong(format!(
                "a pattern of {} ranks has {positions} positions",
                pattern.ranks
            ));
        }
        if let Some(tree) = pattern.tree {
            let numbers = u128::from(pattern.sets) * u128::from(pattern.objects);
            if tree.branch == 0 || tree.first_set >= pattern.sets || numbers > 1 << 62 {
                return wrong(format!(
                    "a tree of {} data sets needs at least 1 branch, a data set with objects, and at most 2^62 objects; \
                     the tree is {tree:?}",
                    pattern.sets
                ));
            }
        }
        if pattern.read_size > Some(pattern.object_size) {
            return wrong("a read of an object cannot exceed the object's size");
        }
        if self.options.verify {
            return wrong("a pattern verifies its objects itself, not by the run's option");
        }
        for stage in &pattern.stages {
            let factor = stage.waiting_factor;
            if !(factor.is_finite() && factor >= 0.0) {
                return wrong(format!("the waiting factor must be 0 or more, is {factor}"));
            }
            let t = match &stage.work {
                StageWork::Transfers(t) => t,
                StageWork::Search(_) if stage.stonewall.is_some() => {
                    return wrong("a search has no stonewall: the ranks search the whole tree");
                }
                StageWork::Objects(l) => {
                    check_objects(l, pattern, stage.stonewall.is_some())?;
                    continue;
                }
                StageWork::Search(_) => continue,
            };
            if t.size == 0 {
                return wrong("a transfer must have at least 1 byte");
            }
            let segment = u128::from(t.block) * u128::from(pattern.ranks) * u128::from(t.size);
            if t.block == 0 || segment > 1 << 62 {
                return wrong(format!(
                    "a block must have at least 1 transfer, and the blocks of all ranks at most 2^62 bytes; \
                     the block has {} transfers",
                    t.block
                ));
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
        self.check_row(row)?;
        self.check_values([iters])?;
        let properties = op.properties();
        if let Some(file) = properties.file {
            file.implicit_open
                .map_or(Ok(()), |row| self.check_row(row))?;
            self.check_values(file.index)?;
            check_slot(file.slot)?;
        }
        let fileset = properties.any_fileset();
        fileset.map_or(Ok(()), |f| self.check_fileset(f))?;
        properties.slot.map_or(Ok(()), check_slot)?;
        self.check_values(properties.values.into_iter().flatten())?;
        self.check_rows(properties.rows)?;
        match op {
            Op::Delay { nanoseconds, .. } if *nanoseconds >= 1_000_000_000 => wrong(format!(
                "the nanoseconds of a delay must be below 1 000 000 000, are {nanoseconds}"
            )),
            _ => Ok(()),
        }
    }
}

fn check_objects(work: &ObjectLoop, pattern: &Pattern, stonewall: bool) -> Result<(), PlanError> {
    let on_directories = work.steps.iter().filter(|s| s.op.is_on_directory()).count();
    if on_directories > 0 {
        if on_directories < work.steps.len() || pattern.directory_name.is_empty() {
            return wrong("a stage works on files, or on directories whose names have a template");
        }
        if !matches!(work.rounds, Rounds::Count(_)) {
            return wrong("a stage on directories has a fixed number of rounds");
        }
    }
    let renames = work.steps.iter().any(|s| s.op == ObjectOp::RenameDir);
    let all = Rounds::Count(pattern.objects);
    if renames && (work.order, work.rounds, work.steps.len()) != (ObjectOrder::Sets, all, 1) {
        return wrong("a rename is the only step, and works on all directories, set by set");
    }
    if stonewall && work.order != ObjectOrder::Rounds {
        return wrong("a stonewall ends rounds over all data sets, in order");
    }
    let by_tree = matches!(
        work.order,
        ObjectOrder::DepthFirst | ObjectOrder::Shuffled { .. }
    );
    if by_tree && work.remove_sets.is_some() {
        return wrong("a data set is removed after its rounds only round by round or set by set");
    }
    if work.order == ObjectOrder::DepthFirst && pattern.tree.is_none() {
        return wrong("only data sets in a tree have an order by depth");
    }
    Ok(())
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
            promises: vec![],
            options: RunOptions::default(),
            notes: vec![],
        }
    }
}
