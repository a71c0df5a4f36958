//! `md`: metadata and small objects under many processes.

use super::run;
use crate::cli::{Format, MdArgs};
use crate::communicator::Communicator;
use crate::console::{self, Stream};
use crate::exit::{CommandError, Exit};
use crate::hook::{HookRunner, RunFacts};
use crate::measured_run::RunMetadata;
use crate::progress_display::ProgressDisplay;
use crate::results_writer::{ResultsWriter, Written};
use crate::signals;
use plimsoll_engine::{Event, Observer, Outcome, PhaseInfo, Settings, Stop};
use plimsoll_md::{LatencyError, LatencyFiles, Options, PatternOptions, Report, RunInfo};
use plimsoll_measure::RankStage;
use plimsoll_plan::Plan;
use plimsoll_report::terminal;
use plimsoll_results::{ClockKind, Run, RunDir, RunWriter, Verdict};
use std::path::Path;
use std::time::{Instant, SystemTime};

/// Name of MD-Workbench's interface that does nothing.
const NULL_INTERFACE: &str = "dummy";

/// Runs a pattern, or lists the interfaces, or prints the Plan.
pub fn run(args: &MdArgs) -> Result<Exit, CommandError> {
    if args.md.lists_interfaces() {
        let names = plimsoll_target::registry::SCHEMES.iter().map(|s| s.name);
        let names: Vec<&str> = std::iter::once(NULL_INTERFACE).chain(names).collect();
        return super::print(&format!("Available plugins: {}\n", names.join(" ")));
    }
    if args.dry_run {
        let options = Options::new(&args.md).map_err(CommandError::usage)?;
        let plan = plan(&options, args.ranks.processes.unwrap_or(1))?;
        return super::plan::show(&plan, &settings(&options), args.format);
    }
    let communicator = Communicator::join(args.ranks.processes)?;
    let mut tools = None;
    let plan = communicator.run_on_root_and_broadcast(|| {
        let options = Options::new(&args.md).map_err(CommandError::usage)?;
        let plan = plan(&options, communicator.size())?;
        args.hooks.hooks(args.allow_commands)?;
        tools = Some(MdOutputs::ready(args, options, &plan)?);
        Ok(plan)
    })?;
    let stop = Stop::default();
    signals::stop_on_interrupt(&stop, communicator.is_root())
        .map_err(|e| CommandError::usage(format!("cannot catch Ctrl-C: {e}")))?;
    match tools {
        Some(tools) => lead(args, &communicator, &plan, &stop, tools),
        None => {
            // The same arguments as those of rank 0, which have been found right.
            let options = Options::new(&args.md).map_err(CommandError::usage)?;
            let settings = settings(&options);
            let c = RunMetadata {
                percentiles: args.percentiles.clone(),
                ..run::run_metadata(&plan, &settings, &communicator)
            };
            run::follow(&communicator, c, &settings, &stop, args.ranks.per_rank)
        }
    }
}

fn settings(options: &Options) -> Settings {
    Settings {
        target: options.target.clone(),
        ..Settings::default()
    }
}

/// The Plan for so many ranks; of phases that are run alone, from where the last run ended.
fn plan(options: &Options, ranks: u32) -> Result<Plan, CommandError> {
    let position = match &options.pattern {
        PatternOptions::Workbench(w) if w.reads_position() => {
            let kept = RunInfo::at(&w.run_info_file).read();
            Some(kept.map_err(CommandError::usage)?)
        }
        _ => None,
    };
    let mut plan =
        plimsoll_md::lower(options, ranks, position.as_ref()).map_err(CommandError::usage)?;
    plan.add_procedures(plimsoll_target::procedures(&options.target));
    Ok(plan)
}

/// What rank 0 has ready before anything is run.
struct MdOutputs {
    options: Options,
    latency: Option<LatencyFiles>,
    writer: RunWriter,
    started: SystemTime,
    /// The root is there, and empty.
    uses_empty_root: bool,
}

