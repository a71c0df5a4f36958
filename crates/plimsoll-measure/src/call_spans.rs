//! Time spans with long calls in flight, and time spans with frequent call completions.

use crate::{Nanos, OpTotals};
use plimsoll_runtime::sync::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

/// Minimum duration of a stall in nanoseconds: shorter silence of the target is never a stall.
pub const STALL_NS: Nanos = 1_000_000_000;

/// Time span, such as a time without a completion: in nanoseconds of the run's clock, or in results since the window
/// opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Instant at which the time span begins, in nanoseconds.
    pub from: Nanos,
    /// Instant at which the time span ends, in nanoseconds on the same clock as `from`.
    pub to: Nanos,
}

impl Gap {
    /// Length of the time span in nanoseconds; 0 if `to` is before `from`.
    #[must_use]
    pub fn length(self) -> Nanos {
        self.to.saturating_sub(self.from)
    }
}

/// Sorted, disjoint time spans. If every span is long or far from the next span, the run length bounds the number of
/// spans.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusySpans(Vec<Gap>);

impl BusySpans {
    /// Adds a time span, which may overlap other spans and is then merged with the overlapping spans.
    pub fn add(&mut self, mut span: Gap) {
        let first = self.0.partition_point(|s| s.to < span.from);
        let behind = self.0.partition_point(|s| s.from <= span.to);
        // Spans `first..behind` touch the new span, and are merged with the new span.
        if let [a, ..] = self.0[first..behind.max(first)] {
            span.from = span.from.min(a.from);
            span.to = span.to.max(self.0[behind - 1].to);
        }
        self.0.splice(first..behind.max(first), [span]);
    }

    /// Adds the spans of another lane or rank.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|s| self.add(*s));
    }

    /// The parts of the spans inside a window, in nanoseconds since the window opened. The window of a run that is
    /// interrupted during warm-up ends before `start`, and has no parts.
    #[must_use]
    pub(crate) fn clip(&self, start: Nanos, end: Nanos) -> Self {
        let is_inside = |s: &&Gap| start < end && s.to > start && s.from < end;
        let cut = |s: &Gap| Gap {
            from: s.from.max(start) - start,
            to: s.to.min(end) - start,
        };
        Self(self.0.iter().filter(is_inside).map(cut).collect())
    }

    /// Earliest instant of a gap from which a single span lasts to the end of the gap.
    pub(crate) fn earliest_cover(&self, gap: Gap) -> Option<Nanos> {
        let at_end = self.0.iter().rev().find(|s| s.from < gap.to)?;
        (at_end.to >= gap.to).then_some(at_end.from.max(gap.from))
    }

    /// The parts of a gap outside all spans, in order.
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

/// Work of a call as powers of two: the bytes of the call, and the number of calls of its operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallShape {
    /// Binary logarithm, rounded down, of the number of bytes that the call moves, plus one; 0 for a call without
    /// bytes.
    bytes: u8,
    /// Binary logarithm, rounded down, of the number of calls of the call's operation.
    calls: u8,
}

impl CallShape {
    /// Shape of a call that moves `bytes`, in an operation of `calls` calls.
    #[must_use]
    pub fn new(bytes: u64, calls: u64) -> Self {
        Self {
            bytes: bytes.checked_ilog2().map_or(0, |log| log as u8 + 1),
            calls: calls.max(1).ilog2() as u8,
        }
    }

    /// Usual duration in nanoseconds of a call of this shape: the median service time of the row, scaled by the work.
    /// The duration of an operation is the sum of the durations of its calls, and a call that moves more bytes than the
    /// row's mean operation takes longer.
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

/// Time spans of a window or run with long calls in flight, and time spans with frequent call completions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSpans {
    /// Spans of calls that took [`STALL_NS`] or longer, by row and by shape.
    long: Vec<Vec<(CallShape, BusySpans)>>,
    /// Spans in which the calls of an operation completed less than [`STALL_NS`] apart.
    signs: BusySpans,
}

impl CallSpans {
    /// An empty collection of call spans, for `rows` rows of the results.
    #[must_use]
    pub fn new(rows: usize) -> Self {
        Self {
            long: vec![vec![]; rows],
            signs: BusySpans::default(),
        }
    }

    /// Adds the time span of a call of the given row and shape that took [`STALL_NS`] or longer.
    pub fn add_long(&mut self, row: u32, shape: CallShape, span: Gap) {
        self.spans_of(row as usize, shape).add(span);
    }

    /// Adds a time span in which calls of an operation completed less than [`STALL_NS`] apart.
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

    /// Adds the call spans of another lane or rank.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.long.len(), other.long.len(), "one entry per row");
        for (row, shape, spans) in other.long_calls() {
            self.spans_of(row, shape).merge(spans);
        }
        self.signs.merge(&other.signs);
    }

    /// Adds the parts of another lane's spans inside a window, in nanoseconds since the window opened.
    pub(crate) fn merge_clipped(&mut self, other: &Self, start: Nanos, end: Nanos) {
        for (row, shape, spans) in other.long_calls() {
            self.spans_of(row, shape).merge(&spans.clip(start, end));
        }
        self.signs.merge(&other.signs.clip(start, end));
    }

    /// Row, shape and spans of all long calls.
    pub(crate) fn long_calls(&self) -> impl Iterator<Item = (usize, CallShape, &BusySpans)> {
        let rows = self.long.iter().enumerate();
        rows.flat_map(|(row, spans)| spans.iter().map(move |(shape, spans)| (row, *shape, spans)))
    }

    /// The parts of a gap in which no call completed.
    pub(crate) fn without_sign(&self, gap: Gap) -> Vec<Gap> {
        self.signs.subtract_from(gap)
    }
}

/// Call spans of a lane, written by its workers and readable by any thread.
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
