//! Reopening files whose opens the server has lost (RFC 7530, 9.6.2 and RFC 8881, 8.4.2).

use super::*;

impl Client {
    /// Whether a status reports that the server has lost or revoked a single open or delegation
    /// (RFC 7530, 9.1.4 and RFC 8881, 8.2.4).
    pub(in crate::v4::client) fn is_of_open(&self, status: Status) -> bool {
        is_lost_open(status) && !self.is_of_client(status)
    }

    /// Waits before the repetition of a failed call on an open file; `known_by` is the file's
    /// stateid at the time of the call. First reopens a file whose open or delegation the server
    /// has lost (RFC 8881, 8.4.2 and 10.4.6).
    ///
    /// # Errors
    /// `e` if the call must not be repeated, or the error of reopening the file.
    pub async fn wait_to_repeat(
        &self,
        file: &OpenFile,
        known_by: StateId,
        e: NfsError,
        retries: &mut RetryState,
    ) -> Result<(), NfsError> {
        if self.is_opened_instead(file, e).await {
            return file.state().map(|_| ());
        }
        match e.status() {
            Some(status) if self.is_of_open(status) => {
                retries.tries += 1;
                if retries.tries > MAX_RECOVERIES {
                    return Err(e);
                }
                self.reopen_lost(&file.state, known_by).await
            }
            _ => self.wait_to_retry(e, retries).await,
        }
    }

    /// Reopens by name a file whose open the server has lost, unless the open's stateid differs from the lost stateid
    /// `known_by` because another worker has reopened the file.
    async fn reopen_lost(&self, state: &OpenState, known_by: StateId) -> Result<(), NfsError> {
        let since = self.0.lane.now();
        let _guard = self.acquire_owner(&state.owner).await;
        self.ready().await?;
        if state.is_served() || state.state.get() != known_by || state.lost.get().is_some() {
            return Ok(());
        }
        let done = self.reopen(state, true).await;
        if let Err(NfsError::Status(_, status)) = done
            && self.is_of_client(status)
        {
            // The next call re-establishes the client's state and reopens all files.
            return Ok(());
        }
        self.reopened(state, done)?;
        if state.lost.get().is_none() {
            self.event(Event::Recovered, since);
        }
        Ok(())
    }

    /// Reclaims all opens of the client after the server has lost the client's state (RFC 7530, 9.6.2 and RFC 8881,
    /// 8.4.2). The result lists the opens of which the server refused the reclaim.
    pub(in crate::v4::client) async fn reclaim(&self) -> Result<Vec<Rc<OpenState>>, NfsError> {
        let all: Vec<Rc<OpenState>> = {
            let known = self.0.opens.known.borrow();
            known.values().filter_map(Weak::upgrade).collect()
        };
        // Opens served by delegations are reclaimed at the server, too.
        self.lose_delegations();
        let mut refused = Vec::new();
        for state in all {
            if state.needed() == 0 {
                // All open files of this open were closed during the reclaim, so the server need not learn of the open.
                continue;
            }
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

    /// Reopens by name the files that could not be reclaimed.
    pub(in crate::v4::client) async fn reopen_by_name(
        &self,
        all: Vec<Rc<OpenState>>,
    ) -> Result<(), NfsError> {
        for state in all {
            let done = self.reopen(&state, true).await;
            self.reopened(&state, done)?;
        }
        Ok(())
    }

    /// Opens by name a file served by a delegation that the server has revoked.
    pub(in crate::v4::client) async fn open_instead(&self, state: &OpenState) {
        let _guard = self.acquire_owner(&state.owner).await;
        if state.needed() == 0 || !state.is_served() {
            return;
        }
        let since = self.0.lane.now();
        let done = self.reopen(state, true).await;
        if done.is_err() && !state.is_served() {
            // A reclaim by another worker has already opened the file at the server.
            return;
        }
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
                state.client_epoch.set(self.0.identity.client_epoch());
                state.lost.set(None);
                state.modes.set(1 << state.access.get());
            }
            // The error concerns only this file.
            Err(e @ NfsError::Status(_, status)) if !self.is_of_client(status) => {
                state.lost.set(Some(e));
            }
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// Opens a file at the server after the loss of its open: by name, or by CLAIM_PREVIOUS during a reclaim.
    ///
    /// # Errors
    /// `STALE_STATEID` if another worker has re-established the client and reclaimed the file.
    async fn reopen(&self, state: &OpenState, by_name: bool) -> Result<StateId, NfsError> {
        let (at, claim) = match by_name {
            false => (state.file, Claim::Previous(0)),
            true => (state.dir, Claim::Name(Text(&state.name))),
        };
        let (given, client_epoch) = self.reopen_as(state, at, claim).await?;
        self.check_client_epoch(client_epoch)?;
        // A server may grant a delegation with an OPEN that wants none; the client returns the delegation at once.
        self.decline(given.offer, (state.dir, &state.name), given.file);
        if given.file != state.file {
            return Err(NfsError::Status(Some(Op::Open), Status::Stale));
        }
        if !self.must_confirm(given.flags) {
            return Ok(given.state);
        }
        let (owner, state) = (&state.owner, given.state);
        let seqid = owner.seqid.get();
        owner.seqid.set(seqid.wrapping_add(1));
        let build = |c: &mut Compound<'_>| {
            c.add::<PutFh>(&given.file)
                .add::<OpenConfirm>(&ConfirmArgs { state, seqid });
        };
        let state = self
            .call_during_setup(Call::OpenConfirm, build, confirmed)
            .await?;
        self.check_client_epoch(client_epoch)?;
        Ok(state)
    }

    /// Calls OPEN. Also returns the client epoch of the open.
    async fn reopen_as(
        &self,
        state: &OpenState,
        at: Handle,
        claim: Claim<'_>,
    ) -> Result<(OpenResult, u64), NfsError> {
        let owner = &state.owner;
        let mut retries = RetryState::default();
        loop {
            let session_epoch = self.0.identity.session_epoch();
            owner.begin(session_epoch);
            let args = self.open_args(owner, owner.seqid.get(), state.access.get(), claim);
            let build = |c: &mut Compound<'_>| {
                c.add::<PutFh>(&at).add::<Open>(&args);
                c.add::<GetFh>(&());
            };
            let client_epoch = self.0.identity.client_epoch();
            let done = self.call_during_setup(Call::Open, build, OpenResult::read);
            let done = done.await;
            owner.advance_seqid(session_epoch, &done, Op::Open);
            match done {
                Err(e @ NfsError::Status(_, Status::Delay | Status::Grace)) => {
                    // During its grace period, the server refuses other opens.
                    self.wait_to_retry(e, &mut retries).await?;
                }
                done => return done.map(|given| (given, client_epoch)),
            }
        }
    }
}
