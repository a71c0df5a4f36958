//! The report of a rank on a load phase, and the merge of two reports.

use super::packed_interval::PackedInterval;
use crate::run::EngineError;
use crate::run::host::{self, Host, Hosts};
use plimsoll_measure::system::SystemUse;
use plimsoll_measure::{
    Batches, GapWatch, HostCounts, IntervalCounts, LongReplies, MeasuredWindow, NfsClients,
    OpTotals, Outcome, RankStall, WindowTotals,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The rank's machine, its number of workers, and the counted rows of the Plan.
#[derive(Clone, Copy)]
pub(super) struct RankPartOfPlan<'a> {
    /// Name of the rank's machine.
    pub(super) host: &'a str,
    /// Number of the rank's workers.
    pub(super) workers: u64,
    /// For each row of the Plan, whether the row counts in the summary.
    pub(super) counted: &'a [bool],
}

/// The report of a rank on a load phase, or of several ranks together.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct RankReport {
    /// Outcome of the ranks, with the windows of this phase only.
    pub(super) outcome: Outcome,
    pub(super) hosts: Hosts,
    /// Intervals by window and by number in the window.
    pub(super) intervals: BTreeMap<(u32, u64), PackedInterval>,
}

impl RankReport {
    /// The report of a rank on a phase whose windows follow `windows` earlier windows. Takes the long replies out of
    /// the outcome, because the merged outcome will have the long replies of all ranks.
    pub(super) fn of(
        rank: u32,
        outcome: &mut Outcome,
        windows: usize,
        intervals: Vec<PackedInterval>,
        part: RankPartOfPlan<'_>,
    ) -> Self {
        let new = &outcome.windows[windows..];
        let systems: Vec<&SystemUse> = new.iter().map(|w| &w.system).collect();
        let this_host = Host::of_this_process(outcome.lanes, &systems);
        let intervals = intervals.into_iter().map(|i| ((i.window, i.index), i));
        let windows = new.iter().map(|w| Self::window_of(rank, w, part));
        Self {
            hosts: Hosts::from([(host::name(), this_host)]),
            intervals: intervals.collect(),
            outcome: Outcome {
                windows: windows.collect(),
                failure: outcome.failure.clone().map(|f| f.at_rank(rank)),
                ran_out: outcome.ran_out.clone(),
                interrupted: outcome.interrupted,
                hung_workers: outcome.hung_workers.clone(),
                notes: outcome.notes.clone(),
                lanes: outcome.lanes,
                nfs_clients: outcome.nfs_clients.clone(),
                variables: outcome.variables.clone(),
                processes: outcome.processes.clone(),
                backlog: outcome.backlog.clone(),
                schedules: outcome.schedules.clone(),
                long_replies: std::mem::take(&mut outcome.long_replies),
                ..Outcome::default()
            },
        }
    }

    /// The window with the counts of the rank's machine. The stalls of the rank's workers become rank stalls. The
    /// system counters are left out, except the resource use of the process.
    fn window_of(rank: u32, window: &MeasuredWindow, part: RankPartOfPlan<'_>) -> MeasuredWindow {
        let (totals, system) = (&window.totals, &window.system);
        let stalls = totals.stalls.iter();
        let hosts = match part.workers {
            // A rank 0 that only coordinates the other ranks.
            0 => vec![],
            n => vec![HostCounts::of_rank(
                part.host,
                n,
                &totals.rows,
                part.counted,
                system,
            )],
        };
        MeasuredWindow {
            totals: WindowTotals {
                rank_stalls: stalls.map(|s| RankStall { rank, stall: *s }).collect(),
                // Rank 0 counts the operations in the merged intervals.
                counts: IntervalCounts::default(),
                batches: Batches::default(),
                ..totals.clone()
            },
            system: SystemUse {
                process: system.process.clone(),
                ..SystemUse::default()
            },
            hosts,
            started: window.started,
            ..MeasuredWindow::default()
        }
    }

