//! Connections that the workers of a lane share.
//!
//! A worker queues its call. A background task of the lane writes queued calls, reads replies and
//! wakes the waiting workers. The task runs after all workers that can make progress, so that the
//! calls of many workers leave in one system call. The task also re-establishes a broken connection
//! and retransmits calls without a reply.

use super::connection::{Connection, ReplyState};
use super::message::{RpcError, Target, call, first_xid};
use super::shared::{
    CallbackHandler, ChannelObserver, ChannelShared, ChannelSpec, ReplyHandler, ReplyToken,
};
use crate::xdr::Encode;
use plimsoll_lane::Lane;
use plimsoll_measure::Nanos;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Connections of a lane to a server (RFC 5531, 11). Cheap to clone.
#[derive(Clone)]
pub struct Channel {
    shared: Rc<ChannelShared>,
    connections: Rc<[Rc<Connection>]>,
    /// The next connection and the next xid.
    next: Rc<Cell<(usize, u32)>>,
}

impl Channel {
    /// Creates a channel for the workers of `lane`; the TCP connections are established at the first call.
    #[must_use]
    pub fn new(lane: &Lane, spec: ChannelSpec, observer: Option<Rc<dyn ChannelObserver>>) -> Self {
        let count = spec.connections.max(1);
        let shared = Rc::new(ChannelShared {
            lane: lane.clone(),
            spec,
            observer,
            callbacks: RefCell::new(None),
        });
        let connections = (0..count).map(|_| Rc::new(Connection::default()));
        Self {
            shared,
            connections: connections.collect(),
            next: Rc::new(Cell::new((0, first_xid()))),
        }
    }

    /// The lane whose workers use the channel.
    #[must_use]
    pub fn lane(&self) -> &Lane {
        &self.shared.lane
    }

    /// Calls a procedure. The call is queued at once, on the connections in turn; awaiting the
    /// result waits for the reply.
    #[must_use]
    pub fn call(&self, target: Target, args: &impl Encode) -> Call {
        self.queue_call(target, args, None)
    }

    /// Calls a procedure whose reply also goes to `handler`, together with `token`, even if the
    /// returned future is dropped earlier.
    #[must_use]
    pub fn call_with_handler(
        &self,
        target: Target,
        args: &impl Encode,
        handler: Rc<dyn ReplyHandler>,
        token: u32,
    ) -> Call {
        self.queue_call(target, args, Some((handler, token)))
    }

    /// Sets the handler of the server's calls. Without a handler, a call of the server breaks the
    /// connection.
    pub fn set_callback_handler(&self, handler: Option<Rc<dyn CallbackHandler>>) {
        *self.shared.callbacks.borrow_mut() = handler;
    }

    fn queue_call(&self, target: Target, args: &impl Encode, handler: ReplyToken) -> Call {
        let (cursor, xid) = self.next.get();
        let next = (cursor + 1) % self.connections.len();
        self.next.set((next, xid.wrapping_add(1)));
        let connection = self.connections[cursor].clone();
        let request = call(xid, target, &self.shared.spec.credentials, args);
        let start = self.shared.lane.now();
        connection.queue(xid, target, (request, handler), start);
        if !connection.has_driver() {
            let driver = connection.clone().drive(self.shared.clone());
            self.shared.lane.spawn_background(Box::pin(driver));
        }
        Call {
            connection,
            xid,
            start,
            may_have_run_twice: false,
        }
    }
}

/// A call in flight.
pub struct Call {
    connection: Rc<Connection>,
    xid: u32,
    /// The time at which the call was queued.
    pub start: Nanos,
    may_have_run_twice: bool,
}

impl Call {
    /// Whether the server may have executed an earlier transmission of the call than the transmission that got the
    /// reply. Known once the call has its reply; `false` until then.
    #[must_use]
    pub fn was_sent_again(&self) -> bool {
        self.may_have_run_twice
    }
}

impl Future for Call {
    /// The reply message, for [`result`](super::message::result), and the time of its arrival.
    type Output = (Result<Vec<u8>, RpcError>, Nanos);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.connection.take(self.xid, context.waker()) {
            ReplyState::Pending => Poll::Pending,
            ReplyState::Done(outcome, at, twice) => {
                self.may_have_run_twice = twice;
                Poll::Ready((outcome, at))
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.connection.forget(self.xid);
    }
}
