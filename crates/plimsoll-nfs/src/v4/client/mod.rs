//! A client of NFS version 4 on a lane: what it is to the server, its session, and its calls.

mod calls;
mod client_shutdown;
mod delegations;
mod fifo_mutex;
mod identity;
mod listener;
mod locks;
mod opens;
mod slots;

pub use calls::{Call, Event, RpcObserver};
pub use fifo_mutex::{FifoGuard, FifoMutex, LockWaiter};
pub use opens::{OpenFile, OpenOwner};

use super::compound::{Compound, Deviation, NfsError, Request, Results, TARGET, read, standard};
use super::state::Sequence;
use super::types::Status;
use crate::rpc::{
    self, Channel, ChannelObserver, ChannelSpec, Deviations, LaneDeviations, ProcedureName,
    RpcError,
};
use delegations::Delegations;
use identity::Identity;
use listener::Listener;
use opens::OpenTable;
use plimsoll_lane::Lane;
use plimsoll_measure::Nanos;
use slots::{Session, Slot};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// First pause before a call that the server asked to make later, in nanoseconds; each further
/// one is twice as long.
const MIN_RETRY_PAUSE_NS: Nanos = 10_000_000;

/// Longest pause, in nanoseconds.
const MAX_RETRY_PAUSE_NS: Nanos = 1_000_000_000;

/// Times that a call is made again for the client's state was lost.
const MAX_RECOVERIES: u32 = 4;

/// What a client is made with (RFC 7530, 9.1.1 and RFC 8881, 2.4).
#[derive(Debug, Clone)]
pub struct ClientSpec {
    /// Its connections.
    pub channel: ChannelSpec,
    /// The minor version, 0 or 1.
    pub minor: u32,
    /// What no other client of the server is called.
    pub id: String,
    /// Calls under way at once, if the server takes so many (4.1).
    pub slots: u32,
    /// Bytes of the longest request and of the longest reply (4.1).
    pub max_message_bytes: u32,
    /// Nanoseconds of a lease.
    pub lease: Nanos,
    /// Delegations are taken, and callbacks with them.
    pub delegations: bool,
    /// How the server's replies deviate from the protocol is added to this when the client ends.
    pub deviations: Arc<Deviations>,
}

/// A client (RFC 7530, 9.1 and RFC 8881, 2.4). Cheap to clone.
#[derive(Clone)]
pub struct Client(Rc<Inner>);

pub(super) struct Inner {
    lane: Lane,
    channel: Channel,
    spec: ClientSpec,
    observe: Option<Rc<dyn RpcObserver>>,
    deviations: LaneDeviations,
    identity: Identity,
    session: RefCell<Option<Rc<Session>>>,
    /// Sessions that were left for another one, and that the server may have still.
    left: RefCell<Vec<Rc<Session>>>,
    opens: OpenTable,
    delegations: Delegations,
    /// Where callbacks come, on 4.0 with delegations.
    listener: std::io::Result<Option<Listener>>,
    /// A connection is being tied to the session for callbacks.
    binding: Cell<bool>,
    /// The lane renews the lease.
    renewed: Cell<bool>,
}

/// Leave to make one call (RFC 8881, 2.10.6).
pub struct Permit(Option<Slot>);

/// What to do about a call that failed.
enum RetryAction {
    None,
    Again,
    After(Nanos),
}

/// How often a call has been made again, and how long it has to wait the next time (RFC 7530,
/// 13.1.1.3).
pub struct RetryState {
    pause: Nanos,
    /// Without those that the server asked for.
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
    /// A client of a lane. It says who it is before its first call.
    #[must_use]
    pub fn new(
        lane: &Lane,
        spec: ClientSpec,
        observe: Option<Rc<dyn RpcObserver>>,
        tally: Option<Rc<dyn ChannelObserver>>,
    ) -> Self {
        let channel = Channel::new(lane, spec.channel.clone(), tally);
        let listener = match spec.delegations && spec.minor == 0 {
            true => Listener::new(spec.channel.address).map(Some),
            false => Ok(None),
        };
        let standard = standard(spec.minor);
        let names = Call::ALL.iter().map(|call| ProcedureName {
            name: call.name(),
            standard,
        });
        let client = Self(Rc::new(Inner {
            lane: lane.clone(),
            channel,
            deviations: LaneDeviations::new(spec.deviations.clone(), names),
            spec,
            observe,
            identity: Identity::new(),
            session: RefCell::new(None),
            left: RefCell::default(),
            opens: OpenTable::default(),
            delegations: Delegations::default(),
            listener,
            binding: Cell::new(false),
            renewed: Cell::new(false),
        }));
        if client.0.spec.delegations {
            client.answer_callbacks();
        }
        client.keep_lease();
        client
    }

