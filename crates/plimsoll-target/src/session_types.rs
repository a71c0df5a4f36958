//! Arguments and results of session operations.

use crate::content::ContentPool;
use crate::error::OpError;
use plimsoll_measure::{Clock, InFlight, Nanos, Recorder, WindowState};
use plimsoll_plan::{DirId, FileId};
use std::rc::Rc;
use std::sync::Arc;

/// Maximum size of a small file that is read whole, in bytes.
pub(crate) const MAX_WHOLE_READ_BYTES: u64 = 64 << 20;

/// Descriptors of this process that the sessions of a target use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Descriptors {
    /// Number of descriptors that an open file takes: 1 for a local file, 0 for a server's file.
    pub per_open_file: u64,
    /// Number of descriptors that a lane takes: its connections or its ring, and the descriptors with which the lane
    /// waits.
    pub per_lane: u64,
}

/// The support of a file system for direct I/O (`O_DIRECT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectIo {
    /// Direct I/O is not supported, or would have no effect because the file system has no page cache.
    Refused,
    /// Direct I/O is supported for transfers whose offset and size are multiples of the alignment.
    Aligned {
        /// The alignment in bytes, a power of two.
        to: u64,
    },
    /// The file system does not state whether direct I/O is supported.
    Unknown,
}

/// The parameters of a session.
#[derive(Clone)]
pub struct SessionSpec {
    /// Size of the read buffer in bytes; reads use the buffer in rotation.
    pub buffer: u64,
    /// The content of writes.
    pub content: ContentPool,
    /// The run's clock.
    pub clock: Clock,
    /// A number that no other session has; determines the content that the session writes.
    pub number: u64,
    /// The process of the workload that the worker belongs to.
    pub process: u64,
    /// The seed of the run.
    pub seed: u64,
    /// The files of the workload; empty on lanes of real time, whose targets store their files.
    pub data_set: DataSet,
    /// The measured windows of the run.
    pub window: Arc<WindowState>,
    /// The worker's current operation.
    pub in_flight: Arc<InFlight>,
    /// The result rows and the recorder for the procedures that the target calls on a server; `None` if procedures are
    /// not recorded.
    pub rpc: Option<RpcRows>,
    /// Time without a reply of the server after which all calls fail; `None` if each call fails after the target's own
    /// time limit.
    pub silence: Option<std::time::Duration>,
    /// Whether none of the session's operations is measured, so that saving memory matters more than speed.
    pub unmeasured: bool,
}

/// Progress reports of an operation that makes many calls: the session reports each completed call.
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

    /// Reports that a call has completed and that the operation continues with further calls.
    pub(crate) fn call_completed(&self) {
        self.worker.call_completed(self.clock.now());
    }
}

/// The files of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataSet {
    /// Number of files; for a pattern, the maximum at any time.
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
    /// The number of the results' row named `name`; `None` if the results have no such row.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<u32> {
        let found = self.rows.iter().find(|(n, _)| n == name);
        found.map(|(_, row)| *row)
    }
}

/// The free space of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Free bytes that this user may use.
    pub bytes: u64,
    /// Free inodes that this user may use; `None` if the number of inodes is not limited.
    pub inodes: Option<u64>,
    /// Block size in bytes: each file occupies a whole number of blocks.
    pub block: u64,
}

/// The operations that a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Access for reading only, `O_RDONLY`.
    Read,
    /// Access for writing only, `O_WRONLY`.
    Write,
    /// Access for reading and writing, `O_RDWR`.
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

/// An entry of a fileset's tree.
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
    /// The operations that the file is opened for.
    pub mode: OpenMode,
    /// Whether a missing file is created.
    pub create: bool,
    /// Whether an existing file is truncated to zero bytes.
    pub truncate: bool,
    /// Whether transfers use direct I/O.
    pub direct: bool,
    /// Whether writes return only when their data is on stable storage.
    pub dsync: bool,
    /// Whether the kernel is advised against read-ahead.
    pub no_read_ahead: bool,
    /// The planned size of the file in bytes, for targets that keep no files.
    pub planned_size: u64,
}

impl OpenHow {
    /// The parameters to open an existing file.
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

/// The place of a write that is being prepared.
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
    /// The place as the wrapped target of a verifying session knows it; `inner` returns the wrapped target's open file.
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
    /// Kind of the object, such as regular file or directory.
    pub kind: EntryKind,
    /// Size of a file in bytes; for a directory, the size that the file system reports.
    pub size: u64,
    /// Time of the last change of attributes or contents (`ctime`), in nanoseconds since 1970, by the file system's
    /// clock; `None` if the target knows no times.
    pub changed_ns: Option<i64>,
}

impl Attributes {
    /// A time of change as in `changed_ns`, from seconds and nanoseconds; times beyond the range become the range's end.
    #[inline]
    pub(crate) fn time(seconds: i64, nanoseconds: u32) -> Option<i64> {
        let whole = seconds.saturating_mul(1_000_000_000);
        Some(whole.saturating_add(i64::from(nanoseconds)))
    }
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
    /// Bytes of the returned directory records: names and their overhead.
    pub bytes: u64,
}

/// An asynchronous write that has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AioDone {
    /// The number that the caller has given the write.
    pub tag: u32,
    /// The time at which the write was queued.
    pub start: Nanos,
    /// The time at which the write completed.
    pub end: Nanos,
    /// Bytes written, or the error.
    pub result: Result<u64, OpError>,
}
