//! Operations that meet a fault of a relay in front of nfs-ganesha, and their required results.

#![allow(dead_code)] // each test binary uses its part

use super::rows::*;
use plimsoll_nfs::v4::operations::Op;
use plimsoll_nfs::v4::types::Status;
use plimsoll_target::{FileOperation, OpError, OpenMode, Session};
use plimsoll_testkit::{Fault, FaultRelay, Ganesha, NFS_PORT};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The contents of a file before a write; [`AFTER`] holds the contents after the write.
pub const BEFORE: &[u8] = b"before";
pub const AFTER: &[u8] = b"after!";

/// One server for all tests of this process; the server ends with the process.
pub fn server() -> &'static Ganesha {
    static SERVER: OnceLock<Ganesha> = OnceLock::new();
    SERVER.get_or_init(ganesha)
}

/// The work directory of a test on the server, and a relay in front of the server.
pub struct Bed {
    pub relay: FaultRelay,
    name: String,
}

impl Bed {
    pub fn new(name: &str) -> Self {
        let server = server();
        std::fs::create_dir(server.seen().join(name)).unwrap();
        let at = SocketAddr::new(server.address(), NFS_PORT);
        Self {
            relay: FaultRelay::start(at).unwrap(),
            name: name.into(),
        }
    }

    /// Runs a case through the relay, with `sessions` sessions.
    pub fn run(&self, options: &str, sessions: u64, case: impl Case) -> Counts {
        let url = self.relay.nfs4_url(Ganesha::PSEUDO, options);
        run(&url, &format!("/{}", self.name), sessions, case)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        server().seen().join(&self.name).join(name)
    }

    pub fn there(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    pub fn make(&self, name: &str) {
        std::fs::write(self.path(name), BEFORE).unwrap();
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }
}

/// An operation that can meet a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Do {
    Open,
    Make,
    Read,
    Write,
    Close,
    Commit,
    Cut,
    Remove,
    Stat,
    MakeDir,
    Rename,
    List,
}

impl Do {
    /// All operations.
    pub const ALL: [Self; 12] = [
        Self::Open,
        Self::Make,
        Self::Read,
        Self::Write,
        Self::Close,
        Self::Commit,
        Self::Cut,
        Self::Remove,
        Self::Stat,
        Self::MakeDir,
        Self::Rename,
        Self::List,
    ];

    /// The NFS operation that does the work, and the row of its compound in the results.
    pub fn is(self) -> (Op, &'static str) {
        match self {
            Self::Open | Self::Make => (Op::Open, "OPEN"),
            Self::Read => (Op::Read, "READ"),
            Self::Write => (Op::Write, "WRITE"),
            Self::Close => (Op::Close, "CLOSE"),
            Self::Commit => (Op::Commit, "COMMIT"),
            Self::Cut => (Op::SetAttr, "SETATTR"),
            Self::Remove => (Op::Remove, "REMOVE"),
            Self::Stat => (Op::Lookup, "LOOKUP+GETATTR"),
            Self::MakeDir => (Op::Create, "CREATE"),
            Self::Rename => (Op::Rename, "RENAME"),
            Self::List => (Op::ReadDir, "LOOKUP+READDIR"),
        }
    }

    fn is_of_open(self) -> bool {
        use Do::{Close, Commit, Cut, Read, Write};
        matches!(self, Read | Write | Close | Commit | Cut)
    }

    /// Creates the file or the directory that the operation needs.
    fn prepare(self, bed: &Bed, path: &str) {
        match self {
            Self::List => {
                std::fs::create_dir(bed.path(path)).unwrap();
                bed.make(&format!("{path}/one"));
            }
            _ => bed.make(path),
        }
    }

    /// Carries out the operation. An open file is in `h` before and after the operation.
    async fn carry_out<S: Session>(
        self,
        s: &mut S,
        h: &mut Option<S::Handle>,
        path: &str,
    ) -> Result<(), OpError> {
        if let (true, Some(open)) = (self.is_of_open(), &*h) {
            match self {
                Self::Read => {
                    let mut read = [0; 9];
                    let n = s.read_bytes(open, 0, &mut read).await?;
                    assert_eq!(&read[..n as usize], BEFORE);
                }
                Self::Write => s.write_bytes(open, 0, AFTER).await?,
                Self::Commit => {
                    s.write_bytes(open, 0, AFTER).await?;
                    s.fsync(open).await?;
                }
                Self::Cut => drop(s.on_file(open, FileOperation::Truncate(3)).await?),
                _ => s.close(h.take().unwrap()).await?,
            }
            return Ok(());
        }
        match self {
            Self::Open => {
                let plain = how(OpenMode::ReadWrite, false);
                *h = Some(name(s, path).open(plain).await?);
            }
            Self::Make => {
                let making = how(OpenMode::Write, true);
                *h = Some(name(s, format!("{path}.new")).open(making).await?);
            }
            Self::Remove => name(s, path).unlink().await?,
            Self::Stat => assert_eq!(name(s, path).stat().await?.size, 6),
            Self::MakeDir => name(s, format!("{path}.dir")).make_dir().await?,
            Self::Rename => {
                let moved = format!("{path}.moved");
                rename(s, path, &moved).await?;
            }
            Self::List => assert_eq!(name(s, path).list().await?.entries, 1),
            _ => panic!("nothing is open"),
        }
        Ok(())
    }

