//! Reduction of a failing scenario to the smallest scenario that still fails.

use crate::files::FilesSpec;
use crate::pattern::PatternSpec;
use crate::scenario::Scenario;
use crate::workload::{Load, ThreadsSpec};
use plimsoll_runtime::SimulatedDisk;
use plimsoll_target::simulated::FileFaults;
use std::time::Duration;

/// Simplifies a scenario step by step, as long as `fails` holds for the result.
pub fn shrink(scenario: &Scenario, fails: impl FnMut(&Scenario) -> bool) -> Scenario {
    smallest(scenario, simpler, fails)
}

/// Smallest failing value that is found by repeatedly replacing a failing value by the first of its `simpler` values
/// that also fails, until no simpler value fails.
pub(crate) fn smallest<T: Clone>(
    from: &T,
    simpler: impl Fn(&T) -> Vec<T>,
    mut fails: impl FnMut(&T) -> bool,
) -> T {
    let mut smallest = from.clone();
    while let Some(smaller) = simpler(&smallest).into_iter().find(|one| fails(one)) {
        smallest = smaller;
    }
    smallest
}

/// Scenarios that are simpler in one respect, the simplest first.
fn simpler(from: &Scenario) -> Vec<Scenario> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Scenario)| {
        let mut scenario = from.clone();
        change(&mut scenario);
        // A rank without workers is refused, which would break the same rules.
        let has_work = scenario.workload.workers() >= u64::from(scenario.ranks);
        if scenario != *from && has_work && scenario.can_end() {
            all.push(scenario);
        }
    };
    for number in 0..from.disturbances.len() {
        add(&|s| {
            s.disturbances.remove(number);
        });
    }
    if from.disturbances.is_empty() {
        add(&|s| {
            s.ranks = 1;
            if let Load::Pattern(pattern) = &mut s.workload.load {
                pattern.ranks = 1;
            }
        });
    }
    add(&|s| s.stall_ms = None);
    if let Some(files) = &from.files {
        add(&|s| {
            s.files = None;
            if let Load::Pattern(pattern) = &mut s.workload.load {
                pattern.verifies = false;
            }
        });
        let faults = simpler_faults(&files.faults).into_iter();
        let simpler = faults.map(|faults| FilesSpec {
            faults,
            ..files.clone()
        });
        let fewer = (0..files.again_us.len()).map(|number| {
            let mut fewer = files.clone();
            fewer.again_us.remove(number);
            fewer
        });
        let unverified = FilesSpec {
            verifies: false,
            ..files.clone()
        };
        let without_dir = FilesSpec {
            has_dir: false,
            ..files.clone()
        };
        for files in simpler.chain(fewer).chain([unverified, without_dir]) {
            add(&|s| s.files = Some(files.clone()));
        }
    }
    match &from.workload.load {
        Load::Threads(threads) => {
            for threads in simpler_threads(threads) {
                add(&|s| s.workload.load = Load::Threads(threads.clone()));
            }
        }
        Load::Pattern(pattern) => {
            for pattern in simpler_patterns(pattern) {
                add(&|s| s.workload.load = Load::Pattern(pattern));
            }
        }
        Load::Mix(mix) => {
            let (mut one, mut constant) = (*mix, *mix);
            (one.load, one.processes) = (1, 1);
            constant.poisson = false;
            for mix in [one, constant] {
                add(&|s| s.workload.load = Load::Mix(mix));
            }
        }
    }
    add(&|s| s.results = None);
    if let Some(disk) = from.results {
        let fault = None;
        add(&|s| s.results = Some(SimulatedDisk { fault, ..disk }));
        let latency = Duration::ZERO;
        add(&|s| s.results = Some(SimulatedDisk { latency, ..disk }));
    }
    add(&|s| s.concurrent_at_us = None);
    add(&|s| s.drift_ppm = 0);
    add(&|s| s.lanes = 1);
    add(&|s| s.workload.warmup_ms = 0);
    add(&|s| s.workload.time_ms = (s.workload.time_ms / 2).max(100));
    add(&|s| s.delay_us = (1, 0));
    all
}

/// Faults with one kind of fault removed, or restricted to calls of the load.
fn simpler_faults(from: &FileFaults) -> Vec<FileFaults> {
    let changes: [fn(&mut FileFaults); 10] = [
        |f| f.errors = vec![],
        |f| f.slow = None,
        |f| f.short_reads = 0,
        |f| f.wrong_reads = 0,
        |f| f.lost_writes = 0,
        |f| f.capacity = None,
        |f| f.read_only_from_ns = None,
        |f| f.outage_ns = None,
        |f| f.silent_from_ns = None,
        |f| f.of_load_only = true,
    ];
    let without = |change: &fn(&mut FileFaults)| {
        let mut faults = from.clone();
        change(&mut faults);
        faults
    };
    changes.iter().map(without).collect()
}

/// Patterns that are simpler in one respect.
fn simpler_patterns(from: &PatternSpec) -> Vec<PatternSpec> {
    let changes: [fn(&mut PatternSpec); 7] = [
        |p| p.stonewall_ms = None,
        |p| p.verifies = false,
        |p| p.sets = 1,
        |p| p.iterations = 1,
        |p| p.objects = (p.objects / 2).max(1),
        |p| p.rounds = (p.rounds / 2).max(1),
        |p| p.offset = 0,
    ];
    let simpler = |change: &fn(&mut PatternSpec)| {
        let mut pattern = *from;
        change(&mut pattern);
        pattern
    };
    changes.iter().map(simpler).collect()
}

/// Threads that are simpler in one respect, the simplest first.
fn simpler_threads(from: &ThreadsSpec) -> Vec<ThreadsSpec> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut ThreadsSpec)| {
        let mut threads = from.clone();
        change(&mut threads);
        all.push(threads);
    };
    add(&|t| t.ops = None);
    add(&|t| t.threads[1] = (0, vec![]));
    add(&|t| t.threads[0].0 = (t.threads[0].0 / 2).max(1));
    let steps = from.threads[0].1.len();
    for number in (0..steps).filter(|_| steps > 1) {
        add(&|t| {
            t.threads[0].1.remove(number);
        });
    }
    all
}
