//! Times in which nothing completed: the longest of each row, and those in which the target stood still.
//!
//! A gap is a time without a completion, to the slots of [`crate::Completions`]. It is a *stall*
//! if an operation was under way in it that usually takes far less: time in which workers sleep,
//! wait for an event of a rate, for each other or at a barrier has no operation under way and is
//! none, and neither is that of an operation that always takes so long. One that was done only
//! once in the window, and slowly, is such an operation too: nothing tells it from the one `fsync`
//! behind a gigabyte of writes.

use crate::completions::SlotSet;
use crate::{Interval, Nanos, OpTotals};
use serde::{Deserialize, Serialize};

/// A gap up to this long is never a stall.
pub const STALL_NS: Nanos = 1_000_000_000;

/// Typical distances of completions that a stall is longer than.
const STALL_DISTANCES: f64 = 100.0;

/// Share of the window above which a stall makes the result invalid wherever it lies.
const STALL_SHARE: f64 = 0.05;

/// Completions it takes to call their mean distance typical.
const STALL_COMPLETIONS: u64 = 10;

/// An operation whose row has a median of more than this share of a gap usually takes that long.
const USUAL_SHARE: f64 = 0.1;

/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;

/// A time without a completion, in nanoseconds since the window opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Begin.
    pub from: Nanos,
    /// End.
    pub to: Nanos,
}

impl Gap {
    /// Length in nanoseconds.
    #[must_use]
    pub fn length(self) -> Nanos {
        self.to.saturating_sub(self.from)
    }
}

/// The gaps of a window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gaps {
    /// The longest of each row of the results.
    pub rows: Vec<Gap>,
    /// The longest of all rows that count together.
    pub all: Gap,
    /// Those of all rows that count together which may be stalls, in order.
    long: Vec<Gap>,
}

/// Finds the gaps of a window, interval by interval.
#[derive(Debug, Clone, Default)]
pub struct GapWatch {
    /// Rows that count.
    is_counted_row: Vec<bool>,
    /// End of the latest slot of each row in which something completed.
    latest: Vec<Nanos>,
    latest_of_all: Nanos,
    gaps: Gaps,
}

impl GapWatch {
    /// For rows of which these count.
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

    /// Takes notice of an interval; each comes after those before it.
    pub fn add(&mut self, interval: &Interval) {
        let (start, slot_ns) = (interval.start, interval.completions.slot_ns);
        let mut all = SlotSet::default();
        for (row, slots) in interval.completions.rows.iter().enumerate() {
            let (Some(latest), Some(longest)) =
                (self.latest.get_mut(row), self.gaps.rows.get_mut(row))
            else {
                continue;
            };
            slots.for_each(|slot| {
                let gap = step(latest, start + slot * slot_ns, slot_ns);
                if gap.length() > longest.length() {
                    *longest = gap;
                }
            });
            if self.is_counted_row.get(row).is_some_and(|c| *c) {
                all.union(slots);
            }
        }
        all.for_each(|slot| {
            let gap = step(&mut self.latest_of_all, start + slot * slot_ns, slot_ns);
            self.gaps.note(gap);
        });
    }

    /// The gaps of the window, which was so long.
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

/// The gap before a slot in which something completed; the next one begins after the slot.
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

/// Longest gap, in nanoseconds, that is likely where `completions` come in a time independently of
/// each other: of the `n` distances of a Poisson process of rate `n/T`, which are exponential, the
/// greatest is on average `T/n·(1 + 1/2 + … + 1/n)`, about `T/n·(ln n + 0.577)` (Rényi 1953).
#[must_use]
pub fn expected_max_gap(time: Nanos, completions: u64) -> f64 {
    match completions {
        0 => time as f64,
        n => (time as f64 / n as f64) * ((n as f64).ln() + EULER).min(n as f64),
    }
}

/// Times in which operations of [`STALL_NS`] and more were under way, of one row: without overlap
/// and in order, so that they are never more than fit into the run one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusySpans(Vec<Gap>);

impl BusySpans {
    /// Adds a time, which may overlap any of the others.
    pub fn add(&mut self, mut span: Gap) {
        let first = self.0.partition_point(|s| s.to < span.from);
        let behind = self.0.partition_point(|s| s.from <= span.to);
        // Those from `first` to before `behind` touch it: they and it become one.
        if let [a, ..] = self.0[first..behind.max(first)] {
            span.from = span.from.min(a.from);
            span.to = span.to.max(self.0[behind - 1].to);
        }
        self.0.splice(first..behind.max(first), [span]);
    }

    /// Adds those of another lane or rank.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|s| self.add(*s));
    }

    /// What of them lies in a window, in nanoseconds since it opened.
    #[must_use]
    pub(crate) fn clip(&self, start: Nanos, end: Nanos) -> Self {
        let inside = self.0.iter().filter(|s| s.to > start && s.from < end);
        let cut = |s: &Gap| Gap {
            from: s.from.max(start) - start,
            to: s.to.min(end) - start,
        };
        Self(inside.map(cut).collect())
    }

    /// The earliest instant of a gap from which they reach to its end.
    fn earliest_cover(&self, gap: Gap) -> Option<Nanos> {
        let at_end = self.0.iter().rev().find(|s| s.from < gap.to)?;
        (at_end.to >= gap.to).then_some(at_end.from.max(gap.from))
    }
}

/// A time in which the target stood still: nothing completed, although something was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// When.
    pub gap: Gap,
    /// The window ended in it.
    pub at_end: bool,
    /// It takes so much of the window, or lies where it does, that the result is not valid.
    pub counts: bool,
}

/// A stall of one rank's workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankStall {
    /// The rank.
    pub rank: u32,
    /// When, by its own clock.
    pub stall: Stall,
}

/// Finds the stalls of a window of this length, of whose rows these count: gaps of more than a
/// second and of more than a hundred times the mean distance of completions outside them.
#[must_use]
pub fn stalls(
    window: Nanos,
    gaps: &Gaps,
    slow: &[BusySpans],
    rows: &[OpTotals],
    counted: &[bool],
) -> Vec<Stall> {
    let rows = || {
        rows.iter()
            .zip(slow)
            .zip(counted)
            .filter(|(_, c)| **c)
            .map(|(r, _)| r)
    };
    let completions: u64 = rows().map(|(t, _)| t.ops + t.error_count()).sum();
    let of_gap = |gap: &Gap| {
        let unusual = rows().filter(|(totals, _)| {
            totals.service.quantile(0.5) as f64 <= USUAL_SHARE * gap.length() as f64
        });
        let from = unusual
            .filter_map(|(_, slow)| slow.earliest_cover(*gap))
            .min()?;
        let gap = Gap { from, ..*gap };
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
    let mut found: Vec<Stall> = gaps.long.iter().filter_map(of_gap).collect();
    // Many short ones stand still as long as one that is long.
    let all: Nanos = found.iter().map(|stall| stall.gap.length()).sum();
    if all as f64 > STALL_SHARE * window as f64 {
        found.iter_mut().for_each(|stall| stall.counts = true);
    }
    found
}

#[cfg(test)]
mod tests;
