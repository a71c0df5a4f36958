//! Load curves that are resumed.

use crate::mix;
use plimsoll_results::SeriesState;
use plimsoll_runtime::{DiskFault, SimulatedDisk};
use plimsoll_vopr::{
    Attempt, AttemptScenario, CurveExecution, CurveScenario, Disturbance, DisturbanceKind,
    FilesSpec, Load, MixSpec, check_curve, run_curve,
};

/// A curve of three loads on two ranks. Rank 0 is killed while the first attempt measures the second load, and rank 1
/// while the second attempt measures the second load.
fn killed_curve() -> CurveScenario {
    let mut scenario = mix(false);
    scenario.files = Some(FilesSpec::calm(100));
    scenario.workload.load = Load::Mix(MixSpec {
        load: 3,
        processes: 2,
        rate: 50,
        poisson: false,
        turns_over: true,
    });
    scenario.ranks = 2;
    let kill = |rank, at_us| {
        let kind = DisturbanceKind::Kill { rank };
        AttemptScenario {
            disturbances: vec![Disturbance { at_us, kind }],
            ..AttemptScenario::default()
        }
    };
    CurveScenario {
        scenario,
        loads: vec![1, 2, 3],
        temporary: false,
        attempts: vec![kill(0, 1_700_000), kill(1, 500_000)],
    }
}

/// Rank 1 of the chain of ranks 0, 1 and 2 is killed, so rank 0 does not know whether rank 2 still works.
#[test]
fn a_resumed_curve_forgets_the_files_that_an_earlier_attempt_left() {
    let mut curve = killed_curve();
    // Each rank needs a worker.
    curve.loads.remove(0);
    (curve.scenario.ranks, curve.scenario.fan_out) = (3, 1);
    curve.temporary = true;
    curve.attempts.remove(0);
    curve.attempts[0].disturbances[0].at_us = 1_700_000;
    let execution = run_curve(&curve);
    check_curve(&curve, &execution).unwrap();
    let [lost, last] = &execution.attempts[..] else {
        panic!("{:?}", execution.attempts);
    };
    assert!(lost.end.as_ref().unwrap().are_busy);
    assert_ne!(lost.series.unremoved, [""; 0]);
    assert_eq!(last.series.state, SeriesState::Complete);
    assert_eq!(last.series.unremoved, [""; 0]);
}

/// The first attempt loses rank 1, and the disk of the second attempt fails at once.
#[test]
fn a_resumed_curve_warns_of_its_own_reasons_only() {
    let mut curve = killed_curve();
    curve.attempts.remove(0);
    curve.attempts.push(AttemptScenario {
        disturbances: vec![],
        disk: SimulatedDisk {
            fault: Some(DiskFault::BrokenFrom(1)),
            ..SimulatedDisk::default()
        },
    });
    let execution = run_curve(&curve);
    check_curve(&curve, &execution).unwrap();
    let lost = execution.attempts[0].series.stop_reason.as_ref().unwrap();
    let end = execution.attempts[1].end.as_ref().unwrap();
    let loss = end.loss.as_ref().unwrap();
    assert!(!loss.contains(&lost.text), "{loss}");
}

#[test]
fn a_curve_goes_on_after_kills_with_the_points_and_the_files_that_it_has() {
    let curve = killed_curve();
    let execution = run_curve(&curve);
    check_curve(&curve, &execution).unwrap();
    let [killed, lost, last] = &execution.attempts[..] else {
        panic!("{:?}", execution.attempts);
    };
    let loads =
        |attempt: &Attempt| -> Vec<u64> { attempt.measured.iter().map(|m| m.load).collect() };
    assert_eq!(loads(killed), [1]);
    assert!(killed.end.is_none() && killed.tree.len() > 20);
    // The run that lost a rank has failed, and its load is measured again.
    assert_eq!(loads(lost), [2]);
    assert!(lost.measured[0].outcome.failure.is_some());
    assert_eq!(lost.series.runs.len(), 1);
    assert_eq!(loads(last), [2, 3]);
    let ops: Vec<u64> = execution
        .runs
        .iter()
        .map(|(_, run)| run.as_ref().unwrap().summary.ops)
        .collect();
    // Each of the two processes of a business metric does 50 operations per second, in a window of one second.
    for (load, ops) in (1..).zip(ops) {
        assert!(ops.abs_diff(100 * load) <= 4 * load, "{ops} at load {load}");
    }
}

