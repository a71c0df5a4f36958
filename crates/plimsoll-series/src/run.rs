//! One run of a Plan, by all ranks, with its results.

use crate::commands::{HookRunner, RunFacts};
use crate::communicator::{Communicator, SilentObserver};
use crate::conductor::Conductor;
use crate::config::RunConfig;
use crate::error::SeriesError;
use crate::events::{EventRunner, EventSpec, ShellExecutor};
use crate::host::{Host, RunBegin};
use crate::results_writer::{ResultsWriter, Written};
use plimsoll_engine::{EngineError, Outcome, Settings, Stop};
use plimsoll_plan::{Failure, Plan};
use plimsoll_results::{
    Document, Environment, MeasuredRun, ReadSource, ResultsError, Run, RunWriter,
};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Context that the runs of a command share: ranks, host and options.
#[derive(Clone)]
pub struct RunContext<'a> {
    /// Communicator of the ranks that execute each run together.
    pub communicator: &'a Communicator,
    /// The program around the runs, which receives reports and requests stops.
    pub host: &'a dyn Host,
    /// Whether the results of each rank are kept (`--per-rank`).
    pub per_rank: bool,
    /// Timed events that this program executes in each run, and hooks around the phases.
    pub events: Vec<EventSpec>,
    /// Converts the error of results that cannot be created into a refusal or a failure.
    pub results_error: fn(ResultsError) -> SeriesError,
}

impl<'a> RunContext<'a> {
    /// A context for runs without hooks, timed events and results per rank.
    #[must_use]
    pub fn new(communicator: &'a Communicator, host: &'a dyn Host) -> Self {
        Self {
            communicator,
            host,
            per_rank: false,
            events: vec![],
            results_error: |e| SeriesError::results_path(&e),
        }
    }

    /// Number of ranks in the results. In virtual time, the ranks of a pattern are workers of a single process.
    fn ranks(&self, plan: &Plan) -> u32 {
        plan.pattern()
            .map_or(self.communicator.working(), |pattern| pattern.ranks)
    }

    /// Input for the results of a run that begins, without measurements. Only rank 0 inspects the work directory,
    /// because only rank 0 creates the directory: an NFS client that has looked up a missing directory may keep
    /// reporting the directory as missing.
    fn metadata(&self, config: &RunConfig, started: SystemTime) -> MeasuredRun {
        let environment = match self.communicator.is_root() {
            true => environment(&config.plan, &config.settings()),
            false => Environment::look(None),
        };
        MeasuredRun {
            environment,
            ranks: self.ranks(&config.plan),
            ..config.unmeasured(started)
        }
    }

    /// Runs the Plan at a rank other than 0, without reporting. Returns `false` if the run failed.
    ///
    /// # Errors
    /// If a rank is lost.
    pub fn run_as_member(&self, config: &RunConfig) -> Result<bool, SeriesError> {
        let (mut config, mut settings) = (config.clone(), config.settings());
        if let Some((plan, at_host)) = self.host.at_this_host(&config.plan, &settings) {
            config.target.url.clone_from(&at_host.target);
            (config.plan, settings) = (plan, at_host);
        }
        let metadata = self.metadata(&config, plimsoll_runtime::system_time());
        let ranks = self.communicator.ranks();
        let (plan, stop) = (&config.plan, self.host.stop());
        let ran = plimsoll_engine::run_ranks(plan, &settings, stop, &mut SilentObserver, ranks);
        // The engine tells rank 0 of the error, and rank 0 reports the error.
        let Ok(outcome) = ran else {
            return Ok(false);
        };
        if self.per_rank {
            // The mount counters of a single rank cannot be separated from the traffic of other ranks.
            let environment = Environment {
                read_source: None,
                ..environment(plan, &settings)
            };
            let metadata = MeasuredRun {
                environment,
                ..metadata
            };
            let own = Run::assemble(metadata.with(outcome));
            self.communicator.collect(own.to_json(), |_, _| ())?;
        }
        Ok(true)
    }