impl MdOutputs {
    /// Makes sure that what is to be written can be, before anything is done.
    fn ready(args: &MdArgs, options: Options, plan: &Plan) -> Result<Self, CommandError> {
        if let PatternOptions::Workbench(w) = &options.pattern
            && w.writes_position()
        {
            let info = RunInfo::at(&w.run_info_file);
            info.check().map_err(CommandError::usage)?;
            refuse_among_files("the position", &w.run_info_file, "--run-info-file", plan)?;
        }
        let latency = LatencyFiles::new(&options, plan).map_err(CommandError::usage)?;
        for path in latency.iter().flat_map(LatencyFiles::paths) {
            refuse_among_files("the time of every operation", path, "-L", plan)?;
        }
        run::refuse_results_among_files(&args.results, plan, &settings(&options))?;
        let started = SystemTime::now();
        let writer =
            RunWriter::create(&args.results, plan, started, ClockKind::Real).map_err(|e| {
                CommandError::usage(format!(
                    "{e}; --results chooses another place for the results"
                ))
            })?;
        Ok(Self {
            uses_empty_root: is_empty(plan, &options),
            options,
            latency,
            writer,
            started,
        })
    }
}

/// Refuses a file below the root: nothing but the run's own files may be there.
fn refuse_among_files(
    what: &str,
    path: &Path,
    option: &str,
    plan: &Plan,
) -> Result<(), CommandError> {
    let path = run::resolved(path);
    for guard in &plan.work_dir.guards {
        let root = run::resolved(&crate::workload::below(&plan.work_dir.dir, guard));
        if path.starts_with(&root) {
            return Err(CommandError::usage(format!(
                "{what} would be written to {}, which is inside {}, the directory of the run's \
                 files; {option} chooses another place",
                path.display(),
                root.display()
            )));
        }
    }
    Ok(())
}

/// Whether the root that is to be made is there already, and empty.
fn is_empty(plan: &Plan, options: &Options) -> bool {
    let makes_root = plan.pattern().is_some_and(|p| !p.stages.is_empty())
        && matches!(&options.pattern, PatternOptions::Workbench(w) if w.phases.precreate);
    let root = options.place.dir.join(options.place.root.as_str());
    let entries = std::fs::read_dir(root).map(|mut entries| entries.next().is_none());
    makes_root && options.target == plimsoll_target::DEFAULT_TARGET && entries.unwrap_or(false)
}

/// What rank 0 does: it works too, and tells of it.
fn lead(
    args: &MdArgs,
    communicator: &Communicator,
    plan: &Plan,
    stop: &Stop,
    tools: MdOutputs,
) -> Result<Exit, CommandError> {
    let options = &tools.options;
    let settings = settings(options);
    let mut c = run::run_metadata(plan, &settings, communicator);
    c.started = tools.started;
    c.percentiles = args.percentiles.clone();
    let report = Report::new(options, plan);
    let quiet = options.quiet;
    let each = args.ranks.per_rank.then_some(communicator);
    let scribe =
        ResultsWriter::begin(tools.writer, c, each).map_err(|e| run::results_path_error(&e))?;
    let mut screen = ProgressDisplay::new(args.format, quiet, plan, scribe, stop.clone());
    let hooks = args.hooks.hooks(args.allow_commands)?;
    let facts = RunFacts {
        number: Some(1),
        ..RunFacts::default()
    };
    let size = communicator.size();
    let runner = |hooks| HookRunner::new(hooks, plan, &settings.target, size, &facts);
    screen.hook(hooks.as_ref().map(runner));
    let mut head = report.begin(&arguments(), env!("CARGO_PKG_VERSION"), &local_time());
    if tools.uses_empty_root && !options.quiet {
        head.push_str("WARN: Will use the existing (empty) directory\n");
    }
    let mut watch = MdObserver {
        screen,
        report,
        head,
        latency: tools.latency,
        done: vec![],
        broken: None,
        stop: stop.clone(),
    };
    let begun = Instant::now();
    let ran = plimsoll_engine::run_ranks(plan, &settings, stop, &mut watch, communicator.ranks());
    let outcome = match run::outcome_or_refusal(ran) {
        Ok(outcome) => with_latency_failure(outcome, watch.broken.as_ref()),
        Err(refused) => {
            drop(watch);
            return Err(refused);
        }
    };
    let MdObserver { screen, done, .. } = watch;
    screen.print(&report.end(begun.elapsed(), &local_time()));
    let written = screen.end(outcome);
    if args.format == Format::Json || options.quiet {
        written.warn_of_unremoved();
    }
    let is_clean = written.is_clean();
    let Written { run, dir, .. } = written;
    keep_position(options, plan, &run, &done)?;
    tell(args, options, &run, dir.as_ref().ok().map(RunDir::path))?;
    match dir {
        Ok(_) => Ok(args.cleanup.exit(run.validity.verdict.into(), is_clean)),
        Err(e) => Err(CommandError::failed(e)),
    }
}

