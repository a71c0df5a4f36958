//! Owners of opens, whose operations are numbered on 4.0 (RFC 7530, 9.1.7).

use super::*;

/// An owner of opens, which on 4.0 does one thing at a time (RFC 7530, 9.1.7).
pub struct OpenOwner {
    pub(super) mutex: FifoMutex,
    /// What the server knows it by now.
    pub(super) known: RefCell<Rc<OpenOwnerState>>,
}

/// What a server knows an owner by.
pub(in super::super) struct OpenOwnerState {
    pub(super) number: u64,
    pub(super) name: String,
    /// Number of the next operation (4.0).
    pub(super) seqid: Cell<u32>,
    /// The last operation got no answer, so that the server may not have counted it.
    doubtful: Cell<bool>,
    /// Client that the number is of.
    session_epoch: Cell<u64>,
}

impl OpenOwnerState {
    /// A client that is new to the server has new owners.
    pub(super) fn begin(&self, generation: u64) {
        if self.session_epoch.replace(generation) != generation {
            self.seqid.set(0);
            self.doubtful.set(false);
        }
    }

    /// Counts an operation that was made with the owner's number, as the server does. `true`: it is
    /// to be made again, since the server has not counted the one before it.
    ///
    /// Of one without an answer it is supposed that it was counted: with the same number the server
    /// would take the next one for it, and give the answer to it (RFC 7530, 9.1.8).
    pub(super) fn advance_seqid<R>(&self, done: &Result<R, NfsError>, op: Op) -> bool {
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
    pub(super) fn name(&self) -> Rc<OpenOwnerState> {
        self.known.borrow().clone()
    }
}

impl Client {
    /// An owner of opens. Those with the same turns do one thing at a time on 4.0, whichever lanes
    /// they are of.
    #[must_use]
    pub fn owner(&self, turns: FifoMutex) -> Rc<OpenOwner> {
        Rc::new(OpenOwner {
            mutex: turns,
            known: RefCell::new(self.new_name()),
        })
    }

    /// A number that no owner of the client has.
    pub(in super::super) fn next_number(&self) -> u64 {
        let number = self.0.opens.owners.get();
        self.0.opens.owners.set(number + 1);
        number
    }

    pub(super) fn new_name(&self) -> Rc<OpenOwnerState> {
        let number = self.next_number();
        Rc::new(OpenOwnerState {
            number,
            name: format!("owner {number}"),
            seqid: Cell::new(0),
            doubtful: Cell::new(false),
            session_epoch: Cell::new(0),
        })
    }

    /// Waits until it is the owner's turn; on 4.1 it always is.
    pub(in super::super) async fn acquire_owner(&self, turns: &FifoMutex) -> Option<FifoGuard> {
        if self.minor() > 0 {
            return None;
        }
        let since = self.0.lane.now();
        let mut waiting = std::pin::pin!(turns.acquire());
        let mut waited = false;
        let turn = std::future::poll_fn(|context| {
            let polled = waiting.as_mut().poll(context);
            waited |= polled.is_pending();
            polled
        })
        .await;
        if waited {
            self.event(Event::WaitedForOwner, since);
        }
        Some(turn)
    }

    /// Makes a call in which an owner's number has its part. It must be the owner's turn.
    pub(in super::super) async fn call_with_seqid<R>(
        &self,
        what: Call,
        of: (Op, &OpenOwnerState),
        build: impl Fn(&mut Compound<'_>, u32),
        take: impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        self.call_with_seqid_unless(what, of, |_| false, build, take)
            .await
    }

    /// The same; what fails with a status that `unless` is true of is not tried again.
    pub(super) async fn call_with_seqid_unless<R>(
        &self,
        what: Call,
        (op, owner): (Op, &OpenOwnerState),
        unless: impl Fn(Status) -> bool,
        build: impl Fn(&mut Compound<'_>, u32),
        mut take: impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, NfsError> {
        let mut patience = RetryState::default();
        loop {
            self.ready().await?;
            let permit = self.permit().await?;
            let generation = self.0.identity.session_epoch();
            owner.begin(generation);
            let seqid = owner.seqid.get();
            let build = |c: &mut Compound<'_>| build(c, seqid);
            let done = self.send(what, permit, build).done(&mut take).await;
            if owner.session_epoch.get() == generation && owner.advance_seqid(&done, op) {
                continue;
            }
            match done {
                Err(e) if !e.status().is_some_and(&unless) => {
                    self.wait_to_retry(e, &mut patience).await?;
                }
                done => return done,
            }
        }
    }
}

/// Whether the server has counted an owner's operation (RFC 7530, 9.1.7).
pub(in super::super) fn advances_seqid<R>(done: &Result<R, NfsError>, op: Op) -> bool {
    let Err(e) = done else {
        return true;
    };
    match e {
        NfsError::Status(Some(at), status) if *at == op => !matches!(
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
        // What comes before it kept it from being reached; what comes after did not.
        NfsError::Status(Some(at), _) => !matches!(at, Op::PutFh | Op::Sequence),
        NfsError::Status(None, _) | NfsError::Rpc(_) => false,
    }
}
