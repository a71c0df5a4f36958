//! Merging of the lanes' records into intervals and totals.

use crate::batches::{Batches, Confidence};
use crate::call_spans::CallSpans;
use crate::completions::{Completions, slot_shift};
use crate::gaps::{GapWatch, Gaps, RankStall, Stall, stalls};
use crate::recorder::{Delivery, LaneProgress};
use crate::{
    InFlightAges, Interval, IntervalCounts, Nanos, OpTotals, WindowBounds, WindowState, WorkersDone,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of intervals kept open for a hung lane. Older intervals are closed without the lane, and the lane's
/// late deliveries count in the totals and in the oldest open interval.
const OPEN_INTERVALS: usize = 60;

/// Totals of the operations of all lanes in a measured window, with the window's gaps and stalls.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WindowTotals {
    /// Number of the measured window in the run, from 1.
    pub number: u32,
    /// Start of the window, in nanoseconds of the run's clock.
    pub start: Nanos,
    /// End of the window, in nanoseconds of the run's clock.
    pub end: Nanos,
    /// Totals of the operations in the window, one entry for each row of the results.
    pub rows: Vec<OpTotals>,
    /// Numbers of operations of the counted rows together, by interval.
    pub counts: IntervalCounts,
    /// Operations by batch, for the confidence intervals of the figures.
    pub batches: Batches,
    /// Longest times without completions in the window, by row, and times without completions that may be stalls.
    pub gaps: Gaps,
    /// Time spans with long calls in flight, and with frequent call completions.
    pub calls: CallSpans,
    /// Stalls of the target, as seen by all lanes or ranks together.
    pub stalls: Vec<Stall>,
    /// Stalls of the target as seen by the workers of single ranks, in runs of several ranks.
    pub rank_stalls: Vec<RankStall>,
    /// Number of operations that were in flight at the window end, never returned, and were abandoned.
    pub abandoned: u64,
    /// Time of the server's last reply before lost operations, in nanoseconds of the run's clock.
    pub unanswered_since: Option<Nanos>,
    /// Completion times of the workers, if every worker finished by itself.
    pub done: Option<WorkersDone>,
}

impl WindowTotals {
    fn new(number: u32, rows: usize) -> Self {
        Self {
            number,
            rows: vec![OpTotals::default(); rows],
            ..Default::default()
        }
    }

    /// Finds the stalls among the gaps, considering only the rows that are set in `counted`.
    pub fn find_stalls(&mut self, counted: &[bool]) {
        let length = self.end.saturating_sub(self.start);
        self.stalls = stalls(length, &self.gaps, &self.calls, &self.rows, counted);
    }

    /// Number of operations of all rows in flight at the window end.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.rows.iter().map(|r| r.in_flight.count()).sum()
    }
}

/// An interval for which lanes may still deliver records.
struct OpenInterval {
    rows: Vec<OpTotals>,
    completions: Completions,
}

/// Merges the records of all lanes of a run into intervals and window totals.
pub struct Collector {
    lanes: Vec<Arc<LaneProgress>>,
    window: Arc<WindowState>,
    rows: usize,
    /// For each row, whether completions of the row count for the gaps of the window.
    is_counted_row: Vec<bool>,
    gaps: GapWatch,
    open: BTreeMap<u64, OpenInterval>,
    totals: WindowTotals,
    /// Number of operations of the window delivered so far.
    merged_ops: u64,
    /// Number of the first interval of the window that has not been closed and returned yet.
    next: u64,
    /// Number of the latest window whose totals were returned; 0 before the end of the first window.
    finished: u32,
}

impl Collector {
    /// A collector for lanes whose recorders all have `rows` rows.
    #[must_use]
    pub fn new(window: Arc<WindowState>, lanes: Vec<Arc<LaneProgress>>, rows: usize) -> Self {
        Self {
            lanes,
            window,
            rows,
            is_counted_row: vec![true; rows],
            gaps: GapWatch::new(vec![true; rows]),
            open: BTreeMap::new(),
            totals: WindowTotals::new(0, rows),
            merged_ops: 0,
            next: 0,
            finished: 0,
        }
    }

    /// Restricts the search for stalls, and the counts by interval, to the rows that are set in `counted`: rows of
    /// operations on the target.
    #[must_use]
    pub fn counting(mut self, counted: Vec<bool>) -> Self {
        assert_eq!(counted.len(), self.rows, "one entry per row");
        self.gaps = GapWatch::new(counted.clone());
        self.is_counted_row = counted;
        self
    }

    /// States of the lanes' recorders that other threads can read, in the order of the lanes' creation.
    #[must_use]
    pub fn lanes(&self) -> &[Arc<LaneProgress>] {
        &self.lanes
    }

    /// Takes new deliveries; returns the intervals that are now complete, in order.
    pub fn drain(&mut self) -> Vec<Interval> {
        // Read the bounds first: records delivered before this point are in the mailbox.
        let number = self.window.bounds().number;
        let lanes = self.lanes.iter();
        let reached = lanes
            .map(|l| l.delivered_upto(number))
            .min()
            .unwrap_or(u64::MAX);
        self.take_deliveries();
        let mut complete = Vec::new();
        while let Some((&index, _)) = self.open.first_key_value() {
            if index >= reached && self.open.len() <= OPEN_INTERVALS {
                break;
            }
            complete.extend(self.close_interval(index));
        }
        complete
    }

