//! Opening again what a server has lost (RFC 7530, 9.6.2 and RFC 8881, 8.4.2).

use super::*;

/// Times that a file is opened again for one call on it.
const MAX_REOPENS: u32 = 2;

impl Client {
    /// Whether a status says that the server has lost, or has taken away, one open or delegation
    /// (RFC 7530, 9.1.4 and RFC 8881, 8.2.4).
    pub(in super::super) fn is_of_open(&self, status: Status) -> bool {
        use Status::{AdminRevoked, BadStateId, DelegRevoked, Expired};
        matches!(status, BadStateId | Expired | AdminRevoked | DelegRevoked)
            && !self.is_of_client(status)
    }

    /// What to do about a call on an open file that failed, if `known_by` is what the server knew
    /// the file by when it was made: `Ok` to make it again. What the server has lost of the file is
    /// opened again before (RFC 8881, 8.4.2 and 10.4.6).
    ///
    /// # Errors
    /// The same, if nothing is to be done, or why it cannot be opened.
    pub async fn wait_to_repeat(
        &self,
        file: &OpenFile,
        known_by: StateId,
        e: NfsError,
        patience: &mut RetryState,
    ) -> Result<(), NfsError> {
        if self.is_opened_instead(file, e).await {
            return file.state().map(|_| ());
        }
        match e.status() {
            Some(status) if self.is_of_open(status) => {
                patience.tries += 1;
                if patience.tries > MAX_REOPENS {
                    return Err(e);
                }
                self.open_again(&file.state, known_by).await
            }
            _ => self.wait_to_retry(e, patience).await,
        }
    }

    /// Opens a file again of which the server has lost the open `known_by`, unless that was done
    /// meanwhile.
    async fn open_again(&self, state: &Rc<OpenState>, known_by: StateId) -> Result<(), NfsError> {
        let since = self.0.lane.now();
        let _turn = self.acquire_owner(&state.owner_mutex).await;
        self.ready().await?;
        let is_served = state.served.borrow().is_some();
        if is_served || state.state.get() != known_by || state.lost.get().is_some() {
            return Ok(());
        }
        let done = self.reopen(state, true).await;
        if let Err(NfsError::Status(_, status)) = done
            && self.is_of_client(status)
        {
            // The next call has all of it made anew.
            return Ok(());
        }
        self.reopened(state, done)?;
        if state.lost.get().is_none() {
            self.event(Event::Recovered, since);
        }
        Ok(())
    }

    /// Opens again what was open, after the server has lost it (RFC 7530, 9.6.2 and RFC 8881,
    /// 8.4.2): as it was before, if the server still waits for that. Gives what it does not let
    /// be opened so.
    pub(in super::super) async fn reclaim(&self) -> Result<Vec<Rc<OpenState>>, NfsError> {
        let all: Vec<Rc<OpenState>> = {
            let known = self.0.opens.known.borrow();
            known.values().filter_map(Weak::upgrade).collect()
        };
        // What delegations served is opened at the server now.
        self.lose_delegations();
        let mut refused = Vec::new();
        for state in all {
            state.served.take();
            match self.reopen(&state, false).await {
                Err(NfsError::Status(_, Status::NoGrace | Status::ReclaimBad | Status::Inval)) => {
                    refused.push(state);
                }
                done => self.reopened(&state, done)?,
            }
        }
        Ok(refused)
    }

    /// Opens by their names what could not be opened as it was before.
    pub(in super::super) async fn reopen_by_name(
        &self,
        all: Vec<Rc<OpenState>>,
    ) -> Result<(), NfsError> {
        for state in all {
            let done = self.reopen(&state, true).await;
            self.reopened(&state, done)?;
        }
        Ok(())
    }

    /// Opens by its name what a delegation served that the server has taken away.
    pub(in super::super) async fn open_instead(&self, state: &OpenState) {
        let _turn = self.acquire_owner(&state.owner_mutex).await;
        if state.needed() == 0 || state.served.borrow().is_none() {
            return;
        }
        let since = self.0.lane.now();
        let done = self.reopen(state, true).await;
        state.served.take();
        if let Err(e) = self.reopened(state, done) {
            state.lost.set(Some(e));
        }
        if state.lost.get().is_none() {
            self.event(Event::Recovered, since);
        }
    }

    fn reopened(&self, state: &OpenState, done: Result<StateId, NfsError>) -> Result<(), NfsError> {
        match done {
            Ok(new) => {
                state.state.set(new);
                state.lost.set(None);
                state.modes.set(1 << state.access.get());
            }
            // The others are not to be lost for it.
            Err(e @ NfsError::Status(_, status)) if !self.is_of_client(status) => {
                state.lost.set(Some(e));
            }
            Err(e) => return Err(e),
        }
        Ok(())
    }

    async fn reopen(&self, state: &OpenState, by_name: bool) -> Result<StateId, NfsError> {
        let (at, claim) = match by_name {
            false => (state.file, Claim::Previous(0)),
            true => (state.dir, Claim::Name(Text(&state.name))),
        };
        let given = self.reopen_as(state, at, claim).await?;
        // A server may give one although it was not wanted; it must not think that it is held.
        self.decline(given.offer, (state.dir, &state.name), given.file);
        if given.file != state.file {
            return Err(NfsError::Status(Some(Op::Open), Status::Stale));
        }
        match given.flags & MUST_CONFIRM != 0 && self.minor() == 0 {
            true => {
                let (owner, state) = (&state.owner, given.state);
                let seqid = owner.seqid.get();
                owner.seqid.set(seqid.wrapping_add(1));
                let confirmed = self.call_during_setup(
                    Call::OpenConfirm,
                    |c| {
                        c.add::<PutFh>(&given.file)
                            .add::<OpenConfirm>(&ConfirmArgs { state, seqid });
                    },
                    |r| {
                        r.skip::<PutFh>()?;
                        r.get::<OpenConfirm>()
                    },
                );
                confirmed.await
            }
            false => Ok(given.state),
        }
    }

    async fn reopen_as(
        &self,
        state: &OpenState,
        at: Handle,
        claim: Claim<'_>,
    ) -> Result<OpenResult, NfsError> {
        let owner = &state.owner;
        let mut patience = RetryState::default();
        loop {
            let generation = self.0.identity.session_epoch();
            owner.begin(generation);
            let seqid = owner.seqid.get();
            let args = OpenArgs {
                seqid,
                access: state.access.get() | self.no_delegation_flag(),
                deny: 0,
                owner: self.owner_of(owner),
                how: OpenHow::Existing,
                claim,
            };
            let done = self
                .call_during_setup(
                    Call::Open,
                    |c| {
                        c.add::<PutFh>(&at).add::<Open>(&args);
                        c.add::<GetFh>(&());
                    },
                    |r| {
                        r.skip::<PutFh>()?;
                        let opened = r.get::<Open>()?;
                        Ok(OpenResult {
                            state: opened.state,
                            flags: opened.flags,
                            file: r.get::<GetFh>()?,
                            attributes: Attributes::default(),
                            offer: OfferedDelegation::of(&opened.delegation),
                        })
                    },
                )
                .await;
            owner.advance_seqid(&done, Op::Open);
            match done {
                Err(e @ NfsError::Status(_, Status::Delay | Status::Grace)) => {
                    // A server that waits for reclaims takes no other open meanwhile.
                    self.wait_to_retry(e, &mut patience).await?;
                }
                done => return done,
            }
        }
    }
}
