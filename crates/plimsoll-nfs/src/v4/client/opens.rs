//! Opens: their owners, and what the server knows of them (RFC 7530, 9.1 and 9.9).

mod closing;
mod owners;
mod reopening;

pub use owners::OpenOwner;
pub(super) use owners::{OpenOwnerState, advances_seqid};

use super::super::attributes::{Attributes, Bitmap};
use super::super::compound::{Compound, NfsError, Results};
use super::super::operations::{GetAttr, GetFh, Op, PutFh};
use super::super::state::{
    Claim, Close, CloseArgs, ConfirmArgs, DowngradeArgs, MUST_CONFIRM, Open, OpenArgs, OpenConfirm,
    OpenDowngrade, OpenHow,
};
use super::super::types::{Handle, Other, Owner, StateId, Status, Text};
use super::delegations::{Delegation, OfferedDelegation};
use super::fifo_mutex::{FifoGuard, FifoMutex};
use super::locks::Locks;
use super::{Call, Client, Event, RetryState};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// Attributes that come with an open.
const OPEN_ATTRIBUTES: Bitmap = {
    use super::super::attributes::number::{CHANGE, KIND, SIZE};
    Bitmap::of(&[KIND, CHANGE, SIZE])
};

/// Pause before a CLOSE that an OPEN of the same file has overtaken is sent again, in nanoseconds.
const CLOSE_RETRY_PAUSE_NS: u64 = 2_000_000;

/// What is open.
#[derive(Default)]
pub(super) struct OpenTable {
    /// By owner and file.
    known: RefCell<HashMap<(u64, Handle), Weak<OpenState>>>,
    owners: Cell<u64>,
}

/// An open at the server, of one or several [`OpenFile`]s of an owner.
pub(super) struct OpenState {
    pub(super) owner: Rc<OpenOwnerState>,
    pub(super) owner_mutex: FifoMutex,
    file: Handle,
    dir: Handle,
    name: Box<[u8]>,
    pub(super) state: Cell<StateId>,
    /// What it is open for at the server.
    access: Cell<u32>,
    /// What it was opened for there each time, by bits of that number: only to one of these may it be
    /// opened for less (RFC 8881, 18.18.3).
    modes: Cell<u32>,
    /// Files that it is open for: for reading, for writing, for both.
    files: [Cell<u32>; 3],
    /// Why it was not opened again after the server had lost it.
    lost: Cell<Option<NfsError>>,
    /// The delegation that serves it, as long as the server does not know of it.
    served: RefCell<Option<Rc<Delegation>>>,
    /// It is about to be opened at the server, since its delegation goes back.
    moving: Cell<bool>,
}

/// An open file (RFC 7530, 9.9).
pub struct OpenFile {
    state: Rc<OpenState>,
    access: u32,
    minor: u32,
    closed: Cell<bool>,
    pub(super) locks: Locks,
}

impl OpenState {
    fn open_files_of(&self, access: u32) -> &Cell<u32> {
        &self.files[(access.clamp(1, 3) - 1) as usize]
    }

    /// What it has to be open for.
    fn needed(&self) -> u32 {
        let each = self.files.iter().zip(1..);
        each.filter(|(n, _)| n.get() > 0)
            .fold(0, |all, (_, access)| all | access)
    }

    /// The delegation that serves it, if one does.
    pub(super) fn delegation(&self) -> Option<Rc<Delegation>> {
        self.served.borrow().clone()
    }

    /// Takes what an answer says that it is known by. Answers may overtake each other.
    fn renew(&self, new: StateId) {
        let old = self.state.get();
        if new.other != old.other || new.seqid.wrapping_sub(old.seqid) < 1 << 31 {
            self.state.set(new);
        }
    }

    /// It was opened at the server for this.
    fn was_opened(&self, access: u32) {
        self.access.set(self.access.get() | access);
        self.modes.set(self.modes.get() | 1 << access);
    }
}

impl OpenFile {
    fn new(state: Rc<OpenState>, access: u32, minor: u32) -> Self {
        let count = state.open_files_of(access);
        count.set(count.get() + 1);
        Self {
            state,
            access,
            minor,
            closed: Cell::new(false),
            locks: Locks::default(),
        }
    }

