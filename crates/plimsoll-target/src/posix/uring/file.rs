//! Open files of a ring's sessions.

use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Transfers before a file is registered; registering a file that is soon closed is not worth the
/// cost.
const TRANSFERS_BEFORE_REGISTRATION: u32 = 16;

/// An open file. Operations in flight share the file, so that the descriptor stays open, and its number unused by other
/// files, until the kernel has taken the operations.
pub(crate) struct RingFile {
    pub(super) fd: OwnedFd,
    /// The index in the ring's file table plus one; 0 if the file is not registered.
    registered: AtomicU32,
    /// Number of reads and writes of the file, counted up to [`TRANSFERS_BEFORE_REGISTRATION`], after which the file
    /// may be registered.
    transfers: AtomicU32,
}

/// How an operation names a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FileName {
    Descriptor(i32),
    Registered(u32),
}

impl RingFile {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            registered: AtomicU32::new(0),
            transfers: AtomicU32::new(0),
        }
    }

    /// The name of the file for the next operation.
    #[inline]
    pub(super) fn name(&self) -> FileName {
        match self.index() {
            None => FileName::Descriptor(self.fd.as_raw_fd()),
            Some(index) => FileName::Registered(index),
        }
    }

    pub(super) fn index(&self) -> Option<u32> {
        self.registered.load(Relaxed).checked_sub(1)
    }

    pub(super) fn set_index(&self, index: Option<u32>) {
        self.registered.store(index.map_or(0, |i| i + 1), Relaxed);
    }

    /// Counts a transfer; returns whether the file must be registered now.
    #[inline]
    pub(super) fn count_transfer(&self) -> bool {
        // Only the file's worker counts transfers, so the separate load and store lose no count.
        let before = self.transfers.load(Relaxed);
        if before > TRANSFERS_BEFORE_REGISTRATION {
            return false;
        }
        self.transfers.store(before + 1, Relaxed);
        before == TRANSFERS_BEFORE_REGISTRATION
    }
}

/// The result of a completion; a negative value is an error number.
pub(super) fn completed(result: i32) -> Result<u32, Errno> {
    u32::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))
}

/// Refuses an offset beyond the maximum file offset. For io_uring, an offset of all ones means the current file
/// position.
pub(super) fn check_offset(offset: u64) -> Result<u64, Errno> {
    match i64::try_from(offset) {
        Ok(_) => Ok(offset),
        Err(_) => Err(Errno::INVAL),
    }
}
