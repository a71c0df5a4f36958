//! The state of a lane, which its handle, its loop and its workers' waits share.

use crate::deadline::Deadline;
use crate::lane_waker::LaneWaker;
use crate::timed_events::TimedEvents;
use plimsoll_measure::{Clock, Nanos};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Kinds of lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneKind {
    /// One worker, whose operations block the thread.
    Blocking,
    /// Many workers, which wait for readiness and timers.
    Reactor,
    /// Many workers in virtual time.
    Virtual,
}

/// A worker, or a background task.
pub type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A timer: its instant, its position among all timers, and the task that it wakes.
type TimerEntry = (Nanos, u64, u32);

/// The state of a lane.
pub(crate) struct LaneState {
    pub(crate) kind: LaneKind,
    pub(crate) clock: Clock,
    pub(crate) deadline: Arc<Deadline>,
    pub(crate) waker: Arc<LaneWaker>,
    pub(crate) timers: RefCell<BinaryHeap<Reverse<TimerEntry>>>,
    /// Number of timers set, which orders timers of the same instant.
    timers_set: Cell<u64>,
    /// The task that is being polled.
    pub(crate) current: Cell<u32>,
    /// Operations that the current task may still do before others get their turn.
    pub(crate) poll_budget: Cell<u32>,
    pub(crate) is_single_worker: Cell<bool>,
    pub(crate) stores_target: RefCell<Vec<u64>>,
    /// Background tasks that have not been polled yet.
    pub(crate) background_tasks: RefCell<Vec<Task<'static>>>,
    /// Values that workers of this lane share, by a key that their owner chose.
    pub(crate) shared_by_key: RefCell<Vec<(usize, Weak<dyn Any>)>>,
    /// Events in virtual time that belong to no worker.
    pub(crate) timed_events: RefCell<Option<Rc<dyn TimedEvents>>>,
}

impl LaneState {
    /// The state of a lane of the calling thread.
    pub(crate) fn new(kind: LaneKind, clock: Clock, deadline: Arc<Deadline>) -> Self {
        let waker = Arc::new(LaneWaker::new());
        deadline.register(waker.clone());
        Self {
            kind,
            clock,
            deadline,
            waker,
            timers: RefCell::default(),
            timers_set: Cell::new(0),
            current: Cell::new(0),
            poll_budget: Cell::new(0),
            is_single_worker: Cell::new(true),
            stores_target: RefCell::default(),
            background_tasks: RefCell::default(),
            shared_by_key: RefCell::default(),
            timed_events: RefCell::default(),
        }
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
        let sequence = self.timers_set.get();
        self.timers_set.set(sequence + 1);
        let timer = (due, sequence, self.current.get());
        self.timers.borrow_mut().push(Reverse(timer));
    }
}

impl Drop for LaneState {
    fn drop(&mut self) {
        self.deadline.unregister(&self.waker);
    }
}
