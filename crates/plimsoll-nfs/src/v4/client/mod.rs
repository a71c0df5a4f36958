//! An NFSv4 client on a lane: identity, session and calls.

mod calls;
mod client_shutdown;
mod delegations;
mod fifo_mutex;
mod identity;
mod listener;
mod locks;
mod open_state;
mod opens;
mod owners;
mod slots;

pub use calls::{Call, Event, RpcObserver, StatePart};
pub use fifo_mutex::{FifoGuard, FifoMutex, LockWaiter};
pub use open_state::OpenFile;
pub use owners::OpenOwner;

use super::compound::{Compound, NfsError, Request, Results, TARGET, add_deviation, read};
use super::operations::{Operation, Sequence};
use super::types::Status;
use crate::rpc::{self, Channel, ChannelObserver, ChannelSpec, Deviation, Deviations, RpcError};
use delegations::Delegations;
use identity::Identity;
use listener::Listener;
use open_state::OpenTable;
use plimsoll_lane::Lane;
use plimsoll_measure::Nanos;
use slots::{Session, Slot};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// The pause before the first retry that the server requests, in nanoseconds; the pause doubles
/// with each retry.
const MIN_RETRY_PAUSE_NS: Nanos = 10_000_000;

/// The maximum pause before a retry, in nanoseconds.
const MAX_RETRY_PAUSE_NS: Nanos = 1_000_000_000;

/// The maximum number of retries of a call after the server has lost the client's state or the call's open.
const MAX_RECOVERIES: u32 = 4;

/// The configuration of a client (RFC 7530, 9.1.1 and RFC 8881, 2.4).
#[derive(Debug, Clone)]
pub struct ClientSpec {
    /// The configuration of the connections.
    pub channel: ChannelSpec,
    /// The minor version, 0 or 1.
    pub minor: u32,
    /// The name of the client, different from the names of all other clients of the server.
    pub id: String,
    /// The maximum number of calls in flight, which is the number of slots; the server may allow fewer slots (4.1).
    pub slots: u32,
    /// The maximum number of bytes of a request and of a reply (4.1).
    pub max_message_bytes: u32,
    /// The time in nanoseconds after which the server may drop the state of a silent client.
    pub lease: Nanos,
    /// Whether the client accepts delegations; the client then also receives callbacks, by which the server recalls
    /// delegations.
    pub delegations: bool,
    /// The collection of replies that deviate from the protocol, for the results.
    pub deviations: Arc<Deviations>,
}

/// A client (RFC 7530, 9.1 and RFC 8881, 2.4). Cheap to clone.
#[derive(Clone)]
pub struct Client(Rc<Inner>);

pub(super) struct Inner {
    lane: Lane,
    channel: Channel,
    spec: ClientSpec,
    observer: Option<Rc<dyn RpcObserver>>,
    identity: Identity,
    session: RefCell<Option<Rc<Session>>>,
    /// Sessions that the client no longer uses and has not yet destroyed at the server.
    replaced_sessions: RefCell<Vec<Rc<Session>>>,
    opens: OpenTable,
    delegations: Delegations,
    /// The socket for callbacks; only on 4.0 with delegations.
    listener: std::io::Result<Option<Listener>>,
    /// Whether a connection is being bound to the session for callbacks.
    binding: Rc<Cell<bool>>,
    /// Whether a task of the lane renews the lease.
    renewed: Rc<Cell<bool>>,
}

/// The permission to make one call; on 4.1, the permission holds a slot (RFC 8881, 2.10.6).
pub struct Permit(Option<Slot>);

/// The retries of a call, and the pause before the next retry (RFC 7530, 13.1.1.3).
pub struct RetryState {
    pause: Nanos,
    /// The number of retries, without retries that the server requested.
    tries: u32,
}

impl Default for RetryState {
    fn default() -> Self {
        Self {
            pause: MIN_RETRY_PAUSE_NS,
            tries: 0,
        }
    }
}

impl Client {
    /// Creates a client of a lane. The client establishes its client id before its first call.
    #[must_use]
    pub fn new(
        lane: &Lane,
        spec: ClientSpec,
        observer: Option<Rc<dyn RpcObserver>>,
        channel_observer: Option<Rc<dyn ChannelObserver>>,
    ) -> Self {
        let channel = Channel::new(lane, spec.channel.clone(), channel_observer);
        let listener = match spec.delegations && spec.minor == 0 {
            true => Listener::new(spec.channel.address).map(Some),
            false => Ok(None),
        };
        let client = Self(Rc::new(Inner {
            lane: lane.clone(),
            channel,
            spec,
            observer,
            identity: Identity::new(),
            session: RefCell::new(None),
            replaced_sessions: RefCell::default(),
            opens: OpenTable::default(),
            delegations: Delegations::default(),
            listener,
            binding: Rc::default(),
            renewed: Rc::default(),
        }));
        if client.0.spec.delegations {
            client.answer_callbacks();
        }
        client.keep_lease();
        client
    }

