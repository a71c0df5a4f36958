//! The nfs4 target on nfs-ganesha behind a relay that causes faults. For each fault, the tests check the operation's
//! result, the bytes on the server, and the rows of the results.

#[path = "support/rendezvous.rs"]
mod rendezvous;
#[path = "support/rows.rs"]
mod rows;

use plimsoll_nfs::v4::operations::Op;
use plimsoll_nfs::v4::types::Status;
use plimsoll_target::{FileOperation, OpenMode, Session};
use plimsoll_testkit::{Fault, Garbage, needs_root};
use rendezvous::*;
use rows::*;
use rustix::io::Errno;

/// Number of repetitions of a fault that lasts longer than any test.
const ALWAYS: u32 = u32::MAX;

/// Options of a URL: the minor version, and a `timeo` so long that a busy machine causes no retransmission.
fn minor(minor: u32) -> String {
    format!("minorversion={minor}&timeo=30s")
}

/// On 4.0, refuses operations with a seqid at PUTFH, so that neither side counts the seqid; refuses all other
/// operations themselves.
fn before_it_counts(what: Do, status: Status, times: u32, minor: u32) -> Meeting {
    match (minor, what) {
        (0, Do::Open | Do::Make | Do::Close) => Meeting::passes_at(Op::PutFh, what, status, times),
        _ => Meeting::passes(what, status, times),
    }
}

/// The client repeats a delayed call, and the row counts an error for each delay.
#[test]
fn delay_and_grace() {
    needs_root!();
    for m in [0, 1] {
        let bed = Bed::new(&format!("delay{m}"));
        let mut all: Vec<_> = Do::ALL
            .iter()
            .map(|what| before_it_counts(*what, Status::Delay, 2, m))
            .collect();
        for what in [Do::Open, Do::Make, Do::Remove, Do::Rename] {
            all.push(before_it_counts(what, Status::Grace, 1, m));
        }
        let mut again = None;
        if m == 1 {
            // A delay of SEQUENCE means that the server still executes this very call: the client sends the call again,
            // and counts a retransmission and no error.
            let busy = [Do::Open, Do::Read, Do::Close, Do::Remove, Do::Stat];
            all.extend(busy.map(|what| Meeting {
                errors: Vec::new(),
                ..Meeting::passes_at(Op::Sequence, what, Status::Delay, 1)
            }));
            again = Some(busy.len() as u64);
        }
        let done = bed.run(&minor(m), 1, Meetings(&bed, all));
        assert_eq!(done.get("retransmissions").copied(), again);
    }
}

/// A refused operation fails with the error number of the status, and the row counts an error with the name of the
/// status. On 4.0 the client counts the seqid of a refused OPEN or CLOSE, which the server has not seen; the next open
/// succeeds with another open-owner.
#[test]
fn refusals_have_their_error_numbers() {
    needs_root!();
    use Do::{Close, Commit, Cut, List, Make, MakeDir, Open, Read, Remove, Rename, Stat, Write};
    for m in [0, 1] {
        let bed = Bed::new(&format!("refused{m}"));
        let each: [(Status, &str, &[Do]); 6] = [
            (Status::Resource, "NFS4ERR_RESOURCE", &[Open, Read, Stat]),
            (Status::NoSpc, "ENOSPC", &[Make, Write, Commit, MakeDir]),
            (Status::DQuot, "EDQUOT", &[Make, Write, Commit, Cut]),
            (Status::RoFs, "EROFS", &[Make, Cut, Remove, Rename, MakeDir]),
            (Status::Access, "EACCES", &[Open, Read, Write, Stat, List]),
            (Status::Io, "EIO", &[Read, Write, Commit, Close]),
        ];
        let all = each.iter().flat_map(|(status, error, whats)| {
            let fails = |what: &Do| Meeting::fails(*what, *status, error);
            whats.iter().map(fails)
        });
        bed.run(&minor(m), 1, Meetings(&bed, all.collect()));
    }
}

