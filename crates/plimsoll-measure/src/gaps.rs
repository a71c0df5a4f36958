//! Times without completions: the longest gap of each row, and stalls of the target.
//!
//! A gap is a time without a completed operation, to the resolution of the slots of [`crate::Completions`]. A part of a
//! gap in which no call of an operation completed either is a *stall* if a call was in flight whose usual time
//! ([`CallShape::usual_time`]) is far shorter. Times in which workers sleep, wait for an event of a rate, wait for each
//! other, or wait at a barrier are not stalls, because nothing is in flight. An operation that always takes as long as
//! the gap is not a stall, and neither is an operation that was executed only once in the window, and slowly: a single
//! slow operation is indistinguishable from a single `fsync` behind a gigabyte of writes.
//!
//! [`CallShape::usual_time`]: crate::CallShape::usual_time

use crate::call_spans::{CallSpans, Gap, STALL_NS};
use crate::completions::SlotSet;
use crate::{Interval, Nanos, OpTotals};
use serde::{Deserialize, Serialize};

/// Minimum length of a stall, in mean distances of completions.
const STALL_DISTANCES: f64 = 100.0;

/// Stall fraction of the window above which the result is invalid.
const STALL_SHARE: f64 = 0.05;

/// Minimum number of completions for a meaningful mean distance.
const STALL_COMPLETIONS: u64 = 10;

/// Fraction of a gap's length: calls with a longer usual duration do not make the gap a stall.
const USUAL_SHARE: f64 = 0.1;

/// Euler's constant, the limit of 1 + 1/2 + … + 1/n − ln n.
const EULER: f64 = 0.577_215_664_901_532_9;

/// The longest times without completions in a window, and times without completions that may be stalls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gaps {
    /// Longest gap of each row of the results.
    pub rows: Vec<Gap>,
    /// Longest gap of all counted rows together.
    pub all: Gap,
    /// Gaps of all counted rows together that may be stalls, in order.
    long: Vec<Gap>,
}

/// Incremental search for the gaps of a window, interval by interval.
#[derive(Debug, Clone, Default)]
pub struct GapWatch {
    /// For each row, whether the row counts for the gaps of all rows together.
    is_counted_row: Vec<bool>,
    /// End of the latest slot with a completion, by row.
    latest: Vec<Nanos>,
    latest_of_all: Nanos,
    gaps: Gaps,
}

impl GapWatch {
    /// Watches rows; the rows set in `counted` count for the gaps of all rows together.
    #[must_use]
    pub fn new(counted: Vec<bool>) -> Self {
        let rows = counted.len();
        Self {
            is_counted_row: counted,
            latest: vec![0; rows],
            latest_of_all: 0,
            gaps: Gaps {
                rows: vec![Gap::default(); rows],
                ..Gaps::default()
            },
        }
    }

    /// Adds an interval. Intervals must be added in order.
    pub fn add(&mut self, interval: &Interval) {
        let (start, slot_ns) = (interval.start, interval.completions.slot_ns);
        let mut all = SlotSet::default();
        let rows = self.latest.iter_mut().zip(&mut self.gaps.rows);
        assert_eq!(
            interval.completions.rows.len(),
            rows.len(),
            "one entry per row"
        );
        for (row, (latest, longest)) in rows.enumerate() {
            let slots = interval.completions.of_row(row);
            slots.for_each(|slot| {
                let gap = step(latest, start + slot * slot_ns, slot_ns);
                if gap.length() > longest.length() {
                    *longest = gap;
                }
            });
            if self.is_counted_row[row] {
                all.union(&slots);
            }
        }
        all.for_each(|slot| {
            let gap = step(&mut self.latest_of_all, start + slot * slot_ns, slot_ns);
            self.gaps.note(gap);
        });
    }

