//! Calls of the server to the client (RFC 7530, 17 and RFC 8881, 20).

use super::attributes::{Attributes, Bitmap};
use super::state::SequenceArgs;
use super::types::{Handle, SessionId, StateId, Status, Text};
use crate::rpc::{Accepted, called, reply, seal};
use crate::xdr::{Decoder, Encode, XdrError, choices, structures};

/// The procedure that does nothing (RFC 7530, 17.1).
const CB_NULL: u32 = 0;

/// The procedure that does all else (RFC 7530, 17.2).
const CB_COMPOUND: u32 = 1;

/// What stands for an operation that is none (RFC 7530, 17.2.3).
const CB_ILLEGAL: u32 = 10044;

/// Most operations of a callback that is answered.
const MAX_COMPOUND_OPS: u32 = 16;

/// Most words of what a callback's SEQUENCE says of other calls.
const MAX_REFERRING_CALLS: u32 = 1024;

choices! {
    /// The operations of callbacks that are understood (RFC 7530, 17.2 and RFC 8881, 19.2).
    CallbackOp {
        /// Attributes of a file that is delegated for writing (17.2.1).
        GetAttr = 3,
        /// A delegation is asked back (17.2.2).
        Recall = 4,
        /// Some of all delegations are asked back (RFC 8881, 20.6).
        RecallAny = 8,
        /// The place of the callback in the session (RFC 8881, 20.9).
        Sequence = 11,
    }
}

/// Numbers of the other operations that callbacks of 4.1 may have (RFC 8881, 20).
const OTHER_CALLBACK_OPS: std::ops::RangeInclusive<u32> = 5..=14;

impl CallbackOp {
    /// Whether callbacks of a minor version may have it.
    fn is_of(self, minor: u32) -> bool {
        minor > 0 || matches!(self, Self::GetAttr | Self::Recall)
    }
}

structures! {
    /// Arguments of CB_GETATTR (RFC 7530, 17.2.1).
    CallbackGetAttr {
        /// The file.
        file: Handle,
        /// What is asked for.
        wanted: Bitmap,
    }

    /// Arguments of CB_RECALL (RFC 7530, 17.2.2).
    Recall {
        /// The delegation.
        state: StateId,
        /// The file will be cut.
        truncate: bool,
        /// The file.
        file: Handle,
    }

    /// Arguments of CB_RECALL_ANY (RFC 8881, 20.6).
    RecallAny {
        /// Delegations that may be kept.
        keep: u32,
        /// Kinds that are asked back.
        kinds: Bitmap,
    }
}

/// What a client does for its server (RFC 7530, 17 and RFC 8881, 20).
pub trait CallbackOps {
    /// The place of a callback: whether it is the next of its slot (RFC 8881, 20.9).
    ///
    /// # Errors
    /// What is wrong with it.
    fn sequence(&self, args: &SequenceArgs) -> Result<(), Status>;

    /// The answer that was given to the last callback of a slot, for one that comes again.
    fn replay(&self, args: &SequenceArgs) -> Option<Vec<u8>>;

    /// Keeps the answer to a callback, until the next one of its slot.
    fn store_reply(&self, args: &SequenceArgs, answer: &[u8]);

    /// A delegation is asked back.
    fn recall(&self, recall: &Recall) -> Status;

    /// All delegations that are not needed are asked back.
    fn recall_any(&self) -> Status;

    /// Attributes of a file that is delegated for writing.
    ///
    /// # Errors
    /// Why there are none.
    fn attributes(&self, asked: &CallbackGetAttr) -> Result<Attributes, Status>;
}

/// Arguments of CB_SEQUENCE; what it says of other calls is passed over.
fn sequence(from: &mut Decoder<'_>) -> Result<SequenceArgs, XdrError> {
    let args = SequenceArgs {
        session: from.get()?,
        sequence: from.get()?,
        slot: from.get()?,
        highest: from.get()?,
        keep: from.get()?,
    };
    let lists: u32 = from.get()?;
    for _ in 0..lists.min(MAX_REFERRING_CALLS) {
        let _: SessionId = from.get()?;
        let calls: u32 = from.get()?;
        for _ in 0..calls.min(MAX_REFERRING_CALLS) {
            let _: (u32, u32) = (from.get()?, from.get()?);
        }
        if calls > MAX_REFERRING_CALLS {
            return Err(XdrError::TooLong(calls));
        }
    }
    match lists > MAX_REFERRING_CALLS {
        true => Err(XdrError::TooLong(lists)),
        false => Ok(args),
    }
}

