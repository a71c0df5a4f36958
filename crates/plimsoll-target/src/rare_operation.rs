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

/// An operation on an open file that workloads use rarely. Offsets and lengths are in bytes. An unsupported operation
/// fails with `EOPNOTSUPP`.
#[derive(Debug)]
pub enum FileOperation<'a> {
    /// Writes dirty pages of the file and drops the file from the client's page cache: posix_fadvise(2); used outside
    /// measured operations only.
    DropCache,
    /// Advises the kernel that the pages of the file are not needed: `POSIX_FADV_DONTNEED` of posix_fadvise(2), which
    /// keeps dirty pages; without effect on a target without a page cache.
    AdviseUnneeded,
    /// Flushes the data of the file to stable storage, and only those attributes that reads of the data need:
    /// `fdatasync(2)`; as [`Session::fsync`](crate::Session::fsync) on a target without such a difference.
    FlushData,
    /// Sets the length of an empty file, and allocates blocks for all bytes: `fallocate(2)`; used outside measured
    /// operations only.
    Allocate(u64),
    /// Sets the length of the file: `ftruncate(2)`; SETATTR (RFC 1813, 3.3.2).
    Truncate(u64),
    /// Locks a range for writing, waits while another open file has a lock on a part of the range, and
    /// unlocks the range. Locks belong to the open file (`F_OFD_SETLKW` of `fcntl(2)`) and so exclude
    /// workers of one process from each other; LOCK (RFC 8881, 18.10).
    Lock {
        /// Offset in the file, in bytes, at which the locked range begins.
        offset: u64,
        /// Length of the locked range in bytes.
        len: u64,
    },
    /// Writes content of the session; the content is on stable storage when the operation completes:
    /// `RWF_DSYNC` of `pwritev2(2)`; WRITE with FILE_SYNC (RFC 1813, 3.3.7).
    WriteStable {
        /// Offset of the write in the file; `None` appends at the end of the file.
        offset: Option<u64>,
        /// Number of bytes of the session's content that the operation writes.
        len: u64,
    },
    /// Writes the caller's bytes instead of content of the session; the bytes are on stable storage when the operation
    /// completes, as for [`Self::WriteStable`].
    WriteBytesStable {
        /// Offset in the file, in bytes, at which the write begins.
        offset: u64,
        /// The caller's bytes, which the operation writes to the file; any number.
        bytes: &'a [u8],
    },
    /// Reads a range of the file, which must exist, changes some bytes in each 4 KiB, and writes the range back; the
    /// operation moves each byte of the range twice.
    Modify {
        /// Offset in the file, in bytes, at which the changed range begins.
        offset: u64,
        /// Length of the changed range in bytes.
        len: u64,
    },
    /// Maps a range of the file, reads the mapped bytes and unmaps the range: mmap(2). The file must have all bytes of
    /// the range.
    MapRead {
        /// Offset in the file, in bytes, at which the mapped range begins.
        offset: u64,
        /// Length of the mapped range in bytes.
        len: u64,
    },
    /// Maps a range of the file, copies the mapped bytes to `bytes` and unmaps the range. The file must have all bytes
    /// of the range.
    MapReadBytes {
        /// Offset in the file, in bytes, at which the mapped range begins.
        offset: u64,
        /// Receives the bytes of the mapped range, whose length is the length of `bytes`.
        bytes: &'a mut [u8],
    },
    /// Maps a range of the file, writes content of the session to the mapping and unmaps the range: mmap(2). The file
    /// must have all bytes of the range.
    MapWrite {
        /// Offset in the file, in bytes, at which the mapped range begins.
        offset: u64,
        /// Length of the mapped range in bytes.
        len: u64,
        /// Whether msync(2) flushes the mapped range to stable storage before the range is unmapped.
        flush: bool,
    },
    /// Maps a range of the file, copies the caller's bytes to the mapping and unmaps the range. The file must have all
    /// bytes of the range.
    MapWriteBytes {
        /// Offset in the file, in bytes, at which the mapped range begins.
        offset: u64,
        /// The caller's bytes, which the operation copies to the mapping; the number of bytes is the length of the
        /// mapped range.
        bytes: &'a [u8],
        /// Whether msync(2) flushes the mapped range to stable storage before the range is unmapped.
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
