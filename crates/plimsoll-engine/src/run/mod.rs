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
pub use preflight::{Preflight, preflight};

use crate::stage_state::Sample;
use plimsoll_measure::{
    Clock, ClockKind, DrawnVariable, Interval, LongReplies, Nanos, OpTotals, Outcome, RankStage,
};
use plimsoll_plan::{ByteSum, Layout, Plan, PopulatedFileset};
use plimsoll_ranks::{Ranks, Solo};
use plimsoll_target::{ContentPool, Purpose, Target};
use runner::{Runner, Visit};
use serde::{Deserialize, Serialize};
use setup_pool::{SetupError, SetupPool};
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use team::RankTeam;

/// Maximum number of connections to a work directory that other runs remove before this run claims the directory.
const MAX_CONNECTIONS: u32 = 16;

/// Settings of a run that are not in the Plan.
#[derive(Debug, Clone)]
pub struct Settings {
    /// URL of the target.
    pub target: String,
    /// Real or virtual time.
    pub clock: ClockKind,
    /// The number of lanes, on targets whose lanes are shared; by default one per processor.
    pub lanes: Option<usize>,
    /// Length of the intervals of the series.
    pub interval: Duration,
    /// Whether a run that keeps its files keeps the work directory claimed, until this process ends
    /// or calls [`end_claim`].
    pub holds: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            target: plimsoll_target::DEFAULT_TARGET.into(),
            clock: ClockKind::Real,
            lanes: None,
            interval: Duration::from_secs(1),
            holds: false,
        }
    }
}

/// Stops a run from outside: it ends as interrupted, with what was measured so far.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    run: Arc<AtomicBool>,
    removal: Arc<AtomicBool>,
}

impl Stop {
    /// Requests the run to stop. Its files are removed nevertheless.
    pub fn request(&self) {
        self.run.store(true, Relaxed);
    }

    /// Whether the run is requested to stop.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.run.load(Relaxed)
    }

    /// Leaves the files where they are, even if their removal has begun.
    pub fn skip_removal(&self) {
        self.removal.store(true, Relaxed);
    }

    /// Whether files are to be left where they are.
    #[must_use]
    pub fn skips_removal(&self) -> bool {
        self.removal.load(Relaxed)
    }
}

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum EngineError {
    /// The run was not begun, because of bad input.
    #[error("{0}")]
    Refused(String),
    /// The run failed.
    #[error("{0}")]
    Failed(String),
    /// The run was stopped from outside before there was anything to measure.
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

    /// Adds what could not be removed. An interrupted run has an outcome with it instead.
    pub(crate) fn and_unremoved(self, unremoved: &[String]) -> Self {
        self.map(|e| [&[e], unremoved].concat().join("\n"))
    }

    /// The error as other ranks report it.
    pub(crate) fn of_rank(self, rank: u32) -> Self {
        self.map(|e| format!("rank {rank}: {e}"))
    }

    pub(crate) fn refused(e: impl Display) -> Self {
        Self::Refused(e.to_string())
    }
}

