//! Disks of simulated processes.

use crate::DiskCall;
use std::time::Duration;

/// Error numbers of Linux.
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// What is wrong with the disk of a process of a simulation, by the number of its calls before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// From this call on nothing that takes room succeeds (`ENOSPC`).
    FullFrom(u64),
    /// This call fails (`EIO`).
    BrokenAt(u64),
    /// From this call on every call fails (`EIO`).
    BrokenFrom(u64),
}

/// The disk of a process of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimulatedDisk {
    /// Time that each call takes.
    pub latency: Duration,
    /// What is wrong with it.
    pub fault: Option<DiskFault>,
}

impl DiskFault {
    /// The error number of the call before which there were `before`.
    pub(super) fn error(self, call: DiskCall, before: u64) -> Option<i32> {
        let (fails, errno) = match self {
            Self::FullFrom(n) => (call == DiskCall::Write && before >= n, ENOSPC),
            Self::BrokenAt(n) => (before == n, EIO),
            Self::BrokenFrom(n) => (before >= n, EIO),
        };
        fails.then_some(errno)
    }
}
