//! The loop of a lane.

use crate::deadline::Deadline;
use crate::lane_waker::LaneWaker;
use crate::waits::{FdWatch, Readable, Sleep, Timer, Yield};
use plimsoll_measure::{Clock, Nanos};
use polling::Events;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::future::Future;
use std::hint::black_box;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

/// The kernel wakes a sleeper this late, in nanoseconds, on a busy client: the lane sleeps that
/// much shorter and spins for the rest, so that a late start is not charged to the server.
const SPIN_BEFORE_DEADLINE_NS: Nanos = 50_000;

/// Descriptors are looked at this often, in nanoseconds, while workers keep the lane busy.
const IO_POLL_INTERVAL_NS: Nanos = 50_000;

/// Turns a worker may take before others on its lane get theirs.
const POLL_BUDGET: u32 = 128;

/// Virtual nanoseconds that pass when a worker has used up its turns.
const VIRTUAL_YIELD_NS: Nanos = 1_000;

/// Stores after which a busy worker looks whether the run is over.
const STORES_PER_STOP_CHECK: u64 = 1 << 16;

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

/// A worker.
pub type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// No worker can ever go on: all wait for each other, and no timer and no deadline is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlock {
    /// Workers that wait.
    pub waiting: usize,
}

/// A handle on the lane that the caller's workers run on. Cheap to clone.
#[derive(Clone)]
pub struct Lane {
    inner: Rc<Inner>,
}

struct Inner {
    kind: LaneKind,
    clock: Clock,
    deadline: Arc<Deadline>,
    remote: Arc<LaneWaker>,
    timers: RefCell<BinaryHeap<Reverse<(Nanos, u64, u32)>>>,
    /// Makes timers of the same instant fire in the order they were set.
    sequence: Cell<u64>,
    current: Cell<u32>,
    polls_used: Cell<u32>,
    is_single_worker: Cell<bool>,
    stores_target: RefCell<Vec<u64>>,
    /// Helpers that have not been polled yet.
    background_tasks: RefCell<Vec<Task<'static>>>,
    /// What workers of this lane share, by a number that its owner chose.
    shared_by_key: RefCell<Vec<(usize, Weak<dyn Any>)>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.deadline.unregister(&self.remote);
    }
}

impl Lane {
    /// A lane for the calling thread.
    #[must_use]
    pub fn new(kind: LaneKind, clock: Clock, deadline: Arc<Deadline>) -> Self {
        let remote = Arc::new(LaneWaker::new());
        remote.bind();
        deadline.register(remote.clone());
        let inner = Inner {
            kind,
            clock,
            deadline,
            remote,
            timers: RefCell::default(),
            sequence: Cell::new(0),
            current: Cell::new(0),
            polls_used: Cell::new(0),
            is_single_worker: Cell::new(true),
            stores_target: RefCell::default(),
            background_tasks: RefCell::default(),
            shared_by_key: RefCell::default(),
        };
        Self {
            inner: Rc::new(inner),
        }
    }

    /// What kind of lane it is.
    #[must_use]
    pub fn kind(&self) -> LaneKind {
        self.inner.kind
    }