    /// The lane whose workers it serves.
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
        if let Some(observe) = &self.0.observe {
            observe.event(event, since, self.0.lane.now());
        }
    }

    /// Waits until the server knows the client; one of 4.0 has to be known only once it opens.
    async fn ensure_confirmed(&self) -> Result<(), NfsError> {
        match self.minor() == 0 && self.0.identity.session_epoch() == 0 {
            true => Ok(()),
            false => self.ready().await,
        }
    }

    /// Waits until a call may be made.
    ///
    /// # Errors
    /// What keeps the server from knowing the client.
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

    /// Leave to make a call now, if there is any without waiting.
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

    /// Makes a call, whose answer may be waited for later.
    pub fn send(
        &self,
        call: Call,
        permit: Permit,
        build: impl Fn(&mut Compound<'_>),
    ) -> PendingCall {
        let (minor, channel) = (self.0.spec.minor, &self.0.channel);
        let generation = self.0.identity.session_epoch();
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
            session_epoch: generation,
            sequenced: minor > 0,
        }
    }

    /// Makes a call and waits for its answer. It is made again when the server asks for that, and
    /// when the client's state had to be made anew: `build` and `take` are then called again.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub async fn call<R>(
        &self,
        call: Call,
        build: impl Fn(&mut Compound<'_>),
        mut take: impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        let mut patience = RetryState::default();
        loop {
            let permit = self.permit().await?;
            let done = self.send(call, permit, &build).done(&mut take).await;
            match done {
                Err(e) => self.wait_to_retry(e, &mut patience).await?,
                done => return done,
            }
        }
    }

    /// Makes a call that is not the same done twice. On 4.0 a server need not know one that comes
    /// again on another connection, and then says of it what it says of what was done before. If the
    /// call was sent again, and `is_done` says so of that status, it has succeeded. On 4.1 its slot
    /// tells (RFC 8881, 2.10.6).
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
        let mut patience = RetryState::default();
        let mut twice = false;
        loop {
            let permit = self.permit().await?;
            let (done, again) = self.send(call, permit, &build).ended(&mut take).await;
            twice |= again && self.minor() == 0;
            match done {
                Err(NfsError::Status(_, status)) if twice && is_done(status) => return Ok(()),
                Err(e) => self.wait_to_retry(e, &mut patience).await?,
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Waits until a call that failed is to be made again.
    async fn wait_to_retry(&self, e: NfsError, patience: &mut RetryState) -> Result<(), NfsError> {
        match self.retry_action(e, patience) {
            RetryAction::None => Err(e),
            RetryAction::Again => Ok(()),
            RetryAction::After(pause) => self.pause(pause).await,
        }
    }

    /// Waits, but not beyond the end of the run.
    async fn pause(&self, pause: Nanos) -> Result<(), NfsError> {
        let lane = &self.0.lane;
        let slept = lane.sleep_until(lane.now() + pause).await;
        slept.map_err(|_| NfsError::Rpc(RpcError::Stopped))
    }

    /// What was lost is noted when the answer comes: by now it may have been made anew.
    fn retry_action(&self, e: NfsError, patience: &mut RetryState) -> RetryAction {
        let Some(status) = e.status() else {
            return RetryAction::None;
        };
        if matches!(status, Status::Delay | Status::Grace) {
            let pause = patience.pause;
            patience.pause = (2 * pause).min(MAX_RETRY_PAUSE_NS);
            return RetryAction::After(pause);
        }
        patience.tries += 1;
        let most = match status {
            // Somebody else's operation may have changed it meanwhile.
            Status::BadStateId => 1,
            Status::OldStateId => 8,
            _ => MAX_RECOVERIES,
        };
        if patience.tries > most {
            return RetryAction::None;
        }
        match status {
            Status::OldStateId | Status::BadStateId | Status::RetryUncachedRep => {
                RetryAction::Again
            }
            _ if self.is_of_client(status) => RetryAction::Again,
            _ => RetryAction::None,
        }
    }
}

impl Inner {
    fn note(&self, call: Call, deviation: &Deviation<'_>) {
        match deviation {
            Deviation::Surplus(bytes) => self.deviations.count_surplus(call as usize, *bytes),
            other => other.add_to(&self.spec.deviations, self.spec.minor, call.name()),
        }
    }
}

/// A call that was made (RFC 7530, 15.2).
pub struct PendingCall {
    client: Client,
    call: rpc::Call,
    what: Call,
    session_epoch: u64,
    sequenced: bool,
}

impl PendingCall {
    /// Waits for the answer, of which `take` reads what the operations gave.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub async fn done<R>(
        self,
        take: impl FnOnce(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        self.ended(take).await.0
    }

    /// The same, and whether the call was sent more than once.
    async fn ended<R>(
        mut self,
        take: impl FnOnce(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> (Result<R, NfsError>, bool) {
        let (reply, end) = (&mut self.call).await;
        let note = |deviation: Deviation<'_>| self.client.0.note(self.what, &deviation);
        let sequenced = self.sequenced;
        let take = |results: &mut Results<'_>| {
            if sequenced {
                results.skip::<Sequence>()?;
            }
            take(results)
        };
        let outcome = match &reply {
            Ok(message) => read(message, take, note),
            Err(e) => {
                note(Deviation::Error(*e));
                Err(NfsError::Rpc(*e))
            }
        };
        if let Some(status) = outcome.as_ref().err().and_then(|e| e.status()) {
            self.client.note_lost_state(status, self.session_epoch);
        }
        if let Some(observe) = &self.client.0.observe {
            let how = outcome.as_ref().map(|_| ()).map_err(|e| *e);
            observe.done(self.what, self.call.start, end, how);
        }
        (outcome, self.call.was_sent_again())
    }
}
