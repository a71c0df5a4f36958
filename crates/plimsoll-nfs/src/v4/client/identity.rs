//! Who the client is to the server: its client id and session, kept alive by renewing the lease and
//! made anew when the server has lost them (RFC 7530, 9 and RFC 8881, 8.4).

use super::super::blocking::{CALLBACK_PROGRAM, exchange_args, session_args, verifier};
use super::super::compound::{Compound, NfsError, Request, Results, TARGET};
use super::super::operations::{BindArgs, BindConnToSession, Direction};
use super::super::state::{
    BACK_CHANNEL, CreateSession, DestroySession, ExchangeId, ReclaimComplete, Renew, SessionMade,
    SetClientId, SetClientIdArgs, SetClientIdConfirm,
};
use super::super::types::{Status, Text};
use super::delegations::CALLBACK_SLOTS;
use super::fifo_mutex::FifoMutex;
use super::listener::Listener;
use super::slots::{Session, callbacks_are_down};
use super::{Call, Client, Event, Inner, PendingCall, Permit, RetryState};
use crate::rpc::RpcError;
use plimsoll_measure::Nanos;
use rustix::io::Errno;
use std::cell::Cell;
use std::rc::{Rc, Weak};

/// Pause before the server is asked once more to send callbacks, in nanoseconds.
const REBIND_PAUSE_NS: Nanos = 1_000_000_000;

/// How much of the client's state is to be made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LostState {
    Nothing,
    Session,
    Client,
}

/// What the server knows the client by.
pub(super) struct Identity {
    /// Another one for each client, and on 4.0 for each time that it is made.
    verifier: Cell<[u8; 8]>,
    client: Cell<u64>,
    /// Number of the next CREATE_SESSION.
    sequence: Cell<u32>,
    lost: Cell<LostState>,
    /// How often it or its session was made.
    session_epoch: Cell<u64>,
    /// How often it was made, and with it everything that it had open and locked.
    client_epoch: Cell<u64>,
    /// One worker makes it, the others wait.
    creation_mutex: FifoMutex,
    failed: Cell<Option<(Nanos, NfsError)>>,
}

impl Identity {
    pub(super) fn new() -> Self {
        Self {
            verifier: Cell::new(verifier()),
            client: Cell::new(0),
            sequence: Cell::new(0),
            lost: Cell::new(LostState::Client),
            session_epoch: Cell::new(0),
            client_epoch: Cell::new(0),
            creation_mutex: FifoMutex::default(),
            failed: Cell::new(None),
        }
    }

    /// How often the client's state was made, or only its session.
    pub(super) fn session_epoch(&self) -> u64 {
        self.session_epoch.get()
    }

    /// How often all of the client's state was made.
    pub(super) fn client_epoch(&self) -> u64 {
        self.client_epoch.get()
    }

    fn made(&self, anew: bool) {
        self.session_epoch.set(self.session_epoch.get() + 1);
        self.client_epoch
            .set(self.client_epoch.get() + u64::from(anew));
    }
}

/// What is lost when a status says so. That the lease has expired is said of an open on 4.1, and of
/// the client by its session.
fn lost_state_of(status: Status, minor: u32) -> Option<LostState> {
    match status {
        Status::StaleClientId | Status::StaleStateId => Some(LostState::Client),
        Status::Expired if minor == 0 => Some(LostState::Client),
        Status::BadSession
        | Status::DeadSession
        | Status::BadSlot
        | Status::BadHighSlot
        | Status::SeqMisordered
        | Status::SeqFalseRetry
        | Status::ConnNotBound => Some(LostState::Session),
        _ => None,
    }
}

/// Says that nobody renews the lease any more, however that came.
struct RenewalGuard(Weak<Inner>);

impl Drop for RenewalGuard {
    fn drop(&mut self) {
        if let Some(inner) = self.0.upgrade() {
            inner.renewed.set(false);
        }
    }
}

/// Says that no connection is being tied to the session any more, however that came.
struct BindGuard(Weak<Inner>);

