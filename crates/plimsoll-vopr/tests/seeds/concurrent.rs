//! Two runs in one directory.

use crate::calm;
use plimsoll_engine::EngineError;
use plimsoll_vopr::{FilesSpec, Scenario, check, run};

/// The other run begins at different instants, from the start of the ranks' processes until after their end.
#[test]
fn of_two_runs_in_a_directory_one_is_refused() {
    let mut scenario = Scenario {
        files: Some(FilesSpec::calm(100)),
        ..calm()
    };
    (scenario.workload.warmup_ms, scenario.workload.time_ms) = (0, 200);
    let alone = run(&scenario).ranks[0].as_ref().unwrap().at / 1000;
    let (mut ranks_refused, mut other_refused, mut both) = (0, 0, 0);
    // Most of the other runs begin while the ranks claim the directory.
    let early = (0..40).map(|n| n * 10);
    for at_us in early.chain((1..=12).map(|n| alone * n / 10)) {
        let scenario = Scenario {
            concurrent_at_us: Some(at_us),
            ..scenario.clone()
        };
        let execution = run(&scenario);
        check(&scenario, &execution).unwrap();
        let root = &execution.ranks[0].as_ref().unwrap().outcome;
        let other = &execution.concurrent.as_ref().unwrap().outcome;
        match (root, other) {
            (Ok(_), Ok(_)) => both += 1,
            (Ok(_), Err(EngineError::Refused(_))) => other_refused += 1,
            (Err(EngineError::Refused(_)), Ok(_)) => ranks_refused += 1,
            ends => panic!("{ends:?}"),
        }
    }
    // The first of the other runs begin before the ranks have the directory, the last after the ranks have released the
    // directory.
    assert!(
        ranks_refused > 5 && other_refused > 20 && both > 1,
        "{ranks_refused} {other_refused} {both}"
    );
}

/// The preflight of a run lists the guarded directory and then the fileset's root. Between the two calls, the other run
/// claims the directory and makes files.
#[test]
fn a_run_whose_calls_are_slow_is_told_that_the_directory_is_in_use() {
    // With seed 94, the files appear between the looks at the guarded directory and at the fileset's root.
    for seed in 80..110 {
        let mut files = FilesSpec::calm(100);
        files.faults.slow = Some((50_000, 400));
        let mut scenario = Scenario {
            seed,
            files: Some(files),
            concurrent_at_us: Some(seed % 7 * 100),
            ..calm()
        };
        (scenario.workload.warmup_ms, scenario.workload.time_ms) = (0, 20);
        let execution = run(&scenario);
        check(&scenario, &execution).unwrap_or_else(|broken| panic!("{seed}: {broken:?}"));
    }
}

#[test]
fn two_runs_that_use_a_directory_at_once_break_a_rule() {
    let scenario = Scenario {
        files: Some(FilesSpec::calm(100)),
        concurrent_at_us: Some(500_000),
        ..calm()
    };
    let mut execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    let mut refused = execution.clone();
    // The middle change of a file becomes a change of the other run.
    let other = execution.concurrent.as_ref().unwrap().process;
    let calls = &mut execution.files.as_mut().unwrap().calls;
    let mut changes: Vec<_> = calls.iter_mut().filter(|call| call.changes_file).collect();
    let middle = changes.len() / 2;
    changes[middle].process = other;
    let rule = check(&scenario, &execution).unwrap_err().rule;
    assert_eq!(rule, "a directory has one run at a time");
    let other = refused.concurrent.as_ref().unwrap().outcome.clone();
    refused.ranks[0].as_mut().unwrap().outcome = other;
    let rule = check(&scenario, &refused).unwrap_err().rule;
    assert_eq!(rule, "of two runs in a directory one is refused");
}
