//! The nfs4 target on nfs-ganesha and on the Linux kernel's server: owners and slots, delegations, and servers that
//! lose state.

#[path = "support/rows.rs"]
mod rows;

use plimsoll_lane::Task;
use plimsoll_nfs::v4::operations::Op;
use plimsoll_nfs::v4::types::Status;
use plimsoll_plan::OpKind;
use plimsoll_target::{
    FileOperation, OpError, OpenMode, Purpose, Session, Target, TargetError, Visitor, connect,
};
use plimsoll_testkit::{Fault, FaultRelay, Ganesha, Knfsd, NFS_PORT, needs_root};
use rows::*;
use rustix::io::Errno;
use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Instant;

/// All sessions concurrently create files, read the written bytes back, and close the files.
struct Files;

impl Case for Files {
    async fn run<S: Session>(self, sessions: Vec<S>, _: &Seen) {
        all(sessions.into_iter().zip(0..).map(|(mut s, n)| -> Task<'_> {
            Box::pin(async move {
                for i in 0..5 {
                    let path = format!("f{n}.{i}");
                    let h = opened(&mut s, &path, how(OpenMode::ReadWrite, true)).await;
                    let bytes = vec![n; 5000];
                    s.write_bytes(&h, 0, &bytes).await.unwrap();
                    let mut read = vec![0; 6000];
                    assert_eq!(s.read_bytes(&h, 0, &mut read).await.unwrap(), 5000);
                    assert!(read[..5000] == bytes);
                    s.close(h).await.unwrap();
                }
            })
        }))
        .await;
    }
}

/// The results count the waits: on 4.0 the waits of workers that share an open-owner, on 4.1 the waits of the workers
/// of a lane for slots.
#[test]
fn owners_and_slots() {
    needs_root!();
    let server = ganesha();
    std::fs::create_dir(server.seen().join("work")).unwrap();
    let waits = |options: &str| {
        let done = run(&server.nfs4_url(options), "/work", 8, Files);
        let count = |name: &str| done.get(name).copied().unwrap_or(0);
        assert_eq!((count("OPEN"), count("CLOSE")), (40, 40), "{options}");
        (
            count("open-owner waits"),
            count("slot waits"),
            count("OPEN_CONFIRM"),
        )
    };
    let (owner, slot, confirmed) = waits("minorversion=0&open_owner=shared");
    assert!(owner >= 8, "{owner} of 80 waited");
    assert_eq!((slot, confirmed), (0, 1));
    assert_eq!(waits("minorversion=0&open_owner=worker"), (0, 0, 8));
    let (owner, slot, confirmed) = waits("minorversion=0&open_owner=process");
    assert!(owner >= 4, "{owner} of 80 waited");
    assert_eq!((slot, confirmed), (0, 4));
    let (owner, slot, _) = waits("minorversion=1&open_owner=shared&slots=2");
    assert_eq!(owner, 0);
    assert!(slot >= 8, "{slot} of 160 waited");
    assert_eq!(waits("minorversion=1&open_owner=worker&slots=64").1, 0);
    let names = server.seen().join("work").read_dir().unwrap().count();
    assert_eq!(names, 40, "each is made once");
}

/// Two opens of one file by one open-owner are one open on the server: the first close becomes OPEN_DOWNGRADE, and only
/// the last close becomes CLOSE.
struct Twice;

impl Case for Twice {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let mut other = sessions.pop().unwrap();
        let mut s = sessions.pop().unwrap();
        let w = opened(&mut s, "f", how(OpenMode::ReadWrite, true)).await;
        s.write_bytes(&w, 0, b"hello").await.unwrap();
        let r = opened(&mut other, "f", how(OpenMode::Read, false)).await;
        let again = opened(&mut s, "f", how(OpenMode::Read, false)).await;
        s.close(w).await.unwrap();
        assert_eq!(seen.count("OPEN_DOWNGRADE"), 1);
        other.close(r).await.unwrap();
        assert_eq!(seen.count("CLOSE"), 0);
        let mut read = [0; 5];
        assert_eq!(s.read_bytes(&again, 0, &mut read).await.unwrap(), 5);
        assert_eq!(&read, b"hello");
        s.close(again).await.unwrap();
        assert_eq!(seen.count("CLOSE"), 1);
    }
}

/// All sessions lock overlapping ranges of one file; each LOCK and LOCKU succeeds, whether the sessions share an owner
/// or not.
struct Locks;

