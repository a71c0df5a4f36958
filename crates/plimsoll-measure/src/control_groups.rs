//! Limits of this process by its control groups: processor time (CFS quota) and memory.
//!
//! A limit of a group applies to all groups below, so the effective limit is the smallest limit of all groups from the
//! process's own group to the root. Each controller is in a hierarchy of version 1 or in the hierarchy of version 2. In
//! a container only the container's own group and the groups below may be visible. Files: `admin-guide/cgroup-v2.rst`,
//! `admin-guide/cgroup-v1/memory.rst` and `scheduler/sched-bwc.rst` of the kernel's documentation.

use crate::system::mounts;
use procfs::process::MountInfo;
use procfs::{FromRead, ProcessCGroup, ProcessCGroups};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;

/// Smallest value in bytes that means "no limit": version 1 shows the largest multiple of the page size if there is no
/// limit.
const NO_MEMORY_LIMIT: u64 = 1 << 62;

/// Maximum number of directories searched for the group of this process.
const MAX_SEARCHED_GROUPS: usize = 10_000;

/// The control groups that may limit this process.
#[derive(Debug, Default)]
pub struct ControlGroups {
    /// Control groups of the process in the hierarchy of the CPU controller, from the process's own group to the root.
    cpu: Vec<Group>,
    /// Control groups of the process in the hierarchy of the memory controller, from the process's own group to the
    /// root.
    memory: Vec<Group>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

#[derive(Debug, Clone)]
struct Group {
    dir: PathBuf,
    version: Version,
}

/// A control group's memory limit, or the memory still available under the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Number of bytes that the limit allows, or that are still available under the limit.
    pub bytes: u64,
    /// Directory of the control group that has the limit.
    pub group: PathBuf,
}

/// Throttling counters of this process's control groups at an instant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuotaCounters {
    /// Counters of each group, from the process's own group to the root.
    groups: Vec<GroupCounters>,
    /// Time in nanoseconds for which any quota throttled the process's own group; since Linux 6.6.
    own_throttled_ns: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct GroupCounters {
    dir: PathBuf,
    quota: Option<f64>,
    periods: u64,
    throttled_periods: u64,
    throttled_ns: u64,
}

/// Throttling of the control group of the process by a CPU quota (CFS bandwidth control).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaUse {
    /// Number of processors that the quota allows, such as 0.5. Of the quotas of all groups from the process's own
    /// group to the root, the quota that throttled its group most, or without throttling the smallest. Null if the
    /// group with the quota is not visible in the container.
    pub processors: Option<f64>,
    /// Directory of the control group with the quota; null if the group is not visible in the container.
    pub group: Option<String>,
    /// Number of quota periods, usually of 100 ms, in which threads of the control group wanted to run.
    pub periods: u64,
    /// Number of quota periods in which the control group used up the quota before the period ended.
    pub throttled_periods: u64,
    /// Time for which threads of the group waited for the next period, summed over processors, in seconds.
    pub throttled_s: f64,
}

impl QuotaUse {
    /// Rounds a number of processors to three decimal places.
    #[must_use]
    pub fn rounded(processors: f64) -> f64 {
        (processors * 1000.0).round() / 1000.0
    }

    /// A number of processors in words, such as `0.1 processors`.
    #[must_use]
    pub fn processors_text(processors: f64) -> String {
        match Self::rounded(processors) {
            1.0 => "1 processor".into(),
            rounded => format!("{rounded} processors"),
        }
    }

    /// The quota and its throttling as text, such as `CPU quota of 0.1 processors, used up in 18 of 20 periods, threads
    /// waited for 0.90 s`.
    #[must_use]
    pub fn text(&self) -> String {
        let quota = match self.processors {
            Some(processors) => format!("CPU quota of {}", Self::processors_text(processors)),
            None => "CPU quota of a group that is not visible, or lifted since".into(),
        };
        let waited = format!("threads waited for {:.2} s", self.throttled_s);
        match self.periods {
            0 => format!("{quota}, {waited}"),
            all => format!(
                "{quota}, used up in {} of {all} periods, {waited}",
                self.throttled_periods
            ),
        }
    }
}

