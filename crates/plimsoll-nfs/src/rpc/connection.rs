//! One connection of a channel: the calls in flight, and the task that drives the connection.

mod live;

use super::message::{Kind, RpcError, Target, kind};
use super::record::RecordReader;
use super::shared::{ChannelShared, Disposition, ReplyToken};
use crate::xdr::XdrError;
use live::LiveConnection;
use plimsoll_lane::{FdWatch, Timer};
use plimsoll_measure::Nanos;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::future::{Future, poll_fn};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// The maximum number of bytes read at a time.
const READ_CHUNK_BYTES: usize = 128 << 10;

/// The maximum number of calls written in one system call.
const MAX_CALLS_PER_WRITE: usize = 64;

/// The time between two searches for expired calls, in nanoseconds.
const TIMEOUT_SCAN_INTERVAL_NS: Nanos = 50_000_000;

/// The minimum pause between two connection attempts, in nanoseconds. The pause doubles with each attempt, and is reset
/// after a connection that lasted longer than the maximum pause.
const MIN_RECONNECT_PAUSE_NS: Nanos = 10_000_000;

/// The maximum pause between two connection attempts, in nanoseconds.
const MAX_RECONNECT_PAUSE_NS: Nanos = 500_000_000;

/// The pause before the retransmission of a call that the server is still executing, in
/// nanoseconds.
const BUSY_RETRANSMIT_DELAY_NS: Nanos = 20_000_000;

/// The time for which calls stay in flight after the end of the run, in nanoseconds.
const CALL_GRACE_AFTER_RUN_NS: Nanos = 3_000_000_000;

/// The tolerance, in nanoseconds, with which a call counts as made during a server's silence: a call made within the
/// tolerance before the server's last message may have been in transit when the server stopped.
const SILENCE_SLACK_NS: Nanos = 500_000_000;

/// A hasher for xids; consecutive numbers need little mixing.
#[derive(Default)]
struct XidHasher(u64);

