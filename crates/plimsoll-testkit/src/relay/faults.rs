//! Faults: matching of calls, and changes of messages.

use plimsoll_nfs::rpc::{self, Accepted, called, reply, seal};
use plimsoll_nfs::v4::operations::Op;
use plimsoll_nfs::v4::types::{Status, Text};
use plimsoll_nfs::v4::{CompoundArgs, TARGET};
use plimsoll_nfs::xdr::{Decoder, Encode};
use std::collections::BTreeMap;

/// Garbage in place of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Garbage {
    /// A record that is neither a call nor a reply.
    NoReply,
    /// A record with a length of two gigabytes.
    Endless,
    /// A reply to the call with invalid results.
    Results,
}

/// Effect of a fault on a call.
#[derive(Debug, Clone, Copy)]
enum CallFault {
    Refuse(Status),
    RefuseDone(Status),
    Lose,
    Swallow,
    Garble(Garbage),
    Lengthen,
    Shorten,
}

/// A fault; applies to one call, unless changed.
#[derive(Debug, Clone)]
pub struct Fault {
    at: Op,
    of: Option<Op>,
    what: CallFault,
    after: u32,
    every: u32,
    times: u32,
    /// Number of matching calls so far.
    matched: u32,
}

impl Fault {
    fn new(at: Op, what: CallFault) -> Self {
        Self {
            at,
            of: None,
            what,
            after: 0,
            every: 1,
            times: 1,
            matched: 0,
        }
    }

    /// Fails the first operation of this kind. Operations before it are executed; the operation itself and all
    /// operations after it never reach the server.
    ///
    /// On 4.0 the server does not advance the seqid for an operation of an open owner that it has not received, but a
    /// client does with most statuses (RFC 7530, 9.1.7): to fail an OPEN or CLOSE without side effects, refuse the
    /// compound at PUTFH.
    pub fn refuse(at: Op, status: Status) -> Self {
        Self::new(at, CallFault::Refuse(status))
    }

    /// Executes the whole compound, and replies that its first operation, `first`, failed.
    pub fn refuse_done(first: Op, status: Status) -> Self {
        Self::new(first, CallFault::RefuseDone(status))
    }

    /// Executes the compound, and loses its reply with the connection.
    pub fn lose(at: Op) -> Self {
        Self::new(at, CallFault::Lose)
    }

    /// Executes the compound, and drops its reply; the connection stays.
    pub fn swallow(at: Op) -> Self {
        Self::new(at, CallFault::Swallow)
    }

    /// Executes the compound, and sends garbage instead of its reply.
    pub fn garble(at: Op, garbage: Garbage) -> Self {
        Self::new(at, CallFault::Garble(garbage))
    }

    /// Executes the compound, and appends four extra bytes to its reply.
    pub fn lengthen(at: Op) -> Self {
        Self::new(at, CallFault::Lengthen)
    }

    /// Executes the compound, and cuts the last four bytes off its reply.
    pub fn shorten(at: Op) -> Self {
        Self::new(at, CallFault::Shorten)
    }

    /// Restricts the fault to compounds that also contain this operation.
    pub fn of(mut self, op: Op) -> Self {
        self.of = Some(op);
        self
    }

    /// Skips `calls` matching calls first.
    pub fn after(mut self, calls: u32) -> Self {
        self.after = calls;
        self
    }

    /// Applies the fault to every `n`th matching call only; `n` is at least 1.
    pub fn every(mut self, n: u32) -> Self {
        self.every = n.max(1);
        self
    }

    /// Applies the fault to `times` calls.
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    /// Counts a call if it matches; returns whether the fault applies to the call.
    fn applies(&mut self, compound: &CompoundArgs<'_>) -> bool {
        let matches = compound.find(self.at).is_some_and(|at| match self.what {
            CallFault::RefuseDone(_) => at == 0,
            _ => true,
        });
        if !matches || self.of.is_some_and(|of| compound.find(of).is_none()) {
            return false;
        }
        let before = self.matched;
        self.matched += 1;
        let applies = self.times > 0
            && before >= self.after
            && (before - self.after).is_multiple_of(self.every);
        self.times -= u32::from(applies);
        applies
    }
}

/// Action of the relay on a call.
pub(super) enum CallAction {
    /// Forwards the call unchanged.
    Pass,
    /// Forwards a record in place of the call, and applies an action to the reply.
    Forward(Vec<u8>, ReplyAction),
    /// Replies with a record; the server does not get the call.
    Reply(Vec<u8>),
}

/// Action of the relay on a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyAction {
    /// Appends a failed operation.
    Add(Op, Status),
    /// Replaces the reply by the failure of the first operation.
    Only(Op, Status),
    /// Drops the reply and the connection.
    Lose,
    /// Drops the reply.
    Swallow,
    /// Replaces the reply by garbage.
    Garble(Garbage),
    /// Appends four bytes.
    Lengthen,
    /// Removes the last four bytes.
    Shorten,
}