    /// The lane whose workers use the client.
    #[must_use]
    pub fn lane(&self) -> &Lane {
        &self.0.lane
    }

    /// The minor version.
    #[must_use]
    pub fn minor(&self) -> u32 {
        self.0.spec.minor
    }

    pub(super) fn event(&self, event: Event, since: Nanos) {
        if let Some(observer) = &self.0.observer {
            observer.event(event, since, self.0.lane.now());
        }
    }

    fn note_established(&self, part: StatePart) {
        if let Some(observer) = &self.0.observer {
            observer.established(part);
        }
    }

    /// Waits until the server has confirmed the client id. A 4.0 client whose client id was never confirmed does not
    /// wait, because only opens and locks need a client id.
    async fn ensure_confirmed(&self) -> Result<(), NfsError> {
        match self.minor() == 0 && self.0.identity.session_epoch() == 0 {
            true => Ok(()),
            false => self.ready().await,
        }
    }

    /// Waits for the permission of a call.
    ///
    /// # Errors
    /// The error of establishing the client's state.
    pub async fn permit(&self) -> Result<Permit, NfsError> {
        loop {
            self.ensure_confirmed().await?;
            let session = self.0.session.borrow().clone();
            let Some(session) = session else {
                return Ok(Permit(None));
            };
            self.keep_callbacks();
            if let Some(slot) = session.try_slot() {
                return Ok(Permit(Some(slot)));
            }
            let since = self.0.lane.now();
            let slot = session.slot().await;
            self.event(Event::WaitedForSlot, since);
            if let Some(slot) = slot {
                return Ok(Permit(Some(slot)));
            }
        }
    }

    /// The permission of a call; `None` if the call would have to wait.
    #[must_use]
    pub fn try_permit(&self) -> Option<Permit> {
        if !self.is_ready() {
            return None;
        }
        match &*self.0.session.borrow() {
            None => Some(Permit(None)),
            Some(session) => session.try_slot().map(|slot| Permit(Some(slot))),
        }
    }

    /// Sends a call; the caller awaits the reply later.
    pub fn send(
        &self,
        call: Call,
        permit: Permit,
        build: impl Fn(&mut Compound<'_>),
    ) -> PendingCall {
        let (minor, channel) = (self.0.spec.minor, &self.0.channel);
        let sequenced = permit.0.is_some();
        let sent = match permit.0 {
            None => channel.call(TARGET, &Request { minor, build }),
            Some(slot) => {
                let args = slot.session.next(slot.number, call.cache_this());
                let build = |c: &mut Compound<'_>| {
                    c.add::<Sequence>(&args);
                    build(c);
                };
                let request = Request { minor, build };
                let (session, number) = (slot.session.clone(), slot.number);
                slot.called();
                channel.call_with_handler(TARGET, &request, session, number)
            }
        };
        PendingCall {
            client: self.clone(),
            call: sent,
            what: call,
            session_epoch: self.0.identity.session_epoch(),
            sequenced,
        }
    }

    /// Makes a call and waits for the reply. Retries the call when the server requests a retry, and
    /// after the client's state was re-established; `build` and `take` run once for each attempt.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub async fn call<R>(
        &self,
        call: Call,
        build: impl Fn(&mut Compound<'_>),
        take: impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        self.call_in_epoch(call, None, build, take).await
    }

