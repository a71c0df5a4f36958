//! The state of open files, and of their delegations and locks (RFC 7530, 9.9).

use super::owners::OpenOwnerState;
use crate::v4::attributes::Attributes;
use crate::v4::compound::NfsError;
use crate::v4::types::{Handle, StateId};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// The opens of a client.
#[derive(Default)]
pub(super) struct OpenTable {
    /// The opens by owner number and file handle.
    pub(super) known: RefCell<HashMap<(u64, Handle), Weak<OpenState>>>,
    /// The number of created owners and delegations.
    pub(super) owners: Cell<u64>,
}

/// An open, shared by one or several [`OpenFile`]s of an owner.
pub(super) struct OpenState {
    pub(super) owner: Rc<OpenOwnerState>,
    pub(super) file: Handle,
    pub(super) dir: Handle,
    pub(super) name: Box<[u8]>,
    pub(super) state: Cell<StateId>,
    /// The client epoch of the stateid; 0 until the server knows the open.
    pub(super) client_epoch: Cell<u64>,
    /// The access that the server has granted to the open: bits of `v4::state::share`.
    pub(super) access: Cell<u32>,
    /// The accesses with which the file was opened at the server, as a set of bit numbers: OPEN_DOWNGRADE must request
    /// one of the accesses, or a combination of several (RFC 8881, 18.18.3).
    pub(super) modes: Cell<u32>,
    /// The number of open files by access: reading, writing, and both.
    files: [Cell<u32>; 3],
    /// The error of an attempt to reopen the file after the server has lost the open.
    pub(super) lost: Cell<Option<NfsError>>,
    /// The delegation that serves the open, as long as the server does not know the open.
    pub(super) served: RefCell<Option<Rc<Delegation>>>,
    /// Whether the open is being moved to the server because its delegation is returned.
    pub(super) moving: Cell<bool>,
}

/// An open file (RFC 7530, 9.9).
pub struct OpenFile {
    pub(super) state: Rc<OpenState>,
    pub(super) access: u32,
    minor: u32,
    pub(super) closed: Cell<bool>,
    pub(super) locks: Cell<Option<ServerLockState>>,
}

/// The locks of an open file at the server.
#[derive(Clone, Copy)]
pub(super) struct ServerLockState {
    /// The number of the lock owner.
    pub(super) owner: u64,
    pub(super) state: StateId,
    /// The next seqid of the lock owner (4.0).
    pub(super) seqid: u32,
    /// The client epoch of the lock stateid; the locks of earlier epochs are lost.
    pub(super) client_epoch: u64,
}

/// A delegation that is held.
pub(super) struct Delegation {
    /// A number that no other delegation of the client has.
    pub(super) number: u64,
    pub(super) state: StateId,
    /// The client epoch of the delegation; the delegations of earlier epochs are lost.
    pub(super) client_epoch: u64,
    pub(super) file: Handle,
    pub(super) dir: Handle,
    pub(super) name: Box<[u8]>,
    /// Whether the delegation is a write delegation, rather than a read delegation.
    pub(super) writes: bool,
    /// The attributes that came with the OPEN.
    pub(super) attributes: Attributes,
    /// Whether this client has changed the file since the OPEN.
    pub(super) changed: Cell<bool>,
    /// Whether the delegation was recalled and no longer serves operations.
    pub(super) recalled: Cell<bool>,
    /// The opens that the server does not know.
    pub(super) opens: RefCell<Vec<Weak<OpenState>>>,
}

impl OpenState {
    pub(super) fn new(
        owner: Rc<OpenOwnerState>,
        file: Handle,
        (dir, name): (Handle, &[u8]),
        state: StateId,
    ) -> Rc<Self> {
        Rc::new(Self {
            owner,
            file,
            dir,
            name: name.into(),
            state: Cell::new(state),
            client_epoch: Cell::new(0),
            access: Cell::new(0),
            modes: Cell::new(0),
            files: Default::default(),
            lost: Cell::new(None),
            served: RefCell::new(None),
            moving: Cell::new(false),
        })
    }

    /// The key of this open in `OpenTable::known`: owner number and file handle.
    pub(super) fn key(&self) -> (u64, Handle) {
        (self.owner.number, self.file)
    }

    fn files_with(&self, access: u32) -> &Cell<u32> {
        &self.files[(access.clamp(1, 3) - 1) as usize]
    }

    /// Counts a file with this access as closed.
    pub(super) fn remove_file(&self, access: u32) {
        let count = self.files_with(access);
        debug_assert!(count.get() > 0, "more files are closed than were opened");
        count.set(count.get() - 1);
    }

    /// The access that the open files need together.
    pub(super) fn needed(&self) -> u32 {
        let each = self.files.iter().zip(1..);
        each.filter(|(n, _)| n.get() > 0)
            .fold(0, |all, (_, access)| all | access)
    }

    /// The delegation that serves the open, if any.
    pub(super) fn delegation(&self) -> Option<Rc<Delegation>> {
        self.served.borrow().clone()
    }

    pub(super) fn is_served(&self) -> bool {
        self.served.borrow().is_some()
    }

    /// Takes the stateid of a reply; returns whether the stateid is the newest. Replies may
    /// overtake each other.
    pub(super) fn renew(&self, new: StateId) -> bool {
        let old = self.state.get();
        let newest = new.other != old.other || new.seqid.wrapping_sub(old.seqid) < 1 << 31;
        if newest {
            self.state.set(new);
        }
        newest
    }

    /// Notes that the server has opened the file for `access`.
    pub(super) fn note_opened(&self, access: u32) {
        self.access.set(self.access.get() | access);
        self.modes.set(self.modes.get() | 1 << access);
    }
}

impl OpenFile {
    pub(super) fn new(state: Rc<OpenState>, access: u32, minor: u32) -> Self {
        let count = state.files_with(access);
        count.set(count.get() + 1);
        Self {
            state,
            access,
            minor,
            closed: Cell::new(false),
            locks: Cell::new(None),
        }
    }

    /// The file handle.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.state.file
    }

    /// The stateid for reads and writes. On 4.1 the seqid is 0, which means the newest: another
    /// open of the owner may advance the seqid while a call is in flight (RFC 8881, 8.2.2).
    ///
    /// # Errors
    /// The error of the attempt to reopen the file after the server has lost the open.
    pub fn state(&self) -> Result<StateId, NfsError> {
        if let Some(e) = self.state.lost.get() {
            return Err(e);
        }
        let state = self.known_by();
        Ok(match self.minor {
            0 => state,
            _ => StateId { seqid: 0, ..state },
        })
    }

    /// The stateid by which the server knows the file; reopening the file changes the stateid (RFC
    /// 7530, 9.1.4).
    #[must_use]
    pub fn known_by(&self) -> StateId {
        match &*self.state.served.borrow() {
            Some(delegation) => delegation.state,
            None => self.state.state.get(),
        }
    }

    /// The access of the open file: bits of [`share`](crate::v4::state::share).
    #[must_use]
    pub fn access(&self) -> u32 {
        self.access
    }
}

impl Delegation {
    /// The valid part of the attributes that came with the OPEN.
    pub(super) fn known_attributes(&self) -> Attributes {
        match self.changed.get() {
            false => self.attributes,
            true => Attributes {
                kind: self.attributes.kind,
                ..Attributes::default()
            },
        }
    }

    /// Records an open that the server has no state for.
    pub(super) fn add(&self, open: &Rc<OpenState>) {
        let mut opens = self.opens.borrow_mut();
        if opens.len() == opens.capacity() {
            opens.retain(|o| o.strong_count() > 0);
        }
        opens.push(Rc::downgrade(open));
    }
}
