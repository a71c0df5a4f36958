//! A run, from its first phase to its last.

mod claim;
mod clean;
mod cold;
mod command;
mod criteria;
mod finish;
mod host;
mod idle_settings;
mod incremental_populate;
mod lanes;
mod limits;
mod load_phase;
mod marker;
mod memory_pressure;
mod populate;
mod preflight;
mod rank_partition;
mod removal;
mod run_target;
mod runner;
mod setup_pool;
mod stalls;
mod team;
mod tree;
mod verdict;
mod verification;
mod work_dir;

pub use clean::{clean, end_claim};
pub use command::{CommandEnd, Limits, kill_commands, run_command};
pub use marker::is_left_by_run;
pub use preflight::{Preflight, direct_io, preflight};

use crate::stage_state::Sample;
use plimsoll_measure::{
    Clock, ClockKind, DrawnVariable, Interval, LongReplies, Nanos, OpTotals, Outcome, RankStage,
};
use plimsoll_plan::{ByteSum, Layout, Plan, PopulatedFileset};
use plimsoll_ranks::Ranks;
use plimsoll_target::Purpose;
use run_target::RunTarget;
use runner::Runner;
use serde::{Deserialize, Serialize};
use setup_pool::{ContentPools, SetupError, SetupPool};
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use team::RankTeam;

/// Maximum number of connections to a work directory that other runs remove before this run claims the directory.
const MAX_CONNECTIONS: u32 = 16;

/// Settings of a run that do not belong to the workload and so are not in the Plan.
#[derive(Debug, Clone)]
pub struct Settings {
    /// URL of the target on which the workload runs, such as `posix`.
    pub target: String,
    /// Length of the intervals of the time series.
    pub interval: Duration,
    /// Whether a run that keeps its files keeps the work directory claimed, until this process ends
    /// or calls [`end_claim`].
    pub holds: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            target: plimsoll_target::DEFAULT_TARGET.into(),
            interval: Duration::from_secs(1),
            holds: false,
        }
    }
}

impl Settings {
    /// Whether a run on the target is in real or in virtual time, which depends on the target.
    #[must_use]
    pub fn clock(&self) -> ClockKind {
        plimsoll_target::clock(&self.target)
    }
}

/// A request to stop a run from outside. The run ends as interrupted, with the measurements so far.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    run: Arc<AtomicBool>,
    removal: Arc<AtomicBool>,
}

impl Stop {
    /// Requests the run to stop. The run's files are removed nevertheless.
    pub fn request(&self) {
        self.run.store(true, Relaxed);
    }

    /// Whether the run is to stop, because `request` was called on this `Stop` or on a clone.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.run.load(Relaxed)
    }

    /// Requests that the run's files stay, even if their removal has begun.
    pub fn skip_removal(&self) {
        self.removal.store(true, Relaxed);
    }

    /// Whether the run's files are to stay, because `skip_removal` was called on this `Stop` or on a clone.
    #[must_use]
    pub fn skips_removal(&self) -> bool {
        self.removal.load(Relaxed)
    }
}

/// Reason why a run has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum EngineError {
    /// The run was refused before a file was changed, for example because of bad input.
    #[error("{0}")]
    Refused(String),
    /// The run began and failed, with this message, before an outcome existed.
    #[error("{0}")]
    Failed(String),
    /// The run was stopped from outside before anything was measured.
    #[error("interrupted")]
    Interrupted,
}

impl EngineError {
    fn map(self, text: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Refused(e) => Self::Refused(text(e)),
            Self::Failed(e) => Self::Failed(text(e)),
            Self::Interrupted => Self::Interrupted,
        }
    }

    /// Appends the names of files that could not be removed. `Interrupted` has no text, so the names are dropped.
    pub(crate) fn and_unremoved(self, unremoved: &[String]) -> Self {
        self.map(|e| [&[e], unremoved].concat().join("\n"))
    }

    /// The error as other ranks report it, with the number of the rank.
    pub(crate) fn of_rank(self, rank: u32) -> Self {
        self.map(|e| format!("rank {rank}: {e}"))
    }

    pub(crate) fn refused(e: impl Display) -> Self {
        Self::Refused(e.to_string())
    }
}