impl Hasher for XidHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("xids are hashed as numbers");
    }

    fn write_u32(&mut self, n: u32) {
        self.0 = u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// A call whose outcome the worker has not taken.
struct CallSlot {
    target: Target,
    request: Rc<Vec<u8>>,
    /// The time at which the call was queued.
    first: Nanos,
    /// The time at which the call was last queued for transmission.
    sent: Nanos,
    /// The time of the next retransmission, if the server was still executing the call.
    retransmit_at: Option<Nanos>,
    /// Whether the server may have executed an earlier transmission of the call than the transmission that got the
    /// reply.
    may_have_run_twice: bool,
    waker: Option<Waker>,
    outcome: Option<(Result<Vec<u8>, RpcError>, Nanos)>,
    handler: ReplyToken,
    /// Whether the worker has dropped the call, so that only the handler gets the outcome.
    dropped: bool,
}

#[derive(Default)]
struct ConnectionState {
    slots: HashMap<u32, CallSlot, BuildHasherDefault<XidHasher>>,
    /// The number of calls without an outcome.
    open: usize,
    /// Messages that were not completely written.
    queue: VecDeque<Rc<Vec<u8>>>,
    /// The number of written bytes of the first queued message.
    written: usize,
    /// The waker of the task that drives the connection.
    driver: Option<Waker>,
    /// The time of the last receipt; a new connection resets the time.
    last_received: Nanos,
    /// The time of the server's last message on any connection; 0 before the first message.
    answered: Nanos,
    /// The local address of the last connection. The next connection reuses the address, because
    /// servers recognise a retransmission by xid and source address.
    from: Option<SocketAddr>,
    /// The time at which the connection broke; kept until data arrives on a new connection, because
    /// a relay may accept a connection although the server is down.
    broke_at: Option<Nanos>,
}

/// A connection and its calls.
#[derive(Default)]
pub(super) struct Connection {
    state: RefCell<ConnectionState>,
    driven: Cell<bool>,
}

/// The state of a call.
pub(super) enum ReplyState {
    /// The call has no outcome yet.
    Pending,
    /// The outcome, the time of the outcome, and whether the server may have executed an earlier transmission of the
    /// call.
    Done(Result<Vec<u8>, RpcError>, Nanos, bool),
}

impl ConnectionState {
    /// Sets the outcome of a call, unless its handler requests a retransmission because the server is still executing
    /// the call. A second reply to a retransmitted call is ignored.
    fn complete(&mut self, xid: u32, outcome: Result<Vec<u8>, RpcError>, now: Nanos) {
        let Some(slot) = self.slots.get_mut(&xid).filter(|s| s.outcome.is_none()) else {
            return;
        };
        if let Some((handler, token)) = slot.handler.take() {
            let disposition = handler.on_reply(token, outcome.as_deref().map_err(|e| *e));
            if disposition == Disposition::Retransmit && outcome.is_ok() {
                slot.handler = Some((handler, token));
                slot.retransmit_at = Some(now + BUSY_RETRANSMIT_DELAY_NS);
                return;
            }
        }
        debug_assert!(self.open > 0, "call {xid} completes but none is open");
        self.open -= 1;
        slot.outcome = Some((outcome, now));
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
        if slot.dropped {
            self.slots.remove(&xid);
        }
    }

    /// The time at which the oldest open call was queued.
    fn first(&self) -> Option<Nanos> {
        let open = self.slots.values().filter(|slot| slot.outcome.is_none());
        open.map(|slot| slot.first).min()
    }

    /// Whether calls are open and the server has sent nothing for at least `limit` nanoseconds.
    fn is_silent(&self, limit: Nanos, now: Nanos) -> bool {
        let first = self.first();
        first.is_some_and(|first| now.saturating_sub(first.max(self.answered)) >= limit)
    }

    /// The start of the server's silence, if the silence began before all open calls, within [`SILENCE_SLACK_NS`]. For
    /// a server that has never sent a message, the silence begins with the oldest open call.
    fn silent_since(&self) -> Option<Nanos> {
        let first = self.first()?;
        match self.answered {
            0 => Some(first),
            at => (at <= first + SILENCE_SLACK_NS).then_some(at),
        }
    }

    /// Completes all open calls with an error.
    fn fail_all(&mut self, error: RpcError, now: Nanos) {
        let all: Vec<u32> = self.slots.keys().copied().collect();
        all.into_iter()
            .for_each(|xid| self.complete(xid, Err(error), now));
        // A message that is partly written must be written to its end; otherwise the server would read the beginning of
        // the next message as the rest of the message.
        self.queue.truncate(usize::from(self.written > 0));
    }
}

impl Connection {
    pub(super) fn has_driver(&self) -> bool {
        self.driven.get()
    }

    /// Queues a call.
    pub(super) fn queue(
        &self,
        xid: u32,
        target: Target,
        (request, handler): (Vec<u8>, ReplyToken),
        now: Nanos,
    ) {
        let mut state = self.state.borrow_mut();
        let request = Rc::new(request);
        state.queue.push_back(request.clone());
        state.open += 1;
        let slot = CallSlot {
            target,
            request,
            first: now,
            sent: now,
            retransmit_at: None,
            may_have_run_twice: false,
            waker: None,
            outcome: None,
            handler,
            dropped: false,
        };
        let former = state.slots.insert(xid, slot);
        assert!(former.is_none(), "xid {xid} is in flight already");
        if let Some(driver) = state.driver.take() {
            driver.wake();
        }
    }

    /// Takes the outcome of a call, or registers the waker.
    pub(super) fn take(&self, xid: u32, waker: &Waker) -> ReplyState {
        let mut state = self.state.borrow_mut();
        let slot = state.slots.get_mut(&xid);
        let slot = slot.expect("a call is awaited until its outcome is taken");
        match slot.outcome.take() {
            Some((outcome, at)) => {
                let twice = slot.may_have_run_twice;
                state.slots.remove(&xid);
                ReplyState::Done(outcome, at, twice)
            }
            None => {
                match &mut slot.waker {
                    Some(known) => known.clone_from(waker),
                    unknown => *unknown = Some(waker.clone()),
                }
                ReplyState::Pending
            }
        }
    }

    /// Drops a call; a handler of the call still gets the outcome.
    pub(super) fn forget(&self, xid: u32) {
        let mut state = self.state.borrow_mut();
        let Some(slot) = state.slots.get_mut(&xid) else {
            return;
        };
        match slot.outcome.is_none() {
            true if slot.handler.is_some() => slot.dropped = true,
            open => {
                state.slots.remove(&xid);
                debug_assert!(state.open >= usize::from(open), "call {xid} was not open");
                state.open -= usize::from(open);
            }
        }
    }

    /// Drives the connection as long as the lane runs.
    pub(super) fn drive(
        self: Rc<Self>,
        shared: Rc<ChannelShared>,
    ) -> impl Future<Output = ()> + 'static {
        self.driven.set(true);
        let driven = DriverGuard(self);
        async move { driven.0.run(&shared).await }
    }

    async fn run(&self, shared: &ChannelShared) {
        let lane = &shared.lane;
        let mut pause = MIN_RECONNECT_PAUSE_NS;
        loop {
            self.wait_for_call().await;
            if let Ok(stream) = self.connect(shared).await {
                self.resend_all(shared);
                let begun = lane.now();
                let error = LiveConnection::new(self, shared, stream)
                    .serve_until_broken()
                    .await;
                let now = lane.now();
                if now - begun > MAX_RECONNECT_PAUSE_NS {
                    pause = MIN_RECONNECT_PAUSE_NS;
                }
                let mut state = self.state.borrow_mut();
                state.broke_at.get_or_insert(now);
                if let RpcError::NoReply(_) = error {
                    // Bytes that are not an RPC reply come from another kind of server, so a new connection would not
                    // help.
                    state.fail_all(error, now);
                }
            }
            self.sleep_until(shared, lane.now() + pause).await;
            pause = (2 * pause).min(MAX_RECONNECT_PAUSE_NS);
        }
    }

    /// Waits until a call is open.
    async fn wait_for_call(&self) {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if state.open > 0 {
                return Poll::Ready(());
            }
            state.driver = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Sleeps, and fails expired calls during the sleep.
    async fn sleep_until(&self, shared: &ChannelShared, until: Nanos) {
        let lane = &shared.lane;
        while lane.now() < until {
            lane.uncancellable_sleep_until(until.min(lane.now() + TIMEOUT_SCAN_INTERVAL_NS))
                .await;
            self.expire_calls(shared, false);
        }
    }

    /// Connects within the timeout of one call.
    async fn connect(&self, shared: &ChannelShared) -> Result<TcpStream, RpcError> {
        let lane = &shared.lane;
        let to = shared.spec.relay.unwrap_or(shared.spec.address);
        let from = self.state.borrow().from;
        let begun = match begin_connect(to, from) {
            // The local address may be in use again.
            Err(_) if from.is_some() => begin_connect(to, None),
            begun => begun,
        };
        let stream = TcpStream::from(begun.map_err(RpcError::Connection)?);
        let end = lane.now() + shared.spec.timeout;
        loop {
            let writable = lane.writable(stream.as_fd());
            let tick =
                lane.uncancellable_sleep_until(end.min(lane.now() + TIMEOUT_SCAN_INTERVAL_NS));
            match first_of(writable, tick).await {
                Some(ready) => {
                    ready?;
                    break;
                }
                None if lane.now() >= end => {
                    // Another local address may succeed.
                    self.state.borrow_mut().from = None;
                    return Err(RpcError::TimedOut);
                }
                None => {
                    self.expire_calls(shared, false);
                }
            }
        }
        if let Some(e) = stream.take_error()? {
            return Err(e.into());
        }
        stream.set_nodelay(true)?;
        self.state.borrow_mut().from = stream.local_addr().ok();
        Ok(stream)
    }

    /// Queues all open calls on a new connection, in the order of the calls.
    fn resend_all(&self, shared: &ChannelShared) {
        let now = shared.lane.now();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let queued = std::mem::take(&mut state.queue);
        // A part of the first message may have been sent.
        let begun = usize::from(std::mem::take(&mut state.written) > 0);
        let unsent: HashSet<_> = queued.iter().skip(begun).map(Rc::as_ptr).collect();
        let mut open: Vec<_> = state.slots.iter_mut().collect();
        open.retain(|(_, slot)| slot.outcome.is_none());
        open.sort_by_key(|(xid, slot)| (slot.first, **xid));
        for (_, slot) in open {
            if !unsent.contains(&Rc::as_ptr(&slot.request)) {
                slot.retransmitted(shared, now);
            }
            (slot.sent, slot.retransmit_at) = (now, None);
            state.queue.push_back(slot.request.clone());
        }
        state.last_received = now;
    }

    /// Fails calls whose time limit has passed, and queues calls for retransmission. Returns whether the connection
    /// must be re-established because the server is silent.
    fn expire_calls(&self, shared: &ChannelShared, connected: bool) -> bool {
        let now = shared.lane.now();
        let spec = &shared.spec;
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let over = shared
            .lane
            .deadline()
            .saturating_add(CALL_GRACE_AFTER_RUN_NS);
        if now >= over {
            if let (true, Some(observer)) = (state.open > 0, &shared.observer) {
                observer.abandoned(true, state.silent_since());
            }
            state.fail_all(RpcError::Stopped, now);
            return false;
        }
        if spec
            .silence
            .is_some_and(|limit| state.is_silent(limit, now))
        {
            state.fail_all(RpcError::TimedOut, now);
            return false;
        }
        let mut expired = Vec::new();
        let mut silent = false;
        let max_wait = spec.timeout.saturating_mul(u64::from(spec.retries) + 1);
        for (xid, slot) in &mut state.slots {
            if slot.outcome.is_some() {
                continue;
            }
            if now.saturating_sub(slot.first) >= max_wait {
                expired.push(*xid);
                continue;
            }
            let late = now.saturating_sub(slot.sent) >= spec.timeout;
            let may_retransmit = spec.may_retransmit_in_place && state.last_received >= slot.sent;
            let retransmit = match slot.retransmit_at {
                Some(at) => now >= at,
                None => late && may_retransmit,
            };
            silent |= slot.retransmit_at.is_none() && late && !may_retransmit;
            if connected && retransmit {
                slot.retransmitted(shared, now);
                (slot.sent, slot.retransmit_at) = (now, None);
                state.queue.push_back(slot.request.clone());
            }
        }
        if let (false, Some(observer)) = (expired.is_empty(), &shared.observer) {
            observer.abandoned(false, state.silent_since());
        }
        for xid in expired {
            state.complete(xid, Err(RpcError::TimedOut), now);
        }
        connected && silent
    }
}

impl CallSlot {
    /// Notes a retransmission of the call.
    fn retransmitted(&mut self, shared: &ChannelShared, now: Nanos) {
        self.may_have_run_twice = true;
        if let Some(observer) = &shared.observer {
            observer.retransmitted(self.target, self.first, now);
        }
    }
}

/// Marks the connection as not driven when the task ends for any reason.
struct DriverGuard(Rc<Connection>);

impl Drop for DriverGuard {
    fn drop(&mut self) {
        self.0.driven.set(false);
    }
}

/// Begins to connect a socket, from a given local address or from any.
fn begin_connect(to: SocketAddr, from: Option<SocketAddr>) -> Result<std::os::fd::OwnedFd, Errno> {
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(from) = from {
        rustix::net::sockopt::set_socket_reuseaddr(&fd, true)?;
        rustix::net::bind(&fd, &from)?;
    }
    match rustix::net::connect(&fd, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(e) => Err(e),
    }
}

/// The output of the first future; `None` if the second future is ready earlier.
async fn first_of<T>(
    first: impl Future<Output = T>,
    second: impl Future<Output = ()>,
) -> Option<T> {
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(|context| {
        if let Poll::Ready(value) = first.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        second.as_mut().poll(context).map(|()| None)
    })
    .await
}
