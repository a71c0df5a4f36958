//! The machines of the ranks: their processors, control groups and NFS mounts.

use plimsoll_measure::Throttling;
use plimsoll_measure::control_groups::{ControlGroups, QuotaUse};
use plimsoll_measure::system::{NfsMountUse, SystemUse};
use plimsoll_plan::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

/// The machines of a run, by name.
pub(super) type Hosts = BTreeMap<String, Host>;

/// Processors, processor times and counters of all ranks of one machine together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Host {
    /// Processors that the ranks may use together. A launcher may bind each rank to its own processors.
    cpus: BTreeSet<u32>,
    /// Processor time in each window, in seconds.
    used_s: Vec<f64>,
    /// Control groups of the ranks that a CPU quota limits, by [`ControlGroups::cpu_group_id`].
    groups: BTreeMap<u64, QuotaGroup>,
    /// Traffic of the machine's NFS mounts in each window. All ranks of a machine read the same counters.
    mounts: Vec<Option<Mounts>>,
}

/// The ranks of a machine in one control group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct QuotaGroup {
    /// Number of lanes of the ranks in the control group.
    lanes: usize,
    /// Processor time of the ranks in the control group, in seconds, for each window.
    used_s: Vec<f64>,
    /// Throttling by the quota in each window; all ranks of the group read the same counters.
    quotas: Vec<QuotaUse>,
}

/// Traffic of NFS mounts, by mount point.
pub(super) type Mounts = BTreeMap<String, NfsMountUse>;

impl Host {
    /// This machine, with the processor time and the traffic of this process in each window. The process has `lanes`
    /// lanes.
    pub(super) fn of_this_process(lanes: usize, windows: &[&SystemUse]) -> Self {
        let used = |w: &&SystemUse| w.process.as_ref().map_or(0.0, |p| p.cpu_s());
        let used_s: Vec<f64> = windows.iter().map(used).collect();
        let quotas = windows.iter().map(|w| w.quota.clone().unwrap_or_default());
        let group = QuotaGroup {
            lanes,
            used_s: used_s.clone(),
            quotas: quotas.collect(),
        };
        let id = ControlGroups::of_this_process().cpu_group_id();
        let is_limited = windows.iter().any(|w| w.quota.is_some());
        Self {
            cpus: plimsoll_lane::os::processors().collect(),
            used_s,
            groups: id
                .filter(|_| is_limited)
                .map(|id| (id, group))
                .into_iter()
                .collect(),
            mounts: windows.iter().map(|w| w.nfs_mounts.clone()).collect(),
        }
    }

    /// Adds the processors, times and counters of another rank of the same machine.
    fn add(&mut self, other: Self) {
        self.cpus.extend(other.cpus);
        add_each(&mut self.used_s, &other.used_s);
        for (id, theirs) in other.groups {
            let mine = self.groups.entry(id).or_default();
            mine.lanes += theirs.lanes;
            add_each(&mut mine.used_s, &theirs.used_s);
            if mine.quotas.len() < theirs.quotas.len() {
                mine.quotas = theirs.quotas;
            }
        }
        for (mine, theirs) in self.mounts.iter_mut().zip(other.mounts) {
            // All ranks of a machine read the same counters, microseconds apart. The larger count stands for both
            // ranks, because a sum would count the machine's traffic twice.
            *mine = both(mine.take(), theirs, u64::max);
        }
    }

    fn processors(&self) -> f64 {
        self.cpus.len().max(1) as f64
    }

    /// Fraction of the processors that the ranks used, or of a CPU quota that a control group used, whichever is
    /// largest, in a window of `seconds`. `None` for an unknown window, or a window without length.
    pub(super) fn cpu_share(&self, window: usize, seconds: f64) -> Option<f64> {
        let all = (*self.used_s.get(window)?, self.processors());
        let groups = self.groups.values().filter_map(|g| {
            let allowed = g.quotas.get(window)?.processors?;
            Some((*g.used_s.get(window)?, allowed.min(self.processors())))
        });
        let shares = groups
            .chain([all])
            .map(|(used, cpus)| used / (seconds * cpus));
        shares.max_by(f64::total_cmp).filter(|_| seconds > 0.0)
    }

    /// Throttling of the control group that was throttled most, in a window of this length.
    pub(super) fn throttling(&self, window: usize, seconds: f64) -> Option<Throttling> {
        let groups = self.groups.values().filter_map(|g| {
            let quota = g.quotas.get(window)?;
            // A group cannot be throttled on more processors than it has threads.
            let cpus = self.processors().min(g.lanes.max(1) as f64);
            Some(Throttling {
                share: quota.throttled_s / (seconds * cpus),
                processors: quota.processors,
                group: quota.group.clone(),
                host: None,
            })
        });
        groups
            .max_by(|a, b| a.share.total_cmp(&b.share))
            .filter(|_| seconds > 0.0)
    }
}