    /// Returns the gaps of a window of length `window`.
    #[must_use]
    pub fn finish(self, window: Nanos) -> Gaps {
        let mut gaps = self.gaps;
        for (longest, latest) in gaps.rows.iter_mut().zip(&self.latest) {
            let last = Gap {
                from: *latest,
                to: window,
            };
            if last.length() > longest.length() {
                *longest = last;
            }
        }
        gaps.note(Gap {
            from: self.latest_of_all,
            to: window,
        });
        gaps
    }
}

/// Returns the gap before a slot with a completion; the next gap begins after the slot.
fn step(latest: &mut Nanos, slot: Nanos, slot_ns: Nanos) -> Gap {
    let gap = Gap {
        from: *latest,
        to: slot,
    };
    *latest = slot + slot_ns;
    gap
}

impl Gaps {
    fn note(&mut self, gap: Gap) {
        if gap.length() > self.all.length() {
            self.all = gap;
        }
        if gap.length() > STALL_NS {
            self.long.push(gap);
        }
    }
}

/// Expected maximum gap, in nanoseconds, between `completions` independent completions in a time span: the largest of
/// the `n` exponential distances of a Poisson process of rate `n/T` has the mean `T/n·(1 + 1/2 + … + 1/n)`, about
/// `T/n·(ln n + 0.577)` (Rényi 1953).
#[must_use]
pub fn expected_max_gap(time: Nanos, completions: u64) -> f64 {
    match completions {
        0 => time as f64,
        n => (time as f64 / n as f64) * ((n as f64).ln() + EULER).min(n as f64),
    }
}

/// A stall of the target: a time without completions although a call was in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// Time span of the stall, in nanoseconds since the window opened.
    pub gap: Gap,
    /// Whether the window ended during the stall.
    pub at_end: bool,
    /// Whether the stall makes the result invalid, by its length or because the window ended during the stall.
    pub counts: bool,
}

/// A stall seen by the workers of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankStall {
    /// Rank whose workers saw the stall, from 0.
    pub rank: u32,
    /// Time span and consequence of the stall, on the clock of the rank.
    pub stall: Stall,
}

/// Finds the stalls of a window of length `window` among the counted rows. A stall is a time without a completed
/// operation or call, longer than one second and longer than a hundred mean distances of the operations completed
/// outside, during which a call was in flight whose usual duration is at most a tenth of the time. Windows with fewer
/// than ten completions have no stalls.
#[must_use]
pub fn stalls(
    window: Nanos,
    gaps: &Gaps,
    calls: &CallSpans,
    rows: &[OpTotals],
    counted: &[bool],
) -> Vec<Stall> {
    let is_counted = |row: usize| counted[row];
    let counted_rows = rows.iter().zip(counted).filter(|(_, c)| **c);
    let completions: u64 = counted_rows.map(|(t, _)| t.ops + t.error_count()).sum();
    let of_gap = |gap: Gap| {
        let longest_usual = USUAL_SHARE * gap.length() as f64;
        let unusual = calls.long_calls().filter(|(row, shape, _)| {
            is_counted(*row) && shape.usual_time(&rows[*row]) <= longest_usual
        });
        let from = unusual
            .filter_map(|(_, _, spans)| spans.earliest_cover(gap))
            .min()?;
        let gap = Gap { from, ..gap };
        let typical = (window - gap.length()) as f64 / completions.max(1) as f64;
        let length = gap.length() as f64;
        if completions < STALL_COMPLETIONS
            || gap.length() <= STALL_NS
            || length <= STALL_DISTANCES * typical
        {
            return None;
        }
        let at_end = gap.to >= window;
        Some(Stall {
            gap,
            at_end,
            counts: at_end,
        })
    };
    let silent = gaps.long.iter().flat_map(|gap| calls.without_sign(*gap));
    let mut found: Vec<Stall> = silent.filter_map(of_gap).collect();
    // Many short stalls together are as bad as one long stall.
    let all: Nanos = found.iter().map(|stall| stall.gap.length()).sum();
    if all as f64 > STALL_SHARE * window as f64 {
        found.iter_mut().for_each(|stall| stall.counts = true);
    }
    found
}

#[cfg(test)]
mod tests;