    /// Its handle.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.state.file
    }

    /// What reads and writes have to say. On 4.1 it has no number, which is the newest one: another
    /// open of its owner may change that while a call is on its way (RFC 8881, 8.2.2).
    ///
    /// # Errors
    /// Why the file could not be opened again after the server had lost it.
    pub fn state(&self) -> Result<StateId, NfsError> {
        if let Some(e) = self.state.lost.get() {
            return Err(e);
        }
        let state = match &*self.state.served.borrow() {
            Some(delegation) => delegation.state,
            None => self.state.state.get(),
        };
        Ok(match self.minor {
            0 => state,
            _ => StateId { seqid: 0, ..state },
        })
    }

    /// What the server knows it by, which changes when it is opened again (RFC 7530, 9.1.4).
    #[must_use]
    pub fn known_by(&self) -> StateId {
        let delegation = self.state.delegation();
        delegation.map_or(self.state.state.get(), |d| d.state)
    }

    pub(super) fn open(&self) -> &Rc<OpenState> {
        &self.state
    }

    /// What it is open for: bits of [`share`](super::super::state::share).
    #[must_use]
    pub fn access(&self) -> u32 {
        self.access
    }
}

/// What an OPEN gave, without what was borrowed.
struct OpenResult {
    state: StateId,
    flags: u32,
    file: Handle,
    attributes: Attributes,
    offer: OfferedDelegation,
}

impl Client {
    /// Opens a file, by its name in a directory (RFC 7530, 16.16).
    ///
    /// # Errors
    /// See [`NfsError`].
    pub async fn open(
        &self,
        owner: &OpenOwner,
        (dir, name): (Handle, &[u8]),
        asked: u32,
        how: OpenHow,
    ) -> Result<(OpenFile, Attributes), NfsError> {
        if how == OpenHow::Existing
            && let Some(delegation) = self.delegated((dir, name), asked)
            && let Some(opened) = self.open_locally(owner, (dir, name), asked, delegation)
        {
            return Ok(opened);
        }
        let _turn = self.acquire_owner(&owner.mutex).await;
        // What its owner has open without the server is opened with it.
        let access = asked | self.served_access(owner, (dir, name));
        let _opening = self.opening();
        let known = owner.name();
        let given = self.call_open(&known, (dir, name), access, how).await;
        let given = match given {
            Err(NfsError::Status(_, Status::BadSeqId)) => {
                // What the server counted is not known: the owner gets a new name.
                *owner.known.borrow_mut() = self.new_name();
                self.call_open(&owner.name(), (dir, name), access, how)
                    .await
            }
            Err(e @ NfsError::Rpc(_)) => {
                *owner.known.borrow_mut() = self.new_name();
                Err(e)
            }
            given => given,
        }?;
        let known = owner.name();
        let mut state = given.state;
        if given.flags & MUST_CONFIRM != 0 && self.minor() == 0 {
            state = self.confirm(&known, given.file, state).await?;
        }
        let state = self.opened(owner, (dir, name), (given.file, access), state);
        let file = OpenFile::new(state, asked, self.minor());
        self.offered(given.offer, (dir, name), given.file, given.attributes);
        Ok((file, given.attributes))
    }

    /// What an owner has of a file that a name leads to, if that is delegated.
    fn known_state(&self, owner: &OpenOwner, file: Handle) -> Option<Rc<OpenState>> {
        let all = self.0.opens.known.borrow();
        all.get(&(owner.name().number, file))?.upgrade()
    }

    /// For what an owner has a file open without the server.
    fn served_access(&self, owner: &OpenOwner, (dir, name): (Handle, &[u8])) -> u32 {
        let state = self
            .delegated_file(&dir, name)
            .and_then(|file| self.known_state(owner, file));
        state
            .filter(|s| s.served.borrow().is_some())
            .map_or(0, |s| s.needed())
    }

    /// Opens a file without the server, which has delegated it; `None` if its owner has it open at
    /// the server for something else.
    fn open_locally(
        &self,
        owner: &OpenOwner,
        (dir, name): (Handle, &[u8]),
        access: u32,
        delegation: Rc<Delegation>,
    ) -> Option<(OpenFile, Attributes)> {
        let attributes = delegation.known_attributes();
        let file = *delegation.file();
        let state = match self.known_state(owner, file) {
            Some(known) => {
                let served = known.served.borrow().is_some();
                if !served && (access & !known.access.get() != 0 || known.lost.get().is_some()) {
                    return None;
                }
                known
            }
            None => {
                let state = Rc::new(OpenState {
                    owner: owner.name(),
                    owner_mutex: owner.mutex.clone(),
                    file,
                    dir,
                    name: name.into(),
                    state: Cell::new(delegation.state),
                    access: Cell::new(access),
                    modes: Cell::new(0),
                    files: Default::default(),
                    lost: Cell::new(None),
                    served: RefCell::new(None),
                    moving: Cell::new(false),
                });
                delegation.add(&state);
                *state.served.borrow_mut() = Some(delegation);
                let key = (state.owner.number, file);
                let mut all = self.0.opens.known.borrow_mut();
                all.insert(key, Rc::downgrade(&state));
                state
            }
        };
        state.access.set(state.access.get() | access);
        self.event(Event::Used, self.0.lane.now());
        Some((OpenFile::new(state, access, self.minor()), attributes))
    }