impl Drop for BindGuard {
    fn drop(&mut self) {
        if let Some(inner) = self.0.upgrade() {
            inner.binding.set(false);
        }
    }
}

impl Client {
    /// The client id.
    pub(super) fn id(&self) -> u64 {
        self.0.identity.client.get()
    }

    pub(super) fn is_ready(&self) -> bool {
        let doubtful = |s: &Rc<Session>| s.doubtful.get();
        self.0.identity.lost.get() == LostState::Nothing
            && !self.0.session.borrow().as_ref().is_some_and(doubtful)
    }

    /// Notes what of the client's state is lost, if a status says so; `generation` is that in
    /// which the call was made.
    pub(super) fn note_lost_state(&self, status: Status, generation: u64) {
        let identity = &self.0.identity;
        if let Some(lost) = lost_state_of(status, self.minor())
            && identity.session_epoch.get() == generation
        {
            identity.lost.set(identity.lost.get().max(lost));
        }
    }

    /// Makes sure that the server knows the client (RFC 7530, 9.1.1 and RFC 8881, 2.4).
    ///
    /// # Errors
    /// What keeps it from that.
    pub async fn ready(&self) -> Result<(), NfsError> {
        self.keep_lease();
        if self.is_ready() {
            return Ok(());
        }
        let identity = &self.0.identity;
        let since = self.0.lane.now();
        let _turn = identity.creation_mutex.acquire().await;
        if self.is_ready() {
            return Ok(());
        }
        if let Some((when, e)) = identity.failed.get()
            && when >= since
        {
            return Err(e);
        }
        let made = self.make().await;
        if let Err(e) = made {
            identity.failed.set(Some((self.0.lane.now(), e)));
        }
        made
    }

    async fn make(&self) -> Result<(), NfsError> {
        let identity = &self.0.identity;
        let since = self.0.lane.now();
        let first = identity.session_epoch.get() == 0;
        if identity.lost.get() == LostState::Nothing {
            // The numbers of its slots are in doubt.
            identity.lost.set(LostState::Session);
        }
        if let Some(session) = self.0.session.take() {
            session.end();
            if identity.lost.get() == LostState::Session {
                self.0.left.borrow_mut().push(session);
            }
        }
        let mut patience = RetryState::default();
        loop {
            let done = match self.0.spec.minor {
                0 => self.make_client().await,
                _ => self.make_session().await,
            };
            match done {
                Ok(()) => break,
                Err(e) => self.wait_to_retry(e, &mut patience).await?,
            }
        }
        identity.lost.set(LostState::Nothing);
        if !first {
            self.event(Event::Recovered, since);
        }
        Ok(())
    }

    /// SETCLIENTID and SETCLIENTID_CONFIRM (RFC 7530, 9.1.1).
    async fn make_client(&self) -> Result<(), NfsError> {
        let identity = &self.0.identity;
        let listener = self.0.listener.as_ref().map_err(|e| {
            let errno = Errno::from_io_error(e).unwrap_or(Errno::IO);
            NfsError::Rpc(RpcError::Connection(errno))
        })?;
        if identity.session_epoch.get() > 0 {
            // A server that has lost only a part forgets the rest, and with it the numbers of owners
            // (RFC 7530, 16.33.5).
            identity.verifier.set(verifier());
        }
        let nowhere = ("tcp", "0.0.0.0.0.0");
        let (network, address) = listener.as_ref().map_or(nowhere, Listener::address);
        let args = SetClientIdArgs {
            verifier: identity.verifier.get(),
            id: Text(self.0.spec.id.as_bytes()),
            program: CALLBACK_PROGRAM,
            network: Text(network.as_bytes()),
            address: Text(address.as_bytes()),
            ident: 1,
        };
        let set = self.call_outside_session(
            Call::SetClientId,
            |c| {
                c.add::<SetClientId>(&args);
            },
            |r| r.get::<SetClientId>(),
        );
        let set = set.await?;
        let confirmed = self.call_outside_session(
            Call::SetClientIdConfirm,
            |c| {
                c.add::<SetClientIdConfirm>(&set);
            },
            |r| r.get::<SetClientIdConfirm>(),
        );
        confirmed.await?;
        identity.client.set(set.client);
        identity.made(true);
        let left = self.reclaim().await?;
        self.reopen_by_name(left).await
    }

