//! A server of version 4 that checks sequence numbers and follows a script.

mod answers;

use answers::Answers;
use plimsoll_nfs::rpc::{Accepted, Credentials, Target, call};
use plimsoll_nfs::server::Service;
use plimsoll_nfs::v4::attributes::{Attributes, Bitmap};
use plimsoll_nfs::v4::operations::{Sequence as SequenceOp, *};
use plimsoll_nfs::v4::state::*;
use plimsoll_nfs::v4::types::*;
use plimsoll_nfs::xdr::{Decoder, Encode, XdrError};
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// First bytes of the stateids of opens and of delegations.
const OPEN: u8 = 1;
const DELEGATION: u8 = 2;

/// Bit in the recorded number of an OPEN with a guarded creation: the file must not exist.
pub const GUARDED: u32 = 1 << 31;

/// Deviations from the usual behaviour.
#[derive(Default)]
pub struct Script {
    /// Statuses with which operations fail; each execution of the operation takes the first status.
    pub fail: HashMap<Op, Vec<Status>>,
    /// Operations after whose execution the server answers the given number of times that it is still executing the
    /// compound.
    pub busy: HashMap<Op, u32>,
    /// Operations that wait until `go_on`, and whether the server executes the operations after the wait.
    pub hang: HashMap<Op, bool>,
    /// Whether waiting operations may proceed; `hung`: whether an operation has proceeded.
    pub go_on: bool,
    pub hung: bool,
    /// Whether every OPEN grants a delegation for reading.
    pub delegate: bool,
    /// Whether each delegation is recalled before the reply to the OPEN is sent.
    pub recall: bool,
    /// Whether every OPEN requires OPEN_CONFIRM (4.0).
    pub confirm: bool,
    /// The number of OPENs after each of which the server restarts, before the confirmation of the open.
    pub restart_after_open: u32,
    /// The status flags of SEQUENCE.
    pub status: u32,
}

/// The state of the server, and the operations that the server has executed.
#[derive(Default)]
pub struct ClientRecord {
    pub script: Script,
    /// The executed operations in order, each with a number that tests check.
    pub done: Vec<(Op, u32)>,
    /// The statuses of the client's replies to callbacks.
    pub called_back: Vec<Status>,
    /// The number of restarts; a restart invalidates client ids, sessions and stateids.
    life: u64,
    /// The restart after which the latest session was created.
    confirmed: Option<u64>,
    sessions: u8,
    /// The seqid of the last request in each slot, and the reply to the request.
    slots: HashMap<u32, (u32, Vec<u8>)>,
    /// The seqid of the last operation of each owner, and the reply to the operation (4.0).
    owners: HashMap<Vec<u8>, (u32, Vec<u8>)>,
    /// Opens by owner: the stateid and the requested accesses.
    opens: HashMap<Vec<u8>, Opening>,
    client_at: String,
}

struct Opening {
    state: StateId,
    modes: Vec<u32>,
}

/// A server that a test and the server's threads share.
#[derive(Clone, Default)]
pub struct Scripted(pub Arc<Mutex<ClientRecord>>);

impl Scripted {
    pub fn known(&self) -> MutexGuard<'_, ClientRecord> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The number of times that an operation was executed.
    pub fn count(&self, op: Op) -> usize {
        self.known().done.iter().filter(|d| d.0 == op).count()
    }

    /// The recorded numbers of the executions of an operation.
    pub fn numbers(&self, op: Op) -> Vec<u32> {
        let known = self.known();
        known
            .done
            .iter()
            .filter(|d| d.0 == op)
            .map(|d| d.1)
            .collect()
    }

    /// Loses the client's session, but no other state.
    pub fn forget_session(&self) {
        self.known().sessions += 1;
    }

    /// Restarts, and loses all state of clients.
    pub fn start_anew(&self) {
        self.known().start_anew();
    }
}

/// The result of an operation, or its status.
type DelegationGrant = Result<Vec<u8>, Status>;

fn gives<O: Operation>(done: &O::ResOk<'_>) -> DelegationGrant {
    let mut out = Vec::new();
    done.encode(&mut out);
    Ok(out)
}

fn handle(number: u8) -> Handle {
    Handle::new(&[number; 8]).unwrap()
}

impl ClientRecord {
    fn start_anew(&mut self) {
        self.life += 1;
        self.slots.clear();
        self.owners.clear();
        self.opens.clear();
    }

    fn other(&self, kind: u8, number: u8) -> [u8; 12] {
        let mut other = [0; 12];
        (other[0], other[1], other[2]) = (kind, number, self.life as u8);
        other
    }

