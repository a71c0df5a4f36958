//! `run`: runs a workload.

mod repeat;

use crate::cli::{Format, RunArgs};
use crate::communicator::{Communicator, SilentObserver};
use crate::console::Stream;
use crate::exit::{CommandError, Exit};
use crate::hook::{HookRunner, RunFacts};
use crate::load_runner::OutputOptions;
use crate::measured_run::{self, RunMetadata};
use crate::progress_display::ProgressDisplay;
use crate::results_writer::{ResultsWriter, Written};
use crate::{signals, workload};
use plimsoll_diagnostics::foreign;
use plimsoll_engine::{EngineError, Outcome, Settings, Stop};
use plimsoll_plan::{Plan, show_duration};
use plimsoll_report::terminal;
use plimsoll_results::{
    ClockKind, Environment, Hooks, ReadSource, RepeatsWriter, ResultsError, Run, RunDir, RunWriter,
};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Runs the workload, writes the results and prints the report.
pub fn run(args: &RunArgs) -> Result<Exit, CommandError> {
    let communicator = Communicator::join(args.manner.ranks.processes)?;
    let hooks = || args.manner.hooks.hooks(args.workload.how.allow_commands);
    let plan = communicator.run_on_root_and_broadcast(|| {
        hooks()?;
        workload::plan(&args.workload)
    })?;
    let settings = workload::settings(&args.workload.how);
    let stop = Stop::default();
    signals::stop_on_interrupt(&stop, communicator.is_root())
        .map_err(|e| CommandError::usage(format!("cannot catch Ctrl-C: {e}")))?;
    let round = RunContext {
        communicator: &communicator,
        settings: &settings,
        stop: &stop,
        output: (&args.manner).into(),
        hooks: hooks()?,
    };
    match args.repeat {
        None => round.run(&plan, &args.results, None, 1),
        Some(times) => repeat::run(&round, &plan, &args.results, times),
    }
}

/// What runs on one target have in common.
pub(crate) struct RunContext<'a> {
    /// The ranks.
    pub(crate) communicator: &'a Communicator,
    /// How the engine runs a Plan.
    pub(crate) settings: &'a Settings,
    /// Asked to stop by Ctrl-C.
    pub(crate) stop: &'a Stop,
    /// How much is said.
    pub(crate) output: OutputOptions,
    /// Commands of the user around the phases.
    pub(crate) hooks: Option<Hooks>,
}

