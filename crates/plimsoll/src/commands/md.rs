//! `md`: metadata and small objects under many processes.

use super::run::{self, target_of};
use crate::cli::{Format, MdArgs, RankArgs};
use crate::communicator::{join_pattern, stop_on_interrupt};
use crate::console::{self, Stream};
use crate::console_host::ConsoleHost;
use crate::exit::{CommandError, Exit};
use crate::io_choice;
use crate::output_options::OutputOptions;
use plimsoll_engine::{ClockKind, Event, Observer, Outcome, PhaseInfo, Settings, Stop};
use plimsoll_measure::{OpTotals, RankStage};
use plimsoll_plan::{Failure, Plan};
use plimsoll_report::terminal;
use plimsoll_results::{Run, RunDir, RunWriter, Verdict};
use plimsoll_series::events::{EventSpec, check_phases};
use plimsoll_series::{
    Communicator, Conductor, RunConfig, RunContext, RunFacts, SeriesError, Written,
    outcome_or_refusal, refuse_among_files, refuse_results_among_files,
};
use plimsoll_workload::md::{LatencyFiles, Options, PatternOptions, Position, Report};
use std::path::Path;
use std::time::{Instant, SystemTime};

/// MD-Workbench's name for the interface without operations.
const NULL_INTERFACE: &str = "dummy";

/// Runs the pattern of `md`; the option that lists interfaces and the option `--dry-run` only print the list or the
/// Plan.
pub fn run(args: &MdArgs) -> Result<Exit, CommandError> {
    if args.md.lists_interfaces() {
        let names = plimsoll_target::registry::SCHEMES.iter().map(|s| s.name);
        let names: Vec<&str> = std::iter::once(NULL_INTERFACE).chain(names).collect();
        return super::print(&format!("Available plugins: {}\n", names.join(" ")));
    }
    if args.dry_run {
        let (plan, options, _) = checked(args, args.ranks.working()?)?;
        return super::plan::show(&plan, &settings_of(&options, &plan), args.format);
    }
    // Invalid options of `md` count as real time here: rank 0 reports them once the ranks are connected.
    let target = Options::new(&args.md).ok().map(|options| options.target);
    let (communicator, ranks) = join_ranks(&args.ranks, target.as_deref())?;
    let mut tools = None;
    let plan: Plan = communicator.run_on_root_and_broadcast(|| {
        let (plan, options, _) = checked(args, ranks)?;
        tools = Some(MdOutputs::ready(args, &options, &plan)?);
        Ok::<_, CommandError>(plan)
    })?;
    // Rank 0 has already parsed the arguments, and has reported errors in the arguments.
    let (options, events) = options(args)?;
    let settings = settings_of(&options, &plan);
    let config = RunConfig {
        plan,
        target: target_of(&settings.target),
        interval_s: settings.interval.as_secs_f64(),
        holds: false,
    };
    let output = OutputOptions {
        format: args.format,
        quiet: options.arguments.quiet,
        live: false,
        per_rank: args.ranks.per_rank,
    };
    let host = ConsoleHost::of_series(&output, stop_on_interrupt(&communicator)?, 1);
    let context = RunContext {
        per_rank: output.per_rank,
        events,
        ..RunContext::new(&communicator, &host)
    };
    match tools {
        Some(tools) => run_as_root(&context, &output, &options, &config, tools),
        None => {
            context.run_as_member(&config)?;
            Ok(Exit::Valid)
        }
    }
}

/// Options of the pattern, with the events of a simulated system in the target's URL; and the remaining events.
fn options(args: &MdArgs) -> Result<(Options, Vec<EventSpec>), CommandError> {
    let mut options = Options::new(&args.md).map_err(CommandError::usage)?;
    let events = args.events.add_to(&mut options.target)?;
    Ok((options, events))
}

