//! What a rank tells of a part of a run, and how those of two ranks become one.

use crate::outcome::{DrawnVariable, Failure, ProcessFigures, RanOut};
use crate::run::host::{self, Hosts};
use plimsoll_measure::system::ProcessUse;
use plimsoll_measure::{GapWatch, Interval, RankStall, WindowTotals};
use plimsoll_target::LongReplies;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a rank tells of a part of a run in which workers worked.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct RankReport {
    pub(super) windows: Vec<WindowTotals>,
    /// What the rank's process used in each window.
    pub(super) processes_used: Vec<ProcessUse>,
    pub(super) hosts: Hosts,
    /// One for each window and place in it.
    pub(super) intervals: BTreeMap<(u32, u64), Interval>,
    pub(super) failure: Option<(u32, Failure)>,
    pub(super) ran_out: Option<RanOut>,
    pub(super) interrupted: bool,
    pub(super) stuck: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) lanes: usize,
    pub(super) variables: Vec<DrawnVariable>,
    pub(super) processes: Vec<ProcessFigures>,
    pub(super) long_replies: Vec<LongReplies>,
}

impl RankReport {
    /// What a rank tells of a window: what its own workers saw of stalls is kept apart.
    pub(super) fn window_of(rank: u32, totals: &WindowTotals) -> WindowTotals {
        let stalls = totals.stalls.iter();
        WindowTotals {
            rank_stalls: stalls.map(|s| RankStall { rank, stall: *s }).collect(),
            ..totals.clone()
        }
    }

    /// Finds the gaps and stalls of all ranks together, once all have told.
    pub(super) fn find_stalls(&mut self, counted: &[bool]) {
        for totals in &mut self.windows {
            let mut watch = GapWatch::new(counted.to_vec());
            let intervals = self.intervals.values();
            intervals
                .filter(|i| i.window == totals.number)
                .for_each(|i| watch.add(i));
            totals.gaps = watch.finish(totals.end.saturating_sub(totals.start));
            totals
                .rank_stalls
                .sort_by_key(|s| (s.rank, s.stall.gap.from));
            totals.find_stalls(counted);
        }
    }

    /// Adds what another rank tells.
    pub(super) fn add(&mut self, other: Self) {
        for (i, theirs) in other.windows.into_iter().enumerate() {
            match self.windows.get_mut(i) {
                None => self.windows.push(theirs),
                Some(mine) => {
                    assert_eq!(mine.rows.len(), theirs.rows.len(), "all ranks run one Plan");
                    let length = (mine.end - mine.start).max(theirs.end - theirs.start);
                    mine.end = mine.start + length;
                    for (mine, theirs) in mine.slow.iter_mut().zip(&theirs.slow) {
                        mine.merge(theirs);
                    }
                    mine.rank_stalls.extend(theirs.rank_stalls);
                    mine.abandoned += theirs.abandoned;
                    mine.unanswered_since = mine.unanswered_since.max(theirs.unanswered_since);
                    mine.done = mine.done.zip(theirs.done).map(|(m, t)| m.merge(t));
                    for (mine, theirs) in mine.rows.iter_mut().zip(&theirs.rows) {
                        mine.add(theirs);
                    }
                }
            }
        }
        for (i, theirs) in other.processes_used.into_iter().enumerate() {
            match self.processes_used.get_mut(i) {
                None => self.processes_used.push(theirs),
                Some(mine) => mine.add(&theirs),
            }
        }
        host::add(&mut self.hosts, other.hosts);
        for (key, theirs) in other.intervals {
            match self.intervals.get_mut(&key) {
                None => drop(self.intervals.insert(key, theirs)),
                Some(mine) => {
                    mine.length = mine.length.max(theirs.length);
                    mine.completions.union(&theirs.completions);
                    for (mine, theirs) in mine.rows.iter_mut().zip(&theirs.rows) {
                        mine.add(theirs);
                    }
                }
            }
        }
        self.failure = self.failure.take().or(other.failure);
        // Each rank counts from its own start; the first to run out is the one that ended the run.
        let both = self.ran_out.take().into_iter().chain(other.ran_out);
        self.ran_out = both.min_by_key(|r| (r.measured, r.after_ns));
        self.interrupted |= other.interrupted;
        self.stuck.extend(other.stuck);
        for note in other.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.lanes += other.lanes;
        for theirs in other.variables {
            match self.variables.iter_mut().find(|v| v.name == theirs.name) {
                None => self.variables.push(theirs),
                Some(mine) => mine.stats.merge(&theirs.stats),
            }
        }
        self.processes.extend(other.processes);
        LongReplies::add(&mut self.long_replies, other.long_replies);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::{Collector, Nanos, OpTimes, Recorder, RowSpec, WindowState};
    use std::sync::Arc;

    const SECOND: Nanos = 1_000_000_000;

    /// What a rank tells that looks at something every 10 ms, and of which one operation took from
    /// the second until the fourth second if it was held up.
    fn report(rank: u32, held_up: bool) -> RankReport {
        let window = Arc::new(WindowState::new(SECOND));
        let lane = Recorder::new(window.clone(), &[RowSpec::default()]);
        let mut collector = Collector::new(window.clone(), vec![lane.progress()], 1);
        window.open(0, 10 * SECOND);
        for at in (0..10 * SECOND).step_by(10_000_000) {
            let held = held_up && (2 * SECOND..4 * SECOND).contains(&at);
            match at {
                _ if !held => lane.record(0, OpTimes::unpaced(at, at + 1_000_000), 0),
                at if at == 2 * SECOND => lane.record(0, OpTimes::unpaced(at, 4 * SECOND - 1), 0),
                _ => {}
            }
        }
        lane.finish();
        let (intervals, totals) = collector.finish();
        let keyed = intervals.into_iter().map(|i| ((i.window, i.index), i));
        RankReport {
            windows: vec![RankReport::window_of(rank, &totals)],
            intervals: keyed.collect(),
            ..RankReport::default()
        }
    }

    #[test]
    fn a_stall_of_one_rank_is_its_own_and_one_of_all_is_of_all() {
        for (others, of_all, of_ranks) in [(false, 0, 1), (true, 1, 2)] {
            let mut all = report(0, others);
            all.add(report(1, true));
            all.find_stalls(&[true]);
            let totals = &all.windows[0];
            assert_eq!(totals.stalls.len(), of_all, "{:?}", totals.stalls);
            assert_eq!(totals.rank_stalls.len(), of_ranks);
            assert_eq!(totals.rank_stalls[of_ranks - 1].rank, 1);
        }
    }
}
