//! Results of runs that end, are killed, or lose their disk.

use crate::{calm, kill_in_the_middle};
use plimsoll_results::Verdict;
use plimsoll_runtime::{DiskFault, SimulatedDisk};
use plimsoll_vopr::{
    Disturbance, DisturbanceKind, Execution, Found, ReadRun, ResultsEnd, Scenario, check, run,
};
use std::time::Duration;

/// A calm scenario that writes results to `disk`.
fn on_disk(disk: SimulatedDisk) -> Scenario {
    Scenario {
        results: Some(disk),
        ..calm()
    }
}

/// A calm scenario of one rank that writes results to `disk`: with several ranks, intervals are written only when all
/// ranks have ended.
fn of_one_rank(disk: SimulatedDisk) -> Scenario {
    Scenario {
        ranks: 1,
        ..on_disk(disk)
    }
}

fn with_fault(fault: DiskFault) -> Scenario {
    of_one_rank(SimulatedDisk {
        fault: Some(fault),
        ..SimulatedDisk::default()
    })
}

/// The scenario of [`of_one_rank`], whose rank is killed in the middle of the run.
fn killed(disk: SimulatedDisk) -> Scenario {
    let mut scenario = of_one_rank(disk);
    kill_in_the_middle(&mut scenario);
    scenario
}

fn read(end: &mut ResultsEnd) -> &mut ReadRun {
    match &mut end.found {
        Found::Published(run) | Found::Hidden(Some(run)) => run,
        found => panic!("{found:?}"),
    }
}

fn end(execution: &Execution) -> &ResultsEnd {
    execution.results.as_ref().unwrap()
}

/// The rule that the execution breaks after `change` has changed its results.
fn broken(scenario: &Scenario, from: &Execution, change: impl Fn(&mut ResultsEnd)) -> &'static str {
    let mut wrong = from.clone();
    change(wrong.results.as_mut().unwrap());
    check(scenario, &wrong).unwrap_err().rule
}

#[test]
fn results_are_whole_whatever_happens() {
    let fast = SimulatedDisk::default();
    for (is_killed, scenario) in [(false, on_disk(fast)), (true, killed(fast))] {
        let execution = run(&scenario);
        check(&scenario, &execution).unwrap();
        let mut end = end(&execution).clone();
        assert_eq!(end.log.is_published, !is_killed);
        assert_eq!(matches!(end.found, Found::Hidden(_)), is_killed);
        let (found, rows) = read(&mut end).as_ref().unwrap();
        let intervals = rows.iter().map(|row| row.interval);
        let last = intervals.max().unwrap();
        let expected = if is_killed { 2..7 } else { 9..10 };
        assert!(expected.contains(&last), "{last}");
        assert!(found.summary.ops > 500, "{:?}", found.summary);

        let broken = |change: &dyn Fn(&mut ResultsEnd)| broken(&scenario, &execution, change);
        let lacks_interval = match is_killed {
            true => "results of a killed run have the first of its intervals",
            false => "results have every interval",
        };
        assert_eq!(
            broken(&|end| drop(end.log.passed.remove(1))),
            lacks_interval
        );
        assert_eq!(
            broken(&|end| *read(end) = Err("damaged".into())),
            "results can be read"
        );
        let changed = broken(&|end| read(end).as_mut().unwrap().0.operations[0].ops += 1);
        let of_other = match is_killed {
            true => "what a killed run has measured is in its results",
            false => "results are those that were written",
        };
        assert_eq!(changed, of_other);
        assert_eq!(
            broken(&|end| end.found = Found::Nothing),
            "results are there unless their disk fails"
        );
        assert_eq!(
            broken(&|end| end.found = Found::Several(vec![])),
            "a run has one directory"
        );
    }
}

/// Writing an interval takes two calls of 40 ms; measuring an interval takes 100 ms.
#[test]
fn a_killed_run_keeps_what_its_slow_disk_has() {
    let mut scenario = killed(SimulatedDisk {
        latency: Duration::from_millis(40),
        fault: None,
    });
    // The draft takes 22 calls before the run begins.
    scenario.disturbances[0].at_us += 22 * 40_000;
    let execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    let lost = broken(&scenario, &execution, |end| {
        let (_, rows) = read(end).as_mut().unwrap();
        assert!(rows.iter().any(|row| row.interval == 1), "{rows:?}");
        rows.retain(|row| row.interval == 0);
    });
    assert_eq!(lost, "a killed run keeps the intervals that were written");
}

