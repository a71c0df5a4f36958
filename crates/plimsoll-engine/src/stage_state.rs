//! Stages of a pattern: how far its ranks have come, and what a stage did.

use crate::sync::{BlockedCount, Broadcast, ControllerWakeup};
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::Nanos;
use plimsoll_plan::{Pattern, Plan, Stage};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

/// No number yet.
const NO_ROUND: u64 = u64::MAX;

/// When an operation of a rank began, in nanoseconds after the stage did, and how long it took.
pub type Sample = (Nanos, Nanos);

/// How far the ranks of a pattern have come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankStates {
    /// Number of the next object of each rank.
    pub(crate) position: Vec<u64>,
    /// Rounds each rank did in the last stage that made objects.
    pub(crate) made: Vec<u64>,
}

impl RankStates {
    pub(crate) fn new(pattern: &Pattern) -> Self {
        let ranks = pattern.ranks as usize;
        Self {
            position: (0..pattern.ranks)
                .map(|rank| pattern.position_of(rank))
                .collect(),
            made: vec![0; ranks],
        }
    }
}

/// A stage that is running, as its rank and the controller see it.
pub(crate) struct StageRun {
    pub(crate) stage: u32,
    pub(crate) states: RankStates,
    /// Other ranks have a say in how many rounds are done after a stonewall.
    pub(crate) others: bool,
    /// Rounds done when the stonewall came or all were done, for the ranks to agree on.
    proposed: AtomicU64,
    agreed: AtomicU64,
    changed: Broadcast,
    bell: Arc<ControllerWakeup>,
    pub(crate) done: Mutex<Option<StageDone>>,
}

/// What a rank did in a stage, besides what its recorder has.
#[derive(Debug, Default)]
pub(crate) struct StageDone {
    pub(crate) begun: Nanos,
    pub(crate) ended: Nanos,
    pub(crate) rounds: u64,
    pub(crate) stonewall_rounds: Option<u64>,
    /// When it came, after the stage began.
    pub(crate) stonewall: Option<Nanos>,
    /// Time spent on waiting until all ranks had agreed on their rounds.
    pub(crate) waited: Nanos,
    /// For each row, if they are kept.
    pub(crate) samples: Vec<Vec<Sample>>,
}

impl StageRun {
    pub(crate) fn new(
        stage: u32,
        states: RankStates,
        others: bool,
        bell: Arc<ControllerWakeup>,
    ) -> Self {
        Self {
            stage,
            states,
            others,
            proposed: AtomicU64::new(NO_ROUND),
            agreed: AtomicU64::new(NO_ROUND),
            changed: Broadcast::default(),
            bell,
            done: Mutex::default(),
        }
    }

    /// The stage itself.
    pub(crate) fn of<'a>(&self, plan: &'a Plan) -> Option<(&'a Pattern, &'a Stage)> {
        let pattern = plan.groups.first()?.program.pattern()?;
        Some((pattern, pattern.stages.get(self.stage as usize)?))
    }

    /// Rounds the rank of this process has done, once it waits for the others to agree.
    pub(crate) fn proposed(&self) -> Option<u64> {
        Some(self.proposed.load(SeqCst)).filter(|n| *n != NO_ROUND)
    }

    /// All ranks have agreed.
    pub(crate) fn agree(&self, rounds: u64) {
        self.agreed.store(rounds, SeqCst);
        self.changed.wake_all();
    }

    /// The largest number of rounds that a rank has done.
    pub(crate) async fn agreed(
        &self,
        lane: &Lane,
        idle: &BlockedCount,
        rounds: u64,
    ) -> Result<u64, Stopped> {
        if !self.others {
            return Ok(rounds);
        }
        self.proposed.store(rounds, SeqCst);
        self.bell.ring();
        let look = || Some(self.agreed.load(SeqCst)).filter(|n| *n != NO_ROUND);
        self.changed.until(lane, idle, look).await
    }
}
