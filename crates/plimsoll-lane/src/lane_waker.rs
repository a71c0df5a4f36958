//! The side of a lane that other threads may use: waking a worker, waking the lane.

use polling::Poller;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release, SeqCst};
use std::sync::atomic::{AtomicBool, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Wake, Waker};
use std::thread::Thread;

#[derive(Debug, Default)]
pub(crate) struct LaneWaker {
    woken: Mutex<Vec<u32>>,
    has_pending: AtomicBool,
    /// The lane sleeps or is about to: waking it takes a system call.
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
    poller: OnceLock<Arc<Poller>>,
}

impl LaneWaker {
    /// Binds the lane to the calling thread, which runs it.
    pub(crate) fn bind(&self) {
        let bound = self.thread.set(std::thread::current());
        bound.expect("a lane is bound to one thread");
    }

    fn woken(&self) -> MutexGuard<'_, Vec<u32>> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lane's poller, created by the first call.
    pub(crate) fn poller(&self) -> std::io::Result<Arc<Poller>> {
        if let Some(poller) = self.poller.get() {
            return Ok(poller.clone());
        }
        let made = Arc::new(Poller::new()?);
        Ok(self.poller.get_or_init(|| made).clone())
    }

    pub(crate) fn poller_if_any(&self) -> Option<&Arc<Poller>> {
        self.poller.get()
    }

    /// Wakes the lane, whatever it waits for.
    pub(crate) fn notify(&self) {
        // This store and the load of `asleep` must not pass each other, nor the lane's two in
        // `fall_asleep`: one side would miss the other.
        self.has_pending.store(true, SeqCst);
        fence(SeqCst);
        if self.asleep.load(Acquire) {
            match self.poller.get() {
                Some(poller) => {
                    let _ = poller.notify();
                }
                None => self.thread.get().expect("a lane is bound").unpark(),
            }
        }
    }

    /// Announces that the lane is about to sleep; returns `false` if there is something to do first.
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

    /// Moves the workers that were woken to `into`.
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
