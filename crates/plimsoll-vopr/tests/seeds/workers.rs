//! Rules for the calls of each worker.

use crate::calm;
use plimsoll_target::simulated::{Call, CallKind};
use plimsoll_vopr::{Execution, FilesSpec, Load, Scenario, Step, ThreadsSpec, check, run};
use rustix::io::Errno;

/// Six workers on three files of a target with a latency of 1 ms: three workers open the files, and three request
/// attributes.
fn crowded() -> Scenario {
    let mut scenario = Scenario {
        ranks: 1,
        files: Some(FilesSpec::calm(1000)),
        ..calm()
    };
    scenario.workload.load = Load::Threads(ThreadsSpec {
        files: 3,
        threads: [
            (3, vec![Step::ReadWhole, Step::Append]),
            (3, vec![Step::Stat]),
        ],
        ops: None,
    });
    scenario
}

/// Checks the execution after `change` has changed the calls of the load; the error is the broken rule.
fn rule_of_calls(
    scenario: &Scenario,
    execution: &Execution,
    change: impl FnOnce(&mut Vec<Call>),
) -> Result<(), &'static str> {
    let mut wrong = execution.clone();
    let calls = &mut wrong.files.as_mut().unwrap().calls;
    calls.retain(|call| call.of_load);
    change(calls);
    check(scenario, &wrong).map_err(|violation| violation.rule)
}

/// Index of the first call of the kind in the second half of the calls.
fn in_the_middle(calls: &[Call], kind: CallKind) -> usize {
    let half = calls.len() / 2;
    let at = calls[half..].iter().position(|call| call.kind == kind);
    half + at.unwrap()
}

#[test]
fn workers_follow_their_program() {
    let scenario = crowded();
    let execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    assert_eq!(rule_of_calls(&scenario, &execution, |_| ()), Ok(()));
    for kind in [CallKind::Open, CallKind::Sync, CallKind::Close] {
        let lost = rule_of_calls(&scenario, &execution, |calls| {
            calls.remove(in_the_middle(calls, kind));
        });
        assert_eq!(lost, Err("workers follow their program"), "{kind:?}");
    }
    let exchanged = rule_of_calls(&scenario, &execution, |calls| {
        let flush = in_the_middle(calls, CallKind::Sync);
        let session = calls[flush].session;
        let after = calls[flush + 1..].iter().position(|c| c.session == session);
        calls.swap(flush, flush + 1 + after.unwrap());
    });
    assert_eq!(exchanged, Err("workers follow their program"));
}

/// A failed open omits the calls on its file, and no other calls.
#[test]
fn a_worker_whose_open_fails_goes_on_after_the_close() {
    let mut scenario = crowded();
    let files = scenario.files.as_mut().unwrap();
    (files.counts_errors, files.faults.errors) = (true, vec![(Errno::IO, 1)]);
    let execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    let with_failed_open = |keeps_close: bool| {
        rule_of_calls(&scenario, &execution, |calls| {
            let open = in_the_middle(calls, CallKind::Open);
            calls[open].error = Some(Errno::IO);
            let session = calls[open].session;
            loop {
                let next = calls[open + 1..].iter().position(|c| c.session == session);
                let next = open + 1 + next.unwrap();
                let is_close = calls[next].kind == CallKind::Close;
                if !is_close || !keeps_close {
                    calls.remove(next);
                }
                if is_close {
                    break;
                }
            }
        })
    };
    assert_eq!(with_failed_open(false), Ok(()));
    assert_eq!(with_failed_open(true), Err("workers follow their program"));
}

#[test]
fn no_worker_waits_for_ever() {
    let scenario = crowded();
    let execution = run(&scenario);
    let session = execution.files.as_ref().unwrap().calls.iter();
    let session = session.rev().find(|call| call.of_load).unwrap().session;
    let without = |from_ns: u64| {
        rule_of_calls(&scenario, &execution, |calls| {
            calls.retain(|call| call.session != session || call.at_ns < from_ns);
        })
    };
    let end = execution.ranks[0].as_ref().unwrap().at;
    assert_eq!(without(end), Ok(()));
    assert_eq!(without(end - 500_000_000), Err("every worker goes on"));
    assert_eq!(without(0), Err("every worker goes on"));
}
