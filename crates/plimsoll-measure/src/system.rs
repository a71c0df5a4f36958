//! Resources used during a window: processor, page cache, disks, network and NFS mounts.
//!
//! Two [`Snapshot`]s of the kernel's counters make a [`SystemUse`]. If a counter is not available
//! (not Linux, a container that hides `/proc`), the field is `None`.

use crate::control_groups::{ControlGroups, QuotaCounters, QuotaUse};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use procfs::net::DeviceStatus;
use procfs::process::{MountInfo, MountInfos, MountStat, MountStats};
use procfs::{Current, CurrentSI, DiskStat, FromRead};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::Instant;

/// Sector size in bytes in `/proc/diskstats`, for every device.
const SECTOR_BYTES: u64 = 512;

/// Counters of this process and of the machine at one instant.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Time at which the process counters were read: real time, whatever the clock of the run.
    taken: Instant,
    process: Option<ProcessUse>,
    quota: Option<QuotaCounters>,
    ticks: Option<Ticks>,
    page_cache: Option<PageCacheUse>,
    disks: Option<BTreeMap<String, DiskUse>>,
    networks: Option<BTreeMap<String, NetworkUse>>,
    nfs_mounts: Option<BTreeMap<String, NfsMountUse>>,
}

/// Resources that the process and the machine used between two instants, such as the start and the end of a measured
/// window.
///
/// In a run of several ranks, the figures are of rank 0 and of its machine, except the sums over ranks in `process` and
/// over hosts in `nfs_mounts`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemUse {
    /// Real time between the two instants, in seconds.
    pub seconds: f64,
    /// Processor time, memory, page faults and context switches of the process; null if unknown.
    pub process: Option<ProcessUse>,
    /// CPU quota (CFS quota) of the control group of the process, and throttling by the quota; null without a quota.
    pub quota: Option<QuotaUse>,
    /// Use of the processors of the whole machine, by all processes; null if unknown.
    pub machine: Option<MachineUse>,
    /// Traffic and size of the page cache of the whole machine; null if unknown.
    pub page_cache: Option<PageCacheUse>,
    /// Traffic of the disks that were used, by name; the traffic of a partition counts for the whole disk. Null if
    /// unknown.
    pub disks: Option<BTreeMap<String, DiskUse>>,
    /// Traffic of the network interfaces that were used, by name; null if unknown.
    pub networks: Option<BTreeMap<String, NetworkUse>>,
    /// Traffic of the NFS file systems that were mounted by the kernel and used, by mount point; null if unknown.
    pub nfs_mounts: Option<BTreeMap<String, NfsMountUse>>,
}

/// Resources used by the process, all threads together.
///
/// With several ranks, processor times and `storage_read_bytes` are sums over the ranks; the remaining figures are of
/// rank 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessUse {
    /// Processor time of the process in user mode, in seconds.
    pub user_s: f64,
    /// Processor time of the process in the kernel, in seconds.
    pub system_s: f64,
    /// Maximum resident memory of the process since its start, in bytes.
    pub max_rss_bytes: u64,
    /// Number of page faults of the process that needed no I/O.
    pub minor_faults: u64,
    /// Number of page faults of the process that needed I/O.
    pub major_faults: u64,
    /// Number of context switches because a thread of the process waited.
    pub voluntary_switches: u64,
    /// Number of context switches because a thread of the process had used up its time slice, or a thread of higher
    /// priority ran.
    pub involuntary_switches: u64,
    /// Bytes read from block devices for the process, including read-ahead and metadata, without bytes that the page
    /// cache served, from `/proc/self/io`; null if the kernel does not count the bytes.
    pub storage_read_bytes: Option<u64>,
}

