//! Disks of simulated processes.

use crate::DiskCall;
use std::time::Duration;

/// Error number of an input/output error on Linux, with which accesses to a broken disk fail.
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Fault of a simulated process's disk, by the number of preceding accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// After this number of accesses, every write fails (`ENOSPC`).
    FullFrom(u64),
    /// The access after this number of accesses fails (`EIO`).
    BrokenAt(u64),
    /// After this number of accesses, every access fails (`EIO`).
    BrokenFrom(u64),
}

/// Disk of a simulated process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimulatedDisk {
    /// Duration of each access.
    pub latency: Duration,
    /// Fault of the disk; `None` for a disk that never fails.
    pub fault: Option<DiskFault>,
}

impl DiskFault {
    /// Error number of the access that follows `before` accesses; `None` on success.
    pub(super) fn error(self, call: DiskCall, before: u64) -> Option<i32> {
        let (fails, errno) = match self {
            Self::FullFrom(n) => (call == DiskCall::Write && before >= n, ENOSPC),
            Self::BrokenAt(n) => (before == n, EIO),
            Self::BrokenFrom(n) => (before >= n, EIO),
        };
        fails.then_some(errno)
    }
}
