//! The smallest scenario that still fails.

use crate::scenario::Scenario;

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
        if scenario != *from {
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
    add(&|s| s.workload.ops = None);
    add(&|s| s.workload.threads[1] = (0, vec![]));
    add(&|s| s.lanes = 1);
    add(&|s| s.workload.warmup_ms = 0);
    add(&|s| s.workload.time_ms = (s.workload.time_ms / 2).max(100));
    add(&|s| s.workload.threads[0].0 = (s.workload.threads[0].0 / 2).max(1));
    for number in 0..from.workload.threads[0].1.len() {
        if from.workload.threads[0].1.len() > 1 {
            add(&|s| {
                s.workload.threads[0].1.remove(number);
            });
        }
    }
    add(&|s| s.delay_us = (1, 0));
    all
}
