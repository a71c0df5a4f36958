//! One run of a Plan, by all ranks, with its results.

use crate::communicator::{Communicator, SilentObserver};
use crate::event::{self, EventRunner, EventSpec, ShellExecutor};
use crate::exit::CommandError;
use crate::hook::{HookRunner, RunFacts};
use crate::measured_run::{self, RunMetadata};
use crate::monitor::{Monitor, MonitoredObserver, Phase};
use crate::output_options::OutputOptions;
use crate::progress_display::{ProgressDisplay, RunTitle};
use crate::results_writer::{ResultsWriter, Written};
use crate::{hosts, signals, workload};
use plimsoll_engine::{ClockKind, EngineError, Outcome, Settings, Stop};
use plimsoll_plan::{Failure, Plan};
use plimsoll_results::{Document, Environment, Hooks, ReadSource, ResultsError, Run, RunWriter};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The state that the runs of a command share.
pub struct RunContext<'a> {
    /// The ranks.
    pub communicator: &'a Communicator,
    /// Settings of the engine.
    pub settings: &'a Settings,
    /// Requested by Ctrl-C.
    pub stop: &'a Stop,
    /// Format and amount of the output.
    pub output: OutputOptions,
    /// Commands of the user around the phases.
    pub hooks: Option<Hooks>,
    /// Events that this program executes while a run runs.
    pub events: Vec<EventSpec>,
    /// Error of the command if the results of a run cannot be created.
    pub results_error: fn(ResultsError) -> CommandError,
}

/// A [`Stop`] that Ctrl-C requests.
///
/// # Errors
/// If Ctrl-C cannot be caught.
pub fn stop_on_interrupt(communicator: &Communicator) -> Result<Stop, CommandError> {
    let stop = Stop::default();
    signals::stop_on_interrupt(&stop, communicator.is_root())
        .map_err(|e| CommandError::usage(format!("cannot catch Ctrl-C: {e}")))?;
    communicator.pass_on(&stop);
    Ok(stop)
}

impl RunContext<'_> {
    /// The number of ranks of a run. Those of a pattern are workers of one process in virtual time.
    fn ranks(&self, plan: &Plan) -> u32 {
        plan.pattern()
            .map_or(self.communicator.working(), |pattern| pattern.ranks)
    }

    /// The metadata of a run that begins now. Only rank 0 looks up the work directory, which it
    /// creates: on NFS, a rank that looks before and finds none continues to find none.
    pub fn run_metadata(&self, plan: &Plan) -> RunMetadata {
        RunMetadata {
            plan: plan.clone(),
            target: self.settings.target.clone(),
            // The run is refused if the system is not known.
            system: plimsoll_target::system_fingerprint(&self.settings.target).unwrap_or_default(),
            clock: self.settings.clock,
            started: SystemTime::now(),
            environment: match self.communicator.is_root() {
                true => environment(plan, self.settings),
                false => Environment::look(None),
            },
            ranks: self.ranks(plan),
            percentiles: self.output.percentiles.clone(),
        }
    }

    /// Runs the Plan at a rank other than 0, which leaves all reporting to rank 0. Returns `false`
    /// if the run failed.
    ///
    /// # Errors
    /// If a rank is lost.
    pub fn run_as_member(&self, plan: &Plan) -> Result<bool, CommandError> {
        match hosts::place() {
            None => self.run_as_member_here(plan),
            Some(place) => {
                let (plan, settings) = place.of_run(plan, self.settings);
                let context = RunContext {
                    settings: &settings,
                    output: self.output.clone(),
                    hooks: None,
                    events: vec![],
                    ..*self
                };
                context.run_as_member_here(&plan)
            }
        }
    }

    fn run_as_member_here(&self, plan: &Plan) -> Result<bool, CommandError> {
        let metadata = self.run_metadata(plan);
        let ranks = self.communicator.ranks();
        let ran =
            plimsoll_engine::run_ranks(plan, self.settings, self.stop, &mut SilentObserver, ranks);
        // Rank 0 is informed of an error and reports it.
        let Ok(outcome) = ran else {
            return Ok(false);
        };
        if self.output.per_rank {
            // One rank does not know which part of the counters is the others' traffic.
            let environment = Environment {
                read_source: None,
                ..environment(plan, self.settings)
            };
            let own = Run::assemble(measured_run::measured(
                outcome,
                RunMetadata {
                    environment,
                    ..metadata
                },
            ));
            self.communicator.collect(own.to_json(), |_, _| ())?;
        }
        Ok(true)
    }

    /// Begins the results of a run with this metadata, and the display that writes them.
    ///
    /// # Errors
    /// If the results cannot be written.
    pub fn display<'p>(
        &'p self,
        plan: &'p Plan,
        facts: &RunFacts,
        writer: RunWriter,
        metadata: RunMetadata,
    ) -> Result<ProgressDisplay<'p>, CommandError> {
        let each = self.output.per_rank.then_some(self.communicator);
        let events = self.events(plan, facts, writer.path())?;
        let drafted = events.as_ref().map(EventRunner::draft);
        let writer = ResultsWriter::begin(writer, metadata, each, drafted.unwrap_or_default())
            .map_err(self.results_error)?;
        let OutputOptions {
            format,
            quiet,
            live,
            ..
        } = self.output;
        let mut display = ProgressDisplay::new(format, quiet, plan, writer, self.stop.clone());
        display.show_live(live && self.settings.clock == ClockKind::Real);
        let (target, ranks) = (&self.settings.target, self.ranks(plan));
        let runner = |hooks| HookRunner::new(hooks, plan, target, ranks, facts);
        display.hook(self.hooks.as_ref().map(runner));
        display.execute(events);
        Ok(display)
    }

    /// The events of a run whose results are written to a directory.
    fn events(
        &self,
        plan: &Plan,
        facts: &RunFacts,
        results: &Path,
    ) -> Result<Option<EventRunner>, CommandError> {
        let target = &self.settings.target;
        let variables = facts.variables(plan, target, self.ranks(plan));
        let executor = event::executor(target, ShellExecutor::new(variables, results))?;
        let simulated = plimsoll_target::system_events(target);
        EventRunner::new(&self.events, simulated, executor, plan, self.stop)
            .map_err(|e| CommandError::failed(format!("cannot start the thread of events: {e}")))
    }

    /// Runs the Plan at rank 0 and writes the results with the writer that `writer` creates. The
    /// monitor, if there is one, is informed of the phases.
    ///
    /// # Errors
    /// If the run was refused: nothing was measured.
    pub fn run_as_root(
        &self,
        plan: &Plan,
        title: RunTitle,
        facts: &RunFacts,
        mut monitor: Option<&mut Monitor>,
        writer: impl FnOnce(SystemTime, ClockKind) -> Result<RunWriter, ResultsError>,
    ) -> Result<Written, CommandError> {
        let load = facts.load.unwrap_or_default();
        if let Some(monitor) = &mut monitor {
            monitor.notify_and_wait(load, Phase::Init);
        }
        let metadata = self.run_metadata(plan);
        let writer = writer(metadata.started, metadata.clock).map_err(self.results_error)?;
        let mut display = self.display(plan, facts, writer, metadata)?;
        display.set_title(title);
        display.show(self.output.percentiles.as_ref());
        let mut observer = MonitoredObserver {
            observer: &mut display,
            monitor: monitor.as_deref_mut(),
            load,
        };
        let ranks = self.communicator.ranks();
        let ran = plimsoll_engine::run_ranks(plan, self.settings, self.stop, &mut observer, ranks);
        let outcome = outcome_or_refusal(ran);
        if let Some(monitor) = &mut monitor {
            monitor.notify_and_wait(load, Phase::End);
        }
        match outcome {
            Ok(outcome) => Ok(display.end(outcome)),
            Err(refused) => {
                // Ends the display first, so that the reason stands alone.
                drop(display);
                Err(refused)
            }
        }
    }
}

