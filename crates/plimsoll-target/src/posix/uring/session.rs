//! One worker's state on a ring, and the execution of an operation on the ring or in the thread
//! pool.

use super::aio::AioWrites;
use super::call::{APPEND, RingCall, RingCalls, Source, WriteHow};
use super::file::{RingFile, check_offset};
use super::options::PoolOperations;
use super::ring::Ring;
use crate::error::OpError;
use crate::posix::calls::SystemCalls;
use crate::posix::names::CheckedParents;
use crate::posix::thread_pool::{PoolJob, ThreadPool};
use plimsoll_lane::Lane;
use plimsoll_measure::{Clock, Nanos};
use plimsoll_runtime::sync::lock;
use rustix::io::Errno;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

/// Maximum size in bytes of a worker's buffer that is registered; registered memory is locked.
const MAX_REGISTERED_BYTES: usize = 1 << 20;

/// System calls of a worker that a pool thread makes.
pub(super) struct PoolCall(Box<dyn FnOnce() + Send>);

impl PoolJob for PoolCall {
    const THREAD: &'static str = "uring-pool";

    fn run(self) {
        (self.0)();
    }
}

pub(crate) struct UringSession {
    pub(super) lane: Lane,
    clock: Clock,
    pub(super) ring: Rc<Ring>,
    /// `None` while an operation is in flight.
    calls: Option<Box<RingCalls>>,
    pub(super) parents: Box<CheckedParents>,
    pub(super) aio: AioWrites,
    pool: Arc<ThreadPool<PoolCall>>,
    pub(super) pooled: PoolOperations,
    has_registered_content: bool,
}

/// The reply of the pool to a pooled call.
struct PoolReply<R> {
    /// The worker's state, the result, and the completion time.
    done: Option<(Box<RingCalls>, Result<R, OpError>, Nanos)>,
    waker: Option<Waker>,
}

impl UringSession {
    pub(super) fn new(
        (lane, clock): (&Lane, Clock),
        ring: Rc<Ring>,
        calls: SystemCalls,
        pool: Arc<ThreadPool<PoolCall>>,
        pooled: PoolOperations,
    ) -> Self {
        let mut session = Self {
            lane: lane.clone(),
            clock,
            aio: AioWrites::new(lane, ring.clone()),
            ring,
            calls: Some(Box::new(RingCalls::new(calls))),
            parents: Box::default(),
            pool,
            pooled,
            has_registered_content: false,
        };
        session.register_buffer();
        session
    }

    /// The state of the worker's operations.
    #[inline]
    pub(super) fn calls(&mut self) -> &mut RingCalls {
        self.calls
            .as_mut()
            .expect("a worker has one operation at a time")
    }

    /// The worker's system calls with the located name.
    pub(super) fn located(&self) -> &SystemCalls {
        let calls = self.calls.as_ref();
        &calls.expect("a worker has one operation at a time").calls
    }

    /// Enlarges the buffer to at least `len` bytes, and registers an enlarged buffer.
    pub(super) fn reserve_buffer(&mut self, len: usize) -> Result<(), Errno> {
        let before = self.calls().calls.buffer.as_ptr();
        self.calls().calls.reserve_buffer(len)?;
        if self.calls().calls.buffer.as_ptr() != before {
            self.register_buffer();
        }
        Ok(())
    }

    /// Registers the buffer unless the buffer is larger than `MAX_REGISTERED_BYTES`.
    fn register_buffer(&mut self) {
        let ring = self.ring.clone();
        let calls = self.calls();
        if let Some(old) = calls.buffer.take() {
            ring.forget_memory(old);
        }
        let (begin, len) = (calls.calls.buffer.as_mut_ptr(), calls.calls.buffer.len());
        if len <= MAX_REGISTERED_BYTES {
            calls.buffer = ring.register_memory(begin, len);
        }
    }

    /// Executes an operation on the ring.
    #[inline]
    pub(super) async fn operate(
        &mut self,
        call: impl FnOnce(Box<RingCalls>) -> RingCall,
    ) -> Result<u32, Errno> {
        let calls = self.calls.take();
        let calls = calls.expect("a worker has one operation at a time");
        let (result, held) = self.ring.start(call(calls)).await;
        self.calls = Some(held.into_calls());
        result
    }

    /// Counts a transfer of a file; registers the file after enough transfers.
    #[inline]
    pub(super) fn count_transfer(&self, file: &Arc<RingFile>) {
        if file.count_transfer() {
            self.ring.register_file(file);
        }
    }

