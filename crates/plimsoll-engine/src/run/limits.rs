//! Limits of this process: memory, address space and descriptors.

use super::host::{self, AvailableMemory};
use super::lanes;
use super::setup_pool::{BLOCKING_POOL_THREADS, SetupPool};
use crate::program::Compiled;
use crate::worker::whole_file_buffer;
use plimsoll_lane::LaneKind;
use plimsoll_lane::os::{self, AddressSpace};
use plimsoll_measure::RowSpec;
use plimsoll_plan::{Bytes, Plan, WorkerGroup, counted};
use plimsoll_runtime::THREAD_STACK_BYTES;
use plimsoll_target::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Descriptors that the program itself needs, for example for result files and directories.
const PROGRAM_DESCRIPTORS: u64 = 64;

/// Address space for memory whose size is not computed, such as the heap.
const PROGRAM_BYTES: u64 = 64 << 20;

/// Unit to which the required address space is rounded up, so that the next attempt requires the same amount.
const ADDRESS_SPACE_STEP: u64 = 4 << 20;

/// Address space of a thread in addition to its stack: guard page, signal stack, the system's own data.
const THREAD_BYTES: u64 = 128 << 10;

/// Bytes of a session that populates files.
const POOL_SESSION_BYTES: u64 = 256 << 10;

/// Buffers of a verifying session, in multiples of the worker's buffer: data that an operation has read is kept until
/// its comparison, beside the data of the next operation.
const VERIFYING_BUFFERS: u128 = 3;

/// Maximum number of workers of a group at a rank.
fn workers_of(group: &WorkerGroup, ranks: u32) -> u64 {
    group.workers().div_ceil(u64::from(ranks.max(1)))
}

/// Bytes of the buffers of a rank's workers; 0 on a target that stores no data.
pub(super) fn buffers(target: &dyn Target, plan: &Plan, ranks: u32) -> u128 {
    if !target.stores_data() {
        return 0;
    }
    let of = |g: &WorkerGroup| {
        let whole = whole_file_buffer(plan, g);
        u128::from(workers_of(g, ranks)) * u128::from(g.memory.max(whole))
    };
    let all: u128 = plan.groups.iter().map(of).sum();
    if plan.options.verify {
        all * VERIFYING_BUFFERS
    } else {
        all
    }
}

/// Reasons, as sentences, why the limits of this process do not allow a rank's part of a run.
pub(super) fn refusals(pool: &SetupPool, plan: &Plan, ranks: u32) -> Vec<String> {
    let needs = Needs::new(&*pool.target, plan, ranks);
    let space = os::address_space();
    needs
        .memory(host::available_memory())
        .into_iter()
        .chain(needs.descriptors(os::raise_open_files()))
        .chain(
            space
                .into_iter()
                .filter_map(|space| needs.address_space(&space)),
        )
        .collect()
}

/// Needs of a rank for resources that may be limited.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Needs {
    lanes: u64,
    /// Bytes of the workers' buffers.
    buffers: u128,
    /// Bytes of the lanes' histograms.
    histograms: u64,
    /// Maximum number of files that the workers hold open at a time.
    open_files: u64,
    /// Descriptors of the lanes: rings, connections, and descriptors for waiting.
    lane_descriptors: u64,
}

impl Needs {
    fn new(target: &dyn Target, plan: &Plan, ranks: u32) -> Self {
        let workers: u64 = plan.groups.iter().map(|g| workers_of(g, ranks)).sum();
        let kind = target.lane_kind();
        let workers = usize::try_from(workers).unwrap_or(usize::MAX);
        let lanes = lanes::count(kind, target.requested_lanes(), workers) as u64;
        let descriptors = target.descriptors();
        let mut needs = Self {
            lanes,
            buffers: buffers(target, plan, ranks),
            histograms: 0,
            open_files: 0,
            lane_descriptors: lanes.saturating_mul(descriptors.per_lane),
        };
        for group in &plan.groups {
            let program = Compiled::new(plan, group);
            let workers = workers_of(group, ranks);
            let open = workers.saturating_mul(u64::from(program.descriptors));
            let files = open.saturating_mul(descriptors.per_open_file);
            needs.open_files = needs.open_files.saturating_add(files);
            let row = RowSpec {
                unused: false,
                paced: program.paced,
            };
            let lanes_of_group = match kind {
                LaneKind::Blocking => workers,
                LaneKind::Reactor | LaneKind::Virtual => lanes,
            };
            let rows = lanes_of_group.saturating_mul(program.rows.len() as u64);
            let bytes = rows.saturating_mul(row.address_space());
            needs.histograms = needs.histograms.saturating_add(bytes);
        }
        needs
    }

    /// Refusal for lack of memory, as a sentence; `None` if the memory suffices.
    fn memory(&self, available: Option<AvailableMemory>) -> Option<String> {
        let available = available.filter(|a| self.buffers > a.bytes.into())?;
        Some(format!(
            "the workers' buffers take {} (memsize times workers, or the files that are read whole; with --verify three times that) and {available}",
            Bytes(self.buffers),
        ))
    }

