//! Runs of a pattern by ranks, with the options and output lines of another tool: `md`, `ior` and `mdtest`.

use super::run::{self, target_of};
use crate::cli::{Format, PatternArgs, RankArgs};
use crate::communicator::{join_pattern, stop_on_interrupt};
use crate::console::{self, Stream};
use crate::console_host::ConsoleHost;
use crate::exit::{CommandError, Exit};
use crate::output_options::OutputOptions;
use crate::{io_choice, workload};
use clap::Args;
use plimsoll_engine::{ClockKind, Event, Observer, Outcome, PhaseInfo, Settings, Stop};
use plimsoll_measure::{OpTotals, RankStage};
use plimsoll_plan::{Failure, Plan};
use plimsoll_report::terminal;
use plimsoll_results::{Run, RunDir, RunWriter, Verdict};
use plimsoll_series::events::{EventSpec, check_phases};
use plimsoll_series::{
    Conductor, RunConfig, RunContext, RunFacts, SeriesError, Written, outcome_or_refusal,
    refuse_results_among_files,
};
use plimsoll_workload::md::LatencyFiles;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// A tool whose options define the pattern, and whose lines the run prints.
pub trait Tool: Sized {
    /// Command line of the tool.
    type Arguments: Args;

    /// Checks a command line.
    ///
    /// # Errors
    /// One sentence that states the unsupported option or the contradiction.
    fn new(arguments: &Self::Arguments) -> Result<Self, String>;

    /// URL of the target.
    fn target(&mut self) -> &mut String;

    /// Whether the report is printed only for a run that is not valid.
    fn is_quiet(&self) -> bool {
        false
    }

    /// Plan for a number of ranks.
    ///
    /// # Errors
    /// One sentence that states why the Plan is impossible.
    fn lower(&self, ranks: u32) -> Result<Plan, String>;

    /// Checks before any run that the tool's own files can be written, and prepares these files.
    ///
    /// # Errors
    /// If a file cannot be written.
    fn prepare(&self, plan: &Plan) -> Result<Extras, CommandError> {
        let _ = plan;
        Ok(Extras::default())
    }

    /// Lines before the first stage, from the command line of this process and the local time.
    fn head(&self, plan: &Plan, arguments: &[String], time: &str) -> String;

    /// Lines of a completed stage, from the number of the stage, the ranks, and the rows merged over all ranks.
    fn stage(&self, plan: &Plan, stage: u32, ranks: &[RankStage], rows: &[OpTotals]) -> String;

    /// Lines after the last stage, from the results of the ranks in each completed stage.
    fn end(&self, plan: &Plan, elapsed: Duration, done: &[Vec<RankStage>], time: &str) -> String;

    /// Writes the files of the tool after the run.
    ///
    /// # Errors
    /// If a file cannot be written.
    fn write(&self, plan: &Plan, run: &Run, done: &[Vec<RankStage>]) -> Result<(), CommandError> {
        let _ = (plan, run, done);
        Ok(())
    }
}

/// Files and warning that a tool adds to a run, at rank 0.
#[derive(Default)]
pub struct Extras {
    /// Files for the time of every operation.
    pub latency: Option<LatencyFiles>,
    /// Warning that follows the tool's first lines; empty for no warning.
    pub warning: &'static str,
}

/// Outputs of a run that rank 0 prepares before the run.
struct Outputs {
    writer: RunWriter,
    started: SystemTime,
    extras: Extras,
}

impl Outputs {
    /// Creates the results directory below `root`.
    ///
    /// # Errors
    /// If the directory cannot be created, or would be among the files of the run.
    fn new(root: &Path, target: &str, plan: &Plan, extras: Extras) -> Result<Self, CommandError> {
        let settings = settings(target, plan);
        refuse_results_among_files(root, plan, &settings.target)?;
        let started = SystemTime::now();
        let writer = RunWriter::create(root, plan, started, settings.clock(), None);
        Ok(Self {
            writer: writer.map_err(|e| SeriesError::results_path(&e))?,
            started,
            extras,
        })
    }
}