    /// Makes a call as [`Client::call`] does, but with `client_epoch`, the client epoch of the call's stateid, only as
    /// long as the client epoch lasts.
    ///
    /// # Errors
    /// `STALE_STATEID` without an operation if the client epoch has changed.
    async fn call_in_epoch<R>(
        &self,
        call: Call,
        client_epoch: Option<u64>,
        build: impl Fn(&mut Compound<'_>),
        mut take: impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        let mut retries = RetryState::default();
        loop {
            let permit = self.permit().await?;
            if let Some(client_epoch) = client_epoch {
                self.check_client_epoch(client_epoch)?;
            }
            let done = self.send(call, permit, &build).done(&mut take).await;
            match done {
                Err(e) => self.wait_to_retry(e, &mut retries).await?,
                done => return done,
            }
        }
    }

    /// Makes a call that is not idempotent. A 4.0 server may not recognise a retransmission on
    /// another connection, and then returns the status of a second execution. A retransmitted call
    /// has succeeded if `is_done` returns `true` for the status. On 4.1, the slot prevents a second
    /// execution (RFC 8881, 2.10.6).
    ///
    /// # Errors
    /// See [`NfsError`].
    pub async fn call_once(
        &self,
        call: Call,
        build: impl Fn(&mut Compound<'_>),
        mut take: impl FnMut(&mut Results<'_>) -> Result<(), NfsError>,
        is_done: impl Fn(Status) -> bool,
    ) -> Result<(), NfsError> {
        let mut retries = RetryState::default();
        let mut twice = false;
        loop {
            let permit = self.permit().await?;
            let (done, again) = self.send(call, permit, &build).ended(&mut take).await;
            twice |= again && self.minor() == 0;
            match done {
                Err(NfsError::Status(_, status)) if twice && is_done(status) => return Ok(()),
                Err(e) => self.wait_to_retry(e, &mut retries).await?,
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Sends a compound that consists of the operation `O` alone, without SEQUENCE, such as SETCLIENTID (4.0) or
    /// EXCHANGE_ID (4.1).
    async fn call_outside_session<O: Operation, R>(
        &self,
        what: Call,
        args: &O::Args<'_>,
        take: impl FnOnce(O::ResOk<'_>) -> R,
    ) -> Result<R, NfsError> {
        let sent = self.send(what, Permit(None), |c| {
            c.add::<O>(args);
        });
        sent.done(|r| r.get::<O>().map(take)).await
    }

    /// Waits before the retry of a failed call.
    ///
    /// # Errors
    /// `e` if the call must not be retried.
    async fn wait_to_retry(&self, e: NfsError, retries: &mut RetryState) -> Result<(), NfsError> {
        let status = e.status().ok_or(e)?;
        if matches!(status, Status::Delay | Status::Grace) {
            let pause = retries.pause;
            retries.pause = (2 * pause).min(MAX_RETRY_PAUSE_NS);
            return self.pause(pause).await;
        }
        retries.tries += 1;
        let max_tries = match status {
            // An operation of another worker may have changed the stateid during the call.
            Status::BadStateId => 1,
            Status::OldStateId => 8,
            Status::RetryUncachedRep => MAX_RECOVERIES,
            _ if self.is_of_client(status) => MAX_RECOVERIES,
            _ => 0,
        };
        // The reply's handler has noted the lost state, which may already be re-established.
        match retries.tries <= max_tries {
            true => Ok(()),
            false => Err(e),
        }
    }

    /// Sleeps, but not beyond the end of the run.
    async fn pause(&self, pause: Nanos) -> Result<(), NfsError> {
        let lane = &self.0.lane;
        let slept = lane.sleep_until(lane.now() + pause).await;
        slept.map_err(|_| NfsError::Rpc(RpcError::Stopped))
    }
}

/// A call in flight (RFC 7530, 15.2).
pub struct PendingCall {
    client: Client,
    call: rpc::Call,
    what: Call,
    session_epoch: u64,
    sequenced: bool,
}

impl PendingCall {
    /// Waits for the reply; `take` decodes the results of the operations.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub async fn done<R>(
        self,
        take: impl FnOnce(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        self.ended(take).await.0
    }

    /// Waits for the outcome of the call as [`PendingCall::done`] does; also returns whether the call was sent more
    /// than once.
    async fn ended<R>(
        mut self,
        take: impl FnOnce(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> (Result<R, NfsError>, bool) {
        let (reply, end) = (&mut self.call).await;
        let Inner { spec, observer, .. } = &*self.client.0;
        let note = |op, deviation: Deviation<'_>| {
            let name = self.what.name();
            add_deviation(&spec.deviations, spec.minor, name, (op, deviation));
        };
        let sequenced = self.sequenced;
        let take = |results: &mut Results<'_>| {
            if sequenced {
                results.skip::<Sequence>()?;
            }
            take(results)
        };
        let outcome = read(reply.as_deref().map_err(|e| *e), take, note);
        if let Some(status) = outcome.as_ref().err().and_then(|e| e.status()) {
            self.client.note_lost_state(status, self.session_epoch);
        }
        if let Some(observer) = observer {
            let how = outcome.as_ref().map(|_| ()).map_err(|e| *e);
            observer.done(self.what, self.call.start, end, how);
        }
        (outcome, self.call.was_sent_again())
    }
}
