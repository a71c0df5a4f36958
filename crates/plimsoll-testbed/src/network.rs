//! The network namespace of a bed, and the processes in the namespace that do not belong to the bed: loads, and
//! processes that `testbed exec` started.

use crate::process_id::ProcessId;
use crate::state::BedState;
use procfs::process::Stat;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// Maximum time from SIGTERM until a load in the bed's network ends, in which the load writes its results and removes
/// its files; then the load is killed.
const TERM_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time in which the system ends killed processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between two checks of processes that end.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Identity of a namespace while the namespace exists. Later, another namespace may have the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceId {
    /// Device number of the namespace's file below `/proc`.
    pub device: u64,
    /// Inode number of the namespace's file below `/proc`.
    pub inode: u64,
}

impl NamespaceId {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// The network of a process, named by its directory below `/proc`. `None` if the process has ended, or if this user
    /// has no access.
    fn of_network(process: impl std::fmt::Display) -> Option<Self> {
        let found = std::fs::metadata(format!("/proc/{process}/ns/net"));
        Some(Self::of(&found.ok()?))
    }

    /// Network namespace of the keeper; `None` unless this process is process 1 of a PID namespace, as every keeper is.
    /// A process with another number than 1 may be in the machine's own network, whose processes must not be ended.
    pub(crate) fn of_bed() -> Option<Self> {
        let is_first = std::process::id() == 1;
        is_first.then(|| Self::of_network("self")).flatten()
    }
}

/// Network namespace of a bed, with the processes that belong to the bed.
pub(crate) struct Network {
    /// Open file of the network namespace, so that the system does not give the namespace's number to another
    /// namespace.
    _namespace: File,
    id: NamespaceId,
    owner: ProcessId,
    /// The owner and its ancestors: `unshare`, which is in the network too, and the command that started `unshare`. The
    /// ancestors of an ended owner cannot be determined.
    above: Vec<ProcessId>,
}

/// State of every process of the machine, by process number.
fn processes() -> BTreeMap<i32, Stat> {
    let all = procfs::process::all_processes().into_iter().flatten();
    let stats = all.filter_map(|process| process.ok()?.stat().ok());
    stats.map(|stat| (stat.pid, stat)).collect()
}

/// A process, its parent, and further ancestors.
fn line(all: &BTreeMap<i32, Stat>, pid: i32) -> impl Iterator<Item = i32> {
    let parent = |pid: &i32| all.get(pid).map(|stat| stat.ppid);
    // Parents are read at different times and might form a cycle.
    std::iter::successors(Some(pid), parent).take(all.len())
}

impl Network {
    /// The network of a bed. `None` if the owner has ended, or if the bed's network is not recorded or differs: the
    /// process that starts a bed is in the machine's network.
    pub(crate) fn of(state: &BedState) -> Option<Self> {
        let (owner, id) = (state.owner, state.network?);
        let path = format!("/proc/{}/ns/net", owner.pid);
        let namespace = File::open(path).ok()?;
        let found = NamespaceId::of(&namespace.metadata().ok()?);
        let all = processes();
        let above = line(&all, owner.pid).filter_map(|pid| ProcessId::of_stat(all.get(&pid)?));
        let above = above.collect();
        // The owner is checked last: if the owner still runs, the namespace and the ancestors read before were the
        // owner's, and not of a later process with the owner's process number.
        (found == id && owner.is_running()).then_some(Self {
            _namespace: namespace,
            id,
            owner,
            above,
        })
    }

    /// Processes that have entered the bed's network: neither processes of the bed, nor this process and its ancestors.
    /// If this process has entered the bed's network too, the processes of this process's group do not count, because a
    /// shell may have connected the processes of a group by pipes.
    fn entered(&self) -> Vec<ProcessId> {
        let all = processes();
        let own = ProcessId::own().pid;
        let above_own: Vec<i32> = line(&all, own).collect();
        let is_entered = NamespaceId::of_network("self") == Some(self.id);
        let group = all.get(&own).filter(|_| is_entered).map(|stat| stat.pgrp);
        // The number of an ended owner may belong to an unrelated process.
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
        // The network of a process is read after the process's start time, and the later signal checks the start time:
        // a process that has taken the number of an ended process gets no signal. Processes whose network this user may
        // not read are left alone.
        alive
            .filter(|process| NamespaceId::of_network(process.pid) == Some(self.id))
            .collect()
    }

    /// Ends the processes that have entered the network: by SIGTERM, and by SIGKILL after [`TERM_TIMEOUT`].
    pub(crate) fn clear(&self) {
        for (is_last, limit) in [(false, TERM_TIMEOUT), (true, KILL_TIMEOUT)] {
            let begun = Instant::now();
            let mut told: Vec<ProcessId> = Vec::new();
            loop {
                let left = self.entered();
                if left.is_empty() {
                    return;
                }
                // One signal for each process: a second SIGTERM makes some programs abandon their cleanup.
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

    /// A bed with the machine's network as its own would end every process of this user.
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