/// Engine settings for a Plan on the target of a URL.
fn settings(target: &str, plan: &Plan) -> Settings {
    Settings {
        target: io_choice::target_of(target, plan),
        ..Settings::default()
    }
}

/// Checks the options for ranks before the Plan for `ranks` ranks is made.
///
/// # Errors
/// If the target or its clock does not allow an option.
pub(super) fn check_ranks(args: &RankArgs, target: &str, ranks: u32) -> Result<(), CommandError> {
    args.check_target(target)?;
    if plimsoll_target::clock(target) == ClockKind::Real {
        return Ok(());
    }
    plimsoll_ranks::check_processes(ranks).map_err(CommandError::usage)?;
    if args.per_rank && ranks > 1 {
        return Err(CommandError::usage(
            "--per-rank: in virtual time the ranks share one process; `stages` of run.json has the \
             figures of each",
        ));
    }
    Ok(())
}

/// Adapts a Plan to its target, and checks the options for ranks and the events that depend on the Plan.
///
/// # Errors
/// If the Plan lacks the phase of an event, or the access to files does not allow an option.
fn adapted(
    mut plan: Plan,
    args: &RankArgs,
    target: &str,
    events: &[EventSpec],
) -> Result<Plan, CommandError> {
    workload::add_rows_of_target(&mut plan, target);
    let target = io_choice::target_of(target, &plan);
    args.check_io(&target)?;
    check_phases(events, &plan, &target).map_err(CommandError::usage)?;
    Ok(plan)
}

/// Tool with the options of the command line, and events that are not part of the target's URL.
fn tool_and_events<T: Tool>(
    args: &PatternArgs<T::Arguments>,
) -> Result<(T, Vec<EventSpec>), CommandError> {
    let mut tool = T::new(&args.tool).map_err(CommandError::usage)?;
    let events = args.events.add_to(tool.target())?;
    Ok((tool, events))
}

/// Checked Plan for `ranks` ranks, and the tool that made the Plan.
fn checked<T: Tool>(
    args: &PatternArgs<T::Arguments>,
    ranks: u32,
) -> Result<(Plan, T), CommandError> {
    let (mut tool, events) = tool_and_events::<T>(args)?;
    let target = tool.target().clone();
    check_ranks(&args.ranks, &target, ranks)?;
    let plan = tool.lower(ranks).map_err(CommandError::usage)?;
    let plan = adapted(plan, &args.ranks, &target, &events)?;
    Ok((plan, tool))
}

/// Runs the pattern of a tool with all ranks; the option `--dry-run` only prints the Plan.
///
/// # Errors
/// If the options are invalid, or the run cannot begin, or its results cannot be written.
pub fn run<T: Tool>(args: &PatternArgs<T::Arguments>) -> Result<Exit, CommandError> {
    if args.dry_run {
        let (plan, mut tool) = checked::<T>(args, args.ranks.working()?)?;
        return super::plan::show(&plan, &settings(tool.target(), &plan), args.format);
    }
    // Rank 0 reports invalid options once the ranks are connected.
    let target = T::new(&args.tool)
        .ok()
        .map(|mut tool| tool.target().clone());
    let (communicator, ranks) = join_pattern(&args.ranks, target.as_deref())?;
    let mut outputs = None;
    let plan: Plan = communicator.run_on_root_and_broadcast(|| {
        let (plan, mut tool) = checked::<T>(args, ranks)?;
        let extras = tool.prepare(&plan)?;
        outputs = Some(Outputs::new(
            &args.root.results,
            tool.target(),
            &plan,
            extras,
        )?);
        Ok::<_, CommandError>(plan)
    })?;
    let (mut tool, events) = tool_and_events::<T>(args)?;
    let settings = settings(tool.target(), &plan);
    let config = RunConfig {
        plan,
        target: target_of(&settings.target),
        interval_s: settings.interval.as_secs_f64(),
        holds: false,
    };
    let output = OutputOptions {
        format: args.format,
        quiet: tool.is_quiet(),
        live: false,
        per_rank: args.ranks.per_rank,
    };
    let host = ConsoleHost::of_series(&output, stop_on_interrupt(&communicator)?, 1);
    let context = RunContext {
        per_rank: output.per_rank,
        events,
        ..RunContext::new(&communicator, &host)
    };
    match outputs {
        Some(outputs) => run_as_root(&context, &output, &config, &tool, outputs),
        None => {
            context.run_as_member(&config)?;
            Ok(Exit::Valid)
        }
    }
}

