//! Operations of sessions that have no method of their own.

use crate::error::OpError;
use crate::session_types::Attributes;
use rustix::io::Errno;

/// An operation that [`Session::execute`](crate::Session::execute) executes.
///
/// Operations of mixes besides plain transfers, and operations that only preparations need, take one path
/// through the targets: none is worth a direct call in the loop of a worker. A target fails an operation
/// that the target lacks with `EOPNOTSUPP`, and says so before a run in
/// [`Target::unsupported_reason`](crate::Target::unsupported_reason).
///
/// Offsets and lengths are in bytes; `H` is the open file of a target.
#[derive(Debug)]
pub enum RareOperation<'a, H> {
    /// An operation on the located name, or on the file system of the work directory.
    OnName(NameOperation),
    /// An operation on an open file.
    OnFile(&'a H, FileOperation<'a>),
    /// Reads up to `len` bytes at `offset` of one file and writes them to the same offset of another.
    /// Moves the bytes that were read: fewer than `len` only at the end of the file.
    Copy {
        /// Opened for reading.
        from: &'a H,
        /// Opened for writing.
        to: &'a H,
        /// Offset in both files.
        offset: u64,
        /// Maximum number of bytes.
        len: u64,
    },
}

impl<'a, H> RareOperation<'a, H> {
    /// The same operation of a target that is wrapped: `inner` is the open file in an open file.
    pub(crate) fn of_inner<I>(self, inner: impl Fn(&'a H) -> &'a I) -> RareOperation<'a, I> {
        match self {
            Self::OnName(operation) => RareOperation::OnName(operation),
            Self::OnFile(handle, operation) => RareOperation::OnFile(inner(handle), operation),
            Self::Copy {
                from,
                to,
                offset,
                len,
            } => RareOperation::Copy {
                from: inner(from),
                to: inner(to),
                offset,
                len,
            },
        }
    }
}

/// An operation on the name of the last [`Session::locate`](crate::Session::locate), or on the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameOperation {
    /// Requests the attributes of a name that must not exist; fails with `EEXIST` if the name exists.
    StatMissing,
    /// Checks that the name may be read and written: `faccessat2(2)`; ACCESS (RFC 1813, 3.3.4).
    Access,
    /// Sets the permissions of the name to the lowest nine bits of a mode: `chmod(2)`; SETATTR
    /// (RFC 1813, 3.3.2). Fails with `ELOOP` if the name is a symbolic link.
    Chmod(u32),
    /// Looks the name up: LOOKUP (RFC 1813, 3.3.3), which no system call requests alone.
    Lookup,
    /// Creates the symbolic link from the name to the destination
    /// ([`Session::set_destination`](crate::Session::set_destination)), which is in the same directory,
    /// unless the link exists. Precedes [`Self::ReadLink`] and is not measured.
    PrepareLink,
    /// Reads the symbolic link: READLINK (RFC 1813, 3.3.5).
    ReadLink,
    /// Reads the directory to its end, with the attributes of the entries: READDIRPLUS (RFC 1813,
    /// 3.3.17). Moves the bytes of the entries.
    ListPlus,
    /// Requests the space of the file system: `fstatfs(2)`; FSSTAT (RFC 1813, 3.3.18).
    StatFs,
    /// Requests the maximum length of a name in the work directory: `fpathconf(3)`; PATHCONF
    /// (RFC 1813, 3.3.20).
    PathConf,
}

/// An operation on an open file.
#[derive(Debug)]
pub enum FileOperation<'a> {
    /// Writes dirty pages of the file and drops the file from the cache of the client:
    /// `posix_fadvise(3)`. Not measured.
    DropCache,
    /// Sets the length of the file: `ftruncate(2)`; SETATTR (RFC 1813, 3.3.2).
    Truncate(u64),
    /// Locks a range for writing, waits while another open file has a lock on a part of the range, and
    /// unlocks the range. Locks belong to the open file (`F_OFD_SETLKW` of `fcntl(2)`) and so exclude
    /// workers of one process from each other; LOCK (RFC 8881, 18.10).
    Lock {
        /// Start of the range.
        offset: u64,
        /// Bytes of the range.
        len: u64,
    },
    /// Writes content of the session; the content is on stable storage when the operation completes:
    /// `RWF_DSYNC` of `pwritev2(2)`; WRITE with FILE_SYNC (RFC 1813, 3.3.7).
    WriteStable {
        /// Offset; without one, the end of the file.
        offset: Option<u64>,
        /// Bytes to write.
        len: u64,
    },
    /// [`Self::WriteStable`] of given bytes.
    WriteBytesStable {
        /// Offset.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Reads a range, which must exist, changes some bytes in each 4 KiB, and writes the range back.
    /// Moves each byte twice.
    Modify {
        /// Start of the range.
        offset: u64,
        /// Bytes of the range.
        len: u64,
    },
    /// Maps a range, which must exist, reads and unmaps the range: `mmap(2)`.
    MapRead {
        /// Start of the range.
        offset: u64,
        /// Bytes of the range.
        len: u64,
    },
    /// [`Self::MapRead`] into given memory.
    MapReadBytes {
        /// Start of the range.
        offset: u64,
        /// Receives the bytes of the range.
        bytes: &'a mut [u8],
    },
    /// Maps a range, which must exist, writes and unmaps the range: `mmap(2)`.
    MapWrite {
        /// Start of the range.
        offset: u64,
        /// Bytes of the range.
        len: u64,
        /// Whether the range is flushed to stable storage before it is unmapped: `msync(2)`.
        flush: bool,
    },
    /// [`Self::MapWrite`] of given bytes.
    MapWriteBytes {
        /// Start of the range.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
        /// As in [`Self::MapWrite`].
        flush: bool,
    },
}

/// The result of [`NameOperation::StatMissing`], from that of a request for attributes.
pub(crate) fn missing(found: Result<Attributes, OpError>) -> Result<u64, OpError> {
    match found {
        Err(OpError(Errno::NOENT)) => Ok(0),
        Err(e) => Err(e),
        Ok(_) => Err(OpError(Errno::EXIST)),
    }
}

/// Bytes of which the first eight are changed when they are modified.
const MODIFY_STRIDE_BYTES: usize = 4096;

/// Changes some of these bytes, as [`FileOperation::Modify`] does.
pub(crate) fn modify_blocks(bytes: &mut [u8]) {
    for block in bytes.chunks_mut(MODIFY_STRIDE_BYTES) {
        for byte in block.iter_mut().take(8) {
            *byte = byte.wrapping_add(1);
        }
    }
}
