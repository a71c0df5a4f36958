//! Identity of processes by number and start time: the system reuses numbers.

use procfs::process::{Process, Stat};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// A process of this boot of the machine; two different processes are never equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Process number in the PID namespace that the mounted `/proc` shows.
    pub pid: i32,
    /// Start time of the process in clock ticks since the boot of the machine.
    pub start_ticks: u64,
}

impl ProcessId {
    /// Identity of the running process with number `pid`; `None` if no such process runs, or if it is a zombie.
    #[must_use]
    pub fn of(pid: i32) -> Option<Self> {
        Self::of_stat(&Process::new(pid).and_then(|p| p.stat()).ok()?)
    }

    /// The process of a stat record; `None` if the record shows an ended process.
    pub(crate) fn of_stat(stat: &Stat) -> Option<Self> {
        // A zombie has ended.
        (stat.state != 'Z' && stat.state != 'X').then_some(Self {
            pid: stat.pid,
            start_ticks: stat.starttime,
        })
    }

    /// This process, with its number in `/proc`.
    #[must_use]
    pub fn own() -> Self {
        let stat = Process::myself().and_then(|p| p.stat());
        let stat = stat.expect("a process reads its own state");
        Self {
            pid: stat.pid,
            start_ticks: stat.starttime,
        }
    }

    /// Whether the process still runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        Self::of(self.pid) == Some(*self)
    }

    /// Sends SIGTERM to the process, unless it has ended.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    fn signal(&self, signal: Signal) {
        if let (true, Some(pid)) = (self.is_running(), Pid::from_raw(self.pid)) {
            // The process may have ended since the check.
            let _ = kill_process(pid, signal);
        }
    }

    /// Sends SIGKILL to the process, unless it has ended.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }
}

/// Identity of this boot of the machine: process numbers of another boot are meaningless.
#[must_use]
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_known_until_it_ends() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let id = ProcessId::of(child.id() as i32).unwrap();
        assert!(id.is_running());
        let stranger = ProcessId {
            start_ticks: id.start_ticks + 1,
            ..id
        };
        assert!(!stranger.is_running());
        stranger.kill();
        assert!(
            child.try_wait().unwrap().is_none(),
            "a stranger is not killed"
        );
        id.kill();
        child.wait().unwrap();
        assert!(!id.is_running());
        assert!(ProcessId::own().is_running());
    }
}