    /// Begins a run at rank 0, with results in `writer`.
    ///
    /// # Errors
    /// If the results cannot be written, or a thread cannot be started.
    pub fn begin<'b>(
        &'b self,
        config: &'b RunConfig,
        facts: &'b RunFacts,
        writer: RunWriter,
        started: SystemTime,
    ) -> Result<Conductor<'b>, SeriesError> {
        let plan = &config.plan;
        let ranks = self.ranks(plan);
        let each = self.per_rank.then_some(self.communicator);
        let events = self.events(config, facts, writer.path())?;
        let metadata = MeasuredRun {
            events: events.as_ref().map_or_else(Vec::new, EventRunner::draft),
            ..self.metadata(config, started)
        };
        let results = ResultsWriter::begin(writer, metadata, each, self.host);
        let results = results.map_err(self.results_error)?;
        let target = &config.target.url;
        let hooks = HookRunner::new(&self.events, plan, target, ranks, facts);
        Ok(Conductor {
            plan,
            host: self.host,
            view: self.host.view(RunBegin {
                config,
                ranks: self.communicator.working(),
                facts,
            }),
            results,
            hooks: Some(hooks),
            events,
            notes: vec![],
        })
    }

    /// Starts the timed events of a run, whose commands write their output into the results directory `results`; `None`
    /// without events.
    fn events(
        &self,
        config: &RunConfig,
        facts: &RunFacts,
        results: &Path,
    ) -> Result<Option<EventRunner>, SeriesError> {
        let target = &config.target.url;
        let variables = facts.variables(&config.plan, target, self.ranks(&config.plan));
        let executor = Box::new(ShellExecutor::new(variables, results));
        let simulated = plimsoll_target::system_events(target);
        let stop = self.host.stop();
        EventRunner::new(&self.events, simulated, executor, &config.plan, stop)
            .map_err(|e| SeriesError::failed(format!("cannot start the thread of events: {e}")))
    }

    /// Runs the Plan at rank 0, together with all ranks, and writes the results with the writer that `writer` makes.
    ///
    /// # Errors
    /// If the results cannot be created, a thread cannot be started, or the run is refused; a refused run has measured
    /// nothing.
    pub fn run_as_root(
        &self,
        config: &RunConfig,
        facts: &RunFacts,
        writer: impl FnOnce(SystemTime) -> Result<RunWriter, ResultsError>,
    ) -> Result<Written, SeriesError> {
        let started = plimsoll_runtime::system_time();
        let writer = writer(started).map_err(self.results_error)?;
        let mut conductor = self.begin(config, facts, writer, started)?;
        let (ranks, stop) = (self.communicator.ranks(), self.host.stop());
        let settings = config.settings();
        let ran = plimsoll_engine::run_ranks(&config.plan, &settings, stop, &mut conductor, ranks);
        let outcome = outcome_or_refusal(ran);
        match outcome {
            Ok(outcome) => Ok(conductor.end(outcome)),
            Err(refused) => {
                // The view is closed before the error is reported, so that the output of the view does not mix with the
                // error.
                drop(conductor);
                Err(refused)
            }
        }
    }
}

/// Runs a Plan in this process alone, without writing results.
///
/// # Errors
/// If the run is refused.
pub fn run_without_results(config: &RunConfig, stop: &Stop) -> Result<Run, SeriesError> {
    let settings = config.settings();
    let ran = plimsoll_engine::run(&config.plan, &settings, stop, &mut SilentObserver);
    let metadata = MeasuredRun {
        environment: Environment::look(None),
        ..config.unmeasured(plimsoll_runtime::system_time())
    };
    Ok(Run::assemble(metadata.with(outcome_or_refusal(ran)?)))
}

/// Converts the engine's result of a run into an outcome: a failed or interrupted run has an outcome, a refused run has
/// none.
///
/// # Errors
/// If the run was refused.
pub fn outcome_or_refusal(ran: Result<Outcome, EngineError>) -> Result<Outcome, SeriesError> {
    match ran {
        Ok(outcome) => Ok(outcome),
        Err(EngineError::Refused(reason)) => Err(SeriesError::Refused(reason)),
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

/// Refuses a results directory below a directory reserved for the run's files.
///
/// # Errors
/// If the results directory is below a reserved directory.
pub fn refuse_results_among_files(
    results: &Path,
    plan: &Plan,
    target: &str,
) -> Result<(), SeriesError> {
    if plimsoll_target::is_local(target) {
        refuse_among_files("the results", results, "--results", plan)
    } else {
        Ok(())
    }
}

/// Refuses the path of an option below a directory reserved for the run's files. `what` names the data that would be
/// written to the path.
///
/// # Errors
/// If the path is below a reserved directory.
pub fn refuse_among_files(
    what: &str,
    path: &Path,
    option: &str,
    plan: &Plan,
) -> Result<(), SeriesError> {
    let path = resolved(path);
    for guard in &plan.work_dir.guards {
        let dir = resolved(&guard.below(&plan.work_dir.dir));
        if path.starts_with(&dir) {
            return Err(SeriesError::refused(format!(
                "{what} would be written to {}, which is inside {}, the directory of the run's \
                 files; {option} chooses another place",
                path.display(),
                dir.display()
            )));
        }
    }
    Ok(())
}

/// Makes a path absolute, and resolves symbolic links in the existing part of the path.
fn resolved(path: &Path) -> PathBuf {
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

/// Description of this machine, and of the file system of the work directory.
#[must_use]
pub fn environment(plan: &Plan, settings: &Settings) -> Environment {
    let work_dir = &plan.work_dir;
    let guards = work_dir.guards.iter();
    let mut dirs: Vec<PathBuf> = guards.map(|g| g.below(&work_dir.dir)).collect();
    if dirs.is_empty() {
        dirs.push(work_dir.dir.clone());
    }
    let local = plimsoll_target::is_local(&settings.target);
    let device = plimsoll_target::device_of(&settings.target);
    Environment {
        read_source: match plimsoll_target::is_remote(&settings.target) {
            _ if local => ReadSource::of_directories(&dirs),
            false if device.is_some() => device.and_then(ReadSource::of_block_device),
            true => Some(ReadSource::NfsClient),
            false => None,
        },
        ..Environment::look(local.then_some(dirs[0].as_path()))
    }
}