/// Use of the machine's processors, as fractions of the time of all processors from 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineUse {
    /// Number of processors of the machine.
    pub cpus: u32,
    /// Fraction of processor time in user mode or in the kernel, including interrupts.
    pub busy_share: f64,
    /// Fraction of processor time in user mode, including processes of low priority and guests of virtual machines.
    pub user_share: f64,
    /// Fraction of processor time in the kernel, including interrupts.
    pub system_share: f64,
    /// Fraction of processor time that was idle while I/O was outstanding.
    pub iowait_share: f64,
    /// Fraction of processor time that the hypervisor took for other guests.
    pub steal_share: f64,
}

/// Traffic between page cache and storage in a period, from `/proc/vmstat`, and the state of the page cache at the
/// start and at the end of the period, from `/proc/meminfo`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PageCacheUse {
    /// Bytes that the machine read from block devices.
    pub read_in_bytes: u64,
    /// Bytes that the machine wrote to block devices.
    pub written_out_bytes: u64,
    /// Bytes of pages of the page cache that became dirty.
    pub dirtied_bytes: u64,
    /// Bytes of dirty pages that were written back.
    pub written_back_bytes: u64,
    /// Size of the page cache at the end of the period, in bytes.
    pub cached_bytes: u64,
    /// Number of dirty bytes in the page cache at the start of the period, which the kernel still has to write.
    pub dirty_bytes_before: u64,
    /// Number of dirty bytes in the page cache at the end of the period.
    pub dirty_bytes: u64,
}

/// Traffic of one disk of the machine, from `/proc/diskstats`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskUse {
    /// Number of read requests that the disk completed.
    pub reads: u64,
    /// Number of write requests that the disk completed.
    pub writes: u64,
    /// Bytes read from the disk.
    pub read_bytes: u64,
    /// Bytes written to the disk.
    pub written_bytes: u64,
    /// Time during which I/O to the disk was in flight, in seconds.
    pub busy_s: f64,
    /// Sum of the times of all I/O requests to the disk from queueing to completion, in seconds.
    pub io_s: f64,
}

/// Traffic of one network interface of the machine, from `/proc/net/dev`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkUse {
    /// Bytes received by the network interface.
    pub received_bytes: u64,
    /// Number of packets received by the network interface.
    pub received_packets: u64,
    /// Bytes sent by the network interface.
    pub sent_bytes: u64,
    /// Number of packets sent by the network interface.
    pub sent_packets: u64,
    /// Number of packets dropped or damaged at the network interface, in either direction.
    pub errors: u64,
}

/// Traffic of an NFS file system mounted by the kernel, from `/proc/self/mountstats`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NfsMountUse {
    /// Bytes read from the NFS server.
    pub read_bytes: u64,
    /// Bytes written to the NFS server.
    pub written_bytes: u64,
}

/// Clock ticks of all processors since boot.
#[derive(Debug, Clone, Copy)]
struct Ticks {
    cpus: u32,
    user: u64,
    system: u64,
    idle: u64,
    iowait: u64,
    steal: u64,
}

impl Snapshot {
    /// Reads the counters at the start of a period, process counters last. Takes about a millisecond, and longer on a
    /// busy machine.
    #[must_use]
    pub fn take() -> Self {
        let machine = Self::of_machine();
        Self {
            taken: plimsoll_runtime::now(),
            process: process(),
            ..machine
        }
    }

    /// Reads the counters at the end of a period, process counters first: the machine's use in the period then contains
    /// the use of the process.
    #[must_use]
    pub fn take_at_end() -> Self {
        let (taken, process) = (plimsoll_runtime::now(), process());
        Self {
            taken,
            process,
            ..Self::of_machine()
        }
    }

    /// Moves the snapshot to a later instant; the process must have been idle in between.
    #[must_use]
    pub fn unchanged_until(self, instant: Instant) -> Self {
        Self {
            taken: instant,
            ..self
        }
    }

    fn of_machine() -> Self {
        Self {
            taken: plimsoll_runtime::now(),
            process: None,
            quota: ControlGroups::of_this_process().quota_counters(),
            ticks: ticks(),
            page_cache: page_cache(),
            disks: disks(),
            networks: networks(),
            nfs_mounts: nfs_mounts(),
        }
    }