    /// Opens at the server what was opened without it, since its delegation goes back.
    pub(super) async fn open_delegated(&self, state: &Rc<OpenState>, delegation: StateId) {
        let _turn = self.acquire_owner(&state.owner_mutex).await;
        if state.needed() == 0 || state.served.borrow().is_none() {
            return;
        }
        state.moving.set(true);
        let asked = Cell::new(0);
        let build = |c: &mut Compound<'_>, seqid| {
            asked.set(state.needed().max(1));
            let args = OpenArgs {
                seqid,
                access: asked.get() | self.no_delegation_flag(),
                deny: 0,
                owner: self.owner_of(&state.owner),
                how: OpenHow::Existing,
                claim: Claim::Delegated(delegation, Text(&state.name)),
            };
            c.add::<PutFh>(&state.dir).add::<Open>(&args);
        };
        let take = |r: &mut Results<'_>| {
            r.skip::<PutFh>()?;
            r.get::<Open>().map(|o| (o.state, o.flags))
        };
        let of = (Op::Open, &*state.owner);
        let mut opened = self.call_with_seqid(Call::Open, of, build, take).await;
        if let Ok((new, flags)) = opened
            && flags & MUST_CONFIRM != 0
            && self.minor() == 0
        {
            let confirmed = self.confirm(&state.owner, state.file, new).await;
            opened = confirmed.map(|new| (new, flags));
        }
        let served = state.served.take().is_some();
        state.moving.set(false);
        match opened {
            Ok((new, _)) => {
                state.renew(new);
                state.was_opened(asked.get());
            }
            Err(e) if served => state.lost.set(Some(e)),
            // It was opened otherwise meanwhile.
            Err(_) => {}
        }
        if state.needed() == 0 {
            // It was closed meanwhile; nobody is left to be told of an error.
            let _ = self.close_last(state).await;
        }
    }

    async fn call_open(
        &self,
        owner: &OpenOwnerState,
        (dir, name): (Handle, &[u8]),
        access: u32,
        how: OpenHow,
    ) -> Result<OpenResult, NfsError> {
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
            r.skip::<PutFh>()?;
            let opened = r.get::<Open>()?;
            Ok(OpenResult {
                state: opened.state,
                flags: opened.flags,
                offer: OfferedDelegation::of(&opened.delegation),
                file: r.get::<GetFh>()?,
                attributes: r.get::<GetAttr>()?,
            })
        };
        self.call_with_seqid(Call::Open, (Op::Open, owner), build, take)
            .await
    }

    fn owner_of<'a>(&self, owner: &'a OpenOwnerState) -> Owner<'a> {
        Owner {
            client: self.id(),
            name: Text(owner.name.as_bytes()),
        }
    }

    async fn confirm(
        &self,
        owner: &OpenOwnerState,
        file: Handle,
        state: StateId,
    ) -> Result<StateId, NfsError> {
        let build = |c: &mut Compound<'_>, seqid| {
            c.add::<PutFh>(&file)
                .add::<OpenConfirm>(&ConfirmArgs { state, seqid });
        };
        let take = |r: &mut Results<'_>| {
            r.skip::<PutFh>()?;
            r.get::<OpenConfirm>()
        };
        self.call_with_seqid(Call::OpenConfirm, (Op::OpenConfirm, owner), build, take)
            .await
    }

    /// Keeps what was opened.
    fn opened(
        &self,
        owner: &OpenOwner,
        (dir, name): (Handle, &[u8]),
        (file, access): (Handle, u32),
        new: StateId,
    ) -> Rc<OpenState> {
        let known = owner.name();
        let key = (known.number, file);
        let mut all = self.0.opens.known.borrow_mut();
        let state = match all.get(&key).and_then(Weak::upgrade) {
            Some(state) if state.state.get().other == new.other => {
                state.renew(new);
                state
            }
            // The server knows of it now.
            Some(state) if state.served.borrow().is_some() => {
                state.served.take();
                state.state.set(new);
                state
            }
            _ => {
                let state = Rc::new(OpenState {
                    owner: known,
                    owner_mutex: owner.mutex.clone(),
                    file,
                    dir,
                    name: name.into(),
                    state: Cell::new(new),
                    access: Cell::new(0),
                    modes: Cell::new(0),
                    files: Default::default(),
                    lost: Cell::new(None),
                    served: RefCell::new(None),
                    moving: Cell::new(false),
                });
                all.insert(key, Rc::downgrade(&state));
                state
            }
        };
        state.was_opened(access);
        state
    }
}
