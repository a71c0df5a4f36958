//! Closing what was opened.

use super::*;

impl Client {
    /// Closes a file (RFC 7530, 16.2 and 16.19): CLOSE if it was the last of its owner's,
    /// OPEN_DOWNGRADE if those that are left need less, else nothing.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub async fn close(&self, file: &OpenFile) -> Result<(), NfsError> {
        if file.closed.replace(true) {
            return Ok(());
        }
        let state = file.state.clone();
        if state.served.borrow().is_some() {
            let count = state.open_files_of(file.access);
            count.set(count.get() - 1);
            if !state.moving.get() {
                self.event(Event::Used, self.0.lane.now());
                if state.needed() == 0 {
                    self.forget((state.owner.number, state.file), &state);
                }
            }
            return Ok(());
        }
        let closed = {
            let _turn = self.acquire_owner(&state.owner_mutex).await;
            self.close_state(&state, file).await
        };
        closed.and(self.release_locks(file).await)
    }

    async fn close_state(&self, state: &Rc<OpenState>, file: &OpenFile) -> Result<(), NfsError> {
        let count = state.open_files_of(file.access);
        count.set(count.get() - 1);
        match state.needed() {
            0 => self.close_last(state).await,
            needed if needed != state.access.get() && state.modes.get() >> needed & 1 == 1 => {
                self.downgrade(state).await
            }
            // What it was not opened for by itself it cannot be opened for less to.
            _ => Ok(()),
        }
    }

    /// Opens for what is needed, which is looked at anew for each call: on 4.1 others open the file
    /// meanwhile.
    async fn downgrade(&self, state: &OpenState) -> Result<(), NfsError> {
        if let Some(e) = state.lost.get() {
            return Err(e);
        }
        let build = |c: &mut Compound<'_>, seqid| {
            let access = state.needed().max(1);
            state.access.set(access);
            state.modes.set(1 << access);
            let args = DowngradeArgs {
                state: state.state.get(),
                seqid,
                access,
                deny: 0,
            };
            c.add::<PutFh>(&state.file).add::<OpenDowngrade>(&args);
        };
        let take = |r: &mut Results<'_>| {
            r.skip::<PutFh>()?;
            r.get::<OpenDowngrade>()
        };
        let of = (Op::OpenDowngrade, &*state.owner);
        let done = self
            .call_with_seqid(Call::OpenDowngrade, of, build, take)
            .await;
        match done {
            Ok(new) => state.renew(new),
            // The last of its files was closed meanwhile, and it with it.
            Err(NfsError::Status(..)) if state.needed() == 0 => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }

    pub(super) async fn close_last(&self, state: &Rc<OpenState>) -> Result<(), NfsError> {
        let key = (state.owner.number, state.file);
        self.forget(key, state);
        if let Some(e) = state.lost.get() {
            return Err(e);
        }
        let mut tries = 0;
        loop {
            match self.call_close(state).await {
                // An OPEN of the same file and owner came before it at the server, and has what
                // was to be closed (4.1: on 4.0 it would have waited for its turn).
                Err(NfsError::Status(Some(Op::Close), Status::OldStateId)) if tries < 8 => {
                    let other = state.state.get().other;
                    if self.has(key, other) {
                        return Ok(());
                    }
                    tries += 1;
                    self.pause(CLOSE_RETRY_PAUSE_NS << tries).await?;
                }
                done => return done,
            }
        }
    }

    fn forget(&self, key: (u64, Handle), state: &Rc<OpenState>) {
        let mut all = self.0.opens.known.borrow_mut();
        if all
            .get(&key)
            .is_some_and(|s| s.as_ptr() == Rc::as_ptr(state))
        {
            all.remove(&key);
        }
    }

    fn has(&self, key: (u64, Handle), other: Other) -> bool {
        let all = self.0.opens.known.borrow();
        let known = all.get(&key).and_then(Weak::upgrade);
        known.is_some_and(|s| s.state.get().other == other)
    }

    async fn call_close(&self, state: &OpenState) -> Result<(), NfsError> {
        let build = |c: &mut Compound<'_>, seqid| {
            let args = CloseArgs {
                seqid,
                state: state.state.get(),
            };
            c.add::<PutFh>(&state.file).add::<Close>(&args);
        };
        let take = |r: &mut Results<'_>| {
            r.skip::<PutFh>()?;
            r.skip::<Close>()
        };
        // An old state id is looked at above, and not tried again.
        let of = (Op::Close, &*state.owner);
        let tried = |status| status == Status::OldStateId || is_closed_by(status);
        let closed = self.call_with_seqid_unless(Call::Close, of, tried, build, take);
        match closed.await {
            Err(NfsError::Status(Some(Op::Close), status)) if is_closed_by(status) => Ok(()),
            closed => closed,
        }
    }
}

/// Whether a status of CLOSE says that the server does not have the file open any more: with the
/// lease, the client or by its administrator it was taken away (RFC 7530, 9.1.4 and RFC 8881,
/// 8.2.4).
fn is_closed_by(status: Status) -> bool {
    matches!(
        status,
        Status::BadStateId
            | Status::StaleStateId
            | Status::Expired
            | Status::AdminRevoked
            | Status::DelegRevoked
    )
}
