//! The handle of a lane, through which its workers get the time and wait.

use crate::completion_source::CompletionSource;
use crate::deadline::Deadline;
use crate::driver::{Deadlock, Driver};
use crate::state::{LaneKind, LaneState, Task};
use crate::timed_events::TimedEvents;
use crate::waits::{FdWatch, Readable, Sleep, Timer, Yield};
use plimsoll_measure::{Clock, Nanos};
use std::any::Any;
use std::convert::Infallible;
use std::hint::black_box;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

/// Virtual nanoseconds that pass when a worker has used up its poll budget.
const VIRTUAL_YIELD_NS: Nanos = 1_000;

/// Number of stores between a busy worker's checks whether the run has ended.
const STORES_PER_STOP_CHECK: u64 = 1 << 16;

/// A handle of the lane that the caller's workers run on. The handle is cheap to clone.
#[derive(Clone)]
pub struct Lane {
    state: Rc<LaneState>,
}

impl Lane {
    /// Creates a lane that the calling thread will drive.
    #[must_use]
    pub fn new(kind: LaneKind, clock: Clock, deadline: Arc<Deadline>) -> Self {
        Self {
            state: Rc::new(LaneState::new(kind, clock, deadline)),
        }
    }

    /// The kind of the lane, which determines whether operations block the thread and whether time is virtual.
    #[must_use]
    pub fn kind(&self) -> LaneKind {
        self.state.kind
    }

