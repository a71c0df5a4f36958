//! A worker's asynchronous writes on the ring of its lane.

use super::call::RingCall;
use super::file::{RingFile, check_offset};
use super::ring::Ring;
use crate::error::OpError;
use crate::session_types::AioDone;
use crate::timed_writes::wait_until;
use crate::write_data::DetachedData;
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::Nanos;
use rustix::io::Errno;
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The future of a queued write, which submits one ring operation after the other until all bytes are written.
type WriteFuture = Pin<Box<dyn Future<Output = Result<u64, OpError>>>>;

/// A write that has not completed.
struct ActiveWrite {
    write: WriteFuture,
    has_begun: bool,
    file: Arc<RingFile>,
    tag: u32,
    start: Nanos,
    number: u64,
}

#[derive(Default)]
struct AioState {
    done: Vec<AioDone>,
    active: Vec<ActiveWrite>,
    waker: Option<Waker>,
}

impl AioState {
    /// Continues a write; ready when the write has completed or is no longer active.
    fn proceed(&mut self, number: u64, lane: &Lane, context: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.active.iter().position(|w| w.number == number) else {
            return Poll::Ready(());
        };
        let active = &mut self.active[at];
        active.has_begun = true;
        let Poll::Ready(result) = active.write.as_mut().poll(context) else {
            return Poll::Pending;
        };
        let end = lane.now();
        // The write's descriptor must be closed before the write counts as completed: a worker that closes the file
        // after its last write expects no other descriptor of the file.
        let ActiveWrite { tag, start, .. } = self.active.swap_remove(at);
        self.done.push(AioDone {
            tag,
            start,
            end,
            result,
        });
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        Poll::Ready(())
    }
}

/// The asynchronous writes of a worker.
pub(super) struct AioWrites {
    lane: Lane,
    ring: Rc<Ring>,
    state: Rc<RefCell<AioState>>,
    /// Number of queued writes that the worker has not taken yet.
    pending: usize,
    queued: u64,
}

/// A write to be queued.
pub(super) struct AioWrite {
    pub(super) file: Arc<RingFile>,
    pub(super) offset: u64,
    pub(super) len: usize,
    pub(super) tag: u32,
    pub(super) data: DetachedData,
}

impl AioWrites {
    pub(super) fn new(lane: &Lane, ring: Rc<Ring>) -> Self {
        Self {
            lane: lane.clone(),
            ring,
            state: Rc::default(),
            pending: 0,
            queued: 0,
        }
    }

    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// Queues a write; a background task continues the write when its operations complete.
    pub(super) fn push(&mut self, write: AioWrite) {
        let number = self.queued;
        self.queued += 1;
        self.pending += 1;
        let (file, tag) = (write.file.clone(), write.tag);
        self.state.borrow_mut().active.push(ActiveWrite {
            start: self.lane.now(),
            write: Box::pin(write_all(self.ring.clone(), write)),
            has_begun: false,
            file,
            tag,
            number,
        });
        let (state, lane) = (self.state.clone(), self.lane.clone());
        self.lane.spawn_background(Box::pin(poll_fn(move |context| {
            state.borrow_mut().proceed(number, &lane, context)
        })));
    }

    /// Waits for at least `count` completed writes, and appends all completed writes to `done`; implements
    /// [`Session::aio_take`](crate::Session::aio_take).
    pub(super) async fn take(
        &mut self,
        count: usize,
        done: &mut Vec<AioDone>,
    ) -> Result<(), Stopped> {
        let count = count.min(self.pending);
        let waited = wait_until(&self.lane, |context| {
            let mut state = self.state.borrow_mut();
            if state.done.len() >= count {
                return true;
            }
            state.waker = Some(context.waker().clone());
            false
        })
        .await;
        // Writes that have completed are returned even if the run stopped the wait.
        let mut state = self.state.borrow_mut();
        self.pending -= state.done.len();
        done.append(&mut state.done);
        waited
    }

    /// Waits until no write to a file is in progress.
    pub(super) async fn drain(&self, file: &Arc<RingFile>) {
        if self.pending == 0 {
            return;
        }
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if !state.active.iter().any(|w| Arc::ptr_eq(&w.file, file)) {
                return Poll::Ready(());
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Discards writes that have not begun. Returns tag and start of each write that had not completed.
    pub(super) fn abandon(&mut self) -> Vec<(u32, Nanos)> {
        let active = &mut self.state.borrow_mut().active;
        let under_way = active.iter().map(|w| (w.tag, w.start)).collect();
        let before = active.len();
        active.retain(|write| write.has_begun);
        self.pending -= before - active.len();
        under_way
    }
}

impl Drop for AioWrites {
    /// Completes the active writes: without the worker, nothing may write to its files.
    fn drop(&mut self) {
        let context = &mut Context::from_waker(Waker::noop());
        loop {
            let mut state = self.state.borrow_mut();
            let numbers: Vec<u64> = state.active.iter().map(|w| w.number).collect();
            for number in numbers {
                let _ = state.proceed(number, &self.lane, context);
            }
            if state.active.is_empty() {
                return;
            }
            drop(state);
            self.ring.wait_beside_lane();
        }
    }
}

async fn write_all(ring: Rc<Ring>, write: AioWrite) -> Result<u64, OpError> {
    let mut data = Box::new(write.data);
    let mut done = 0;
    while done < write.len {
        let offset = check_offset(write.offset.saturating_add(done as u64))?;
        let call = RingCall::write_detached(data, &write.file, (done, write.len), offset);
        let (result, held) = ring.start(call).await;
        data = held.into_data();
        match result {
            Ok(0) => return Err(Errno::IO.into()),
            Ok(n) => done += n as usize,
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(done as u64)
}