    /// Nanoseconds of the run's clock.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.inner.clock.now()
    }

    /// Instant at which the run stops.
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        self.inner.deadline.at()
    }

    /// Waits until `due`, or until the run stops.
    #[must_use]
    pub fn sleep_until(&self, due: Nanos) -> Sleep {
        Sleep::new(self.clone(), due)
    }

    /// Waits until `due`, even if the run stops meanwhile: for the latency of an operation.
    #[must_use]
    pub fn uncancellable_sleep_until(&self, due: Nanos) -> Timer {
        Timer::new(self.clone(), due)
    }

    /// Whether a worker need not let others of the lane have a turn now: what [`Lane::yield_if_exhausted`]
    /// finds out first, without a future.
    #[inline]
    #[must_use]
    pub fn consume_poll_budget(&self) -> bool {
        let left = self.inner.polls_used.get();
        self.inner.polls_used.set(left.saturating_sub(1));
        left > 0 || (self.inner.kind != LaneKind::Virtual && self.inner.is_single_worker.get())
    }

    /// Lets other workers of the lane have a turn, if this one has had its share.
    #[inline]
    #[must_use]
    pub fn yield_if_exhausted(&self) -> Yield {
        if self.consume_poll_budget() {
            return Yield::new(None, false);
        }
        let real = self.inner.kind != LaneKind::Virtual;
        // A worker that never waits would stop virtual time for everybody.
        let timed = (!real).then(|| (self.clone(), self.now() + VIRTUAL_YIELD_NS));
        Yield::new(timed, true)
    }

    /// Waits until a descriptor has something to read, or is at its end.
    #[must_use]
    pub fn readable<'a>(&self, fd: BorrowedFd<'a>) -> Readable<'a> {
        Readable::new(self.clone(), fd, false)
    }

    /// Waits until a descriptor takes something to write.
    #[must_use]
    pub fn writable<'a>(&self, fd: BorrowedFd<'a>) -> Readable<'a> {
        Readable::new(self.clone(), fd, true)
    }

    /// Watches a descriptor for the current task, for as long as the result lives.
    #[must_use]
    pub fn watch<F: AsFd>(&self, fd: F) -> FdWatch<F> {
        FdWatch::new(self.clone(), fd)
    }

    /// Keeps the processor busy with `stores` stores to memory; in virtual time a store takes a
    /// nanosecond. Cut short when the run stops.
    pub async fn spin_stores(&self, stores: u64) {
        if self.inner.kind == LaneKind::Virtual {
            self.uncancellable_sleep_until(self.now().saturating_add(stores))
                .await;
            return;
        }
        let mut scratch = self.inner.stores_target.borrow_mut();
        scratch.resize(512, 0);
        for i in 0..stores {
            black_box(&mut *scratch)[i as usize % 512] = i;
            if i % STORES_PER_STOP_CHECK == STORES_PER_STOP_CHECK - 1
                && self.now() >= self.deadline()
            {
                return;
            }
        }
    }

    /// Processor time of this thread in nanoseconds, if it can be told which worker used it.
    #[must_use]
    pub fn thread_cpu(&self) -> Option<Nanos> {
        if self.inner.kind != LaneKind::Blocking {
            return None;
        }
        let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Some(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
    }

    /// Has a task driven beside the workers, for what they share, such as a connection. Nobody
    /// waits for its end: it is dropped when the last worker has ended.
    pub fn spawn_background(&self, task: Task<'static>) {
        self.inner.background_tasks.borrow_mut().push(task);
    }

    /// What the lane's workers share under a number that is the same for all of them, such as an
    /// address; made for the first of them, and dropped with the last.
    #[must_use]
    pub fn lane_shared<T: 'static>(&self, number: usize, make: impl FnOnce() -> Rc<T>) -> Rc<T> {
        let mut residents = self.inner.shared_by_key.borrow_mut();
        residents.retain(|(_, r)| r.strong_count() > 0);
        let known = residents.iter().filter(|(n, _)| *n == number);
        let mut known = known.filter_map(|(_, r)| r.upgrade()?.downcast().ok());
        if let Some(known) = known.next() {
            return known;
        }
        drop(known);
        let made = make();
        let shared: Rc<dyn Any> = made.clone();
        residents.push((number, Rc::downgrade(&shared)));
        made
    }

    /// Drives the workers until all have ended.
    ///
    /// # Errors
    /// [`Deadlock`] in virtual time, when no worker can ever go on.
    pub fn run(&self, tasks: Vec<Task<'_>>) -> Result<(), Deadlock> {
        let inner = &*self.inner;
        inner.is_single_worker.set(tasks.len() == 1);
        Driver::new(inner, tasks).run()
    }

    pub(crate) fn set_timer(&self, due: Nanos) {
        let inner = &self.inner;
        let sequence = inner.sequence.get();
        inner.sequence.set(sequence + 1);
        inner
            .timers
            .borrow_mut()
            .push(Reverse((due, sequence, inner.current.get())));
    }

    pub(crate) fn current(&self) -> u32 {
        self.inner.current.get()
    }

    pub(crate) fn remote(&self) -> &Arc<LaneWaker> {
        &self.inner.remote
    }
}

