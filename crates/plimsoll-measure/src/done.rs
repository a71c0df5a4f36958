//! When workers came to the end of their work.

use crate::{Interval, Nanos};
use serde::{Deserialize, Serialize};

/// How the workers of a window came to the end of their work, each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkersDone {
    /// How many workers these are: all of the window's.
    pub workers: u64,
    /// When the first came to its end, in nanoseconds since the window opened.
    pub first: Nanos,
    /// When the last did.
    pub last: Nanos,
    /// Operations that all workers had done when the first came to its end.
    pub first_ops: u64,
    /// Bytes that all workers had moved when the first came to its end.
    pub first_bytes: u64,
}

impl WorkersDone {
    /// The workers of two processes together. What the workers of one had done when the first of
    /// the other came to its end is not known here: see [`WorkersDone::counted`].
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            workers: self.workers + other.workers,
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            first_ops: self.first_ops + other.first_ops,
            first_bytes: self.first_bytes + other.first_bytes,
        }
    }

    /// The same, with what had been done at the first end taken from the window's intervals: all
    /// of those before it, and of the one it lies in the part before it, as if operations came
    /// evenly. Only rows that `counts` says yes to are added up.
    #[must_use]
    pub fn counted<'a>(
        self,
        intervals: impl IntoIterator<Item = &'a Interval>,
        counts: impl Fn(usize) -> bool,
    ) -> Self {
        let (mut ops, mut bytes) = (0.0, 0.0);
        for interval in intervals {
            let before = self.first.saturating_sub(interval.start);
            let share = match interval.length {
                0 => 1.0,
                length => (before as f64 / length as f64).min(1.0),
            };
            let rows = interval.rows.iter().enumerate();
            for (_, row) in rows.filter(|(i, _)| counts(*i)) {
                ops += row.ops as f64 * share;
                bytes += row.bytes as f64 * share;
            }
        }
        Self {
            first_ops: ops.round() as u64,
            first_bytes: bytes.round() as u64,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpTotals;

    fn interval(start: Nanos, ops: u64) -> Interval {
        let row = |ops| OpTotals {
            ops,
            bytes: ops * 10,
            ..OpTotals::default()
        };
        Interval {
            window: 1,
            index: start / 100,
            opened: 7,
            start,
            length: 100,
            rows: vec![row(ops), row(1000)],
        }
    }

    #[test]
    fn processes_add_up_and_the_first_end_is_found_in_the_intervals() {
        let one = WorkersDone {
            workers: 2,
            first: 150,
            last: 400,
            ..WorkersDone::default()
        };
        let other = WorkersDone {
            workers: 3,
            first: 130,
            last: 210,
            ..WorkersDone::default()
        };
        let intervals = [interval(0, 50), interval(100, 40), interval(200, 30)];
        let all = one.and(other).counted(&intervals, |row| row == 0);
        let expected = WorkersDone {
            workers: 5,
            first: 130,
            last: 400,
            first_ops: 50 + 12,
            first_bytes: 620,
        };
        assert_eq!(all, expected);
    }
}