    /// Resources used from this snapshot until a later snapshot: differences of the counters.
    #[must_use]
    pub fn until(&self, later: &Snapshot) -> SystemUse {
        let process = self.process.as_ref().zip(later.process.as_ref());
        let page_cache = self.page_cache.as_ref().zip(later.page_cache.as_ref());
        let quota = self.quota.as_ref().zip(later.quota.as_ref());
        SystemUse {
            seconds: later
                .taken
                .saturating_duration_since(self.taken)
                .as_secs_f64(),
            process: process.map(|(a, b)| b.since(a)),
            quota: quota.and_then(|(a, b)| a.until(b)),
            machine: self.ticks.zip(later.ticks).and_then(|(a, b)| b.since(&a)),
            page_cache: page_cache.map(|(a, b)| b.since(a)),
            disks: used(&self.disks, &later.disks, DiskUse::since),
            networks: used(&self.networks, &later.networks, NetworkUse::since),
            nfs_mounts: used(&self.nfs_mounts, &later.nfs_mounts, NfsMountUse::since),
        }
    }
}

impl ProcessUse {
    /// Processor time in user and kernel mode, in seconds.
    #[must_use]
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// Adds the processor time of another process, and the bytes read from storage if known for both. Other figures are
    /// unchanged.
    pub fn add(&mut self, other: &Self) {
        self.user_s += other.user_s;
        self.system_s += other.system_s;
        let read = self.storage_read_bytes.zip(other.storage_read_bytes);
        self.storage_read_bytes = read.map(|(a, b)| a + b);
    }

    fn since(&self, before: &Self) -> Self {
        let change = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before));
        let read = self.storage_read_bytes.zip(before.storage_read_bytes);
        Self {
            user_s: (self.user_s - before.user_s).max(0.0),
            system_s: (self.system_s - before.system_s).max(0.0),
            max_rss_bytes: self.max_rss_bytes,
            minor_faults: change(|p| p.minor_faults),
            major_faults: change(|p| p.major_faults),
            voluntary_switches: change(|p| p.voluntary_switches),
            involuntary_switches: change(|p| p.involuntary_switches),
            storage_read_bytes: read.map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

impl Ticks {
    fn total(&self) -> u64 {
        self.user + self.system + self.idle + self.iowait + self.steal
    }

    /// Use between two readings; `None` if no tick has passed.
    fn since(&self, before: &Self) -> Option<MachineUse> {
        let total = self.total().checked_sub(before.total())?;
        if total == 0 {
            return None;
        }
        // The kernel's idle and iowait counters occasionally decrease.
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / total as f64;
        Some(MachineUse {
            cpus: self.cpus,
            busy_share: share(self.user + self.system, before.user + before.system),
            user_share: share(self.user, before.user),
            system_share: share(self.system, before.system),
            iowait_share: share(self.iowait, before.iowait),
            steal_share: share(self.steal, before.steal),
        })
    }
}

impl PageCacheUse {
    fn since(&self, before: &Self) -> Self {
        let change = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before));
        Self {
            read_in_bytes: change(|c| c.read_in_bytes),
            written_out_bytes: change(|c| c.written_out_bytes),
            dirtied_bytes: change(|c| c.dirtied_bytes),
            written_back_bytes: change(|c| c.written_back_bytes),
            dirty_bytes_before: before.dirty_bytes_before,
            ..*self
        }
    }
}

impl DiskUse {
    fn since(&self, before: &Self) -> Option<Self> {
        let change = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before));
        let used = Self {
            reads: change(|d| d.reads),
            writes: change(|d| d.writes),
            read_bytes: change(|d| d.read_bytes),
            written_bytes: change(|d| d.written_bytes),
            busy_s: (self.busy_s - before.busy_s).max(0.0),
            io_s: (self.io_s - before.io_s).max(0.0),
        };
        (used.reads + used.writes > 0).then_some(used)
    }
}

