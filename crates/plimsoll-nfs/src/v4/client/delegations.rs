//! Delegations: the client opens and closes a delegated file without the server (RFC 7530, 10.4 and
//! RFC 8881, 10.4).

use super::open_state::{Delegation, OpenFile};
use super::{Call, Client, Event, Inner};
use crate::rpc::CallbackHandler;
use crate::v4::attributes::{Attributes, number};
use crate::v4::callback::{CallbackGetAttr, CallbackOps, Recall, answer};
use crate::v4::compound::NfsError;
use crate::v4::operations::{DelegReturn, PutFh};
use crate::v4::state::{self, SequenceArgs, share};
use crate::v4::types::{Handle, StateId, Status};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

/// The number of slots for the server's callbacks.
pub(super) const CALLBACK_SLOTS: u32 = 8;

/// File handles by name in a directory.
type Names = HashMap<Box<[u8]>, Handle>;

/// The delegations of a client.
#[derive(Default)]
pub(super) struct Delegations {
    held: RefCell<HashMap<Handle, Rc<Delegation>>>,
    /// The names of delegated files, by directory handle.
    names: RefCell<HashMap<Handle, Names>>,
    /// The seqid and the cached reply of the last callback in each slot.
    slots: RefCell<Vec<(u32, Vec<u8>)>>,
    /// The number of opens in flight; each may return a delegation.
    opening: Cell<u32>,
    /// Handle and stateid (without seqid) of delegations that the server recalled before the client handled the OPEN
    /// reply with the delegation: a callback may overtake a reply (RFC 8881, 2.10.6.3 and 20.9).
    recalled_before_grant: RefCell<Vec<(Handle, [u8; 12])>>,
}

impl Delegations {
    /// Resets the callback slots for a new session.
    pub(super) fn begin_session(&self) {
        self.slots.borrow_mut().clear();
    }
}

/// The delegation in an OPEN reply, without borrowed data.
#[derive(Clone, Copy)]
pub(super) enum OfferedDelegation {
    /// The OPEN reply has no delegation, or a reason for granting none.
    None,
    /// The OPEN reply has a delegation: the stateid, whether the delegation is a write delegation, and whether the
    /// server has already recalled the delegation.
    Held(StateId, bool, bool),
}

impl OfferedDelegation {
    pub(super) fn of(offered: &state::Delegation<'_>) -> Self {
        use state::Delegation;
        match offered {
            Delegation::None | Delegation::Refused(..) => Self::None,
            Delegation::Read(state, recalled, _) => Self::Held(*state, false, *recalled),
            Delegation::Write(state, recalled, ..) => Self::Held(*state, true, *recalled),
        }
    }
}

/// An open in flight.
pub(super) struct OpenInProgress<'a>(&'a Delegations);

impl Drop for OpenInProgress<'_> {
    fn drop(&mut self) {
        let opening = &self.0.opening;
        debug_assert!(opening.get() > 0, "more opens end than have begun");
        opening.set(opening.get() - 1);
        if opening.get() == 0 {
            self.0.recalled_before_grant.borrow_mut().clear();
        }
    }
}