/// Adds the elements of `theirs` to the elements of `mine`; a missing element counts as 0.
fn add_each(mine: &mut Vec<f64>, theirs: &[f64]) {
    mine.resize(mine.len().max(theirs.len()), 0.0);
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine += theirs;
    }
}

/// Merges the machines of other ranks into `hosts`.
pub(super) fn add(hosts: &mut Hosts, others: Hosts) {
    for (name, theirs) in others {
        match hosts.get_mut(&name) {
            None => drop(hosts.insert(name, theirs)),
            Some(mine) => mine.add(theirs),
        }
    }
}

/// The largest fraction of a machine's processors or CPU quota that was used, over all machines.
pub(super) fn busiest(hosts: &Hosts, window: usize, seconds: f64) -> Option<f64> {
    let shares = hosts.values().filter_map(|h| h.cpu_share(window, seconds));
    shares.max_by(f64::total_cmp)
}

/// Throttling of the machine that was throttled most; the machine is named if the run has several machines.
pub(super) fn most_throttled(hosts: &Hosts, window: usize, seconds: f64) -> Option<Throttling> {
    let all = hosts.iter().filter_map(|(name, host)| {
        let host_name = (hosts.len() > 1).then(|| name.clone());
        let found = host.throttling(window, seconds)?;
        Some(Throttling {
            host: host_name,
            ..found
        })
    });
    all.max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Traffic of the NFS mounts of all machines together; `None` if the traffic of a machine is unknown.
pub(super) fn mounted(hosts: &Hosts, window: usize) -> Option<Mounts> {
    let each = hosts.values().map(|h| h.mounts.get(window)?.clone());
    let sum = |all, one| both(all, one, u64::saturating_add);
    each.reduce(sum)?
}

/// Merges the traffic of two machines or ranks, by mount point; `join` merges the counts.
fn both(a: Option<Mounts>, b: Option<Mounts>, join: fn(u64, u64) -> u64) -> Option<Mounts> {
    let mut all = a?;
    for (point, theirs) in b? {
        let mine = all.entry(point).or_default();
        mine.read_bytes = join(mine.read_bytes, theirs.read_bytes);
        mine.written_bytes = join(mine.written_bytes, theirs.written_bytes);
    }
    Some(all)
}

/// The name of this machine in its network (nodename of uname(2)).
pub(super) fn name() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}

/// Memory that the machine or a control group leaves to this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AvailableMemory {
    pub(super) bytes: u64,
    /// Directory of the control group; `None` for the machine.
    pub(super) group: Option<PathBuf>,
}

/// Memory that this process can get without swapping: of the machine, and within each limit of its control groups.
/// Empty if the amounts are unknown.
pub(super) fn available_memory_of_each() -> Vec<AvailableMemory> {
    let of_machine = plimsoll_measure::system::machine_memory()
        .map(|(_, bytes)| AvailableMemory { bytes, group: None });
    let groups = ControlGroups::of_this_process();
    let of_groups = groups.available_memory().map(|limit| AvailableMemory {
        bytes: limit.bytes,
        group: Some(limit.group),
    });
    of_machine.into_iter().chain(of_groups).collect()
}

/// Memory that this process can get without swapping and within the limits of its control groups; `None` if the amount
/// is unknown.
pub(super) fn available_memory() -> Option<AvailableMemory> {
    let each = available_memory_of_each();
    each.into_iter().min_by_key(|available| available.bytes)
}

