//! Completion times of workers.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// Completion times of the workers of a window, all of which finished by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkersDone {
    /// Number of workers of the window.
    pub workers: u64,
    /// Completion time of the first worker, in nanoseconds since the window opened.
    pub first: Nanos,
    /// Completion time of the last worker, in nanoseconds since the window opened.
    pub last: Nanos,
    /// Operations that all workers had completed when the first finished.
    pub first_ops: u64,
    /// Bytes that all workers had moved when the first finished.
    pub first_bytes: u128,
}

impl WorkersDone {
    /// Combines the workers of two processes. The work that a process had done when the first worker of the other
    /// process finished is interpolated linearly, from zero at the start of the window to the work at the process's own
    /// first completion.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        let first = self.first.min(other.first);
        let until = |count: u128, own: Nanos| match own {
            0 => count,
            own => (count as f64 * (first as f64 / own as f64)).round() as u128,
        };
        let ops = |done: Self| until(done.first_ops.into(), done.first) as u64;
        Self {
            workers: self.workers + other.workers,
            first,
            last: self.last.max(other.last),
            first_ops: ops(self) + ops(other),
            first_bytes: until(self.first_bytes, self.first)
                + until(other.first_bytes, other.first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_add_up_at_the_first_end_of_all() {
        let one = WorkersDone {
            workers: 2,
            first: 300,
            last: 400,
            first_ops: 90,
            first_bytes: 9000,
        };
        let other = WorkersDone {
            workers: 3,
            first: 100,
            last: 210,
            first_ops: 20,
            first_bytes: 5,
        };
        let expected = WorkersDone {
            workers: 5,
            first: 100,
            last: 400,
            first_ops: 20 + 30,
            first_bytes: 5 + 3000,
        };
        assert_eq!(one.merge(other), expected);
        assert_eq!(other.merge(one), expected);
        let at_once = WorkersDone {
            workers: 1,
            ..WorkersDone::default()
        };
        assert_eq!(at_once.merge(one).first_ops, 0);
    }
}