impl RunContext<'_> {
    /// What is known of a run before it begins.
    fn run_metadata(&self, plan: &Plan) -> RunMetadata {
        RunMetadata {
            percentiles: self.output.percentiles.clone(),
            ..run_metadata(plan, self.settings, self.communicator)
        }
    }

    /// Runs the Plan once and reports it. Its results go below `root`, or to repeated runs.
    pub(super) fn run(
        &self,
        plan: &Plan,
        root: &Path,
        repeats: Option<&mut RepeatsWriter>,
        number: u64,
    ) -> Result<Exit, CommandError> {
        let format = self.output.format;
        if !self.communicator.is_root() {
            return self.run_as_member(plan);
        }
        refuse_results_among_files(root, plan, self.settings)?;
        let facts = RunFacts {
            number: Some(number),
            ..RunFacts::default()
        };
        let written = self.run_as_root(plan, "", &facts, |started, clock| match &repeats {
            Some(repeats) => repeats.next(plan, started, clock),
            None => RunWriter::create(root, plan, started, clock),
        })?;
        if format == Format::Json {
            written.warn_of_unremoved();
        }
        let is_clean = written.is_clean();
        let Written { run, dir, .. } = written;
        report(format, &run, dir.as_ref().ok().map(RunDir::path))?;
        let dir = dir.map_err(CommandError::failed)?;
        if let Some(repeats) = repeats {
            repeats.add(&dir).map_err(CommandError::failed)?;
        }
        Ok(self.output.exit(run.validity.verdict.into(), is_clean))
    }

    /// What the ranks but rank 0 do: they work, and leave the talking to it.
    pub(crate) fn run_as_member(&self, plan: &Plan) -> Result<Exit, CommandError> {
        let c = self.run_metadata(plan);
        follow(
            self.communicator,
            c,
            self.settings,
            self.stop,
            self.output.per_rank,
        )
    }

    /// What rank 0 does: it runs the Plan and writes the results, to the place that `writer` makes.
    /// The live line begins with `label`.
    ///
    /// # Errors
    /// If the run was refused: nothing was measured.
    pub(crate) fn run_as_root(
        &self,
        plan: &Plan,
        label: &str,
        facts: &RunFacts,
        writer: impl FnOnce(SystemTime, ClockKind) -> Result<RunWriter, ResultsError>,
    ) -> Result<Written, CommandError> {
        let (communicator, settings) = (self.communicator, self.settings);
        let c = self.run_metadata(plan);
        let writer = writer(c.started, c.clock).map_err(|e| results_path_error(&e))?;
        let OutputOptions { format, quiet, .. } = self.output;
        let each = self.output.per_rank.then_some(communicator);
        let scribe = ResultsWriter::begin(writer, c, each).map_err(|e| results_path_error(&e))?;
        let mut screen = ProgressDisplay::new(format, quiet, plan, scribe, self.stop.clone());
        screen.set_opening_line(format!(
            "{label}{}",
            headline(plan, settings, communicator.size())
        ));
        screen.label(label.to_owned());
        let hooks = self.hooks.as_ref();
        let runner =
            |hooks| HookRunner::new(hooks, plan, &settings.target, communicator.size(), facts);
        screen.hook(hooks.map(runner));
        screen.show(self.output.percentiles.as_ref());
        let ran = plimsoll_engine::run_ranks(
            plan,
            settings,
            self.stop,
            &mut screen,
            communicator.ranks(),
        );
        let outcome = match outcome_or_refusal(ran) {
            Ok(outcome) => outcome,
            Err(refused) => {
                // Ends the display first, so that the reason stands alone.
                drop(screen);
                return Err(refused);
            }
        };
        Ok(screen.end(outcome))
    }
}

/// Results that cannot be put where they were to be.
pub(super) fn results_path_error(e: &ResultsError) -> CommandError {
    CommandError::usage(format!(
        "{e}; --results chooses another place for the results"
    ))
}

/// What the ranks but rank 0 do: they work, and leave the talking to it.
pub(super) fn follow(
    communicator: &Communicator,
    c: RunMetadata,
    settings: &Settings,
    stop: &Stop,
    per_rank: bool,
) -> Result<Exit, CommandError> {
    let ran = plimsoll_engine::run_ranks(
        &c.plan,
        settings,
        stop,
        &mut SilentObserver,
        communicator.ranks(),
    );
    let Ok(outcome) = ran else {
        // Rank 0 has heard of it and says it.
        return Ok(Exit::Valid);
    };
    if per_rank {
        let environment = own_environment(&c.plan, settings);
        let own = Run::assemble(measured_run::measured(
            outcome,
            RunMetadata { environment, ..c },
        ));
        communicator.collect(own.to_json(), |_, _| ())?;
    }
    Ok(Exit::Valid)
}

/// What a run came to, also if it could not be carried out; only one that was refused came to
/// nothing.
pub(crate) fn outcome_or_refusal(
    ran: Result<Outcome, EngineError>,
) -> Result<Outcome, CommandError> {
    match ran {
        Ok(outcome) => Ok(outcome),
        Err(EngineError::Refused(reason)) => Err(CommandError::usage(reason)),
        Err(EngineError::Failed(error)) => Ok(measured_run::failed("run", error)),
        Err(EngineError::Interrupted) => Ok(Outcome {
            interrupted: true,
            ..Outcome::default()
        }),
    }
}