/// One call of [`Lane::run`].
struct Driver<'a, 'f> {
    inner: &'a Inner,
    tasks: Vec<Option<Task<'f>>>,
    wakers: Vec<Waker>,
    ready: VecDeque<u32>,
    queued: Vec<bool>,
    woken: Vec<u32>,
    /// Tasks from this number on are helpers.
    workers: usize,
    /// Numbers of helpers that have ended.
    free_slots: Vec<u32>,
    live_workers: usize,
    stopped: bool,
    events: Events,
    /// When descriptors were last looked at.
    last_io_poll: Nanos,
}

impl<'a, 'f> Driver<'a, 'f> {
    fn new(inner: &'a Inner, tasks: Vec<Task<'f>>) -> Self {
        let count = tasks.len();
        Self {
            inner,
            wakers: (0..count as u32).map(|t| inner.remote.waker(t)).collect(),
            tasks: tasks.into_iter().map(Some).collect(),
            ready: (0..count as u32).collect(),
            queued: vec![true; count],
            woken: Vec::new(),
            workers: count,
            free_slots: Vec::new(),
            live_workers: count,
            stopped: false,
            events: Events::new(),
            last_io_poll: 0,
        }
    }

    fn run(&mut self) -> Result<(), Deadlock> {
        reset_timers(self.inner);
        while self.live_workers > 0 {
            self.take_background_tasks();
            // Only those that are ready now: workers that keep waking themselves or each other
            // must not keep timers, descriptors and the deadline from the rest.
            for _ in 0..self.ready.len() {
                if let Some(task) = self.ready.pop_front() {
                    self.poll(task);
                }
            }
            self.take_woken();
            if self.live_workers > 0 {
                if self.fire_timers() {
                    self.poll_io_if_due();
                } else {
                    self.wait_for_event()?;
                }
            }
            self.take_woken();
        }
        Ok(())
    }

    fn poll(&mut self, task: u32) {
        self.queued[task as usize] = false;
        let Some(future) = &mut self.tasks[task as usize] else {
            return;
        };
        self.inner.current.set(task);
        self.inner.polls_used.set(POLL_BUDGET);
        if future
            .as_mut()
            .poll(&mut Context::from_waker(&self.wakers[task as usize]))
            .is_ready()
        {
            self.tasks[task as usize] = None;
            match (task as usize) < self.workers {
                true => self.live_workers -= 1,
                false => self.free_slots.push(task),
            }
        }
    }

    /// Takes on the helpers that workers asked for.
    fn take_background_tasks(&mut self) {
        if self.inner.background_tasks.borrow().is_empty() {
            return;
        }
        self.inner.is_single_worker.set(false);
        for helper in self.inner.background_tasks.take() {
            // A waker or a timer of the one that ended is a turn for nothing.
            if let Some(task) = self.free_slots.pop() {
                self.tasks[task as usize] = Some(helper);
                self.make_ready(task);
                continue;
            }
            let task = self.tasks.len() as u32;
            self.tasks.push(Some(helper));
            self.wakers.push(self.inner.remote.waker(task));
            self.queued.push(true);
            self.ready.push_back(task);
        }
    }

    fn make_ready(&mut self, task: u32) {
        // A waker kept from an earlier run may name a worker that is not in this one.
        let Some(queued) = self.queued.get_mut(task as usize) else {
            return;
        };
        if !std::mem::replace(queued, true) {
            self.ready.push_back(task);
        }
    }