/// Plan for `ranks` ranks, options and events, all checked.
fn checked(args: &MdArgs, ranks: u32) -> Result<(Plan, Options, Vec<EventSpec>), CommandError> {
    let (options, events) = options(args)?;
    args.ranks.check_target(&options.target)?;
    let plan = plan(args, &options, ranks)?;
    let target = io_choice::target_of(&options.target, &plan);
    args.ranks.check_io(&target)?;
    check_phases(&events, &plan, &target).map_err(CommandError::usage)?;
    Ok((plan, options, events))
}

/// Engine settings for a Plan.
fn settings_of(options: &Options, plan: &Plan) -> Settings {
    Settings {
        target: io_choice::target_of(&options.target, plan),
        ..Settings::default()
    }
}

/// Connects the processes of the run on a target; without a target, in real time. Also returns the number of ranks:
/// processes, or in virtual time workers of this process.
pub(super) fn join_ranks(
    args: &RankArgs,
    target: Option<&str>,
) -> Result<(Communicator, u32), CommandError> {
    join_pattern(args, target.map_or(ClockKind::Real, plimsoll_target::clock))
}

/// Checks the rank options for ranks that are workers of one process.
pub(super) fn check_virtual_ranks(args: &RankArgs, ranks: u32) -> Result<(), CommandError> {
    plimsoll_ranks::check_processes(ranks).map_err(CommandError::usage)?;
    if args.per_rank && ranks > 1 {
        return Err(CommandError::usage(
            "--per-rank: in virtual time the ranks share one process; `stages` of run.json has the \
             figures of each",
        ));
    }
    Ok(())
}

/// Plan for `ranks` ranks. Phases that run separately start at the position where the previous run ended.
fn plan(args: &MdArgs, options: &Options, ranks: u32) -> Result<Plan, CommandError> {
    if plimsoll_target::clock(&options.target) == ClockKind::Virtual {
        check_virtual_ranks(&args.ranks, ranks)?;
    }
    let position = match &options.pattern {
        PatternOptions::Workbench(w) if w.reads_position() => {
            Some(Position::read(&w.run_info_file).map_err(CommandError::usage)?)
        }
        _ => None,
    };
    let mut plan = plimsoll_workload::md::lower(options, ranks, position.as_ref())
        .map_err(CommandError::usage)?;
    io_choice::choose(&options.target, &mut plan);
    plan.add_procedures(&plimsoll_target::procedures(&options.target));
    Ok(plan)
}

/// Outputs of a pattern that rank 0 prepares before the run: files for the time of every operation, and the results
/// directory.
struct MdOutputs {
    latency: Option<LatencyFiles>,
    writer: RunWriter,
    started: SystemTime,
    /// Whether the pattern's root directory existed, empty, before the run; MD-Workbench reports such a root.
    uses_empty_root: bool,
}

impl MdOutputs {
    /// Checks before any run that all outputs can be written.
    fn ready(args: &MdArgs, options: &Options, plan: &Plan) -> Result<Self, CommandError> {
        if let PatternOptions::Workbench(w) = &options.pattern
            && w.writes_position()
        {
            Position::check(&w.run_info_file).map_err(CommandError::usage)?;
            refuse_among_files("the position", &w.run_info_file, "--run-info-file", plan)?;
        }
        let latency = LatencyFiles::new(options, plan).map_err(CommandError::usage)?;
        for path in latency.iter().flat_map(LatencyFiles::paths) {
            refuse_among_files("the time of every operation", path, "-L", plan)?;
        }
        let root = &args.root.results;
        let settings = settings_of(options, plan);
        refuse_results_among_files(root, plan, &settings.target)?;
        let started = SystemTime::now();
        let writer = RunWriter::create(root, plan, started, settings.clock(), None);
        Ok(Self {
            uses_empty_root: is_empty(plan, options),
            latency,
            writer: writer.map_err(|e| SeriesError::results_path(&e))?,
            started,
        })
    }
}

/// Whether the root directory that MD-Workbench's precreate phase would create exists already and is empty; false for a
/// target that is not on the local file system.
fn is_empty(plan: &Plan, options: &Options) -> bool {
    let makes_root = plan.pattern().is_some_and(|p| !p.stages.is_empty())
        && matches!(&options.pattern, PatternOptions::Workbench(w) if w.phases.precreate);
    let root = options.place.dir.join(options.place.root.as_str());
    let entries = std::fs::read_dir(root).map(|mut entries| entries.next().is_none());
    makes_root && plimsoll_target::is_local(&options.target) && entries.unwrap_or(false)
}

