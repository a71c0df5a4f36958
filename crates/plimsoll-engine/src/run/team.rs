//! The ranks of a run as the engine sees them: what goes wrong at one of them is known at all,
//! and what they measured becomes one result.

mod report;

use super::host;
use super::{EngineError, Stop};
use crate::outcome::{Outcome, RanOut, StageOutcome, Window};
use crate::stage_state::{RankStates, Sample};
use plimsoll_measure::system::ProcessUse;
use plimsoll_measure::{Interval, RankStage, WindowTotals};
use plimsoll_plan::{Failure, Pattern, Plan, Samples, StageProgress, StageWork};
use plimsoll_ranks::{GroupStatus, RankError, Ranks};
use report::RankReport;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::cell::Cell;
use std::ops::Range;
use std::time::Duration;

/// The ranks of a run.
pub(crate) struct RankTeam<'a> {
    ranks: &'a dyn Ranks,
    /// The others were asked to stop.
    stop_requested: Cell<bool>,
    /// Workers have worked: an earlier request to stop was for them.
    is_stop_stale: Cell<bool>,
}

/// An error on its way to the other ranks.
#[derive(Serialize, Deserialize)]
enum RankFailure {
    Refused(String),
    Failed(String),
    Interrupted,
}

/// How long the other ranks may take to end after one was lost: as long as a worker may take to
/// come back from a system call.
const RANK_END_TIMEOUT: Duration = Duration::from_secs(10);

/// How much an error, or its absence, counts beside those of other ranks.
fn weight(trouble: &[u8]) -> u8 {
    match unpack::<Option<(u32, RankFailure)>>(trouble) {
        Ok(None) => 0,
        Ok(Some((_, RankFailure::Interrupted))) => 1,
        Ok(Some(_)) | Err(_) => 2,
    }
}

/// How a part of a run ended, for every rank to know.
#[derive(Serialize, Deserialize)]
struct TeamVerdict {
    failure: Option<Failure>,
    ran_out: Option<RanOut>,
    interrupted: bool,
    stuck: Vec<String>,
    states: Option<(Vec<u64>, Vec<u64>)>,
}

fn pack<T: Serialize>(value: &T) -> Vec<u8> {
    // Only types that cannot be serialised at all make this fail.
    postcard::to_allocvec(value).unwrap_or_default()
}

fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, EngineError> {
    postcard::from_bytes(bytes)
        .map_err(|e| EngineError::Failed(format!("a rank sent something unreadable: {e}")))
}

fn lost(e: RankError) -> EngineError {
    EngineError::Failed(e.to_string())
}