/// The faults, and counts of calls.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) all: Vec<Fault>,
    pub(super) fallen: u32,
    /// Number of compounds that contained an operation, by operation number.
    pub(super) seen: BTreeMap<u32, u32>,
}

impl Faults {
    /// Chooses the action for a message of a client.
    pub(super) fn judge(&mut self, message: &[u8]) -> CallAction {
        let mut from = Decoder::new(message);
        let Ok(call) = called(&mut from) else {
            // The message is a reply to a callback.
            return CallAction::Pass;
        };
        let head = &message[..message.len() - from.rest().len()];
        let Ok(compound) = from.get::<CompoundArgs<'_>>() else {
            return CallAction::Pass;
        };
        if call.target != TARGET {
            return CallAction::Pass;
        }
        let mut ops: Vec<u32> = compound.ops.iter().map(|p| p.op as u32).collect();
        ops.sort_unstable();
        ops.dedup();
        for op in ops {
            *self.seen.entry(op).or_default() += 1;
        }
        let Some((op, what)) = self
            .all
            .iter_mut()
            .find_map(|f| f.applies(&compound).then_some((f.at, f.what)))
        else {
            return CallAction::Pass;
        };
        self.fallen += 1;
        let whole = |action| CallAction::Forward(record(message), action);
        match what {
            CallFault::Refuse(status) => refuse((call.xid, head), compound, op, status),
            CallFault::RefuseDone(status) => whole(ReplyAction::Only(op, status)),
            CallFault::Lose => whole(ReplyAction::Lose),
            CallFault::Swallow => whole(ReplyAction::Swallow),
            CallFault::Garble(garbage) => whole(ReplyAction::Garble(garbage)),
            CallFault::Lengthen => whole(ReplyAction::Lengthen),
            CallFault::Shorten => whole(ReplyAction::Shorten),
        }
    }
}

/// A message as a record.
pub(super) fn record(message: &[u8]) -> Vec<u8> {
    let mut out = [&[0; 4], message].concat();
    seal(&mut out);
    out
}

fn refuse(
    (xid, head): (u32, &[u8]),
    mut compound: CompoundArgs<'_>,
    op: Op,
    status: Status,
) -> CallAction {
    match compound.find(op) {
        None | Some(0) => CallAction::Reply(failed_reply(xid, compound.tag, op, status)),
        Some(at) => {
            compound.ops.truncate(at);
            let mut message = head.to_vec();
            compound.encode(&mut message);
            CallAction::Forward(record(&message), ReplyAction::Add(op, status))
        }
    }
}

/// The record of the reply to a compound whose first operation failed.
fn failed_reply(xid: u32, tag: Text<'_>, op: Op, status: Status) -> Vec<u8> {
    let mut out = reply(xid, Accepted::Success);
    status.encode(&mut out);
    tag.encode(&mut out);
    1u32.encode(&mut out);
    op.encode(&mut out);
    status.encode(&mut out);
    seal(&mut out);
    out
}

/// The record that replaces a reply of the server; `None` if no record is sent.
pub(super) fn altered(xid: u32, message: &[u8], action: ReplyAction) -> Option<Vec<u8>> {
    match action {
        ReplyAction::Add(op, status) => {
            Some(added(message, op, status).unwrap_or_else(|| record(message)))
        }
        ReplyAction::Only(op, status) => Some(failed_reply(xid, Text(b""), op, status)),
        ReplyAction::Lose | ReplyAction::Swallow => None,
        ReplyAction::Garble(Garbage::NoReply) => {
            let mut out = Vec::new();
            [0, xid, 77].iter().for_each(|w: &u32| w.encode(&mut out));
            seal(&mut out);
            Some(out)
        }
        ReplyAction::Lengthen => Some(record(&[message, &[0; 4]].concat())),
        ReplyAction::Shorten => Some(record(&message[..message.len().saturating_sub(4)])),
        ReplyAction::Garble(Garbage::Endless) => Some(vec![0xff; 64]),
        ReplyAction::Garble(Garbage::Results) => {
            let mut out = reply(xid, Accepted::Success);
            out.extend_from_slice(&[0xff; 64]);
            seal(&mut out);
            Some(out)
        }
    }
}

