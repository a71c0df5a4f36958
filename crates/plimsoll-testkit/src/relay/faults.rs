//! Faults: matching of calls, and changes of messages.

use plimsoll_nfs::rpc::{self, Accepted, called, reply, seal};
use plimsoll_nfs::v4::operations::Op;
use plimsoll_nfs::v4::types::{Status, Text};
use plimsoll_nfs::v4::{CompoundArgs, TARGET};
use plimsoll_nfs::xdr::{Decoder, Encode};
use std::collections::BTreeMap;

/// Malformed message that the relay sends to the client in place of the server's reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Garbage {
    /// A record that is neither a call nor a reply.
    NoReply,
    /// A record with a length of two gigabytes.
    Endless,
    /// A reply to the call with invalid results.
    Results,
}

/// Failure of a compound that a [`Fault`] causes: an error status, or a lost or malformed reply.
#[derive(Debug, Clone, Copy)]
enum CallFault {
    Refuse(Status),
    RefuseDone(Status),
    Lose,
    Swallow,
    Garble(Garbage),
}

/// Fault that a relay injects into matching compounds; [`Fault::after`], [`Fault::every`] and [`Fault::times`] choose
/// among the compounds, by default the first.
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

    /// Fault that fails the first operation `at` of a compound with `status`. The server executes the operations before
    /// `at`; `at` and the operations after `at` never reach the server.
    ///
    /// With NFSv4.0 the server does not advance the seqid for an operation of an open owner that the server has not
    /// received, but a client does with most statuses (RFC 7530, 9.1.7): to fail an OPEN or CLOSE without side effects,
    /// refuse the compound at PUTFH.
    pub fn refuse(at: Op, status: Status) -> Self {
        Self::new(at, CallFault::Refuse(status))
    }

    /// Fault that lets the server execute a whole compound that begins with `first`, then tells the client that `first`
    /// failed with `status`.
    pub fn refuse_done(first: Op, status: Status) -> Self {
        Self::new(first, CallFault::RefuseDone(status))
    }

    /// Fault that lets the server execute a compound with operation `at`, then drops the reply and the connection.
    pub fn lose(at: Op) -> Self {
        Self::new(at, CallFault::Lose)
    }

    /// Fault that lets the server execute a compound with operation `at`, then drops the reply; the connection stays.
    pub fn swallow(at: Op) -> Self {
        Self::new(at, CallFault::Swallow)
    }

    /// Fault that lets the server execute a compound with operation `at`, then sends garbage to the client instead of
    /// the reply.
    pub fn garble(at: Op, garbage: Garbage) -> Self {
        Self::new(at, CallFault::Garble(garbage))
    }

    /// Restricts the fault to compounds that also contain the operation `op`.
    pub fn of(mut self, op: Op) -> Self {
        self.of = Some(op);
        self
    }

    /// Exempts the first `calls` matching compounds from the fault.
    pub fn after(mut self, calls: u32) -> Self {
        self.after = calls;
        self
    }

    /// Applies the fault only to every `n`th matching compound, from the first on; 0 counts as 1.
    pub fn every(mut self, n: u32) -> Self {
        self.every = n.max(1);
        self
    }

    /// Applies the fault to `times` matching compounds, then to none.
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    /// Counts the compound if it matches the fault; returns whether the fault applies to the compound.
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

/// Decision of the relay on a client's message: whether the message reaches the server unchanged, altered, or not at
/// all.
pub(super) enum CallAction {
    /// The relay forwards the client's message unchanged to the server, because no fault applies.
    Pass,
    /// The relay forwards the record, which is the client's compound or the compound's first operations, to the server,
    /// and applies a fault to the server's reply.
    Forward(Vec<u8>, ReplyAction),
    /// The relay sends the record to the client as the reply to the client's call, and the call does not reach the
    /// server.
    Reply(Vec<u8>),
}

/// Fault that the relay applies to a server's reply before passing the reply to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyAction {
    /// Fault that appends the result of a failed operation to the server's reply, unless an operation has already
    /// failed at the server.
    Add(Op, Status),
    /// Fault that replaces the server's reply by a reply in which the compound's first operation failed.
    Only(Op, Status),
    /// Fault that drops the server's reply and closes the client's connection.
    Lose,
    /// Fault that drops the server's reply but keeps the connection, so that the client waits for the reply in vain.
    Swallow,
    /// Fault that replaces the server's reply by a malformed message.
    Garble(Garbage),
}

/// Injected faults of a relay, and counts of the compounds that clients sent.
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
        // Reply of the server to the cut compound: PUTROOTFH and PUTFH succeeded.
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
        // No fault matches the compound: the first fault requires a RENAME beside the REMOVE, the second an OPEN, and
        // the third REMOVE as the first operation.
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
