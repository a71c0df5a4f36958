//! The disk of the files that a program keeps of its own: its results, not the files that it measures. A simulated disk
//! knows of changes that add or replace something and of syncs; removals always succeed.

use crate::simulation;
use std::io;

/// What a program does to its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskCall {
    /// A change that takes room: a new file or directory, more bytes, a name.
    Write,
    /// Bringing what was written to the device.
    Sync,
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