/// The client opens a file again that the server has lost or revoked; a close of such a file succeeds.
#[test]
fn opens_that_are_lost() {
    needs_root!();
    use Status::{AdminRevoked, BadStateId, DelegRevoked, Expired, OldStateId, StaleStateId};
    for m in [0, 1] {
        let bed = Bed::new(&format!("opens{m}"));
        let mut lost = vec![BadStateId, Expired, AdminRevoked, DelegRevoked];
        if m == 0 {
            lost.push(StaleStateId);
        }
        let mut all = Vec::new();
        for status in lost {
            for what in [Do::Read, Do::Write, Do::Cut] {
                all.push(Meeting::passes(what, status, 1).recovering());
            }
            all.push(Meeting::passes(Do::Close, status, 1));
        }
        for what in [Do::Read, Do::Write, Do::Cut] {
            all.push(Meeting::passes(what, OldStateId, 2));
        }
        if m == 1 {
            all.push(Meeting::passes(Do::Close, OldStateId, 2));
        }
        if m == 0 {
            all.push(Meeting::passes(Do::Open, Status::StaleClientId, 1).recovering());
            all.push(Meeting::passes(Do::Open, Status::BadSeqId, 1));
            // The client counts the seqid of the delayed OPEN, which the server has not seen: the server refuses the
            // next seqid.
            all.push(Meeting {
                errors: vec![("NFS4ERR_DELAY", 1), ("NFS4ERR_BAD_SEQID", 1)],
                ..Meeting::passes(Do::Open, Status::Delay, 1)
            });
            let refused = Meeting::fails(Do::Close, Status::BadSeqId, "NFS4ERR_BAD_SEQID");
            all.push(refused);
            all.push(Meeting::passes(Do::Open, Status::Resource, 0));
        }
        bed.run(&minor(m), 1, Meetings(&bed, all));
    }
}

/// The client replaces a broken session by a new session, and repeats the call.
#[test]
fn sessions_that_are_lost() {
    needs_root!();
    let bed = Bed::new("sessions");
    let mut all = Vec::new();
    for status in [
        Status::BadSession,
        Status::DeadSession,
        Status::SeqMisordered,
        Status::SeqFalseRetry,
        Status::ConnNotBound,
        Status::BadSlot,
    ] {
        for what in [
            Do::Open,
            Do::Make,
            Do::Read,
            Do::Write,
            Do::Close,
            Do::Remove,
        ] {
            all.push(Meeting::passes_at(Op::Sequence, what, status, 1).recovering());
        }
    }
    // The server has executed the call, and has not kept the reply: the client repeats the call without a recovery of
    // state.
    let done = Fault::refuse_done(Op::Sequence, Status::RetryUncachedRep);
    for what in [Do::Read, Do::Write, Do::Stat] {
        let again = Meeting::passes(what, Status::RetryUncachedRep, 1);
        all.push(Meeting {
            fault: done.clone().of(what.is().0),
            ..again
        });
    }
    bed.run(&minor(1), 1, Meetings(&bed, all));
}

/// The server does not know the client any more when the client creates a new session.
struct Forgotten<'a>(&'a Bed);

