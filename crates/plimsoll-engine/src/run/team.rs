//! The ranks of a run: an error of one rank is an error of all ranks, and the ranks' measurements become one result.

mod merge;
mod packed_interval;
mod report;

use super::{EngineError, Stop, host};
use crate::stage_state::{RankStates, Sample};
pub(crate) use packed_interval::PackedInterval;
use plimsoll_measure::{Outcome, RanOut, RankStage, StageOutcome};
use plimsoll_plan::{Failure, Pattern, Plan, Samples, StageProgress, StageWork};
use plimsoll_ranks::{GroupStatus, RankError, Ranks, StartSpread};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The communication of a rank with the other ranks of a run.
pub(crate) struct RankTeam<'a> {
    ranks: &'a Ranks,
    /// Whether this rank has requested the other ranks to stop.
    stop_requested: Cell<bool>,
    /// Whether a load phase has ended, so that a request to stop the workers of the load phase no longer counts.
    is_stop_stale: Cell<bool>,
}

/// Maximum time that other ranks may take to end after a rank was lost: as long as a worker may hang in a system call.
const RANK_END_TIMEOUT: Duration = Duration::from_secs(10);

/// Precedence of a rank's packed error, or of its absence, over the errors of other ranks.
fn precedence(error: &[u8]) -> u8 {
    match unpack::<Option<(u32, EngineError)>>(error) {
        Ok(None) => 0,
        Ok(Some((_, EngineError::Interrupted))) => 1,
        Ok(Some(_)) | Err(_) => 2,
    }
}

/// The end of a load phase, as rank 0 reports it to every rank.
#[derive(Serialize, Deserialize)]
struct TeamVerdict {
    failure: Option<Failure>,
    ran_out: Option<RanOut>,
    interrupted: bool,
    stuck: Vec<String>,
    states: Option<RankStates>,
}

fn pack<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("values for other ranks can be serialised")
}

fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, EngineError> {
    postcard::from_bytes(bytes)
        .map_err(|e| EngineError::Failed(format!("a rank sent something unreadable: {e}")))
}

fn lost(e: RankError) -> EngineError {
    EngineError::Failed(e.to_string())
}

impl<'a> RankTeam<'a> {
    pub(crate) fn new(ranks: &'a Ranks) -> Self {
        Self {
            ranks,
            stop_requested: Cell::new(false),
            is_stop_stale: Cell::new(false),
        }
    }

    pub(crate) fn rank(&self) -> u32 {
        self.ranks.rank()
    }

    pub(crate) fn size(&self) -> u32 {
        self.ranks.size()
    }

    /// The number of this rank among the ranks with workers; `None` for a rank 0 that only coordinates the other ranks.
    pub(crate) fn worker_rank(&self) -> Option<u32> {
        match self.ranks.root_works() {
            true => Some(self.rank()),
            false => self.rank().checked_sub(1),
        }
    }

    /// Whether rank 0 has workers.
    pub(crate) fn root_works(&self) -> bool {
        self.ranks.root_works()
    }

    /// Whether this rank is rank 0 and all other ranks wait for it in a collective call.
    pub(crate) fn others_wait(&self) -> bool {
        self.ranks.others_wait()
    }

    /// The number of ranks that have workers.
    pub(crate) fn worker_ranks(&self) -> u32 {
        self.size() - u32::from(!self.ranks.root_works())
    }

    /// The name of this rank's machine, as in results.
    pub(crate) fn host(&self) -> String {
        match self.ranks.host() {
            Some(host) => host.to_owned(),
            None => host::name(),
        }
    }

    /// An error of this rank, with the name of its machine if the machine is not rank 0's.
    fn of_host(&self, e: &EngineError) -> EngineError {
        match self.ranks.host() {
            Some(host) => e.clone().map(|text| format!("host {host}: {text}")),
            None => e.clone(),
        }
    }

    /// The instant at which this rank starts its workers, about the same instant as at the other ranks.
    pub(crate) fn agree_on_start(&self) -> Result<Instant, EngineError> {
        self.ranks.agree_on_start().map_err(lost)
    }

    /// Reports that this rank started its workers at `started`. At rank 0, returns the spread of the ranks' starts.
    pub(crate) fn report_start(
        &self,
        started: Instant,
    ) -> Result<Option<StartSpread>, EngineError> {
        self.ranks.report_start(started).map_err(lost)
    }

    pub(crate) fn is_root(&self) -> bool {
        self.rank() == 0
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.size() == 1
    }

    /// Waits for all ranks. If a rank has an error, every rank returns an error: its own error unless `Interrupted`, or
    /// else the first error of the highest precedence.
    pub(crate) fn agree_on_outcome<T>(
        &self,
        result: Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        if self.is_alone() {
            return result;
        }
        let mine = result
            .as_ref()
            .err()
            .map(|e| (self.rank(), self.of_host(e)));
        let mut first = |mine: Vec<u8>, theirs: Vec<u8>| {
            if precedence(&theirs) > precedence(&mine) {
                theirs
            } else {
                mine
            }
        };
        let all = self.ranks.reduce(pack(&mine), &mut first).map_err(lost)?;
        // Only rank 0 has the reduced value, and broadcasts the value.
        let all = self.ranks.broadcast(all.unwrap_or_default());
        match (result, unpack(&all.map_err(lost)?)?) {
            (result, None) => result,
            // A rank that stopped because of another rank's error reports the other rank's error.
            (Err(e), _) if e != EngineError::Interrupted => Err(e),
            (_, Some((rank, e))) => Err(EngineError::of_rank(e, rank)),
        }
    }

