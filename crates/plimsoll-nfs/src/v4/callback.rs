//! Calls of the server to the client (RFC 7530, 17 and RFC 8881, 20).

use super::attributes::{Attributes, Bitmap};
use super::state::SequenceArgs;
use super::types::{Handle, SessionId, StateId, Status, Text};
use crate::rpc::{Accepted, called, reply, seal};
use crate::xdr::{Decoder, Encode, XdrError, choices, structures};

/// The number of the callback procedure that does nothing (RFC 7530, 17.1).
const CB_NULL: u32 = 0;

/// The number of the callback procedure that executes operations (RFC 7530, 17.2).
const CB_COMPOUND: u32 = 1;

/// The operation number in the result for an unknown callback operation (RFC 7530, 18.3).
const CB_ILLEGAL: u32 = 10044;

/// The maximum number of operations of a CB_COMPOUND; a longer callback fails with `NFS4ERR_RESOURCE`.
const MAX_COMPOUND_OPS: u32 = 16;

/// The maximum number of sessions in a CB_SEQUENCE, and of referring calls per session.
const MAX_REFERRING_CALLS: u32 = 1024;

choices! {
    /// The callback operations that the client executes (RFC 7530, 17.2 and RFC 8881, 19.2).
    CallbackOp {
        /// CB_GETATTR: queries attributes of a file of which the client holds a write delegation (RFC 7530, 18.1).
        GetAttr = 3,
        /// CB_RECALL: requests the return of a delegation (RFC 7530, 18.2).
        Recall = 4,
        /// CB_RECALL_ANY: requests the return of delegations of the client's choice (RFC 8881, 20.6).
        RecallAny = 8,
        /// CB_SEQUENCE: names session, slot and seqid of the callback (4.1; RFC 8881, 20.9).
        Sequence = 11,
    }
}

/// The numbers of the operations of 4.1 callbacks, including unsupported operations (RFC 8881, 20).
const CALLBACK_OPS_4_1: std::ops::RangeInclusive<u32> = 5..=14;

impl CallbackOp {
    /// Whether callbacks of the minor version may contain the operation.
    fn is_of(self, minor: u32) -> bool {
        minor > 0 || matches!(self, Self::GetAttr | Self::Recall)
    }
}

structures! {
    /// Arguments of CB_GETATTR (RFC 7530, 18.1).
    CallbackGetAttr {
        /// Handle of the file whose attributes the server queries.
        file: Handle,
        /// The attributes that the server queries, such as size and change counter.
        wanted: Bitmap,
    }

    /// Arguments of CB_RECALL (RFC 7530, 18.2).
    Recall {
        /// The stateid of the delegation that the client must return.
        state: StateId,
        /// Whether the server is about to truncate the file to zero, so that the client need not write cached data of
        /// the file.
        truncate: bool,
        /// Handle of the file whose delegation the client must return.
        file: Handle,
    }

    /// Arguments of CB_RECALL_ANY (RFC 8881, 20.6).
    RecallAny {
        /// The number of delegations and layouts that the client may keep.
        keep: u32,
        /// The kinds of delegations and layouts that the client must return, by bit number.
        kinds: Bitmap,
    }
}

/// The effects of callback operations on a client (RFC 7530, 18 and RFC 8881, 20).
pub trait CallbackOps {
    /// Checks session, slot and seqid of a callback (RFC 8881, 20.9).
    ///
    /// # Errors
    /// The status with which CB_SEQUENCE fails, such as `BadSlot`.
    fn sequence(&self, args: &SequenceArgs) -> Result<(), Status>;

    /// The cached reply to a retransmitted callback; `None` for a new callback.
    fn replay(&self, args: &SequenceArgs) -> Option<Vec<u8>>;

    /// Caches the reply to a callback until the next callback in the same slot.
    fn store_reply(&self, args: &SequenceArgs, reply: &[u8]);

    /// Returns the delegation that CB_RECALL names; the result is the status of CB_RECALL.
    fn recall(&self, recall: &Recall) -> Status;

    /// Returns all delegations that no open file uses; the result is the status of CB_RECALL_ANY.
    fn recall_any(&self) -> Status;

    /// Attributes, for CB_GETATTR, of a file of which the client holds a write delegation.
    ///
    /// # Errors
    /// The status with which CB_GETATTR fails, such as `BadHandle`.
    fn attributes(&self, args: &CallbackGetAttr) -> Result<Attributes, Status>;
}

/// Decodes the arguments of CB_SEQUENCE; skips the lists of referring calls.
fn sequence(from: &mut Decoder<'_>) -> Result<SequenceArgs, XdrError> {
    let args = from.get()?;
    for _ in 0..list_length(from)? {
        let _: SessionId = from.get()?;
        for _ in 0..list_length(from)? {
            let _call: (u32, u32) = (from.get()?, from.get()?);
        }
    }
    Ok(args)
}

fn list_length(from: &mut Decoder<'_>) -> Result<u32, XdrError> {
    match from.get()? {
        length @ 0..=MAX_REFERRING_CALLS => Ok(length),
        length => Err(XdrError::TooLong(length)),
    }
}