impl NetworkUse {
    fn since(&self, before: &Self) -> Option<Self> {
        let change = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before));
        let used = Self {
            received_bytes: change(|n| n.received_bytes),
            received_packets: change(|n| n.received_packets),
            sent_bytes: change(|n| n.sent_bytes),
            sent_packets: change(|n| n.sent_packets),
            errors: change(|n| n.errors),
        };
        (used.received_packets + used.sent_packets + used.errors > 0).then_some(used)
    }
}

impl NfsMountUse {
    fn since(&self, before: &Self) -> Option<Self> {
        let used = Self {
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
        };
        (used != Self::default()).then_some(used)
    }
}

/// Devices of the later map that were used since the earlier map; a new device starts at zero.
fn used<T: Default>(
    before: &Option<BTreeMap<String, T>>,
    later: &Option<BTreeMap<String, T>>,
    since: impl Fn(&T, &T) -> Option<T>,
) -> Option<BTreeMap<String, T>> {
    let before = before.as_ref()?;
    let zero = T::default();
    let changed = later.as_ref()?.iter().filter_map(|(name, now)| {
        let change = since(now, before.get(name).unwrap_or(&zero))?;
        Some((name.clone(), change))
    });
    Some(changed.collect())
}

fn process() -> Option<ProcessUse> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    Some(ProcessUse {
        user_s: usage.user_time().num_microseconds() as f64 / 1e6,
        system_s: usage.system_time().num_microseconds() as f64 / 1e6,
        max_rss_bytes: count(usage.max_rss()) * 1024,
        minor_faults: count(usage.minor_page_faults()),
        major_faults: count(usage.major_page_faults()),
        voluntary_switches: count(usage.voluntary_context_switches()),
        involuntary_switches: count(usage.involuntary_context_switches()),
        storage_read_bytes: storage_read_bytes(),
    })
}

/// Bytes read from block devices for this process, including all threads and reaped children.
fn storage_read_bytes() -> Option<u64> {
    let process = procfs::process::Process::myself().ok()?;
    Some(process.io().ok()?.read_bytes)
}

fn ticks() -> Option<Ticks> {
    Some(ticks_of(&procfs::KernelStats::current().ok()?))
}

fn ticks_of(stat: &procfs::KernelStats) -> Ticks {
    let t = &stat.total;
    Ticks {
        cpus: u32::try_from(stat.cpu_time.len()).unwrap_or(u32::MAX),
        // User and nice time include guest time.
        user: t.user + t.nice,
        system: t.system + t.irq.unwrap_or(0) + t.softirq.unwrap_or(0),
        idle: t.idle,
        iowait: t.iowait.unwrap_or(0),
        steal: t.steal.unwrap_or(0),
    }
}

fn page_cache() -> Option<PageCacheUse> {
    let counters = procfs::vmstat().ok()?;
    let memory = procfs::Meminfo::current().ok()?;
    page_cache_of(&counters, &memory, procfs::page_size())
}

fn page_cache_of(
    counters: &HashMap<String, i64>,
    memory: &procfs::Meminfo,
    page: u64,
) -> Option<PageCacheUse> {
    let counter = |name: &str| u64::try_from(*counters.get(name)?).ok();
    Some(PageCacheUse {
        // pgpgin and pgpgout are in KiB, the other counters in pages.
        read_in_bytes: counter("pgpgin")? * 1024,
        written_out_bytes: counter("pgpgout")? * 1024,
        dirtied_bytes: counter("nr_dirtied")? * page,
        written_back_bytes: counter("nr_written")? * page,
        cached_bytes: memory.cached,
        dirty_bytes_before: memory.dirty,
        dirty_bytes: memory.dirty,
    })
}