impl Case for Locks {
    async fn run<S: Session>(self, sessions: Vec<S>, seen: &Seen) {
        let count = sessions.len() as u64;
        all(sessions.into_iter().map(|mut s| -> Task<'_> {
            Box::pin(async move {
                let h = opened(&mut s, "locked", how(OpenMode::ReadWrite, true)).await;
                for i in 0..10 {
                    s.on_file(&h, FileOperation::Lock { offset: i, len: 10 })
                        .await
                        .unwrap();
                }
                s.close(h).await.unwrap();
            })
        }))
        .await;
        assert_eq!(seen.count("LOCK"), 10 * count);
        assert_eq!(seen.count("LOCKU"), 10 * count);
    }
}

#[test]
fn opens_of_one_owner_and_locks() {
    needs_root!();
    let server = ganesha();
    for minor in [0, 1] {
        let dir = format!("/work{minor}");
        std::fs::create_dir(server.seen().join(&dir[1..])).unwrap();
        let url = server.nfs4_url(&format!("minorversion={minor}&open_owner=shared"));
        run(&url, &dir, 2, Twice);
        for owners in ["process", "worker"] {
            let url = server.nfs4_url(&format!("minorversion={minor}&open_owner={owners}"));
            let done = run(&url, &dir, 4, Locks);
            let released = done.get("RELEASE_LOCKOWNER").copied();
            assert_eq!(released, (minor == 0).then_some(4));
        }
    }
}

/// A server is killed and restarted after a file was opened and locked, and its directory looked up.
struct Restart<'a>(&'a mut Ganesha);

impl Case for Restart<'_> {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let mut s = sessions.pop().unwrap();
        let h = opened(&mut s, "d/f", how(OpenMode::ReadWrite, true)).await;
        s.write_bytes(&h, 0, b"before").await.unwrap();
        s.fsync(&h).await.unwrap();
        s.on_file(&h, FileOperation::Lock { offset: 0, len: 4 })
            .await
            .unwrap();
        self.0.kill().unwrap();
        self.0.start_again().unwrap();
        let mut read = [0; 6];
        assert_eq!(s.read_bytes(&h, 0, &mut read).await.unwrap(), 6);
        assert_eq!(&read, b"before");
        assert_eq!(seen.count("state recoveries"), 1);
        assert!(seen.count("reconnects") >= 1);
        s.write_bytes(&h, 6, b" and after").await.unwrap();
        s.on_file(&h, FileOperation::Lock { offset: 0, len: 4 })
            .await
            .unwrap();
        s.close(h).await.unwrap();
        let all = seen.count("OPEN");
        let h = opened(&mut s, "d/f", how(OpenMode::Read, false)).await;
        assert_eq!(seen.count("OPEN"), all + 1);
        s.close(h).await.unwrap();
    }
}

#[test]
fn a_restarted_server() {
    needs_root!();
    let mut server = ganesha();
    for minor in [0, 1] {
        let dir = format!("work{minor}");
        std::fs::create_dir_all(server.seen().join(&dir).join("d")).unwrap();
        let url = server.nfs4_url(&format!("minorversion={minor}&timeo=5s"));
        run(&url, &format!("/{dir}"), 1, Restart(&mut server));
        let file = server.seen().join(&dir).join("d/f");
        assert_eq!(std::fs::read(file).unwrap(), b"before and after");
    }
}

/// The server grants a delegation, the client uses it, and another client's write recalls it.
struct Delegated {
    /// Number of the block of [`FRESH`] files that the case uses; the minor version, where the case runs with each
    /// minor version.
    minor: u32,
}

impl Delegated {
    /// Opens fresh files until the server delegates one: the server delegates some time after its start, and on 4.0
    /// only to owners that it knows.
    async fn granted<S: Session>(&self, s: &mut S, seen: &Seen) -> (String, S::Handle) {
        for i in 0..FRESH {
            let path = fresh(self.minor, i);
            let h = opened(s, &path, how(OpenMode::Read, false)).await;
            if seen.count("delegations granted") > 0 {
                return (path, h);
            }
            s.close(h).await.unwrap();
            seen.rest().await;
            seen.rest().await;
        }
        panic!("nothing is delegated: {:?}", seen.counts());
    }
}

/// Number of files in each block of existing files that the server can delegate.
const FRESH: u32 = 600;

fn fresh(minor: u32, number: u32) -> String {
    format!("f{}", FRESH * minor + number)
}