/// Prints the report of the whole run. A quiet one says only what was wrong with it.
fn tell(
    args: &MdArgs,
    options: &Options,
    run: &Run,
    dir: Option<&Path>,
) -> Result<(), CommandError> {
    match args.format {
        Format::Text if options.quiet => {
            if run.validity.verdict != Verdict::Valid {
                let layout = terminal::Layout {
                    width: Stream::Err.width(),
                    color: Stream::Err.color(),
                };
                console::err(&terminal::render(run, dir, layout));
            }
            Ok(())
        }
        format => run::report(format, run, dir),
    }
}

/// Keeps where the next run of a phase begins, if this one came to its end.
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
    match plimsoll_md::position_after(plan, done).filter(|_| ended) {
        Some(position) => {
            let info = RunInfo::at(&w.run_info_file);
            info.write(&position).map_err(CommandError::failed)
        }
        None => {
            console::err(&format!(
                "the run did not come to its end: {} is as it was, and does not fit the objects \
                 there are; `plimsoll clean` removes them\n",
                w.run_info_file.display()
            ));
            Ok(())
        }
    }
}

/// The command line, as it was given.
fn arguments() -> Vec<String> {
    let words = std::env::args_os();
    words.map(|w| w.to_string_lossy().into_owned()).collect()
}

fn local_time() -> String {
    jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Prints a line for each stage as it ends, and keeps the time of every operation.
struct MdObserver<'a> {
    screen: ProgressDisplay<'a>,
    report: Report<'a>,
    /// What is printed first, once the run has begun: one that is refused only says why.
    head: String,
    latency: Option<LatencyFiles>,
    /// For each stage that has ended, what its ranks did.
    done: Vec<Vec<RankStage>>,
    broken: Option<LatencyError>,
    stop: Stop,
}

/// The outcome, unless the run was stopped because the time of an operation could not be kept.
fn with_latency_failure(mut outcome: Outcome, broken: Option<&LatencyError>) -> Outcome {
    if let Some(error) = broken {
        // It was this error that stopped the run, not a person.
        outcome.interrupted = false;
        let what = "keep the time of every operation";
        outcome.failure = crate::measured_run::failed(what, error.to_string()).failure;
    }
    outcome
}

impl MdObserver<'_> {
    /// Prints what comes first, once.
    fn say_head(&mut self) {
        if !self.head.is_empty() {
            self.screen.print(&std::mem::take(&mut self.head));
        }
    }

    fn latency(&mut self, add: impl FnOnce(&mut LatencyFiles) -> Result<(), LatencyError>) {
        if let (Some(files), None) = (&mut self.latency, &self.broken)
            && let Err(e) = add(files)
        {
            self.broken = Some(e);
            self.stop.request();
        }
    }
}

impl Observer for MdObserver<'_> {
    fn before(&mut self, phase: PhaseInfo<'_>, stopped: &dyn Fn() -> bool) -> Result<(), String> {
        self.say_head();
        self.screen.before(phase, stopped)
    }

    fn after(&mut self, phase: PhaseInfo<'_>, stopped: &dyn Fn() -> bool) {
        self.screen.after(phase, stopped);
    }

    fn all_measured(&mut self, outcome: &dyn Fn() -> Option<Outcome>) {
        let judged =
            || outcome().map(|outcome| with_latency_failure(outcome, self.broken.as_ref()));
        self.screen.all_measured(&judged);
    }

    fn measured(&mut self, outcome: &Outcome) {
        let judged = with_latency_failure(outcome.clone(), self.broken.as_ref());
        self.screen.measured(&judged);
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
                self.screen.print(&self.report.stage(stage, ranks, rows));
                self.latency(|files| files.end_stage(stage));
                self.done.push(ranks.to_vec());
            }
            other => self.screen.event(other),
        }
    }
}