    fn session(&self) -> SessionId {
        let mut id = [0; 16];
        (id[0], id[1]) = (self.life as u8, self.sessions);
        id
    }

    fn client(&self) -> u64 {
        0x100 + self.life
    }

    /// Checks that an owner's seqid is the next one.
    fn check_sequence(&self, owner: &[u8], seqid: u32) -> Result<(), Status> {
        match self.owners.get(owner) {
            Some((last, _)) if last.wrapping_add(1) != seqid => Err(Status::BadSeqId),
            _ => Ok(()),
        }
    }

    fn state_of(&mut self, state: &StateId) -> Result<(Vec<u8>, &mut Opening), Status> {
        let mut all = self.opens.iter_mut();
        let found = all.find(|(_, o)| o.state.other == state.other);
        let (owner, opening) = found.ok_or(Status::BadStateId)?;
        match state.seqid {
            0 => {}
            n if n < opening.state.seqid => return Err(Status::OldStateId),
            n if n > opening.state.seqid => return Err(Status::BadStateId),
            _ => {}
        }
        Ok((owner.clone(), opening))
    }

    fn open(&mut self, minor: u32, args: &OpenArgs<'_>) -> DelegationGrant {
        let owner = args.owner.name.0.to_vec();
        if args.owner.client != self.client() {
            return Err(Status::StaleClientId);
        }
        if minor == 0 {
            self.check_sequence(&owner, args.seqid)?;
        }
        let number = self.opens.len() as u8;
        let other = self.other(OPEN, number);
        let opening = self.opens.entry(owner).or_insert_with(|| Opening {
            state: StateId { seqid: 0, other },
            modes: Vec::new(),
        });
        opening.state.seqid += 1;
        opening.modes.push(args.access & 3);
        let state = opening.state;
        let delegation = match self.script.delegate {
            true => Delegation::Read(
                StateId {
                    seqid: 1,
                    other: self.other(DELEGATION, number),
                },
                false,
                Ace {
                    kind: 0,
                    flags: 0,
                    mask: 0,
                    who: Text(b""),
                },
            ),
            false => Delegation::None,
        };
        if let (true, Delegation::Read(state, ..)) = (self.script.recall, delegation) {
            self.recall(state);
        }
        let flags = match self.script.confirm {
            true => MUST_CONFIRM,
            false => 0,
        };
        gives::<Open>(&Opened {
            state,
            change: ChangeInfo {
                atomic: true,
                before: 1,
                after: 2,
            },
            flags,
            set: Bitmap::default(),
            delegation,
        })
    }

    /// Sends CB_RECALL on a connection of its own (4.0).
    fn recall(&mut self, state: StateId) {
        struct Words(StateId);
        impl Encode for Words {
            fn encode(&self, out: &mut Vec<u8>) {
                // No tag, the minor version, the identifier, one operation: CB_RECALL.
                [0u32, 0, 1, 1, 4].iter().for_each(|w| w.encode(out));
                self.0.encode(out);
                false.encode(out);
                handle(9).encode(out);
            }
        }
        let target = Target {
            program: 0x4000_0000,
            version: 1,
            procedure: 1,
        };
        let call = call(1, target, &Credentials::none(), &Words(state));
        let numbers: Vec<u16> = self
            .client_at
            .split('.')
            .map(|n| n.parse().unwrap())
            .collect();
        let port = numbers[4] << 8 | numbers[5];
        let mut to = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
        to.write_all(&call).unwrap();
        let mut mark = [0; 4];
        to.read_exact(&mut mark).unwrap();
        let mut reply = vec![0; (u32::from_be_bytes(mark) & 0xffff) as usize];
        to.read_exact(&mut reply).unwrap();
        // The status of the compound follows the head of the reply.
        let status = u32::from_be_bytes(reply[24..28].try_into().unwrap());
        self.called_back.push(Status::of(status).unwrap());
    }

    /// Fails with the next scripted status of an operation, if any.
    fn failing(&mut self, op: Op) -> Result<(), Status> {
        match self.script.fail.get_mut(&op) {
            Some(all) if !all.is_empty() => Err(all.remove(0)),
            _ => Ok(()),
        }
    }
}

/// Decodes arguments.
macro_rules! args {
    ($from:ident, $op:ident) => {
        $from.get::<<$op as Operation>::Args<'_>>()?
    };
}

/// Properties of an executed operation: a number that tests check, and the owner and its seqid.
#[derive(Default)]
struct About {
    number: u32,
    owner: Option<(Vec<u8>, u32)>,
}

