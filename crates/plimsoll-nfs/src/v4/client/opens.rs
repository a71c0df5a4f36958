//! Opening files (RFC 7530, 9.1 and 9.9).

mod closing;
mod reopening;

use super::delegations::OfferedDelegation;
use super::open_state::{Delegation, OpenFile, OpenState};
use super::owners::{OpenOwner, OpenOwnerState, is_lost_open};
use super::{Call, Client, Event, MAX_RECOVERIES, RetryState};
use crate::v4::attributes::{Attributes, Bitmap, number};
use crate::v4::compound::{Compound, NfsError, Results};
use crate::v4::operations::{Close, GetAttr, GetFh, Op, Open, OpenConfirm, OpenDowngrade, PutFh};
use crate::v4::state::{
    Claim, CloseArgs, ConfirmArgs, CreateHow, DowngradeArgs, MUST_CONFIRM, OpenArgs,
};
use crate::v4::types::{Handle, Owner, StateId, Status, Text};
use std::cell::Cell;
use std::rc::{Rc, Weak};

/// The attributes that an OPEN compound requests.
const OPEN_ATTRIBUTES: Bitmap = Bitmap::of(&[number::KIND, number::CHANGE, number::SIZE]);

/// The pause before the repetition of a CLOSE that an OPEN of the same file has overtaken, in
/// nanoseconds.
const CLOSE_RETRY_PAUSE_NS: u64 = 2_000_000;

/// The result of an OPEN, without borrowed data.
struct OpenResult {
    state: StateId,
    flags: u32,
    file: Handle,
    attributes: Attributes,
    offer: OfferedDelegation,
}

impl OpenResult {
    /// Reads the results of PUTFH, OPEN and GETFH.
    fn read(r: &mut Results<'_>) -> Result<Self, NfsError> {
        r.skip::<PutFh>()?;
        let opened = r.get::<Open>()?;
        Ok(Self {
            state: opened.state,
            flags: opened.flags,
            offer: OfferedDelegation::of(&opened.delegation),
            file: r.get::<GetFh>()?,
            attributes: Attributes::default(),
        })
    }
}

/// Reads the results of PUTFH and OPEN_CONFIRM.
fn confirmed(r: &mut Results<'_>) -> Result<StateId, NfsError> {
    r.skip::<PutFh>()?;
    r.get::<OpenConfirm>()
}

impl Client {
    /// Opens the file `at`, a name in a directory, for `access` (RFC 7530, 16.16), and creates a missing file if `how`
    /// is given. Returns the open file with its type, change counter and size, as far as the server returned the
    /// attributes. A file with a delegation is opened without the server.
    ///
    /// # Errors
    /// See [`NfsError`].
    pub async fn open(
        &self,
        owner: &OpenOwner,
        at: (Handle, &[u8]),
        access: u32,
        how: Option<CreateHow>,
    ) -> Result<(OpenFile, Attributes), NfsError> {
        if how.is_none()
            && let Some(delegation) = self.delegated(at, access)
            && let Some(opened) = self.open_locally(owner, at, access, delegation)
        {
            return Ok(opened);
        }
        let _guard = self.acquire_owner(&owner.state()).await;
        // The OPEN also covers the owner's opens of the file that a delegation serves.
        let all_access = access | self.served_access(owner, at);
        let _opening = self.opening();
        let given = self.open_confirmed(owner, at, all_access, how).await?;
        let state = self.opened(owner, at, (given.file, all_access), given.state);
        let file = OpenFile::new(state, access, self.minor());
        self.offered(given.offer, at, given.file, given.attributes);
        Ok((file, given.attributes))
    }