    /// EXCHANGE_ID if that is needed, and CREATE_SESSION (RFC 8881, 2.10.8 and 8.4).
    async fn make_session(&self) -> Result<(), NfsError> {
        let identity = &self.0.identity;
        let anew = identity.lost.get() == LostState::Client;
        if anew {
            let args = exchange_args(&self.0.spec.id, identity.verifier.get());
            let exchanged = self.call_outside_session(
                Call::ExchangeId,
                |c| {
                    c.add::<ExchangeId>(&args);
                },
                |r| r.get::<ExchangeId>().map(|e| (e.client, e.sequence)),
            );
            let (client, sequence) = exchanged.await?;
            identity.client.set(client);
            identity.sequence.set(sequence);
        }
        let spec = &self.0.spec;
        let mut args = session_args(
            self.id(),
            identity.sequence.get(),
            spec.slots,
            spec.max_message_bytes,
        );
        if spec.delegations {
            args.flags = BACK_CHANNEL;
            args.back.requests = CALLBACK_SLOTS;
        }
        let made = self.call_outside_session(
            Call::CreateSession,
            |c| {
                c.add::<CreateSession>(&args);
            },
            |r| r.get::<CreateSession>(),
        );
        let made = made.await;
        if let Err(NfsError::Status(_, Status::SeqMisordered)) = made {
            // Which number is the next one EXCHANGE_ID says.
            identity.lost.set(LostState::Client);
        }
        let made: SessionMade = made?;
        identity
            .sequence
            .set(identity.sequence.get().wrapping_add(1));
        let slots = made.fore.requests.clamp(1, spec.slots);
        self.0.delegations.begin_session();
        *self.0.session.borrow_mut() = Some(Session::new(made.session, slots));
        identity.made(anew);
        if anew {
            let left = self.reclaim().await?;
            let complete = self.call_during_setup(
                Call::ReclaimComplete,
                |c| {
                    c.add::<ReclaimComplete>(&false);
                },
                |r| r.get::<ReclaimComplete>(),
            );
            match complete.await {
                Err(NfsError::Status(_, Status::CompleteAlready)) | Ok(()) => {}
                Err(e) => return Err(e),
            }
            // Until that is said, nothing else may be opened (RFC 8881, 18.51.3).
            self.reopen_by_name(left).await?;
        }
        Ok(())
    }

    /// Whether a status says that the client or its session is lost, and not one open file.
    pub(super) fn is_of_client(&self, status: Status) -> bool {
        lost_state_of(status, self.minor()).is_some()
    }

