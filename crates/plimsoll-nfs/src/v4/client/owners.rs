//! Open owners, whose operations are numbered on 4.0 (RFC 7530, 9.1.7).

use super::fifo_mutex::{FifoGuard, FifoMutex};
use super::{Call, Client, Event, RetryState};
use crate::v4::compound::{Compound, NfsError, Results};
use crate::v4::operations::Op;
use crate::v4::types::Status;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The epoch of the client that a stateid belongs to when it is sent.
type EpochOf<'a> = &'a dyn Fn() -> u64;

/// An open owner, which on 4.0 does one operation at a time (RFC 7530, 9.1.7).
pub struct OpenOwner {
    /// The state under its current name.
    state: RefCell<Rc<OpenOwnerState>>,
}

/// An open owner under one name, by which the server knows it.
pub(super) struct OpenOwnerState {
    /// Held during each of its operations on 4.0.
    mutex: FifoMutex,
    pub(super) number: u64,
    pub(super) name: String,
    /// The seqid of the next operation (4.0).
    pub(super) seqid: Cell<u32>,
    /// Whether the last operation got no reply, so that the server may not have counted it.
    doubtful: Cell<bool>,
    /// The epoch of the session that the seqid belongs to.
    session_epoch: Cell<u64>,
}

impl OpenOwnerState {
    /// Resets the seqid if the client's state was re-established: its owners are new to the server.
    pub(super) fn begin(&self, session_epoch: u64) {
        if self.session_epoch.replace(session_epoch) != session_epoch {
            self.seqid.set(0);
            self.doubtful.set(false);
        }
    }

    /// Counts an operation of the owner as the server does. Returns whether to repeat it because
    /// the server has not counted the one before it.
    ///
    /// An operation without a reply is assumed to be counted: the server would take the next one
    /// with the same seqid for a retransmission, and send the same reply (RFC 7530, 9.1.8). One that was sent
    /// in an earlier `session_epoch` says nothing about the seqid of this one.
    pub(super) fn advance_seqid<R>(
        &self,
        session_epoch: u64,
        done: &Result<R, NfsError>,
        op: Op,
    ) -> bool {
        if self.session_epoch.get() != session_epoch {
            return false;
        }
        let seqid = self.seqid.get();
        if let Err(NfsError::Rpc(_)) = done {
            self.seqid.set(seqid.wrapping_add(1));
            self.doubtful.set(true);
            return false;
        }
        if self.doubtful.replace(false)
            && let Err(NfsError::Status(_, Status::BadSeqId)) = done
        {
            self.seqid.set(seqid.wrapping_sub(1));
            return true;
        }
        if advances_seqid(done, op) {
            self.seqid.set(seqid.wrapping_add(1));
        }
        false
    }
}

impl OpenOwner {
    pub(super) fn state(&self) -> Rc<OpenOwnerState> {
        self.state.borrow().clone()
    }
}

impl Client {
    /// Creates an open owner. On 4.0 owners with the same mutex do one operation at a time,
    /// whichever lanes they belong to.
    #[must_use]
    pub fn owner(&self, mutex: FifoMutex) -> Rc<OpenOwner> {
        Rc::new(OpenOwner {
            state: RefCell::new(self.new_owner_state(mutex)),
        })
    }

    /// Returns a number that no owner or delegation of the client has.
    pub(super) fn next_number(&self) -> u64 {
        let number = self.0.opens.owners.get();
        self.0.opens.owners.set(number + 1);
        number
    }

    fn new_owner_state(&self, mutex: FifoMutex) -> Rc<OpenOwnerState> {
        let number = self.next_number();
        Rc::new(OpenOwnerState {
            mutex,
            number,
            name: format!("owner {number}"),
            seqid: Cell::new(0),
            doubtful: Cell::new(false),
            session_epoch: Cell::new(0),
        })
    }

    /// Gives an owner a new name, because the server's seqid of the current one is not known.
    pub(super) fn rename_owner(&self, owner: &OpenOwner) {
        let mutex = owner.state().mutex.clone();
        *owner.state.borrow_mut() = self.new_owner_state(mutex);
    }

