//! The disk of the files that a program keeps of its own: its results, not the files that it measures. A simulated one
//! knows of changes that add or replace something and of syncs; removals always succeed.

use crate::simulation;
use std::io;
use std::time::Duration;

/// Error numbers of Linux.
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// What a program does to its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskCall {
    /// A change that takes room: a new file or directory, more bytes, a name.
    Write,
    /// Bringing what was written to the device.
    Sync,
}

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
    pub(crate) fn error(self, call: DiskCall, before: u64) -> Option<i32> {
        let (fails, errno) = match self {
            Self::FullFrom(n) => (call == DiskCall::Write && before >= n, ENOSPC),
            Self::BrokenAt(n) => (before == n, EIO),
            Self::BrokenFrom(n) => (before >= n, EIO),
        };
        fails.then_some(errno)
    }
}

/// Precedes each call that adds to a file of the program's own, or syncs it. In a simulation it takes the time of the call.
///
/// # Errors
/// That of the disk of the process, in a simulation.
pub fn disk_call(call: DiskCall) -> io::Result<()> {
    match simulation::current() {
        Some(thread) => thread.disk_call(call),
        None => Ok(()),
    }
}