#[test]
fn what_a_curve_must_not_do_breaks_rules() {
    let curve = killed_curve();
    let execution = run_curve(&curve);
    let breaks = |change: &dyn Fn(&mut CurveExecution)| {
        let mut broken = execution.clone();
        change(&mut broken);
        check_curve(&curve, &broken).unwrap_err().rule
    };
    let again = execution.attempts[0].measured[0].clone();
    assert_eq!(
        breaks(&|e| e.attempts[2].measured.insert(0, again.clone())),
        "no load is measured again"
    );
    assert_eq!(
        breaks(&|e| e.attempts[1].series.runs.clear()),
        "a curve that is resumed keeps its points"
    );
    assert_eq!(
        breaks(&|e| drop(e.attempts[2].series.runs.remove(1))),
        "points are measured in the order of the loads"
    );
    assert_eq!(
        breaks(&|e| drop(e.attempts[2].series.runs.pop())),
        "points are those that were measured to their end"
    );
    assert_eq!(
        breaks(&|e| e.attempts[1].series.state = SeriesState::Interrupted),
        "a curve that ends says how"
    );
    assert_eq!(
        breaks(&|e| {
            let outcome = &mut e.attempts[2].measured[0].outcome;
            outcome.windows[0].totals.rows[0].ops += 1;
        }),
        "intervals add up to the window"
    );
    assert_eq!(
        breaks(&|e| e.runs[1].1.as_mut().unwrap().operations[0].ops += 1),
        "results are those that were measured"
    );
    let file = ("/simulated/c-data/".to_owned(), vec![]);
    assert_eq!(
        breaks(&|e| e.attempts[2].tree.extend([file.clone()])),
        "a curve removes its files in the end"
    );
    // The tree after the last attempt has only foreign files.
    assert_eq!(
        breaks(&|e| e.attempts[1].tree = e.tree.clone()),
        "the files of a curve stay while they are needed"
    );
    assert_eq!(
        breaks(&|e| e.tree.extend([file.clone()])),
        "the files of any curve can be removed"
    );
    assert_eq!(breaks(&|e| e.tree.clear()), "foreign files stay");
    assert_eq!(
        breaks(&|e| e.resume_error = Some("damaged".into())),
        "any curve can be resumed"
    );
    assert_eq!(
        breaks(&|e| e.runs[1] = e.runs[0].clone()),
        "a point is that of its run"
    );
    let mut calm = curve.clone();
    calm.attempts.clear();
    if let Load::Mix(mix) = &mut calm.scenario.workload.load {
        mix.turns_over = false;
    }
    let mut made_again = run_curve(&calm);
    check_curve(&calm, &made_again).unwrap();
    // Each of the two processes of three business metrics has 20 files.
    assert_eq!(made_again.created, 120);
    made_again.created += 1;
    let rule = check_curve(&calm, &made_again).unwrap_err().rule;
    assert_eq!(rule, "a curve makes each file once");
    // The smallest curve that takes two attempts has one disturbed attempt, two loads and one lane.
    let mut unfinished = curve.clone();
    unfinished.attempts.truncate(1);
    let smallest = unfinished.shrink(|c| run_curve(c).attempts.len() == 2);
    assert_eq!(smallest.attempts.len(), 1);
    assert_eq!((smallest.loads.len(), smallest.scenario.lanes), (2, 1));
}

/// The curve can be resumed after each of 14 disks has failed, each at another call of the first attempt.
#[test]
fn a_curve_goes_on_after_its_disk_has_failed() {
    let mut lost = 0;
    for call in (10..80).step_by(5) {
        let mut curve = killed_curve();
        let fault = Some(DiskFault::BrokenFrom(call));
        curve.attempts = vec![AttemptScenario {
            disturbances: vec![],
            disk: SimulatedDisk {
                fault,
                ..SimulatedDisk::default()
            },
        }];
        let execution = run_curve(&curve);
        check_curve(&curve, &execution).unwrap();
        let [failed, last] = &execution.attempts[..] else {
            panic!("{:?}", execution.attempts);
        };
        let end = failed.end.as_ref().unwrap();
        assert!(failed.disk_errors > 0 && (end.loss.is_some() || end.refusal.is_some()));
        assert!(failed.unfinished.is_empty());
        assert!(
            last.end
                .as_ref()
                .is_some_and(|end| end.loss.is_none() && end.refusal.is_none())
        );
        lost += 3 - failed.series.runs.len();

        let breaks = |change: &dyn Fn(&mut CurveExecution)| {
            let mut broken = execution.clone();
            change(&mut broken);
            check_curve(&curve, &broken).unwrap_err().rule
        };
        let rule = "results are lost only to their disk, and no error of it is overlooked";
        let overlooked = breaks(&|e| {
            let end = e.attempts[0].end.as_mut().unwrap();
            (end.loss, end.refusal) = (None, None);
            e.attempts[0].warnings.clear();
        });
        assert_eq!(overlooked, rule);
        if end.loss.is_some() {
            assert_eq!(breaks(&|e| e.attempts[0].disk_errors = 0), rule);
        }
        assert_eq!(
            breaks(&|e| e.attempts[0].unfinished.push(".plimsoll-000000".into())),
            "what cannot be published is removed"
        );
    }
    assert!(lost > 14, "{lost}");
}