    /// Reports the error of this rank at the next agreement of the other ranks. Returns the error that all ranks agree
    /// on.
    pub(crate) fn abort_run(&self, e: EngineError) -> EngineError {
        self.agree_on_outcome::<()>(Err(e.clone()))
            .err()
            .unwrap_or(e)
    }

    /// Returns the `value` of rank 0, at every rank.
    pub(crate) fn broadcast_from_root<V: Serialize + DeserializeOwned>(
        &self,
        value: V,
    ) -> Result<V, EngineError> {
        if self.is_alone() {
            return Ok(value);
        }
        unpack(&self.ranks.broadcast(pack(&value)).map_err(lost)?)
    }

    /// Whether this rank is to stop while no workers work, because this rank or another rank received a request to
    /// stop, or because a rank was lost.
    pub(crate) fn is_stopped(&self, stop: &Stop) -> bool {
        if stop.is_requested() {
            self.request_stop_all();
        }
        match self.poll_group_status() {
            GroupStatus::Nothing => {}
            // The request was for workers, which have ended.
            GroupStatus::Stop if self.is_stop_stale.get() => {}
            GroupStatus::Stop | GroupStatus::Failed(_) => stop.request(),
        }
        stop.is_requested()
    }

    /// Waits for the other ranks to end after a rank was lost. Returns whether the other ranks have ended, and so
    /// cannot change anything.
    pub(crate) fn wait_for_ends(&self) -> bool {
        self.ranks.wait_for_ends(RANK_END_TIMEOUT)
    }

    /// This rank's contiguous part of the numbers below `total`; empty without workers.
    pub(crate) fn portion(&self, total: u64) -> Range<u64> {
        match self.worker_rank() {
            Some(rank) => portion(total, rank, self.worker_ranks()),
            None => 0..0,
        }
    }

    /// Whether `mine` is true at any rank; a collective call.
    pub(crate) fn any_rank(&self, mine: bool) -> Result<bool, EngineError> {
        self.max_over_ranks(u64::from(mine)).map(|all| all > 0)
    }

    /// The largest `mine` of all ranks; a collective call.
    pub(crate) fn max_over_ranks(&self, mine: u64) -> Result<u64, EngineError> {
        if self.is_alone() {
            return Ok(mine);
        }
        self.ranks.max(mine).map_err(lost)
    }

    pub(crate) fn barrier(&self) -> Result<(), EngineError> {
        if self.is_alone() {
            return Ok(());
        }
        self.ranks.barrier().map_err(lost)
    }

    /// Requests all ranks to end the current load phase.
    pub(crate) fn request_stop_all(&self) {
        if !self.is_alone() && !self.stop_requested.replace(true) {
            self.ranks.request_stop();
        }
    }

    /// The latest request or loss that other ranks have reported, without waiting; `Nothing` in a run of one rank.
    pub(crate) fn poll_group_status(&self) -> GroupStatus {
        if self.is_alone() {
            return GroupStatus::Nothing;
        }
        self.ranks.poll()
    }

    /// This rank's share of `total` workers or operations, if item i belongs to rank i modulo the number of ranks.
    pub(crate) fn share_of(&self, total: u64) -> u64 {
        let rank = self.worker_rank();
        rank.map_or(0, |rank| share(total, rank, self.worker_ranks()))
    }

    /// At rank 0, the values of all ranks in rank order; no values at any other rank.
    pub(crate) fn gather<V: Serialize + DeserializeOwned>(
        &self,
        mine: V,
    ) -> Result<Vec<V>, EngineError> {
        if self.is_alone() {
            return Ok(vec![mine]);
        }
        let mut all = Vec::new();
        let mut take = |rank: u32, bytes: Vec<u8>| {
            assert_eq!(rank as usize, all.len(), "values come in rank order");
            all.push(unpack(&bytes));
        };
        self.ranks.collect(pack(&mine), &mut take).map_err(lost)?;
        all.into_iter().collect()
    }

    /// All-gather: the values of all ranks in rank order, at every rank.
    pub(crate) fn all_gather<V: Serialize + DeserializeOwned>(
        &self,
        mine: V,
    ) -> Result<Vec<V>, EngineError> {
        let all = self.gather(mine)?;
        self.broadcast_from_root(all)
    }