impl fmt::Display for AvailableMemory {
    /// A clause such as `the machine has 3 GiB available`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = Bytes(self.bytes);
        match &self.group {
            None => write!(f, "the machine has {bytes} available"),
            Some(group) => write!(
                f,
                "the control group `{}` leaves {bytes} to this process",
                group.display()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(cpus: &[u32], used_s: &[f64]) -> Host {
        Host {
            cpus: cpus.iter().copied().collect(),
            used_s: used_s.to_vec(),
            ..Host::default()
        }
    }

    /// The host with all ranks in one control group, whose quota throttled the group for `throttled_s` in one window.
    fn in_group(id: u64, processors: f64, throttled_s: f64, lanes: usize, host: Host) -> Host {
        let quota = QuotaUse {
            processors: Some(processors),
            group: Some(format!("/group-{id}")),
            throttled_s,
            ..QuotaUse::default()
        };
        let group = QuotaGroup {
            lanes,
            used_s: host.used_s.clone(),
            quotas: vec![quota],
        };
        Host {
            groups: [(id, group)].into(),
            ..host
        }
    }

    fn all(hosts: &[(&str, Host)]) -> Hosts {
        let mut sum = Hosts::new();
        for (name, host) in hosts {
            add(&mut sum, Hosts::from([(name.to_string(), host.clone())]));
        }
        sum
    }

    #[test]
    fn ranks_of_one_machine_share_its_processors() {
        // Two ranks keep two processors half busy, whether each rank is bound to a processor or not.
        let bound = all(&[("a", host(&[0], &[1.0])), ("a", host(&[1], &[1.0]))]);
        assert_eq!(busiest(&bound, 0, 2.0), Some(0.5));
        let unbound = all(&[("a", host(&[0, 1], &[1.0])), ("a", host(&[0, 1], &[1.0]))]);
        assert_eq!(busiest(&unbound, 0, 2.0), Some(0.5));
    }

    #[test]
    fn machines_are_looked_at_one_by_one() {
        let two = all(&[
            ("a", host(&[0, 1], &[0.0, 1.0])),
            ("b", host(&[0, 1], &[0.0, 3.0])),
        ]);
        assert_eq!(busiest(&two, 1, 2.0), Some(0.75));
        assert_eq!(busiest(&two, 0, 2.0), Some(0.0));
        assert_eq!(busiest(&two, 2, 2.0), None);
    }

    #[test]
    fn a_quota_is_of_the_group_and_not_of_each_rank() {
        let cpus = [0, 1, 2, 3];
        let rank = |id, processors| in_group(id, processors, 0.0, 1, host(&cpus, &[0.5]));
        let one_group = all(&[("a", rank(7, 2.0)), ("a", rank(7, 2.0))]);
        assert_eq!(busiest(&one_group, 0, 1.0), Some(0.5));
        let two_groups = all(&[("a", rank(7, 2.0)), ("a", rank(8, 1.0))]);
        assert_eq!(busiest(&two_groups, 0, 1.0), Some(0.5));
        // A quota above the number of processors has no effect.
        assert_eq!(busiest(&all(&[("a", rank(7, 64.0))]), 0, 1.0), Some(0.125));
        let unlimited = all(&[("a", host(&cpus, &[3.0])), ("a", rank(7, 2.0))]);
        assert_eq!(busiest(&unlimited, 0, 1.0), Some(0.875));
    }

    #[test]
    fn throttling_is_a_fraction_of_the_time_of_the_processors_that_may_be_throttled() {
        let share = |lanes, cpus: &[u32], throttled_s| {
            let host = in_group(7, 0.1, throttled_s, lanes, host(cpus, &[0.2]));
            most_throttled(&all(&[("a", host)]), 0, 2.0).unwrap().share
        };
        // The lanes are fewer than the processors, as many as the processors, or more.
        assert_eq!(share(1, &[0, 1, 2, 3], 1.8), 0.9);
        assert_eq!(share(4, &[0, 1, 2, 3], 1.8), 0.225);
        assert_eq!(share(64, &[0, 1], 3.6), 0.9);
        assert_eq!(share(0, &[0, 1], 1.0), 0.5);
        // Ranks of a group read the same counters.
        let rank = || in_group(7, 0.1, 1.8, 2, host(&[0, 1, 2, 3], &[0.1]));
        let found = most_throttled(&all(&[("a", rank()), ("a", rank())]), 0, 2.0).unwrap();
        let expected = Throttling {
            share: 0.225,
            processors: Some(0.1),
            group: Some("/group-7".into()),
            host: None,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn the_machine_that_is_throttled_most_is_named_among_others() {
        let of = |throttled_s| in_group(7, 0.5, throttled_s, 1, host(&[0], &[1.0]));
        let free = host(&[0], &[1.0]);
        let hosts = all(&[("a", of(0.2)), ("b", of(0.6)), ("c", free.clone())]);
        let found = most_throttled(&hosts, 0, 2.0).unwrap();
        assert_eq!((found.host.as_deref(), found.share), (Some("b"), 0.3));
        assert_eq!(most_throttled(&hosts, 1, 2.0), None);
        assert_eq!(most_throttled(&hosts, 0, 0.0), None);
        assert_eq!(most_throttled(&all(&[("c", free)]), 0, 2.0), None);
    }

    #[test]
    fn mounts_count_once_a_machine() {
        let with = |point: &str, read_bytes| Host {
            mounts: vec![Some(Mounts::from([(
                point.into(),
                NfsMountUse {
                    read_bytes,
                    written_bytes: 1,
                },
            )]))],
            ..host(&[0], &[1.0])
        };
        let hosts = all(&[
            ("a", with("/m", 100)),
            ("a", with("/m", 103)),
            ("b", with("/m", 50)),
            ("b", with("/n", 7)),
        ]);
        let sums = mounted(&hosts, 0).unwrap();
        let of = |point: &str| (sums[point].read_bytes, sums[point].written_bytes);
        assert_eq!((of("/m"), of("/n")), ((153, 2), (7, 1)));
        assert_eq!(mounted(&hosts, 1), None);
        let unknown = all(&[("a", with("/m", 1)), ("b", host(&[0], &[1.0]))]);
        assert_eq!(mounted(&unknown, 0), None);
    }
}
