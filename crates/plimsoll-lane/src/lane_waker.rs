//! The part of a lane that other threads may use, to wake a worker or the lane.

use plimsoll_runtime::sync::atomic::Ordering::{AcqRel, Acquire, Release, SeqCst};
use plimsoll_runtime::sync::atomic::{AtomicBool, fence};
use plimsoll_runtime::sync::thread::{self, Thread};
use plimsoll_runtime::sync::{Mutex, MutexGuard, lock};
use polling::Poller;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};

#[derive(Debug)]
pub(crate) struct LaneWaker {
    woken: Mutex<Vec<u32>>,
    has_pending: AtomicBool,
    /// Whether the lane sleeps or is about to sleep, so that waking the lane takes a system call.
    asleep: AtomicBool,
    thread: Thread,
    poller: OnceLock<Poller>,
    /// Eventfd that a completion source watches instead of the poller.
    counter: OnceLock<Arc<OwnedFd>>,
}

impl LaneWaker {
    /// Creates the waker of a lane of the calling thread.
    pub(crate) fn new() -> Self {
        Self {
            woken: Mutex::default(),
            has_pending: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            thread: thread::current(),
            poller: OnceLock::new(),
            counter: OnceLock::new(),
        }
    }

    fn woken(&self) -> MutexGuard<'_, Vec<u32>> {
        lock(&self.woken)
    }

    /// The lane's poller; the first call creates the poller.
    pub(crate) fn poller(&self) -> std::io::Result<&Poller> {
        match self.poller.get() {
            Some(poller) => Ok(poller),
            None => {
                let created = Poller::new()?;
                Ok(self.poller.get_or_init(|| created))
            }
        }
    }

    pub(crate) fn poller_if_any(&self) -> Option<&Poller> {
        self.poller.get()
    }

    /// A counter (eventfd) that becomes readable when the sleeping lane is woken; the first call creates the counter.
    pub(crate) fn counter(&self) -> std::io::Result<Arc<OwnedFd>> {
        if let Some(counter) = self.counter.get() {
            return Ok(counter.clone());
        }
        let created = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(self.counter.get_or_init(|| created).clone())
    }

    /// Whether the counter exists: the lane then waits in its completion source, not in the poller.
    pub(crate) fn has_counter(&self) -> bool {
        self.counter.get().is_some()
    }

    /// Wakes the lane, whatever it waits for.
    pub(crate) fn notify(&self) {
        // The store here and the load of `asleep` must not be reordered, and neither must the lane's store and load in
        // `fall_asleep`: otherwise each side could miss the other side's store.
        self.has_pending.store(true, SeqCst);
        fence(SeqCst);
        if self.asleep.load(Acquire) {
            match (self.counter.get(), self.poller.get()) {
                (Some(counter), _) => {
                    let written = rustix::io::write(counter, &1u64.to_ne_bytes());
                    written.expect("a counter far below its maximum can be increased");
                    // The completion source may be gone, and the lane parked.
                    self.thread.unpark();
                }
                (None, Some(poller)) => poller.notify().expect("a poller can be woken"),
                (None, None) => self.thread.unpark(),
            }
        }
    }

    /// Announces that the lane is about to sleep; returns `false` if a wakeup is pending, so that the lane must not
    /// sleep.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.asleep.store(true, SeqCst);
        fence(SeqCst);
        if self.has_pending.load(Acquire) {
            self.asleep.store(false, Release);
            return false;
        }
        true
    }

    pub(crate) fn wake_up(&self) {
        self.asleep.store(false, Release);
    }

    /// Whether the lane or one of its workers was woken since the last [`LaneWaker::take`].
    #[inline]
    pub(crate) fn has_pending(&self) -> bool {
        self.has_pending.load(Acquire)
    }

    /// Appends the woken tasks to `into`.
    pub(crate) fn take(&self, into: &mut Vec<u32>) {
        if self.has_pending.swap(false, AcqRel) {
            into.append(&mut self.woken());
        }
    }

    pub(crate) fn task_waker(self: &Arc<Self>, task: u32) -> Waker {
        Waker::from(Arc::new(TaskWaker {
            task,
            lane: self.clone(),
        }))
    }
}

struct TaskWaker {
    task: u32,
    lane: Arc<LaneWaker>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.lane.woken().push(self.task);
        self.lane.notify();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use rustix::io::{Errno, FdFlags, fcntl_getfd, read};

    /// Number of wakes since the previous call.
    fn counted(counter: &OwnedFd) -> Result<u64, Errno> {
        let mut count = [0; 8];
        read(counter, &mut count).map(|_| u64::from_ne_bytes(count))
    }

    fn taken(waker: &LaneWaker) -> Vec<u32> {
        let mut tasks = vec![1];
        waker.take(&mut tasks);
        tasks
    }

    #[test]
    fn a_wake_is_counted_only_while_the_lane_sleeps() {
        let waker = Arc::new(LaneWaker::new());
        assert!(!waker.has_counter() && waker.poller_if_any().is_none());
        let counter = waker.counter().unwrap();
        assert!(waker.has_counter() && Arc::ptr_eq(&counter, &waker.counter().unwrap()));
        assert!(fcntl_getfd(&counter).unwrap().contains(FdFlags::CLOEXEC));
        let task = waker.task_waker(7);

        task.wake_by_ref();
        assert!(waker.has_pending() && !waker.fall_asleep());
        task.wake_by_ref();
        assert_eq!(counted(&counter), Err(Errno::AGAIN));
        assert_eq!(taken(&waker), [1, 7, 7]);
        assert!(!waker.has_pending());

        assert!(waker.fall_asleep());
        waker.task_waker(7).wake();
        waker.notify();
        assert_eq!(counted(&counter), Ok(2));
        waker.wake_up();
        task.wake();
        assert_eq!(counted(&counter), Err(Errno::AGAIN));
        assert_eq!(taken(&waker), [1, 7, 7]);
        assert_eq!(taken(&waker), [1]);
    }
}