    /// Opens a file at the server, and confirms the open owner if the server requires OPEN_CONFIRM (4.0). Opens the
    /// file again if the server loses the client, and thus the open, before the confirmation (RFC 7530, 9.6.2).
    async fn open_confirmed(
        &self,
        owner: &OpenOwner,
        at: (Handle, &[u8]),
        access: u32,
        mut how: Option<CreateHow>,
    ) -> Result<OpenResult, NfsError> {
        let mut losses = 0;
        loop {
            let mut given = self.call_open(&owner.state(), at, access, how).await;
            if let Err(NfsError::Status(_, Status::BadSeqId)) = given {
                self.rename_owner(owner);
                given = self.call_open(&owner.state(), at, access, how).await;
            } else if let Err(NfsError::Rpc(_)) = given {
                self.rename_owner(owner);
            }
            let (given, client_epoch) = given?;
            let opened = ((given.state, given.flags), client_epoch);
            match self
                .confirm_if_asked(&owner.state(), given.file, opened)
                .await
            {
                Ok(state) => return Ok(OpenResult { state, ..given }),
                Err(e) if losses < MAX_RECOVERIES && e.status().is_some_and(is_lost_open) => {
                    losses += 1;
                }
                Err(e) => return Err(e),
            }
            if let Some(CreateHow::Guarded(_)) = how {
                // The first attempt has created the file.
                how = None;
            }
        }
    }

    /// The owner's open of a file, if any.
    fn known_state(&self, owner: &OpenOwner, file: Handle) -> Option<Rc<OpenState>> {
        let all = self.0.opens.known.borrow();
        all.get(&(owner.state().number, file))?.upgrade()
    }

    /// The access of an owner's opens of a file that a delegation serves.
    fn served_access(&self, owner: &OpenOwner, (dir, name): (Handle, &[u8])) -> u32 {
        let state = self
            .delegated_file(&dir, name)
            .and_then(|file| self.known_state(owner, file));
        state.filter(|s| s.is_served()).map_or(0, |s| s.needed())
    }

    /// Opens a delegated file without the server; `None` if the owner has the file open at the
    /// server with less access.
    fn open_locally(
        &self,
        owner: &OpenOwner,
        at: (Handle, &[u8]),
        access: u32,
        delegation: Rc<Delegation>,
    ) -> Option<(OpenFile, Attributes)> {
        let attributes = delegation.known_attributes();
        let state = match self.known_state(owner, delegation.file) {
            Some(known) => {
                let suffices = access & !known.access.get() == 0 && known.lost.get().is_none();
                if !known.is_served() && !suffices {
                    return None;
                }
                known
            }
            None => {
                let state = OpenState::new(owner.state(), delegation.file, at, delegation.state);
                delegation.add(&state);
                *state.served.borrow_mut() = Some(delegation);
                let mut all = self.0.opens.known.borrow_mut();
                all.insert(state.key(), Rc::downgrade(&state));
                state
            }
        };
        state.access.set(state.access.get() | access);
        self.event(Event::Used, self.0.lane.now());
        Some((OpenFile::new(state, access, self.minor()), attributes))
    }

