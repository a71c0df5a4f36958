//! The loop in which a lane polls ready tasks, and waits or advances virtual time when no task is ready.

use crate::completion_source::CompletionSource;
use crate::state::{LaneState, Task};
use plimsoll_measure::Nanos;
use polling::Events;
use std::collections::VecDeque;
use std::task::{Context, Waker};
use std::time::Duration;

/// Allowance for late kernel wakeups on a busy client, in nanoseconds. The lane sleeps shorter by the allowance and
/// spins for the remaining time, so that a late start is not charged to the server.
const SPIN_BEFORE_DEADLINE_NS: Nanos = 50_000;

/// Minimum nanoseconds between two polls of descriptors while workers keep the lane busy.
const IO_POLL_INTERVAL_NS: Nanos = 50_000;

/// Operations that a worker may do before other workers of the lane get their turn.
const POLL_BUDGET: u32 = 128;

/// Number of timers between the timer that fires and the timer whose task is prefetched.
const PREFETCH_DISTANCE: usize = 1;

/// Maximum number of bytes of a task that are prefetched. A worker of a mix has about 900 bytes.
const MAX_PREFETCHED_BYTES: usize = 2048;

const CACHE_LINE_BYTES: usize = 64;

/// No worker can ever proceed: all workers wait, and there is no timer, no timed event and no deadline to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlock {
    /// Number of workers of the lane that have not ended.
    pub waiting: usize,
}

/// One call of [`Lane::run`](crate::Lane::run).
pub(crate) struct Driver<'a, 'f> {
    state: &'a LaneState,
    tasks: Vec<Option<Task<'f>>>,
    wakers: Vec<Waker>,
    ready: VecDeque<u32>,
    queued: Vec<bool>,
    woken: Vec<u32>,
    /// Tasks from this number on are background tasks.
    workers: usize,
    /// Numbers of background tasks that have ended.
    free_slots: Vec<u32>,
    live_workers: usize,
    stopped: bool,
    events: Events,
    /// Instant of the latest poll of descriptors.
    last_io_poll: Nanos,
}

