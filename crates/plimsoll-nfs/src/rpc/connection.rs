//! One connection of a channel: what waits for an answer, and the helper that carries it.

mod live;

use super::blocking::from_io;
use super::channel::{ChannelShared, Disposition, ReplyToken};
use super::message::{Kind, RpcError, Target, kind};
use super::record::RecordReader;
use crate::xdr::XdrError;
use live::LiveConnection;
use plimsoll_lane::{FdWatch, Lane, Timer};
use plimsoll_measure::Nanos;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::future::{Future, poll_fn};
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// Bytes that are read at a time.
const READ_CHUNK_BYTES: usize = 128 << 10;

/// Requests that are written in one system call at most.
const MAX_CALLS_PER_WRITE: usize = 64;

/// How often calls are looked through for those that have waited too long, in nanoseconds.
const TIMEOUT_SCAN_INTERVAL_NS: Nanos = 50_000_000;

/// Longest time between two attempts to connect, in nanoseconds.
const MAX_RECONNECT_PAUSE_NS: Nanos = 500_000_000;

/// Pause before a call is sent again that the server is busy with, in nanoseconds.
const BUSY_RETRANSMIT_DELAY_NS: Nanos = 20_000_000;

/// How long a call may go on after the end of the run, in nanoseconds.
const CALL_GRACE_AFTER_RUN_NS: Nanos = 3_000_000_000;

/// Calls that were made at most so long before the server last said something, in nanoseconds, were on
/// their way then: it may have stopped before it saw them.
const SILENCE_SLACK_NS: Nanos = 500_000_000;

/// Numbers of calls are one after the other, so that they hardly need hashing.
#[derive(Default)]
struct XidHasher(u64);

