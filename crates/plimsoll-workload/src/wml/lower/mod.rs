//! Lowering of the syntax tree to a Plan: statements are executed in order, as in Filebench.
//!
//! Variables are looked up late: the variables of a fileset at its creation, and the variables of a thread at its
//! start. `load x`, `set $n=5`, `run` therefore works as in Filebench.

mod filesets;
mod flowops;
mod operands;
mod paths;
mod processes;
mod random;
mod script;
mod statements;
mod targets;
mod thread_state;
mod values;

use crate::NamedText;
use crate::report::{Report, Reported};
use crate::wml::Workload;
use crate::wml::ast::{FilesetDef, FlowopList, Process, Random};
use crate::wml::diagnostics::{Diagnostics, Problem, Source, Span};
use plimsoll_plan::{
    Note, Operation, OperationId, Overrides, Parameter, Plan, PlanError, QuitMode, SourceKind,
    SourcePosition, Stream, Variable, VariableId, WorkerGroup,
};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use thread_state::{PendingTarget, ThreadState};
pub(crate) use values::MAX_TEXT_BYTES;
use values::{Locals, LoweredValue};

/// Maximum number of filesets and steps that are lowered for one workload. Every `run` lowers the filesets and steps
/// again, to check that they have not changed.
const MAX_LOWERING_WORK: usize = 1_000_000;

type LowerResult<T> = Result<T, Reported>;

/// Maximum number of executed statements of one workload, including every repetition in loops.
const MAX_STATEMENTS: usize = 20_000;

/// Environment of lowering.
pub struct Context<'a> {
    /// Whether the workload is built in or a file.
    pub kind: SourceKind,
    /// New work directory of a built-in workload, used if no directory is given.
    pub temp_dir: PathBuf,
    /// Base directory of relative paths in a workload file.
    pub current_dir: PathBuf,
    /// Returns the workload that a `load` statement names; `None` if the workload does not exist.
    pub load: &'a dyn Fn(&str) -> Option<NamedText>,
    /// Value of `$(date)`, such as `2026-01-02`.
    pub date: String,
    /// Value of `$(hostname)`.
    pub hostname: String,
}

/// Lowers a workload with the changes of a command line to a Plan. The Plan has passed [`Plan::check`].
///
/// # Errors
/// All errors, at most ten, each with its source location in the workload or in a setting (`--set`).
pub fn lower(
    workload: &Workload,
    overrides: &Overrides,
    context: &Context<'_>,
) -> Result<Plan, Diagnostics> {
    let mut lowerer = Lowerer::new(workload, overrides, context);
    match lowerer.run(workload) {
        Ok(plan) => Ok(plan),
        Err(Reported) => Err(Diagnostics::new(lowerer.sources, lowerer.problems)),
    }
}

/// Definition of a fileset, and the fileset after its creation.
struct FilesetSlot {
    def: Rc<FilesetDef>,
    span: Span,
    made: Option<filesets::PendingFileset>,
}

/// Definition of a random variable.
struct RandomDef {
    name: String,
    ast: Rc<Random>,
    /// Index of the variable in the Plan; `None` before a value draws from the variable.
    id: Option<VariableId>,
    /// Whether the definition is invalid and has been reported.
    bad: bool,
}

/// State at the first start of the workers; later starts must agree.
struct StartState {
    groups: Vec<WorkerGroup>,
    event_rate: Option<f64>,
    quit: QuitMode,
}

struct Lowerer<'a> {
    context: &'a Context<'a>,
    overrides: &'a Overrides,
    sources: Vec<Arc<Source>>,
    problems: Vec<Problem>,
    notes: Vec<Note>,
    noted: HashSet<String>,
    seed: u64,
    /// Number of the last draw at lowering time.
    once: u64,
    vars: HashMap<String, LoweredValue>,
    /// Locals of the composite flowop that is being expanded.
    locals: Locals,
    /// Values of the command line's settings after their first use; `None` for an invalid setting.
    override_values: HashMap<String, Option<LoweredValue>>,
    /// Settings of the command line that are being read, outermost first.
    reading: Vec<String>,
    /// Variables that have been reported because they are never set.
    missing: HashSet<String>,
    /// Variables with invalid values that have been reported, each with its error.
    blamed: HashSet<(String, String)>,
    parameters: Vec<Parameter>,
    /// Indices of parameters by name.
    parameter_index: HashMap<String, usize>,
    randoms: Vec<RandomDef>,
    /// Indices of random variables by the span of their definition.
    random_spans: HashMap<Span, usize>,
    variables: Vec<Variable>,
    filesets: Vec<FilesetSlot>,
    processes: Vec<Rc<Process>>,
    composites: HashMap<String, Rc<FlowopList>>,
    /// Names of flowops in the workload, which generated names must not repeat.
    given_names: HashSet<String>,
    /// Generated names of flowops, by the span of the flowop.
    made_up: HashMap<Span, String>,
    /// Last number in a generated name, by kind of flowop.
    made_up_numbers: HashMap<String, u32>,
    /// Flowops that failed to lower.
    failed: HashSet<Span>,
    operations: Vec<Operation>,
    /// Rows of `operations` by flowop name; a name has one row for each kind of operation.
    rows: HashMap<String, Vec<OperationId>>,
    /// Rows of flowops, without the rows of implicit opens and of completions.
    counted: HashSet<OperationId>,
    rate: Option<Rc<crate::wml::ast::Attrs>>,
    quit: QuitMode,
    cpu_accounting: bool,
    started: Option<StartState>,
    script: script::Script,
    /// Names of the texts that are being loaded, innermost last.
    loading: Vec<String>,
    statements_left: usize,
    /// Number of filesets and steps that may still be lowered, over all runs of the script.
    work_left: usize,
    /// Number of steps that may still be lowered for the current start of the processes.
    steps_left: usize,
    /// State of the thread block that is being lowered.
    thread: ThreadState,
    /// Targets that are named but not yet resolved, in the order of the naming flowops.
    pending: Vec<PendingTarget>,
    /// Whether the workload has exceeded a limit on statements, filesets or steps, which ends lowering.
    too_many: bool,
}

