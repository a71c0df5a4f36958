//! The client's identity at the server: the client id and the session. The client renews the lease
//! and re-establishes state that the server has lost (RFC 7530, 9 and RFC 8881, 8.4).
//!
//! One worker re-establishes the lost state, and the other workers wait. An epoch tells replies to calls before the
//! loss from replies to calls after the loss. A stateid has the epoch of its client id: a stateid of an earlier client id
//! is not sent, because the error status would look like another loss of state, and another new client id would expire
//! the opens of all other workers.

use super::delegations::CALLBACK_SLOTS;
use super::fifo_mutex::FifoMutex;
use super::listener::Listener;
use super::slots::{Session, callbacks_are_down};
use super::{Call, Client, Event, Permit, RetryState, StatePart};
use crate::rpc::RpcError;
use crate::v4::blocking::{exchange_args, session_args, set_client_id_args, verifier};
use crate::v4::compound::{Compound, NfsError, Results};
use crate::v4::operations::{
    BACK, BindArgs, BindConnToSession, CreateSession, DestroySession, ExchangeId, FORE_OR_BOTH,
    ReclaimComplete, Renew, SetClientId, SetClientIdConfirm,
};
use crate::v4::state::{BACK_CHANNEL, CONFIRMED};
use crate::v4::types::Status;
use plimsoll_measure::Nanos;
use rustix::io::Errno;
use std::cell::Cell;
use std::rc::Rc;

/// The pause after a failed attempt to bind a connection for callbacks, in nanoseconds.
const REBIND_PAUSE_NS: Nanos = 1_000_000_000;

/// The part of the client's state that the client must re-establish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LostState {
    Nothing,
    Session,
    /// The session, and the sequence number of the next CREATE_SESSION.
    Sequence,
    Client,
}

/// The client's identity at the server.
pub(super) struct Identity {
    /// The verifier of the client; new for each client, and on 4.0 for each establishment of the
    /// client id.
    verifier: Cell<[u8; 8]>,
    client: Cell<u64>,
    /// The client id of the current client epoch.
    established_client: Cell<Option<u64>>,
    /// The sequence number of the client's next CREATE_SESSION (4.1).
    sequence: Cell<u32>,
    lost: Cell<LostState>,
    /// The number of times that the client has established its client id or its session.
    session_epoch: Cell<u64>,
    /// The number of times that the client has established its client id; opens and locks of an earlier client epoch
    /// are lost.
    client_epoch: Cell<u64>,
    /// Held by the worker that establishes the state, while the other workers wait.
    creation_mutex: FifoMutex,
    /// The time and the error of the last failed attempt.
    failed: Cell<Option<(Nanos, NfsError)>>,
}

impl Identity {
    pub(super) fn new() -> Self {
        Self {
            verifier: Cell::new(verifier()),
            client: Cell::new(0),
            established_client: Cell::new(None),
            sequence: Cell::new(0),
            lost: Cell::new(LostState::Client),
            session_epoch: Cell::new(0),
            client_epoch: Cell::new(0),
            creation_mutex: FifoMutex::default(),
            failed: Cell::new(None),
        }
    }

    pub(super) fn session_epoch(&self) -> u64 {
        self.session_epoch.get()
    }

    pub(super) fn client_epoch(&self) -> u64 {
        self.client_epoch.get()
    }

    /// Counts an established session; `new_client` if the server has no earlier state of the
    /// client.
    fn established(&self, new_client: bool) {
        self.established_client.set(Some(self.client.get()));
        self.session_epoch.set(self.session_epoch.get() + 1);
        self.client_epoch
            .set(self.client_epoch.get() + u64::from(new_client));
    }
}

/// The part of the client's state that the server has lost, by the status of a call. On 4.0, NFS4ERR_EXPIRED concerns
/// the client. On 4.1, NFS4ERR_EXPIRED concerns an open, and the loss of the client is reported for the session.
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

