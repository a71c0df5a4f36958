//! Asynchronous writes by a pool of threads that all workers of a target share.

use crate::error::OpError;
use crate::session_types::AioDone;
use crate::write_data::DetachedData;
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::{Clock, Nanos};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Maximum number of threads of the pool, and so of writes in progress.
const MAX_AIO_THREADS: usize = 32;

struct AioRequest {
    /// Keeps the file open, even if the worker drops it before the write completes.
    file: Arc<OwnedFd>,
    offset: u64,
    len: u64,
    tag: u32,
    content: DetachedData,
    start: Nanos,
    clock: Clock,
    to: Arc<Completions>,
}

#[derive(Default)]
struct AioQueueState {
    queue: VecDeque<AioRequest>,
    idle: usize,
    threads: usize,
    /// Threads end when the queue is empty.
    closed: bool,
}

/// The pool; its threads are started as they are needed and end when the pool is dropped.
#[derive(Default)]
pub(super) struct AioThreadPool {
    shared: Arc<AioPoolShared>,
}

#[derive(Default)]
struct AioPoolShared {
    jobs: Mutex<AioQueueState>,
    changed: Condvar,
}

/// The results of one worker's writes.
#[derive(Default)]
struct Completions {
    state: Mutex<CompletedAio>,
    changed: Condvar,
}

#[derive(Default)]
struct CompletedAio {
    done: Vec<AioDone>,
    waker: Option<Waker>,
    /// Writes that are queued or in progress.
    active: Vec<InFlightAio>,
}

/// A write that is queued or in progress.
#[derive(Clone, Copy, PartialEq, Eq)]
struct InFlightAio {
    fd: RawFd,
    tag: u32,
    start: Nanos,
}

impl CompletedAio {
    fn forget(&mut self, write: InFlightAio) {
        if let Some(at) = self.active.iter().position(|a| *a == write) {
            self.active.swap_remove(at);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    let woken = condition.wait(guard);
    woken.unwrap_or_else(PoisonError::into_inner)
}

impl AioThreadPool {
    fn submit(&self, job: AioRequest) -> Result<(), Errno> {
        let mut jobs = lock(&self.shared.jobs);
        if jobs.idle <= jobs.queue.len() && jobs.threads < MAX_AIO_THREADS {
            let shared = self.shared.clone();
            let started = std::thread::Builder::new()
                .name(format!("aio-{}", jobs.threads))
                .spawn(move || shared.run_worker_thread());
            match started {
                Ok(_) => jobs.threads += 1,
                // Without a thread the write would never complete.
                Err(_) if jobs.threads == 0 => return Err(Errno::AGAIN),
                Err(_) => {}
            }
        }
        jobs.queue.push_back(job);
        drop(jobs);
        self.shared.changed.notify_one();
        Ok(())
    }
}

impl Drop for AioThreadPool {
    fn drop(&mut self) {
        lock(&self.shared.jobs).closed = true;
        self.shared.changed.notify_all();
    }
}

impl AioPoolShared {
    fn run_worker_thread(&self) {
        let mut jobs = lock(&self.jobs);
        loop {
            if let Some(job) = jobs.queue.pop_front() {
                drop(jobs);
                job.run();
                jobs = lock(&self.jobs);
            } else if jobs.closed {
                return;
            } else {
                jobs.idle += 1;
                jobs = wait(&self.changed, jobs);
                jobs.idle -= 1;
            }
        }
    }
}

impl AioRequest {
    fn run(self) {
        let result = self.write();
        let end = self.clock.now();
        let write = self.active();
        // Before the write is reported, so that a file is no longer open when its close returns.
        drop(self.file);
        let mut state = lock(&self.to.state);
        state.forget(write);
        state.done.push(AioDone {
            tag: self.tag,
            start: self.start,
            end,
            result,
        });
        let waker = state.waker.take();
        drop(state);
        self.to.changed.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn active(&self) -> InFlightAio {
        InFlightAio {
            fd: self.file.as_raw_fd(),
            tag: self.tag,
            start: self.start,
        }
    }

    fn write(&self) -> Result<u64, OpError> {
        let mut done = 0;
        while done < self.len {
            let piece = self.content.piece(done as usize, self.len as usize);
            match rustix::io::pwrite(&self.file, piece, self.offset + done) {
                Ok(0) => return Err(Errno::IO.into()),
                Ok(n) => done += n as u64,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(done)
    }
}

/// One worker's queued writes.
pub(super) struct SessionAioQueue {
    pool: Arc<AioThreadPool>,
    clock: Clock,
    completions: Arc<Completions>,
    /// Queued and not yet taken.
    pending: usize,
}

impl SessionAioQueue {
    pub(super) fn new(pool: Arc<AioThreadPool>, clock: Clock) -> Self {
        Self {
            pool,
            clock,
            completions: Arc::default(),
            pending: 0,
        }
    }

    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    pub(super) fn push(
        &mut self,
        file: Arc<OwnedFd>,
        offset: u64,
        len: u64,
        tag: u32,
        content: DetachedData,
    ) -> Result<(), OpError> {
        let job = AioRequest {
            file,
            offset,
            len,
            tag,
            content,
            start: self.clock.now(),
            clock: self.clock.clone(),
            to: self.completions.clone(),
        };
        let write = job.active();
        lock(&self.completions.state).active.push(write);
        self.pool.submit(job).inspect_err(|_| {
            lock(&self.completions.state).forget(write);
        })?;
        self.pending += 1;
        Ok(())
    }

    pub(super) async fn take(
        &mut self,
        lane: &Lane,
        count: usize,
        done: &mut Vec<AioDone>,
    ) -> Result<(), Stopped> {
        let count = count.min(self.pending);
        let waited = std::future::poll_fn(|context| {
            let mut state = lock(&self.completions.state);
            if state.done.len() >= count {
                return Poll::Ready(Ok(()));
            }
            if lane.now() >= lane.deadline() {
                return Poll::Ready(Err(Stopped));
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
        // Completed writes are taken also when the wait ended early.
        let mut state = lock(&self.completions.state);
        self.pending -= state.done.len();
        done.append(&mut state.done);
        waited
    }

    /// Tag and start of each write that has not completed.
    pub(super) fn under_way(&self) -> Vec<(u32, Nanos)> {
        let state = lock(&self.completions.state);
        state.active.iter().map(|a| (a.tag, a.start)).collect()
    }

    /// Removes writes that no thread has begun.
    pub(super) fn abandon(&mut self) {
        if self.pending == 0 {
            return;
        }
        let mine = |job: &AioRequest| Arc::ptr_eq(&job.to, &self.completions);
        let mut taken = Vec::new();
        lock(&self.pool.shared.jobs).queue.retain(|job| {
            if mine(job) {
                taken.push(job.active());
            }
            !mine(job)
        });
        let mut state = lock(&self.completions.state);
        taken.iter().for_each(|write| state.forget(*write));
        self.pending -= taken.len();
    }

    /// Blocks until no write to `fd` is queued or in progress.
    #[inline]
    pub(super) fn drain(&self, fd: RawFd) {
        if self.pending == 0 {
            return;
        }
        let mut state = lock(&self.completions.state);
        while state.active.iter().any(|a| a.fd == fd) {
            state = wait(&self.completions.changed, state);
        }
    }
}

impl Drop for SessionAioQueue {
    fn drop(&mut self) {
        let mut state = lock(&self.completions.state);
        while !state.active.is_empty() {
            state = wait(&self.completions.changed, state);
        }
    }
}

#[cfg(test)]
mod tests;