    /// Writes the merged outcome of all ranks into the outcome of rank 0.
    pub(super) fn apply_to(self, outcome: &mut Outcome, windows: usize) {
        let all = self.outcome;
        let own = outcome.windows[windows..].iter_mut();
        for (i, (window, merged)) in own.zip(all.windows).enumerate() {
            let rows = (window.totals.rows.len(), merged.totals.rows.len());
            assert_eq!(rows.0, rows.1, "all ranks run the same Plan");
            // Clocks of different ranks are not comparable; only lengths are.
            let totals = WindowTotals {
                start: window.totals.start,
                end: window.totals.start + (merged.totals.end - merged.totals.start),
                ..merged.totals
            };
            outcome
                .own
                .push(std::mem::replace(&mut window.totals, totals));
            let seconds = window.system.seconds;
            if let Some((process, sum)) = window.system.process.as_mut().zip(merged.system.process)
            {
                // Memory, faults and context switches stay the figures of rank 0.
                (process.user_s, process.system_s) = (sum.user_s, sum.system_s);
                process.storage_read_bytes = sum.storage_read_bytes;
            }
            window.hosts = merged.hosts;
            window.system.nfs_mounts = host::mounted(&self.hosts, i);
            window.client_share = host::busiest(&self.hosts, i, seconds);
            window.throttling = host::most_throttled(&self.hosts, i, seconds);
        }
        outcome.failure = all.failure;
        outcome.ran_out = all.ran_out;
        outcome.interrupted = all.interrupted;
        outcome.hung_workers = all.hung_workers;
        outcome.notes = all.notes;
        outcome.own_lanes = std::mem::replace(&mut outcome.lanes, all.lanes);
        let own = std::mem::replace(&mut outcome.nfs_clients, all.nfs_clients);
        NfsClients::keep_larger(&mut outcome.own_nfs_clients, own);
        outcome.variables = all.variables;
        outcome.processes = all.processes;
        outcome.processes.sort_by_key(|p| (p.group, p.number));
        outcome.backlog = all.backlog;
        outcome.schedules = all.schedules;
        outcome.long_replies = all.long_replies;
    }

    /// Computes the gaps, the stalls, the counts by interval and the batches of all ranks together, in the merged
    /// report.
    pub(super) fn follow_time(&mut self, counted: &[bool]) {
        self.extend_intervals();
        for totals in self.outcome.windows.iter_mut().map(|w| &mut w.totals) {
            let mut watch = GapWatch::new(counted.to_vec());
            let intervals = self.intervals.values();
            for interval in intervals.filter(|i| i.window == totals.number) {
                let interval = interval.unpack();
                watch.add(&interval);
                totals.counts.add(&interval, counted);
                totals.batches.add(&interval);
            }
            totals.gaps = watch.finish(totals.end.saturating_sub(totals.start));
            totals
                .rank_stalls
                .sort_by_key(|s| (s.rank, s.stall.gap.from));
            totals.find_stalls(counted);
        }
    }

