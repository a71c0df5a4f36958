//! The types that a channel, its connections and its users share.

use super::message::{Credentials, RpcError, Target};
use plimsoll_lane::Lane;
use plimsoll_measure::Nanos;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

/// Receives the events of a channel.
pub trait ChannelObserver {
    /// Called at the server's first reply on each connection of the channel.
    fn connected(&self) {}

    /// A call queued at `first` was retransmitted because no reply had come, or because the server was still executing
    /// the call.
    fn retransmitted(&self, target: Target, first: Nanos, now: Nanos);

    /// A connection that broke at `since` was re-established.
    fn reconnected(&self, since: Nanos, now: Nanos);

    /// Calls without a reply were abandoned; `at_end` if the run has ended. `silent_since` is the
    /// start of the server's silence, if the silence began before the calls were made.
    fn abandoned(&self, _at_end: bool, _silent_since: Option<Nanos>) {}
}

/// The effect of a reply on its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// The reply is the outcome of the call.
    Complete,
    /// The server is still executing the call: the reply is dropped, and the call is retransmitted
    /// unchanged after a pause.
    Retransmit,
}

/// A handler of replies, called when a reply arrives, even if no worker waits for the reply.
pub trait ReplyHandler {
    /// Handles a reply message or the error of a call; a call with an error is complete in any
    /// case. `token` was given with the call.
    fn on_reply(&self, token: u32, reply: Result<&[u8], RpcError>) -> Disposition;
}

/// A handler of calls that the server makes on the connections of a channel: the callbacks of
/// NFS 4.1 (RFC 8881, 2.10.3.1).
pub trait CallbackHandler {
    /// Returns the record of the reply to a call; `None` for no reply.
    fn answer(&self, call: &[u8]) -> Option<Vec<u8>>;
}

/// The handler of a call's reply, and the token for the handler.
pub(super) type ReplyToken = Option<(Rc<dyn ReplyHandler>, u32)>;

/// The configuration of a channel.
#[derive(Debug, Clone)]
pub struct ChannelSpec {
    /// The TCP address of the NFS server, to which the channel connects unless `relay` is given.
    pub address: SocketAddr,
    /// The TCP address of a relay in front of the server, to which all connections go; `None` without a relay.
    pub relay: Option<SocketAddr>,
    /// The credentials of all calls.
    pub credentials: Credentials,
    /// The number of connections that share the calls; at least 1.
    pub connections: u32,
    /// The time without a reply after which a call is retransmitted, in nanoseconds.
    pub timeout: Nanos,
    /// The number of retransmissions before a call fails.
    pub retries: u32,
    /// Whether a call may be retransmitted on the same connection. Version 4 forbids such
    /// retransmissions (RFC 7530, 3.1.1 and RFC 8881, 2.9.2), so the connection is re-established
    /// instead.
    pub may_retransmit_in_place: bool,
    /// The maximum number of bytes of a reply.
    pub max_reply_bytes: usize,
    /// The duration of the server's silence after which all calls fail, in nanoseconds; `None` if
    /// each call fails after its own time limit.
    pub silence: Option<Nanos>,
}

/// The state that connections and calls of a channel share.
pub struct ChannelShared {
    pub(super) lane: Lane,
    pub(super) spec: ChannelSpec,
    pub(super) observer: Option<Rc<dyn ChannelObserver>>,
    pub(super) callbacks: RefCell<Option<Rc<dyn CallbackHandler>>>,
}