    /// Reads up to `len` bytes into the buffer; returns their range in the buffer.
    pub(super) async fn read_into_buffer(
        &mut self,
        file: &Arc<RingFile>,
        offset: u64,
        len: usize,
    ) -> Result<std::ops::Range<usize>, OpError> {
        check_offset(offset)?;
        self.reserve_buffer(len)?;
        let room = self.calls().calls.buffer_range(len)?;
        self.count_transfer(file);
        loop {
            let piece = room.clone();
            match self
                .operate(|calls| RingCall::read(calls, file, piece, offset))
                .await
            {
                Err(Errno::INTR) => {}
                other => return Ok(room.start..room.start + other? as usize),
            }
        }
    }

    /// Writes `len` bytes in as many ring operations as needed; `source` gives the source of the bytes that remain
    /// after a number of bytes.
    async fn write_all(
        &mut self,
        file: &Arc<RingFile>,
        how: WriteHow,
        len: u64,
        source: impl Fn(u64) -> Source,
    ) -> Result<(), OpError> {
        let mut done = 0;
        while done < len {
            let mut how = how;
            how.offset += if how.flags & APPEND == 0 { done } else { 0 };
            match self.write_once(file, source(done), how).await {
                Ok(0) => return Err(Errno::IO.into()),
                Ok(n) => done += u64::from(n),
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Writes the next `len` bytes of the session's content to a file.
    pub(super) async fn write_content(
        &mut self,
        file: &Arc<RingFile>,
        how: WriteHow,
        len: u64,
    ) -> Result<(), OpError> {
        self.write_all(file, how, len, |done| Source::Content(len - done))
            .await
    }

    /// Writes a whole range of the buffer.
    pub(super) async fn write_buffer(
        &mut self,
        file: &Arc<RingFile>,
        how: WriteHow,
        part: std::ops::Range<usize>,
    ) -> Result<(), OpError> {
        let len = part.len() as u64;
        let rest = |done| Source::Buffer(part.start + done as usize..part.end);
        self.write_all(file, how, len, rest).await
    }

    #[inline]
    async fn write_once(
        &mut self,
        file: &Arc<RingFile>,
        source: Source,
        how: WriteHow,
    ) -> Result<u32, Errno> {
        check_offset(how.offset)?;
        self.count_transfer(file);
        let calls = self.calls.take();
        let calls = calls.expect("a worker has one operation at a time");
        let call = match RingCall::write(calls, file, source, how) {
            Ok(call) => call,
            Err((e, calls)) => {
                self.calls = Some(calls);
                return Err(e);
            }
        };
        let (result, held) = self.ring.start(call).await;
        self.calls = Some(held.into_calls());
        result
    }

    /// Registers the content pool, unless this session has done so already.
    pub(super) fn register_content(&mut self) {
        if self.has_registered_content {
            return;
        }
        self.has_registered_content = true;
        let pool = self.calls().calls.source.pool().clone();
        if !pool.is_composed() {
            self.calls().pool = self.ring.register_content(&pool);
        }
    }

    /// Makes system calls on a pool thread.
    pub(super) async fn in_pool<R: Send + 'static>(
        &mut self,
        call: impl FnOnce(&mut SystemCalls) -> Result<R, OpError> + Send + 'static,
    ) -> Result<R, OpError> {
        let calls = self.calls.take();
        let mut calls = calls.expect("a worker has one operation at a time");
        let reply = Arc::new(Mutex::new(PoolReply {
            done: None,
            waker: None,
        }));
        let (to, clock) = (reply.clone(), self.clock.clone());
        let job = PoolCall(Box::new(move || {
            // The panic message has been printed; a worker that waits forever would hide the panic.
            let result = catch_unwind(AssertUnwindSafe(|| call(&mut calls.calls)));
            let result = result.unwrap_or_else(|_| Err(Errno::IO.into()));
            let end = clock.now();
            let mut reply = lock(&to);
            reply.done = Some((calls, result, end));
            if let Some(waker) = reply.waker.take() {
                drop(reply);
                waker.wake();
            }
        }));
        self.pool
            .submit(job)
            .expect("the first thread was started when the target was connected");
        let (calls, result, end) = poll_fn(|context| {
            let mut reply = lock(&reply);
            match reply.done.take() {
                Some(done) => Poll::Ready(done),
                None => {
                    reply.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
        self.ring.record_delay(end);
        self.calls = Some(calls);
        result
    }

    /// Executes `call` with the descriptor of `file` on a thread of the pool, as [`UringSession::in_pool`] does without
    /// a file.
    pub(super) async fn in_pool_on<R: Send + 'static>(
        &mut self,
        file: &Arc<RingFile>,
        call: impl FnOnce(&mut SystemCalls, &OwnedFd) -> Result<R, OpError> + Send + 'static,
    ) -> Result<R, OpError> {
        let file = file.clone();
        self.in_pool(move |calls| call(calls, &file.fd)).await
    }
}

impl Drop for UringSession {
    fn drop(&mut self) {
        if let Some(registered) = self.calls.as_ref().and_then(|calls| calls.buffer) {
            self.ring.forget_memory(registered);
        }
    }
}