impl<'a, 'f> Driver<'a, 'f> {
    pub(crate) fn new(state: &'a LaneState, tasks: Vec<Task<'f>>) -> Self {
        let count = tasks.len();
        let numbers = 0..count as u32;
        state.is_single_worker.set(count == 1);
        // A timer of an earlier call would wake a worker of this call.
        state.timers.take();
        Self {
            state,
            wakers: numbers.clone().map(|t| state.waker.task_waker(t)).collect(),
            tasks: tasks.into_iter().map(Some).collect(),
            ready: numbers.collect(),
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

    pub(crate) fn run(&mut self) -> Result<(), Deadlock> {
        let ended = self.drive();
        // Background tasks that were never polled are dropped here: the lane's state owns the tasks and the tasks own
        // handles of the lane, so the cycle would never be freed. Dropping a task may spawn another task.
        while !self.state.background_tasks.borrow().is_empty() {
            drop(self.state.background_tasks.take());
        }
        ended
    }

    fn drive(&mut self) -> Result<(), Deadlock> {
        while self.live_workers > 0 {
            self.take_background_tasks();
            // Polls only the tasks that are ready now: workers that keep waking themselves or each other must not delay
            // timers, descriptors and the deadline.
            for left in (0..self.ready.len()).rev() {
                self.state.has_ready_tasks.set(left > 0);
                let task = self.ready.pop_front().expect("polling takes none away");
                self.poll(task);
            }
            self.take_woken();
            if self.live_workers > 0 {
                match self.fire_timers() {
                    true => self.poll_io_if_due(),
                    false => self.wait_for_event()?,
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
        self.state.current.set(task);
        self.state.poll_budget.set(POLL_BUDGET);
        let mut context = Context::from_waker(&self.wakers[task as usize]);
        if future.as_mut().poll(&mut context).is_ready() {
            self.tasks[task as usize] = None;
            if (task as usize) < self.workers {
                debug_assert!(self.live_workers > 0, "more workers end than there were");
                self.live_workers -= 1;
            } else {
                debug_assert!(!self.free_slots.contains(&task), "a task is vacated twice");
                self.free_slots.push(task);
            }
        }
    }

    /// Adds the background tasks that workers spawned.
    fn take_background_tasks(&mut self) {
        if self.state.background_tasks.borrow().is_empty() {
            return;
        }
        self.state.is_single_worker.set(false);
        for background in self.state.background_tasks.take() {
            // A waker or a timer of the ended task may poll the new task once in vain.
            let task = self.free_slots.pop().unwrap_or_else(|| {
                let task = self.tasks.len() as u32;
                self.tasks.push(None);
                self.wakers.push(self.state.waker.task_waker(task));
                self.queued.push(false);
                task
            });
            let vacated = self.tasks[task as usize].replace(background);
            debug_assert!(vacated.is_none(), "a live task is replaced");
            self.make_ready(task);
        }
    }

    fn make_ready(&mut self, task: u32) {
        // A waker of an earlier run may belong to a worker that does not exist in this run.
        if let Some(queued) = self.queued.get_mut(task as usize)
            && !std::mem::replace(queued, true)
        {
            self.ready.push_back(task);
        }
    }

    #[inline]
    fn take_woken(&mut self) {
        if self.state.waker.has_pending() {
            self.take_all_woken();
        }
    }

    fn take_all_woken(&mut self) {
        let mut woken = std::mem::take(&mut self.woken);
        self.state.waker.take(&mut woken);
        for task in woken.drain(..) {
            self.make_ready(task);
        }
        self.woken = woken;
    }

    /// Makes the tasks of due timers ready, and all tasks at the deadline. Returns whether any task is ready or was
    /// spawned.
    fn fire_timers(&mut self) -> bool {
        let now = self.state.now();
        self.take_due_timers(now);
        if now >= self.state.deadline.at() && !self.stopped {
            self.stopped = true;
            for task in 0..self.tasks.len() as u32 {
                self.make_ready(task);
            }
        }
        !self.ready.is_empty() || !self.state.background_tasks.borrow().is_empty()
    }

    fn take_due_timers(&mut self, now: Nanos) {
        let state = self.state;
        loop {
            let mut timers = state.timers.borrow_mut();
            let Some((_, task)) = timers.pop_until(now) else {
                return;
            };
            // In virtual time a task with a timer is woken soon, and thousands of tasks do not fit the caches.
            let ahead = timers.ahead(PREFETCH_DISTANCE).copied();
            drop(timers);
            self.make_ready(task);
            if state.is_virtual()
                && let Some(ahead) = ahead
            {
                self.fetch(ahead);
            }
        }
    }

    /// Prefetches the memory of a task that will be polled soon.
    #[inline]
    fn fetch(&self, task: u32) {
        if let Some(Some(task)) = self.tasks.get(task as usize) {
            prefetch(task);
        }
    }

    /// Makes the tasks ready that events up to `now` let proceed.
    fn handle_events(&mut self, now: Nanos) {
        if let Some(source) = &*self.state.timed_events.borrow() {
            let mut woken = std::mem::take(&mut self.woken);
            source.advance(now, &mut woken);
            for task in woken.drain(..) {
                self.make_ready(task);
                self.fetch(task);
            }
            self.woken = woken;
        }
    }

    /// Sleeps, spins or advances virtual time until a task may be ready. Must be called when no task is ready. Fails if
    /// no task can ever become ready in virtual time.
    fn wait_for_event(&mut self) -> Result<(), Deadlock> {
        let state = self.state;
        let timer = state.timers.borrow().next_at();
        let deadline = match self.stopped {
            true => Nanos::MAX,
            false => state.deadline.at(),
        };
        let next = timer.map_or(deadline, |due| due.min(deadline));
        if state.is_virtual() {
            if state.waker.has_pending() {
                // A worker or background task was woken and may proceed now, so virtual time must not advance.
                return Ok(());
            }
            debug_assert!(
                timer.is_none_or(|due| due > state.now()),
                "virtual time would go back to a timer that is due"
            );
            let hold = match self.stopped {
                true => Nanos::MAX,
                false => state.deadline.hold(),
            };
            let limit = if hold <= next && hold < Nanos::MAX {
                hold - 1
            } else {
                next
            };
            let source = state.timed_events.borrow();
            let event = source.as_ref().and_then(|source| source.proceed(limit));
            debug_assert!(event <= Some(limit), "an event after the limit was handled");
            if event.is_none() && limit < next {
                drop(source);
                self.wait_at_hold(hold);
                return Ok(());
            }
            let next = event.unwrap_or(next);
            if next == Nanos::MAX {
                let waiting = self.live_workers;
                return Err(Deadlock { waiting });
            }
            state.clock.advance(next);
            drop(source);
            // Timers precede events of the same time.
            self.take_due_timers(next);
            self.handle_events(next);
            return Ok(());
        }
        let wait = next.saturating_sub(state.now());
        if wait <= SPIN_BEFORE_DEADLINE_NS {
            plimsoll_runtime::sync::thread::spin(Duration::from_nanos(wait));
            self.poll_io(Some(Duration::ZERO));
            return Ok(());
        }
        let timeout =
            (next != Nanos::MAX).then(|| Duration::from_nanos(wait - SPIN_BEFORE_DEADLINE_NS));
        if state.waker.fall_asleep() {
            match timeout {
                _ if self.poll_io(timeout) => {}
                Some(timeout) => plimsoll_runtime::sync::thread::park_timeout(timeout),
                None => plimsoll_runtime::sync::thread::park(),
            }
            state.waker.wake_up();
        }
        Ok(())
    }

    /// Advances virtual time to the instant before `hold`, and sleeps until the controller moves the hold or the run stops.
    fn wait_at_hold(&mut self, hold: Nanos) {
        let state = self.state;
        if state.now() < hold - 1 {
            state.clock.advance(hold - 1);
            self.handle_events(hold - 1);
        }
        state.deadline.note_reached(hold);
        if state.waker.fall_asleep() {
            plimsoll_runtime::sync::thread::park();
            state.waker.wake_up();
        }
    }

    /// Submits queued operations and takes completions, or polls descriptors at intervals, while workers are busy.
    fn poll_io_if_due(&mut self) {
        if let Some(source) = self.state.completion_source() {
            if source.is_due() {
                self.take_completions(&*source, Some(Duration::ZERO));
            }
            return;
        }
        if self.state.waker.poller_if_any().is_none() {
            return;
        }
        let now = self.state.now();
        if now.saturating_sub(self.last_io_poll) >= IO_POLL_INTERVAL_NS {
            self.last_io_poll = now;
            self.poll_io(Some(Duration::ZERO));
        }
    }

    /// Waits for descriptors, completions or a wakeup, for at most `timeout`, or without limit if `timeout` is `None`.
    /// Returns `false` at once if the lane has neither a completion source nor a poller.
    fn poll_io(&mut self, timeout: Option<Duration>) -> bool {
        if let Some(source) = self.state.completion_source() {
            if timeout != Some(Duration::ZERO) || source.is_due() {
                self.take_completions(&*source, timeout);
            }
            return true;
        }
        let Some(poller) = self.state.waker.poller_if_any() else {
            return false;
        };
        self.events.clear();
        // An interrupted wait reports no event.
        let _ = poller.wait(&mut self.events, timeout);
        let tasks: Vec<u32> = self.events.iter().map(|e| e.key as u32).collect();
        for task in tasks {
            self.make_ready(task);
        }
        true
    }

    /// Makes the tasks ready whose operations have completed.
    fn take_completions(&mut self, source: &dyn CompletionSource, timeout: Option<Duration>) {
        let mut woken = std::mem::take(&mut self.woken);
        source.turn(timeout, &mut woken);
        for task in woken.drain(..) {
            self.make_ready(task);
        }
        self.woken = woken;
    }
}

/// Prefetches at most `MAX_PREFETCHED_BYTES` of a task.
#[inline(always)]
fn prefetch(task: &Task<'_>) {
    let future = &**task;
    let bytes = size_of_val(future).min(MAX_PREFETCHED_BYTES);
    let begin = std::ptr::from_ref(future).cast::<u8>();
    for offset in (0..bytes).step_by(CACHE_LINE_BYTES) {
        // SAFETY: a prefetch is a hint that has no effect visible to a program, and that cannot fault at any address.
        // The instruction belongs to SSE, which is a part of x86-64.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(begin.wrapping_add(offset).cast());
        }
        // Other architectures have no prefetch hint without assembly.
        #[cfg(not(target_arch = "x86_64"))]
        std::hint::black_box(begin.wrapping_add(offset));
    }
}
