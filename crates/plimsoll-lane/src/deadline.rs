//! The instant at which a run stops.

use crate::lane_waker::LaneWaker;
use plimsoll_measure::Nanos;
use plimsoll_runtime::sync::atomic::{AtomicU64, Ordering::Relaxed};
use plimsoll_runtime::sync::{Mutex, MutexGuard, lock};
use std::sync::Arc;

/// Error of a wait that ended early because the run stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// The instant at which all lanes of a run stop; may be brought forward at any time, from any
/// thread.
#[derive(Debug)]
pub struct Deadline {
    at: AtomicU64,
    lanes: Mutex<Vec<Arc<LaneWaker>>>,
}

impl Default for Deadline {
    fn default() -> Self {
        Self {
            at: AtomicU64::new(Nanos::MAX),
            lanes: Mutex::default(),
        }
    }
}

impl Deadline {
    /// The deadline in nanoseconds of the run's clock; [`Nanos::MAX`] while the deadline is unknown.
    #[inline]
    #[must_use]
    pub fn at(&self) -> Nanos {
        self.at.load(Relaxed)
    }

    /// Brings the deadline forward to `at`, unless the deadline is earlier already, and wakes every lane.
    pub fn bring_forward(&self, at: Nanos) {
        self.at.fetch_min(at, Relaxed);
        for lane in self.lanes().iter() {
            lane.notify();
        }
    }

    /// Removes the deadline, for the next part of a run.
    pub fn clear(&self) {
        self.at.store(Nanos::MAX, Relaxed);
    }

    pub(crate) fn register(&self, lane: Arc<LaneWaker>) {
        self.lanes().push(lane);
    }

    /// Whether no lane is registered.
    #[cfg(test)]
    pub(crate) fn has_no_lanes(&self) -> bool {
        self.lanes().is_empty()
    }

    pub(crate) fn unregister(&self, lane: &Arc<LaneWaker>) {
        self.lanes().retain(|l| !Arc::ptr_eq(l, lane));
    }

    fn lanes(&self) -> MutexGuard<'_, Vec<Arc<LaneWaker>>> {
        lock(&self.lanes)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Lane, LaneKind};
    use plimsoll_measure::Clock;

    #[test]
    fn a_lane_that_is_gone_is_notified_no_more() {
        let deadline = Arc::new(Deadline::default());
        let lane = || Lane::new(LaneKind::Virtual, Clock::simulated(), deadline.clone());
        let (one, other, last) = (lane(), lane(), lane());
        drop(one);
        drop(other);
        assert!(!deadline.has_no_lanes());
        drop(last);
        assert!(deadline.has_no_lanes());
    }

    #[test]
    fn of_two_deadlines_the_earlier_holds_until_it_is_cleared() {
        let deadline = Deadline::default();
        assert_eq!(deadline.at(), Nanos::MAX);
        [30, 10, 20]
            .into_iter()
            .for_each(|at| deadline.bring_forward(at));
        assert_eq!(deadline.at(), 10);
        deadline.clear();
        assert_eq!(deadline.at(), Nanos::MAX);
    }
}
