//! From the syntax tree to a Plan: statements are carried out in order, as Filebench would.
//!
//! Variables are looked up when something is made of them, not when it is defined: a fileset
//! takes its numbers when it is created, a thread when it is started. `load x`, `set $n=5`,
//! `run` therefore works as it always has.

mod filesets;
mod flowops;
mod operands;
mod paths;
mod processes;
mod random;
mod script;
mod statements;
mod targets;
mod values;

use crate::Workload;
use crate::ast::{Composite, FilesetDef, Process, Random};
use crate::diagnostics::{Diagnostics, MAX_ERRORS, Problem, Source, Span};
use crate::parser::Reported;
use plimsoll_plan::{
    Note, Operation, OperationId, Overrides, Parameter, Plan, PlanError, QuitMode, SourceKind,
    SourcePosition, Stream, Variable, VariableId, WorkerGroup,
};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use values::LoweredValue;

/// Filesets and steps that are worked out for one workload; every run works them out again to
/// see that they are the same.
const MAX_LOWERING_WORK: usize = 1_000_000;

type LowerResult<T> = Result<T, Reported>;

/// Statements that one workload may carry out, loops counted through.
const MAX_STATEMENTS: usize = 20_000;

/// What lowering needs to know besides the workload and the command line's changes.
pub struct Context<'a> {
    /// Whether the workload is built in or a file: built-ins get a fresh directory.
    pub kind: SourceKind,
    /// Fresh directory for the files of a built-in workload run without a directory.
    pub temp_dir: PathBuf,
    /// Directory that relative paths of a workload file start from.
    pub current_dir: PathBuf,
    /// Finds the text of the workload that a `load` statement names.
    pub load: &'a dyn Fn(&str) -> Option<Loaded>,
    /// What `$(date)` stands for.
    pub date: String,
    /// What `$(hostname)` stands for.
    pub hostname: String,
}

/// A workload found for a `load` statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// Name for messages: a path, or the name of a built-in.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Makes the Plan of a workload under the changes of a command line.
///
/// The Plan that comes back has passed [`Plan::check`].
///
/// # Errors
/// Every error found, at most ten, each with its place in the workload or in the setting
/// (`--set`) at fault.
pub fn lower(
    workload: &Workload,
    overrides: &Overrides,
    context: &Context<'_>,
) -> Result<Plan, Diagnostics> {
    let mut lowerer = Lowerer::new(workload, overrides, context);
    let plan = lowerer.run(workload);
    match plan {
        Ok(plan) if lowerer.problems.is_empty() => Ok(plan),
        _ => Err(lowerer.into_diagnostics(workload)),
    }
}

/// A fileset's definition, and what was made of it.
struct FilesetSlot {
    def: Rc<FilesetDef>,
    span: Span,
    made: Option<filesets::PendingFileset>,
}

/// A random variable's definition.
struct RandomDef {
    name: String,
    ast: Rc<Random>,
    /// Its place in the Plan once something draws from it.
    id: Option<VariableId>,
    /// Found wrong, and reported.
    bad: bool,
}

