//! Disk access for files that the program writes for itself: results, not measured files. A simulated disk models
//! changes that add or replace data, and syncs; removals always succeed.

use crate::simulation;
use std::io;

/// Kind of disk access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskCall {
    /// A change that takes space: a new file or directory, more bytes, a name.
    Write,
    /// A sync of written data to the device.
    Sync,
}

/// Must be called before each write or sync of the program's own files. In a simulation, takes the time of the disk
/// access.
///
/// # Errors
/// In a simulation, the error of the process's simulated disk.
pub fn disk_call(call: DiskCall) -> io::Result<()> {
    match simulation::current() {
        Some(thread) => thread.disk_call(call),
        None => Ok(()),
    }
}