    /// A call that is in no session.
    async fn call_outside_session<R>(
        &self,
        what: Call,
        build: impl Fn(&mut Compound<'_>),
        take: impl FnOnce(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        let minor = self.0.spec.minor;
        let sent = PendingCall {
            client: self.clone(),
            call: self.0.channel.call(TARGET, &Request { minor, build }),
            what,
            session_epoch: self.0.identity.session_epoch.get(),
            sequenced: false,
        };
        sent.done(take).await
    }

    /// A call of a client that is about to be ready.
    pub(super) async fn call_during_setup<R>(
        &self,
        what: Call,
        build: impl Fn(&mut Compound<'_>),
        take: impl FnOnce(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        let permit = self.permit_during_setup().await?;
        self.send(what, permit, build).done(take).await
    }

    /// Leave to make a call of a client that is about to be ready.
    ///
    /// # Errors
    /// `BADSESSION` if it has lost its session meanwhile.
    async fn permit_during_setup(&self) -> Result<Permit, NfsError> {
        if self.minor() == 0 {
            return Ok(Permit(None));
        }
        let session = self.0.session.borrow().clone();
        let slot = match session {
            None => None,
            Some(session) => session.slot().await,
        };
        let lost = NfsError::Status(None, Status::BadSession);
        slot.map(|slot| Permit(Some(slot))).ok_or(lost)
    }

    /// Has the lane renew the lease, unless it does.
    pub(super) fn keep_lease(&self) {
        if self.0.renewed.replace(true) {
            return;
        }
        self.listen();
        let inner = Rc::downgrade(&self.0);
        let renewing = RenewalGuard(inner.clone());
        let (lane, third) = (self.0.lane.clone(), self.0.spec.lease / 3);
        self.0.lane.spawn_background(Box::pin(async move {
            let _renewing = renewing;
            if let Some(inner) = inner.upgrade()
                && inner.spec.minor > 0
            {
                // Whoever makes the first call is told of errors.
                let _ = Client(inner).ready().await;
            }
            loop {
                lane.uncancellable_sleep_until(lane.now() + third).await;
                match inner.upgrade() {
                    Some(inner) => Client(inner).renew().await,
                    None => return,
                }
            }
        }));
    }

    /// Has callbacks come again, if the server says that they cannot (RFC 8881, 18.34).
    pub(super) fn keep_callbacks(&self) {
        let session = self.0.session.borrow().clone();
        let Some(session) = session.filter(|s| callbacks_are_down(s.status.get())) else {
            return;
        };
        if !self.0.spec.delegations || self.0.binding.replace(true) {
            return;
        }
        let binding = BindGuard(Rc::downgrade(&self.0));
        self.0.lane.spawn_background(Box::pin(async move {
            let Some(inner) = binding.0.upgrade() else {
                return;
            };
            let client = Self(inner);
            let args = BindArgs {
                session: session.id,
                direction: Direction::ForeOrBoth as u32,
                rdma: false,
            };
            // It has to be alone in its compound.
            let bound = client.call_outside_session(
                Call::BindConnToSession,
                |c| {
                    c.add::<BindConnToSession>(&args);
                },
                |r| r.skip::<BindConnToSession>(),
            );
            // Without it delegations are taken away when they are asked back.
            match bound.await {
                Ok(()) => {
                    session.status.set(0);
                    drop(client);
                }
                // A server that does not take it now is not to be asked with every call.
                Err(_) => {
                    let lane = client.0.lane.clone();
                    drop(client);
                    lane.uncancellable_sleep_until(lane.now() + REBIND_PAUSE_NS)
                        .await;
                }
            }
            drop(binding);
        }));
    }

    /// Ends sessions that were left, once nothing is under way on them: of each the server keeps the
    /// answers of its slots (RFC 8881, 18.37).
    async fn destroy_left_sessions(&self) {
        let (idle, busy) = self.0.left.take().into_iter().partition(|s| s.is_idle());
        *self.0.left.borrow_mut() = busy;
        let idle: Vec<Rc<Session>> = idle;
        for session in idle {
            let ended = self.call_outside_session(
                Call::DestroySession,
                |c| {
                    c.add::<DestroySession>(&session.id);
                },
                |r| r.skip::<DestroySession>(),
            );
            // What the server does not know any more has ended.
            let _ = ended.await;
        }
    }

    /// Renews the lease, if no other call has.
    async fn renew(&self) {
        if self.id() == 0 || self.0.lane.now() >= self.0.lane.deadline() {
            return;
        }
        self.destroy_left_sessions().await;
        let session = self.0.session.borrow().clone();
        // Errors come with the calls of the workers too, and are theirs.
        let _ = match session {
            None => {
                let renewed = self.call(
                    Call::Renew,
                    |c| {
                        c.add::<Renew>(&self.id());
                    },
                    |r| r.get::<Renew>(),
                );
                renewed.await
            }
            Some(session) if session.used.replace(false) => Ok(()),
            Some(_) => self.call(Call::Sequence, |_| {}, |_| Ok(())).await,
        };
    }
}
