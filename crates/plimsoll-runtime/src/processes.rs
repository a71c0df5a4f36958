//! Identification of processes, for the ownership of directories.

use crate::simulation;
use std::os::unix::fs::MetadataExt;

/// The number of this process; in a simulation, the number of the simulated process.
#[must_use]
pub fn process_id() -> u32 {
    let Some(thread) = simulation::current() else {
        return std::process::id();
    };
    u32::try_from(thread.process()).expect("a simulation has few processes")
}

/// Scope of process numbers, in which each number identifies at most one process at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessSpace {
    /// Machine: a hash of `/etc/machine-id`; 0 if the file is missing or empty, as in most containers.
    pub machine: u32,
    /// Boot of the machine: a hash of the kernel's random boot id; 0 if the id cannot be read.
    pub boot: u32,
    /// Inode number of the PID namespace, such as a container's; 0 if `/proc` is not mounted. The initial namespace has
    /// the same number on every machine.
    pub namespace: u32,
}

/// Scope of this process's number. All processes of a simulation share a scope, whose fields are 0.
#[must_use]
pub fn process_space() -> ProcessSpace {
    if simulation::current().is_some() {
        return ProcessSpace {
            machine: 0,
            boot: 0,
            namespace: 0,
        };
    }
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    let namespace = std::fs::metadata("/proc/self/ns/pid");
    ProcessSpace {
        machine: hash(text("/etc/machine-id").trim()),
        boot: hash(text("/proc/sys/kernel/random/boot_id").trim()),
        namespace: namespace.map_or(0, |m| m.ino() as u32),
    }
}

/// FNV-1a hash of a text, stable across builds of the program; 0 for an empty text.
fn hash(text: &str) -> u32 {
    if text.is_empty() {
        return 0;
    }
    let step = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, step)
}

/// Start time of a process, which distinguishes the process from a later process with the same number: field 22 of
/// `/proc/PID/stat`, in clock ticks since boot. `None` if no process has the number, or if the process has ended and
/// its parent has not reaped it, as in containers whose first process never waits. In a simulation, 1 for every live
/// process.
#[must_use]
pub fn process_start(number: u32) -> Option<u64> {
    if let Some(thread) = simulation::current() {
        // Numbers of simulated processes are never reused.
        return thread.is_alive(number as usize).then_some(1);
    }
    let text = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The process name may contain spaces, so fields are counted from the closing parenthesis.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    let start = fields.nth(18)?.parse().ok();
    start.filter(|_| !matches!(state, "Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_that_has_ended_and_is_not_waited_for_has_no_start() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(process_start(child.id()).is_some());
        drop(child.stdin.take());
        let pid = Pid::from_child(&child);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), options).unwrap();
        assert_eq!(process_start(child.id()), None);
        child.wait().unwrap();
        assert_eq!(process_start(child.id()), None);
        assert!(process_start(process_id()).is_some());
    }

    #[test]
    fn the_space_of_a_process_stays() {
        assert_eq!(process_space(), process_space());
        assert_ne!(process_space().namespace, 0);
        assert_eq!((hash(""), hash("a")), (0, 0xe40c_292c));
    }
}
