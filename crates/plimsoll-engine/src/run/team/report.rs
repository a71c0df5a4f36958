//! The report of a rank on a load phase, and the merging of two reports.

use super::packed_interval::PackedInterval;
use crate::outcome::{DrawnVariable, Outcome, RanOut, Window};
use crate::run::EngineError;
use crate::run::host::{self, Host, Hosts};
use plimsoll_measure::system::{ProcessUse, SystemUse};
use plimsoll_measure::{
    GapWatch, HostCounts, OpTotals, ProcessCounts, RankStall, ScheduleCounts, WindowTotals,
};
use plimsoll_plan::Failure;
use plimsoll_target::LongReplies;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part of a Plan that a rank has.
#[derive(Clone, Copy)]
pub(super) struct RankPartOfPlan<'a> {
    /// The name of its machine.
    pub(super) host: &'a str,
    /// Its workers.
    pub(super) workers: u64,
    /// Which rows of the Plan are operations of the summary.
    pub(super) counted: &'a [bool],
}

/// The report of a rank on a load phase.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct RankReport {
    pub(super) windows: Vec<WindowTotals>,
    /// Resources used by the rank's process in each window.
    pub(super) processes_used: Vec<ProcessUse>,
    pub(super) hosts: Hosts,
    /// The machines of the ranks in each window, as results name them.
    pub(super) host_counts: Vec<Vec<HostCounts>>,
    /// Intervals by window and number in it.
    pub(super) intervals: BTreeMap<(u32, u64), PackedInterval>,
    pub(super) failure: Option<(u32, Failure)>,
    pub(super) ran_out: Option<RanOut>,
    pub(super) interrupted: bool,
    pub(super) stuck: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) lanes: usize,
    pub(super) variables: Vec<DrawnVariable>,
    pub(super) processes: Vec<ProcessCounts>,
    pub(super) schedules: Vec<ScheduleCounts>,
    pub(super) long_replies: Vec<LongReplies>,
}

impl RankReport {
    /// The report of a rank on a phase whose windows come after `windows` others. Takes the long
    /// replies out of the outcome, since those of all ranks come back.
    pub(super) fn of(
        rank: u32,
        outcome: &mut Outcome,
        windows: usize,
        intervals: Vec<PackedInterval>,
        part: RankPartOfPlan<'_>,
    ) -> Self {
        let counts = |w: &Window| match part.workers {
            // Rank 0 that only coordinates the others.
            0 => vec![],
            n => vec![HostCounts::of_rank(
                part.host,
                n,
                &w.totals.rows,
                part.counted,
                &w.system,
            )],
        };
        let new = outcome.windows[windows..].iter();
        let used = new.clone().map(|w| w.system.process.clone());
        let used: Vec<ProcessUse> = used.map(Option::unwrap_or_default).collect();
        let intervals = intervals.into_iter().map(|i| ((i.window, i.index), i));
        let systems: Vec<&SystemUse> = new.clone().map(|w| &w.system).collect();
        let this_host = Host::of_this_process(outcome.lanes, &systems);
        Self {
            hosts: Hosts::from([(host::name(), this_host)]),
            host_counts: new.clone().map(counts).collect(),
            windows: new.map(|w| Self::window_of(rank, &w.totals)).collect(),
            processes_used: used,
            intervals: intervals.collect(),
            failure: outcome.failure.clone().map(|f| (rank, f)),
            ran_out: outcome.ran_out.clone(),
            interrupted: outcome.interrupted,
            stuck: outcome.stuck.clone(),
            notes: outcome.notes.clone(),
            lanes: outcome.lanes,
            variables: outcome.variables.clone(),
            processes: outcome.processes.clone(),
            schedules: outcome.schedules.clone(),
            long_replies: std::mem::take(&mut outcome.long_replies),
        }
    }

    /// The report on a window; the stalls of the rank's own workers are kept apart.
    fn window_of(rank: u32, totals: &WindowTotals) -> WindowTotals {
        let stalls = totals.stalls.iter();
        WindowTotals {
            rank_stalls: stalls.map(|s| RankStall { rank, stall: *s }).collect(),
            ..totals.clone()
        }
    }