/// The usage error of results that cannot be created in the requested directory.
pub fn results_path_error(e: ResultsError) -> CommandError {
    CommandError::usage(format!(
        "{e}; --results chooses another place for the results"
    ))
}

/// The outcome of a run, also of one that failed.
///
/// # Errors
/// If the run was refused.
pub fn outcome_or_refusal(ran: Result<Outcome, EngineError>) -> Result<Outcome, CommandError> {
    match ran {
        Ok(outcome) => Ok(outcome),
        Err(EngineError::Refused(reason)) => Err(CommandError::usage(reason)),
        Err(EngineError::Failed(error)) => Ok(Outcome {
            failure: Some(Failure::of("run", error)),
            ..Outcome::default()
        }),
        Err(EngineError::Interrupted) => Ok(Outcome {
            interrupted: true,
            ..Outcome::default()
        }),
    }
}

/// Refuses a results directory below a directory that must hold nothing but the run's files.
///
/// # Errors
/// If the results would be written below one.
pub fn refuse_results_among_files(
    results: &Path,
    plan: &Plan,
    settings: &Settings,
) -> Result<(), CommandError> {
    match plimsoll_target::is_local(&settings.target) {
        true => refuse_among_files("the results", results, "--results", plan),
        false => Ok(()),
    }
}

/// Refuses a path of an option below a directory that must hold nothing but the run's files. `what`
/// would be written there.
///
/// # Errors
/// If the path is below one.
pub fn refuse_among_files(
    what: &str,
    path: &Path,
    option: &str,
    plan: &Plan,
) -> Result<(), CommandError> {
    let path = resolved(path);
    for guard in &plan.work_dir.guards {
        let dir = resolved(&workload::below(&plan.work_dir.dir, guard));
        if path.starts_with(&dir) {
            return Err(CommandError::usage(format!(
                "{what} would be written to {}, which is inside {}, the directory of the run's \
                 files; {option} chooses another place",
                path.display(),
                dir.display()
            )));
        }
    }
    Ok(())
}

/// A path with the links of its existing part followed.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for existing in path.ancestors() {
        if let Ok(real) = existing.canonicalize()
            && let Ok(rest) = path.strip_prefix(existing)
        {
            return match rest.as_os_str().is_empty() {
                true => real,
                false => real.join(rest),
            };
        }
    }
    path
}

/// This machine, and the file system of the work directory.
pub fn environment(plan: &Plan, settings: &Settings) -> Environment {
    let work_dir = &plan.work_dir;
    let guards = work_dir.guards.iter();
    let mut dirs: Vec<PathBuf> = guards.map(|g| workload::below(&work_dir.dir, g)).collect();
    if dirs.is_empty() {
        dirs.push(work_dir.dir.clone());
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