    /// Refusal for a too low descriptor limit, as a sentence; `None` if the limit suffices.
    fn descriptors(&self, limit: u64) -> Option<String> {
        let of_run = self.open_files.saturating_add(self.lane_descriptors);
        let needed = of_run.saturating_add(PROGRAM_DESCRIPTORS);
        let parts = [
            (self.open_files, "for files that the workers hold open"),
            (
                self.lane_descriptors,
                "of the target's connections and rings",
            ),
            (PROGRAM_DESCRIPTORS, "of the program itself"),
        ];
        let parts = parts.iter().filter(|(n, _)| *n > 0);
        let parts: Vec<String> = parts.map(|(n, what)| format!("{n} {what}")).collect();
        (needed > limit && of_run > 0).then(|| {
            format!(
                "the run needs {needed} descriptors ({}) and the limit is {limit}: raise it with \
                 `ulimit -n {needed}`",
                parts.join(", ")
            )
        })
    }

    /// Refusal for a too low limit of address space, as a sentence; `None` if the limit suffices.
    fn address_space(&self, space: &AddressSpace) -> Option<String> {
        let thread = THREAD_STACK_BYTES as u64 + THREAD_BYTES;
        let stacks = self.lanes.saturating_mul(thread);
        let of_load = self.buffers + u128::from(stacks) + u128::from(self.histograms);
        // Files are populated before the lanes start.
        let of_pool = BLOCKING_POOL_THREADS as u64 * (thread + POOL_SESSION_BYTES);
        let needed = of_load.max(of_pool.into()) + u128::from(PROGRAM_BYTES + space.used);
        let needed = needed.next_multiple_of(ADDRESS_SPACE_STEP.into());
        (needed > space.limit.into()).then(|| {
            format!(
                "the run needs {} of {} ({} for the workers' buffers, {} for the stacks of {}, {} for histograms, the \
                 rest for the program itself) and the limit is {}: raise it with `ulimit {} {}`",
                Bytes(needed),
                space.name,
                Bytes(self.buffers),
                Bytes(stacks),
                counted(self.lanes, "thread", "threads"),
                Bytes(self.histograms),
                Bytes(space.limit),
                space.option,
                needed / 1024,
            )
        })
    }
}

/// Memory that a rank needs, and memory that the rank can get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RankMemory {
    /// Name of the rank's machine.
    host: String,
    /// Bytes of the buffers of the rank's workers.
    buffers: u128,
    /// Memory of the machine and of each control group with a limit.
    available: Vec<AvailableMemory>,
}

impl RankMemory {
    /// The memory of this rank. `worker_ranks` is the number of ranks with workers; `None` if this rank has no workers.
    pub(super) fn new(
        host: String,
        target: &dyn Target,
        plan: &Plan,
        worker_ranks: Option<u32>,
    ) -> Self {
        Self {
            host,
            buffers: worker_ranks.map_or(0, |ranks| buffers(target, plan, ranks)),
            available: host::available_memory_of_each(),
        }
    }
}

