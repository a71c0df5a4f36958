//! A run from its first phase to its last.

mod clean;
mod cold;
mod command;
mod criteria;
mod finish;
mod host;
mod idle_settings;
mod incremental_populate;
mod lanes;
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
mod work_dir;

pub use clean::{clean, release_claim};
pub use command::{CommandEnd, Limits, kill_commands, run_command};
pub use preflight::{Preflight, preflight};

use crate::outcome::{DrawnVariable, Outcome};
use crate::stage_state::Sample;
use plimsoll_measure::{ClockKind, Interval, OpTotals, RankStage};
use plimsoll_plan::{Layout, Plan, PopulatedFileset};
use plimsoll_ranks::{Ranks, Solo};
use plimsoll_target::{ContentPool, LongReplies, Purpose, Target};
use runner::Runner;
use setup_pool::{SetupError, SetupPool};
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use team::RankTeam;

/// How a run is made, whatever the Plan.
#[derive(Debug, Clone)]
pub struct Settings {
    /// URL of the target.
    pub target: String,
    /// Real or virtual time.
    pub clock: ClockKind,
    /// Lanes that share the workers, on targets whose lanes are shared; without it one for each
    /// processor.
    pub lanes: Option<usize>,
    /// Length of an interval of the series.
    pub interval: Duration,
    /// A run that keeps its files keeps the work directory too: nobody else may use it until this
    /// process has ended, or gives it up by [`clean`] or [`release_claim`].
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
    /// Asks the run to stop. Its files are removed all the same.
    pub fn request(&self) {
        self.run.store(true, Relaxed);
    }

    /// Whether it was asked to.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.run.load(Relaxed)
    }

    /// Asks for files to be left where they are, also those whose removal has begun.
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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The run was not begun: bad input.
    #[error("{0}")]
    Refused(String),
    /// The run could not be carried out.
    #[error("{0}")]
    Failed(String),
    /// The run was stopped from outside before there was anything to measure.
    #[error("interrupted")]
    Interrupted,
}

impl EngineError {
    /// The same, with what could not be removed afterwards.
    pub(crate) fn and_unremoved(self, unremoved: &[String]) -> Self {
        let with = |e: String| [&[e], unremoved].concat().join("\n");
        match self {
            Self::Refused(e) => Self::Refused(with(e)),
            Self::Failed(e) => Self::Failed(with(e)),
            // Rank 0 has an outcome instead, which says it.
            Self::Interrupted => Self::Interrupted,
        }
    }

    pub(crate) fn refused(e: impl Display) -> Self {
        Self::Refused(e.to_string())
    }
}