    /// Gathers the results of a stage at rank 0, which determines the progress of all ranks.
    fn merge_stage(
        &self,
        plan: &Plan,
        outcome: &mut Outcome,
        local: LocalStageResult,
        states: &mut Option<RankStates>,
        merged: &mut MergedPhase,
    ) -> Result<Option<RankStates>, EngineError> {
        let LocalStageResult {
            stage,
            ranks: own,
            samples,
        } = local;
        let pattern = plan.pattern().expect("only patterns have stages");
        let measured = !pattern.stages[stage as usize].warm_up;
        let ranks = self.gather(own.clone())?.concat();
        assert!(
            (0..).zip(&ranks).all(|(rank, done)| done.rank == rank),
            "each rank reports its own stage"
        );
        merged.samples = match pattern.samples {
            Samples::All => self.gather(samples)?.concat(),
            Samples::Off | Samples::First => samples,
        };
        if !self.is_root() {
            if measured {
                let ranks = own;
                outcome.stages.push(StageOutcome { stage, ranks });
            }
            return Ok(None);
        }
        let before = states.clone().unwrap_or_else(|| RankStates::new(pattern));
        let next = advanced(pattern, stage, before, &ranks);
        if self.is_alone() {
            *states = Some(next.clone());
        }
        merged.ranks.clone_from(&ranks);
        if measured {
            outcome.stages.push(StageOutcome { stage, ranks });
        }
        Ok(Some(next))
    }

    fn share_verdict(
        &self,
        outcome: &mut Outcome,
        decided: Option<RankStates>,
        states: &mut Option<RankStates>,
    ) -> Result<(), EngineError> {
        let verdict = TeamVerdict {
            failure: outcome.failure.clone(),
            ran_out: outcome.ran_out.clone(),
            interrupted: outcome.interrupted,
            stuck: outcome.hung_workers.clone(),
            states: decided,
        };
        let verdict = self.ranks.broadcast(pack(&verdict)).map_err(lost)?;
        let verdict: TeamVerdict = unpack(&verdict)?;
        outcome.failure = verdict.failure;
        outcome.ran_out = verdict.ran_out;
        outcome.interrupted = verdict.interrupted;
        outcome.hung_workers = verdict.stuck;
        *states = verdict.states.or(states.take());
        Ok(())
    }
}

/// The results of a load phase that are not in the outcome.
#[derive(Default)]
pub(crate) struct MergedPhase {
    /// Intervals of this rank; at rank 0 after the merge, the intervals of all ranks.
    pub(crate) intervals: Vec<PackedInterval>,
    /// Results of the ranks in a stage, in rank order; only at rank 0.
    pub(crate) ranks: Vec<RankStage>,
    /// Times of all operations by rank and row, if the pattern keeps times.
    pub(crate) samples: Vec<(u32, Vec<Vec<Sample>>)>,
}

/// The results of a stage for the ranks of this process: one rank, or in virtual time all ranks.
pub(crate) struct LocalStageResult {
    pub(crate) stage: u32,
    pub(crate) ranks: Vec<RankStage>,
    /// Times of all operations by rank and row, if the pattern keeps times.
    pub(crate) samples: Vec<(u32, Vec<Vec<Sample>>)>,
}

/// Count of the numbers below `total` that are `rank` modulo `size`.
fn share(total: u64, rank: u32, size: u32) -> u64 {
    let (rank, size) = (u64::from(rank), u64::from(size.max(1)));
    total / size + u64::from(rank < total % size)
}

/// A rank's part of the numbers below `total`. All parts are contiguous, and their lengths differ by at most 1.
fn portion(total: u64, rank: u32, size: u32) -> Range<u64> {
    let at = |rank: u64| {
        let at = u128::from(total) * u128::from(rank) / u128::from(size.max(1));
        // The quotient is at most `total`, so the cast loses nothing.
        at as u64
    };
    at(u64::from(rank))..at(u64::from(rank) + 1)
}

/// The progress of all ranks after the stage `stage`, from the progress before the stage and the ranks' results.
fn advanced(
    pattern: &Pattern,
    stage: u32,
    mut states: RankStates,
    ranks: &[RankStage],
) -> RankStates {
    let work = &pattern.stages[stage as usize].work;
    for done in ranks {
        let at = done.rank as usize;
        match work {
            StageWork::Objects(l) => match l.advances {
                StageProgress::Nothing => {}
                StageProgress::Position => states.position[at] += done.rounds,
                StageProgress::Made => states.made[at] = done.rounds,
            },
            StageWork::Transfers(t) if t.write => states.made[at] = done.rounds,
            StageWork::Transfers(_) | StageWork::Search(_) => {}
        }
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_follow_each_other_and_differ_by_one_at_most() {
        for total in (0..40u64).chain([u64::MAX - 1]) {
            for size in 1..9u32 {
                let mut end = 0;
                let mut lengths = Vec::new();
                for rank in 0..size {
                    let part = portion(total, rank, size);
                    assert_eq!(part.start, end);
                    end = part.end;
                    lengths.push(part.end - part.start);
                }
                assert_eq!(end, total);
                assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 1);
            }
        }
    }

    #[test]
    fn shares_add_up_and_differ_by_one_at_most() {
        for total in 0..40u64 {
            for size in 1..9u32 {
                let shares: Vec<u64> = (0..size).map(|r| share(total, r, size)).collect();
                assert_eq!(shares.iter().sum::<u64>(), total);
                assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
            }
        }
    }
}