fn run_as_root(
    context: &RunContext<'_>,
    output: &OutputOptions,
    options: &Options,
    config: &RunConfig,
    tools: MdOutputs,
) -> Result<Exit, CommandError> {
    let plan = &config.plan;
    let report = Report::new(options, plan);
    let facts = RunFacts {
        number: Some(1),
        ..RunFacts::default()
    };
    let conductor = context.begin(config, &facts, tools.writer, tools.started)?;
    let mut head = report.begin(&arguments(), env!("CARGO_PKG_VERSION"), &local_time());
    if tools.uses_empty_root && !options.arguments.quiet {
        head.push_str("WARN: Will use the existing (empty) directory\n");
    }
    let watch = StageObserver {
        conductor,
        lines: Box::new(move |stage, ranks, rows| report.stage(stage, ranks, rows)),
        head,
        latency: tools.latency,
        done: vec![],
        broken: None,
        stop: context.host.stop().clone(),
    };
    let begun = Instant::now();
    let end = |_: &[Vec<RankStage>]| report.end(begun.elapsed(), &local_time());
    let (Written { run, dir, .. }, done) = watch.run(context, output, config, &end)?;
    keep_position(options, plan, &run, &done)?;
    print_report(output, &run, dir.as_ref().ok().map(RunDir::path))?;
    dir.map_err(CommandError::failed)?;
    Ok(run.validity.verdict.into())
}

/// Prints the report of the run; in quiet mode only if the run is not valid.
pub(super) fn print_report(
    output: &OutputOptions,
    run: &Run,
    dir: Option<&Path>,
) -> Result<(), CommandError> {
    match output.format {
        Format::Text if output.quiet => {
            if run.validity.verdict != Verdict::Valid {
                let report = plimsoll_report::run::document(run).at(dir);
                console::err(&terminal::render(&report, Stream::Err.layout()));
            }
            Ok(())
        }
        format => run::report(format, run, dir),
    }
}

/// Writes the position from which a later run with single phases of MD-Workbench continues, if `run` was complete.
fn keep_position(
    options: &Options,
    plan: &Plan,
    run: &Run,
    done: &[Vec<RankStage>],
) -> Result<(), CommandError> {
    let PatternOptions::Workbench(w) = &options.pattern else {
        return Ok(());
    };
    if !w.writes_position() {
        return Ok(());
    }
    let ended = matches!(run.validity.verdict, Verdict::Valid | Verdict::Invalid);
    match plimsoll_workload::md::position_after(plan, done).filter(|_| ended) {
        Some(position) => position
            .write(&w.run_info_file)
            .map_err(CommandError::failed),
        None => {
            console::err(&format!(
                "the run did not finish: {} is unchanged and does not match the existing objects; \
                 `plimsoll clean` removes them\n",
                w.run_info_file.display()
            ));
            Ok(())
        }
    }
}

/// The command line as given.
pub(super) fn arguments() -> Vec<String> {
    let words = std::env::args_os();
    words.map(|w| w.to_string_lossy().into_owned()).collect()
}

pub(super) fn local_time() -> String {
    jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The lines of a completed stage, from the number of the stage, the ranks, and the rows merged over all ranks.
pub(super) type StageLines<'a> = Box<dyn Fn(u32, &[RankStage], &[OpTotals]) -> String + 'a>;

/// Prints the lines of each completed stage of a pattern, and records the time of every operation.
pub(super) struct StageObserver<'a> {
    conductor: Conductor<'a>,
    lines: StageLines<'a>,
    /// First lines of a pattern's report, printed once the run is accepted, since a refused run prints only the reason;
    /// empty after printing.
    head: String,
    latency: Option<LatencyFiles>,
    /// Results of the ranks in each completed stage.
    done: Vec<Vec<RankStage>>,
    broken: Option<String>,
    stop: Stop,
}