impl Case for Forgotten<'_> {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let Self(bed) = self;
        let mut s = sessions.pop().unwrap();
        bed.make("f");
        let h = opened(&mut s, "f", how(OpenMode::ReadWrite, false)).await;
        s.on_file(&h, FileOperation::Lock { offset: 0, len: 4 })
            .await
            .unwrap();
        let once = |at, status| bed.relay.inject(Fault::refuse(at, status));
        once(Op::Sequence, Status::BadSession);
        once(Op::CreateSession, Status::StaleClientId);
        once(Op::ReclaimComplete, Status::CompleteAlready);
        s.write_bytes(&h, 0, AFTER).await.unwrap();
        assert_eq!((bed.relay.fallen(), seen.count("state recoveries")), (3, 1));
        let errors = |row, status: Status| seen.errors(row)[status.name()];
        assert_eq!(errors("CREATE_SESSION", Status::StaleClientId), 1);
        assert_eq!(errors("RECLAIM_COMPLETE", Status::CompleteAlready), 1);
        assert_eq!(bed.bytes("f"), AFTER);
        s.on_file(&h, FileOperation::Lock { offset: 0, len: 4 })
            .await
            .unwrap();
        // The loss of a session alone loses no locks.
        bed.relay
            .inject(Fault::refuse(Op::Sequence, Status::BadSession).of(Op::LockU));
        s.on_file(&h, FileOperation::Lock { offset: 0, len: 4 })
            .await
            .unwrap();
        assert_eq!(seen.count("state recoveries"), 2);
        assert_eq!((seen.count("LOCK"), seen.count("LOCKU")), (3, 3));
        s.close(h).await.unwrap();
    }
}

#[test]
fn a_client_that_is_forgotten() {
    needs_root!();
    let bed = Bed::new("forgotten");
    bed.run(&minor(1), 1, Forgotten(&bed));
}

/// Many calls in flight find the session lost, and it is re-created once.
struct Together<'a>(&'a Bed);

impl Case for Together<'_> {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let Self(bed) = self;
        let mut s = sessions.pop().unwrap();
        let h = opened(&mut s, "f", how(OpenMode::ReadWrite, true)).await;
        let bytes: Vec<u8> = (0..8 * 4096u32).map(|i| (i / 7) as u8).collect();
        let lost = Fault::refuse(Op::Sequence, Status::BadSession);
        bed.relay.inject(lost.clone().of(Op::Write).times(8));
        s.write(&h, 0, bytes.len() as u64).await.unwrap();
        assert_eq!((bed.relay.fallen(), seen.count("state recoveries")), (8, 1));
        assert_eq!(bed.bytes("f").len(), bytes.len());
        s.write_bytes(&h, 0, &bytes).await.unwrap();
        bed.relay.inject(lost.of(Op::Read).times(8));
        let mut read = vec![0; bytes.len()];
        let n = s.read_bytes(&h, 0, &mut read).await.unwrap();
        assert_eq!((n, read), (bytes.len() as u64, bytes));
        assert_eq!(
            (bed.relay.fallen(), seen.count("state recoveries")),
            (16, 2)
        );
        s.close(h).await.unwrap();
    }
}

#[test]
fn a_session_is_recreated_once_for_all_calls() {
    needs_root!();
    let bed = Bed::new("together");
    bed.run("rsize=4k&wsize=4k", 1, Together(&bed));
}

/// A permanent failure is returned with the name of its status after a few attempts, and operations succeed again after
/// the failure has ended.
struct Endless<'a>(&'a Bed, Vec<(Op, Status)>);

impl Case for Endless<'_> {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let Self(bed, all) = self;
        let mut s = sessions.pop().unwrap();
        for (i, (at, status)) in all.into_iter().enumerate() {
            let path = format!("f{i}");
            bed.make(&path);
            let h = opened(&mut s, &path, how(OpenMode::ReadWrite, false)).await;
            let before = bed.relay.fallen();
            if matches!(at, Op::CreateSession | Op::SetClientIdConfirm) {
                let lost = match at {
                    Op::CreateSession => Fault::refuse(Op::Sequence, Status::BadSession),
                    _ => Fault::refuse(Op::Write, Status::StaleStateId),
                };
                bed.relay.inject(lost.of(Op::Write));
                bed.relay.inject(Fault::refuse(at, status).times(ALWAYS));
            } else {
                bed.relay
                    .inject(Fault::refuse(at, status).of(Op::Write).times(ALWAYS));
            }
            let failed = s.write_bytes(&h, 0, AFTER).await.unwrap_err();
            assert_eq!(failed.name(), status.name());
            let fallen = bed.relay.fallen() - before;
            assert!((2..12).contains(&fallen), "{status}: {fallen} attempts");
            assert_eq!(bed.bytes(&path), BEFORE);
            bed.relay.clear();
            s.write_bytes(&h, 0, AFTER).await.unwrap();
            assert_eq!(bed.bytes(&path), AFTER);
            s.close(h).await.unwrap();
        }
        assert!(seen.count("state recoveries") >= 1);
    }
}

