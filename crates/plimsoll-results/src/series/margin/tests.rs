use super::*;
use crate::{ComponentFigures, MeasuredRun, MixFigures, ScheduledFigures, Target};
use plimsoll_plan::{BusinessMetric, Criteria, Plan};
use std::time::{Duration, SystemTime};

fn carried(scheduled: u64, completed: u64, slowest: Option<f64>) -> ScheduledFigures {
    ScheduledFigures {
        offered_ops_per_s: slowest.map(|_| 10.0),
        achieved_ops_per_s: 9.0,
        scheduled,
        completed,
        dropped: 0,
        slowest_process_percent: slowest,
        response: None,
        start_delay: None,
    }
}

/// A run with a mean response time of 4 ms. Each component has processes, scheduled operations, and the percentage of
/// its slowest process.
fn run(components: &[(u64, u64, Option<f64>)], completed: u64) -> Run {
    let target = Target {
        url: "posix".into(),
        description: String::new(),
        system: None,
    };
    let mut plan = Plan::empty("w");
    plan.metric = Some(BusinessMetric {
        name: "streams".into(),
        load: 1,
        scale: 1.0,
        data: 0,
        rate: Some(10.0),
        criteria: Criteria::default(),
    });
    let mut run = Run::assemble(MeasuredRun::new(plan, target, SystemTime::UNIX_EPOCH));
    let component = |(processes, scheduled, slowest): &(u64, u64, Option<f64>)| ComponentFigures {
        name: "c".into(),
        processes: *processes,
        carried: carried(*scheduled, 0, *slowest),
    };
    let scheduled = components.iter().map(|c| c.1).sum();
    run.mix = Some(MixFigures {
        load: 1,
        metric: "streams".into(),
        scale: 1.0,
        total: carried(scheduled, completed, components[0].2),
        components: components.iter().map(component).collect(),
    });
    run.summary.mean_ms = 4.0;
    run
}

/// The margin of a run with minimum percentages of all processes and of each process, and a maximum mean in
/// milliseconds.
fn with_criteria(
    mut run: Run,
    total_percent: f64,
    process_percent: f64,
    latency_ms: Option<u64>,
) -> Option<f64> {
    run.plan.metric.as_mut()?.criteria = Criteria {
        process_percent,
        total_percent,
        latency: latency_ms.map(Duration::from_millis),
    };
    margin(&run)
}

#[test]
fn the_margin_is_that_of_the_nearest_criterion() {
    let near = |total_percent, process_percent, latency_ms, expected: f64| {
        let run = run(&[(4, 200, Some(80.0)), (6, 50, Some(70.0))], 230);
        let actual = with_criteria(run, total_percent, process_percent, latency_ms).unwrap();
        assert!((actual - expected).abs() < 1e-12, "{actual} {expected}");
    };
    // 230 completed operations and 10 in flight, of 250 scheduled operations: 96 %.
    near(80.0, 1.0, None, 0.2);
    near(120.0, 1.0, None, -0.2);
    near(96.0, 41.0, None, 0.0);
    // Slowest processes with the operations in flight: 80 % + 4 of 200 are 82 %, and 70 % + 6 of 50 are 82 %.
    near(1.0, 41.0, None, 1.0);
    near(1.0, 82.0, Some(5), 0.0);
    // Mean of 4 ms against limits of 5 ms and 2 ms.
    near(1.0, 1.0, Some(5), 0.2);
    near(1.0, 1.0, Some(2), -1.0);
    // A criterion of zero is left out of the margin.
    near(0.0, 0.0, Some(5), 0.2);
}

#[test]
fn what_cannot_be_compared_has_no_margin() {
    let paced = || run(&[(4, 200, Some(80.0))], 190);
    let mut failed = paced();
    failed.summary.errors = 1;
    assert_eq!(margin(&failed), None);
    let mut without_mix = paced();
    without_mix.mix = None;
    assert_eq!(margin(&without_mix), None);
    let mut without_metric = paced();
    without_metric.plan.metric = None;
    assert_eq!(margin(&without_metric), None);
    assert_eq!(with_criteria(paced(), 0.0, 0.0, None), None);
    // An unpaced run has only the latency criterion.
    let unpaced = || run(&[(4, 0, None)], 190);
    assert_eq!(with_criteria(unpaced(), 95.0, 75.0, None), None);
    assert_eq!(with_criteria(unpaced(), 95.0, 75.0, Some(8)), Some(0.5));
    let mut nothing = run(&[(4, 0, Some(80.0))], 0);
    nothing.mix.as_mut().unwrap().components.clear();
    assert_eq!(with_criteria(nothing, 95.0, 75.0, None), None);
}

#[test]
fn the_nearest_promise_or_criterion_is_the_margin() {
    let promise = |margin| PromiseResult {
        name: String::new(),
        condition: "p99 <= 5ms".parse().unwrap(),
        kept: true,
        value: Some(0.004),
        margin,
        text: String::new(),
    };
    let of = |margins: &[Option<f64>]| {
        let mut run = run(&[(1, 100, Some(100.0))], 100);
        run.promises = margins.iter().copied().map(promise).collect();
        // All processes together completed 101 of 100 operations, of which 95 % are required: 6.3 % more.
        margin(&run).unwrap()
    };
    assert_eq!((of(&[]) * 1000.0).round(), 63.0);
    assert_eq!(of(&[Some(0.02), Some(0.01), None]), 0.01);
    assert_eq!(of(&[Some(-0.5)]), -0.5);
    assert_eq!((of(&[Some(0.5)]) * 1000.0).round(), 63.0);
    let mut without_metric = run(&[(1, 100, None)], 100);
    without_metric.plan.metric = None;
    assert_eq!(margin(&without_metric), None);
    without_metric.promises = vec![promise(Some(0.2))];
    assert_eq!(margin(&without_metric), Some(0.2));
}