/// Returns the record of the reply to a call of the server (RFC 7530, 17.2); `None` if the message
/// is not a call.
#[must_use]
pub fn answer(call: &[u8], minor: u32, callbacks: &impl CallbackOps) -> Option<Vec<u8>> {
    let mut from = Decoder::new(call);
    let called = called(&mut from).ok()?;
    let (accepted, results) = match called.target.procedure {
        CB_NULL => (Accepted::Success, vec![]),
        CB_COMPOUND => match compound(&mut from, minor, callbacks) {
            Ok(results) => (Accepted::Success, results),
            Err(_) => (Accepted::GarbageArgs, vec![]),
        },
        _ => (Accepted::ProcUnavail, vec![]),
    };
    let mut out = reply(called.xid, accepted);
    out.extend_from_slice(&results);
    seal(&mut out);
    Some(out)
}

/// The encoded results of a callback's operations.
struct CallbackResults {
    status: Status,
    count: u32,
    bytes: Vec<u8>,
    /// The slot of the callback, once CB_SEQUENCE has succeeded.
    slot: Option<SequenceArgs>,
}

impl CallbackResults {
    fn add(&mut self, op: u32, status: Status) {
        (op, status).encode(&mut self.bytes);
        self.status = status;
        self.count += 1;
    }
}

/// Executes a CB_COMPOUND; returns the encoded results.
fn compound(
    from: &mut Decoder<'_>,
    minor: u32,
    callbacks: &impl CallbackOps,
) -> Result<Vec<u8>, XdrError> {
    let tag: Text<'_> = from.get()?;
    let requested_minor: u32 = from.get()?;
    let _ident: u32 = from.get()?;
    let count: u32 = from.get()?;
    let mut results = CallbackResults {
        status: Status::Ok,
        count: 0,
        bytes: Vec::new(),
        slot: None,
    };
    if requested_minor != minor {
        results.status = Status::MinorVersMismatch;
    } else if count > MAX_COMPOUND_OPS {
        results.status = Status::Resource;
    }
    while results.status == Status::Ok && results.count < count {
        let number = from.get()?;
        match refusal(number, minor, results.count == 0) {
            Err((number, status)) => results.add(number, status),
            Ok(op) => {
                if let Some(replayed) = execute(op, from, callbacks, &mut results)? {
                    return Ok(replayed);
                }
            }
        }
    }
    let mut out = Vec::new();
    (results.status, tag, results.count).encode(&mut out);
    out.extend_from_slice(&results.bytes);
    if let Some(slot) = results.slot {
        callbacks.store_reply(&slot, &out);
    }
    Ok(out)
}

/// The callback operation with `number`; for a refused operation, the number and the status in its result.
fn refusal(number: u32, minor: u32, is_first: bool) -> Result<CallbackOp, (u32, Status)> {
    let op = CallbackOp::of(number).filter(|op| op.is_of(minor));
    let is_sequence = op == Some(CallbackOp::Sequence);
    // On 4.1, CB_SEQUENCE must be the first operation of a CB_COMPOUND, and may not be repeated (RFC 8881, 20.9).
    if minor > 0 && is_sequence != is_first {
        return Err(match is_sequence {
            true => (number, Status::SequencePos),
            false => (number, Status::OpNotInSession),
        });
    }
    // The arguments of an unsupported operation cannot be skipped, so the callback ends here.
    op.ok_or(match minor > 0 && CALLBACK_OPS_4_1.contains(&number) {
        true => (number, Status::NotSupp),
        false => (CB_ILLEGAL, Status::OpIllegal),
    })
}

/// Executes one operation. For a retransmitted callback, returns the cached results of the whole
/// callback.
fn execute(
    op: CallbackOp,
    from: &mut Decoder<'_>,
    callbacks: &impl CallbackOps,
    results: &mut CallbackResults,
) -> Result<Option<Vec<u8>>, XdrError> {
    let number = op as u32;
    match op {
        CallbackOp::Sequence => {
            let args = sequence(from)?;
            if let Some(replayed) = callbacks.replay(&args) {
                return Ok(Some(replayed));
            }
            let checked = callbacks.sequence(&args);
            results.add(number, checked.err().unwrap_or(Status::Ok));
            if checked.is_ok() {
                (args.session, args.sequence, args.slot).encode(&mut results.bytes);
                // The highest existing slot, and the highest slot that the client wants to be used.
                (args.highest_slot, args.highest_slot).encode(&mut results.bytes);
                results.slot = Some(args);
            }
        }
        CallbackOp::Recall => results.add(number, callbacks.recall(&from.get()?)),
        CallbackOp::RecallAny => {
            let _: RecallAny = from.get()?;
            results.add(number, callbacks.recall_any());
        }
        CallbackOp::GetAttr => {
            let attributes = callbacks.attributes(&from.get()?);
            results.add(number, attributes.err().unwrap_or(Status::Ok));
            if let Ok(attributes) = attributes {
                attributes.encode(&mut results.bytes);
            }
        }
    }
    Ok(None)
}
