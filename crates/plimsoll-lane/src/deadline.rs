//! The instants at which a run stops, and at which virtual time waits.

use crate::lane_waker::LaneWaker;
use plimsoll_measure::Nanos;
use plimsoll_runtime::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use plimsoll_runtime::sync::{Mutex, MutexGuard, lock};
use std::sync::Arc;

/// Error of a wait that ended early because the run stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

/// The instant at which all lanes of a run stop, which may be brought forward at any time, from any thread; and the
/// instant before which virtual time waits for the run's controller.
#[derive(Debug)]
pub struct Deadline {
    at: AtomicU64,
    hold: AtomicU64,
    /// The latest hold at which virtual time waited; 0 before.
    reached: AtomicU64,
    lanes: Mutex<Vec<Arc<LaneWaker>>>,
}

impl Default for Deadline {
    fn default() -> Self {
        Self {
            at: AtomicU64::new(Nanos::MAX),
            hold: AtomicU64::new(Nanos::MAX),
            reached: AtomicU64::new(0),
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

    /// The instant that virtual time does not reach before the hold is moved; [`Nanos::MAX`] without a hold. Virtual
    /// time waits at the nanosecond before the hold, when all earlier events have been handled. Real time does not wait.
    #[must_use]
    pub fn hold(&self) -> Nanos {
        self.hold.load(Relaxed)
    }

    /// Moves the hold of virtual time to `at`, at least 1, and wakes every lane; [`Nanos::MAX`] removes the hold.
    pub fn hold_at(&self, at: Nanos) {
        debug_assert!(at > 0, "a hold has an instant before it");
        self.hold.store(at, Relaxed);
        for lane in self.lanes().iter() {
            lane.notify();
        }
    }

    /// Whether virtual time waits at the hold, so that every event before the hold has been handled.
    #[must_use]
    pub fn is_at_hold(&self) -> bool {
        self.reached.load(Acquire) == self.hold()
    }

    pub(crate) fn note_reached(&self, hold: Nanos) {
        self.reached.store(hold, Release);
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
    fn virtual_time_waits_before_each_hold() {
        let deadline = Arc::new(Deadline::default());
        let (clock, steps) = (Clock::simulated(), AtomicU64::new(0));
        deadline.hold_at(25);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let lane = Lane::new(LaneKind::Virtual, clock.clone(), deadline.clone());
                let step = async {
                    let mut at = 10;
                    while lane.sleep_until(at).await.is_ok() {
                        steps.fetch_add(1, Relaxed);
                        at += 10;
                    }
                };
                lane.run(vec![Box::pin(step)]).unwrap();
            });
            // The event at 40 is handled before time waits at the same instant, and the event at 60 is not.
            for (hold, done) in [(25, 2), (41, 4), (60, 5)] {
                deadline.hold_at(hold);
                while !deadline.is_at_hold() {
                    std::thread::yield_now();
                }
                assert_eq!((clock.now(), steps.load(Relaxed)), (hold - 1, done));
            }
            deadline.bring_forward(75);
            deadline.hold_at(Nanos::MAX);
        });
        assert_eq!((clock.now(), steps.load(Relaxed)), (75, 7));
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