    /// Ends the window: takes the last deliveries, and the undelivered records of lanes that never returned. Returns
    /// the last intervals and the window's totals.
    pub fn finish(&mut self) -> (Vec<Interval>, WindowTotals) {
        for lane in self.lanes.clone() {
            let (delivered, current) = lane.take_all();
            self.merge_delivered(&lane, delivered);
            // The lane's current buffer is empty unless the lane continues or never returned.
            if !current.buffer.is_empty() {
                self.merge(&current);
            }
        }
        let mut last = Vec::new();
        while let Some((&index, _)) = self.open.first_key_value() {
            last.extend(self.close_interval(index));
        }
        let WindowBounds { number, start, end } = self.window.bounds();
        self.totals.abandoned = self.lanes.iter().map(|l| l.abandoned()).sum();
        let silent = self.lanes.iter().filter_map(|l| l.unanswered_since());
        self.totals.unanswered_since = silent.max();
        let empty = WindowTotals::new(0, self.rows);
        let mut totals = std::mem::replace(&mut self.totals, empty);
        let ops: u64 = totals.rows.iter().map(|row| row.ops).sum();
        let merged = std::mem::take(&mut self.merged_ops);
        assert_eq!(
            ops, merged,
            "the intervals of a window add up to its totals"
        );
        (totals.number, totals.start, totals.end) = (number, start, end);
        self.finished = number;
        self.take_notes(&mut totals);
        let gaps = std::mem::replace(&mut self.gaps, GapWatch::new(self.is_counted_row.clone()));
        totals.gaps = gaps.finish(totals.end.saturating_sub(totals.start));
        totals.find_stalls(&self.is_counted_row);
        (last, totals)
    }

    /// Adds the operations in flight at the window end, and the call spans.
    fn take_notes(&self, totals: &mut WindowTotals) {
        let mut ages = vec![InFlightAges::default(); self.rows];
        totals.calls = CallSpans::new(self.rows);
        let window = WindowBounds {
            number: totals.number,
            start: totals.start,
            end: totals.end,
        };
        for lane in &self.lanes {
            lane.take_notes(window, &mut ages, &mut totals.calls);
        }
        for (row, ages) in totals.rows.iter_mut().zip(ages) {
            row.in_flight = ages;
        }
    }

    /// Confidence intervals of the figures of all counted rows together, from the intervals of the open window that were
    /// returned so far.
    #[must_use]
    pub fn confidence(&self) -> Confidence {
        let length = self.next * self.window.interval();
        let batches = &self.totals.batches;
        batches.confidence(|row| self.is_counted_row[row], length)
    }

    fn take_deliveries(&mut self) {
        for lane in self.lanes.clone() {
            self.merge_delivered(&lane, lane.take());
        }
    }

    fn merge_delivered(&mut self, lane: &LaneProgress, delivered: Vec<Delivery>) {
        for delivery in delivered {
            debug_assert!(
                delivery.buffer.is_consistent(),
                "the buckets of a delivered buffer add up to its counts"
            );
            self.merge(&delivery);
            lane.give_back(delivery.buffer);
        }
    }

    fn merge(&mut self, delivery: &Delivery) {
        let number = self.window.bounds().number;
        assert!(
            delivery.window <= number,
            "a lane is in window {}, which has not opened",
            delivery.window
        );
        if delivery.window != number || number <= self.finished {
            return;
        }
        if number != self.totals.number {
            // A new window discards the records of an unfinished window.
            self.totals = WindowTotals::new(number, self.rows);
            self.merged_ops = 0;
            self.gaps = GapWatch::new(self.is_counted_row.clone());
            self.open.clear();
            self.next = 0;
        }
        let index = delivery.interval.max(self.next);
        let open = self.open.entry(index).or_insert_with(|| OpenInterval {
            rows: vec![OpTotals::default(); self.rows],
            completions: Completions::new(1 << slot_shift(self.window.interval()), self.rows),
        });
        self.merged_ops += delivery.buffer.add_to(&mut open.rows);
        // Late records completed in another interval.
        if index == delivery.interval {
            delivery.buffer.add_marks_to(&mut open.completions);
        }
    }

    fn close_interval(&mut self, index: u64) -> Option<Interval> {
        let OpenInterval { rows, completions } = self.open.remove(&index)?;
        for (total, row) in self.totals.rows.iter_mut().zip(&rows) {
            total.add(row);
        }
        self.next = index + 1;
        let WindowBounds { number, start, end } = self.window.bounds();
        let length = self.window.interval();
        let from = index * length;
        let length = length.min(end.saturating_sub(start).saturating_sub(from));
        let interval = Interval {
            window: number,
            index,
            opened: start,
            start: from,
            length,
            rows,
            completions,
        };
        self.gaps.add(&interval);
        self.totals.counts.add(&interval, &self.is_counted_row);
        self.totals.batches.add(&interval);
        Some(interval)
    }
}

#[cfg(test)]
mod tests;
