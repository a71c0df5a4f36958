//! Stages of a pattern: the progress of its ranks, and the results of a stage.

use crate::sync::{BlockedCount, Broadcast, ControllerWakeup};
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::Nanos;
use plimsoll_plan::{Pattern, Plan, Stage};
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

/// The number of rounds is not known yet.
const NO_ROUND: u64 = u64::MAX;

/// The start of an operation, in nanoseconds since the stage began, and its duration in nanoseconds.
pub type Sample = (Nanos, Nanos);

/// The progress of the ranks of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RankStates {
    /// The number of the next object of each rank.
    pub(crate) position: Vec<u64>,
    /// Rounds of each rank in the last stage that created objects.
    pub(crate) made: Vec<u64>,
}

impl RankStates {
    pub(crate) fn new(pattern: &Pattern) -> Self {
        let ranks = 0..pattern.ranks;
        Self {
            made: vec![0; ranks.len()],
            position: ranks.map(|rank| pattern.position_of(rank)).collect(),
        }
    }
}

/// A stage that is running, as its rank and the controller see it.
pub(crate) struct StageRun {
    pub(crate) stage: u32,
    pub(crate) states: RankStates,
    /// Whether there are other ranks, which agree on the rounds after a stonewall.
    others: bool,
    /// Rounds completed when the stonewall came or all were completed, for the ranks to agree on.
    proposed: AtomicU64,
    agreed: AtomicU64,
    changed: Broadcast,
    bell: Arc<ControllerWakeup>,
    pub(crate) done: Mutex<Option<StageDone>>,
}

/// The results of a rank in a stage that are not in its recorder.
#[derive(Debug, Default)]
pub(crate) struct StageDone {
    pub(crate) begun: Nanos,
    pub(crate) ended: Nanos,
    pub(crate) rounds: u64,
    pub(crate) stonewall_rounds: Option<u64>,
    /// When the stonewall came, in nanoseconds since the stage began.
    pub(crate) stonewall: Option<Nanos>,
    /// Time in nanoseconds until all ranks had agreed on their rounds.
    pub(crate) waited: Nanos,
    /// The samples of each row; empty if they are not kept.
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

    /// The pattern and its stage.
    pub(crate) fn of<'a>(&self, plan: &'a Plan) -> (&'a Pattern, &'a Stage) {
        let pattern = plan.pattern().expect("only patterns have stages");
        (pattern, &pattern.stages[self.stage as usize])
    }

    /// Rounds that the rank of this process has completed, once it waits for the others to agree.
    pub(crate) fn proposed(&self) -> Option<u64> {
        Some(self.proposed.load(SeqCst)).filter(|n| *n != NO_ROUND)
    }

    /// Sets the number of rounds on which all ranks have agreed.
    pub(crate) fn agree(&self, rounds: u64) {
        self.agreed.store(rounds, SeqCst);
        self.changed.wake_all();
    }

    /// Waits until the ranks agree on the largest number of rounds that one has completed.
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