impl<'a> RankTeam<'a> {
    pub(crate) fn new(ranks: &'a dyn Ranks) -> Self {
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

    pub(crate) fn is_root(&self) -> bool {
        self.rank() == 0
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.size() == 1
    }

    /// All ranks have come here and none had an error; otherwise every rank has one, its own or
    /// that of the first rank that has one.
    pub(crate) fn agree_on_outcome<T>(
        &self,
        result: Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        if self.is_alone() {
            return result;
        }
        let mine = result.as_ref().err().map(|e| {
            let trouble = match e {
                EngineError::Refused(e) => RankFailure::Refused(e.clone()),
                EngineError::Failed(e) => RankFailure::Failed(e.clone()),
                EngineError::Interrupted => RankFailure::Interrupted,
            };
            (self.rank(), trouble)
        });
        let first = |mine: Vec<u8>, theirs: Vec<u8>| match (weight(&theirs) > weight(&mine), theirs)
        {
            (true, theirs) => theirs,
            (false, _) => mine,
        };
        let all = self
            .ranks
            .reduce(pack(&mine), &mut { first })
            .map_err(lost)?;
        let all = self
            .ranks
            .broadcast(all.unwrap_or_default())
            .map_err(lost)?;
        match (result, unpack::<Option<(u32, RankFailure)>>(&all)?) {
            (Err(e), None) => Err(e),
            (Ok(value), None) => Ok(value),
            // Who stopped because of another's error says that error.
            (Err(e), _) if e != EngineError::Interrupted => Err(e),
            (_, Some((rank, RankFailure::Refused(e)))) => {
                Err(EngineError::Refused(format!("rank {rank}: {e}")))
            }
            (_, Some((rank, RankFailure::Failed(e)))) => {
                Err(EngineError::Failed(format!("rank {rank}: {e}")))
            }
            (_, Some((_, RankFailure::Interrupted))) => Err(EngineError::Interrupted),
        }
    }

    /// Tells the others, where they agree next, that this rank cannot go on; the error that all
    /// have then.
    pub(crate) fn abort_run(&self, e: EngineError) -> EngineError {
        self.agree_on_outcome::<()>(Err(e.clone()))
            .err()
            .unwrap_or(e)
    }

    /// The value of rank 0, at every rank.
    pub(crate) fn broadcast_from_root<V: Serialize + DeserializeOwned>(
        &self,
        value: V,
    ) -> Result<V, EngineError> {
        if self.is_alone() {
            return Ok(value);
        }
        unpack(&self.ranks.broadcast(pack(&value)).map_err(lost)?)
    }

    /// Whether this rank is to stop, while no workers work: because somebody asked it, or another
    /// rank, which hears of it; or because a rank was lost.
    pub(crate) fn is_stopped(&self, stop: &Stop) -> bool {
        if stop.is_requested() {
            self.request_stop_all();
        }
        match self.poll_group_status() {
            GroupStatus::Nothing => {}
            // It was for the workers, which have ended.
            GroupStatus::Stop if self.is_stop_stale.get() => {}
            GroupStatus::Stop | GroupStatus::Failed(_) => stop.request(),
        }
        stop.is_requested()
    }

    /// Once a rank was lost: waits a while until the others have ended, which is when they can
    /// change nothing any more; whether they have.
    pub(crate) fn wait_for_ends(&self) -> bool {
        self.ranks.wait_for_ends(RANK_END_TIMEOUT)
    }

    /// The part of `total` things in a row that falls to this rank.
    pub(crate) fn portion(&self, total: u64) -> Range<u64> {
        portion(total, self.rank(), self.size())
    }

    /// Whether any rank says so.
    pub(crate) fn any_rank(&self, mine: bool) -> Result<bool, EngineError> {
        self.max_over_ranks(u64::from(mine)).map(|all| all > 0)
    }

    /// The largest number of all ranks.
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

    /// Asks all ranks to end the part of the run that is under way.
    pub(crate) fn request_stop_all(&self) {
        if !self.is_alone() && !self.stop_requested.replace(true) {
            self.ranks.request_stop();
        }
    }

    /// What the other ranks have said meanwhile.
    pub(crate) fn poll_group_status(&self) -> GroupStatus {
        if self.is_alone() {
            return GroupStatus::Nothing;
        }
        self.ranks.poll()
    }

    /// Share of a number that falls to this rank when worker i belongs to rank i modulo the ranks.
    pub(crate) fn share_of(&self, total: u64) -> u64 {
        share(total, self.rank(), self.size())
    }

    /// Makes one result of what all ranks measured in a part of the run, at rank 0; the others
    /// keep their own. Every rank learns whether the run goes on. `windows` is how many windows
    /// the outcome had before. Returns the intervals of all ranks at rank 0.
    pub(crate) fn merge(
        &self,
        plan: &Plan,
        outcome: &mut Outcome,
        windows: usize,
        intervals: Vec<Interval>,
        stage: Option<RankStageResult>,
        states: &mut Option<RankStates>,
    ) -> Result<MergedPhase, EngineError> {
        self.is_stop_stale.set(true);
        let mut merged = MergedPhase {
            intervals,
            samples: Vec::new(),
            ranks: Vec::new(),
        };
        if !self.is_alone() {
            self.merge_reports(plan, outcome, windows, &mut merged)?;
        }
        let decided = match stage {
            Some(stage) => self.merge_stage(plan, outcome, stage, states, &mut merged)?,
            None => None,
        };
        if !self.is_alone() {
            self.share_verdict(outcome, decided, states)?;
        }
        Ok(merged)
    }

    fn merge_reports(
        &self,
        plan: &Plan,
        outcome: &mut Outcome,
        windows: usize,
        merged: &mut MergedPhase,
    ) -> Result<(), EngineError> {
        let new = &outcome.windows[windows..];
        let used = |w: &Window| w.system.process.clone().unwrap_or_default();
        let used: Vec<ProcessUse> = new.iter().map(used).collect();
        let of_windows = new
            .iter()
            .map(|w| RankReport::window_of(self.rank(), &w.totals));
        let report = RankReport {
            windows: Vec::from_iter(of_windows),
            hosts: host::of_this_rank(
                used.iter().map(ProcessUse::cpu_s).collect(),
                new.iter().map(|w| w.system.nfs_mounts.clone()).collect(),
            ),
            processes_used: used,
            intervals: std::mem::take(&mut merged.intervals)
                .into_iter()
                .map(|i| ((i.window, i.index), i))
                .collect(),
            failure: outcome.failure.clone().map(|f| (self.rank(), f)),
            ran_out: outcome.ran_out.clone(),
            interrupted: outcome.interrupted,
            stuck: outcome.stuck.clone(),
            notes: outcome.notes.clone(),
            lanes: outcome.lanes,
            variables: outcome.variables.clone(),
            processes: outcome.processes.clone(),
            // Those of rank 0 come back with those of all.
            long_replies: std::mem::take(&mut outcome.long_replies),
        };
        let mut broken = None;
        let mut combine = |mine: Vec<u8>, theirs: Vec<u8>| match (
            unpack::<RankReport>(&mine),
            unpack::<RankReport>(&theirs),
        ) {
            (Ok(mut mine), Ok(theirs)) => {
                mine.add(theirs);
                pack(&mine)
            }
            (Err(e), _) | (_, Err(e)) => {
                broken = Some(e);
                mine
            }
        };
        let all = self
            .ranks
            .reduce(pack(&report), &mut combine)
            .map_err(lost)?;
        if let Some(e) = broken {
            return Err(e);
        }
        let Some(all) = all else {
            return Ok(());
        };
        let mut all: RankReport = unpack(&all)?;
        let counted = plan.operations.iter().map(|o| o.kind.counts());
        all.find_stalls(&Vec::from_iter(counted));
        merged.intervals = all.intervals.into_values().collect();
        for (i, totals) in all.windows.into_iter().enumerate() {
            let Some(window) = outcome.windows.get_mut(windows + i) else {
                break;
            };
            // A rank's clock is compared with no other's: only lengths are.
            let merged = WindowTotals {
                start: window.totals.start,
                end: window.totals.start + (totals.end - totals.start),
                ..totals
            };
            outcome
                .own
                .push(std::mem::replace(&mut window.totals, merged));
            if let Some(process) = window.system.process.as_mut() {
                // Memory, faults and switches stay those of rank 0.
                let sum = all.processes_used.get(i).cloned().unwrap_or_default();
                (process.user_s, process.system_s) = (sum.user_s, sum.system_s);
                process.storage_read_bytes = sum.storage_read_bytes;
            }
            window.system.nfs_mounts = host::mounted(&all.hosts, i);
            window.client_share = host::busiest(&all.hosts, i, window.system.seconds);
        }
        outcome.failure = all.failure.map(|(rank, failure)| failure.at_rank(rank));
        outcome.ran_out = all.ran_out;
        outcome.interrupted = all.interrupted;
        outcome.stuck = all.stuck;
        outcome.notes = all.notes;
        outcome.own_lanes = std::mem::replace(&mut outcome.lanes, all.lanes);
        outcome.variables = all.variables;
        outcome.processes = all.processes;
        outcome.long_replies = all.long_replies;
        outcome.processes.sort_by_key(|p| (p.group, p.number));
        Ok(())
    }

    /// What each rank did in a stage comes to rank 0, which decides where all of them are.
    fn merge_stage(
        &self,
        plan: &Plan,
        outcome: &mut Outcome,
        local: RankStageResult,
        states: &mut Option<RankStates>,
        merged: &mut MergedPhase,
    ) -> Result<Option<RankStates>, EngineError> {
        let RankStageResult {
            stage,
            done,
            samples,
        } = local;
        let Some(pattern) = plan.groups.first().and_then(|g| g.program.pattern()) else {
            return Ok(None);
        };
        let mut ranks = Vec::new();
        let mut broken = None;
        let mut take = |_: u32, bytes: Vec<u8>| match unpack::<RankStage>(&bytes) {
            Ok(one) => ranks.push(one),
            Err(e) => broken = Some(e),
        };
        if self.is_alone() {
            ranks.push(done.clone());
        } else {
            self.ranks.collect(pack(&done), &mut take).map_err(lost)?;
        }
        if let Some(e) = broken {
            return Err(e);
        }
        if pattern.samples == Samples::All && !self.is_alone() {
            let mut take = |rank: u32, bytes: Vec<u8>| {
                if let Ok(samples) = unpack(&bytes) {
                    merged.samples.push((rank, samples));
                }
            };
            self.ranks
                .collect(pack(&samples), &mut take)
                .map_err(lost)?;
        } else if !samples.is_empty() {
            merged.samples.push((self.rank(), samples));
        }
        let measured = pattern
            .stages
            .get(stage as usize)
            .is_some_and(|s| !s.warm_up);
        if !self.is_root() {
            let ranks = vec![done];
            if measured {
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
            stuck: outcome.stuck.clone(),
            states: decided.map(|s| (s.position, s.made)),
        };
        let verdict = self.ranks.broadcast(pack(&verdict)).map_err(lost)?;
        let verdict: TeamVerdict = unpack(&verdict)?;
        outcome.failure = verdict.failure;
        outcome.ran_out = verdict.ran_out;
        outcome.interrupted = verdict.interrupted;
        outcome.stuck = verdict.stuck;
        if let Some((position, made)) = verdict.states {
            *states = Some(RankStates { position, made });
        }
        Ok(())
    }
}

/// What came of a part of a run, besides what is in the outcome.
pub(crate) struct MergedPhase {
    pub(crate) intervals: Vec<Interval>,
    /// What each rank did in a stage, in their order; only at rank 0.
    pub(crate) ranks: Vec<RankStage>,
    /// The time of every operation, by rank and row, where it was kept.
    pub(crate) samples: Vec<(u32, Vec<Vec<Sample>>)>,
}

/// What this process's rank did in a stage.
pub(crate) struct RankStageResult {
    pub(crate) stage: u32,
    pub(crate) done: RankStage,
    pub(crate) samples: Vec<Vec<Sample>>,
}

/// Share of `total` things of which thing i belongs to rank i modulo the ranks.
fn share(total: u64, rank: u32, size: u32) -> u64 {
    let (rank, size) = (u64::from(rank), u64::from(size.max(1)));
    total / size + u64::from(rank < total % size)
}

/// The part of `total` things in a row that falls to a rank, if each has as many as the next.
fn portion(total: u64, rank: u32, size: u32) -> Range<u64> {
    let at = |rank: u64| {
        let at = u128::from(total) * u128::from(rank) / u128::from(size.max(1));
        // No more than `total`.
        at as u64
    };
    at(u64::from(rank))..at(u64::from(rank) + 1)
}

/// Where the ranks are after a stage.
fn advanced(
    pattern: &Pattern,
    stage: u32,
    mut states: RankStates,
    ranks: &[RankStage],
) -> RankStates {
    let work = pattern.stages.get(stage as usize).map(|s| &s.work);
    for done in ranks {
        let at = done.rank as usize;
        match work {
            Some(StageWork::Objects(l)) => match l.advances {
                StageProgress::Nothing => {}
                StageProgress::Position => states.position[at] += done.rounds,
                StageProgress::Made => states.made[at] = done.rounds,
            },
            Some(StageWork::Transfers(t)) if t.write => states.made[at] = done.rounds,
            Some(StageWork::Transfers(_)) | None => {}
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