    /// Opens a file at the server before its delegation is returned. If the server has lost the client, the reclaim of
    /// all opens covers the file.
    pub(super) async fn open_delegated(&self, state: &Rc<OpenState>, delegation: &Delegation) {
        let _guard = self.acquire_owner(&state.owner).await;
        if state.needed() == 0 || !state.is_served() {
            return;
        }
        state.moving.set(true);
        // The access of the last attempt.
        let access = Cell::new(0);
        let build = |c: &mut Compound<'_>, seqid| {
            access.set(state.needed().max(1));
            let claim = Claim::Delegated(delegation.state, Text(&state.name));
            let args = self.open_args(&state.owner, seqid, access.get(), claim);
            c.add::<PutFh>(&state.dir).add::<Open>(&args);
        };
        let take = |r: &mut Results<'_>| {
            r.skip::<PutFh>()?;
            r.get::<Open>().map(|o| (o.state, o.flags))
        };
        let of = (Op::Open, &*state.owner);
        let client_epoch = || delegation.client_epoch;
        let called = self.call_with_seqid(Call::Open, of, Some(&client_epoch), build, take);
        let opened = match called.await {
            Ok(opened) => {
                self.confirm_if_asked(&state.owner, state.file, opened)
                    .await
            }
            Err(e) => Err(e),
        };
        let served = state.served.take().is_some();
        state.moving.set(false);
        match opened {
            Ok(new) => {
                self.note_open_of(&state.owner);
                state.renew(new);
                state.client_epoch.set(self.0.identity.client_epoch());
                state.note_opened(access.get());
            }
            Err(e) if served => state.lost.set(Some(e)),
            // A concurrent reclaim has opened the file at the server, so the error of this attempt does not matter.
            Err(_) => {}
        }
        if state.needed() == 0 {
            // The last open file was closed during the call, so no caller is left for the error of CLOSE.
            let _ = self.close_last(state).await;
        }
    }

    /// Calls OPEN. Also returns the client epoch of the open.
    async fn call_open(
        &self,
        owner: &OpenOwnerState,
        (dir, name): (Handle, &[u8]),
        access: u32,
        how: Option<CreateHow>,
    ) -> Result<(OpenResult, u64), NfsError> {
        let want = self.want_flags(access);
        let build = |c: &mut Compound<'_>, seqid| {
            let args = OpenArgs {
                seqid,
                access: access | want,
                deny: 0,
                owner: self.owner_of(owner),
                how,
                claim: Claim::Name(Text(name)),
            };
            c.add::<PutFh>(&dir).add::<Open>(&args);
            c.add::<GetFh>(&()).add::<GetAttr>(&OPEN_ATTRIBUTES);
        };
        let take = |r: &mut Results<'_>| {
            let opened = OpenResult::read(r)?;
            Ok(OpenResult {
                attributes: r.get::<GetAttr>()?,
                ..opened
            })
        };
        self.call_with_seqid(Call::Open, (Op::Open, owner), None, build, take)
            .await
    }

    /// Arguments of an OPEN of an existing file that declines a further delegation.
    fn open_args<'a>(
        &self,
        owner: &'a OpenOwnerState,
        seqid: u32,
        access: u32,
        claim: Claim<'a>,
    ) -> OpenArgs<'a> {
        OpenArgs {
            seqid,
            access: access | self.no_delegation_flag(),
            deny: 0,
            owner: self.owner_of(owner),
            how: None,
            claim,
        }
    }

    fn owner_of<'a>(&self, owner: &'a OpenOwnerState) -> Owner<'a> {
        Owner {
            client: self.id(),
            name: Text(owner.name.as_bytes()),
        }
    }

    fn must_confirm(&self, flags: u32) -> bool {
        flags & MUST_CONFIRM != 0 && self.minor() == 0
    }

    /// Confirms the open owner if the flags of the OPEN reply require OPEN_CONFIRM; returns the newest stateid of the
    /// open.
    ///
    /// # Errors
    /// The statuses of [`is_lost_open`] if the server has lost the open of `client_epoch`.
    async fn confirm_if_asked(
        &self,
        owner: &OpenOwnerState,
        file: Handle,
        ((state, flags), client_epoch): ((StateId, u32), u64),
    ) -> Result<StateId, NfsError> {
        self.check_client_epoch(client_epoch)?;
        if !self.must_confirm(flags) {
            return Ok(state);
        }
        let build = |c: &mut Compound<'_>, seqid| {
            c.add::<PutFh>(&file)
                .add::<OpenConfirm>(&ConfirmArgs { state, seqid });
        };
        let of = (Op::OpenConfirm, owner);
        let state = self
            .call_of_open(Call::OpenConfirm, of, &|| client_epoch, build, confirmed)
            .await?;
        self.check_client_epoch(client_epoch)?;
        Ok(state)
    }

    /// Records that an owner has opened a file at the server.
    fn opened(
        &self,
        owner: &OpenOwner,
        at: (Handle, &[u8]),
        (file, access): (Handle, u32),
        new: StateId,
    ) -> Rc<OpenState> {
        self.note_open_of(&owner.state());
        let known = self.known_state(owner, file);
        let state = match known {
            Some(state) if state.state.get().other == new.other => {
                state.renew(new);
                state
            }
            // From now on the server knows the open.
            Some(state) if state.is_served() => {
                state.served.take();
                state.state.set(new);
                state
            }
            _ => {
                let state = OpenState::new(owner.state(), file, at, new);
                let mut all = self.0.opens.known.borrow_mut();
                all.insert(state.key(), Rc::downgrade(&state));
                state
            }
        };
        state.client_epoch.set(self.0.identity.client_epoch());
        state.note_opened(access);
        state
    }
}