impl ControlGroups {
    /// The groups of this process at the first call.
    pub fn of_this_process() -> &'static Self {
        static GROUPS: OnceLock<ControlGroups> = OnceLock::new();
        GROUPS.get_or_init(|| Self::below(Path::new("/")))
    }

    /// The groups described by the files below a root directory.
    fn below(root: &Path) -> Self {
        let own = ProcessCGroups::from_file(root.join("proc/self/cgroup"));
        let own = own.map_or_else(|_| vec![], |groups| groups.0);
        let mounts = mounts(&root.join("proc/self/mountinfo"));
        let groups = |controller| {
            let dirs = way_to_root(root, &own, &mounts, controller);
            dirs.unwrap_or_default()
        };
        Self {
            cpu: groups("cpu"),
            memory: groups("memory"),
        }
    }

    /// Number of processors that the smallest quota allows, and the directory of the limiting group.
    #[must_use]
    pub fn cpu_quota(&self) -> Option<(f64, &Path)> {
        let quotas = self.cpu.iter().filter_map(|g| Some((g.quota()?, &*g.dir)));
        quotas.min_by(|(a, _), (b, _)| a.total_cmp(b))
    }

    /// A number that identifies a control group on a machine: the inode number of the group with the smallest quota,
    /// or, without a quota, of the process's own group; `None` if no group is visible.
    #[must_use]
    pub fn cpu_group_id(&self) -> Option<u64> {
        let limiting = self.cpu_quota().map(|(_, dir)| dir);
        let dir = limiting.or(self.cpu.first().map(|g| &*g.dir))?;
        fs::metadata(dir).ok().map(|m| m.ino())
    }

    /// The smallest memory limit. In version 2 the limit of a group is the smaller of `memory.max` and `memory.high`,
    /// above which processes are slowed down until they have given up memory.
    #[must_use]
    pub fn memory_limit(&self) -> Option<MemoryLimit> {
        let limits = self.memory.iter().filter_map(|g| g.memory_limit());
        limits.min_by_key(|limit| limit.bytes)
    }

    /// Memory available under each limit: limit minus memory use, excluding the page cache, which the kernel can
    /// reclaim.
    pub fn available_memory(&self) -> impl Iterator<Item = MemoryLimit> {
        self.memory.iter().filter_map(|g| g.available_memory())
    }

    /// Throttling counters at this instant; `None` if no group is visible.
    #[must_use]
    pub fn quota_counters(&self) -> Option<QuotaCounters> {
        let own = self.cpu.first()?;
        Some(QuotaCounters {
            groups: self.cpu.iter().map(Group::quota_counters).collect(),
            own_throttled_ns: own.throttled_ns(&own.table("cpu.stat.local")),
        })
    }
}

impl Group {
    fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.dir.join(file)).ok()
    }

    fn number<T: FromStr>(&self, file: &str) -> Option<T> {
        self.text(file)?.trim().parse().ok()
    }

    /// Parses a file of lines with a name and a number; empty if the file does not exist.
    fn table(&self, file: &str) -> HashMap<String, u64> {
        let text = self.text(file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| {
            let (name, number) = line.split_once(' ')?;
            Some((name.to_owned(), number.trim().parse().ok()?))
        });
        lines.collect()
    }

    /// Number of processors that the group's own quota allows; `None` without a quota.
    fn quota(&self) -> Option<f64> {
        let (quota, period): (f64, f64) = match self.version {
            Version::V2 => {
                let text = self.text("cpu.max")?;
                let mut numbers = text.split_whitespace();
                // Without a quota, the first field is `max`.
                let mut number = || numbers.next()?.parse().ok();
                (number()?, number()?)
            }
            // Without a quota, the quota file contains -1.
            Version::V1 => (
                self.number("cpu.cfs_quota_us")?,
                self.number("cpu.cfs_period_us")?,
            ),
        };
        (quota > 0.0 && period > 0.0).then(|| quota / period)
    }

    fn quota_counters(&self) -> GroupCounters {
        let stat = self.table("cpu.stat");
        let count = |name| stat.get(name).copied().unwrap_or(0);
        GroupCounters {
            dir: self.dir.clone(),
            quota: self.quota(),
            periods: count("nr_periods"),
            throttled_periods: count("nr_throttled"),
            throttled_ns: self.throttled_ns(&stat).unwrap_or(0),
        }
    }

    fn throttled_ns(&self, stat: &HashMap<String, u64>) -> Option<u64> {
        match self.version {
            Version::V1 => stat.get("throttled_time").copied(),
            Version::V2 => stat.get("throttled_usec").map(|us| us.saturating_mul(1000)),
        }
    }

    fn memory_limit(&self) -> Option<MemoryLimit> {
        let limits = match self.version {
            Version::V2 => [self.number("memory.max"), self.number("memory.high")],
            Version::V1 => [
                self.number("memory.limit_in_bytes"),
                // `hierarchical_memory_limit` includes the limits of parent groups, which may be invisible.
                self.table("memory.stat")
                    .get("hierarchical_memory_limit")
                    .copied(),
            ],
        };
        let limits = limits.into_iter().flatten();
        let bytes = limits.filter(|bytes| *bytes < NO_MEMORY_LIMIT).min()?;
        let group = self.dir.clone();
        Some(MemoryLimit { bytes, group })
    }

    fn available_memory(&self) -> Option<MemoryLimit> {
        let limit = self.memory_limit()?;
        let (used, kinds) = match self.version {
            Version::V2 => (
                "memory.current",
                ["inactive_file", "active_file", "slab_reclaimable"].as_slice(),
            ),
            // Counters with the prefix `total_` include the groups below.
            Version::V1 => (
                "memory.usage_in_bytes",
                ["total_inactive_file", "total_active_file"].as_slice(),
            ),
        };
        let used: u64 = self.number(used)?;
        let stat = self.table("memory.stat");
        let reclaimable: u64 = kinds.iter().filter_map(|kind| stat.get(*kind)).sum();
        Some(MemoryLimit {
            bytes: limit.bytes.saturating_sub(used.saturating_sub(reclaimable)),
            ..limit
        })
    }
}

