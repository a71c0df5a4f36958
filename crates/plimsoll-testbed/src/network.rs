//! The network namespace of a bed, and the processes in it that are not the bed's own: loads, and what
//! `testbed exec` started.

use crate::process_id::ProcessId;
use crate::state::BedState;
use procfs::process::Stat;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// How long a process may take to end after SIGTERM; then it is killed. A load writes its results and removes
/// its files.
const TERM_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the system may take to end killed processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between two looks at processes that end.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What identifies a namespace as long as it exists. Later, another one may have the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceId {
    /// The device of its file below `/proc`.
    pub device: u64,
    /// The inode of that file.
    pub inode: u64,
}

impl NamespaceId {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// The network of a process, by its name below `/proc`. None if it has ended, or if this user may not
    /// know.
    fn of_network(process: impl std::fmt::Display) -> Option<Self> {
        let found = std::fs::metadata(format!("/proc/{process}/ns/net"));
        Some(Self::of(&found.ok()?))
    }

    /// The network of this process if it is the first one of a namespace of processes, as that of a bed is.
    /// Any other may be in the machine's network.
    pub(crate) fn of_bed() -> Option<Self> {
        let is_first = std::process::id() == 1;
        is_first.then(|| Self::of_network("self")).flatten()
    }
}

/// The network namespace of a bed.
pub(crate) struct Network {
    /// Held open, so that the system gives its number to no other namespace meanwhile.
    _namespace: File,
    id: NamespaceId,
    owner: ProcessId,
    /// What the owner runs under: `unshare`, which is in the network too, and what has started that. Once the
    /// owner has ended, it cannot be found out.
    above: Vec<ProcessId>,
}

/// All processes, by their numbers.
fn processes() -> BTreeMap<i32, Stat> {
    let all = procfs::process::all_processes().into_iter().flatten();
    let stats = all.filter_map(|process| process.ok()?.stat().ok());
    stats.map(|stat| (stat.pid, stat)).collect()
}

/// A process, its parent, and so on.
fn line(all: &BTreeMap<i32, Stat>, pid: i32) -> impl Iterator<Item = i32> {
    let parent = |pid: &i32| all.get(pid).map(|stat| stat.ppid);
    // Parents are looked at at different times, so they might form a circle.
    std::iter::successors(Some(pid), parent).take(all.len())
}

impl Network {
    /// The network of a bed. None if its owner has ended, or has not recorded the bed's network: the process
    /// that starts a bed is in the machine's.
    pub(crate) fn of(state: &BedState) -> Option<Self> {
        let (owner, id) = (state.owner, state.network?);
        let path = format!("/proc/{}/ns/net", owner.pid);
        let namespace = File::open(path).ok()?;
        let found = NamespaceId::of(&namespace.metadata().ok()?);
        let all = processes();
        let above = line(&all, owner.pid).filter_map(|pid| ProcessId::of_stat(all.get(&pid)?));
        let above = above.collect();
        // In this order, so that the namespace and the processes above are those of this process.
        (found == id && owner.is_running()).then_some(Self {
            _namespace: namespace,
            id,
            owner,
            above,
        })
    }

    /// The processes in it that belong neither to the bed nor to what this process runs under or, where it is
    /// in the network itself, to its process group: those that a shell connects with it by pipes.
    fn entered(&self) -> Vec<ProcessId> {
        let all = processes();
        let own = ProcessId::own().pid;
        let above_own: Vec<i32> = line(&all, own).collect();
        let is_entered = NamespaceId::of_network("self") == Some(self.id);
        let group = all.get(&own).filter(|_| is_entered).map(|stat| stat.pgrp);
        // Later, its number may be that of a stranger.
        let owner = self.owner.is_running().then_some(self.owner.pid);
        let is_foreign = |stat: &Stat, id: &ProcessId| {
            let is_of_bed = self.above.contains(id) || line(&all, id.pid).any(|p| Some(p) == owner);
            let is_own = above_own.contains(&id.pid) || Some(stat.pgrp) == group;
            !is_of_bed && !is_own
        };
        let alive = all.values().filter_map(|stat| {
            let id = ProcessId::of_stat(stat)?;
            is_foreign(stat, &id).then_some(id)
        });
        // After its start time was read: a number may be given to a stranger meanwhile, which is elsewhere.
        // The ends of processes whose network this user may not know are not this user's to decide.
        alive
            .filter(|process| NamespaceId::of_network(process.pid) == Some(self.id))
            .collect()
    }

    /// Ends the processes that have entered it: by SIGTERM, and by SIGKILL those that take longer than
    /// [`TERM_TIMEOUT`].
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
    use crate::options::BedOptions;

    /// Whoever took the machine's network for a bed's would end every process of this user.
    #[test]
    fn the_network_of_a_bed_is_the_one_that_it_has_recorded() {
        let options = BedOptions::default();
        let mut state = BedState::new("b", "nfs", &options, "/data".into());
        assert_eq!((state.owner, state.network), (ProcessId::own(), None));
        assert!(Network::of(&state).is_none(), "it is being started");
        let own = NamespaceId::of_network("self").unwrap();
        let inode = own.inode + 1;
        state.network = Some(NamespaceId { inode, ..own });
        assert!(Network::of(&state).is_none(), "its owner is elsewhere");
        state.network = Some(own);
        assert_eq!(Network::of(&state).unwrap().id, own);
        state.owner.start_ticks += 1;
        assert!(Network::of(&state).is_none(), "its owner has ended");
    }
}
