//! The machines of the ranks: their processors and NFS mounts.

use plimsoll_measure::system::NfsMountUse;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::thread::available_parallelism;

/// The machines of a run, by name.
pub(super) type Hosts = BTreeMap<String, Host>;

/// The ranks of one machine together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Host {
    /// Processors that the ranks may use together: a launcher may bind each rank to its own.
    cpus: BTreeSet<u32>,
    /// Processors that a quota allows a rank, if they are fewer than it may run on.
    quota: Option<usize>,
    /// Processor time in each window, in seconds.
    used_s: Vec<f64>,
    /// Traffic of its NFS mounts in each window, the same for all ranks of a machine.
    mounts: Vec<Option<Mounts>>,
}

/// Traffic of NFS mounts, by mount point.
pub(super) type Mounts = BTreeMap<String, NfsMountUse>;

impl Host {
    /// This machine, as this process uses it.
    pub(super) fn of_this_process(used_s: Vec<f64>) -> Self {
        let cpus: BTreeSet<u32> = plimsoll_lane::os::processors().collect();
        let parallel = available_parallelism().map_or(1, usize::from);
        Self {
            quota: (parallel < cpus.len()).then_some(parallel),
            cpus,
            used_s,
            mounts: vec![],
        }
    }

    /// Adds another rank of the same machine.
    fn add(&mut self, other: Self) {
        self.cpus.extend(other.cpus);
        self.quota = self.quota.zip(other.quota).map(|(a, b)| a.max(b));
        self.used_s
            .resize(self.used_s.len().max(other.used_s.len()), 0.0);
        for (mine, theirs) in self.used_s.iter_mut().zip(other.used_s) {
            *mine += theirs;
        }
        for (mine, theirs) in self.mounts.iter_mut().zip(other.mounts) {
            // Windows differ by microseconds: the larger counts include the smaller ones.
            *mine = both(mine.take(), theirs, u64::max);
        }
    }

    /// Fraction of the processors that was used in a window of this length.
    pub(super) fn cpu_share(&self, window: usize, seconds: f64) -> Option<f64> {
        let cpus = self.quota.unwrap_or(self.cpus.len()).max(1) as f64;
        let used = self.used_s.get(window)?;
        (seconds > 0.0).then(|| used / (seconds * cpus))
    }
}

/// Adds the machines of other ranks.
pub(super) fn add(hosts: &mut Hosts, others: Hosts) {
    for (name, theirs) in others {
        match hosts.get_mut(&name) {
            None => drop(hosts.insert(name, theirs)),
            Some(mine) => mine.add(theirs),
        }
    }
}

/// The largest fraction of the processors of a machine that was used.
pub(super) fn busiest(hosts: &Hosts, window: usize, seconds: f64) -> Option<f64> {
    let shares = hosts.values().filter_map(|h| h.cpu_share(window, seconds));
    shares.max_by(f64::total_cmp)
}

/// Traffic of the NFS mounts of all machines together; `None` if one is unknown.
pub(super) fn mounted(hosts: &Hosts, window: usize) -> Option<Mounts> {
    let each = hosts.values().map(|h| h.mounts.get(window)?.clone());
    let sum = |all, one| both(all, one, u64::saturating_add);
    each.reduce(sum)?
}

/// Joins the traffic of two machines or ranks, by mount point.
fn both(a: Option<Mounts>, b: Option<Mounts>, join: fn(u64, u64) -> u64) -> Option<Mounts> {
    let mut all = a?;
    for (point, theirs) in b? {
        let mine = all.entry(point).or_default();
        mine.read_bytes = join(mine.read_bytes, theirs.read_bytes);
        mine.written_bytes = join(mine.written_bytes, theirs.written_bytes);
    }
    Some(all)
}

/// The name of this machine.
pub(super) fn name() -> String {
    let uname = rustix::system::uname();
    uname.nodename().to_string_lossy().into_owned()
}

/// The machine of this rank, with the processor time and the traffic of its NFS mounts in each
/// window.
pub(super) fn of_this_rank(used_s: Vec<f64>, mounts: Vec<Option<Mounts>>) -> Hosts {
    let host = Host {
        mounts,
        ..Host::of_this_process(used_s)
    };
    Hosts::from([(name(), host)])
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
pub(super) fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(cpus: &[u32], quota: Option<usize>, used_s: &[f64]) -> Host {
        Host {
            cpus: cpus.iter().copied().collect(),
            quota,
            used_s: used_s.to_vec(),
            mounts: vec![],
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
        // Bound to a processor each, both half busy; and unbound, together half busy.
        let bound = all(&[
            ("a", host(&[0], None, &[1.0])),
            ("a", host(&[1], None, &[1.0])),
        ]);
        assert_eq!(busiest(&bound, 0, 2.0), Some(0.5));
        let unbound = all(&[
            ("a", host(&[0, 1], None, &[1.0])),
            ("a", host(&[0, 1], None, &[1.0])),
        ]);
        assert_eq!(busiest(&unbound, 0, 2.0), Some(0.5));
    }

    #[test]
    fn machines_are_looked_at_one_by_one() {
        let two = all(&[
            ("a", host(&[0, 1], None, &[0.0, 1.0])),
            ("b", host(&[0, 1], None, &[0.0, 3.0])),
        ]);
        assert_eq!(busiest(&two, 1, 2.0), Some(0.75));
        assert_eq!(busiest(&two, 0, 2.0), Some(0.0));
        assert_eq!(busiest(&two, 2, 2.0), None);
    }

    #[test]
    fn a_quota_counts_where_every_rank_has_one() {
        let hosts = all(&[
            ("a", host(&[0, 1, 2, 3], Some(2), &[1.0])),
            ("a", host(&[0, 1, 2, 3], Some(2), &[1.0])),
        ]);
        assert_eq!(busiest(&hosts, 0, 1.0), Some(1.0));
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
            ..host(&[0], None, &[1.0])
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
        let unknown = all(&[("a", with("/m", 1)), ("b", host(&[0], None, &[1.0]))]);
        assert_eq!(mounted(&unknown, 0), None);
    }
}