/// Receives the events and the outcome of a run, on the thread that executes the run.
pub trait Observer {
    /// Called with each event of the run, in the order of the events; the run continues after `event` has returned.
    fn event(&mut self, event: Event<'_>);

    /// Called before a phase; only at rank 0, while no worker works. The run waits for the return of the call;
    /// `stopped` returns true once the run is to end, in which case the call should return soon.
    ///
    /// # Errors
    /// The reason why the phase must not begin, as a sentence. The run fails.
    fn before(&mut self, _phase: PhaseInfo<'_>, _stopped: &dyn Fn() -> bool) -> Result<(), String> {
        Ok(())
    }

    /// Called after a phase that [`before`](Self::before) let begin, even if the phase failed; only at rank 0.
    fn after(&mut self, _phase: PhaseInfo<'_>, _stopped: &dyn Fn() -> bool) {}

    /// Called when nothing more will be measured, before [`after`](Self::after) the last phase, which may take long;
    /// only at rank 0. The argument returns the outcome so far, or `None` without an outcome. [`measured`](Self::measured)
    /// receives the outcome again when the run is over.
    fn all_measured(&mut self, _outcome: &dyn Fn() -> Option<Outcome>) {}

    /// Called with the outcome when the run is over, before the run's files are removed; only at rank 0. The outcome
    /// that the run returns also lists the files that could not be removed.
    fn measured(&mut self, _outcome: &Outcome) {}
}

/// A phase of a run, for [`Observer::before`] and [`Observer::after`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseInfo<'a> {
    /// Files are created or checked.
    Populate,
    /// The workers work: warm-up and measured windows.
    Load,
    /// The ranks of a pattern execute one of its stages.
    Stage {
        /// Name of the stage in the pattern, such as `precreate`.
        name: &'a str,
        /// Number of the repetition of the stage, from 0.
        iteration: u32,
    },
}

impl<'a> PhaseInfo<'a> {
    /// `populate`, `load`, or the name of the stage.
    #[must_use]
    pub fn name(self) -> &'a str {
        match self {
            Self::Populate => "populate",
            Self::Load => "load",
            Self::Stage { name, .. } => name,
        }
    }

    /// Number of the repetition of a stage, from 0; `None` for other phases.
    #[must_use]
    pub fn iteration(self) -> Option<u32> {
        match self {
            Self::Populate | Self::Load => None,
            Self::Stage { iteration, .. } => Some(iteration),
        }
    }
}

