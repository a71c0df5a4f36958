//! Stages of a pattern: the progress of its ranks, and the results of a stage.
//!
//! The ranks agree on their progress after every stage, so that a cleanup deletes the files that exist even when a
//! stonewall has let ranks drift apart. After a stonewall with wear-out, all ranks continue to the largest number of
//! rounds that a rank has proposed: ranks of one process agree through [`StageRun`], processes through the controllers.

use crate::sync::{BlockedCount, Broadcast, ControllerWakeup, lock};
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::{Nanos, RankRow, RankTotals};
use plimsoll_plan::{Pattern, Plan, Stage};
use plimsoll_runtime::sync::Mutex;
use plimsoll_runtime::sync::atomic::AtomicU64;
use plimsoll_runtime::sync::atomic::Ordering::SeqCst;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Value of `agreed` before the ranks have agreed on the number of rounds.
const NO_ROUND: u64 = u64::MAX;

/// The start of an operation, in nanoseconds since the stage began, and its duration in nanoseconds.
pub type Sample = (Nanos, Nanos);

/// The progress of the ranks of a pattern; entry i belongs to rank i.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RankStates {
    /// Number of the next object of each rank.
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

/// A running stage, as the ranks of this process and the controller see the stage. A process has one rank, or in
/// virtual time all ranks.
pub(crate) struct StageRun {
    pub(crate) stage: u32,
    pub(crate) states: RankStates,
    /// Number of the pattern's ranks that are workers of this process.
    ranks: usize,
    /// Whether other processes have ranks, with which the ranks of this process agree on the rounds after a stonewall.
    others: bool,
    /// Proposals for the agreement of the ranks: rounds that each rank of this process had completed at the stonewall,
    /// or at the end of all rounds.
    proposals: Mutex<BTreeMap<u32, u64>>,
    agreed: AtomicU64,
    changed: Broadcast,
    all_gather: Mutex<AllGather>,
    bell: Arc<ControllerWakeup>,
    /// Results of the ranks that have ended.
    done: Mutex<BTreeMap<u32, StageDone>>,
}

/// Contribution of a rank to an all-gather: bytes, and whether the all-gather is the last of the stage.
pub(crate) type Contribution = (Vec<u8>, bool);

/// All-gathers of a stage (as `MPI_Allgather`), one after the other. An all-gather completes once every rank has
/// contributed, so an all-gather is also a barrier.
#[derive(Default)]
struct AllGather {
    /// Whether another all-gather may follow: false after the last all-gather, and after a rank has ended without a
    /// contribution.
    is_open: bool,
    /// Contributions of this process's ranks to the next all-gather.
    given: BTreeMap<u32, Contribution>,
    /// Number of this process's ranks that have ended the stage.
    ended: usize,
    /// Number of completed all-gathers.
    completed: u64,
    /// Bytes of all ranks in the last completed all-gather, in rank order.
    bytes: Arc<Vec<Vec<u8>>>,
}

/// Results of a rank in a stage that are not in the rank's recorder.
#[derive(Debug, Default)]
pub(crate) struct StageDone {
    pub(crate) begun: Nanos,
    pub(crate) ended: Nanos,
    pub(crate) rounds: u64,
    /// Number of matching files of a search; `None` in other stages.
    pub(crate) matches: Option<u64>,
    pub(crate) stonewall_rounds: Option<u64>,
    /// Time of the stonewall, in nanoseconds since the stage began.
    pub(crate) stonewall: Option<Nanos>,
    /// Nanoseconds that the rank waited for the agreement of all ranks on their rounds.
    pub(crate) waited: Nanos,
    /// The samples of each row; empty if the pattern keeps no samples.
    pub(crate) samples: Vec<Vec<Sample>>,
    /// For each row, the measured operations of the rank; `None` for a row without operations. The list of rows is
    /// empty unless the rank keeps its own figures, because the rank's recorder also has the operations of other ranks.
    pub(crate) rows: Vec<Option<RankTotals>>,
}

impl StageDone {
    /// The measured operations of a row; `None` unless the rank keeps its own figures.
    pub(crate) fn totals_mut(&mut self, row: u32) -> Option<&mut RankTotals> {
        let totals = self.rows.get_mut(row as usize)?;
        Some(totals.get_or_insert_default())
    }

    /// The results of a row that the rank has kept.
    pub(crate) fn row(&self, row: u32) -> RankRow {
        let totals = self.rows.get(row as usize).and_then(Option::as_ref);
        totals.map(RankRow::from).unwrap_or_default()
    }
}

impl StageRun {
    pub(crate) fn new(
        stage: u32,
        states: RankStates,
        ranks: usize,
        others: bool,
        bell: Arc<ControllerWakeup>,
    ) -> Self {
        Self {
            stage,
            states,
            ranks,
            others,
            proposals: Mutex::default(),
            agreed: AtomicU64::new(NO_ROUND),
            changed: Broadcast::default(),
            all_gather: Mutex::default(),
            bell,
            done: Mutex::default(),
        }
    }