impl Case for Delegated {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let mut s = sessions.pop().unwrap();
        let (path, first) = self.granted(&mut s, seen).await;
        s.close(first).await.unwrap();
        // The client opens and closes the delegated file without a call, and reads it from the server.
        let (opens, closes) = (seen.count("OPEN"), seen.count("CLOSE"));
        let second = opened(&mut s, &path, how(OpenMode::Read, false)).await;
        let mut read = [0; 9];
        assert_eq!(s.read_bytes(&second, 0, &mut read).await.unwrap(), 9);
        assert_eq!(&read, b"delegated");
        let third = opened(&mut s, &path, how(OpenMode::Read, false)).await;
        s.close(third).await.unwrap();
        assert_eq!((seen.count("OPEN"), seen.count("CLOSE")), (opens, closes));
        assert_eq!(seen.count("delegations used"), 3);
        assert_eq!(seen.count("delegations recalled"), 0);
        // Another client wants to write: the client returns the delegation, and opens the file on the server for the
        // open handle.
        overwritten(path.clone(), seen).await;
        assert_eq!(seen.count("delegations recalled"), 1);
        assert_eq!(seen.count("delegations returned"), 1);
        assert_eq!(seen.count("DELEGRETURN"), 1);
        assert_eq!(
            seen.count("OPEN"),
            opens + 1,
            "the second was opened at the server"
        );
        assert_eq!(s.read_bytes(&second, 0, &mut read).await.unwrap(), 9);
        assert_eq!(&read, b"overwrote");
        s.close(second).await.unwrap();
        assert_eq!(seen.count("CLOSE"), closes + 1);
        // Without the delegation the file is opened on the server again.
        let h = opened(&mut s, &path, how(OpenMode::Read, false)).await;
        assert_eq!(seen.count("OPEN"), opens + 2);
        s.close(h).await.unwrap();
    }
}

/// With a cache, the cached data and attributes of a delegated file stay valid from one open to the next, until the
/// delegation is recalled.
struct Promised;

impl Case for Promised {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let mut s = sessions.pop().unwrap();
        let (path, first) = Delegated { minor: 2 }.granted(&mut s, seen).await;
        assert_eq!(s.read(&first, 0, 100).await.unwrap(), 9);
        s.close(first).await.unwrap();
        let calls =
            || ["OPEN", "CLOSE", "READ", "GETATTR", "LOOKUP+GETATTR"].map(|r| seen.count(r));
        let (before, used) = (calls(), seen.count("delegations used"));
        let read = how(OpenMode::Read, false);
        let again = opened(&mut s, &path, read).await;
        assert_eq!(s.read(&again, 2, 100).await.unwrap(), 7);
        assert_eq!(s.stat_handle(&again).await.unwrap().size, 9);
        s.close(again).await.unwrap();
        assert_eq!(name(&mut s, &path).stat().await.unwrap().size, 9);
        assert_eq!(calls(), before);
        assert_eq!(seen.count("delegations used"), used + 5);
        overwritten(path.clone(), seen).await;
        let last = opened(&mut s, &path, read).await;
        assert_eq!(s.read(&last, 0, 100).await.unwrap(), 9);
        s.close(last).await.unwrap();
        assert_eq!(seen.count("READ"), before[2] + 1);
    }
}

/// Lets another client overwrite a file, and waits until it has.
async fn overwritten(path: String, seen: &Seen) {
    let url = OTHER.with(|url| url.borrow().clone());
    let wrote = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        let counts = run(&url, "/", 1, Overwrite(path));
        let _ = wrote.0.send(());
        counts
    });
    let begun = Instant::now();
    while wrote.1.try_recv().is_err() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", seen.counts());
        seen.rest().await;
    }
    writer.join().unwrap();
}

thread_local! {
    /// URL by which [`overwritten`] connects the other client.
    static OTHER: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

/// Writes to a file that another client may hold a delegation of.
struct Overwrite(String);

impl Case for Overwrite {
    async fn run<S: Session>(self, mut sessions: Vec<S>, _: &Seen) {
        let mut s = sessions.pop().unwrap();
        let h = opened(&mut s, &self.0, how(OpenMode::Write, false)).await;
        s.write_bytes(&h, 0, b"overwrote").await.unwrap();
        s.close(h).await.unwrap();
    }
}

/// A revoked delegation is not used any more, and the client opens the files on the server that it had opened by the
/// delegation.
struct Revoked<'a>(&'a FaultRelay);