/// Each call to the disk takes 100 ms, and publishing takes about ten calls. A kill at a few of the calls leaves
/// complete results under a hidden name.
#[test]
fn a_run_that_is_killed_while_it_publishes_its_results_has_them() {
    let mut whole = 0;
    for call in 0..20 {
        let mut scenario = of_one_rank(SimulatedDisk {
            latency: Duration::from_millis(100),
            fault: None,
        });
        let end = run(&scenario).ranks[0].as_ref().unwrap().at;
        let kind = DisturbanceKind::Kill { rank: 0 };
        let at_us = end / 1000 - 50_000 - 100_000 * call;
        scenario.disturbances = vec![Disturbance { at_us, kind }];
        let execution = run(&scenario);
        check(&scenario, &execution).unwrap();
        if let Found::Hidden(Some(Ok((found, _)))) = &self::end(&execution).found {
            whole += u32::from(found.validity.verdict == Verdict::Valid);
        }
    }
    assert!((1..5).contains(&whole), "{whole}");
}

#[test]
fn a_disk_that_takes_a_second_does_not_hold_up_a_run() {
    let scenario = on_disk(SimulatedDisk {
        latency: Duration::from_secs(1),
        fault: None,
    });
    let (slow, fast) = (run(&scenario), run(&on_disk(SimulatedDisk::default())));
    check(&scenario, &slow).unwrap();
    let ops = |execution: &Execution| -> Vec<u64> {
        let intervals = &execution.ranks[0].as_ref().unwrap().intervals;
        let of_interval = |i: &plimsoll_measure::Interval| i.rows.iter().map(|r| r.ops).sum();
        intervals.iter().map(of_interval).collect()
    };
    let (slow_ops, fast_ops) = (ops(&slow), ops(&fast));
    assert_eq!(slow_ops.len(), fast_ops.len());
    for (slow, fast) in slow_ops.iter().zip(&fast_ops) {
        assert!(
            slow.abs_diff(*fast) <= fast / 10,
            "{slow_ops:?} {fast_ops:?}"
        );
    }
    // The run writes 10 intervals with two calls each, and makes calls before and after the intervals.
    let took = slow.ranks[0].as_ref().unwrap().at - fast.ranks[0].as_ref().unwrap().at;
    assert!((40..70).contains(&(took / 1_000_000_000)), "{took} ns");
}

#[test]
fn a_full_disk_ends_a_run_and_leaves_nothing() {
    // The disk fails at the first call, at a call of the draft, or at a call of an interval.
    for call in [0, 15, 30] {
        for fault in [DiskFault::FullFrom, DiskFault::BrokenFrom] {
            let scenario = with_fault(fault(call));
            let execution = run(&scenario);
            check(&scenario, &execution).unwrap();
            let end = end(&execution);
            assert!(matches!(end.found, Found::Nothing), "{:?}", end.found);
            let (at, error) = end.log.error.as_ref().unwrap();
            let has_begun = call == 30;
            assert_eq!(end.log.has_draft, has_begun, "{call}");
            let outcome = &execution.ranks[0].as_ref().unwrap().outcome;
            match outcome {
                Ok(outcome) => assert!(outcome.interrupted && has_begun, "{call}"),
                Err(e) => {
                    let text = e.to_string();
                    assert!(text.contains(error) && !has_begun, "{call}: {text}");
                }
            }
            assert!(execution.disk_errors > 0 && *at < 2_000_000_000);
            assert_eq!(
                broken(&scenario, &execution, |end| end.log.error = None),
                "results are lost only to their disk, and no error of it is overlooked"
            );
            assert_eq!(
                broken(&scenario, &execution, |end| end.found = Found::Hidden(None)),
                "what cannot be published is removed"
            );
        }
    }
}

/// Whichever call fails, the results are complete or missing.
#[test]
fn a_disk_may_fail_at_any_call() {
    let (mut published, mut lost) = (0, 0);
    for call in 0.. {
        let scenario = with_fault(DiskFault::BrokenAt(call));
        let execution = run(&scenario);
        check(&scenario, &execution).unwrap();
        if execution.disk_errors == 0 {
            assert!(matches!(end(&execution).found, Found::Published(_)));
            break;
        }
        match &end(&execution).found {
            Found::Published(_) => published += 1,
            _ => lost += 1,
        }
    }
    // After the failure of one call, it is unknown whether the disk has the final name, so the results may be
    // published.
    assert_eq!(published, 1);
    assert!(lost > 40, "{lost}");
}