impl QuotaCounters {
    /// Throttling from the reading of these counters to the reading `later`; `None` if there was neither a quota nor
    /// throttling.
    pub(crate) fn until(&self, later: &Self) -> Option<QuotaUse> {
        let change = |then: u64, now: u64| now.saturating_sub(then);
        let both = || self.groups.iter().zip(&later.groups);
        let throttled = both().map(|(a, b)| change(a.throttled_ns, b.throttled_ns));
        let own = self.own_throttled_ns.zip(later.own_throttled_ns);
        // Simultaneous throttling by several quotas must count only once.
        let throttled_ns = throttled
            .chain(own.map(|(a, b)| change(a, b)))
            .max()
            .unwrap_or(0);
        // A quota may be set or removed between the two readings.
        let limited = both().filter_map(|(a, b)| Some((b.quota.or(a.quota)?, a, b)));
        let limiting = limited.max_by(|(quota, a, b), (other, c, d)| {
            let throttled = |then: &GroupCounters, now: &GroupCounters| {
                change(then.throttled_ns, now.throttled_ns)
            };
            let order = throttled(a, b).cmp(&throttled(c, d));
            order.then(other.total_cmp(quota))
        });
        if limiting.is_none() && throttled_ns == 0 {
            return None;
        }
        Some(QuotaUse {
            processors: limiting.map(|(quota, ..)| quota),
            group: limiting.map(|(.., g)| g.dir.display().to_string()),
            periods: limiting.map_or(0, |(_, a, b)| change(a.periods, b.periods)),
            throttled_periods: limiting.map_or(0, |(_, a, b)| {
                change(a.throttled_periods, b.throttled_periods)
            }),
            throttled_s: throttled_ns as f64 / 1e9,
        })
    }
}

/// The visible groups with a controller, from the process's own group to the mount point; `None` without a mount of the
/// controller.
fn way_to_root(
    root: &Path,
    own: &[ProcessCGroup],
    mounts: &[MountInfo],
    controller: &str,
) -> Option<Vec<Group>> {
    let of_v1 = |g: &&ProcessCGroup| g.controllers.iter().any(|c| c == controller);
    let of_v2 = |g: &&ProcessCGroup| g.hierarchy == 0 && g.controllers.is_empty();
    let (version, own) = match own.iter().find(of_v1) {
        Some(group) => (Version::V1, group),
        None => (Version::V2, own.iter().find(of_v2)?),
    };
    let mounts = mounts.iter().filter(|m| match version {
        Version::V1 => m.fs_type == "cgroup" && m.super_options.contains_key(controller),
        Version::V2 => m.fs_type == "cgroup2",
    });
    let in_root =
        |m: &MountInfo| root.join(m.mount_point.strip_prefix("/").unwrap_or(&m.mount_point));
    let below = mounts.clone().filter_map(|m| {
        let path = path_below(&own.pathname, &m.root)?;
        Some((m, in_root(m).join(path)))
    });
    // Choose the mount that shows the most groups.
    let known = below.min_by_key(|(m, _)| m.root.len());
    let (top, dir) = match known {
        Some((m, dir)) => (in_root(m), dir),
        None => {
            // In a control group namespace without its own mount, paths are relative to a group of unknown name. If the
            // process is in no visible group, only the limits of the mounted group count.
            let top = in_root(mounts.clone().next()?);
            let found = group_of_process(&top, std::process::id());
            (top.clone(), found.unwrap_or(top))
        }
    };
    let dirs = dir.ancestors().take_while(|dir| dir.starts_with(&top));
    let group = |dir: &Path| Group {
        dir: dir.to_owned(),
        version,
    };
    Some(dirs.map(group).collect())
}

/// The path of a group relative to the group `above`, both as `/proc` writes them; `None` if the group is not below
/// `above`.
fn path_below(path: &str, above: &str) -> Option<PathBuf> {
    let path = Path::new(path).strip_prefix(above).ok()?;
    let is_plain = |c: Component<'_>| matches!(c, Component::Normal(_));
    path.components().all(is_plain).then(|| path.to_owned())
}

/// Searches the directory `top` and its subdirectories for the group of a process.
fn group_of_process(top: &Path, process: u32) -> Option<PathBuf> {
    let mut dirs = vec![top.to_owned()];
    let mut at = 0;
    while at < dirs.len() && at < MAX_SEARCHED_GROUPS {
        let dir = dirs[at].clone();
        let processes = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
        if processes.lines().any(|line| line.parse() == Ok(process)) {
            return Some(dir);
        }
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        let groups = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
        dirs.extend(groups.map(|e| e.path()));
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests;
