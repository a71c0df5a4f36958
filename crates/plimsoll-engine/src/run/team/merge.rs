//! Merging the results of a load phase, of all ranks or of the surviving ranks.

use super::packed_interval::PackedInterval;
use super::report::{RankPartOfPlan, RankReport};
use super::{LocalStageResult, MergedPhase, RankTeam, lost, pack, unpack};
use crate::run::EngineError;
use crate::stage_state::RankStates;
use plimsoll_measure::Outcome;
use plimsoll_plan::Plan;
use std::time::Duration;

/// Maximum time that rank 0 waits for the measurements of the other ranks after a rank was lost. A silent host is
/// noticed after 6 s, and the run should end within 10 s.
const SURVIVORS_TIMEOUT: Duration = Duration::from_secs(3);

impl MergedPhase {
    /// A phase with the intervals of this rank only.
    pub(crate) fn of(intervals: Vec<PackedInterval>) -> Self {
        Self {
            intervals,
            ..Self::default()
        }
    }
}

impl RankTeam<'_> {
    /// Merges the results of all ranks in a load phase at rank 0; any other rank keeps its own results. Every rank
    /// learns whether the run continues. `windows` is the number of windows of earlier phases, and `merged` has the
    /// intervals of this rank.
    ///
    /// # Errors
    /// `EngineError::Failed` if a rank was lost; rank 0 then has the results of the surviving ranks.
    pub(crate) fn merge(
        &self,
        plan: &Plan,
        outcome: &mut Outcome,
        windows: usize,
        stage: Option<LocalStageResult>,
        states: &mut Option<RankStates>,
        merged: &mut MergedPhase,
    ) -> Result<(), EngineError> {
        self.is_stop_stale.set(true);
        if self.is_alone() {
            return match stage {
                Some(stage) => self
                    .merge_stage(plan, outcome, stage, states, merged)
                    .map(drop),
                None => Ok(()),
            };
        }
        let report = self.report(plan, outcome, windows, merged);
        let mut has_all = false;
        let done = self.reduce_reports(report.clone()).and_then(|all| {
            if let Some(all) = all {
                has_all = true;
                all.merge_into(plan, outcome, windows, merged);
            }
            let decided = match stage {
                Some(stage) => self.merge_stage(plan, outcome, stage, states, merged)?,
                None => None,
            };
            self.share_verdict(outcome, decided, states)
        });
        if done.is_err() && !has_all {
            self.merge_survivors_of(report, plan, outcome, windows, merged);
        }
        done
    }

    /// Replaces the outcome of rank 0 by the merged outcome of the surviving ranks, after a rank was lost.
    pub(crate) fn merge_survivors(
        &self,
        plan: &Plan,
        outcome: &mut Outcome,
        windows: usize,
        merged: &mut MergedPhase,
    ) {
        let report = self.report(plan, outcome, windows, merged);
        self.merge_survivors_of(report, plan, outcome, windows, merged);
    }

    fn merge_survivors_of(
        &self,
        report: Vec<u8>,
        plan: &Plan,
        outcome: &mut Outcome,
        windows: usize,
        merged: &mut MergedPhase,
    ) {
        let mut combine = combine_reports(|_| ());
        let timeout = SURVIVORS_TIMEOUT;
        let own = report.clone();
        let all = self.ranks.reduce_survivors(report, &mut combine, timeout);
        // At least the outcome of rank 0 is restored, because making the report took parts of the outcome.
        let all = all.or_else(|| self.is_root().then_some(own));
        let Some(Ok(all)) = all.map(|all| unpack::<RankReport>(&all)) else {
            return;
        };
        // The failure is the lost rank, which all surviving ranks report.
        let failure = outcome.failure.take();
        let last = all.outcome.windows.last().map(|w| &w.hosts);
        let ranks = last.map(|hosts| hosts.iter().map(|h| h.ranks).sum::<u32>());
        all.merge_into(plan, outcome, windows, merged);
        outcome.failure = failure;
        if let Some(ranks) = ranks {
            outcome.notes.push(format!(
                "the results are those of {ranks} of {} ranks: the others were lost",
                self.worker_ranks()
            ));
        }
    }

    /// The packed report of this rank. Takes the intervals out of `merged`.
    fn report(
        &self,
        plan: &Plan,
        outcome: &mut Outcome,
        windows: usize,
        merged: &mut MergedPhase,
    ) -> Vec<u8> {
        let part = RankPartOfPlan {
            host: &self.host(),
            workers: self.share_of(plan.workers()),
            counted: &counted(plan),
        };
        let intervals = std::mem::take(&mut merged.intervals);
        let report = RankReport::of(self.rank(), outcome, windows, intervals, part);
        pack(&report)
    }

    /// At rank 0, the merged report of all ranks.
    fn reduce_reports(&self, report: Vec<u8>) -> Result<Option<RankReport>, EngineError> {
        let mut broken = None;
        let mut combine = combine_reports(|e| broken = Some(e));
        let all = self.ranks.reduce(report, &mut combine).map_err(lost)?;
        drop(combine);
        match broken {
            Some(e) => Err(e),
            None => all.map(|all| unpack(&all)).transpose(),
        }
    }
}

impl RankReport {
    /// Replaces the outcome of rank 0 by the merged outcome in this report.
    fn merge_into(
        mut self,
        plan: &Plan,
        outcome: &mut Outcome,
        windows: usize,
        merged: &mut MergedPhase,
    ) {
        self.follow_time(&counted(plan));
        let intervals = std::mem::take(&mut self.intervals);
        merged.intervals = intervals.into_values().collect();
        self.apply_to(outcome, windows);
    }
}

/// For each row of the Plan, whether the row counts in the summary.
fn counted(plan: &Plan) -> Vec<bool> {
    plan.operations.iter().map(|o| o.kind.counts()).collect()
}

/// Merges two packed reports. An unreadable report is left out and passed to `broken` as an error.
fn combine_reports(mut broken: impl FnMut(EngineError)) -> impl FnMut(Vec<u8>, Vec<u8>) -> Vec<u8> {
    move |mine, theirs| {
        let sum = || {
            let mut sum: RankReport = unpack(&mine)?;
            sum.add(unpack(&theirs)?)?;
            Ok(pack(&sum))
        };
        sum().unwrap_or_else(|e| {
            broken(e);
            mine
        })
    }
}