/// Reasons, as sentences, why the memory of a machine does not suffice for all its ranks: one sentence per machine, on
/// the limit that leaves the least. A limit for a single rank is left out, because each rank checks its own memory.
pub(super) fn memory_of_hosts(ranks: &[RankMemory]) -> Vec<String> {
    // The ranks of a machine share its memory, and the ranks in a control group share the memory of the group.
    let mut shared: BTreeMap<_, (u64, u128, &AvailableMemory)> = BTreeMap::new();
    for rank in ranks {
        for available in &rank.available {
            let key = (&rank.host, &available.group);
            let (count, buffers, least) = shared.entry(key).or_insert((0, 0, available));
            *count += u64::from(rank.buffers > 0);
            *buffers += rank.buffers;
            if available.bytes < least.bytes {
                *least = available;
            }
        }
    }
    let mut tightest: BTreeMap<_, (u64, u128, &AvailableMemory)> = BTreeMap::new();
    for ((host, _), sum) in shared {
        let (count, buffers, least) = sum;
        if count > 1 && buffers > least.bytes.into() {
            let of_host = tightest.entry(host).or_insert(sum);
            if least.bytes < of_host.2.bytes {
                *of_host = sum;
            }
        }
    }
    let sentence = tightest.iter().map(|(host, (count, buffers, least))| {
        format!(
            "the workers' buffers of {count} ranks on {host} take {} and {least}",
            Bytes(*buffers)
        )
    });
    sentence.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const NEEDS: Needs = Needs {
        lanes: 4,
        buffers: 40 << 20,
        histograms: 10 << 20,
        open_files: 30,
        lane_descriptors: 8,
    };

    #[test]
    fn buffers_beyond_the_memory_of_a_group_name_the_group() {
        let available = |bytes, group: Option<&str>| {
            Some(AvailableMemory {
                bytes,
                group: group.map(PathBuf::from),
            })
        };
        assert_eq!(NEEDS.memory(available(40 << 20, None)), None);
        assert_eq!(NEEDS.memory(None), None);
        let why = NEEDS.memory(available(30 << 20, Some("/sys/fs/cgroup/x")));
        let expected = "the workers' buffers take 40 MiB (memsize times workers, or the files that are read whole; \
                        with --verify three times that) and the control group `/sys/fs/cgroup/x` leaves 30 MiB to \
                        this process";
        assert_eq!(why.as_deref(), Some(expected));
        let why = NEEDS.memory(available(30 << 20, None)).unwrap();
        assert!(
            why.ends_with("and the machine has 30 MiB available"),
            "{why}"
        );
    }

    #[test]
    fn ranks_of_a_machine_share_its_memory() {
        let limit = |group: Option<&str>, bytes| AvailableMemory {
            bytes,
            group: group.map(PathBuf::from),
        };
        let rank = |host: &str, group: Option<&str>, buffers: u64, bytes| RankMemory {
            host: host.into(),
            buffers: buffers.into(),
            available: vec![limit(group, bytes)],
        };
        let mib = 1 << 20;
        let fits = [
            rank("a", None, 30 * mib, 61 * mib),
            rank("a", None, 30 * mib, 60 * mib),
        ];
        assert_eq!(memory_of_hosts(&fits), [""; 0]);
        let ranks = [
            rank("a", Some("/g"), 30 * mib, 70 * mib),
            rank("b", Some("/g"), 30 * mib, 70 * mib),
            // A rank without workers needs no memory for buffers.
            rank("a", Some("/g"), 0, 59 * mib),
            rank("a", Some("/other"), 30 * mib, 40 * mib),
            rank("a", Some("/g"), 30 * mib, 70 * mib),
        ];
        let expected = "the workers' buffers of 2 ranks on a take 60 MiB and the control group `/g` leaves 59 MiB to \
                        this process";
        assert_eq!(memory_of_hosts(&ranks), [expected]);
        let unknown = RankMemory {
            available: Vec::new(),
            ..ranks[0].clone()
        };
        assert_eq!(memory_of_hosts(&[unknown.clone(), unknown]), [""; 0]);
        // One rank has less left in the inner group, the other in the outer group: both limits are shared.
        let nested = |inner, outer| RankMemory {
            available: vec![limit(Some("/g/inner"), inner), limit(Some("/g"), outer)],
            ..ranks[0].clone()
        };
        let both = [nested(58 * mib, 59 * mib), nested(59 * mib, 57 * mib)];
        let expected = expected.replace("59", "57");
        assert_eq!(memory_of_hosts(&both), [expected]);
    }

    #[test]
    fn all_descriptors_that_are_needed_are_named() {
        assert_eq!(NEEDS.descriptors(102), None);
        let expected = "the run needs 102 descriptors (30 for files that the workers hold open, 8 of the target's \
                        connections and rings, 64 of the program itself) and the limit is 101: raise it with \
                        `ulimit -n 102`";
        assert_eq!(NEEDS.descriptors(101).as_deref(), Some(expected));
        let none = Needs {
            open_files: 0,
            lane_descriptors: 0,
            ..NEEDS
        };
        assert_eq!(none.descriptors(10), None);
    }

    #[test]
    fn the_address_space_that_is_needed_is_named() {
        let space = |limit| AddressSpace {
            name: "address space",
            option: "-v",
            used: 100 << 20,
            limit,
        };
        let thread = THREAD_STACK_BYTES as u64 + THREAD_BYTES;
        let many = Needs {
            lanes: 100,
            ..NEEDS
        };
        let whole = |bytes: u64| bytes.div_ceil(ADDRESS_SPACE_STEP) * ADDRESS_SPACE_STEP;
        let needed = whole((100 << 20) + (50 << 20) + 100 * thread + PROGRAM_BYTES);
        assert_eq!(many.address_space(&space(needed)), None);
        let why = many.address_space(&space(needed - 1)).unwrap();
        let command = format!("`ulimit -v {}`", needed / 1024);
        assert!(
            why.ends_with(&command) && why.contains("100 threads"),
            "{why}"
        );
        assert!(why.contains("40 MiB for the workers' buffers"), "{why}");
        // A pool populates the files, even for few workers.
        let pool = BLOCKING_POOL_THREADS as u64 * (thread + POOL_SESSION_BYTES);
        let few = Needs {
            buffers: 0,
            lanes: 1,
            histograms: 0,
            ..NEEDS
        };
        let needed = whole((100 << 20) + pool + PROGRAM_BYTES);
        assert_eq!(few.address_space(&space(needed)), None);
        assert!(few.address_space(&space(needed - 1)).is_some());
    }
}
