//! The side of a lane that other threads may touch: wake a worker, wake the lane.

use polling::Poller;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release, SeqCst};
use std::sync::atomic::{AtomicBool, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Wake, Waker};
use std::thread::Thread;

#[derive(Debug)]
pub(crate) struct LaneWaker {
    woken: Mutex<Vec<u32>>,
    has_pending: AtomicBool,
    /// The lane sleeps or is about to: waking it takes a system call.
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
    poller: OnceLock<Arc<Poller>>,
}

impl LaneWaker {
    pub(crate) fn new() -> Self {
        Self {
            woken: Mutex::default(),
            has_pending: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            thread: OnceLock::new(),
            poller: OnceLock::new(),
        }
    }

    /// Binds the lane to the thread that runs it.
    pub(crate) fn bind(&self) {
        let _ = self.thread.set(std::thread::current());
    }

    /// The lane's poller, made when first asked for.
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
            match (self.poller.get(), self.thread.get()) {
                (Some(poller), _) => {
                    let _ = poller.notify();
                }
                (None, Some(thread)) => thread.unpark(),
                (None, None) => {}
            }
        }
    }

    /// Says that the lane is about to sleep; `false` if there is something to do first.
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

    /// Whether somebody woke the lane or one of its workers since the last [`LaneWaker::take`].
    #[inline]
    pub(crate) fn has_pending(&self) -> bool {
        self.has_pending.load(Acquire)
    }

    /// Moves the workers that were woken to `into`.
    pub(crate) fn take(&self, into: &mut Vec<u32>) {
        if self.has_pending.swap(false, AcqRel) {
            into.append(&mut self.woken.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    pub(crate) fn waker(self: &Arc<Self>, task: u32) -> Waker {
        Waker::from(Arc::new(TaskWaker {
            task,
            remote: self.clone(),
        }))
    }
}

struct TaskWaker {
    task: u32,
    remote: Arc<LaneWaker>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.remote
            .woken
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self.task);
        self.remote.notify();
    }
}