impl Case for Revoked<'_> {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let mut s = sessions.pop().unwrap();
        let (path, first) = Delegated { minor: 1 }.granted(&mut s, seen).await;
        s.close(first).await.unwrap();
        let plain = how(OpenMode::Read, false);
        let second = opened(&mut s, &path, plain).await;
        assert_eq!(seen.count("delegations used"), 1);
        let opens = seen.count("OPEN");
        self.0.inject(Fault::refuse(Op::Read, Status::DelegRevoked));
        let mut read = [0; 9];
        assert_eq!(s.read_bytes(&second, 0, &mut read).await.unwrap(), 9);
        assert_eq!(&read, b"delegated");
        assert_eq!(seen.errors("READ")["NFS4ERR_DELEG_REVOKED"], 1);
        assert_eq!(seen.count("state recoveries"), 1);
        assert_eq!(seen.count("OPEN"), opens + 1);
        let closes = seen.count("CLOSE");
        s.close(second).await.unwrap();
        assert_eq!(seen.count("CLOSE"), closes + 1);
        let third = opened(&mut s, &path, plain).await;
        assert_eq!(seen.count("OPEN"), opens + 2);
        s.close(third).await.unwrap();
    }
}

/// The Linux kernel's server delegates files to readers, and recalls a delegation when another client wants to write.
#[test]
fn delegations_of_the_kernels_server() {
    needs_root!();
    let mut server = Knfsd::start().unwrap_or_else(|e| panic!("{e}"));
    let last = fresh(3, 0);
    let make = format!(
        "i=0; cd {}; while [ f$i != {last} ]; do printf delegated > f$i; i=$((i+1)); done",
        Knfsd::EXPORT
    );
    server.sh(&make).unwrap();
    for minor in [1, 0] {
        let url = |deleg| server.nfs4_url(&format!("minorversion={minor}&delegations={deleg}"));
        OTHER.with(|other| *other.borrow_mut() = url("off"));
        run(&url("on"), "/", 1, Delegated { minor });
    }
    let url = server.nfs4_url("delegations=on&cache=open-to-close&actimeo=0s");
    run(&url, "/", 1, Promised);
    let at = SocketAddr::new(server.address(), NFS_PORT);
    let relay = FaultRelay::start(at).unwrap();
    run(
        &relay.nfs4_url("/", "delegations=on"),
        "/",
        1,
        Revoked(&relay),
    );
}

struct Said;

impl Visitor for Said {
    type Output = (bool, bool, String);

    fn visit<T: Target>(self, target: T) -> Self::Output {
        for kind in [OpKind::MmapRead, OpKind::MmapWrite] {
            assert!(target.unsupported_reason(kind).is_some());
        }
        for kind in [OpKind::Lock, OpKind::Lookup, OpKind::ListDirPlus] {
            assert_eq!(target.unsupported_reason(kind), None);
        }
        if target.exists() {
            target.writable().unwrap();
        }
        assert!(target.space().unwrap().unwrap().bytes > 1 << 20);
        if target.created_work_dir() {
            target.remove_work_dir().unwrap();
        }
        (
            target.exists(),
            target.created_work_dir(),
            target.describe(),
        )
    }
}

#[test]
fn work_directories() {
    needs_root!();
    let server = ganesha();
    let there = |name: &str| server.seen().join(name).exists();
    for minor in [0, 1] {
        let url = server.nfs4_url(&format!("minorversion={minor}&rsize=64k&wsize=32k"));
        let ask = |dir: &str, purpose| connect(&url, &place(dir), purpose, Said);
        let (exists, made, _) = ask("/work", Purpose::Inspect).unwrap();
        assert!(!exists && !made && !there("work"));
        let (exists, made, said) = ask("/work", Purpose::Load).unwrap();
        assert!(exists && made && !there("work"));
        let slots = if minor == 0 { "" } else { ", slots 64" };
        let want = format!(
            "nfs4, {}:2049, version 4.{minor}, path /export, work directory /work, owners \
             worker{slots}, rsize 65536, wsize 32768, nconnect 1",
            server.address()
        );
        assert_eq!(said, want);
        let missing = ask("/none/work", Purpose::Load).unwrap_err();
        assert_eq!(missing, TargetError::NoParent("/none".into()));
        std::fs::write(server.seen().join("file"), b"").unwrap();
        let file = ask("/file", Purpose::Load).unwrap_err();
        assert_eq!(file, TargetError::NotDir("/file".into()));
    }
}

