//! Two runs in one directory.

use crate::calm;
use plimsoll_engine::EngineError;
use plimsoll_vopr::{FilesSpec, Scenario, check, run};

/// The other run begins at some instant from the begin of the load until the ranks have ended.
#[test]
fn of_two_runs_in_a_directory_one_is_refused() {
    let scenario = Scenario {
        files: Some(FilesSpec::calm(100)),
        ..calm()
    };
    let alone = run(&scenario).ranks[0].as_ref().unwrap().at / 1000;
    let (mut refused, mut both) = (0, 0);
    for at_us in (1..=12).map(|n| alone * n / 10) {
        let scenario = Scenario {
            concurrent_at_us: Some(at_us),
            ..scenario.clone()
        };
        let execution = run(&scenario);
        check(&scenario, &execution).unwrap();
        assert!(execution.ranks[0].as_ref().unwrap().outcome.is_ok());
        match &execution.concurrent.as_ref().unwrap().outcome {
            Ok(_) => both += 1,
            Err(EngineError::Refused(_)) => refused += 1,
            Err(e) => panic!("{e:?}"),
        }
    }
    // The last ones begin after the ranks have released it.
    assert!(refused > 7 && both > 1, "{refused} {both}");
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
    let ranks = execution.ranks[0].as_ref().unwrap().outcome.clone();
    let mut refused = execution.clone();
    execution.concurrent.as_mut().unwrap().outcome = ranks;
    let rule = check(&scenario, &execution).unwrap_err().rule;
    assert_eq!(rule, "a directory has one run at a time");
    let other = refused.concurrent.as_ref().unwrap().outcome.clone();
    refused.ranks[0].as_mut().unwrap().outcome = other;
    let rule = check(&scenario, &refused).unwrap_err().rule;
    assert_eq!(rule, "of two runs in a directory one is refused");
}
