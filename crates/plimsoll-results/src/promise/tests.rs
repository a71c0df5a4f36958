use super::*;
use crate::{MeasuredRun, Target, Verdict};
use plimsoll_measure::{InFlightAges, Latency, MeasuredWindow, OpTotals, WindowTotals};
use plimsoll_plan::{OpKind, Operation, Plan};
use std::collections::BTreeMap;
use std::time::SystemTime;

const SECOND: u64 = 1_000_000_000;

/// A run with a window of 10 s. Each operation of the Plan has its name, kind and totals.
fn run(promises: &[&str], rows: Vec<(&str, OpKind, OpTotals)>) -> Run {
    let mut plan = Plan::empty("w");
    plan.promises = promises
        .iter()
        .map(|text| Promise::from(text.parse::<Condition>().unwrap()))
        .collect();
    let target = Target {
        url: "posix".into(),
        description: String::new(),
        system: None,
    };
    let mut totals = WindowTotals {
        number: 1,
        end: 10 * SECOND,
        ..WindowTotals::default()
    };
    for (name, kind, row) in rows {
        plan.operations.push(Operation {
            name: name.into(),
            kind,
            location: None,
        });
        totals.rows.push(row);
    }
    let mut measured = MeasuredRun::new(plan, target, SystemTime::UNIX_EPOCH);
    measured.outcome.windows = vec![MeasuredWindow {
        client_share: Some(0.25),
        ..totals.into()
    }];
    Run::assemble(measured)
}

/// Totals of operations of one MiB each, whose service times are 1 ms, 2 ms and so on.
fn row(ops: u64) -> OpTotals {
    OpTotals {
        ops,
        bytes: u128::from(ops) << 20,
        service: Latency::of((1..=ops).map(|n| n * 1_000_000)),
        ..OpTotals::default()
    }
}

/// Texts of the promises with their judgement.
fn judged(run: &Run) -> Vec<(bool, &str)> {
    let judged = run.promises.iter();
    judged.map(|p| (p.kept, p.text.as_str())).collect()
}

#[test]
fn every_figure_is_compared_with_its_limit() {
    let rows = || {
        let mut failed = row(100);
        failed.errors = BTreeMap::from([("EIO".to_owned(), 100)]);
        vec![("a", OpKind::Read, row(200)), ("b", OpKind::Write, failed)]
    };
    for (promise, kept, text) in [
        // 300 operations and 300 MiB in 10 s.
        ("ops/s >= 30", true, "ops/s were 30"),
        ("ops/s > 30", false, "ops/s were 30"),
        ("MiB/s < 31", true, "MiB/s were 30"),
        ("a:ops/s < 20", false, "ops/s were 20"),
        // The mean of 1 to 200 is 100.5, of 1 to 100 it is 50.5.
        ("a:mean < 101ms", true, "mean was 100 ms"),
        ("b:service mean < 50ms", false, "service mean was 50.5 ms"),
        ("errors <= 99", false, "errors were 100"),
        ("b:errors <= 50%", true, "errors were 50 %"),
        ("errors < 25%", false, "errors were 25 %"),
        ("stalled < 1%", true, "the target stalled for 0 %"),
        ("client < 25%", false, "the client used 25 %"),
        (
            "cpu < 1ms",
            false,
            "the figure `cpu` is not known: processor time was not measured",
        ),
    ] {
        let run = run(&[promise], rows());
        assert_eq!(judged(&run), [(kept, text)], "{promise}");
        let broken = run.validity.reasons.iter();
        let broken: Vec<&str> = broken
            .filter(|r| r.code == Promise::BROKEN)
            .map(|r| r.text.as_str())
            .collect();
        match kept {
            true => assert_eq!(broken, [""; 0]),
            false => assert_eq!(
                broken,
                [format!("the promise `{promise}` is broken: {text}")]
            ),
        }
    }
}

