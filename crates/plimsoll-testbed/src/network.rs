//! The network namespace of a bed, and the processes in it that are not the bed's own: loads, and what
//! `testbed exec` started.

use crate::process_id::ProcessId;
use procfs::process::Process;
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// How long a process may take to end after SIGTERM; then it is killed.
const TERM_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the system may take to end killed processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between two looks at processes that end.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The network namespace of a bed.
pub(crate) struct Network {
    /// Held open, so that the system gives its number to no other namespace meanwhile.
    _namespace: File,
    id: (u64, u64),
    owner: ProcessId,
}

fn id(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Whether a process is the first one of a namespace of processes, as that of a bed is. Before a bed has
/// one, it belongs to a process in the machine's namespaces.
fn is_first_of_namespace(pid: i32) -> bool {
    let status = Process::new(pid).and_then(|p| p.status());
    let numbers = status.ok().and_then(|s| s.nspid).unwrap_or_default();
    numbers.len() > 1 && numbers.last() == Some(&1)
}

impl Network {
    /// The network of the bed that `owner` keeps. None if it has ended, or is the process that starts the
    /// bed, which is not in the bed's network.
    pub(crate) fn of(owner: ProcessId) -> Option<Self> {
        let namespace = File::open(format!("/proc/{}/ns/net", owner.pid)).ok()?;
        let id = id(&namespace.metadata().ok()?);
        // In this order, so that the namespace is that of this process.
        (is_first_of_namespace(owner.pid) && owner.is_running()).then_some(Self {
            _namespace: namespace,
            id,
            owner,
        })
    }

    /// The processes in it that belong neither to the bed nor to what this process runs under.
    fn entered(&self) -> Vec<ProcessId> {
        let all = procfs::process::all_processes();
        let all: Vec<i32> = all.into_iter().flatten().flatten().map(|p| p.pid).collect();
        let parent = |pid: i32| Some((pid, Process::new(pid).ok()?.stat().ok()?.ppid));
        let parents: BTreeMap<i32, i32> = all.iter().filter_map(|pid| parent(*pid)).collect();
        let ancestors = |pid: i32| {
            let line = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
            // Parents are looked at at different times, so they might form a circle.
            line.take(parents.len())
        };
        let own: Vec<i32> = ancestors(ProcessId::own().pid).collect();
        // `unshare`, which waits for the bed's process, is in the network too.
        let above: Vec<i32> = ancestors(self.owner.pid).collect();
        let is_in = |pid: i32| {
            // Of processes of other users it cannot be read; their ends are not this user's to decide.
            let found = std::fs::metadata(format!("/proc/{pid}/ns/net"));
            found.is_ok_and(|found| id(&found) == self.id)
        };
        let is_foreign = |pid: i32| {
            let is_of_bed = above.contains(&pid) || ancestors(pid).any(|p| p == self.owner.pid);
            !is_of_bed && !own.contains(&pid)
        };
        let entered = all
            .into_iter()
            .filter(|pid| is_in(*pid) && is_foreign(*pid));
        entered.filter_map(ProcessId::of).collect()
    }

    /// Ends the processes that have entered it: by SIGTERM, and by SIGKILL those that take longer than two
    /// seconds.
    pub(crate) fn clear(&self) {
        for (is_last, limit) in [(false, TERM_TIMEOUT), (true, KILL_TIMEOUT)] {
            let begun = Instant::now();
            let mut told: Vec<ProcessId> = Vec::new();
            loop {
                let left = self.entered();
                if left.is_empty() {
                    return;
                }
                // Once each: a second SIGTERM makes some programs give up their cleanup.
                for process in left.iter().filter(|p| !told.contains(p)) {
                    match is_last {
                        true => process.kill(),
                        false => process.terminate(),
                    }
                }
                told = left;
                if begun.elapsed() > limit {
                    break;
                }
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever took the machine's network for a bed's would end every process of this user.
    #[test]
    fn the_network_of_the_machine_is_not_a_beds() {
        assert!(Network::of(ProcessId::own()).is_none());
    }
}
