//! Open owners; on 4.0, a seqid numbers the operations of each owner (RFC 7530, 9.1.7).

use super::fifo_mutex::{FifoGuard, FifoMutex};
use super::{Call, Client, Event, RetryState, StatePart};
use crate::v4::compound::{Compound, NfsError, Results};
use crate::v4::operations::Op;
use crate::v4::types::Status;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Returns the client epoch of a stateid at the time of sending.
type EpochOf<'a> = &'a dyn Fn() -> u64;

/// An open owner of the client; on 4.0, an open owner has one operation in flight at a time (RFC 7530, 9.1.7).
pub struct OpenOwner {
    /// The state of the owner under its current name.
    state: RefCell<Rc<OpenOwnerState>>,
}

/// An open owner under one name at the server.
pub(super) struct OpenOwnerState {
    /// Held during each operation of the owner on 4.0.
    mutex: FifoMutex,
    pub(super) number: u64,
    pub(super) name: String,
    /// The seqid of the next operation (4.0).
    pub(super) seqid: Cell<u32>,
    /// Whether the last operation got no reply, so that the server may not have counted the
    /// operation.
    doubtful: Cell<bool>,
    /// The session epoch to which the seqid belongs; a new session epoch resets the seqid to 0.
    session_epoch: Cell<u64>,
    /// Whether the owner has opened a file at the server, under this name or an earlier name.
    is_established: Cell<bool>,
}

impl OpenOwnerState {
    /// Resets the seqid after the client's state was re-established: the server then does not know
    /// the owner.
    pub(super) fn begin(&self, session_epoch: u64) {
        if self.session_epoch.replace(session_epoch) != session_epoch {
            self.seqid.set(0);
            self.doubtful.set(false);
        }
    }

    /// Counts an operation of the owner, by the server's rule. Returns whether the operation must
    /// be repeated because the server has not counted the previous operation.
    ///
    /// An operation without a reply is assumed to be counted: otherwise the server would take the next operation with
    /// the same seqid for a retransmission, and send the cached reply (RFC 7530, 9.1.8). An operation of an earlier
    /// `session_epoch` does not affect the current seqid.
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
    /// Creates an open owner. On 4.0, owners with the same mutex execute one operation at a time,
    /// even across lanes.
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
            is_established: Cell::new(false),
        })
    }

    /// Records that an open owner has opened a file at the server.
    pub(super) fn note_open_of(&self, owner: &OpenOwnerState) {
        if !owner.is_established.replace(true) {
            self.note_established(StatePart::OpenOwner);
        }
    }

    /// Gives an owner a new name, because the server's seqid for the current name is unknown.
    pub(super) fn rename_owner(&self, owner: &OpenOwner) {
        let former = owner.state();
        let renamed = self.new_owner_state(former.mutex.clone());
        renamed.is_established.set(former.is_established.get());
        *owner.state.borrow_mut() = renamed;
    }

    /// Acquires the mutex of an owner on 4.0; 4.1 needs no mutex.
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

    /// Makes a call that contains an owner's seqid; the caller must hold the owner's mutex. Also returns the client
    /// epoch of the call. A call with a stateid is sent only in the stateid's epoch, `client_epoch`.
    ///
    /// # Errors
    /// `STALE_STATEID` in another epoch, the status of a server that has lost the client.
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

    /// Makes a call with the owner's seqid as [`Client::call_with_seqid`] does, but without retries after OLD_STATEID
    /// or a lost open.
    ///
    /// # Errors
    /// The errors of [`Client::call_with_seqid`].
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

    /// Makes a call that contains an owner's seqid, only in one client epoch if `of_stateid` gives an epoch, and not
    /// retried if `unless(status)` holds.
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
        // The server executes a compound up to the first failed operation: `op` follows PUTFH and SEQUENCE, and
        // precedes all other operations.
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