    /// The time of the run's clock in nanoseconds.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.state.now()
    }

    /// Instant at which the run stops, in nanoseconds of the run's clock; `Nanos::MAX` while unknown.
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Nanos {
        self.state.deadline.at()
    }

    /// Waits until `due`; the result is `Err(Stopped)` if the run stops before `due`.
    #[must_use]
    pub fn sleep_until(&self, due: Nanos) -> Sleep {
        Sleep(self.uncancellable_sleep_until(due))
    }

    /// Waits until `due`, even if the run stops before `due`: for the latency of an operation.
    #[must_use]
    pub fn uncancellable_sleep_until(&self, due: Nanos) -> Timer {
        Timer {
            lane: self.state.clone(),
            due,
            set: false,
        }
    }

    /// Takes an operation from the worker's poll budget. Returns whether the worker may continue before other workers
    /// of the lane get their turn: the check that [`Lane::yield_if_exhausted`] makes first, without a future.
    #[inline]
    #[must_use]
    pub fn consume_poll_budget(&self) -> bool {
        let left = self.state.poll_budget.get();
        self.state.poll_budget.set(left.saturating_sub(1));
        left > 0 || (!self.state.is_virtual() && self.state.is_single_worker.get())
    }

    /// Lets other workers of the lane have a turn, if the calling worker has used up its poll budget of 128 operations.
    /// In virtual time the turn takes 1 µs. The only task of a lane in real time continues without a pause.
    #[inline]
    #[must_use]
    pub fn yield_if_exhausted(&self) -> Yield {
        if self.consume_poll_budget() {
            return Yield {
                timed: None,
                pending: false,
            };
        }
        // A worker that never waits would stop virtual time for all workers.
        let is_virtual = self.state.is_virtual();
        Yield {
            timed: is_virtual.then(|| (self.state.clone(), self.now() + VIRTUAL_YIELD_NS)),
            pending: true,
        }
    }

    /// Waits until a descriptor is readable or at end of file.
    #[must_use]
    pub fn readable<'a>(&self, fd: BorrowedFd<'a>) -> Readable<'a> {
        Readable {
            write: false,
            watch: self.watch(fd),
        }
    }

    /// Waits until a descriptor is writable.
    #[must_use]
    pub fn writable<'a>(&self, fd: BorrowedFd<'a>) -> Readable<'a> {
        Readable {
            write: true,
            watch: self.watch(fd),
        }
    }

    /// Watches a descriptor for the current task, until the returned watch is dropped.
    #[must_use]
    pub fn watch<F: AsFd>(&self, fd: F) -> FdWatch<F> {
        FdWatch {
            lane: self.state.clone(),
            fd,
            armed: false,
        }
    }

    /// Keeps the processor busy with `stores` stores to memory, or until the run stops. In virtual time each store
    /// takes a nanosecond, and the end of the run has no effect.
    pub async fn spin_stores(&self, stores: u64) {
        if self.state.is_virtual() {
            self.uncancellable_sleep_until(self.now().saturating_add(stores))
                .await;
            return;
        }
        let mut scratch = self.state.stores_target.borrow_mut();
        scratch.resize(512, 0);
        for i in 0..stores {
            black_box(&mut *scratch)[i as usize % 512] = i;
            if i % STORES_PER_STOP_CHECK == STORES_PER_STOP_CHECK - 1 && self.state.has_stopped() {
                return;
            }
        }
    }

    /// Processor time of this thread in nanoseconds; `None` unless the lane is blocking, because several workers share
    /// the time of any other lane.
    #[must_use]
    pub fn thread_cpu(&self) -> Option<Nanos> {
        if self.state.kind != LaneKind::Blocking {
            return None;
        }
        let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Some(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
    }

    /// Drives a task in addition to the workers, for a resource that the workers share, such as a connection. The lane
    /// does not wait for the end of the task: the task is dropped when the last worker has ended.
    pub fn spawn_background(&self, task: Task<'static>) {
        self.state.background_tasks.borrow_mut().push(task);
    }

    /// Number of the task that is being polled, by which [`TimedEvents`] make the task ready.
    #[must_use]
    pub fn current_task(&self) -> u32 {
        self.state.current.get()
    }

    /// Whether the lane polls other tasks after the current task before the completion source takes its turn.
    #[inline]
    #[must_use]
    pub fn has_ready_tasks(&self) -> bool {
        self.state.has_ready_tasks.get()
    }

    /// Adds the events of `source` to the events of the lane, for the lifetime of the lane.
    ///
    /// # Panics
    /// If the lane is not virtual, or another source was attached before.
    pub fn attach(&self, source: Rc<dyn TimedEvents>) {
        assert!(
            self.state.is_virtual(),
            "events of real time come from the system"
        );
        let before = self.state.timed_events.replace(Some(source));
        assert!(before.is_none(), "a lane has one source of events");
    }

    /// Makes the lane wait for completions of `source` in addition to timers and wakeups, until `source` is dropped. A
    /// lane with a completion source cannot watch descriptors.
    ///
    /// # Panics
    /// If the lane is not a reactor, or has another completion source.
    pub fn attach_completions(&self, source: &Rc<impl CompletionSource + 'static>) {
        assert_eq!(
            self.state.kind,
            LaneKind::Reactor,
            "workers that wait for completions share a lane of real time"
        );
        let source: Rc<dyn CompletionSource> = source.clone();
        let before = self.state.completions.replace(Some(Rc::downgrade(&source)));
        assert!(
            before.is_none_or(|before| before.strong_count() == 0),
            "a lane has one source of completions"
        );
    }

    /// A counter (eventfd) that becomes readable when another thread wakes the sleeping lane. A completion source
    /// watches the counter. The first call creates the counter.
    ///
    /// # Errors
    /// The system's error.
    pub fn wakeup_counter(&self) -> std::io::Result<Arc<OwnedFd>> {
        self.state.waker.counter()
    }

    /// The value that the lane's workers share under `key`, such as an address that is common to all of the workers.
    /// The first caller makes the value, and the last owner drops the value; the next caller makes a new value.
    #[must_use]
    pub fn lane_shared<T: 'static>(&self, key: usize, make: impl FnOnce() -> Rc<T>) -> Rc<T> {
        let made: Result<_, Infallible> = self.try_lane_shared(key, || Ok(make()));
        let Ok(made) = made;
        made
    }

    /// [`Lane::lane_shared`] with a fallible `make`.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn try_lane_shared<T: 'static, E>(
        &self,
        key: usize,
        make: impl FnOnce() -> Result<Rc<T>, E>,
    ) -> Result<Rc<T>, E> {
        let mut shared = self.state.shared_by_key.borrow_mut();
        shared.retain(|(_, value)| value.strong_count() > 0);
        let mut known = shared.iter().filter(|(k, _)| *k == key);
        if let Some(known) = known.find_map(|(_, value)| value.upgrade()?.downcast().ok()) {
            return Ok(known);
        }
        let made = make()?;
        let value: Rc<dyn Any> = made.clone();
        shared.push((key, Rc::downgrade(&value)));
        Ok(made)
    }

    /// Drives the workers until all have ended.
    ///
    /// # Errors
    /// [`Deadlock`] in virtual time, when no worker can ever proceed.
    pub fn run(&self, tasks: Vec<Task<'_>>) -> Result<(), Deadlock> {
        Driver::new(&self.state, tasks).run()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn lane(kind: LaneKind) -> Lane {
        Lane::new(kind, Clock::simulated(), Arc::default())
    }

    #[test]
    fn a_busy_worker_makes_its_number_of_stores_until_the_run_stops() {
        for (stores, has_stopped, done) in [
            (1000, false, 1000),
            (200_000, false, 200_000),
            (1000, true, 1000),
            (200_000, true, 1 << 16),
        ] {
            let lane = lane(LaneKind::Blocking);
            if has_stopped {
                lane.state.deadline.bring_forward(0);
            }
            lane.run(vec![Box::pin(lane.spin_stores(stores))]).unwrap();
            let target = lane.state.stores_target.borrow();
            assert_eq!(target.len(), 512);
            for (i, stored) in (0..).zip(&*target) {
                let last = (done - 512..done).find(|n| n % 512 == i);
                assert_eq!(Some(*stored), last, "{i} of {stores}");
            }
        }
    }

    #[test]
    fn a_worker_that_never_waits_lets_a_microsecond_of_virtual_time_pass() {
        let lane = lane(LaneKind::Virtual);
        let worker: Task<'_> = Box::pin(async {
            lane.uncancellable_sleep_until(5).await;
            for _ in 0..128 {
                lane.yield_if_exhausted().await;
                assert_eq!(lane.now(), 5);
            }
            lane.yield_if_exhausted().await;
            assert_eq!(lane.now(), 1005);
        });
        lane.run(vec![worker]).unwrap();
    }

    #[test]
    fn workers_have_numbers_and_share_a_deadline() {
        let lane = lane(LaneKind::Virtual);
        lane.state.deadline.bring_forward(70);
        let worker = |number: u32| -> Task<'_> {
            let lane = &lane;
            Box::pin(async move {
                assert_eq!((lane.current_task(), lane.deadline()), (number, 70));
                assert_eq!(lane.kind(), LaneKind::Virtual);
            })
        };
        lane.run((0..3).map(worker).collect()).unwrap();
    }

    #[test]
    fn a_value_that_is_no_longer_shared_is_forgotten() {
        let lane = lane(LaneKind::Reactor);
        let one = lane.lane_shared(1, || Rc::new('a'));
        assert_eq!(*lane.lane_shared(1, || Rc::new('b')), 'a');
        drop(one);
        let _other = lane.lane_shared(2, || Rc::new('c'));
        assert_eq!(lane.state.shared_by_key.borrow().len(), 1);
    }
}