fn run_as_root<T: Tool>(
    context: &RunContext<'_>,
    output: &OutputOptions,
    config: &RunConfig,
    tool: &T,
    outputs: Outputs,
) -> Result<Exit, CommandError> {
    let plan = &config.plan;
    let facts = RunFacts {
        number: Some(1),
        ..RunFacts::default()
    };
    let mut observer = StageObserver {
        conductor: context.begin(config, &facts, outputs.writer, outputs.started)?,
        head: tool.head(plan, &arguments(), &local_time()) + outputs.extras.warning,
        tool,
        plan,
        latency: outputs.extras.latency,
        done: vec![],
        broken: None,
        stop: context.host.stop().clone(),
    };
    let begun = Instant::now();
    let ranks = context.communicator.ranks();
    let (settings, stop) = (config.settings(), context.host.stop());
    let ran = plimsoll_engine::run_ranks(plan, &settings, stop, &mut observer, ranks);
    let outcome = match outcome_or_refusal(ran) {
        Ok(outcome) => with_latency_failure(outcome, observer.broken.as_ref()),
        Err(refused) => {
            drop(observer);
            return Err(refused.into());
        }
    };
    let StageObserver {
        mut conductor,
        done,
        ..
    } = observer;
    let lines = tool.end(plan, begun.elapsed(), &done, &local_time());
    conductor.view().print(&lines);
    let written = conductor.end(outcome);
    if output.format == Format::Json || output.quiet {
        run::warn_of_unremoved(&written);
    }
    let Written { run, dir, .. } = written;
    tool.write(plan, &run, &done)?;
    print_report(output, &run, dir.as_ref().ok().map(RunDir::path))?;
    dir.map_err(CommandError::failed)?;
    Ok(run.validity.verdict.into())
}

/// Prints the report of the run; in quiet mode only if the run is not valid.
fn print_report(output: &OutputOptions, run: &Run, dir: Option<&Path>) -> Result<(), CommandError> {
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

/// The command line of this process, a text for each argument.
fn arguments() -> Vec<String> {
    let words = std::env::args_os();
    words.map(|w| w.to_string_lossy().into_owned()).collect()
}

/// Date and local time of day.
fn local_time() -> String {
    jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Prints the tool's lines of each completed stage, and records the time of every operation.
struct StageObserver<'a, T> {
    conductor: Conductor<'a>,
    tool: &'a T,
    plan: &'a Plan,
    /// First lines, printed once the run is accepted, since a refused run prints only the reason; empty after printing.
    head: String,
    latency: Option<LatencyFiles>,
    /// Results of the ranks in each completed stage.
    done: Vec<Vec<RankStage>>,
    /// Error of the files with the time of every operation.
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

impl<T> StageObserver<'_, T> {
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

impl<T: Tool> Observer for StageObserver<'_, T> {
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
                let lines = self.tool.stage(self.plan, stage, ranks, rows);
                self.conductor.view().print(&lines);
                self.latency(|files| files.end_stage(stage));
                self.done.push(ranks.to_vec());
            }
            other => self.conductor.event(other),
        }
    }
}