/// A step of a run, reported to [`Observer::event`] when the step begins, advances or ends.
#[derive(Debug)]
pub enum Event<'a> {
    /// Populating a fileset begins.
    PopulateStart {
        /// Name of the fileset.
        fileset: &'a str,
        /// Number of files to create.
        files: u64,
        /// Number of bytes to write.
        bytes: ByteSum,
    },
    /// Progress of populating; with several ranks, an estimate from the progress of rank 0.
    PopulateProgress {
        /// Number of files begun.
        files: u64,
        /// Number of bytes written.
        bytes: u64,
    },
    /// A fileset is populated.
    PopulateEnd(&'a PopulatedFileset),
    /// Workers are about to start.
    Started {
        /// Number of workers at all ranks.
        workers: u64,
        /// Number of lanes of this rank.
        lanes: usize,
        /// The clock of the run.
        clock: &'a Clock,
        /// Instant of the start, in nanoseconds of `clock`.
        at: Nanos,
    },
    /// A measured window has opened.
    WindowOpened {
        /// Number of the window, from 1.
        number: u32,
        /// Instant of the opening, in nanoseconds of the run's clock.
        at: Nanos,
    },
    /// An interval of the time series is complete.
    Interval(&'a Interval),
    /// Sent periodically while workers work.
    Tick {
        /// Time since the workers started.
        elapsed: Duration,
        /// Counted operations since the workers started.
        ops: u64,
        /// Bytes that the counted operations moved.
        bytes: u128,
    },
    /// Periodic statistics that the workload requested.
    Snapshot {
        /// Time since the window opened.
        elapsed: Duration,
        /// Period that the statistics cover.
        period: Duration,
        /// Totals of the period, one entry per row.
        rows: &'a [OpTotals],
    },
    /// Text that an `echo` statement in the script of the workload prints.
    Echo(&'a str),
    /// The ranks of a pattern have ended a stage; only at rank 0.
    StageEnd {
        /// Number of the stage in the pattern, from 0.
        stage: u32,
        /// One entry per rank, in rank order.
        ranks: &'a [RankStage],
        /// Totals of all ranks together, one entry per row; empty for a warm-up, which is not measured.
        rows: &'a [OpTotals],
    },
    /// The times of all operations of a row, by one rank in one stage, if the pattern keeps times.
    Samples {
        /// Number of the stage in the pattern, from 0.
        stage: u32,
        /// Rank that executed the operations, from 0.
        rank: u32,
        /// Number of the operations' row in the results, from 0.
        row: u32,
        /// Start and duration of each operation, in the order of the operations.
        samples: &'a [Sample],
    },
    /// The files of the run are being read again.
    Verifying,
    /// The files of the run are being removed.
    Cleaning,
}

/// Runs a Plan in this process alone.
///
/// # Errors
/// [`EngineError::Refused`] before anything was changed. A run that fails later has an outcome with a
/// [`failure`](crate::Outcome::failure).
pub fn run(
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Outcome, EngineError> {
    run_ranks(plan, settings, stop, observer, &Ranks::alone())
}

/// Runs a Plan together with other processes, all of which call this function with the same Plan and settings. Worker i
/// belongs to rank i modulo the number of ranks. Rank 0 returns the outcome of all ranks, any other rank the outcome of
/// its own part.
///
/// # Errors
/// The errors of [`run`] at rank 0. Any other rank also returns an error if the run failed or was interrupted before a
/// measurement.
pub fn run_ranks(
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
    observer: &mut dyn Observer,
    ranks: &Ranks,
) -> Result<Outcome, EngineError> {
    let team = RankTeam::new(ranks);
    let (layouts, long_replies, notes) = team.agree_on_outcome(layouts(plan, settings, &team))?;
    // Rank 0 creates and claims the work directory. The other ranks look for the directory only then, because NFS
    // clients cache that a file is missing.
    let (claimed_by, purpose) = match team.is_root() {
        true => (None, Purpose::Load),
        false => {
            team.agree_on_outcome(Ok(()))?;
            (team.broadcast_from_root(None)?, Purpose::Inspect)
        }
    };
    let ledger = plan.options.verify;
    let ledger = ledger.then(|| verification::ledger(plan, &layouts, team.worker_ranks()));
    let mut runner = Runner {
        ledger,
        plan,
        settings,
        stop,
        observer,
        layouts,
        long_replies,
        notes,
        team: &team,
        claimed_by,
        states: None,
        past: Vec::new(),
        held: None,
    };
    for _ in 0..MAX_CONNECTIONS {
        let ledger = runner.ledger.clone();
        // Without `abort_run`, the other ranks would wait for this rank, which has failed to connect.
        let target = run_target::connect(&settings.target, &plan.work_dir, purpose, ledger)
            .map_err(|e| team.abort_run(EngineError::refused(e)))?;
        if let Some(ended) = runner.execute(target) {
            return ended;
        }
    }
    Err(team.abort_run(EngineError::Refused(format!(
        "`{}`: other runs removed the directory before every attempt to claim the directory",
        plan.work_dir.dir.display()
    ))))
}

/// The commands that remove the files of a run that was killed or skipped the removal; `None` if the target keeps no
/// files, or if the files are to stay.
#[must_use]
pub fn clean_commands(plan: &Plan, target: &str) -> Option<String> {
    let removes = plimsoll_target::keeps_files(target) && !plan.options.keep;
    let guards = Some(&plan.work_dir.guards).filter(|_| removes)?;
    work_dir::clean_commands(plan, guards, target)
}

/// The trees of a Plan's filesets, in the Plan's order.
type Layouts = Vec<Arc<Layout>>;

/// Checks a Plan before the work directory exists. Returns the Plan's trees, and at rank 0 also the server's replies
/// that violated the protocol, and remarks on the run.
fn layouts(
    plan: &Plan,
    settings: &Settings,
    team: &RankTeam<'_>,
) -> Result<(Layouts, Vec<LongReplies>, Vec<String>), EngineError> {
    if !team.is_root() {
        plan.check().map_err(EngineError::refused)?;
        return Ok((preflight::layouts(plan)?, vec![], vec![]));
    }
    let mut look = preflight::look(plan, settings, team.worker_ranks())?;
    look.refusals
        .extend(rank_partition::refusals(plan, settings, team));
    match look.refusals.is_empty() {
        true => Ok((look.layouts, look.long_replies, look.notes)),
        false => Err(EngineError::Refused(look.refusals.join("\n"))),
    }
}

pub(crate) fn setup_pool(
    target: Arc<dyn RunTarget>,
    plan: &Plan,
) -> Result<SetupPool, EngineError> {
    let contents = ContentPools::new(plan).map_err(|e| {
        EngineError::Failed(format!("not enough memory for the data to write: {e}"))
    })?;
    Ok(SetupPool {
        target,
        contents,
        stop: Arc::default(),
        silence: None,
    })
}

/// A path below the work directory as text; `""` is the work directory.
pub(crate) fn path_in(plan: &Plan, path: &str) -> String {
    let dir = &plan.work_dir.dir;
    let path = match path {
        "" => dir.clone(),
        path => dir.join(path),
    };
    path.display().to_string()
}

pub(crate) fn setup_error(pool: &SetupPool, plan: &Plan, e: SetupError) -> EngineError {
    match e {
        SetupError::Stopped => EngineError::Interrupted,
        SetupError::Failed {
            action,
            path,
            error,
        } => {
            let path = path_in(plan, &path);
            let why = pool.target.explain(error);
            EngineError::Failed(format!("cannot {action} `{path}`: {why}"))
        }
    }
}

/// Statistics of the values that each testrandvar operation drew.
pub(crate) fn drawn_variables(
    plan: &Plan,
    stats: &[(u32, plimsoll_measure::VariableStats)],
) -> Vec<DrawnVariable> {
    let drawn = stats.iter().map(|(row, stats)| DrawnVariable {
        name: plan.operations[*row as usize].name.clone(),
        stats: *stats,
    });
    drawn.collect()
}