/// Adds the failure of the latency recording to the outcome, if there was one.
fn with_latency_failure(mut outcome: Outcome, broken: Option<&String>) -> Outcome {
    if let Some(error) = broken {
        // An error of the latency files, and not the user, stopped the run: the verdict is failed, not interrupted.
        outcome.interrupted = false;
        let what = "keep the time of every operation";
        outcome.failure = Some(Failure::of(what, error.clone()));
    }
    outcome
}

impl<'a> StageObserver<'a> {
    /// An observer that prints `head`, and the lines of each stage, and records no times.
    pub(super) fn new(
        conductor: Conductor<'a>,
        head: String,
        lines: StageLines<'a>,
        stop: Stop,
    ) -> Self {
        Self {
            conductor,
            lines,
            head,
            latency: None,
            done: vec![],
            broken: None,
            stop,
        }
    }

    /// Runs the pattern, prints the lines that `end` makes of the completed stages, and writes the results. Also returns
    /// the results of the ranks in each completed stage.
    ///
    /// # Errors
    /// If the run is refused.
    pub(super) fn run(
        mut self,
        context: &RunContext<'_>,
        output: &OutputOptions,
        config: &RunConfig,
        end: &dyn Fn(&[Vec<RankStage>]) -> String,
    ) -> Result<(Written, Vec<Vec<RankStage>>), CommandError> {
        let ranks = context.communicator.ranks();
        let (settings, stop) = (config.settings(), context.host.stop());
        let ran = plimsoll_engine::run_ranks(&config.plan, &settings, stop, &mut self, ranks);
        let outcome = match outcome_or_refusal(ran) {
            Ok(outcome) => with_latency_failure(outcome, self.broken.as_ref()),
            Err(refused) => {
                drop(self);
                return Err(refused.into());
            }
        };
        let Self {
            mut conductor,
            done,
            ..
        } = self;
        conductor.view().print(&end(&done));
        let written = conductor.end(outcome);
        if output.format == Format::Json || output.quiet {
            run::warn_of_unremoved(&written);
        }
        Ok((written, done))
    }

    /// Prints the first lines, once.
    fn say_head(&mut self) {
        if !self.head.is_empty() {
            let head = std::mem::take(&mut self.head);
            self.conductor.view().print(&head);
        }
    }

    fn latency(&mut self, add: impl FnOnce(&mut LatencyFiles) -> Result<(), String>) {
        if let (Some(files), None) = (&mut self.latency, &self.broken)
            && let Err(e) = add(files)
        {
            self.broken = Some(e);
            self.stop.request();
        }
    }
}

impl Observer for StageObserver<'_> {
    fn before(&mut self, phase: PhaseInfo<'_>, stopped: &dyn Fn() -> bool) -> Result<(), String> {
        self.say_head();
        self.conductor.before(phase, stopped)
    }

    fn after(&mut self, phase: PhaseInfo<'_>, stopped: &dyn Fn() -> bool) {
        self.conductor.after(phase, stopped);
    }

    fn all_measured(&mut self, outcome: &dyn Fn() -> Option<Outcome>) {
        let judged =
            || outcome().map(|outcome| with_latency_failure(outcome, self.broken.as_ref()));
        self.conductor.all_measured(&judged);
    }

    fn measured(&mut self, outcome: &Outcome) {
        let judged = with_latency_failure(outcome.clone(), self.broken.as_ref());
        self.conductor.measured(&judged);
    }

    fn event(&mut self, event: Event<'_>) {
        self.say_head();
        match event {
            Event::Samples {
                stage,
                row,
                samples,
                ..
            } => self.latency(|files| files.add(stage, row, samples)),
            Event::StageEnd { stage, ranks, rows } => {
                let lines = (self.lines)(stage, ranks, rows);
                self.conductor.view().print(&lines);
                self.latency(|files| files.end_stage(stage));
                self.done.push(ranks.to_vec());
            }
            other => self.conductor.event(other),
        }
    }
}