/// Refuses a results directory below a directory that must hold nothing but the run's files.
pub(crate) fn refuse_results_among_files(
    results: &Path,
    plan: &Plan,
    settings: &Settings,
) -> Result<(), CommandError> {
    if !plimsoll_target::is_local(&settings.target) {
        return Ok(());
    }
    let results = resolved(results);
    for guard in &plan.work_dir.guards {
        let dir = resolved(&workload::below(&plan.work_dir.dir, guard));
        if results.starts_with(&dir) {
            return Err(CommandError::usage(format!(
                "the results would be written to {}, which is inside {}, the directory of the \
                 run's files; --results chooses another place for them",
                results.display(),
                dir.display()
            )));
        }
    }
    Ok(())
}

/// A path with the links of its existing part followed.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for existing in path.ancestors() {
        if let Ok(real) = existing.canonicalize()
            && let Ok(rest) = path.strip_prefix(existing)
        {
            return if rest.as_os_str().is_empty() {
                real
            } else {
                real.join(rest)
            };
        }
    }
    path
}

/// What is known of a run before it begins. Only rank 0 looks for the work directory, which it
/// makes: a rank that looks before, and finds none, goes on finding none on NFS.
pub(crate) fn run_metadata(
    plan: &Plan,
    settings: &Settings,
    communicator: &Communicator,
) -> RunMetadata {
    RunMetadata {
        plan: plan.clone(),
        target: settings.target.clone(),
        clock: match settings.clock {
            plimsoll_engine::ClockKind::Real => ClockKind::Real,
            plimsoll_engine::ClockKind::Virtual => ClockKind::Virtual,
        },
        started: SystemTime::now(),
        environment: match communicator.is_root() {
            true => environment(plan, settings),
            false => Environment::look(None),
        },
        ranks: communicator.size(),
        percentiles: None,
    }
}

/// The same as one rank of several tells it, which does not know what of the others' traffic is in
/// the counters.
pub(crate) fn own_environment(plan: &Plan, settings: &Settings) -> Environment {
    Environment {
        read_source: None,
        ..environment(plan, settings)
    }
}

/// This machine, and the file system of the work directory.
pub(crate) fn environment(plan: &Plan, settings: &Settings) -> Environment {
    let guards = plan.work_dir.guards.iter();
    let mut dirs: Vec<PathBuf> = guards
        .map(|g| workload::below(&plan.work_dir.dir, g))
        .collect();
    if dirs.is_empty() {
        dirs.push(plan.work_dir.dir.clone());
    }
    let local = plimsoll_target::is_local(&settings.target);
    Environment {
        read_source: match plimsoll_target::is_remote(&settings.target) {
            _ if local => ReadSource::of_directories(&dirs),
            true => Some(ReadSource::NfsClient),
            false => None,
        },
        ..Environment::look(local.then_some(dirs[0].as_path()))
    }
}

/// The first line: what is run, and where its files go.
fn headline(plan: &Plan, settings: &Settings, ranks: u32) -> String {
    let place = workload::place(plan);
    let place = foreign::escaped(&place);
    let fate = match (plan.options.keep, plan.work_dir.temporary) {
        (true, _) => "kept afterwards",
        (false, true) => "a new directory, removed afterwards",
        (false, false) => "removed afterwards",
    };
    let interval = show_duration(settings.interval);
    let files = if plimsoll_target::keeps_files(&settings.target) {
        format!("files in {place} ({fate})")
    } else {
        "no files".into()
    };
    let ranks = match ranks {
        1 => String::new(),
        n => format!(", {n} ranks"),
    };
    format!(
        "{}: {files}, target {}{ranks}, intervals of {interval}",
        plan.name, settings.target
    )
}

pub(super) fn report(format: Format, run: &Run, dir: Option<&Path>) -> Result<(), CommandError> {
    let text = match format {
        Format::Json => run.to_json(),
        Format::Text => {
            let layout = terminal::Layout {
                width: Stream::Out.width(),
                color: Stream::Out.color(),
            };
            format!("\n{}", terminal::render(run, dir, layout))
        }
    };
    super::print(&text).map(|_| ())
}