/// Receives the events of a run.
pub trait Observer {
    /// Receives an event.
    fn event(&mut self, event: Event<'_>);

    /// Called before a phase; only at rank 0, while no worker works. The run waits for it to return,
    /// and `stopped` returns true when the run is to end instead.
    ///
    /// # Errors
    /// Why the phase must not begin, as a sentence: the run fails.
    fn before(&mut self, _phase: PhaseInfo<'_>, _stopped: &dyn Fn() -> bool) -> Result<(), String> {
        Ok(())
    }

    /// Called after a phase that [`before`](Self::before) let begin, even if it failed.
    fn after(&mut self, _phase: PhaseInfo<'_>, _stopped: &dyn Fn() -> bool) {}

    /// Called with the outcome so far when all is measured; only at rank 0, before
    /// [`after`](Self::after) the last phase, which may take long. `None` if there is no outcome.
    /// [`measured`](Self::measured) has it again when the run is over.
    fn all_measured(&mut self, _outcome: &dyn Fn() -> Option<Outcome>) {}

    /// Called with the outcome when the run is over; only at rank 0. Its files have not been removed
    /// yet: the outcome that the run returns has what could not be removed.
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
        /// Name of the stage.
        name: &'a str,
        /// Number of the repetition, from 0.
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

    /// Number of the repetition of a stage, from 0.
    #[must_use]
    pub fn iteration(self) -> Option<u32> {
        match self {
            Self::Populate | Self::Load => None,
            Self::Stage { iteration, .. } => Some(iteration),
        }
    }
}

/// An event of a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// Populating a fileset begins.
    PopulateStart {
        /// Name of the fileset.
        fileset: &'a str,
        /// Files that it will have.
        files: u64,
        /// Bytes that they will have.
        bytes: ByteSum,
    },
    /// Progress of populating; with several ranks an estimate from that of rank 0.
    PopulateProgress {
        /// Files begun.
        files: u64,
        /// Bytes written.
        bytes: u64,
    },
    /// A fileset is populated.
    PopulateEnd(&'a PopulatedFileset),
    /// Workers have started.
    Started {
        /// Number of workers at all ranks.
        workers: u64,
        /// Number of lanes of this rank.
        lanes: usize,
        /// The clock of the run.
        clock: &'a Clock,
        /// When they started, by that clock.
        at: Nanos,
    },
    /// A measured window has opened.
    WindowOpened {
        /// Number of the window, from 1.
        number: u32,
        /// When it opened, by the clock of the run.
        at: Nanos,
    },
    /// An interval of the series is complete.
    Interval(&'a Interval),
    /// A periodic event while workers work.
    Tick {
        /// Time since the workers started.
        elapsed: Duration,
        /// Operations that count, since the workers started.
        ops: u64,
        /// Bytes they moved.
        bytes: u128,
    },
    /// Statistics that the workload requested.
    Snapshot {
        /// Time since the window opened.
        elapsed: Duration,
        /// The time in which they were measured.
        period: Duration,
        /// One entry per row.
        rows: &'a [OpTotals],
    },
    /// The workload prints a line.
    Echo(&'a str),
    /// The ranks of a pattern have ended a stage; only at rank 0.
    StageEnd {
        /// Number of the stage in the pattern, from 0.
        stage: u32,
        /// One entry per rank, in rank order.
        ranks: &'a [RankStage],
        /// All ranks together, one entry per row; empty for a warm-up, which is not measured.
        rows: &'a [OpTotals],
    },
    /// The times of all operations of a row by a rank in a stage, if they are kept.
    Samples {
        /// Number of the stage in the pattern, from 0.
        stage: u32,
        /// The rank.
        rank: u32,
        /// Row of the results.
        row: u32,
        /// In the order of the operations.
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
/// [`EngineError::Refused`] before anything was changed. A run that failed later has an outcome with
/// a [`failure`](crate::Outcome::failure).
pub fn run(
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Outcome, EngineError> {
    run_ranks(plan, settings, stop, observer, &Solo::default())
}

/// Runs a Plan together with other processes, which all call this with the same Plan and
/// settings. Worker i belongs to rank i modulo the ranks. Rank 0 returns the outcome of all ranks,
/// the others their own part of it.
///
/// # Errors
/// Those of [`run`] at rank 0; the other ranks also return an error instead of an outcome without a
/// window.
pub fn run_ranks(
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
    observer: &mut dyn Observer,
    ranks: &dyn Ranks,
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
    let mut visitor = Runner {
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
        let connect = plimsoll_target::connect;
        match connect(&settings.target, &plan.work_dir, purpose, visitor) {
            Ok(Visit::Ended(outcome)) => return *outcome,
            Ok(Visit::Vanished(again)) => visitor = *again,
            // The visitor was not called; the other ranks wait for the result.
            Err(e) => return Err(team.abort_run(EngineError::refused(e))),
        }
    }
    Err(team.abort_run(EngineError::Refused(format!(
        "`{}`: other runs removed the directory before every attempt to claim the directory",
        plan.work_dir.dir.display()
    ))))
}

/// The commands that remove the files of a run that was killed or skipped their removal; `None` if
/// there are none, or if they are to stay.
#[must_use]
pub fn clean_commands(plan: &Plan, target: &str) -> Option<String> {
    let removes = plimsoll_target::keeps_files(target) && !plan.options.keep;
    let guards = Some(&plan.work_dir.guards).filter(|_| removes)?;
    work_dir::clean_commands(plan, guards, target)
}

/// The trees of a Plan.
type Layouts = Vec<Arc<Layout>>;

/// Checks a Plan before the work directory exists. Returns its trees, and at rank 0 the server's
/// replies that violate its protocol, and remarks on the run.
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

pub(crate) fn setup_pool<T: Target>(
    target: Arc<T>,
    plan: &Plan,
) -> Result<SetupPool<T>, EngineError> {
    let content = ContentPool::new(plan.options.content, plan.stream("content")).map_err(|e| {
        EngineError::Failed(format!("not enough memory for the data to write: {e}"))
    })?;
    Ok(SetupPool {
        target,
        content,
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

pub(crate) fn setup_error<T: Target>(
    pool: &SetupPool<T>,
    plan: &Plan,
    e: SetupError,
) -> EngineError {
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

/// The draws of testrandvar, by operation.
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