impl ClientRecord {
    /// Executes one operation.
    fn one(
        &mut self,
        minor: u32,
        op: Op,
        from: &mut Decoder<'_>,
    ) -> Result<(DelegationGrant, About), XdrError> {
        let mut about = About::default();
        let failing = self.failing(op);
        let gave = match op {
            Op::ExchangeId => {
                let args = args!(from, ExchangeId);
                about.number = args
                    .verifier
                    .iter()
                    .fold(0, |sum, b| sum << 3 ^ u32::from(*b));
                gives::<ExchangeId>(&Exchanged {
                    client: self.client(),
                    sequence: 7 + u32::from(self.sessions),
                    flags: match self.confirmed == Some(self.life) {
                        true => CONFIRMED,
                        false => 0,
                    },
                    protect: Protection::None,
                    minor: 0,
                    major: Text(b"server"),
                    scope: Text(b""),
                    made_by: AtMostOne(None),
                })
            }
            Op::CreateSession => {
                let args = args!(from, CreateSession);
                about.number = args.sequence;
                match (failing, args.client == self.client()) {
                    (Err(e), _) => return Ok((Err(e), about)),
                    (_, false) => return Ok((Err(Status::StaleClientId), about)),
                    (Ok(()), true) => {}
                }
                self.sessions += 1;
                self.confirmed = Some(self.life);
                self.slots.clear();
                gives::<CreateSession>(&SessionMade {
                    session: self.session(),
                    sequence: args.sequence,
                    flags: args.flags,
                    fore: args.fore,
                    back: args.back,
                })
            }
            Op::ReclaimComplete => {
                let _ = args!(from, ReclaimComplete);
                gives::<ReclaimComplete>(&())
            }
            Op::BindConnToSession => {
                let args = args!(from, BindConnToSession);
                gives::<BindConnToSession>(&args)
            }
            Op::DestroySession => {
                let _ = args!(from, DestroySession);
                gives::<DestroySession>(&())
            }
            Op::DestroyClientId => {
                let _ = args!(from, DestroyClientId);
                gives::<DestroyClientId>(&())
            }
            Op::SetClientId => {
                let args = args!(from, SetClientId);
                self.client_at = String::from_utf8_lossy(args.address.0).into();
                gives::<SetClientId>(&ClientSet {
                    client: self.client(),
                    confirm: *b"confirm!",
                })
            }
            Op::SetClientIdConfirm => {
                let _ = args!(from, SetClientIdConfirm);
                gives::<SetClientIdConfirm>(&())
            }
            Op::PutFh => {
                let _ = args!(from, PutFh);
                gives::<PutFh>(&())
            }
            Op::GetFh => gives::<GetFh>(&handle(9)),
            Op::GetAttr => {
                let _ = args!(from, GetAttr);
                gives::<GetAttr>(&Attributes {
                    kind: Some(FileType::Regular),
                    size: Some(5),
                    ..Attributes::default()
                })
            }
            Op::Create => {
                let _ = args!(from, Create);
                gives::<Create>(&Created {
                    change: ChangeInfo {
                        atomic: true,
                        before: 1,
                        after: 2,
                    },
                    set: Bitmap::default(),
                })
            }
            Op::Open => {
                let args = args!(from, Open);
                about.number = match args.how {
                    Some(CreateHow::Guarded(_)) => args.access | GUARDED,
                    _ => args.access,
                };
                about.owner = Some((args.owner.name.0.to_vec(), args.seqid));
                failing.and_then(|()| self.open(minor, &args))
            }
            Op::OpenConfirm => {
                let args = args!(from, OpenConfirm);
                match self.state_of(&args.state) {
                    Ok((owner, opening)) => {
                        opening.state.seqid += 1;
                        let state = opening.state;
                        about.owner = Some((owner, args.seqid));
                        gives::<OpenConfirm>(&state)
                    }
                    // The open belongs to a client from before a restart.
                    Err(_) => Err(Status::Expired),
                }
            }
            Op::OpenDowngrade => {
                let args = args!(from, OpenDowngrade);
                about.number = args.access;
                match self.state_of(&args.state) {
                    Ok((owner, opening)) if opening.modes.contains(&args.access) => {
                        opening.state.seqid += 1;
                        let state = opening.state;
                        about.owner = Some((owner, args.seqid));
                        gives::<OpenDowngrade>(&state)
                    }
                    Ok(_) => Err(Status::Inval),
                    Err(e) => Err(e),
                }
            }
            Op::Close => {
                let args = args!(from, Close);
                about.number = args.seqid;
                self.close(minor, &args, &mut about)
            }
            Op::Lock => {
                let args = args!(from, Lock);
                let open = match args.locker {
                    LockOwnerArg::First(first) => first.open,
                    LockOwnerArg::Next(next) => next.state,
                };
                match open.other[0] {
                    OPEN => gives::<Lock>(&open),
                    _ => Err(Status::BadStateId),
                }
            }
            Op::LockU => {
                let args = args!(from, LockU);
                gives::<LockU>(&args.state)
            }
            Op::DelegReturn => {
                let _ = args!(from, DelegReturn);
                gives::<DelegReturn>(&())
            }
            _ => Err(Status::NotSupp),
        };
        Ok((failing.and(gave), about))
    }

