//! Connections that the workers of a lane share.
//!
//! A call is queued by the worker that makes it; a helper of the lane writes what is queued, reads
//! what has come and wakes the workers whose answers came. The helper has its turn after all
//! workers that can go on have had theirs, so that the calls of many workers leave in one system
//! call. It also makes the connection anew when it breaks, and sends again what was not answered.

use super::connection::{Connection, ReplyState};
use super::message::{Credentials, RpcError, Target, call};
use crate::xdr::Encode;
use plimsoll_lane::Lane;
use plimsoll_measure::Nanos;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Is told what goes on on a channel.
pub trait ChannelObserver {
    /// A call was sent again because no answer had come since `first`, when it was first sent.
    fn retransmitted(&self, target: Target, first: Nanos, now: Nanos);

    /// A connection that had broken at `since` was made anew.
    fn reconnected(&self, since: Nanos, now: Nanos);

    /// Calls are given up that no answer came to, `at_end` because the run is over.
    /// `silent_since`: the server has said nothing at all since then, and that was before they were
    /// made.
    fn abandoned(&self, _at_end: bool, _silent_since: Option<Nanos>) {}
}

/// What becomes of a call whose reply has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// It is over, and the reply is its outcome.
    Complete,
    /// The server is busy with the very same call: it is to be sent again as it is, after a pause,
    /// and what has come is no outcome.
    Retransmit,
}

/// Is told when a call is over, at once and whether or not somebody waits for it.
pub trait ReplyHandler {
    /// The message of the reply, or why there is none, after which a call is over in any case;
    /// `token` was given with the call.
    fn on_reply(&self, token: u32, reply: Result<&[u8], RpcError>) -> Disposition;
}

/// Answers calls that the server makes on the connections of a channel: the callbacks of
/// NFS 4.1 (RFC 8881, 2.10.3.1).
pub trait CallbackHandler {
    /// The record of the reply to a call; `None` leaves it without one.
    fn answer(&self, call: &[u8]) -> Option<Vec<u8>>;
}

/// Whom to tell when a call is over, and with which token.
pub(super) type ReplyToken = Option<(Rc<dyn ReplyHandler>, u32)>;

/// How a channel is made.
#[derive(Debug, Clone)]
pub struct ChannelSpec {
    /// The server.
    pub address: SocketAddr,
    /// A relay that connections to the server go through, if there is one.
    pub relay: Option<SocketAddr>,
    /// Who calls.
    pub credentials: Credentials,
    /// Connections that calls are spread over; at least 1.
    pub connections: u32,
    /// Nanoseconds without an answer after which a call is sent again.
    pub timeout: Nanos,
    /// Times that a call is sent again before it fails.
    pub retries: u32,
    /// A call without an answer may be sent again on the connection on which it was sent. Version 4
    /// forbids it (RFC 7530, 3.1.1 and RFC 8881, 2.9.2): there the connection is made anew.
    pub may_retransmit_in_place: bool,
    /// Longest reply that is taken, in bytes.
    pub max_reply_bytes: usize,
    /// Nanoseconds after which all calls fail if the server has said nothing since the first of them;
    /// without it each call fails when it has waited too long.
    pub silence: Option<Nanos>,
}

/// What connections and calls of a channel share.
pub struct ChannelShared {
    pub(super) lane: Lane,
    pub(super) spec: ChannelSpec,
    pub(super) tally: Option<Rc<dyn ChannelObserver>>,
    pub(super) answer: RefCell<Option<Rc<dyn CallbackHandler>>>,
}

/// Connections of a lane to a server (RFC 5531, 11). Cheap to clone.
#[derive(Clone)]
pub struct Channel {
    link: Rc<ChannelShared>,
    connections: Rc<[Rc<Connection>]>,
    next: Rc<Cell<(usize, u32)>>,
}

impl Channel {
    /// A channel of a lane; connections are made when they are first needed.
    #[must_use]
    pub fn new(lane: &Lane, spec: ChannelSpec, tally: Option<Rc<dyn ChannelObserver>>) -> Self {
        let count = spec.connections.max(1);
        let link = Rc::new(ChannelShared {
            lane: lane.clone(),
            spec,
            tally,
            answer: RefCell::new(None),
        });
        let connections = (0..count).map(|_| Rc::new(Connection::default()));
        Self {
            link,
            connections: connections.collect(),
            next: Rc::new(Cell::new((0, first_xid()))),
        }
    }

    /// The lane whose workers it serves.
    #[must_use]
    pub fn lane(&self) -> &Lane {
        &self.link.lane
    }

    /// Calls a procedure: the call is queued at once, and the answer is what the result gives
    /// when it is awaited. Calls take turns on the connections.
    #[must_use]
    pub fn call(&self, target: Target, args: &impl Encode) -> Call {
        self.queue_call(target, args, None)
    }

    /// The same; `then` is told when the call is over, even if the result was dropped meanwhile.
    #[must_use]
    pub fn call_with_handler(
        &self,
        target: Target,
        args: &impl Encode,
        then: Rc<dyn ReplyHandler>,
        token: u32,
    ) -> Call {
        self.queue_call(target, args, Some((then, token)))
    }

    /// Has calls of the server answered from now on. Without it they break the connection.
    pub fn set_callback_handler(&self, answer: Option<Rc<dyn CallbackHandler>>) {
        *self.link.answer.borrow_mut() = answer;
    }

    fn queue_call(&self, target: Target, args: &impl Encode, then: ReplyToken) -> Call {
        let (turn, xid) = self.next.get();
        let next = (turn + 1) % self.connections.len();
        self.next.set((next, xid.wrapping_add(1)));
        let connection = self.connections[turn].clone();
        let request = call(xid, target, &self.link.spec.credentials, args);
        let start = self.link.lane.now();
        connection.queue(xid, target, (request, then), start);
        self.drive(&connection);
        Call {
            connection,
            xid,
            start,
            may_have_run_twice: false,
        }
    }

    /// Has the lane drive a connection, unless it does.
    fn drive(&self, connection: &Rc<Connection>) {
        if !connection.has_driver() {
            let (connection, link) = (connection.clone(), self.link.clone());
            self.link
                .lane
                .spawn_background(Box::pin(connection.helper(link)));
        }
    }
}

/// A call under way.
pub struct Call {
    connection: Rc<Connection>,
    xid: u32,
    /// When it was made.
    pub start: Nanos,
    may_have_run_twice: bool,
}

impl Call {
    /// Whether it was sent more than once before its answer came, so that it may have been carried
    /// out before the time that was answered.
    #[must_use]
    pub fn was_sent_again(&self) -> bool {
        self.may_have_run_twice
    }
}

impl Future for Call {
    /// The message of the reply, for [`result`](super::message::result), and when it came.
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

/// A number to begin counting calls from, so that a server that remembers answers does not take
/// the calls of this process for those of an earlier one.
pub(crate) fn first_xid() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) as u32
}