/// The record of the reply to a call of the server (RFC 7530, 17.2); `None` if it is no call.
#[must_use]
pub fn answer(call: &[u8], minor: u32, callbacks: &impl CallbackOps) -> Option<Vec<u8>> {
    let mut from = Decoder::new(call);
    let called = called(&mut from).ok()?;
    match called.target.procedure {
        CB_NULL => {
            let mut out = reply(called.xid, Accepted::Success);
            seal(&mut out);
            Some(out)
        }
        CB_COMPOUND => {
            let mut out = reply(called.xid, Accepted::Success);
            match compound(&mut from, minor, callbacks) {
                Ok(body) => out.extend_from_slice(&body),
                Err(_) => out = reply(called.xid, Accepted::GarbageArgs),
            }
            seal(&mut out);
            Some(out)
        }
        _ => {
            let mut out = reply(called.xid, Accepted::ProcUnavail);
            seal(&mut out);
            Some(out)
        }
    }
}

/// What the operations gave, after each other.
struct CallbackResults {
    status: Status,
    count: u32,
    bytes: Vec<u8>,
}

impl CallbackResults {
    fn add(&mut self, op: u32, status: Status) {
        op.encode(&mut self.bytes);
        status.encode(&mut self.bytes);
        self.status = status;
        self.count += 1;
    }
}

fn compound(
    from: &mut Decoder<'_>,
    minor: u32,
    callbacks: &impl CallbackOps,
) -> Result<Vec<u8>, XdrError> {
    let tag: Text<'_> = from.get()?;
    let asked_minor: u32 = from.get()?;
    let _ident: u32 = from.get()?;
    let count: u32 = from.get()?;
    let mut answers = CallbackResults {
        status: Status::Ok,
        count: 0,
        bytes: Vec::new(),
    };
    let mut place = None;
    if asked_minor != minor {
        answers.status = Status::MinorVersMismatch;
    } else if count > MAX_COMPOUND_OPS {
        answers.status = Status::Resource;
    } else {
        for _ in 0..count {
            let op: u32 = from.get()?;
            let known = CallbackOp::of(op).filter(|known| known.is_of(minor));
            let is_place = known == Some(CallbackOp::Sequence);
            match (minor > 0 && is_place != (answers.count == 0), known) {
                // The place in the session comes first, and nothing without it (RFC 8881, 20.9).
                (true, Some(_)) if is_place => answers.add(op, Status::SequencePos),
                (true, _) => answers.add(op, Status::OpNotInSession),
                (false, Some(known)) => {
                    if let Some(again) = one(known, from, callbacks, &mut answers, &mut place)? {
                        return Ok(again);
                    }
                }
                // Of what is not understood the arguments cannot be passed over either.
                (false, None) => match minor > 0 && OTHER_CALLBACK_OPS.contains(&op) {
                    true => answers.add(op, Status::NotSupp),
                    false => answers.add(CB_ILLEGAL, Status::OpIllegal),
                },
            }
            if answers.status != Status::Ok {
                break;
            }
        }
    }
    let mut out = Vec::new();
    answers.status.encode(&mut out);
    tag.encode(&mut out);
    answers.count.encode(&mut out);
    out.extend_from_slice(&answers.bytes);
    if let Some(place) = place {
        callbacks.store_reply(&place, &out);
    }
    Ok(out)
}

/// Does one operation; what is given is the answer to the whole callback, if it was given before.
fn one(
    known: CallbackOp,
    from: &mut Decoder<'_>,
    callbacks: &impl CallbackOps,
    answers: &mut CallbackResults,
    place: &mut Option<SequenceArgs>,
) -> Result<Option<Vec<u8>>, XdrError> {
    let op = known as u32;
    match known {
        CallbackOp::Sequence => {
            let args = sequence(from)?;
            if let Some(again) = callbacks.replay(&args) {
                return Ok(Some(again));
            }
            let done = callbacks.sequence(&args);
            answers.add(op, done.err().unwrap_or(Status::Ok));
            if done.is_ok() {
                args.session.encode(&mut answers.bytes);
                args.sequence.encode(&mut answers.bytes);
                args.slot.encode(&mut answers.bytes);
                // The highest slot there is, and the highest that is wanted.
                args.highest.encode(&mut answers.bytes);
                args.highest.encode(&mut answers.bytes);
                *place = Some(args);
            }
        }
        CallbackOp::Recall => {
            let status = callbacks.recall(&from.get()?);
            answers.add(op, status);
        }
        CallbackOp::RecallAny => {
            let _: RecallAny = from.get()?;
            answers.add(op, callbacks.recall_any());
        }
        CallbackOp::GetAttr => {
            let given = callbacks.attributes(&from.get()?);
            answers.add(op, given.err().unwrap_or(Status::Ok));
            if let Ok(attributes) = given {
                attributes.encode(&mut answers.bytes);
            }
        }
    }
    Ok(None)
}