    /// Replaces the outcome of rank 0 by that of all ranks, whose reports this is.
    pub(super) fn apply_to(self, outcome: &mut Outcome, windows: usize) {
        let own = outcome.windows[windows..].iter_mut();
        for (i, (window, totals)) in own.zip(self.windows).enumerate() {
            let rows = (window.totals.rows.len(), totals.rows.len());
            assert_eq!(rows.0, rows.1, "all ranks run the same Plan");
            // Clocks of different ranks are not comparable, only lengths are.
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
                let sum = &self.processes_used[i];
                (process.user_s, process.system_s) = (sum.user_s, sum.system_s);
                process.storage_read_bytes = sum.storage_read_bytes;
            }
            window.hosts = self.host_counts[i].clone();
            window.system.nfs_mounts = host::mounted(&self.hosts, i);
            window.client_share = host::busiest(&self.hosts, i, window.system.seconds);
            window.throttling = host::most_throttled(&self.hosts, i, window.system.seconds);
        }
        outcome.failure = self.failure.map(|(rank, failure)| failure.at_rank(rank));
        outcome.ran_out = self.ran_out;
        outcome.interrupted = self.interrupted;
        outcome.stuck = self.stuck;
        outcome.notes = self.notes;
        outcome.own_lanes = std::mem::replace(&mut outcome.lanes, self.lanes);
        outcome.variables = self.variables;
        outcome.processes = self.processes;
        outcome.processes.sort_by_key(|p| (p.group, p.number));
        outcome.schedules = self.schedules;
        outcome.long_replies = self.long_replies;
    }

    /// Finds the gaps and stalls of all ranks together, in the merged report.
    pub(super) fn find_stalls(&mut self, counted: &[bool]) {
        self.extend_intervals();
        for totals in &mut self.windows {
            let mut watch = GapWatch::new(counted.to_vec());
            let intervals = self.intervals.values();
            intervals
                .filter(|i| i.window == totals.number)
                .for_each(|i| watch.add(&i.unpack()));
            totals.gaps = watch.finish(totals.end.saturating_sub(totals.start));
            totals
                .rank_stalls
                .sort_by_key(|s| (s.rank, s.stall.gap.from));
            totals.find_stalls(counted);
        }
    }

    /// Gives every interval the length that it has in the window of all ranks. A rank whose window ended early has
    /// a shorter last one, and one in which nothing completed is missing from the report of a rank.
    fn extend_intervals(&mut self) {
        for totals in &self.windows {
            let length = totals.end.saturating_sub(totals.start);
            let of_window = |i: &&PackedInterval| i.window == totals.number && i.index > 0;
            let Some(later) = self.intervals.values().find(of_window) else {
                continue;
            };
            let whole = later.start / later.index;
            let intervals = self.intervals.values_mut();
            for interval in intervals.filter(|i| i.window == totals.number) {
                let left = length.saturating_sub(interval.start);
                interval.length = interval.length.max(whole.min(left));
            }
        }
    }

    /// Adds the report of another rank.
    ///
    /// # Errors
    /// An interval is unreadable.
    pub(super) fn add(&mut self, other: Self) -> Result<(), EngineError> {
        for (i, theirs) in other.windows.into_iter().enumerate() {
            match self.windows.get_mut(i) {
                None => self.windows.push(theirs),
                Some(mine) => {
                    // Numbers may differ: a rank that ran out skips the windows that follow.
                    let length = (mine.end - mine.start).max(theirs.end - theirs.start);
                    mine.end = mine.start + length;
                    mine.calls.merge(&theirs.calls);
                    mine.rank_stalls.extend(theirs.rank_stalls);
                    mine.abandoned += theirs.abandoned;
                    mine.unanswered_since = mine.unanswered_since.max(theirs.unanswered_since);
                    mine.done = mine.done.zip(theirs.done).map(|(m, t)| m.merge(t));
                    add_rows(&mut mine.rows, &theirs.rows);
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
        for (i, theirs) in other.host_counts.into_iter().enumerate() {
            match self.host_counts.get_mut(i) {
                None => self.host_counts.push(theirs),
                Some(mine) => HostCounts::add_all(mine, &theirs),
            }
        }
        for (key, theirs) in other.intervals {
            let read = theirs.read()?;
            match self.intervals.get_mut(&key) {
                None => drop(self.intervals.insert(key, theirs)),
                Some(mine) => {
                    let (mut sum, theirs) = (mine.unpack(), read);
                    sum.length = sum.length.max(theirs.length);
                    sum.completions.union(&theirs.completions);
                    add_rows(&mut sum.rows, &theirs.rows);
                    *mine = PackedInterval::new(&sum);
                }
            }
        }
        self.failure = self.failure.take().or(other.failure);
        // Each rank counts from its own start; the earliest one ended the run.
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
        self.schedules.extend(other.schedules);
        LongReplies::add(&mut self.long_replies, other.long_replies);
        Ok(())
    }
}

fn add_rows(mine: &mut [OpTotals], theirs: &[OpTotals]) {
    assert_eq!(mine.len(), theirs.len(), "all ranks run one Plan");
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        mine.add(theirs);
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
        let worker = lane.worker();
        for at in (0..10 * SECOND).step_by(10_000_000) {
            let held = held_up && (2 * SECOND..4 * SECOND).contains(&at);
            match at {
                _ if !held => lane.record(0, OpTimes::unpaced(at, at + 1_000_000), 0),
                at if at == 2 * SECOND => {
                    worker.begin(0, at);
                    worker.note_long(4 * SECOND - 1);
                    lane.record(0, OpTimes::unpaced(at, 4 * SECOND - 1), 0);
                    worker.end();
                }
                _ => {}
            }
        }
        lane.finish();
        let (intervals, totals) = collector.finish();
        let keyed = intervals
            .iter()
            .map(|i| ((i.window, i.index), PackedInterval::new(i)));
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
            all.add(report(1, true)).unwrap();
            all.find_stalls(&[true]);
            let totals = &all.windows[0];
            assert_eq!(totals.stalls.len(), of_all, "{:?}", totals.stalls);
            assert_eq!(totals.rank_stalls.len(), of_ranks);
            assert_eq!(totals.rank_stalls[of_ranks - 1].rank, 1);
        }
    }
}
