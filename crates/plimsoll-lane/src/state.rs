//! The state of a lane, which its handle, its loop and its workers' waits share.

use crate::completion_source::CompletionSource;
use crate::deadline::Deadline;
use crate::event_queue::EventQueue;
use crate::lane_waker::LaneWaker;
use crate::timed_events::TimedEvents;
use plimsoll_measure::{Clock, Nanos};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// How the workers of a lane wait, and whether the lane's time is virtual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneKind {
    /// One worker, whose operations block the thread.
    Blocking,
    /// Many workers, which wait for readiness, completions and timers.
    Reactor,
    /// Many workers in virtual time.
    Virtual,
}

/// A worker, or a background task.
pub type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Timers, wakers and task lists of a lane.
pub(crate) struct LaneState {
    pub(crate) kind: LaneKind,
    pub(crate) clock: Clock,
    pub(crate) deadline: Arc<Deadline>,
    pub(crate) waker: Arc<LaneWaker>,
    /// Timers, each with the task to wake.
    pub(crate) timers: RefCell<EventQueue<u32>>,
    /// The task that is being polled.
    pub(crate) current: Cell<u32>,
    /// Whether other tasks are polled after the current task before the lane looks at timers and completions.
    pub(crate) has_ready_tasks: Cell<bool>,
    /// Operations that the current task may still do before other tasks get their turn.
    pub(crate) poll_budget: Cell<u32>,
    pub(crate) is_single_worker: Cell<bool>,
    pub(crate) stores_target: RefCell<Vec<u64>>,
    /// Background tasks that have not been polled yet.
    pub(crate) background_tasks: RefCell<Vec<Task<'static>>>,
    /// Values that workers of this lane share, by a key that the owner of the value chose.
    pub(crate) shared_by_key: RefCell<Vec<(usize, Weak<dyn Any>)>>,
    /// Events in virtual time that belong to no worker.
    pub(crate) timed_events: RefCell<Option<Rc<dyn TimedEvents>>>,
    /// Completion source of operations that the system executes; the sessions of the workers own the source.
    pub(crate) completions: RefCell<Option<Weak<dyn CompletionSource>>>,
}

impl LaneState {
    /// Creates the state of a lane of the calling thread.
    pub(crate) fn new(kind: LaneKind, clock: Clock, deadline: Arc<Deadline>) -> Self {
        let waker = Arc::new(LaneWaker::new());
        deadline.register(waker.clone());
        Self {
            kind,
            clock,
            deadline,
            waker,
            timers: RefCell::default(),
            current: Cell::new(0),
            has_ready_tasks: Cell::new(false),
            poll_budget: Cell::new(0),
            is_single_worker: Cell::new(true),
            stores_target: RefCell::default(),
            background_tasks: RefCell::default(),
            shared_by_key: RefCell::default(),
            timed_events: RefCell::default(),
            completions: RefCell::default(),
        }
    }

    /// The completion source that is attached to the lane; `None` without a source, or if the source was dropped.
    #[inline]
    pub(crate) fn completion_source(&self) -> Option<Rc<dyn CompletionSource>> {
        self.completions.borrow().as_ref()?.upgrade()
    }

    #[inline]
    pub(crate) fn is_virtual(&self) -> bool {
        self.kind == LaneKind::Virtual
    }

    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.clock.now()
    }

    #[inline]
    pub(crate) fn has_stopped(&self) -> bool {
        self.now() >= self.deadline.at()
    }

    /// Wakes the current task at `due`.
    pub(crate) fn set_timer(&self, due: Nanos) {
        let mut timers = self.timers.borrow_mut();
        // A real clock that is read on several processors may be behind the timer that fired last.
        let due = due.max(timers.last_at());
        timers.push(due, self.current.get());
    }
}

impl Drop for LaneState {
    fn drop(&mut self) {
        self.deadline.unregister(&self.waker);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_timer_before_the_one_that_fired_last_fires_with_it() {
        let state = LaneState::new(LaneKind::Reactor, Clock::simulated(), Arc::default());
        state.current.set(3);
        state.set_timer(10);
        assert_eq!(state.timers.borrow_mut().pop_until(10), Some((10, 3)));
        state.set_timer(5);
        assert_eq!(state.timers.borrow_mut().pop_until(10), Some((10, 3)));
    }

    #[test]
    fn a_run_has_stopped_from_its_deadline_on() {
        let state = LaneState::new(LaneKind::Virtual, Clock::simulated(), Arc::default());
        state.deadline.bring_forward(10);
        let stopped = [9, 10, 11].map(|now| {
            state.clock.advance(now);
            state.has_stopped()
        });
        assert_eq!(stopped, [false, true, true]);
    }
}