    /// Gives every interval the length that it has in the window of all ranks. The last interval of a rank whose window
    /// ended early is shorter, and an interval without completions is missing from the report of a rank.
    fn extend_intervals(&mut self) {
        for totals in self.outcome.windows.iter().map(|w| &w.totals) {
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
    /// `EngineError::Failed` if an interval is unreadable.
    pub(super) fn add(&mut self, other: Self) -> Result<(), EngineError> {
        host::add(&mut self.hosts, other.hosts);
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
        let (mine, theirs) = (&mut self.outcome, other.outcome);
        for (i, window) in theirs.windows.into_iter().enumerate() {
            match mine.windows.get_mut(i) {
                None => mine.windows.push(window),
                Some(all) => add_window(all, window),
            }
        }
        mine.failure = mine.failure.take().or(theirs.failure);
        // Each rank counts from its own start; the rank that was exhausted earliest ended the run.
        let both = mine.ran_out.take().into_iter().chain(theirs.ran_out);
        mine.ran_out = both.min_by_key(|r| (r.measured, r.after_ns));
        mine.interrupted |= theirs.interrupted;
        mine.hung_workers.extend(theirs.hung_workers);
        for note in theirs.notes {
            if !mine.notes.contains(&note) {
                mine.notes.push(note);
            }
        }
        mine.lanes += theirs.lanes;
        NfsClients::add(&mut mine.nfs_clients, theirs.nfs_clients);
        for variable in theirs.variables {
            match mine.variables.iter_mut().find(|v| v.name == variable.name) {
                None => mine.variables.push(variable),
                Some(known) => known.stats.merge(&variable.stats),
            }
        }
        mine.processes.extend(theirs.processes);
        mine.backlog.add(&theirs.backlog);
        mine.schedules.extend(theirs.schedules);
        LongReplies::add(&mut mine.long_replies, theirs.long_replies);
        Ok(())
    }
}

/// Adds the window of another rank.
fn add_window(all: &mut MeasuredWindow, other: MeasuredWindow) {
    // Window numbers may differ: a rank with an exhausted fileset skips the windows that follow.
    let (mine, theirs) = (&mut all.totals, other.totals);
    let length = (mine.end - mine.start).max(theirs.end - theirs.start);
    mine.end = mine.start + length;
    mine.calls.merge(&theirs.calls);
    mine.rank_stalls.extend(theirs.rank_stalls);
    mine.abandoned += theirs.abandoned;
    mine.unanswered_since = mine.unanswered_since.max(theirs.unanswered_since);
    mine.done = mine.done.zip(theirs.done).map(|(m, t)| m.merge(t));
    add_rows(&mut mine.rows, &theirs.rows);
    match (&mut all.system.process, other.system.process) {
        (Some(mine), Some(theirs)) => mine.add(&theirs),
        (mine, theirs) => *mine = mine.take().or(theirs),
    }
    HostCounts::add_all(&mut all.hosts, &other.hosts);
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
    use plimsoll_measure::{
        Collector, Nanos, NfsTransferSize, OpTimes, Recorder, RowSpec, WindowState,
    };
    use std::sync::Arc;

    const SECOND: Nanos = 1_000_000_000;

    /// The report of a rank that completes an operation every 10 ms. If `held_up`, one operation lasts from second 2 to
    /// second 4, and no other operation completes meanwhile.
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
        let window = MeasuredWindow::from(totals);
        let part = RankPartOfPlan {
            host: "host",
            workers: 1,
            counted: &[true],
        };
        RankReport {
            outcome: Outcome {
                windows: vec![RankReport::window_of(rank, &window, part)],
                ..Outcome::default()
            },
            intervals: keyed.collect(),
            ..RankReport::default()
        }
    }

    /// The numbers of NFS clients survive the way to rank 0, without the figures that version 3 lacks.
    #[test]
    fn nfs_clients_of_all_ranks_are_added() {
        let size = NfsTransferSize {
            bytes: 4096,
            requested_bytes: 4096,
        };
        let clients = NfsClients {
            version: "3".into(),
            clients: 2,
            connections: 4,
            client_ids: None,
            sessions: None,
            open_owners: None,
            read: size,
            write: size,
        };
        let of_rank = |rank| {
            let mut report = report(rank, false);
            report.outcome.nfs_clients = Some(clients.clone());
            report
        };
        let sent = postcard::to_allocvec(&of_rank(1)).unwrap();
        let mut all = of_rank(0);
        all.add(postcard::from_bytes(&sent).unwrap()).unwrap();
        let expected = NfsClients {
            clients: 4,
            connections: 8,
            ..clients.clone()
        };
        assert_eq!(all.outcome.nfs_clients, Some(expected));
    }

    /// A rank that is held up from second 2 to second 4 completes one operation in that time, in second 3.
    #[test]
    fn operations_of_all_ranks_are_counted_by_interval() {
        let mut all = report(0, false);
        all.add(report(1, true)).unwrap();
        all.follow_time(&[true]);
        let mut expected = IntervalCounts::default();
        for (second, ops) in (0..).zip([200, 200, 100, 101, 200, 200, 200, 200, 200, 200]) {
            expected.add_ops(second, SECOND, ops);
        }
        assert_eq!(all.outcome.windows[0].totals.counts, expected);
    }

    #[test]
    fn a_stall_of_one_rank_is_its_own_and_one_of_all_is_of_all() {
        for (others, of_all, of_ranks) in [(false, 0, 1), (true, 1, 2)] {
            let mut all = report(0, others);
            all.add(report(1, true)).unwrap();
            all.follow_time(&[true]);
            let totals = &all.outcome.windows[0].totals;
            assert_eq!(totals.stalls.len(), of_all, "{:?}", totals.stalls);
            assert_eq!(totals.rank_stalls.len(), of_ranks);
            assert_eq!(totals.rank_stalls[of_ranks - 1].rank, 1);
        }
    }
}