#[test]
fn what_does_not_get_better_fails_by_name() {
    needs_root!();
    use Status::{
        AdminRevoked, BadSession, BadStateId, Expired, OldStateId, SeqMisordered, StaleClientId,
        StaleStateId,
    };
    let write = |all: &[Status]| -> Vec<_> { all.iter().map(|s| (Op::Write, *s)).collect() };
    let bed = Bed::new("endless0");
    let mut all = write(&[BadStateId, AdminRevoked, OldStateId, Expired, StaleStateId]);
    all.push((Op::SetClientIdConfirm, StaleClientId));
    bed.run(&minor(0), 1, Endless(&bed, all));
    let bed = Bed::new("endless1");
    let mut all = write(&[BadStateId, AdminRevoked, OldStateId, Expired]);
    all.extend([BadSession, SeqMisordered].map(|s| (Op::Sequence, s)));
    all.push((Op::CreateSession, StaleClientId));
    bed.run(&minor(1), 1, Endless(&bed, all));
}

/// The end of a run ends the wait for a server that delays every call: the operation fails with `ECANCELED`.
struct RunEnds<'a>(&'a Bed, Op);

impl Case for RunEnds<'_> {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let Self(bed, at) = self;
        let (mut other, mut s) = (sessions.pop().unwrap(), sessions.pop().unwrap());
        bed.make("f");
        name(&mut s, "f").stat().await.unwrap();
        if at == Op::CreateSession {
            let lost = Fault::refuse(Op::Sequence, Status::BadSession);
            bed.relay.inject(lost.times(2));
        }
        bed.relay
            .inject(Fault::refuse(at, Status::Delay).times(ALWAYS));
        seen.deadline.bring_forward(seen.lane.now() + 100_000_000);
        let plain = how(OpenMode::Read, false);
        all([
            Box::pin(async {
                assert_eq!(error(name(&mut s, "f").open(plain).await), Errno::CANCELED);
            }) as plimsoll_lane::Task<'_>,
            Box::pin(async {
                assert_eq!(error(name(&mut other, "f").stat().await), Errno::CANCELED);
            }),
        ])
        .await;
        assert!(bed.relay.fallen() >= 2);
        bed.relay.clear();
    }
}

#[test]
fn the_end_of_a_run_ends_the_waiting() {
    needs_root!();
    for (m, at) in [(0, Op::PutFh), (1, Op::Sequence), (1, Op::CreateSession)] {
        let bed = Bed::new(&format!("end{}", at as u32));
        bed.run(&minor(m), 2, RunEnds(&bed, at));
    }
}

/// Operations without a reply are executed once, although the client sends them at least twice.
struct Answers<'a>(&'a Bed, Vec<(Do, Fault)>, u32);

impl Case for Answers<'_> {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let Self(bed, all, minor) = self;
        let mut s = sessions.pop().unwrap();
        let count = all.len() as u64;
        for (i, (what, fault)) in all.into_iter().enumerate() {
            let op = what.is().0;
            let meeting = Meeting {
                what,
                fault: fault.of(op),
                want: Ok(()),
                errors: Vec::new(),
                recovered: 0,
            };
            let fallen = bed.relay.fallen();
            meeting.come(&mut s, seen, bed, &format!("f{i}")).await;
            assert_eq!(bed.relay.fallen(), fallen + 1);
            let again = seen.count("retransmissions");
            assert!(again > i as u64, "{what:?} was sent once");
        }
        assert!(seen.count("reconnects") >= count);
        for row in ["REMOVE", "CREATE", "RENAME"] {
            // On 4.1 the server answers the retransmission with the reply that was lost.
            assert!(minor == 0 || seen.errors(row).is_empty(), "{row}");
        }
    }
}