    /// Asserts that the server has the state after the operation, which was executed if `done` is set.
    fn check(self, bed: &Bed, path: &str, done: bool) {
        match self {
            Self::Make => assert_eq!(bed.there(&format!("{path}.new")), done),
            Self::Write => assert_eq!(bed.bytes(path), if done { AFTER } else { BEFORE }),
            Self::Commit => assert_eq!(bed.bytes(path), AFTER),
            Self::Cut => assert_eq!(bed.bytes(path).len(), if done { 3 } else { 6 }),
            Self::Remove => assert_eq!(bed.there(path), !done),
            Self::MakeDir => assert_eq!(bed.there(&format!("{path}.dir")), done),
            Self::Rename => {
                assert_eq!(bed.there(&format!("{path}.moved")), done);
                assert_eq!(bed.there(path), !done);
            }
            Self::Open | Self::Read | Self::Close | Self::Stat | Self::List => {
                assert!(bed.there(path));
            }
        }
    }
}

/// An operation, the fault that it meets, and the expected result.
#[derive(Debug, Clone)]
pub struct Meeting {
    pub what: Do,
    pub fault: Fault,
    /// The name of the error, if the operation must fail.
    pub want: Result<(), &'static str>,
    /// Expected increase of the number of errors in the operation's row, by name of the error.
    pub errors: Vec<(&'static str, u64)>,
    /// Expected number of recoveries of state.
    pub recovered: u64,
}

impl Meeting {
    /// An operation that fails on the server with `status` for `times` attempts and then succeeds.
    pub fn passes(what: Do, status: Status, times: u32) -> Self {
        Self::passes_at(what.is().0, what, status, times)
    }

    /// An operation that succeeds after the operation `at` of its compound has failed with `status` for `times`
    /// attempts.
    pub fn passes_at(at: Op, what: Do, status: Status, times: u32) -> Self {
        let op = what.is().0;
        Self {
            what,
            fault: Fault::refuse(at, status).of(op).times(times),
            want: Ok(()),
            errors: vec![(status.name(), u64::from(times))],
            recovered: 0,
        }
    }

    /// An operation that fails on the server once with `status`, and for the caller with `error`.
    pub fn fails(what: Do, status: Status, error: &'static str) -> Self {
        Self {
            want: Err(error),
            ..Self::passes(what, status, 1)
        }
    }

    /// The same meeting, with one recovery of state.
    pub fn recovering(self) -> Self {
        Self {
            recovered: 1,
            ..self
        }
    }

    /// Carries out the operation on the file `path`, and checks the result, the server, and the rows of the results.
    pub async fn come<S: Session>(self, s: &mut S, seen: &Seen, bed: &Bed, path: &str) {
        let Self { what, .. } = self;
        what.prepare(bed, path);
        let mut h = None;
        if what.is_of_open() {
            Do::Open.carry_out(s, &mut h, path).await.unwrap();
        } else {
            // A first call recovers the state that the previous meeting lost, so that this meeting need not.
            name(s, path).stat().await.unwrap();
        }
        let (_, row) = what.is();
        let counts = || {
            let errors = seen.errors(row);
            let each = self.errors.iter();
            let each = each.map(|(name, _)| (*name, errors.get(*name).copied().unwrap_or(0)));
            let all: Vec<_> = each.collect();
            (all, seen.count("state recoveries"))
        };
        let (errors, recovered) = counts();
        bed.relay.inject(self.fault.clone());
        let done = what.carry_out(s, &mut h, path).await;
        bed.relay.clear();
        let named = done.map_err(|e| e.name());
        assert_eq!(named, self.want.map_err(str::to_owned), "{self:?}");
        what.check(bed, path, self.want.is_ok());
        let (now, recovered_now) = counts();
        let counted: Vec<_> = now
            .iter()
            .zip(&errors)
            .map(|((name, now), (_, before))| (*name, now - before))
            .collect();
        assert_eq!(counted, self.errors, "{what:?}: {:?}", seen.errors(row));
        assert_eq!(recovered_now - recovered, self.recovered, "{self:?}");
        if let Some(h) = h {
            let closed = s.close(h).await;
            assert_eq!(closed, Ok(()), "after {self:?}");
        }
    }
}

/// Meetings with faults one after the other, each on a file of its own.
pub struct Meetings<'a>(pub &'a Bed, pub Vec<Meeting>);

impl Case for Meetings<'_> {
    async fn run<S: Session>(self, mut sessions: Vec<S>, seen: &Seen) {
        let mut s = sessions.pop().unwrap();
        let Self(bed, meetings) = self;
        for (i, meeting) in meetings.into_iter().enumerate() {
            meeting.come(&mut s, seen, bed, &format!("f{i}")).await;
        }
    }
}