/// The record of a reply with a failed operation appended; `None` if an operation has already failed.
fn added(message: &[u8], op: Op, status: Status) -> Option<Vec<u8>> {
    let mut from = rpc::result(message).ok()?;
    let head = &message[..message.len() - from.rest().len()];
    if from.get::<Status>().ok()? != Status::Ok {
        return None;
    }
    let tag: Text<'_> = from.get().ok()?;
    let count: u32 = from.get().ok()?;
    let mut out = head.to_vec();
    status.encode(&mut out);
    tag.encode(&mut out);
    (count + 1).encode(&mut out);
    out.extend_from_slice(from.rest());
    op.encode(&mut out);
    status.encode(&mut out);
    Some(record(&out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_nfs::rpc::{Credentials, Target, call};
    use plimsoll_nfs::v4::operations::{GetFh, PutFh, PutRootFh, Remove};
    use plimsoll_nfs::v4::types::Handle;
    use plimsoll_nfs::v4::{Compound, NfsError, Request, Results};

    /// PUTROOTFH, PUTFH, REMOVE, PUTFH, GETFH.
    fn message(xid: u32) -> Vec<u8> {
        let handle = Handle::new(b"abc").unwrap();
        let request = Request {
            minor: 0,
            build: |c: &mut Compound<'_>| {
                c.add::<PutRootFh>(&()).add::<PutFh>(&handle);
                c.add::<Remove>(&Text(b"f")).add::<PutFh>(&handle);
                c.add::<GetFh>(&());
            },
        };
        call(xid, TARGET, &Credentials::sys("here", 1, 2), &request)[4..].to_vec()
    }

    fn ops(record: &[u8]) -> Vec<Op> {
        let mut from = Decoder::new(&record[4..]);
        called(&mut from).unwrap();
        let asked: CompoundArgs<'_> = from.get().unwrap();
        assert_eq!(from.finish(), Ok(()));
        asked.ops.iter().map(|p| p.op).collect()
    }

    fn with(fault: Fault) -> Faults {
        Faults {
            all: vec![fault],
            ..Faults::default()
        }
    }

    #[test]
    fn a_compound_is_cut_before_what_is_refused() {
        let mut faults = with(Fault::refuse(Op::Remove, Status::NoSpc));
        let CallAction::Forward(record, then) = faults.judge(&message(7)) else {
            panic!("what is before it is carried out");
        };
        assert_eq!(ops(&record), [Op::PutRootFh, Op::PutFh]);
        // The server replies that both operations succeeded.
        let mut answer = reply(7, Accepted::Success);
        for word in [0u32, 0, 2, 24, 0, 22, 0] {
            word.encode(&mut answer);
        }
        let altered = altered(7, &answer[4..], then).unwrap();
        let mut results = Results::read(rpc::result(&altered[4..]).unwrap()).unwrap();
        results.skip::<PutRootFh>().unwrap();
        results.skip::<PutFh>().unwrap();
        let refused = results.skip::<Remove>().unwrap_err();
        assert_eq!(refused, NfsError::Status(Some(Op::Remove), Status::NoSpc));
        assert!(
            matches!(faults.judge(&message(8)), CallAction::Pass),
            "once"
        );
        assert_eq!((faults.fallen, faults.seen[&(Op::Remove as u32)]), (1, 2));
    }

    #[test]
    fn what_failed_at_the_server_is_left_as_it_is() {
        let mut answer = reply(7, Accepted::Success);
        for word in [70u32, 0, 1, 24, 70] {
            word.encode(&mut answer);
        }
        seal(&mut answer);
        let then = ReplyAction::Add(Op::Remove, Status::NoSpc);
        assert_eq!(altered(7, &answer[4..], then).unwrap(), answer);
    }

    #[test]
    fn the_first_operation_is_refused_without_the_server() {
        let mut faults = with(Fault::refuse(Op::PutRootFh, Status::Delay).of(Op::Remove));
        let CallAction::Reply(record) = faults.judge(&message(9)) else {
            panic!("there is nothing before it");
        };
        let mut results = Results::read(rpc::result(&record[4..]).unwrap()).unwrap();
        let refused = results.skip::<PutRootFh>().unwrap_err();
        assert_eq!(
            refused,
            NfsError::Status(Some(Op::PutRootFh), Status::Delay)
        );
    }

    #[test]
    fn faults_fall_when_they_are_to() {
        let fault = Fault::lose(Op::Remove).after(2).every(3).times(2);
        let mut faults = with(fault);
        let falls =
            |faults: &mut Faults, xid| !matches!(faults.judge(&message(xid)), CallAction::Pass);
        let fallen: Vec<u32> = (0..20).filter(|xid| falls(&mut faults, *xid)).collect();
        assert_eq!(fallen, [2, 5]);
        // The fault does not match without the other operation, or if its operation is not the first.
        for fault in [
            Fault::lose(Op::Remove).of(Op::Rename),
            Fault::lose(Op::Open),
            Fault::refuse_done(Op::Remove, Status::Io),
        ] {
            assert!(!falls(&mut with(fault), 1));
        }
        assert!(falls(
            &mut with(Fault::refuse_done(Op::PutRootFh, Status::Io)),
            1
        ));
    }

    #[test]
    fn what_is_no_compound_passes() {
        let mut faults = with(Fault::lose(Op::Remove));
        let null = Target {
            procedure: 0,
            ..TARGET
        };
        let null = call(1, null, &Credentials::none(), &());
        assert!(matches!(faults.judge(&null[4..]), CallAction::Pass));
        let whole = message(1);
        for end in 0..whole.len() {
            assert!(matches!(faults.judge(&whole[..end]), CallAction::Pass));
        }
        assert!(matches!(
            faults.judge(&whole),
            CallAction::Forward(_, ReplyAction::Lose)
        ));
    }
}