impl Client {
    /// Begins an open; the open ends when the returned value is dropped.
    pub(super) fn opening(&self) -> OpenInProgress<'_> {
        let delegations = &self.0.delegations;
        delegations.opening.set(delegations.opening.get() + 1);
        OpenInProgress(delegations)
    }

    /// Notes that this client changes a file (RFC 7530, 10.4): the attributes stored with the
    /// file's delegation are no longer valid.
    pub fn changes(&self, file: &OpenFile) {
        if let Some(held) = self.0.delegations.held.borrow().get(file.handle()) {
            held.changed.set(true);
        }
    }

    /// Returns an offered delegation to the server at once.
    pub(super) fn decline(&self, offer: OfferedDelegation, at: (Handle, &[u8]), file: Handle) {
        if let OfferedDelegation::Held(state, writes, _) = offer {
            let offer = OfferedDelegation::Held(state, writes, true);
            self.offered(offer, at, file, Attributes::default());
        }
    }

    /// The flags of an OPEN with which the client requests or declines a delegation (4.1).
    pub(super) fn want_flags(&self, access: u32) -> u32 {
        match (self.minor(), self.0.spec.delegations) {
            (0, _) => 0,
            (_, false) => share::WANT_NO_DELEGATION,
            (_, true) if access & share::WRITE != 0 => share::WANT_WRITE_DELEGATION,
            (_, true) => share::WANT_READ_DELEGATION,
        }
    }

    /// The delegation under which a name can be opened without the server.
    pub(super) fn delegated(
        &self,
        (dir, name): (Handle, &[u8]),
        access: u32,
    ) -> Option<Rc<Delegation>> {
        let delegations = &self.0.delegations;
        let names = delegations.names.borrow();
        let file = names.get(&dir)?.get(name)?;
        let held = delegations.held.borrow().get(file).cloned()?;
        let serves = !held.recalled.get() && (held.writes || access & share::WRITE == 0);
        serves.then_some(held)
    }

    /// The number of the delegation of a name. While the number stays the same, no other client
    /// changes the file (RFC 7530, 10.4).
    #[must_use]
    pub fn delegation_number(&self, dir: &Handle, name: &[u8]) -> Option<u64> {
        let held = self.delegated((*dir, name), share::READ)?;
        Some(held.number)
    }

    /// Counts an operation that data cached under a delegation served without a call.
    pub fn promise_served(&self) {
        self.event(Event::Used, self.0.lane.now());
    }

    /// Accepts or returns the delegation of an OPEN reply.
    pub(super) fn offered(
        &self,
        offer: OfferedDelegation,
        (dir, name): (Handle, &[u8]),
        file: Handle,
        attributes: Attributes,
    ) {
        let now = self.0.lane.now();
        let OfferedDelegation::Held(state, writes, recalled) = offer else {
            if self.0.spec.delegations {
                self.event(Event::Refused, now);
            }
            return;
        };
        self.event(Event::Granted, now);
        let new = Rc::new(Delegation {
            number: self.next_number(),
            state,
            client_epoch: self.0.identity.client_epoch(),
            file,
            dir,
            name: name.into(),
            writes,
            attributes,
            changed: Cell::new(false),
            recalled: Cell::new(false),
            opens: RefCell::default(),
        });
        let delegations = &self.0.delegations;
        let early = {
            let mut early = delegations.recalled_before_grant.borrow_mut();
            let at = early.iter().position(|e| *e == (file, state.other));
            at.map(|at| early.swap_remove(at)).is_some()
        };
        if early {
            self.event(Event::Recalled, now);
        }
        if early || recalled || !self.0.spec.delegations {
            new.recalled.set(true);
            self.give_back_later(new);
            return;
        }
        let mut held = delegations.held.borrow_mut();
        let former = held.insert(file, new);
        drop(held);
        if let Some(former) = former.filter(|b| b.state.other != state.other) {
            // A server grants a second delegation of a file only after the loss of the first delegation.
            former.recalled.set(true);
        }
        let mut names = delegations.names.borrow_mut();
        names.entry(dir).or_default().insert(name.into(), file);
    }

    /// Notes that a name was removed, renamed or replaced (RFC 7530, 10.4).
    pub fn forget_name(&self, dir: &Handle, name: &[u8]) {
        if let Some(names) = self.0.delegations.names.borrow_mut().get_mut(dir) {
            names.remove(name);
        }
    }

    /// The handle of the file with a name, if the file is delegated.
    pub(super) fn delegated_file(&self, dir: &Handle, name: &[u8]) -> Option<Handle> {
        let names = self.0.delegations.names.borrow();
        names.get(dir)?.get(name).copied()
    }

    /// Drops all delegations, because the server has lost the client's state.
    pub(super) fn lose_delegations(&self) {
        for (_, held) in self.0.delegations.held.take() {
            held.recalled.set(true);
            held.opens.take();
        }
        self.0.delegations.names.take();
    }

    /// The flag of an OPEN that declines a delegation (4.1).
    pub(super) fn no_delegation_flag(&self) -> u32 {
        match self.minor() {
            0 => 0,
            _ => share::WANT_NO_DELEGATION,
        }
    }

    fn give_back_later(&self, delegation: Rc<Delegation>) {
        let client = Rc::downgrade(&self.0);
        self.0.lane.spawn_background(Box::pin(async move {
            if let Some(inner) = client.upgrade() {
                // An unreachable server revokes the delegation when the lease ends.
                let _ = Client(inner).give_back(&delegation).await;
            }
        }));
    }

    /// Opens the files of a delegation at the server, and then returns the delegation.
    async fn give_back(&self, delegation: &Rc<Delegation>) -> Result<(), NfsError> {
        self.forget_name(&delegation.dir, &delegation.name);
        let opens = delegation.opens.take();
        for open in opens.iter().filter_map(Weak::upgrade) {
            self.open_delegated(&open, delegation).await;
        }
        let since = self.0.lane.now();
        let returned = self.call_in_epoch(
            Call::DelegReturn,
            Some(delegation.client_epoch),
            |c| {
                c.add::<PutFh>(&delegation.file)
                    .add::<DelegReturn>(&delegation.state);
            },
            |r| {
                r.skip::<PutFh>()?;
                r.skip::<DelegReturn>()
            },
        );
        let returned = returned.await;
        self.drop_delegation(delegation);
        match returned {
            Ok(()) => self.event(Event::Returned, since),
            // The server has lost the client's state, including the delegation.
            Err(NfsError::Status(None, Status::StaleStateId)) => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// Whether an operation on `file` failed with `e` because the server has revoked the file's delegation (RFC 7530,
    /// 10.4.7). If the delegation is revoked, the client opens the file at the server for every open that the
    /// delegation served, and the caller may repeat the operation.
    pub async fn is_opened_instead(&self, file: &OpenFile, e: NfsError) -> bool {
        let Some(delegation) = file.state.delegation() else {
            return false;
        };
        let gone = e.status().is_some_and(|s| self.is_of_open(s));
        if gone {
            self.drop_delegation(&delegation);
            for open in delegation.opens.take().iter().filter_map(Weak::upgrade) {
                self.open_instead(&open).await;
            }
        }
        gone
    }

    /// Stops a delegation from serving operations.
    fn drop_delegation(&self, delegation: &Rc<Delegation>) {
        delegation.recalled.set(true);
        self.forget_name(&delegation.dir, &delegation.name);
        let mut held = self.0.delegations.held.borrow_mut();
        let is_it = |d: &Rc<Delegation>| Rc::ptr_eq(d, delegation);
        if held.get(&delegation.file).is_some_and(is_it) {
            held.remove(&delegation.file);
        }
    }

    /// Makes the client handle callbacks on its own connections (4.1).
    pub(super) fn answer_callbacks(&self) {
        let inner = Rc::downgrade(&self.0);
        self.0
            .channel
            .set_callback_handler(Some(Rc::new(CallbackReceiver(inner))));
    }
}

/// Passes the server's callbacks to a client; after the client is dropped, callbacks get no reply.
pub(super) struct CallbackReceiver(pub(super) Weak<Inner>);

impl CallbackHandler for CallbackReceiver {
    fn answer(&self, call: &[u8]) -> Option<Vec<u8>> {
        let client = Client(self.0.upgrade()?);
        answer(call, client.minor(), &client)
    }
}

impl CallbackOps for Client {
    fn sequence(&self, args: &SequenceArgs) -> Result<(), Status> {
        let session = self.0.session.borrow();
        if session.as_ref().is_none_or(|s| s.id != args.session) {
            return Err(Status::BadSession);
        }
        let mut slots = self.0.delegations.slots.borrow_mut();
        slots.resize(CALLBACK_SLOTS as usize, (0, Vec::new()));
        let slot = slots.get_mut(args.slot as usize).ok_or(Status::BadSlot)?;
        if slot.0.wrapping_add(1) != args.sequence {
            return Err(Status::SeqMisordered);
        }
        slot.0 = args.sequence;
        Ok(())
    }

    fn replay(&self, args: &SequenceArgs) -> Option<Vec<u8>> {
        let session = self.0.session.borrow();
        session.as_ref().filter(|s| s.id == args.session)?;
        let slots = self.0.delegations.slots.borrow();
        let (sequence, reply) = slots.get(args.slot as usize)?;
        (*sequence == args.sequence && !reply.is_empty()).then(|| reply.clone())
    }

    fn store_reply(&self, args: &SequenceArgs, reply: &[u8]) {
        let mut slots = self.0.delegations.slots.borrow_mut();
        if let Some(slot) = slots.get_mut(args.slot as usize) {
            slot.1 = reply.to_vec();
        }
    }

    fn recall(&self, recall: &Recall) -> Status {
        let delegations = &self.0.delegations;
        let held = delegations.held.borrow().get(&recall.file).cloned();
        let unknown = match held {
            Some(_) => Status::BadStateId,
            None => Status::BadHandle,
        };
        let Some(held) = held.filter(|h| h.state.other == recall.state.other) else {
            let mut early = delegations.recalled_before_grant.borrow_mut();
            // Each open in flight may return one delegation.
            return match early.len() < delegations.opening.get() as usize {
                true => {
                    early.push((recall.file, recall.state.other));
                    Status::Ok
                }
                false => unknown,
            };
        };
        if !held.recalled.replace(true) {
            self.event(Event::Recalled, self.0.lane.now());
            self.give_back_later(held);
        }
        Status::Ok
    }

    fn recall_any(&self) -> Status {
        let held = self.0.delegations.held.borrow();
        let unused = |d: &&Rc<Delegation>| {
            let opens = d.opens.borrow();
            opens.iter().all(|o| o.strong_count() == 0) && !d.recalled.get()
        };
        for delegation in held.values().filter(unused) {
            delegation.recalled.set(true);
            self.event(Event::Recalled, self.0.lane.now());
            self.give_back_later(delegation.clone());
        }
        Status::Ok
    }

    /// The attributes that came with the OPEN: data is written through, so the server itself knows
    /// the newest attributes.
    fn attributes(&self, args: &CallbackGetAttr) -> Result<Attributes, Status> {
        let held = self.0.delegations.held.borrow();
        let held = held.get(&args.file).ok_or(Status::BadHandle)?;
        let all = held.attributes;
        Ok(Attributes {
            change: all.change.filter(|_| args.wanted.has(number::CHANGE)),
            size: all.size.filter(|_| args.wanted.has(number::SIZE)),
            ..Attributes::default()
        })
    }
}