    fn take_woken(&mut self) {
        if !self.inner.remote.has_pending() {
            return;
        }
        let mut woken = std::mem::take(&mut self.woken);
        self.inner.remote.take(&mut woken);
        for task in woken.drain(..) {
            self.make_ready(task);
        }
        self.woken = woken;
    }

    /// Makes the workers ready whose timers are due, and all of them when the deadline comes.
    fn fire_timers(&mut self) -> bool {
        let now = self.inner.clock.now();
        let due = |timers: &mut BinaryHeap<Reverse<(Nanos, u64, u32)>>| match timers.peek() {
            Some(Reverse((when, _, _))) if *when <= now => timers.pop().map(|Reverse((_, _, t))| t),
            _ => None,
        };
        while let Some(task) = { due(&mut self.inner.timers.borrow_mut()) } {
            self.make_ready(task);
        }
        if now >= self.inner.deadline.at() && !self.stopped {
            self.stopped = true;
            for task in 0..self.tasks.len() as u32 {
                self.make_ready(task);
            }
        }
        !self.ready.is_empty() || !self.inner.background_tasks.borrow().is_empty()
    }

    /// Nothing can go on now: sleeps, spins or jumps until something can.
    fn wait_for_event(&mut self) -> Result<(), Deadlock> {
        let timer = self
            .inner
            .timers
            .borrow()
            .peek()
            .map(|Reverse((when, _, _))| *when);
        let deadline = if self.stopped {
            Nanos::MAX
        } else {
            self.inner.deadline.at()
        };
        let next = timer.unwrap_or(Nanos::MAX).min(deadline);
        if self.inner.kind == LaneKind::Virtual {
            if self.inner.remote.has_pending() {
                // Somebody may go on now, so it is not yet later.
                return Ok(());
            }
            if next == Nanos::MAX {
                return Err(Deadlock {
                    waiting: self.live_workers,
                });
            }
            self.inner.clock.advance(next);
            return Ok(());
        }
        let wait = next.saturating_sub(self.inner.clock.now());
        if wait <= SPIN_BEFORE_DEADLINE_NS {
            std::hint::spin_loop();
            self.poll_io();
            return Ok(());
        }
        let timeout =
            (next != Nanos::MAX).then(|| Duration::from_nanos(wait - SPIN_BEFORE_DEADLINE_NS));
        if self.inner.remote.fall_asleep() {
            match (self.inner.remote.poller_if_any().cloned(), timeout) {
                (Some(poller), timeout) => self.poll_events(&poller, timeout),
                (None, Some(timeout)) => std::thread::park_timeout(timeout),
                (None, None) => std::thread::park(),
            }
            self.inner.remote.wake_up();
        }
        Ok(())
    }

    /// While spinning, descriptors are looked at too.
    fn poll_io(&mut self) {
        if let Some(poller) = self.inner.remote.poller_if_any().cloned() {
            self.poll_events(&poller, Some(Duration::ZERO));
        }
    }

    /// While workers are busy, descriptors are looked at now and then.
    fn poll_io_if_due(&mut self) {
        if self.inner.remote.poller_if_any().is_none() {
            return;
        }
        let now = self.inner.clock.now();
        if now.saturating_sub(self.last_io_poll) >= IO_POLL_INTERVAL_NS {
            self.last_io_poll = now;
            self.poll_io();
        }
    }

    fn poll_events(&mut self, poller: &polling::Poller, timeout: Option<Duration>) {
        self.events.clear();
        // An interrupted wait is a wait that found nothing.
        let _ = poller.wait(&mut self.events, timeout);
        let tasks: Vec<u32> = self.events.iter().map(|e| e.key as u32).collect();
        for task in tasks {
            self.make_ready(task);
        }
    }
}

/// Timers of an earlier call would wake workers of this one.
fn reset_timers(inner: &Inner) {
    inner.timers.borrow_mut().clear();
}
