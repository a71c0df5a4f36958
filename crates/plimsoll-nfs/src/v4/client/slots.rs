//! The slots of a session: as many calls may be under way at once, each with the next number of its
//! slot (RFC 8881, 2.10.6).

use super::super::compound::{NfsError, Results};
use super::super::state::{Sequence, SequenceArgs, Sequenced, sequence_status};
use super::super::types::{SessionId, Status};
use crate::rpc::{Disposition, ReplyHandler, RpcError, result};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A session and its slots.
pub(super) struct Session {
    pub(super) id: SessionId,
    /// Number of the last request of each slot that the server took.
    taken: RefCell<Vec<u32>>,
    free: RefCell<Vec<u32>>,
    waiting: RefCell<VecDeque<Rc<SlotWaiter>>>,
    /// It cannot be used any more.
    over: Cell<bool>,
    /// A call got no answer, so that the number of its slot is in doubt.
    pub(super) doubtful: Cell<bool>,
    /// What the server says with its answers.
    pub(super) status: Cell<u32>,
    /// A call was answered since this was last reset: the lease is renewed.
    pub(super) used: Cell<bool>,
}

/// Somebody's place in the queue.
#[derive(Default)]
struct SlotWaiter {
    slot: Cell<Option<u32>>,
    waker: RefCell<Option<Waker>>,
}

impl Session {
    pub(super) fn new(id: SessionId, slots: u32) -> Rc<Self> {
        Rc::new(Self {
            id,
            taken: RefCell::new(vec![0; slots as usize]),
            // The lowest are used first, so that the server need not keep many.
            free: RefCell::new((0..slots).rev().collect()),
            waiting: RefCell::default(),
            over: Cell::new(false),
            doubtful: Cell::new(false),
            status: Cell::new(0),
            used: Cell::new(false),
        })
    }

    /// Takes a slot that is free, unless others wait.
    pub(super) fn try_slot(self: &Rc<Self>) -> Option<Slot> {
        if self.over.get() {
            return None;
        }
        let slot = self.free.borrow_mut().pop()?;
        Some(Slot::new(self, slot))
    }

    /// Waits for a slot; `None` when the session is over.
    pub(super) fn slot(self: &Rc<Self>) -> WaitSlot {
        WaitSlot {
            session: self.clone(),
            place: None,
        }
    }

    /// The session is no more: who waits for a slot waits for one of the next session.
    pub(super) fn end(&self) {
        self.over.set(true);
        for place in self.waiting.take() {
            if let Some(waker) = place.waker.take() {
                waker.wake();
            }
        }
    }

    /// Whether no call is under way on it.
    pub(super) fn is_idle(&self) -> bool {
        self.free.borrow().len() == self.taken.borrow().len()
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.get()
    }

    fn give_back(&self, slot: u32) {
        debug_assert!((slot as usize) < self.taken.borrow().len());
        debug_assert!(!self.free.borrow().contains(&slot), "slot {slot} is free");
        let next = self.waiting.borrow_mut().pop_front();
        match next {
            Some(place) => {
                place.slot.set(Some(slot));
                if let Some(waker) = place.waker.take() {
                    waker.wake();
                }
            }
            None => self.free.borrow_mut().push(slot),
        }
    }

    /// Arguments of SEQUENCE for the next call of a slot.
    pub(super) fn next(&self, slot: u32, keep: bool) -> SequenceArgs {
        let taken = self.taken.borrow();
        SequenceArgs {
            session: self.id,
            sequence: taken[slot as usize].wrapping_add(1),
            slot,
            highest: taken.len() as u32 - 1,
            keep,
        }
    }
}

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
            // The call came before, on a connection that broke, and the server is busy with it. In
            // another slot it would be done twice, and its answer be taken for that of the next call
            // of this one (RFC 8881, 15.1.1.3).
            Ok(Err(Status::Delay)) => return Disposition::Retransmit,
            // The answer to something else: what the server has counted is not known.
            Ok(Ok(done)) if (done.session, done.slot) != (self.id, slot) => self.doubtful.set(true),
            Ok(Ok(done)) => {
                if let Some(taken) = self.taken.borrow_mut().get_mut(slot as usize) {
                    *taken = taken.wrapping_add(1);
                }
                self.status.set(done.status);
                self.used.set(true);
            }
            // The server had taken it before, and did not keep its answer.
            Ok(Err(Status::RetryUncachedRep)) => {
                if let Some(taken) = self.taken.borrow_mut().get_mut(slot as usize) {
                    *taken = taken.wrapping_add(1);
                }
            }
            // Before SEQUENCE has succeeded the number is not taken.
            Ok(Err(_)) => {}
            Err(_) => self.doubtful.set(true),
        }
        self.give_back(slot);
        Disposition::Complete
    }
}

/// A slot that a call may be made on. Dropped without a call it is given back.
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

    /// A call is made, whose end gives the slot back.
    pub(super) fn called(mut self) {
        self.called = true;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.called {
            self.session.give_back(self.number);
        }
    }
}

/// See [`Session::slot`].
pub(super) struct WaitSlot {
    session: Rc<Session>,
    place: Option<Rc<SlotWaiter>>,
}

impl Future for WaitSlot {
    type Output = Option<Slot>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Slot>> {
        if let Some(place) = &self.place {
            if let Some(slot) = place.slot.take() {
                let slot = Slot::new(&self.session, slot);
                self.place = None;
                return Poll::Ready(Some(slot));
            }
            *place.waker.borrow_mut() = Some(context.waker().clone());
            return match self.session.is_over() {
                true => Poll::Ready(None),
                false => Poll::Pending,
            };
        }
        if self.session.is_over() {
            return Poll::Ready(None);
        }
        if let Some(slot) = self.session.try_slot() {
            return Poll::Ready(Some(slot));
        }
        let place = Rc::new(SlotWaiter::default());
        *place.waker.borrow_mut() = Some(context.waker().clone());
        self.session.waiting.borrow_mut().push_back(place.clone());
        self.place = Some(place);
        Poll::Pending
    }
}

impl Drop for WaitSlot {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else {
            return;
        };
        match place.slot.take() {
            Some(slot) => self.session.give_back(slot),
            None => {
                let mut waiting = self.session.waiting.borrow_mut();
                waiting.retain(|p| !Rc::ptr_eq(p, &place));
            }
        }
    }
}

/// Whether the server cannot call the client back.
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
        // Who gives up passes it on.
        drop(c);
        assert_eq!(poll(d.as_mut()), Poll::Ready(Some(1)));
        // A number is only taken by an answer.
        assert_eq!(session.next(1, true).sequence, 1);
        let mut e = pin!(session.slot());
        assert_eq!(poll(e.as_mut()), Poll::Pending);
        session.end();
        assert_eq!(poll(e.as_mut()), Poll::Ready(None));
    }
}