    /// Allows all-gathers, if the work of the stage needs all-gathers.
    pub(crate) fn with_all_gathers(self, are_needed: bool) -> Self {
        lock(&self.all_gather).is_open = are_needed;
        self
    }

    /// The pattern and the stage in progress.
    pub(crate) fn of<'a>(&self, plan: &'a Plan) -> (&'a Pattern, &'a Stage) {
        let pattern = plan.pattern().expect("only patterns have stages");
        (pattern, &pattern.stages[self.stage as usize])
    }

    /// Whether ranks of this process share a recorder, so that each rank also keeps its own figures.
    pub(crate) fn shares_recorder(&self) -> bool {
        self.ranks > 1
    }

    /// The largest number of rounds that a rank of this process has completed, once all ranks of this process wait for
    /// the agreement with other processes; `None` before.
    pub(crate) fn proposed(&self) -> Option<u64> {
        self.largest_proposal().filter(|_| self.others)
    }

    /// The largest proposal, once every rank of this process has made a proposal.
    fn largest_proposal(&self) -> Option<u64> {
        let proposals = lock(&self.proposals);
        let largest = proposals.values().max().copied();
        largest.filter(|_| proposals.len() == self.ranks)
    }

    /// Proposes the rounds of a rank, unless the rank has proposed before.
    fn propose(&self, rank: u32, rounds: u64) {
        lock(&self.proposals).entry(rank).or_insert(rounds);
        match self.largest_proposal() {
            None => {}
            Some(_) if self.others => self.bell.ring(),
            Some(largest) => self.agree(largest),
        }
    }

    /// Stores the results of a rank that has ended the stage.
    pub(crate) fn end(&self, rank: u32, done: StageDone) {
        let before = lock(&self.done).insert(rank, done);
        assert!(before.is_none(), "a rank ends a stage once");
        lock(&self.all_gather).ended += 1;
        self.offer();
        // The rank may have ended without a proposal, for which the other ranks of this process must not wait. With
        // other processes, the controller proposes, after the controller has reported why the rank ended.
        if !self.others {
            self.propose(rank, 0);
        }
    }

    /// Takes the results of a rank; default results if the rank failed before its first operation.
    pub(crate) fn take_done(&self, rank: u32) -> StageDone {
        lock(&self.done).remove(&rank).unwrap_or_default()
    }

    /// Sets the number of rounds on which all ranks have agreed.
    pub(crate) fn agree(&self, rounds: u64) {
        self.agreed.store(rounds, SeqCst);
        self.changed.wake_all();
    }

    /// Number of completed all-gathers.
    pub(crate) fn completed_all_gathers(&self) -> u64 {
        lock(&self.all_gather).completed
    }

    /// Contributions of this process's ranks to the next all-gather, with `None` for a rank that has ended. Returns
    /// `None` before every rank has contributed or ended, unless `even_early`, and after the last all-gather.
    pub(crate) fn contributions(&self, even_early: bool) -> Option<Vec<Option<Contribution>>> {
        let gather = lock(&self.all_gather);
        let given = gather.given.len();
        // The controller of a process without ranks decides when the process takes part.
        let are_complete = self.ranks > 0 && given + gather.ended >= self.ranks;
        if !gather.is_open || !(are_complete || even_early) {
            return None;
        }
        let mut contributions: Vec<Option<Contribution>> =
            gather.given.values().cloned().map(Some).collect();
        contributions.resize(self.ranks, None);
        Some(contributions)
    }

    /// Completes an all-gather with the contributions of all ranks, in rank order.
    pub(crate) fn complete_all_gather(&self, all: Vec<Option<Contribution>>) {
        let mut gather = lock(&self.all_gather);
        gather.given.clear();
        gather.is_open = all.iter().any(|one| matches!(one, Some((_, false))));
        match all.into_iter().collect::<Option<Vec<Contribution>>>() {
            Some(all) => {
                gather.bytes = Arc::new(all.into_iter().map(|(bytes, _)| bytes).collect());
                gather.completed += 1;
            }
            None => gather.is_open = false,
        }
        drop(gather);
        self.changed.wake_all();
    }

    /// Once all ranks of this process have contributed or ended: completes the next all-gather, or asks the controller
    /// to take part in the all-gather with other processes.
    fn offer(&self) {
        match self.contributions(false) {
            None => {}
            Some(_) if self.others => self.bell.ring(),
            Some(all) => self.complete_all_gather(all),
        }
    }

    /// Contributes bytes to the next all-gather, and waits for the bytes of all ranks, in rank order. `is_last` is
    /// true, for all ranks alike, in the last all-gather of the stage.
    ///
    /// # Errors
    /// `Stopped` if the stage is over, or if a rank has ended without a contribution.
    pub(crate) async fn all_gather(
        &self,
        lane: &Lane,
        idle: &BlockedCount,
        rank: u32,
        bytes: Vec<u8>,
        is_last: bool,
    ) -> Result<Arc<Vec<Vec<u8>>>, Stopped> {
        let before = {
            let mut gather = lock(&self.all_gather);
            if gather.is_open {
                gather.given.insert(rank, (bytes, is_last));
            }
            gather.completed
        };
        self.offer();
        let look = || {
            let gather = lock(&self.all_gather);
            match gather.completed > before {
                true => Some(Ok(gather.bytes.clone())),
                false => (!gather.is_open).then_some(Err(Stopped)),
            }
        };
        self.changed.until(lane, idle, look).await?
    }

    /// Waits until the ranks agree on the largest number of rounds that a rank has completed.
    pub(crate) async fn agreed(
        &self,
        lane: &Lane,
        idle: &BlockedCount,
        rank: u32,
        rounds: u64,
    ) -> Result<u64, Stopped> {
        self.propose(rank, rounds);
        let look = || Some(self.agreed.load(SeqCst)).filter(|n| *n != NO_ROUND);
        self.changed.until(lane, idle, look).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ranks: usize, others: bool) -> StageRun {
        let states = RankStates {
            position: vec![0; ranks],
            made: vec![0; ranks],
        };
        StageRun::new(0, states, ranks, others, Arc::default())
    }

    fn agreed(run: &StageRun) -> Option<u64> {
        Some(run.agreed.load(SeqCst)).filter(|n| *n != NO_ROUND)
    }

    #[test]
    fn ranks_of_one_process_agree_on_the_most_rounds_once_all_have_proposed_or_ended() {
        let run = run(3, false);
        run.propose(1, 5);
        run.end(0, StageDone::default());
        assert_eq!(agreed(&run), None);
        run.propose(2, 3);
        assert_eq!(agreed(&run), Some(5));
        // Ranks 1 and 2 do more rounds before they end.
        for rank in [1, 2] {
            run.end(rank, StageDone::default());
        }
        assert_eq!((agreed(&run), run.proposed()), (Some(5), None));
    }

    #[test]
    fn the_controller_proposes_to_other_processes_what_the_rank_proposed() {
        let waiting = run(1, true);
        assert_eq!(waiting.proposed(), None);
        waiting.propose(0, 7);
        assert_eq!((waiting.proposed(), agreed(&waiting)), (Some(7), None));
        waiting.agree(9);
        assert_eq!(agreed(&waiting), Some(9));
        let failed = run(1, true);
        failed.end(0, StageDone::default());
        assert_eq!(failed.proposed(), None);
    }

    fn contribute(run: &StageRun, rank: u32, text: &str, is_last: bool) {
        let bytes = text.as_bytes().to_vec();
        lock(&run.all_gather).given.insert(rank, (bytes, is_last));
        run.offer();
    }

    #[test]
    fn all_gathers_follow_each_other_until_the_last() {
        let run = run(2, false).with_all_gathers(true);
        for (i, is_last) in [false, true].into_iter().enumerate() {
            contribute(&run, 1, "b", is_last);
            assert_eq!(run.completed_all_gathers(), i as u64);
            contribute(&run, 0, "a", is_last);
            assert_eq!(run.completed_all_gathers(), i as u64 + 1);
            assert_eq!(*lock(&run.all_gather).bytes, [b"a", b"b"]);
            assert_eq!(lock(&run.all_gather).is_open, !is_last);
        }
    }

    #[test]
    fn a_rank_that_ends_without_a_contribution_ends_the_all_gathers() {
        let alone = run(2, false).with_all_gathers(true);
        contribute(&alone, 1, "b", false);
        alone.end(0, StageDone::default());
        assert!(!lock(&alone.all_gather).is_open);
        assert_eq!(alone.completed_all_gathers(), 0);
        // With other processes, the controller takes part for the rank that ended.
        let run = run(1, true).with_all_gathers(true);
        assert_eq!(run.contributions(false), None);
        run.end(0, StageDone::default());
        assert_eq!(run.contributions(false), Some(vec![None]));
        run.complete_all_gather(vec![None, Some((vec![1], false))]);
        assert_eq!(run.contributions(true), None);
    }

    #[test]
    fn operations_are_those_of_their_row() {
        let mut done = StageDone {
            rows: vec![None; 6],
            ..StageDone::default()
        };
        for latency in [300, 100, 200] {
            let totals = done.totals_mut(4).expect("the rank keeps its own");
            totals.ops += 1;
            totals.bytes += 10;
            totals.latency.record(latency);
        }
        done.totals_mut(5).expect("the rank keeps its own").errors += 1;
        let row = done.row(4);
        assert_eq!((row.ops, row.bytes, row.errors), (3, 30, 0));
        assert_eq!((row.quantiles_ns[0], row.quantiles_ns[6]), (100, 300));
        assert_eq!((done.row(5).ops, done.row(5).errors), (0, 1));
        assert_eq!(done.row(3), RankRow::default());
        // A rank that shares no recorder keeps no figures.
        let mut alone = StageDone::default();
        assert!(alone.totals_mut(4).is_none());
        assert_eq!(alone.row(4), RankRow::default());
    }
}