#[test]
fn what_is_done_and_not_answered_is_done_once() {
    needs_root!();
    let lost = [
        Do::Make,
        Do::Open,
        Do::Write,
        Do::Close,
        Do::Cut,
        Do::Remove,
        Do::MakeDir,
        Do::Rename,
        Do::Read,
    ];
    for m in [0, 1] {
        let bed = Bed::new(&format!("lost{m}"));
        let mut all: Vec<_> = lost
            .iter()
            .map(|what| (*what, Fault::lose(what.is().0)))
            .collect();
        let silent = [Do::Write, Do::Remove].map(|what| (what, Fault::swallow(what.is().0)));
        all.extend(silent);
        let options = format!("minorversion={m}&timeo=400ms&retrans=50");
        bed.run(&options, 1, Answers(&bed, all, m));
    }
}

/// A call with a malformed reply fails with `EBADMSG`, and the next call succeeds.
struct Garbled<'a>(&'a Bed, u32);

impl Case for Garbled<'_> {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let Self(bed, minor) = self;
        let mut s = sessions.pop().unwrap();
        bed.make("f");
        let plain = how(OpenMode::ReadWrite, false);
        let mut read = [0; 9];
        let all = [Garbage::NoReply, Garbage::Endless, Garbage::Results];
        for (garbage, i) in all.into_iter().zip(1..) {
            let h = opened(&mut s, "f", plain).await;
            bed.relay.inject(Fault::garble(Op::Read, garbage));
            let failed = error(s.read_bytes(&h, 0, &mut read).await);
            assert_eq!(failed, Errno::BADMSG, "{garbage:?}");
            assert_eq!(s.read_bytes(&h, 0, &mut read).await.unwrap(), 6);
            assert_eq!(&read[..6], BEFORE);
            // On 4.1 the state of the call's slot is in doubt, and the client recovers.
            assert_eq!(seen.count("state recoveries"), i * u64::from(minor));
            s.close(h).await.unwrap();
        }
        let errors = seen.errors("READ");
        let counted = ["RPC_NO_REPLY", "RPC_BAD_RESULT"].map(|e| errors[e]);
        assert_eq!(counted, [2, 1]);
        // The seqid of the open-owner is in doubt after a malformed reply to OPEN or CLOSE.
        for (at, garbage) in [(Op::Open, Garbage::Results), (Op::Close, Garbage::NoReply)] {
            bed.relay.inject(Fault::garble(at, garbage));
            match name(&mut s, "f").open(plain).await {
                Ok(h) => assert_eq!(error(s.close(h).await), Errno::BADMSG),
                Err(e) => assert_eq!(e.0, Errno::BADMSG),
            }
            let h = opened(&mut s, "f", plain).await;
            assert_eq!(s.read_bytes(&h, 0, &mut read).await.unwrap(), 6);
            s.close(h).await.unwrap();
        }
        assert_eq!(bed.relay.fallen(), 5);
    }
}

#[test]
fn invalid_replies() {
    needs_root!();
    for m in [0, 1] {
        let bed = Bed::new(&format!("garbled{m}"));
        bed.run(&minor(m), 1, Garbled(&bed, m));
    }
}

/// The client looks up a directory once more if the server refuses its handle, and then fails with `ESTALE`; the handle
/// of an open file is not looked up again.
struct StaleHandles<'a>(&'a Bed);

