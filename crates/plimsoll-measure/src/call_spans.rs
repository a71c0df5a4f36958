//! Times in which long calls of operations were in flight, and times in which calls completed one after the other.

use crate::{Nanos, OpTotals};
use plimsoll_runtime::sync::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

/// Maximum time without a sign of life of the target that is never a stall, in nanoseconds.
pub const STALL_NS: Nanos = 1_000_000_000;

/// A time without a completion, in nanoseconds since the window opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Start.
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

/// Times in order and without overlap, so that their number is bounded by the length of the run if each
/// is long or far from the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusySpans(Vec<Gap>);

impl BusySpans {
    /// Adds a time, which may overlap others.
    pub fn add(&mut self, mut span: Gap) {
        let first = self.0.partition_point(|s| s.to < span.from);
        let behind = self.0.partition_point(|s| s.from <= span.to);
        // Those from `first` to before `behind` touch it: all of them become one.
        if let [a, ..] = self.0[first..behind.max(first)] {
            span.from = span.from.min(a.from);
            span.to = span.to.max(self.0[behind - 1].to);
        }
        self.0.splice(first..behind.max(first), [span]);
    }

    /// Adds the times of another lane or rank.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|s| self.add(*s));
    }

    /// The parts that are in a window, in nanoseconds since it opened.
    #[must_use]
    pub(crate) fn clip(&self, start: Nanos, end: Nanos) -> Self {
        let inside = self.0.iter().filter(|s| s.to > start && s.from < end);
        let cut = |s: &Gap| Gap {
            from: s.from.max(start) - start,
            to: s.to.min(end) - start,
        };
        Self(inside.map(cut).collect())
    }

    /// The earliest instant of a gap from which a time lasts to the end of the gap.
    pub(crate) fn earliest_cover(&self, gap: Gap) -> Option<Nanos> {
        let at_end = self.0.iter().rev().find(|s| s.from < gap.to)?;
        (at_end.to >= gap.to).then_some(at_end.from.max(gap.from))
    }

    /// The parts of a gap that are in none of the times, in order.
    fn subtract_from(&self, gap: Gap) -> Vec<Gap> {
        let mut rest = gap;
        let mut parts = Vec::new();
        for span in self.0.iter().filter(|s| s.to > gap.from && s.from < gap.to) {
            let to = span.from;
            parts.extend((to > rest.from).then_some(Gap { to, ..rest }));
            rest.from = span.to;
        }
        parts.extend((rest.to > rest.from).then_some(rest));
        parts
    }
}

/// Work of a call, in powers of two: the bytes of the call, and the number of calls of its operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallShape {
    /// One more than the binary logarithm of the bytes; 0 without bytes.
    bytes: u8,
    /// Binary logarithm of the number of calls.
    calls: u8,
}

impl CallShape {
    /// The shape of a call that moves `bytes`, in an operation of `calls` calls.
    #[must_use]
    pub fn new(bytes: u64, calls: u64) -> Self {
        Self {
            bytes: bytes.checked_ilog2().map_or(0, |log| log as u8 + 1),
            calls: calls.max(1).ilog2() as u8,
        }
    }

    /// Usual time of such a call in nanoseconds: the median service time of the row, in proportion to the work. The
    /// time of an operation is the sum of the times of its calls, and a call that moves more bytes than the mean
    /// operation of the row takes longer.
    #[must_use]
    pub fn usual_time(self, row: &OpTotals) -> f64 {
        let bytes = match self.bytes {
            0 => 0.0,
            log => (f64::from(log) - 1.0).exp2(),
        };
        let mean_bytes = row.bytes as f64 / row.ops.max(1) as f64;
        let by_calls = (-f64::from(self.calls)).exp2();
        let by_bytes = if mean_bytes > 0.0 {
            bytes / mean_bytes
        } else {
            0.0
        };
        row.service.quantile(0.5) as f64 * by_calls.max(by_bytes)
    }
}

/// Times of a window, or of a run, in which long calls were in flight, and times in which calls completed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSpans {
    /// Times in which calls of [`STALL_NS`] and more were in flight, by row and by shape.
    long: Vec<Vec<(CallShape, BusySpans)>>,
    /// Times in which the calls of an operation completed, each less than [`STALL_NS`] after the previous call.
    signs: BusySpans,
}

impl CallSpans {
    /// No times yet, in this number of rows.
    #[must_use]
    pub fn new(rows: usize) -> Self {
        Self {
            long: vec![vec![]; rows],
            signs: BusySpans::default(),
        }
    }

    /// Adds a call that took long.
    pub fn add_long(&mut self, row: u32, shape: CallShape, span: Gap) {
        self.spans_of(row as usize, shape).add(span);
    }

    /// Adds a time in which calls completed.
    pub fn add_signs(&mut self, span: Gap) {
        self.signs.add(span);
    }

    fn spans_of(&mut self, row: usize, shape: CallShape) -> &mut BusySpans {
        let of_row = &mut self.long[row];
        let at = of_row.iter().position(|(s, _)| *s == shape);
        let at = at.unwrap_or_else(|| {
            of_row.push((shape, BusySpans::default()));
            of_row.len() - 1
        });
        &mut of_row[at].1
    }

    /// Adds the calls of another lane or rank.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.long.len(), other.long.len(), "one entry per row");
        for (row, shape, spans) in other.long_calls() {
            self.spans_of(row, shape).merge(spans);
        }
        self.signs.merge(&other.signs);
    }

    /// Adds the parts of another lane's times that are in a window, in nanoseconds since the window opened.
    pub(crate) fn merge_clipped(&mut self, other: &Self, start: Nanos, end: Nanos) {
        for (row, shape, spans) in other.long_calls() {
            self.spans_of(row, shape).merge(&spans.clip(start, end));
        }
        self.signs.merge(&other.signs.clip(start, end));
    }

    /// Row and shape of the calls that took long, and when they were in flight.
    pub(crate) fn long_calls(&self) -> impl Iterator<Item = (usize, CallShape, &BusySpans)> {
        let rows = self.long.iter().enumerate();
        rows.flat_map(|(row, spans)| spans.iter().map(move |(shape, spans)| (row, *shape, spans)))
    }

    /// The parts of a gap in which no call completed.
    pub(crate) fn without_sign(&self, gap: Gap) -> Vec<Gap> {
        self.signs.subtract_from(gap)
    }
}

/// Call spans of a lane, which its workers note and any thread may read.
pub(crate) struct SharedCallSpans(Mutex<CallSpans>);

impl SharedCallSpans {
    pub(crate) fn new(rows: usize) -> Self {
        Self(Mutex::new(CallSpans::new(rows)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, CallSpans> {
        plimsoll_runtime::sync::lock(&self.0)
    }
}

#[cfg(test)]
mod tests;