/// Names of whole block devices; `None` if `/sys` is not available.
fn whole_disks() -> Option<BTreeSet<String>> {
    let names = std::fs::read_dir("/sys/block")
        .ok()?
        .filter_map(|e| e.ok()?.file_name().into_string().ok());
    // Device names have `!` in /sys in place of `/` in /proc.
    Some(names.map(|n| n.replace('!', "/")).collect())
}

fn disks() -> Option<BTreeMap<String, DiskUse>> {
    let stats = procfs::diskstats().ok()?;
    Some(disks_of(stats, whole_disks().as_ref()))
}

/// Traffic of the named devices, or of all devices.
fn disks_of(stats: Vec<DiskStat>, names: Option<&BTreeSet<String>>) -> BTreeMap<String, DiskUse> {
    let seconds = |ms: u64| ms as f64 / 1e3;
    let kept = stats
        .into_iter()
        .filter(|d| names.is_none_or(|names| names.contains(&d.name)));
    let used = kept.map(|d| {
        let counters = DiskUse {
            reads: d.reads,
            writes: d.writes,
            read_bytes: d.sectors_read * SECTOR_BYTES,
            written_bytes: d.sectors_written * SECTOR_BYTES,
            busy_s: seconds(d.time_in_progress),
            io_s: seconds(d.time_reading + d.time_writing),
        };
        (d.name, counters)
    });
    used.collect()
}

fn networks() -> Option<BTreeMap<String, NetworkUse>> {
    Some(networks_of(procfs::net::dev_status().ok()?))
}

fn networks_of(stats: HashMap<String, DeviceStatus>) -> BTreeMap<String, NetworkUse> {
    let used = stats.into_iter().map(|(name, n)| {
        let counters = NetworkUse {
            received_bytes: n.recv_bytes,
            received_packets: n.recv_packets,
            sent_bytes: n.sent_bytes,
            sent_packets: n.sent_packets,
            errors: n.recv_errs + n.recv_drop + n.sent_errs + n.sent_drop,
        };
        (name, counters)
    });
    used.collect()
}

fn nfs_mounts() -> Option<BTreeMap<String, NfsMountUse>> {
    let MountStats(mounts) = MountStats::from_file("/proc/self/mountstats").ok()?;
    Some(traffic(mounts))
}

/// Traffic of the NFS mounts, by mount point.
fn traffic(mounts: Vec<MountStat>) -> BTreeMap<String, NfsMountUse> {
    let of = |mount: MountStat| {
        let bytes = mount.statistics?.bytes;
        let used = NfsMountUse {
            read_bytes: bytes.server_read,
            written_bytes: bytes.server_write,
        };
        Some((unescaped(&mount.mount_point.to_string_lossy()), used))
    };
    mounts.into_iter().filter_map(of).collect()
}

/// The mounts in a `mountinfo` file of `/proc`; empty if the file cannot be read.
#[must_use]
pub fn mounts(file: &Path) -> Vec<MountInfo> {
    let found = MountInfos::from_file(file);
    let mut mounts = found.map_or_else(|_| vec![], |mounts| mounts.0);
    for mount in &mut mounts {
        mount.mount_point = unescaped(&mount.mount_point.to_string_lossy()).into();
        mount.root = unescaped(&mount.root);
    }
    mounts
}

/// Memory of the machine, and memory available without swapping, in bytes; `None` if unknown.
#[must_use]
pub fn machine_memory() -> Option<(u64, u64)> {
    let memory = procfs::Meminfo::current().ok()?;
    Some((memory.mem_total, memory.mem_available?))
}

/// Decodes the octal escapes (white space and backslash) of a mount point in `/proc`.
#[must_use]
pub fn unescaped(escaped: &str) -> String {
    let escapes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    let one = |text: String, (code, letter): (&str, &str)| text.replace(code, letter);
    escapes.into_iter().fold(escaped.to_owned(), one)
}

#[cfg(test)]
mod tests;