    /// Waits for the mutex of an owner on 4.0; 4.1 does not need it.
    pub(super) async fn acquire_owner(&self, owner: &OpenOwnerState) -> Option<FifoGuard> {
        if self.minor() > 0 {
            return None;
        }
        let since = self.0.lane.now();
        let mut waiting = std::pin::pin!(owner.mutex.acquire());
        let mut waited = false;
        let guard = std::future::poll_fn(|context| {
            let polled = waiting.as_mut().poll(context);
            waited |= polled.is_pending();
            polled
        })
        .await;
        if waited {
            self.event(Event::WaitedForOwner, since);
        }
        Some(guard)
    }

    /// Makes a call that contains an owner's seqid. The owner's mutex must be held. Also returns the epoch of
    /// the client in which it was made: if it has a stateid, only that of the stateid, `client_epoch`.
    ///
    /// # Errors
    /// `STALE_STATEID` in another epoch, as a server that has lost the client would reply.
    pub(super) async fn call_with_seqid<R>(
        &self,
        what: Call,
        of: (Op, &OpenOwnerState),
        client_epoch: Option<EpochOf<'_>>,
        build: impl Fn(&mut Compound<'_>, u32),
        take: impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<(R, u64), NfsError> {
        let never = |_| false;
        self.call_numbered(what, of, (client_epoch, &never), build, take)
            .await
    }

    /// As [`Client::call_with_seqid`], but not repeated with an old stateid or that of a lost open.
    ///
    /// # Errors
    /// As there.
    pub(super) async fn call_of_open<R>(
        &self,
        what: Call,
        of: (Op, &OpenOwnerState),
        client_epoch: EpochOf<'_>,
        build: impl Fn(&mut Compound<'_>, u32),
        take: impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        let unless = |status| status == Status::OldStateId || is_lost_open(status);
        self.call_numbered(what, of, (Some(client_epoch), &unless), build, take)
            .await
            .map(|(done, _)| done)
    }

    /// Makes a call that contains an owner's seqid, in one epoch of the client if it belongs to one, and
    /// without retries after a status that `unless` is true of.
    async fn call_numbered<R>(
        &self,
        what: Call,
        (op, owner): (Op, &OpenOwnerState),
        (of_stateid, unless): (Option<EpochOf<'_>>, &dyn Fn(Status) -> bool),
        build: impl Fn(&mut Compound<'_>, u32),
        mut take: impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<(R, u64), NfsError> {
        let mut retries = RetryState::default();
        loop {
            self.ready().await?;
            let permit = self.permit().await?;
            if let Some(of_stateid) = of_stateid {
                self.check_client_epoch(of_stateid())?;
            }
            debug_assert!(
                self.minor() > 0 || owner.mutex.is_held(),
                "{op} of an owner whose mutex is not held"
            );
            let identity = &self.0.identity;
            let (session_epoch, client_epoch) = (identity.session_epoch(), identity.client_epoch());
            owner.begin(session_epoch);
            let seqid = owner.seqid.get();
            let build = |c: &mut Compound<'_>| build(c, seqid);
            let done = self.send(what, permit, build).done(&mut take).await;
            if owner.advance_seqid(session_epoch, &done, op) {
                continue;
            }
            match done {
                Err(e) if !e.status().is_some_and(unless) => {
                    self.wait_to_retry(e, &mut retries).await?;
                }
                done => return done.map(|done| (done, client_epoch)),
            }
        }
    }
}

/// Whether the server has counted an owner's operation (RFC 7530, 9.1.7).
pub(super) fn advances_seqid<R>(done: &Result<R, NfsError>, op: Op) -> bool {
    match done {
        Ok(_) => true,
        Err(NfsError::Status(Some(at), status)) if *at == op => !matches!(
            status,
            Status::StaleClientId
                | Status::StaleStateId
                | Status::BadStateId
                | Status::BadSeqId
                | Status::BadXdr
                | Status::Resource
                | Status::NoFileHandle
                | Status::Moved
        ),
        // An operation before it that fails keeps it from being executed; one after it does not.
        Err(NfsError::Status(Some(at), _)) => !matches!(at, Op::PutFh | Op::Sequence),
        Err(NfsError::Status(None, _) | NfsError::Rpc(_)) => false,
    }
}

/// Whether a status reports that the server has lost or revoked an open (RFC 7530, 9.1.4 and RFC 8881,
/// 8.2.4).
pub(super) fn is_lost_open(status: Status) -> bool {
    matches!(
        status,
        Status::BadStateId
            | Status::StaleStateId
            | Status::Expired
            | Status::AdminRevoked
            | Status::DelegRevoked
    )
}
