//! Asynchronous writes by a thread pool that all workers of a target share.

use super::calls::write_pieces;
use super::thread_pool::{PoolJob, ThreadPool, wait};
use crate::error::OpError;
use crate::session_types::AioDone;
use crate::timed_writes::wait_until;
use crate::write_data::DetachedData;
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::{Clock, Nanos};
use plimsoll_runtime::sync::lock;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Waker;

pub(super) struct AioRequest {
    /// Keeps the file open until the write completes, even if the worker drops the file earlier.
    file: Arc<OwnedFd>,
    offset: u64,
    len: u64,
    tag: u32,
    content: DetachedData,
    start: Nanos,
    clock: Clock,
    to: Arc<Completions>,
}

/// The thread pool that all workers of a target share.
pub(super) type AioThreadPool = ThreadPool<AioRequest>;

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

impl PoolJob for AioRequest {
    const THREAD: &'static str = "aio";

    fn run(self) {
        let result = self.write();
        let end = self.clock.now();
        let write = self.active();
        // The write's descriptor must be closed before the write counts as completed: a worker that closes the file
        // after its last write expects no other descriptor of the file.
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
}

impl AioRequest {
    fn active(&self) -> InFlightAio {
        InFlightAio {
            fd: self.file.as_raw_fd(),
            tag: self.tag,
            start: self.start,
        }
    }

    fn write(&self) -> Result<u64, OpError> {
        let len = self.len as usize;
        write_pieces(self.len, |done| {
            let piece = self.content.piece(done as usize, len);
            rustix::io::pwrite(&self.file, piece, self.offset + done)
        })?;
        Ok(self.len)
    }
}

/// One worker's queued writes.
pub(super) struct SessionAioQueue {
    pool: Arc<AioThreadPool>,
    clock: Clock,
    completions: Arc<Completions>,
    /// Number of queued writes that the worker has not taken yet.
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
        let waited = wait_until(lane, |context| {
            let mut state = lock(&self.completions.state);
            if state.done.len() >= count {
                return true;
            }
            state.waker = Some(context.waker().clone());
            false
        })
        .await;
        // Writes that have completed are returned even if the run stopped the wait.
        let mut state = lock(&self.completions.state);
        self.pending -= state.done.len();
        done.append(&mut state.done);
        waited
    }

    /// Removes the session's queued writes that no thread has begun; returns tag and queueing time of every incomplete
    /// write of the session, begun or not.
    pub(super) fn abandon(&mut self) -> Vec<(u32, Nanos)> {
        if self.pending == 0 {
            return Vec::new();
        }
        let under_way = {
            let state = lock(&self.completions.state);
            state.active.iter().map(|a| (a.tag, a.start)).collect()
        };
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
        under_way
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
