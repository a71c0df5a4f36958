//! Closing files.

use super::*;

impl Client {
    /// Closes a file (RFC 7530, 16.2 and 16.19): the owner's last open file by CLOSE; otherwise by
    /// OPEN_DOWNGRADE if the remaining open files need less access, or without a call. Returns whether the close sent a
    /// call.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub async fn close(&self, file: &OpenFile) -> Result<bool, NfsError> {
        if file.closed.replace(true) {
            return Ok(false);
        }
        let state = &file.state;
        if state.is_served() {
            state.remove_file(file.access);
            if !state.moving.get() {
                self.event(Event::Used, self.0.lane.now());
                if state.needed() == 0 {
                    self.forget(state);
                }
            }
            return Ok(false);
        }
        let closed = {
            let _guard = self.acquire_owner(&state.owner).await;
            state.remove_file(file.access);
            match state.needed() {
                0 => self.close_last(state).await.map(|()| true),
                needed if needed != state.access.get() && state.modes.get() >> needed & 1 == 1 => {
                    self.downgrade(state).await.map(|()| true)
                }
                // OPEN_DOWNGRADE may only return to an access that was requested by an OPEN.
                _ => Ok(false),
            }
        };
        let released = self.release_locks(file).await;
        Ok(closed? | released?)
    }

    /// Reduces the access of an open to the access that its remaining open files need. Each attempt of OPEN_DOWNGRADE
    /// determines the needed access anew, because on 4.1 other workers may open the file between two attempts.
    async fn downgrade(&self, state: &OpenState) -> Result<(), NfsError> {
        if let Some(e) = state.lost.get() {
            return Err(e);
        }
        let build = |c: &mut Compound<'_>, seqid| {
            // From OPEN_DOWNGRADE on, a worker that needs the former access must call OPEN instead of sharing the
            // open's stateid.
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
        let client_epoch = || state.client_epoch.get();
        let done = self.call_with_seqid(Call::OpenDowngrade, of, Some(&client_epoch), build, take);
        match done.await {
            Ok((new, _)) => {
                state.renew(new);
                Ok(())
            }
            // CLOSE of the last open file ended the open while OPEN_DOWNGRADE was in flight, so the downgrade is not
            // needed.
            Err(NfsError::Status(..)) if state.needed() == 0 => Ok(()),
            Err(e) => Err(state.lost.get().unwrap_or(e)),
        }
    }

    /// Closes an open at the server.
    pub(in crate::v4::client) async fn close_last(
        &self,
        state: &Rc<OpenState>,
    ) -> Result<(), NfsError> {
        // An open that is no longer in the table is not reopened by state recovery.
        self.forget(state);
        if let Some(e) = state.lost.get() {
            return Err(e);
        }
        let mut tries = 0;
        loop {
            match self.call_close(state).await {
                // On 4.1, the server has executed an OPEN by the same owner first, and the OPEN
                // continues this open; on 4.0, the OPEN would have waited for the owner's mutex.
                Err(NfsError::Status(Some(Op::Close), Status::OldStateId)) if tries < 8 => {
                    if self.is_continued(state) {
                        return Ok(());
                    }
                    tries += 1;
                    self.pause(CLOSE_RETRY_PAUSE_NS << tries).await?;
                }
                done => return done,
            }
        }
    }

    fn forget(&self, state: &Rc<OpenState>) {
        let mut all = self.0.opens.known.borrow_mut();
        let known = all.get(&state.key());
        if known.is_some_and(|s| s.as_ptr() == Rc::as_ptr(state)) {
            all.remove(&state.key());
        }
    }

    /// Whether another open of the client has the same stateid.
    fn is_continued(&self, state: &OpenState) -> bool {
        let all = self.0.opens.known.borrow();
        let known = all.get(&state.key()).and_then(Weak::upgrade);
        known.is_some_and(|s| s.state.get().other == state.state.get().other)
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
        let of = (Op::Close, &*state.owner);
        let client_epoch = || state.client_epoch.get();
        let closed = self.call_of_open(Call::Close, of, &client_epoch, build, take);
        match closed.await {
            // The loss of the open has closed the file.
            Err(NfsError::Status(Some(Op::Close) | None, status)) if is_lost_open(status) => Ok(()),
            closed => closed,
        }
    }
}
