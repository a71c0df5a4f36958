//! Open files of a ring's sessions.

use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Transfers after which a file is registered: before that it may be closed soon.
const TRANSFERS_BEFORE_REGISTRATION: u32 = 16;

/// An open file. Operations in flight share it, so that its descriptor is not closed, and its number not
/// given to another file, before the kernel has taken them.
pub(crate) struct RingFile {
    pub(super) fd: OwnedFd,
    /// One more than its index in the ring's table of files; 0 if it is not registered.
    registered: AtomicU32,
    /// Transfers so far, up to [`TRANSFERS_BEFORE_REGISTRATION`].
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

    /// The name for the next operation.
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

    /// Counts a transfer; returns whether the file is worth being registered now.
    #[inline]
    pub(super) fn count_transfer(&self) -> bool {
        // Only the file's worker counts, so that nothing is lost between the load and the store.
        let before = self.transfers.load(Relaxed);
        if before > TRANSFERS_BEFORE_REGISTRATION {
            return false;
        }
        self.transfers.store(before + 1, Relaxed);
        before == TRANSFERS_BEFORE_REGISTRATION
    }
}

/// The result of a completion: a number, or an error number below zero.
pub(super) fn completed(result: i32) -> Result<u32, Errno> {
    u32::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))
}

/// Refuses an offset that no file has. To a ring the largest number means the position of the descriptor.
pub(super) fn check_offset(offset: u64) -> Result<u64, Errno> {
    match i64::try_from(offset) {
        Ok(_) => Ok(offset),
        Err(_) => Err(Errno::INVAL),
    }
}