impl<'a> Lowerer<'a> {
    fn new(workload: &Workload, overrides: &'a Overrides, context: &'a Context<'a>) -> Self {
        Self {
            context,
            overrides,
            sources: vec![workload.source.clone()],
            problems: Vec::new(),
            notes: Vec::new(),
            noted: HashSet::new(),
            seed: overrides.seed.unwrap_or(1),
            once: 0,
            vars: HashMap::new(),
            locals: Locals::new(),
            override_values: HashMap::new(),
            reading: Vec::new(),
            missing: HashSet::new(),
            blamed: HashSet::new(),
            parameters: Vec::new(),
            parameter_index: HashMap::new(),
            randoms: Vec::new(),
            random_spans: HashMap::new(),
            variables: Vec::new(),
            filesets: Vec::new(),
            processes: Vec::new(),
            composites: HashMap::new(),
            given_names: HashSet::new(),
            made_up: HashMap::new(),
            made_up_numbers: HashMap::new(),
            failed: HashSet::new(),
            operations: Vec::new(),
            rows: HashMap::new(),
            counted: HashSet::new(),
            rate: None,
            quit: QuitMode::default(),
            cpu_accounting: true,
            started: None,
            script: script::Script::default(),
            loading: Vec::new(),
            statements_left: MAX_STATEMENTS,
            work_left: MAX_LOWERING_WORK,
            steps_left: 0,
            thread: ThreadState::default(),
            pending: Vec::new(),
            too_many: false,
        }
    }

    fn run(&mut self, workload: &Workload) -> LowerResult<Plan> {
        self.execute(workload)?;
        self.finish_script(workload)?;
        self.check_overrides(workload);
        self.check_unused_randoms();
        if !self.problems.is_empty() {
            return Err(Reported);
        }
        let plan = self.plan(workload)?;
        plan.check().map_err(|e| self.plan_problem(&e, workload))?;
        Ok(plan)
    }

    fn plan(&mut self, workload: &Workload) -> LowerResult<Plan> {
        let (work_dir, filesets) = self.work_dir()?;
        let name = workload.name();
        let stem = std::path::Path::new(name).file_stem();
        let short = stem.map_or(name.into(), |s| s.to_string_lossy());
        let plan_name = match self.context.kind {
            SourceKind::Builtin => name,
            SourceKind::File => &short,
        };
        let started = self.started.take().expect("the script starts the workers");
        Ok(Plan {
            title: crate::wml::title(workload),
            source: plimsoll_plan::Source {
                kind: self.context.kind,
                name: name.into(),
                text: workload.text().into(),
            },
            seed: self.seed,
            work_dir,
            parameters: std::mem::take(&mut self.parameters),
            variables: std::mem::take(&mut self.variables),
            filesets,
            operations: std::mem::take(&mut self.operations),
            groups: started.groups,
            event_rate: started.event_rate,
            quit: started.quit,
            script: std::mem::take(&mut self.script).into_phases(self.overrides),
            cpu_accounting: self.cpu_accounting,
            options: self.overrides.options.clone(),
            notes: std::mem::take(&mut self.notes),
            ..Plan::empty(plan_name)
        })
    }

    /// Reports an error of [`Plan::check`] at the overlapping fileset, or else at the first statement.
    fn plan_problem(&mut self, error: &PlanError, workload: &Workload) -> Reported {
        let fileset = match error {
            PlanError::Overlap(_, second) => self.fileset_position(second),
            _ => None,
        };
        let span = match fileset {
            Some(at) => self.filesets[at].span,
            None => workload
                .statements
                .first()
                .map(|s| s.span)
                .unwrap_or_default(),
        };
        self.problem(Problem::new(span, error.to_string(), "here"))
    }

    /// Counts a lowered fileset or step against the limit.
    fn spend(&mut self, span: Span) -> LowerResult<()> {
        if self.work_left > 0 {
            self.work_left -= 1;
            return Ok(());
        }
        self.too_many = true;
        let message = "the workload has too many runs, filesets and steps";
        self.fail(span, message, "too many with this one")
    }

    /// Adds a note to the Plan, unless a note has the same text.
    fn note(&mut self, span: Span, text: impl Into<String>) {
        let text = text.into();
        if self.noted.insert(text.clone()) {
            let location = Some(self.place(span));
            self.notes.push(Note { text, location });
        }
    }

    fn place(&self, span: Span) -> SourcePosition {
        let source = &self.sources[usize::from(span.file)];
        let (line, column) = source.position(span.start as usize);
        SourcePosition {
            file: source.name.clone(),
            line,
            column,
        }
    }

    /// The text of a span, with single blanks and without comments.
    fn snippet(&self, span: Span) -> String {
        let source = &self.sources[usize::from(span.file)];
        crate::wml::summary::written(&source.text, span)
    }

    /// A new stream for a draw at lowering time.
    fn once_stream(&mut self) -> Stream {
        self.once += 1;
        Stream::new(self.seed).named("once").branch(self.once)
    }
}

impl Report for Lowerer<'_> {
    fn problem(&mut self, problem: Problem) -> Reported {
        self.problems.problem(problem)
    }
}