#[test]
fn servers_that_cannot_be_used() {
    needs_root!();
    let server = ganesha();
    let at = server.address();
    let says = |url: &str| {
        let refused = connect(url, &place("/work"), Purpose::Load, Said).unwrap_err();
        refused.to_string()
    };
    let url = server.nfs4_url("").replace("/export", "/elsewhere");
    let want = "target `nfs4`: the path `/elsewhere` cannot be used: LOOKUP: NFS4ERR_NOENT";
    assert_eq!(says(&url), want);
    let want = format!(
        "target `nfs4`: NFS version 4.1 at {at}:1: Connection refused: nothing listens there"
    );
    assert_eq!(says(&format!("nfs4://{at}:1/export")), want);
    // The port mapper is not an NFS server.
    let refused = says(&format!("nfs4://{at}:111/export"));
    let want =
        format!("target `nfs4`: NFS version 4.1 at {at}:111: the server does not have the program");
    assert_eq!(refused, want);
}

/// The client waits for a server that is silent for a while. On 4.1 the server answers a call of the old connection
/// too: a repeated CREATE gets the reply of the first one.
struct Silence<'a> {
    server: &'a Ganesha,
    minor: u32,
}

impl Case for Silence<'_> {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let mut s = sessions.pop().unwrap();
        let h = opened(&mut s, "f", how(OpenMode::Write, true)).await;
        self.server.pause();
        // The server completes the calls in progress before it stops.
        for _ in 0..4 {
            seen.rest().await;
        }
        let begun = Instant::now();
        let woken = Cell::new(false);
        all([
            Box::pin(async {
                if self.minor == 1 {
                    name(&mut s, "d").make_dir().await.unwrap();
                }
                s.write_bytes(&h, 0, b"written").await.unwrap();
                assert!(woken.get());
                s.close(h).await.unwrap();
            }) as Task<'_>,
            Box::pin(async {
                while seen.count("retransmissions") == 0 {
                    assert!(begun.elapsed() < PATIENCE, "{:?}", seen.counts());
                    seen.rest().await;
                }
                woken.set(true);
                self.server.go_on();
            }),
        ])
        .await;
    }
}

#[test]
fn a_server_that_is_silent() {
    needs_root!();
    let server = ganesha();
    for minor in [0, 1] {
        let dir = format!("work{minor}");
        std::fs::create_dir(server.seen().join(&dir)).unwrap();
        let url = server.nfs4_url(&format!("minorversion={minor}&timeo=500ms&retrans=100"));
        let done = run(
            &url,
            &format!("/{dir}"),
            1,
            Silence {
                server: &server,
                minor,
            },
        );
        let made = (minor == 1).then_some(1);
        assert_eq!(done.get("CREATE").copied(), made);
        assert!(done["retransmissions"] >= 1);
        assert!(done["reconnects"] >= 1);
        let file = server.seen().join(&dir).join("f");
        assert_eq!(std::fs::read(file).unwrap(), b"written");
    }
}

/// Failed operations return the error numbers of the server's statuses.
#[test]
fn errors_are_named() {
    needs_root!();
    struct Errors;
    impl Case for Errors {
        async fn run<S: Session>(self, mut sessions: Vec<S>, _: &Seen) {
            let mut s = sessions.pop().unwrap();
            let plain = how(OpenMode::Read, false);
            let missing = name(&mut s, "none").open(plain).await.err();
            assert_eq!(missing, Some(OpError(Errno::NOENT)));
            name(&mut s, "d").make_dir().await.unwrap();
            let dir = name(&mut s, "d").open(plain).await.err();
            assert_eq!(dir, Some(OpError(Errno::ISDIR)));
            assert_eq!(name(&mut s, "d").unlink().await, Err(OpError(Errno::ISDIR)));
            let h = opened(&mut s, "d/f", how(OpenMode::Write, true)).await;
            assert_eq!(s.read(&h, 0, 1).await, Err(OpError(Errno::BADF)));
            s.close(h).await.unwrap();
            assert_eq!(
                name(&mut s, "d").remove_dir().await,
                Err(OpError(Errno::NOTEMPTY))
            );
            assert_eq!(
                name(&mut s, "d/f").remove_dir().await,
                Err(OpError(Errno::NOTDIR))
            );
        }
    }
    let server = ganesha();
    std::fs::create_dir(server.seen().join("work")).unwrap();
    for minor in [0, 1] {
        std::fs::create_dir(server.seen().join(format!("work/{minor}"))).unwrap();
        let url = server.nfs4_url(&format!("minorversion={minor}"));
        run(&url, &format!("/work/{minor}"), 1, Errors);
    }
}
