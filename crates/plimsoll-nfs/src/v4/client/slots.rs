//! The slots of a session. Each slot allows one call in flight, which has the next seqid of the
//! slot (RFC 8881, 2.10.6).
//!
//! A slot is released when the reply arrives, not when the worker looks at the reply, so a worker with several calls in
//! flight never waits for its own slots. A server that is still executing a call of an earlier connection answers
//! NFS4ERR_DELAY; the connection then retransmits the same bytes in the same slot, because the server would execute the
//! call twice in another slot.

use crate::rpc::{Disposition, ReplyHandler, RpcError, result};
use crate::v4::compound::{NfsError, Results};
use crate::v4::operations::Sequence;
use crate::v4::state::{SequenceArgs, Sequenced, sequence_status};
use crate::v4::types::{SessionId, Status};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A session and its slots.
pub(super) struct Session {
    pub(super) id: SessionId,
    /// The seqid of the last request in each slot that the server has executed.
    seqids: RefCell<Vec<u32>>,
    free: RefCell<Vec<u32>>,
    waiting: RefCell<VecDeque<Rc<SlotWaiter>>>,
    /// Whether the session can no longer be used.
    over: Cell<bool>,
    /// Whether a call got no reply, so that the seqid of its slot is in doubt.
    pub(super) doubtful: Cell<bool>,
    /// The status flags in the last reply.
    pub(super) status: Cell<u32>,
    /// Whether a call got a reply, and so renewed the lease, since the last reset.
    pub(super) used: Cell<bool>,
}

#[derive(Default)]
struct SlotWaiter {
    slot: Cell<Option<u32>>,
    waker: RefCell<Option<Waker>>,
}

impl Session {
    pub(super) fn new(id: SessionId, slots: u32) -> Rc<Self> {
        Rc::new(Self {
            id,
            seqids: RefCell::new(vec![0; slots as usize]),
            // Low slot numbers are used first, so that the server caches few replies.
            free: RefCell::new((0..slots).rev().collect()),
            waiting: RefCell::default(),
            over: Cell::new(false),
            doubtful: Cell::new(false),
            status: Cell::new(0),
            used: Cell::new(false),
        })
    }

    /// Takes a free slot; fails while other workers wait.
    pub(super) fn try_slot(self: &Rc<Self>) -> Option<Slot> {
        if self.over.get() {
            return None;
        }
        let slot = self.free.borrow_mut().pop()?;
        Some(Slot::new(self, slot))
    }

    /// Waits for a slot; `None` if the session ends.
    pub(super) fn slot(self: &Rc<Self>) -> WaitSlot {
        WaitSlot {
            session: self.clone(),
            waiter: None,
        }
    }

    /// Ends the session and wakes all workers that wait for a slot.
    pub(super) fn end(&self) {
        self.over.set(true);
        self.waiting.take().iter().for_each(|waiter| waiter.wake());
    }

    /// Whether no call is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.free.borrow().len() == self.seqids.borrow().len()
    }

    /// Frees a slot, or passes the slot to the worker that has waited longest.
    fn release(&self, slot: u32) {
        let count = self.seqids.borrow().len();
        debug_assert!((slot as usize) < count, "slot {slot} of {count}");
        let is_free = || self.free.borrow().contains(&slot);
        debug_assert!(!is_free(), "slot {slot} is free already");
        let next = self.waiting.borrow_mut().pop_front();
        match next {
            Some(waiter) => {
                waiter.slot.set(Some(slot));
                waiter.wake();
            }
            None => self.free.borrow_mut().push(slot),
        }
    }

    /// Advances the seqid of a slot after the server has executed a request.
    fn advance(&self, slot: u32) {
        let seqid = &mut self.seqids.borrow_mut()[slot as usize];
        *seqid = seqid.wrapping_add(1);
    }

    /// Arguments of SEQUENCE for the next call of a slot.
    pub(super) fn next(&self, slot: u32, cache_this: bool) -> SequenceArgs {
        let seqids = self.seqids.borrow();
        SequenceArgs {
            session: self.id,
            sequence: seqids[slot as usize].wrapping_add(1),
            slot,
            highest_slot: seqids.len() as u32 - 1,
            cache_this,
        }
    }
}