impl Case for StaleHandles<'_> {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let Self(bed) = self;
        let mut s = sessions.pop().unwrap();
        std::fs::create_dir(bed.path("d")).unwrap();
        for status in [Status::FhExpired, Status::Stale] {
            bed.make("d/f");
            name(&mut s, "d/f").stat().await.unwrap();
            let looked = seen.count("LOOKUP+GETATTR");
            let gone = Fault::refuse(Op::PutFh, status).of(Op::Remove);
            bed.relay.inject(gone.clone().times(2));
            assert_eq!(error(name(&mut s, "d/f").unlink().await), Errno::STALE);
            assert!(bed.there("d/f"));
            bed.relay.clear();
            bed.relay.inject(gone);
            name(&mut s, "d/f").unlink().await.unwrap();
            assert!(!bed.there("d/f"));
            assert_eq!(seen.errors("REMOVE")[status.name()], 3);
            assert_eq!(seen.count("LOOKUP+GETATTR"), looked + 2);
        }
        bed.make("f");
        let h = opened(&mut s, "f", how(OpenMode::Read, false)).await;
        bed.relay
            .inject(Fault::refuse(Op::PutFh, Status::Stale).of(Op::Read));
        let mut read = [0; 6];
        assert_eq!(error(s.read_bytes(&h, 0, &mut read).await), Errno::STALE);
        assert_eq!(seen.errors("READ")["NFS4ERR_STALE"], 1);
        s.close(h).await.unwrap();
    }
}

#[test]
fn handles_that_stand_for_nothing() {
    needs_root!();
    for m in [0, 1] {
        let bed = Bed::new(&format!("stale{m}"));
        bed.run(&minor(m), 1, StaleHandles(&bed));
    }
}

/// Files and directories that another client removes or replaces on the server.
struct Replaced<'a>(&'a std::path::Path, u32);

impl Case for Replaced<'_> {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let Self(dir, version) = self;
        let mut s = sessions.pop().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(dir.join(name), bytes).unwrap();
        std::fs::create_dir(dir.join("d")).unwrap();
        write("d/f", BEFORE);
        assert_eq!(name(&mut s, "d/f").stat().await.unwrap().size, 6);
        // The cached handle belongs to the removed directory; the name leads to the new directory.
        std::fs::remove_dir_all(dir.join("d")).unwrap();
        std::fs::create_dir(dir.join("d")).unwrap();
        write("d/f", b"another");
        assert_eq!(name(&mut s, "d/f").stat().await.unwrap().size, 7);
        let new = opened(&mut s, "d/f", how(OpenMode::ReadWrite, false)).await;
        let mut read = [0; 7];
        assert_eq!(s.read_bytes(&new, 0, &mut read).await.unwrap(), 7);
        assert_eq!(&read, b"another");
        s.write_bytes(&new, 0, AFTER).await.unwrap();
        s.close(new).await.unwrap();
        assert_eq!(std::fs::read(dir.join("d/f")).unwrap(), b"after!r");
        // The other client removes a file that the session has open.
        write("g", BEFORE);
        let gone = opened(&mut s, "g", how(OpenMode::Read, false)).await;
        std::fs::remove_file(dir.join("g")).unwrap();
        assert_eq!(error(name(&mut s, "g").stat().await), Errno::NOENT);
        let read = s.read_bytes(&gone, 0, &mut read).await;
        match version {
            3 => assert_eq!(error(read), Errno::STALE),
            // An NFSv4 server keeps a removed file while the file is open.
            _ => assert_eq!(read, Ok(6)),
        }
        s.close(gone).await.unwrap();
        let (row, stale) = match version {
            3 => ("LOOKUP", "NFS3ERR_STALE"),
            _ => ("LOOKUP+GETATTR", "NFS4ERR_STALE"),
        };
        // The server has refused the cached handle of the removed directory.
        assert!(seen.errors(row)[stale] >= 1);
    }
}

#[test]
fn files_replaced_by_another_client() {
    needs_root!();
    let server = server();
    let urls = [
        (server.nfs3_url(""), 3),
        (server.nfs4_url("minorversion=0"), 4),
        (server.nfs4_url("minorversion=1"), 4),
    ];
    for (i, (url, version)) in urls.iter().enumerate() {
        let place = format!("replaced{i}");
        let dir = server.seen().join(&place);
        std::fs::create_dir(&dir).unwrap();
        run(url, &format!("/{place}"), 1, Replaced(&dir, *version));
    }
}
