//! Arguments and results of the operations of sessions.

use crate::content::ContentPool;
use crate::error::OpError;
use plimsoll_measure::{Clock, Nanos, Recorder};
use std::rc::Rc;
use std::sync::Arc;

/// What a file system says of direct I/O: transfers past the page cache (`O_DIRECT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectIo {
    /// It takes none, or there is no page cache to go past.
    Refused,
    /// It takes transfers whose offsets and sizes are multiples of so many bytes.
    Aligned {
        /// Bytes, a power of two.
        to: u64,
    },
    /// It does not say.
    Unknown,
}

/// What a session is for.
#[derive(Clone)]
pub struct SessionSpec {
    /// Bytes that reads rotate through.
    pub buffer: u64,
    /// What is written.
    pub content: ContentPool,
    /// The run's clock.
    pub clock: Clock,
    /// Tells sessions apart: what each writes follows from it.
    pub number: u64,
    /// Process of the workload that the worker belongs to.
    pub process: u64,
    /// Where targets that call procedures of a server write down what those did.
    pub rpc: Option<RpcRows>,
    /// How long a server may say nothing until what is asked of it fails; without it, as long as the
    /// target lets each call take.
    pub silence: Option<std::time::Duration>,
}

/// Rows of the results for the procedures that a target calls on a server.
#[derive(Clone)]
pub struct RpcRows {
    /// The recorder of the lane.
    pub recorder: Rc<Recorder>,
    /// Names of the rows, and their numbers.
    pub rows: Arc<[(String, u32)]>,
}

impl RpcRows {
    /// The row of a name.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<u32> {
        let found = self.rows.iter().find(|(n, _)| n == name);
        found.map(|(_, row)| *row)
    }
}

/// Space on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes free to this user.
    pub bytes: u64,
    /// Inodes free to this user; `None` if the file system has no limit.
    pub inodes: Option<u64>,
    /// Bytes in a block: each file takes a whole number of them.
    pub block: u64,
}

/// How a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Both.
    ReadWrite,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenHow {
    /// What for.
    pub mode: OpenMode,
    /// Make it if it is not there.
    pub create: bool,
    /// Cut it to nothing if it is there.
    pub truncate: bool,
    /// Past the page cache.
    pub direct: bool,
    /// Synchronous data.
    pub dsync: bool,
    /// Advise against read-ahead.
    pub no_read_ahead: bool,
    /// Size the workload planned, for targets that keep no files.
    pub planned_size: u64,
}

impl OpenHow {
    /// For this mode, nothing special.
    #[must_use]
    pub fn plain(mode: OpenMode) -> Self {
        Self {
            mode,
            create: false,
            truncate: false,
            direct: false,
            dsync: false,
            no_read_ahead: false,
            planned_size: 0,
        }
    }
}

/// What stat tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// What it is.
    pub kind: EntryKind,
    /// Bytes.
    pub size: u64,
}

/// Kinds of directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// A device, socket, or anything else.
    Other,
}

/// What listing a directory gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListTotals {
    /// Entries but `.` and `..`.
    pub entries: u64,
    /// Bytes of the records the system returned: names and their overhead.
    pub bytes: u64,
}

/// An asynchronous write that has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AioDone {
    /// Number the caller gave it.
    pub tag: u32,
    /// When it was queued.
    pub start: Nanos,
    /// When it completed.
    pub end: Nanos,
    /// Bytes written.
    pub result: Result<u64, OpError>,
}