impl SlotWaiter {
    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The result or the status of SEQUENCE in a reply.
fn sequenced(message: &[u8]) -> Result<Result<Sequenced, Status>, RpcError> {
    let mut results = Results::read(result(message)?).map_err(RpcError::BadResult)?;
    match results.get::<Sequence>() {
        Ok(done) => Ok(Ok(done)),
        Err(NfsError::Status(_, status)) => Ok(Err(status)),
        Err(NfsError::Rpc(e)) => Err(e),
    }
}

impl ReplyHandler for Session {
    fn on_reply(&self, slot: u32, reply: Result<&[u8], RpcError>) -> Disposition {
        match reply.and_then(sequenced) {
            // NFS4ERR_DELAY: the server is still executing the call, sent on a connection that broke. The server would
            // execute the call twice if the client repeated the call in another slot, and could take a new call in the
            // slot for the old call, whose reply is late (RFC 8881, 15.1.1.3).
            Ok(Err(Status::Delay)) => return Disposition::Retransmit,
            // A reply to another call: the server's seqid is unknown.
            Ok(Ok(done)) if (done.session, done.slot) != (self.id, slot) => self.doubtful.set(true),
            Ok(Ok(done)) => {
                self.advance(slot);
                self.status.set(done.status);
                self.used.set(true);
            }
            // The server had executed the call earlier, without caching the reply.
            Ok(Err(Status::RetryUncachedRep)) => self.advance(slot),
            // A failed SEQUENCE does not advance the seqid.
            Ok(Err(_)) => {}
            Err(_) => self.doubtful.set(true),
        }
        self.release(slot);
        Disposition::Complete
    }
}

/// A slot for one call. A slot that is dropped without a call is released.
pub(super) struct Slot {
    pub(super) session: Rc<Session>,
    pub(super) number: u32,
    called: bool,
}

impl Slot {
    fn new(session: &Rc<Session>, number: u32) -> Self {
        Self {
            session: session.clone(),
            number,
            called: false,
        }
    }

    /// Notes that the slot has a call; the end of the call releases the slot.
    pub(super) fn called(mut self) {
        self.called = true;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.called {
            self.session.release(self.number);
        }
    }
}

/// See [`Session::slot`].
pub(super) struct WaitSlot {
    session: Rc<Session>,
    waiter: Option<Rc<SlotWaiter>>,
}

impl Future for WaitSlot {
    type Output = Option<Slot>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Slot>> {
        let given = match &self.waiter {
            Some(waiter) => waiter
                .slot
                .take()
                .map(|slot| Slot::new(&self.session, slot)),
            None => self.session.try_slot(),
        };
        if given.is_some() {
            self.waiter = None;
            return Poll::Ready(given);
        }
        if self.session.over.get() {
            return Poll::Ready(None);
        }
        let this = &mut *self;
        let waiter = this.waiter.get_or_insert_with(|| {
            let waiter = Rc::new(SlotWaiter::default());
            this.session.waiting.borrow_mut().push_back(waiter.clone());
            waiter
        });
        *waiter.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for WaitSlot {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.take() else {
            return;
        };
        match waiter.slot.take() {
            Some(slot) => self.session.release(slot),
            None => {
                let mut waiting = self.session.waiting.borrow_mut();
                waiting.retain(|w| !Rc::ptr_eq(w, &waiter));
            }
        }
    }
}

/// Whether the status flags report that the server cannot send callbacks.
pub(super) fn callbacks_are_down(status: u32) -> bool {
    use sequence_status::{CALLBACK_PATH_DOWN, CALLBACK_PATH_DOWN_SESSION};
    status & (CALLBACK_PATH_DOWN | CALLBACK_PATH_DOWN_SESSION) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    fn poll(wait: Pin<&mut WaitSlot>) -> Poll<Option<u32>> {
        let polled = wait.poll(&mut Context::from_waker(Waker::noop()));
        polled.map(|slot| {
            slot.map(|s| {
                let number = s.number;
                s.called();
                number
            })
        })
    }

    #[test]
    fn slots_are_given_in_order_and_come_back() {
        let session = Session::new(SessionId::default(), 2);
        let (mut a, mut b) = (pin!(session.slot()), pin!(session.slot()));
        assert_eq!(poll(a.as_mut()), Poll::Ready(Some(0)));
        assert_eq!(poll(b.as_mut()), Poll::Ready(Some(1)));
        let mut c = Box::pin(session.slot());
        let mut d = pin!(session.slot());
        assert_eq!(poll(c.as_mut()), Poll::Pending);
        assert_eq!(poll(d.as_mut()), Poll::Pending);
        let over = session.on_reply(1, Err(RpcError::TimedOut));
        assert_eq!(over, Disposition::Complete);
        assert!(session.doubtful.get());
        assert_eq!(poll(d.as_mut()), Poll::Pending, "c was first");
        // A dropped waiter passes its slot on.
        drop(c);
        assert_eq!(poll(d.as_mut()), Poll::Ready(Some(1)));
        // Only a reply advances the seqid.
        assert_eq!(session.next(1, true).sequence, 1);
        let mut e = pin!(session.slot());
        assert_eq!(poll(e.as_mut()), Poll::Pending);
        session.end();
        assert_eq!(poll(e.as_mut()), Poll::Ready(None));
    }
}