/// A guard that marks a background task as ended when the task returns or is dropped.
struct RunningTask(Rc<Cell<bool>>);

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.set(false);
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

    /// Notes the lost state that a status reports, unless the state was re-established since the
    /// call was made, in `session_epoch`.
    pub(super) fn note_lost_state(&self, status: Status, session_epoch: u64) {
        let identity = &self.0.identity;
        if let Some(lost) = lost_state_of(status, self.minor())
            && identity.session_epoch.get() == session_epoch
        {
            identity.lost.set(identity.lost.get().max(lost));
        }
    }

    /// Checks that the client was not re-established since the epoch `client_epoch`.
    ///
    /// # Errors
    /// `STALE_STATEID`, the status of a server that has lost the client.
    pub(super) fn check_client_epoch(&self, client_epoch: u64) -> Result<(), NfsError> {
        match client_epoch == self.0.identity.client_epoch() {
            true => Ok(()),
            false => Err(NfsError::Status(None, Status::StaleStateId)),
        }
    }

    /// Establishes client id and session if the client has none, or if the server has lost the client id or the session
    /// (RFC 7530, 9.1.1 and RFC 8881, 2.4).
    ///
    /// # Errors
    /// The error of the call that failed to establish the client's state; the workers that waited for the attempt get
    /// the error too.
    pub async fn ready(&self) -> Result<(), NfsError> {
        self.keep_lease();
        if self.is_ready() {
            return Ok(());
        }
        let identity = &self.0.identity;
        let since = self.0.lane.now();
        let _guard = identity.creation_mutex.acquire().await;
        if self.is_ready() {
            return Ok(());
        }
        if let Some((when, e)) = identity.failed.get()
            && when >= since
        {
            return Err(e);
        }
        self.establish()
            .await
            .inspect_err(|e| identity.failed.set(Some((self.0.lane.now(), *e))))
    }

    async fn establish(&self) -> Result<(), NfsError> {
        let identity = &self.0.identity;
        let since = self.0.lane.now();
        let first = identity.session_epoch.get() == 0;
        if identity.lost.get() == LostState::Nothing {
            // The session is replaced because the seqids of its slots are in doubt.
            identity.lost.set(LostState::Session);
        }
        if let Some(session) = self.0.session.take() {
            session.end();
            if identity.lost.get() == LostState::Session {
                self.0.replaced_sessions.borrow_mut().push(session);
            }
        }
        let mut retries = RetryState::default();
        loop {
            let done = match self.0.spec.minor {
                0 => self.establish_client().await,
                _ => self.establish_session().await,
            };
            match done {
                Ok(()) => break,
                Err(e) => self.wait_to_retry(e, &mut retries).await?,
            }
        }
        identity.lost.set(LostState::Nothing);
        if !first {
            self.event(Event::Recovered, since);
        }
        Ok(())
    }

    /// Calls SETCLIENTID and SETCLIENTID_CONFIRM (RFC 7530, 9.1.1).
    async fn establish_client(&self) -> Result<(), NfsError> {
        let identity = &self.0.identity;
        let listener = self.0.listener.as_ref().map_err(|e| {
            let errno = Errno::from_io_error(e).unwrap_or(Errno::IO);
            NfsError::Rpc(RpcError::Connection(errno))
        })?;
        if identity.session_epoch.get() > 0 {
            // A new verifier makes a server that has lost a part of the state discard the rest,
            // including the seqids of owners (RFC 7530, 16.33.5).
            identity.verifier.set(verifier());
        }
        let callbacks = listener.as_ref().map(Listener::address);
        let args = set_client_id_args(&self.0.spec.id, identity.verifier.get(), callbacks);
        let set = self.call_outside_session::<SetClientId, _>(Call::SetClientId, &args, |set| set);
        let set = set.await?;
        let confirm = Call::SetClientIdConfirm;
        self.call_outside_session::<SetClientIdConfirm, _>(confirm, &set, |()| ())
            .await?;
        identity.client.set(set.client);
        identity.established(true);
        self.note_established(StatePart::ClientId);
        let refused = self.reclaim().await?;
        self.reopen_by_name(refused).await
    }

    /// Calls EXCHANGE_ID if necessary, and CREATE_SESSION (RFC 8881, 2.10.8 and 8.4).
    async fn establish_session(&self) -> Result<(), NfsError> {
        let identity = &self.0.identity;
        let mut keeps_state = true;
        if identity.lost.get() >= LostState::Sequence {
            let args = exchange_args(&self.0.spec.id, identity.verifier.get());
            let exchanged =
                self.call_outside_session::<ExchangeId, _>(Call::ExchangeId, &args, |e| {
                    (e.client, e.sequence, e.flags & CONFIRMED != 0)
                });
            let (client, sequence, is_confirmed) = exchanged.await?;
            identity.client.set(client);
            keeps_state = is_confirmed && identity.established_client.get() == Some(client);
            if !keeps_state {
                identity.lost.set(LostState::Client);
            }
            identity.sequence.set(sequence);
        }
        let new_client = identity.lost.get() == LostState::Client;
        let spec = &self.0.spec;
        let sequence = identity.sequence.get();
        let mut args = session_args(self.id(), sequence, spec.slots, spec.max_message_bytes);
        if spec.delegations {
            args.flags = BACK_CHANNEL;
            args.back.requests = CALLBACK_SLOTS;
        }
        let made =
            self.call_outside_session::<CreateSession, _>(Call::CreateSession, &args, |made| made);
        let made = made.await;
        if let Err(NfsError::Status(_, Status::SeqMisordered)) = made {
            // EXCHANGE_ID returns the sequence number that the server expects, and whether the server still has the
            // client. If the server also refuses the sequence number from EXCHANGE_ID, the client becomes a new client,
            // with a new verifier.
            let lost = match identity.lost.get() {
                LostState::Nothing | LostState::Session => LostState::Sequence,
                LostState::Sequence => {
                    identity.verifier.set(verifier());
                    LostState::Client
                }
                LostState::Client => LostState::Client,
            };
            identity.lost.set(lost);
        }
        let made = made?;
        identity.sequence.set(sequence.wrapping_add(1));
        let slots = made.fore.requests.clamp(1, spec.slots);
        self.0.delegations.begin_session();
        *self.0.session.borrow_mut() = Some(Session::new(made.session, slots));
        identity.established(!keeps_state);
        if !keeps_state {
            self.note_established(StatePart::ClientId);
        }
        self.note_established(StatePart::Session { slots });
        if new_client {
            let refused = self.reclaim().await?;
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
            // Other opens are allowed only after RECLAIM_COMPLETE (RFC 8881, 18.51.3).
            self.reopen_by_name(refused).await?;
        }
        Ok(())
    }

    /// Whether a status reports the loss of the client or its session, rather than of a single open
    /// file.
    pub(super) fn is_of_client(&self, status: Status) -> bool {
        lost_state_of(status, self.minor()).is_some()
    }

    /// Makes a call while the client's state is being established.
    pub(super) async fn call_during_setup<R>(
        &self,
        what: Call,
        build: impl Fn(&mut Compound<'_>),
        take: impl FnOnce(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        let permit = self.permit_during_setup().await?;
        self.send(what, permit, build).done(take).await
    }

    /// Waits for a slot for a call that establishes the client's state; 4.0 has no slots.
    ///
    /// # Errors
    /// `BADSESSION` if the session is lost during the wait.
    async fn permit_during_setup(&self) -> Result<Permit, NfsError> {
        if self.minor() == 0 {
            return Ok(Permit(None));
        }
        let lost = NfsError::Status(None, Status::BadSession);
        let session = self.0.session.borrow().clone().ok_or(lost)?;
        let slot = session.slot().await.ok_or(lost)?;
        Ok(Permit(Some(slot)))
    }

    /// Starts the task that renews the lease, unless the task is running.
    pub(super) fn keep_lease(&self) {
        if self.0.renewed.replace(true) {
            return;
        }
        self.listen();
        let inner = Rc::downgrade(&self.0);
        let guard = RunningTask(self.0.renewed.clone());
        let (lane, third) = (self.0.lane.clone(), self.0.spec.lease / 3);
        self.0.lane.spawn_background(Box::pin(async move {
            let _guard = guard;
            if let Some(inner) = inner.upgrade()
                && inner.spec.minor > 0
            {
                // The worker with the first call gets the error.
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

    /// Binds a connection for callbacks if the server reports that the session has none (RFC 8881,
    /// 18.34).
    pub(super) fn keep_callbacks(&self) {
        let session = self.0.session.borrow().clone();
        let Some(session) = session.filter(|s| callbacks_are_down(s.status.get())) else {
            return;
        };
        if !self.0.spec.delegations || self.0.binding.replace(true) {
            return;
        }
        let inner = Rc::downgrade(&self.0);
        let guard = RunningTask(self.0.binding.clone());
        self.0.lane.spawn_background(Box::pin(async move {
            let Some(inner) = inner.upgrade() else {
                return;
            };
            let client = Self(inner);
            let args = BindArgs {
                session: session.id,
                direction: FORE_OR_BOTH,
                rdma: false,
            };
            let bind = Call::BindConnToSession;
            let bound = client
                .call_outside_session::<BindConnToSession, _>(bind, &args, |bound| bound.direction);
            match bound.await {
                Ok(direction) if direction & BACK != 0 => session.status.set(0),
                // Without callbacks, the server cannot recall a delegation, and revokes the delegation. A pause after a
                // failed BIND_CONN_TO_SESSION limits the number of calls.
                Ok(_) | Err(_) => {
                    let lane = client.0.lane.clone();
                    drop(client);
                    lane.uncancellable_sleep_until(lane.now() + REBIND_PAUSE_NS)
                        .await;
                }
            }
            drop(guard);
        }));
    }

    /// Ends replaced sessions without calls in flight, because the server keeps the cached replies
    /// of their slots (RFC 8881, 18.37).
    async fn destroy_replaced_sessions(&self) {
        let replaced = self.0.replaced_sessions.take().into_iter();
        let (idle, busy) = replaced.partition::<Vec<_>, _>(|s| s.is_idle());
        *self.0.replaced_sessions.borrow_mut() = busy;
        for session in idle {
            let end = Call::DestroySession;
            let ended = self.call_outside_session::<DestroySession, _>(end, &session.id, |()| ());
            // An error is ignored: the server has no such session, or ends the session with the lease.
            let _ = ended.await;
        }
    }

    /// Renews the lease by RENEW or SEQUENCE, unless a worker's call in the session has renewed the lease.
    async fn renew(&self) {
        if self.id() == 0 || self.0.lane.now() >= self.0.lane.deadline() {
            return;
        }
        self.destroy_replaced_sessions().await;
        let session = self.0.session.borrow().clone();
        // The calls of the workers get and report the same errors.
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
