//! Operations that are not part of a worker's loop on most workloads: operations of SPEC SFS-like mixes, and operations
//! that only preparations need. A new operation is a variant, and an arm in each target that supports the operation.

use crate::error::OpError;
use crate::session_types::Attributes;
use rustix::io::Errno;

/// An operation on the name of the last [`Session::locate`](crate::Session::locate), or on the file system of the work
/// directory. A target that lacks an operation fails the operation with `EOPNOTSUPP`, and names the operation before a
/// run in [`Target::unsupported_reason`](crate::Target::unsupported_reason).
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

/// An operation on an open file. Offsets and lengths are in bytes. Unsupported operations fail as for
/// [`NameOperation`].
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
        /// Offset; `None` for the end of the file.
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
        /// Whether the range is flushed to stable storage before it is unmapped.
        flush: bool,
    },
}

/// The result of [`NameOperation::StatMissing`], from the result of a request for the attributes.
pub(crate) fn missing(found: Result<Attributes, OpError>) -> Result<u64, OpError> {
    match found {
        Err(OpError(Errno::NOENT)) => Ok(0),
        Err(e) => Err(e),
        Ok(_) => Err(OpError(Errno::EXIST)),
    }
}

/// Stride in bytes at which `modify_blocks` changes bytes.
const MODIFY_STRIDE_BYTES: usize = 4096;

/// Changes the first eight bytes of every 4 KiB, for [`FileOperation::Modify`].
pub(crate) fn modify_blocks(bytes: &mut [u8]) {
    for block in bytes.chunks_mut(MODIFY_STRIDE_BYTES) {
        for byte in block.iter_mut().take(8) {
            *byte = byte.wrapping_add(1);
        }
    }
}