/// Is told what happens while a run goes on.
pub trait Observer {
    /// Something happened.
    fn event(&mut self, event: Event<'_>);

    /// A phase is about to begin; only at rank 0, while no worker works. The run waits for this to
    /// return, and `stopped` says when it is to end instead.
    ///
    /// # Errors
    /// A sentence why the phase must not begin: the run fails.
    fn before(&mut self, _phase: PhaseInfo<'_>, _stopped: &dyn Fn() -> bool) -> Result<(), String> {
        Ok(())
    }

    /// A phase that [`before`](Self::before) let begin has ended, however it did.
    fn after(&mut self, _phase: PhaseInfo<'_>, _stopped: &dyn Fn() -> bool) {}

    /// Nothing more will be measured, and this is what the run has come to so far; only at rank 0,
    /// before [`after`](Self::after) the last phase, which may take its time. `None` if that is
    /// nothing. [`measured`](Self::measured) says it again once the run is over.
    fn all_measured(&mut self, _outcome: &dyn Fn() -> Option<Outcome>) {}

    /// The run is over, and this is what it came to; only at rank 0. Its files have not been touched
    /// yet: what of them cannot be removed is known afterwards, and in the outcome that the run
    /// returns.
    fn measured(&mut self, _outcome: &Outcome) {}
}

/// A phase of a run, as [`Observer::before`] and [`Observer::after`] are told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseInfo<'a> {
    /// Files are made, or looked at.
    Populate,
    /// The workers work: warm-up, and what is measured.
    Load,
    /// The ranks of a pattern do one of its stages.
    Stage {
        /// Name of the stage.
        name: &'a str,
        /// Which repetition it is, from 0.
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

    /// Which repetition of a stage it is, from 0.
    #[must_use]
    pub fn iteration(self) -> Option<u32> {
        match self {
            Self::Populate | Self::Load => None,
            Self::Stage { iteration, .. } => Some(iteration),
        }
    }
}

/// What happens while a run goes on.
#[derive(Debug)]
pub enum Event<'a> {
    /// A fileset is being made or checked.
    PopulateStart {
        /// Its name.
        fileset: &'a str,
        /// Files it will have.
        files: u64,
        /// Bytes they will have.
        bytes: u64,
    },
    /// So much of it is made; of several ranks an estimate from what rank 0 has made.
    PopulateProgress {
        /// Files begun.
        files: u64,
        /// Bytes written.
        bytes: u64,
    },
    /// A fileset is there.
    PopulateEnd(&'a PopulatedFileset),
    /// Workers have started.
    Started {
        /// How many, at all ranks.
        workers: u64,
        /// Lanes that drive those of this rank.
        lanes: usize,
    },
    /// A measured window opens, or opened just now.
    WindowOpened {
        /// Its number, from 1.
        number: u32,
    },
    /// An interval of the series is complete.
    Interval(&'a Interval),
    /// The run goes on.
    Tick {
        /// Time since the workers started.
        elapsed: Duration,
        /// Operations that count, since the workers started.
        ops: u64,
        /// Bytes they moved.
        bytes: u64,
    },
    /// Statistics the workload asked for.
    Snapshot {
        /// Time since the window opened.
        elapsed: Duration,
        /// Time the figures are of.
        period: Duration,
        /// One entry a row.
        rows: &'a [OpTotals],
    },
    /// The workload prints a line.
    Echo(&'a str),
    /// The ranks of a pattern have ended a stage; only at rank 0.
    StageEnd {
        /// Number of the stage in the pattern, from 0.
        stage: u32,
        /// One entry a rank, in their order.
        ranks: &'a [RankStage],
        /// All ranks together, one entry a row; empty for a warm-up, which is not measured.
        rows: &'a [OpTotals],
    },
    /// The time of every operation of a row that a rank did in a stage, where it is kept.
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
    /// The files of the run are being removed.
    Cleaning,
}

/// Runs a Plan in this process alone.
///
/// # Errors
/// [`EngineError::Refused`] before anything was done. A run that could not be carried out has an
/// outcome that says so, as has one of which an operation failed: see
/// [`Outcome::failure`](crate::Outcome::failure).
pub fn run(
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Outcome, EngineError> {
    run_ranks(plan, settings, stop, observer, &Solo::default())
}

/// Runs a Plan together with other processes, which all call this with the same Plan and
/// settings. Worker i belongs to rank i modulo the ranks. The outcome of all ranks is at rank 0;
/// the others have their own part of it.
///
/// # Errors
/// As [`run`] at rank 0; the other ranks have an error where it has an outcome without a window.
pub fn run_ranks(
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
    observer: &mut dyn Observer,
    ranks: &dyn Ranks,
) -> Result<Outcome, EngineError> {
    let team = RankTeam::new(ranks);
    let (layouts, long_replies, notes) = team.agree_on_outcome(layouts(plan, settings, &team))?;
    // Rank 0 makes the work directory and marks it as its own; the others have not looked for it
    // yet, since NFS would go on telling them that it is missing.
    let (marked_by, purpose) = match team.is_root() {
        true => (None, Purpose::Load),
        false => {
            team.agree_on_outcome(Ok(()))?;
            (team.broadcast_from_root(None)?, Purpose::Inspect)
        }
    };
    let visitor = Runner {
        plan,
        settings,
        stop,
        observer,
        layouts,
        long_replies,
        notes,
        team: &team,
        marked_by,
        states: None,
        past: Vec::new(),
        held: None,
    };
    let connected = plimsoll_target::connect(&settings.target, &plan.work_dir, purpose, visitor);
    match connected {
        Ok(outcome) => outcome,
        // The visitor never ran; the other ranks wait to hear how this went.
        Err(e) => Err(team
            .agree_on_outcome::<()>(Err(EngineError::refused(&e)))
            .err()
            .unwrap_or_else(|| EngineError::refused(e))),
    }
}

/// The commands that remove what a run of a Plan left, if it was killed or its removal was skipped;
/// `None` if it leaves nothing, or if its files are to stay.
#[must_use]
pub fn clean_commands(plan: &Plan, target: &str) -> Option<String> {
    let removes = plimsoll_target::keeps_files(target) && !plan.options.keep;
    let guards = Some(&plan.work_dir.guards).filter(|_| removes)?;
    work_dir::clean_commands(plan, guards, target)
}

/// The trees of a Plan.
type Layouts = Vec<Arc<Layout>>;

/// The trees of a Plan that may be run, as far as this rank can tell before there is a work
/// directory; what replies of the server had beyond its protocol meanwhile; and what is to be said
/// of the run at rank 0.
fn layouts(
    plan: &Plan,
    settings: &Settings,
    team: &RankTeam<'_>,
) -> Result<(Layouts, Vec<LongReplies>, Vec<String>), EngineError> {
    if !team.is_root() {
        plan.check().map_err(EngineError::refused)?;
        return Ok((preflight::layouts(plan)?, vec![], vec![]));
    }
    let mut look = preflight::look(plan, settings, team.size())?;
    look.refusals
        .extend(rank_partition::refusals(plan, settings, team.size()));
    match look.refusals.is_empty() {
        true => Ok((look.layouts, look.long_replies, look.notes)),
        false => Err(EngineError::Refused(look.refusals.join("\n"))),
    }
}

pub(crate) fn setup_pool<T: Target>(
    target: Arc<T>,
    plan: &Plan,
) -> Result<SetupPool<T>, EngineError> {
    let content = ContentPool::new(plan.options.content, plan.stream("content"))
        .map_err(|e| EngineError::Failed(format!("no memory for what is written: {e}")))?;
    Ok(SetupPool {
        target,
        content,
        stop: Arc::default(),
        silence: None,
    })
}

/// A path below the work directory as it is shown; `""` is the work directory.
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

/// What testrandvar drew, by operation.
pub(crate) fn drawn_variables(
    plan: &Plan,
    stats: &[(u32, crate::VariableStats)],
) -> Vec<DrawnVariable> {
    let name = |row: u32| plan.operations[row as usize].name.clone();
    stats
        .iter()
        .map(|(row, stats)| DrawnVariable {
            name: name(*row),
            stats: *stats,
        })
        .collect()
}
