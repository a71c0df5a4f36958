//! The state of open files, of the delegations that serve them, and of their locks (RFC 7530, 9.9).

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
    /// The opens by owner and file.
    pub(super) known: RefCell<HashMap<(u64, Handle), Weak<OpenState>>>,
    /// The number of owners and delegations that were created.
    pub(super) owners: Cell<u64>,
}

/// An open at the server, of one or several [`OpenFile`]s of an owner.
pub(super) struct OpenState {
    pub(super) owner: Rc<OpenOwnerState>,
    pub(super) file: Handle,
    pub(super) dir: Handle,
    pub(super) name: Box<[u8]>,
    pub(super) state: Cell<StateId>,
    /// The epoch of the client that the stateid belongs to; 0 until the server knows of the open.
    pub(super) client_epoch: Cell<u64>,
    /// The access for which it is open at the server.
    pub(super) access: Cell<u32>,
    /// A set, by bit number, of the accesses for which it was opened there: only to one of these
    /// may it be downgraded (RFC 8881, 18.18.3).
    pub(super) modes: Cell<u32>,
    /// The numbers of files that are open for reading, for writing, and for both.
    files: [Cell<u32>; 3],
    /// The error of reopening it after the server had lost it.
    pub(super) lost: Cell<Option<NfsError>>,
    /// The delegation that serves it, as long as the server does not know of it.
    pub(super) served: RefCell<Option<Rc<Delegation>>>,
    /// Whether it is being opened at the server because its delegation is returned.
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
    /// The epoch of the client that the lock owner belongs to.
    pub(super) client_epoch: u64,
}

/// A delegation that is held.
pub(super) struct Delegation {
    /// A number that no other delegation of the client has.
    pub(super) number: u64,
    pub(super) state: StateId,
    /// The epoch of the client that it belongs to.
    pub(super) client_epoch: u64,
    pub(super) file: Handle,
    pub(super) dir: Handle,
    pub(super) name: Box<[u8]>,
    /// Whether it is a delegation for writing.
    pub(super) writes: bool,
    /// The attributes that came with the open.
    pub(super) attributes: Attributes,
    /// Whether this client has changed the file since.
    pub(super) changed: Cell<bool>,
    /// Whether it was recalled, so that it no longer serves operations.
    pub(super) recalled: Cell<bool>,
    /// The opens that the server does not know of.
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

    /// The key in the table of opens.
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

    /// The access that its files need.
    pub(super) fn needed(&self) -> u32 {
        let each = self.files.iter().zip(1..);
        each.filter(|(n, _)| n.get() > 0)
            .fold(0, |all, (_, access)| all | access)
    }

    /// The delegation that serves it, if one does.
    pub(super) fn delegation(&self) -> Option<Rc<Delegation>> {
        self.served.borrow().clone()
    }

    pub(super) fn is_served(&self) -> bool {
        self.served.borrow().is_some()
    }

    /// Takes a stateid from a reply, and returns whether it is the newest. Replies may overtake
    /// each other.
    pub(super) fn renew(&self, new: StateId) -> bool {
        let old = self.state.get();
        let newest = new.other != old.other || new.seqid.wrapping_sub(old.seqid) < 1 << 31;
        if newest {
            self.state.set(new);
        }
        newest
    }

    /// Notes that it was opened at the server for this access.
    pub(super) fn was_opened(&self, access: u32) {
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

    /// The stateid of reads and writes. On 4.1 its seqid is 0, which stands for the newest: another
    /// open of the owner may advance it while a call is in flight (RFC 8881, 8.2.2).
    ///
    /// # Errors
    /// The error of reopening the file after the server had lost it.
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

    /// The stateid by which the server knows the file, which changes when it is reopened (RFC 7530,
    /// 9.1.4).
    #[must_use]
    pub fn known_by(&self) -> StateId {
        match &*self.state.served.borrow() {
            Some(delegation) => delegation.state,
            None => self.state.state.get(),
        }
    }

    /// The access: bits of [`share`](crate::v4::state::share).
    #[must_use]
    pub fn access(&self) -> u32 {
        self.access
    }
}

impl Delegation {
    /// Those of the attributes that came with the open that are still valid.
    pub(super) fn known_attributes(&self) -> Attributes {
        match self.changed.get() {
            false => self.attributes,
            true => Attributes {
                kind: self.attributes.kind,
                ..Attributes::default()
            },
        }
    }

    /// Adds an open that the server does not know of.
    pub(super) fn add(&self, open: &Rc<OpenState>) {
        let mut opens = self.opens.borrow_mut();
        if opens.len() == opens.capacity() {
            opens.retain(|o| o.strong_count() > 0);
        }
        opens.push(Rc::downgrade(open));
    }
}
