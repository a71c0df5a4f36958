//! The smallest scenario that still fails.

use crate::scenario::Scenario;
use crate::workload::{Load, ThreadsSpec};

/// Simplifies a scenario step by step, as long as `fails` holds for the result.
pub fn shrink(scenario: &Scenario, mut fails: impl FnMut(&Scenario) -> bool) -> Scenario {
    let mut smallest = scenario.clone();
    loop {
        let Some(smaller) = simpler(&smallest).into_iter().find(|s| fails(s)) else {
            return smallest;
        };
        smallest = smaller;
    }
}

/// Scenarios that are simpler in one respect, the simplest first.
fn simpler(from: &Scenario) -> Vec<Scenario> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Scenario)| {
        let mut scenario = from.clone();
        change(&mut scenario);
        // A rank without workers is refused, which breaks the same rules.
        let has_work = scenario.workload.workers() >= u64::from(scenario.ranks);
        if scenario != *from && has_work {
            all.push(scenario);
        }
    };
    for number in 0..from.disturbances.len() {
        add(&|s| {
            s.disturbances.remove(number);
        });
    }
    if from.disturbances.is_empty() {
        add(&|s| s.ranks = 1);
    }
    add(&|s| s.stall_ms = None);
    match &from.workload.load {
        Load::Threads(threads) => {
            for threads in simpler_threads(threads) {
                add(&|s| s.workload.load = Load::Threads(threads.clone()));
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
    add(&|s| s.lanes = 1);
    add(&|s| s.workload.warmup_ms = 0);
    add(&|s| s.workload.time_ms = (s.workload.time_ms / 2).max(100));
    add(&|s| s.delay_us = (1, 0));
    all
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