#[test]
fn a_broken_promise_makes_a_run_invalid() {
    let of = |promise| {
        run(&[promise], vec![("a", OpKind::Read, row(10))])
            .validity
            .verdict
    };
    assert_eq!(of("ops/s > 0.5"), Verdict::Valid);
    assert_eq!(of("ops/s > 1"), Verdict::Invalid);
}

#[test]
fn percentiles_of_too_few_operations_are_below_the_maximum() {
    let promises = [
        "p99.9 <= 50ms",
        "p99.9 <= 49ms",
        "p99.9 >= 1ms",
        "p97 <= 49.5ms",
    ];
    let run = run(&promises, vec![("a", OpKind::Read, row(50))]);
    let few = "p99.9 was 50 ms, the maximum of 50 operations, of 1 000 that the percentile needs";
    let judged = judged(&run);
    let kept: Vec<bool> = judged.iter().map(|(kept, _)| *kept).collect();
    assert_eq!(kept, [true, false, false, true]);
    let (_, text) = judged[0];
    assert!(
        text.starts_with("p99.9 was 50") && text.ends_with(&few[13..]),
        "{text}"
    );
    // The percentile of the promise is stored although no run stores it by default.
    let p97 = run.summary.percentile("97".parse().unwrap());
    assert!((48.0..50.0).contains(&p97.unwrap().ms), "{p97:?}");
}

#[test]
fn a_lower_bound_below_a_limit_keeps_no_promise() {
    let mut row = row(10);
    let mut ages = InFlightAges::default();
    ages.add(20_000_000);
    row.in_flight = ages;
    let run = run(
        &["p99 <= 50ms", "p99 <= 15ms", "p99 > 15ms", "p50 <= 50ms"],
        vec![("a", OpKind::Read, row)],
    );
    let kept: Vec<bool> = judged(&run).into_iter().map(|(kept, _)| kept).collect();
    // The percentile of ten operations is the maximum, so that p99 > 15ms is not certain either.
    assert_eq!(kept, [false, false, false, true]);
    assert!(
        run.promises[0].text.contains("at least 20"),
        "{:?}",
        run.promises
    );
    assert_eq!(run.promises[0].margin, Some(0.0));
}

#[test]
fn without_operations_there_are_no_latencies() {
    let run = run(
        &["p99 <= 50ms", "b:mean < 1s", "errors < 1%"],
        vec![("b", OpKind::Read, row(0))],
    );
    assert_eq!(
        judged(&run),
        [
            (
                false,
                "the figure `p99` is not known: no operation completed"
            ),
            (
                false,
                "the figure `mean` is not known: no operation completed"
            ),
            (
                false,
                "the figure `errors` is not known: no operation completed"
            ),
        ]
    );
}

#[test]
fn of_rows_with_one_name_the_worst_decides() {
    let rows = vec![
        ("a", OpKind::Read, row(10)),
        ("a", OpKind::Write, row(30)),
        ("a", OpKind::Open, row(20)),
    ];
    let run = run(&["a:p100 <= 25ms", "a:p100 <= 40ms"], rows);
    let values: Vec<(bool, f64)> = run
        .promises
        .iter()
        .map(|p| (p.kept, (p.value.unwrap() * 1e3).round()))
        .collect();
    assert_eq!(values, [(false, 30.0), (true, 30.0)]);
}

#[test]
fn a_run_that_measured_nothing_breaks_no_promise() {
    let mut plan = Plan::empty("w");
    plan.promises = vec![Promise::from("p99 <= 5ms".parse::<Condition>().unwrap())];
    let target = Target {
        url: "posix".into(),
        description: String::new(),
        system: None,
    };
    let run = Run::assemble(MeasuredRun::new(plan, target, SystemTime::UNIX_EPOCH));
    assert_eq!(run.promises, []);
    let mut reasons = run.validity.reasons.iter();
    assert!(reasons.all(|r| r.code != Promise::BROKEN));
}
