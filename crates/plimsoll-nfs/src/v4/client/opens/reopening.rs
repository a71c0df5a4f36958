//! Opening again what a server has lost (RFC 7530, 9.6.2 and RFC 8881, 8.4.2).

use super::*;

impl Client {
    /// Opens again what was open, after the server has lost it (RFC 7530, 9.6.2 and RFC 8881,
    /// 8.4.2): as it was before, if the server still waits for that. Gives what it does not let
    /// be opened so.
    pub(in super::super) async fn reclaim(&self) -> Result<Vec<Rc<State>>, NfsError> {
        let all: Vec<Rc<State>> = {
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
        all: Vec<Rc<State>>,
    ) -> Result<(), NfsError> {
        for state in all {
            let done = self.reopen(&state, true).await;
            self.reopened(&state, done)?;
        }
        Ok(())
    }

    /// Opens by its name what a delegation served that the server has taken away.
    pub(in super::super) async fn open_instead(&self, state: &State) {
        let _turn = self.turn(&state.turns).await;
        if state.needed() == 0 || state.served.borrow().is_none() {
            return;
        }
        let done = self.reopen(state, true).await;
        state.served.take();
        if let Err(e) = self.reopened(state, done) {
            state.lost.set(Some(e));
        }
    }

    fn reopened(&self, state: &State, done: Result<StateId, NfsError>) -> Result<(), NfsError> {
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

    async fn reopen(&self, state: &State, by_name: bool) -> Result<StateId, NfsError> {
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
                let confirmed = self.inside(
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
        state: &State,
        at: Handle,
        claim: Claim<'_>,
    ) -> Result<Given, NfsError> {
        let owner = &state.owner;
        let mut patience = Patience::new();
        loop {
            let generation = self.0.identity.generation();
            owner.begin(generation);
            let seqid = owner.seqid.get();
            let args = OpenArgs {
                seqid,
                access: state.access.get() | self.unwanted(),
                deny: 0,
                owner: self.owner_of(owner),
                how: OpenHow::Existing,
                claim,
            };
            let done = self
                .inside(
                    Call::Open,
                    |c| {
                        c.add::<PutFh>(&at).add::<Open>(&args);
                        c.add::<GetFh>(&());
                    },
                    |r| {
                        r.skip::<PutFh>()?;
                        let opened = r.get::<Open>()?;
                        Ok(Given {
                            state: opened.state,
                            flags: opened.flags,
                            file: r.get::<GetFh>()?,
                            attributes: Attributes::default(),
                            offer: Offer::of(&opened.delegation),
                        })
                    },
                )
                .await;
            owner.count(&done, Op::Open);
            match done {
                Err(e @ NfsError::Status(_, Status::Delay | Status::Grace)) => {
                    // A server that waits for reclaims takes no other open meanwhile.
                    self.again(e, generation, &mut patience).await?;
                }
                done => return done,
            }
        }
    }
}