impl Hasher for XidHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = self.0 << 8 | u64::from(*b);
        }
    }

    fn write_u32(&mut self, n: u32) {
        self.0 = u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// A call that was made.
struct CallSlot {
    target: Target,
    request: Rc<Vec<u8>>,
    /// When it was made.
    first: Nanos,
    /// When it was last sent.
    sent: Nanos,
    /// When it is to be sent again, if the server was busy with it.
    retransmit_at: Option<Nanos>,
    /// It may have been carried out before the time that was answered.
    may_have_run_twice: bool,
    waker: Option<Waker>,
    outcome: Option<(Result<Vec<u8>, RpcError>, Nanos)>,
    then: ReplyToken,
    /// Nobody waits for the outcome any more.
    left: bool,
}

#[derive(Default)]
struct ConnectionState {
    slots: HashMap<u32, CallSlot, BuildHasherDefault<XidHasher>>,
    /// Calls that wait for an answer.
    open: usize,
    /// What is to be written, and how much of the first was.
    queue: VecDeque<Rc<Vec<u8>>>,
    written: usize,
    helper: Option<Waker>,
    /// When something last came.
    last_received: Nanos,
    /// When an answer last came, on whichever connection.
    answered: Nanos,
    /// Where the last connection began. The next one begins there too, since servers know a call
    /// that comes again by its number and by where it comes from.
    from: Option<SocketAddr>,
    /// When the connection broke, until something comes on another: that one was made is not enough
    /// where a relay makes it and the server is not there.
    broke_at: Option<Nanos>,
}

/// A connection and its calls.
#[derive(Default)]
pub(super) struct Connection {
    state: RefCell<ConnectionState>,
    driven: Cell<bool>,
}

/// Whether an answer has come.
pub(super) enum ReplyState {
    /// Not yet.
    Pending,
    /// This is it, when it came, and whether the call was sent more than once.
    Done(Result<Vec<u8>, RpcError>, Nanos, bool),
}

impl ConnectionState {
    /// A call is over, unless the server is busy with it still.
    fn complete(&mut self, xid: u32, outcome: Result<Vec<u8>, RpcError>, now: Nanos) {
        if let Some(slot) = self.slots.get_mut(&xid)
            && slot.outcome.is_none()
        {
            if let Some((then, token)) = slot.then.take() {
                let verdict = then.on_reply(token, outcome.as_deref().map_err(|e| *e));
                if verdict == Disposition::Retransmit && outcome.is_ok() {
                    slot.then = Some((then, token));
                    slot.retransmit_at = Some(now + BUSY_RETRANSMIT_DELAY_NS);
                    return;
                }
            }
            self.open -= 1;
            slot.outcome = Some((outcome, now));
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
            if slot.left {
                self.slots.remove(&xid);
            }
        }
    }

    /// When the first of the calls that wait for answers was made.
    fn first(&self) -> Option<Nanos> {
        let open = self.slots.values().filter(|slot| slot.outcome.is_none());
        open.map(|slot| slot.first).min()
    }

    /// Whether the server has said nothing for so long, although calls wait for answers.
    fn is_silent(&self, longest: Nanos, now: Nanos) -> bool {
        let first = self.first();
        first.is_some_and(|first| now.saturating_sub(first.max(self.answered)) >= longest)
    }

    /// Since when the server has said nothing, if no call that waits for an answer was made while it
    /// still did.
    fn silent_since(&self) -> Option<Nanos> {
        let first = self.first()?;
        match self.answered {
            0 => Some(first),
            at => (at <= first + SILENCE_SLACK_NS).then_some(at),
        }
    }

    /// All calls are over, because of this.
    fn fail_all(&mut self, error: RpcError, now: Nanos) {
        let all: Vec<u32> = self.slots.keys().copied().collect();
        all.into_iter()
            .for_each(|xid| self.complete(xid, Err(error), now));
        // What was begun has to be ended, or what follows it would be taken for its rest.
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
        (request, then): (Vec<u8>, ReplyToken),
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
            then,
            left: false,
        };
        let former = state.slots.insert(xid, slot);
        assert!(former.is_none(), "xid {xid} is in flight already");
        if let Some(helper) = state.helper.take() {
            helper.wake();
        }
    }

    /// Takes the answer of a call, or leaves whom to wake.
    pub(super) fn take(&self, xid: u32, waker: &Waker) -> ReplyState {
        let mut state = self.state.borrow_mut();
        let Some(slot) = state.slots.get_mut(&xid) else {
            return ReplyState::Done(Err(RpcError::Stopped), 0, false);
        };
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

    /// Nobody waits for the answer of a call any more.
    pub(super) fn forget(&self, xid: u32) {
        let mut state = self.state.borrow_mut();
        let Some(slot) = state.slots.get_mut(&xid) else {
            return;
        };
        match slot.outcome.is_none() {
            // Somebody is to be told of the outcome still.
            true if slot.then.is_some() => slot.left = true,
            open => {
                state.slots.remove(&xid);
                state.open -= usize::from(open);
            }
        }
    }

    /// The helper that carries calls for as long as the lane drives its workers.
    pub(super) fn helper(
        self: Rc<Self>,
        link: Rc<ChannelShared>,
    ) -> impl Future<Output = ()> + 'static {
        self.driven.set(true);
        let driven = DriverGuard(self);
        async move { driven.0.run(&link).await }
    }

    async fn run(&self, link: &ChannelShared) {
        let mut pause = 10_000_000;
        loop {
            self.wait_for_call().await;
            let connected = match self.connect(link).await {
                Ok(stream) => {
                    self.resend_all(link);
                    let begun = link.lane.now();
                    let error = LiveConnection::new(self, link, stream)
                        .serve_until_broken()
                        .await;
                    let now = link.lane.now();
                    if now - begun > MAX_RECONNECT_PAUSE_NS {
                        pause = 10_000_000;
                    }
                    self.state.borrow_mut().broke_at.get_or_insert(now);
                    Err(error)
                }
                Err(error) => Err::<(), _>(error),
            };
            if let Err(error @ RpcError::NoReply(_)) = connected {
                // What is no server of this protocol does not become one.
                self.state.borrow_mut().fail_all(error, link.lane.now());
            }
            self.sleep_until(link, link.lane.now() + pause).await;
            pause = (2 * pause).min(MAX_RECONNECT_PAUSE_NS);
        }
    }

    /// Waits until a call is queued.
    async fn wait_for_call(&self) {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            if state.open > 0 {
                return Poll::Ready(());
            }
            state.helper = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Waits, and ends calls meanwhile that have waited too long.
    async fn sleep_until(&self, link: &ChannelShared, until: Nanos) {
        while link.lane.now() < until {
            link.lane
                .uncancellable_sleep_until(until.min(link.lane.now() + TIMEOUT_SCAN_INTERVAL_NS))
                .await;
            self.expire_calls(link, false);
        }
    }

    /// Connects; gives up after the time that a call has, if anything is left to wait for.
    async fn connect(&self, link: &ChannelShared) -> Result<TcpStream, RpcError> {
        let to = link.spec.relay.unwrap_or(link.spec.address);
        let from = self.state.borrow().from;
        let begun = match begin_connect(to, from) {
            // Somebody else may have the place meanwhile.
            Err(_) if from.is_some() => begin_connect(to, None),
            begun => begun,
        };
        let fd = begun.map_err(RpcError::Connection)?;
        let stream = TcpStream::from(fd);
        let end = link.lane.now() + link.spec.timeout;
        loop {
            let done = {
                let writable = link.lane.writable(std::os::fd::AsFd::as_fd(&stream));
                let tick = link
                    .lane
                    .uncancellable_sleep_until(end.min(link.lane.now() + TIMEOUT_SCAN_INTERVAL_NS));
                first_of(writable, tick).await
            };
            match done {
                Some(ready) => {
                    ready.map_err(from_io)?;
                    break;
                }
                None if link.lane.now() >= end => {
                    // Another place may have better luck.
                    self.state.borrow_mut().from = None;
                    return Err(RpcError::TimedOut);
                }
                None => {
                    self.expire_calls(link, false);
                }
            }
        }
        match stream.take_error() {
            Ok(None) => {}
            Ok(Some(e)) | Err(e) => return Err(from_io(e)),
        }
        stream.set_nodelay(true).map_err(from_io)?;
        self.state.borrow_mut().from = stream.local_addr().ok();
        Ok(stream)
    }

    /// After connecting: what was not answered is sent, in the order it was first.
    fn resend_all(&self, link: &ChannelShared) {
        let now = link.lane.now();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let queued = std::mem::take(&mut state.queue);
        // Of the first, a part may have been.
        let begun = usize::from(std::mem::take(&mut state.written) > 0);
        let unsent: HashSet<_> = queued.iter().skip(begun).map(Rc::as_ptr).collect();
        let mut open: Vec<_> = state.slots.iter_mut().collect();
        open.retain(|(_, slot)| slot.outcome.is_none());
        open.sort_by_key(|(xid, slot)| (slot.first, **xid));
        for (_, slot) in open {
            if !unsent.contains(&Rc::as_ptr(&slot.request)) {
                slot.may_have_run_twice = true;
                if let Some(tally) = &link.tally {
                    tally.retransmitted(slot.target, slot.first, now);
                }
            }
            (slot.sent, slot.retransmit_at) = (now, None);
            state.queue.push_back(slot.request.clone());
        }
        state.last_received = now;
    }

    /// Ends calls that have waited too long, and sends those again that may be. `true`: what was
    /// waited for has not come for so long that the connection is to be made anew.
    fn expire_calls(&self, link: &ChannelShared, connected: bool) -> bool {
        let now = link.lane.now();
        let over = now >= link.lane.deadline().saturating_add(CALL_GRACE_AFTER_RUN_NS);
        let spec = &link.spec;
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        if over {
            if let (true, Some(tally)) = (state.open > 0, &link.tally) {
                tally.abandoned(true, state.silent_since());
            }
            state.fail_all(RpcError::Stopped, now);
            return false;
        }
        if spec
            .silence
            .is_some_and(|longest| state.is_silent(longest, now))
        {
            state.fail_all(RpcError::TimedOut, now);
            return false;
        }
        let mut ended = Vec::new();
        let mut silent = false;
        let patience = spec.timeout.saturating_mul(u64::from(spec.retries) + 1);
        for (xid, slot) in &mut state.slots {
            if slot.outcome.is_some() {
                continue;
            }
            if now.saturating_sub(slot.first) >= patience {
                ended.push(*xid);
                continue;
            }
            let late = now.saturating_sub(slot.sent) >= spec.timeout;
            let again = match slot.retransmit_at {
                Some(at) => now >= at,
                None if late
                    && (state.last_received < slot.sent || !spec.may_retransmit_in_place) =>
                {
                    silent = true;
                    false
                }
                None => late,
            };
            if connected && again {
                (slot.sent, slot.retransmit_at, slot.may_have_run_twice) = (now, None, true);
                state.queue.push_back(slot.request.clone());
                if let Some(tally) = &link.tally {
                    tally.retransmitted(slot.target, slot.first, now);
                }
            }
        }
        if let (false, Some(tally)) = (ended.is_empty(), &link.tally) {
            tally.abandoned(false, state.silent_since());
        }
        for xid in ended {
            state.complete(xid, Err(RpcError::TimedOut), now);
        }
        connected && silent
    }
}

/// Says that nobody drives the connection any more, however that came.
struct DriverGuard(Rc<Connection>);

impl Drop for DriverGuard {
    fn drop(&mut self) {
        self.0.driven.set(false);
    }
}

/// A socket that connects, from the given place if there is one.
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

/// What the first future gives, unless the second is ready before.
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

fn lane(link: &ChannelShared) -> &Lane {
    &link.lane
}