    fn close(&mut self, minor: u32, args: &CloseArgs, about: &mut About) -> DelegationGrant {
        let (owner, opening) = self.state_of(&args.state)?;
        let state = opening.state;
        if minor == 0 {
            self.check_sequence(&owner, args.seqid)?;
        }
        about.owner = Some((owner.clone(), args.seqid));
        self.opens.remove(&owner);
        gives::<Close>(&state)
    }

    /// Checks the slot of a compound; returns the cached reply to a retransmission.
    fn sequence(&mut self, args: &SequenceArgs) -> Result<Option<Vec<u8>>, Status> {
        if args.session != self.session() {
            return Err(Status::BadSession);
        }
        let (last, answer) = self.slots.entry(args.slot).or_default();
        match args.sequence.wrapping_sub(*last) {
            0 => Ok(Some(answer.clone())),
            1 => {
                *last = args.sequence;
                Ok(None)
            }
            _ => Err(Status::SeqMisordered),
        }
    }
}

impl Scripted {
    fn compound(&self, mut from: Decoder<'_>) -> Result<Vec<u8>, XdrError> {
        let _: Text<'_> = from.get()?;
        let (minor, count): (u32, u32) = (from.get()?, from.get()?);
        let mut answers = Answers::default();
        let mut slot = None;
        let mut busy = None;
        for _ in 0..count {
            let op: Op = from.get()?;
            let hang = self.known().script.hang.remove(&op);
            if let Some(does) = hang {
                while !self.known().script.go_on {
                    std::thread::sleep(Duration::from_millis(5));
                }
                self.known().script.hung = true;
                if !does {
                    return Ok(Answers::only(op, Status::ServerFault));
                }
            }
            let mut known = self.known();
            if op == Op::Sequence {
                let args: SequenceArgs = from.get()?;
                match known.sequence(&args) {
                    Err(e) => return Ok(Answers::only(op, e)),
                    Ok(Some(again)) => return Ok(known.still_busy().unwrap_or(again)),
                    Ok(None) => {}
                }
                slot = Some(args.slot);
                let status = known.script.status;
                answers.add(
                    op,
                    &gives::<SequenceOp>(&Sequenced {
                        session: args.session,
                        sequence: args.sequence,
                        slot: args.slot,
                        highest_slot: args.highest_slot,
                        target: args.highest_slot,
                        status,
                    }),
                );
                continue;
            }
            busy = busy.or(known.script.busy.get(&op).copied().filter(|n| *n > 0));
            let (gave, about) = known.one(minor, op, &mut from)?;
            answers.add(op, &gave);
            known.done.push((op, about.number));
            if let Some((owner, seqid)) = about.owner
                && gave.is_ok()
            {
                known.owners.insert(owner, (seqid, Vec::new()));
            }
            if op == Op::Open && gave.is_ok() && known.script.restart_after_open > 0 {
                known.script.restart_after_open -= 1;
                known.start_anew();
            }
            if gave.is_err() {
                break;
            }
        }
        let message = answers.message();
        if let Some(slot) = slot {
            let mut known = self.known();
            known.slots.entry(slot).or_default().1.clone_from(&message);
            if busy.is_some() {
                // The client has not received the reply yet, and retransmits the call.
                return Ok(known.still_busy().unwrap_or(message));
            }
        }
        Ok(message)
    }
}

impl ClientRecord {
    /// The reply of a server that is still executing the call, as long as the script provides such replies.
    fn still_busy(&mut self) -> Option<Vec<u8>> {
        let left = self.script.busy.values_mut().find(|n| **n > 0)?;
        *left -= 1;
        Some(Answers::only(Op::Sequence, Status::Delay))
    }
}

impl Service for Scripted {
    fn answer(&self, target: Target, args: Decoder<'_>, out: &mut Vec<u8>) -> Accepted {
        if target.procedure == 0 {
            return Accepted::Success;
        }
        match self.compound(args) {
            Ok(message) => {
                out.extend_from_slice(&message);
                Accepted::Success
            }
            Err(_) => Accepted::GarbageArgs,
        }
    }
}
