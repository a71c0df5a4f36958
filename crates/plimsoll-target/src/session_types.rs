//! Arguments and results of the operations of sessions.

use crate::content::ContentPool;
use crate::error::OpError;
use plimsoll_measure::{Clock, InFlight, Nanos, Recorder, WindowState};
use plimsoll_plan::{DirId, FileId};
use std::rc::Rc;
use std::sync::Arc;

/// Maximum size of a small file that is read whole, in bytes.
pub(crate) const MAX_WHOLE_READ_BYTES: u64 = 64 << 20;

/// Descriptors of this process that the sessions of a target take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Descriptors {
    /// Descriptors of each open file.
    pub per_open_file: u64,
    /// Descriptors of each lane: its connections or its ring, and the descriptors with which the lane waits.
    pub per_lane: u64,
}

/// Support of a file system for direct I/O (`O_DIRECT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectIo {
    /// Not supported, or there is no page cache to bypass.
    Refused,
    /// Supported for transfers whose offsets and sizes are multiples of a number of bytes.
    Aligned {
        /// Bytes, a power of two.
        to: u64,
    },
    /// The file system does not state it.
    Unknown,
}

/// The parameters of a session.
#[derive(Clone)]
pub struct SessionSpec {
    /// Bytes of the buffer that reads rotate through.
    pub buffer: u64,
    /// The content of writes.
    pub content: ContentPool,
    /// The run's clock.
    pub clock: Clock,
    /// A number that no other session has; the content that the session writes follows from it.
    pub number: u64,
    /// The process of the workload that the worker belongs to.
    pub process: u64,
    /// The seed of the run.
    pub seed: u64,
    /// The files that the workload works on; none on lanes of real time, whose targets know their files.
    pub data_set: DataSet,
    /// The measured windows of the run.
    pub window: Arc<WindowState>,
    /// The worker's current operation.
    pub in_flight: Arc<InFlight>,
    /// The rows in which a target that calls procedures of a server records them.
    pub rpc: Option<RpcRows>,
    /// Time without a reply of the server after which all calls fail; without it, each call fails after
    /// the target's own time limit.
    pub silence: Option<std::time::Duration>,
    /// Whether nothing that the session does is measured, so that saving memory matters more than speed.
    pub unmeasured: bool,
}

/// Signs of life of an operation: a session that makes many calls for one operation reports each completed call.
#[derive(Clone)]
pub(crate) struct CallSigns {
    worker: Arc<InFlight>,
    clock: Clock,
}

impl CallSigns {
    pub(crate) fn of(spec: &SessionSpec) -> Self {
        Self {
            worker: spec.in_flight.clone(),
            clock: spec.clock.clone(),
        }
    }

    /// Notes that a call of the operation has completed and that further calls follow.
    pub(crate) fn call_completed(&self) {
        self.worker.call_completed(self.clock.now());
    }
}

/// The files that a workload works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataSet {
    /// Number of files; of a pattern the maximum at any time.
    pub files: u64,
    /// Sum of the file sizes in bytes; an estimate for very many files.
    pub bytes: u128,
}

/// Rows of the results for the procedures that a target calls on a server.
#[derive(Clone)]
pub struct RpcRows {
    /// The recorder of the lane.
    pub recorder: Rc<Recorder>,
    /// Names and numbers of the rows.
    pub rows: Arc<[(String, u32)]>,
}

impl RpcRows {
    /// The number of a row.
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
    /// Inodes free to this user; `None` if their number is not limited.
    pub inodes: Option<u64>,
    /// Bytes of a block: each file takes a whole number of blocks.
    pub block: u64,
}

/// The operations that a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Both.
    ReadWrite,
}

impl OpenMode {
    pub(crate) fn reads(self) -> bool {
        self != Self::Write
    }

    pub(crate) fn writes(self) -> bool {
        self != Self::Read
    }
}

/// An entry of the tree of a fileset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesetEntry {
    /// A file.
    File(FileId),
    /// A directory of files.
    Dir(DirId),
    /// A leaf directory, by its number.
    LeafDir(u32),
}

/// The parameters of an open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenHow {
    /// The operations it is opened for.
    pub mode: OpenMode,
    /// Create it if it does not exist.
    pub create: bool,
    /// Truncate it to zero bytes if it exists.
    pub truncate: bool,
    /// Direct I/O.
    pub direct: bool,
    /// Writes return when their data is on stable storage.
    pub dsync: bool,
    /// Advise against read-ahead.
    pub no_read_ahead: bool,
    /// The size that the workload planned, for targets that keep no files.
    pub planned_size: u64,
}

impl OpenHow {
    /// Opens an existing file for these operations.
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

/// The place of a write that is prepared.
#[derive(Debug, Clone, Copy)]
pub enum WritePlace<'h, H> {
    /// An offset in an open file.
    At(&'h H, u64),
    /// The end of an open file.
    End(&'h H),
    /// An offset in an open file; the write is queued ([`Session::aio_write`](crate::Session::aio_write)).
    Queued(&'h H, u64),
    /// The beginning of the located file, which is opened later.
    Located,
}

impl<'h, H> WritePlace<'h, H> {
    /// The same place on the wrapped target; `inner` returns the open file of the wrapped target.
    pub(crate) fn of_inner<I>(self, inner: impl Fn(&'h H) -> &'h I) -> WritePlace<'h, I> {
        match self {
            Self::At(handle, offset) => WritePlace::At(inner(handle), offset),
            Self::End(handle) => WritePlace::End(inner(handle)),
            Self::Queued(handle, offset) => WritePlace::Queued(inner(handle), offset),
            Self::Located => WritePlace::Located,
        }
    }
}

/// Attributes of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Its kind.
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

/// Totals of a directory listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListTotals {
    /// Entries without `.` and `..`.
    pub entries: u64,
    /// Bytes of the records that the system returned: names and their overhead.
    pub bytes: u64,
}

/// An asynchronous write that has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AioDone {
    /// The number that the caller gave it.
    pub tag: u32,
    /// When it was queued.
    pub start: Nanos,
    /// When it completed.
    pub end: Nanos,
    /// Bytes written.
    pub result: Result<u64, OpError>,
}