/// What all workers depend on, as it was when they were first started.
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
    /// Numbers the draws that are taken once.
    once: u64,
    vars: HashMap<String, LoweredValue>,
    /// Values of the command line's settings, once they are read; none for one found wrong.
    override_values: HashMap<String, Option<LoweredValue>>,
    /// Settings of the command line being read, outermost first.
    reading: Vec<String>,
    /// Variables that have been reported as never set.
    missing: HashSet<String>,
    /// Variables whose values have been reported as wrong, and how.
    blamed: HashSet<(String, String)>,
    parameters: Vec<Parameter>,
    /// Parameters by name.
    parameter_index: HashMap<String, usize>,
    randoms: Vec<RandomDef>,
    /// Random variables by the text that defines them.
    random_spans: HashMap<Span, usize>,
    variables: Vec<Variable>,
    filesets: Vec<FilesetSlot>,
    processes: Vec<Rc<Process>>,
    composites: HashMap<String, Rc<Composite>>,
    /// Names given in the workload, so that made-up names differ from them.
    given_names: HashSet<String>,
    /// Names made up for flowops without one, by the place of the flowop.
    made_up: HashMap<Span, String>,
    /// The last number in a made-up name, by flowop.
    made_up_numbers: HashMap<String, u32>,
    /// Flowops that were found wrong, by their places.
    failed: HashSet<Span>,
    operations: Vec<Operation>,
    /// Rows by name.
    rows: HashMap<String, Vec<OperationId>>,
    /// Rows that a flowop stands for, unlike those of opens and completions on the way.
    counted: HashSet<OperationId>,
    rate: Option<Rc<crate::ast::Attrs>>,
    quit: QuitMode,
    cpu_accounting: bool,
    started: Option<StartState>,
    script: script::Script,
    /// Texts being loaded, innermost last.
    loading: Vec<String>,
    statements_left: usize,
    /// Filesets and steps that may still be worked out, over all runs of the script.
    work_left: usize,
    /// A limit on statements or steps was passed: going on would report it again and again.
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
        let (place, filesets) = self.work_place()?;
        let name = workload.name();
        let stem = std::path::Path::new(name).file_stem();
        let short = stem.map_or(name.into(), |s| s.to_string_lossy());
        let mut plan = Plan::empty(match self.context.kind {
            SourceKind::Builtin => name,
            SourceKind::File => &short,
        });
        plan.title = crate::title(workload);
        plan.source.kind = self.context.kind;
        plan.source.name = name.into();
        plan.source.text = workload.text().into();
        plan.seed = self.seed;
        plan.work_dir = place;
        plan.parameters = self.final_parameters();
        plan.variables = std::mem::take(&mut self.variables);
        plan.filesets = filesets;
        plan.operations = std::mem::take(&mut self.operations);
        if let Some(started) = self.started.take() {
            plan.groups = started.groups;
            plan.event_rate = started.event_rate;
            plan.quit = started.quit;
        }
        plan.script = std::mem::take(&mut self.script).into_phases(self.overrides);
        plan.cpu_accounting = self.cpu_accounting;
        plan.options = self.overrides.options.clone();
        plan.notes = std::mem::take(&mut self.notes);
        Ok(plan)
    }

    /// What the Plan's own check finds has no finer place than what it names.
    fn plan_problem(&mut self, error: &PlanError, workload: &Workload) -> Reported {
        let named = |name: &str| {
            let slots = self.filesets.iter();
            slots
                .filter(|s| s.made.as_ref().is_some_and(|m| m.fileset.name == name))
                .map(|s| s.span)
                .next()
        };
        let span = match error {
            PlanError::Overlap(_, second) => named(second),
            _ => None,
        };
        let first = workload.statements.first().map(|s| s.span);
        let span = span.or(first).unwrap_or_default();
        self.problem(Problem::new(span, error.to_string(), "here"))
    }

    fn into_diagnostics(mut self, workload: &Workload) -> Diagnostics {
        if self.problems.is_empty() {
            // Every `Reported` comes with a problem; should one ever come without, say so
            // instead of an empty list.
            let span = workload
                .statements
                .first()
                .map(|s| s.span)
                .unwrap_or_default();
            self.problem(Problem::new(span, "the workload cannot be lowered", ""));
        }
        Diagnostics::new(self.sources, self.problems)
    }

    fn problem(&mut self, problem: Problem) -> Reported {
        if self.problems.len() < MAX_ERRORS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
        Reported
    }

    /// Counts one more thing to work out.
    fn spend(&mut self, span: Span) -> LowerResult<()> {
        if self.work_left > 0 {
            self.work_left -= 1;
            return Ok(());
        }
        self.too_many = true;
        let message = "the workload has too many runs, filesets and steps";
        Err(self.problem(Problem::new(span, message, "too many with this one")))
    }

    /// Adds a remark, once for each text.
    fn note(&mut self, span: Span, text: impl Into<String>) {
        let text = text.into();
        if self.noted.insert(text.clone()) {
            let place = Some(self.place(span));
            self.notes.push(Note {
                text,
                location: place,
            });
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

    /// The text of a span as it was written.
    fn snippet(&self, span: Span) -> String {
        let source = &self.sources[usize::from(span.file)];
        crate::summary::written(&source.text, span)
    }

    /// The stream of the next draw that is taken once.
    fn once_stream(&mut self) -> Stream {
        self.once += 1;
        Stream::new(self.seed).named("once").branch(self.once)
    }
}
