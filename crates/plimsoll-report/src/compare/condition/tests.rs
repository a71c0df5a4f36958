use super::*;
use crate::compare::{ComparedResult, CurveSet, of_curves};
use plimsoll_measure::curve::{Curve, Point, PointVerdict};
use proptest::prelude::*;

const P99: Metric = Metric::PercentileMs(Percentile::P99);

/// A valid result with a figure for each run; without runs, a result without the figure.
fn side(runs: &[f64]) -> Option<Value> {
    Value::new(runs.iter().copied().map(Some).collect(), Verdict::Valid)
}

fn compared(rows: Vec<(&str, Metric, Vec<Option<Value>>)>) -> Comparison {
    let sets = ["a", "b", "c"].iter().take(rows[0].2.len());
    let set = |name: &&str| ComparedResult {
        name: (*name).to_owned(),
        workload: "w".into(),
        runs: 1,
        verdict: "valid".into(),
    };
    let rows = rows
        .into_iter()
        .filter_map(|(name, metric, sides)| Row::new(name, metric, sides));
    Comparison::new(sets.map(set).collect(), vec![], None, rows.collect())
}

/// Texts of the met conditions, on valid results or, with `allow_invalid`, on any results.
fn check(condition: &str, c: &Comparison, allow_invalid: bool) -> Result<Vec<String>, String> {
    let condition: Condition = condition.parse().unwrap();
    condition.check(c, allow_invalid)
}

/// Whether a condition is met; at most one result may meet the condition.
fn is_met(condition: &str, c: &Comparison) -> bool {
    match &check(condition, c, false).unwrap()[..] {
        [] => false,
        [one] => {
            assert!(one.starts_with(condition), "{one}");
            true
        }
        more => panic!("{more:?}"),
    }
}

#[test]
fn single_runs_meet_a_condition_by_any_change_beyond_it() {
    for (condition, from, to, met) in [
        ("p99 > +10%", 2.0, 2.5, true),
        ("p99 > +10%", 2.0, 2.1, false),
        ("p99 > +10%", 2.0, 1.0, false),
        ("p99 < -10%", 2.0, 1.0, true),
        ("p99 < -10%", 2.0, 1.9, false),
        ("p99 < -10%", 2.0, 3.0, false),
        ("p99 < -99.9%", 2.0, 0.0, true),
        // The change from zero to a positive number is infinite; from zero to zero there is no change.
        ("errors > +0%", 0.0, 102.0, true),
        ("errors > +100000%", 0.0, 1.0, true),
        ("errors > +0%", 0.0, 0.0, false),
        ("errors < -0%", 0.0, 0.0, false),
        ("errors > +0%", 102.0, 0.0, false),
        ("ops/s < -5%", 0.0, 10.0, false),
        ("ops/s < -5%", 10.0, 0.0, true),
        // A condition can demand an improvement.
        ("p99 > -10%", 2.0, 1.9, true),
        ("p99 > -10%", 2.0, 1.0, false),
        ("ops/s < +10%", 10.0, 10.0, true),
        ("ops/s < +10%", 10.0, 12.0, false),
        ("ops/s < +10%", 0.0, 0.0, true),
    ] {
        let metric = condition.parse::<Condition>().unwrap().metric;
        let c = compared(vec![(ALL, metric, vec![side(&[from]), side(&[to])])]);
        assert_eq!(is_met(condition, &c), met, "{condition}: {from} to {to}");
    }
}

#[test]
fn the_name_of_an_operation_may_have_any_sign() {
    for name in ["a<b", "a > b", "p99 > +10%", "x:y", "50 %"] {
        let c = compared(vec![(name, P99, vec![side(&[2.0]), side(&[2.5])])]);
        assert!(is_met(&format!("{name}:p99 > +10%"), &c), "{name}");
        assert!(!is_met(&format!("{name}:p99 > +30%"), &c), "{name}");
    }
}

#[test]
fn a_condition_that_is_met_says_by_what() {
    let c = compared(vec![
        (ALL, P99, vec![side(&[2.0]), side(&[2.5])]),
        (ALL, Metric::Errors, vec![side(&[0.0]), side(&[102.0])]),
    ]);
    assert_eq!(
        check("p99 > +10%", &c, false).unwrap(),
        ["p99 > +10%: p99 of all in b changed by +25.0 % (each result has one run)"]
    );
    assert_eq!(
        check("errors > +0%", &c, false).unwrap(),
        ["errors > +0%: errors of all in b rose from 0 to 102 (each result has one run)"]
    );
}

#[test]
fn of_repeated_runs_a_change_that_may_be_chance_is_none() {
    let low = [1.0, 5.0, 2.0, 9.0, 3.0];
    let mixed = [2.0, 9.0, 8.0, 4.0, 1.0];
    let high = [20.0, 25.0, 21.0, 30.0, 22.0];
    for (condition, first, second, met) in [
        ("p99 > +10%", low, mixed, false),
        ("p99 > +10%", low, high, true),
        ("p99 > +1000%", low, high, false),
        ("p99 < -10%", high, low, true),
        // Without a significant improvement, a demanded improvement is missing.
        ("p99 > -10%", low, mixed, true),
        ("p99 > -10%", mixed, low, true),
        ("p99 > -10%", high, low, false),
        // The change from zero is infinite, even if a single run has the figure.
        ("errors > +0%", [0.0; 5], [0.0, 0.0, 7.0, 0.0, 0.0], true),
        ("errors > +0%", [0.0; 5], [0.0; 5], false),
        (
            "errors > +0%",
            [0.0, 1.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 7.0, 0.0, 0.0],
            false,
        ),
    ] {
        let metric = condition.parse::<Condition>().unwrap().metric;
        let c = compared(vec![(ALL, metric, vec![side(&first), side(&second)])]);
        assert_eq!(
            is_met(condition, &c),
            met,
            "{condition}: {first:?} {second:?}"
        );
    }
}

/// Other figures of a comparison do not hide a figure whose runs do not overlap.
#[test]
fn a_change_that_too_few_runs_cannot_decide_counts() {
    let (low, high) = ([1.0, 1.1, 0.9, 1.05], [2.0, 2.1, 1.9, 2.05]);
    let mixed = [1.02, 1.12, 0.92, 1.07];
    let names: Vec<String> = (0..9).map(|i| format!("op{i}")).collect();
    let of = |first: &[f64], second: &[f64]| {
        let mut rows = vec![(ALL, P99, vec![side(first), side(second)])];
        rows.extend(
            names
                .iter()
                .map(|n| (n.as_str(), P99, vec![side(&low), side(&mixed)])),
        );
        compared(rows)
    };
    let c = of(&low, &high);
    let statement = c.rows()[0].values[1].as_ref().unwrap().statement;
    assert_eq!(statement, ChangeVerdict::NotDecided);
    assert!(is_met("p99 > +10%", &c));
    assert!(!is_met("p99 > +10%", &of(&low, &[2.0, 2.1, 1.9, 1.06])));
    // Three runs of each result are too few for a test.
    assert!(is_met("p99 > +10%", &of(&low[..3], &[2.0, 2.1, 1.0])));
    // The rate of an open load is not tested.
    let open = |runs: &[f64]| side(runs).map(|v| Value { offered: true, ..v });
    let c = compared(vec![(
        ALL,
        Metric::OpsPerS,
        vec![open(&high), open(&mixed)],
    )]);
    assert!(is_met("ops/s < -5%", &c) && !is_met("ops/s < -60%", &c));
}

#[test]
fn a_figure_that_only_one_side_has_meets_every_condition() {
    let only = |first: &[f64], second: &[f64]| {
        let other = vec![side(&[1.0]), side(&[1.0])];
        compared(vec![
            (ALL, P99, vec![side(first), side(second)]),
            (ALL, Metric::OpsPerS, other),
        ])
    };
    for condition in ["p99 > +1%", "p99 < -1%"] {
        let lost = check(condition, &only(&[2.0], &[]), false).unwrap();
        assert_eq!(lost, [format!("{condition}: b (valid) has no p99 of all")]);
        let gained = check(condition, &only(&[], &[2.0]), false).unwrap();
        assert_eq!(
            gained,
            [format!("{condition}: a (valid) has no p99 of all")]
        );
        // Allowing invalid results does not allow a missing figure.
        assert_eq!(check(condition, &only(&[2.0], &[]), true).unwrap().len(), 1);
    }
    // A figure that no result has is a wrong name.
    let error = check("p99 > +1%", &only(&[], &[]), false).unwrap_err();
    assert_eq!(error, "the results have no p99");
    // Every result after the first is checked.
    let sides = vec![side(&[2.0]), side(&[]), side(&[4.0])];
    let c = compared(vec![(ALL, P99, sides)]);
    let met = check("p99 > +1%", &c, false).unwrap();
    assert_eq!(met.len(), 2, "{met:?}");
    assert!(met[0].contains("b (valid) has no") && met[1].contains("in c changed by +100.0 %"));
}

#[test]
fn a_figure_that_only_some_runs_have_meets_every_condition() {
    let some = Value::new(vec![Some(2.0), None, Some(2.0)], Verdict::Valid);
    let all = side(&[2.0; 3]);
    let of =
        |sides: [&Option<Value>; 2]| compared(vec![(ALL, P99, sides.map(Option::clone).to_vec())]);
    assert_eq!(
        check("p99 > +1%", &of([&all, &some]), false).unwrap(),
        ["p99 > +1%: 1 of 3 runs of b have no p99 of all"]
    );
    // Processor time is sampled, so a run may lack the figure.
    let cpu = vec![all.clone(), some.clone()];
    let cpu = compared(vec![(ALL, Metric::CpuUsPerOp, cpu)]);
    assert_eq!(check("cpu > +1%", &cpu, false).unwrap(), [""; 0]);
    // Runs of both results may lack a rare operation.
    assert_eq!(
        check("p99 > +1%", &of([&some, &some]), false).unwrap(),
        [""; 0]
    );
    assert_eq!(
        check("p99 > +1%", &of([&some, &all]), false).unwrap(),
        [""; 0]
    );
}

#[test]
fn a_new_result_that_is_not_valid_meets_every_condition_unless_allowed() {
    for verdict in [Verdict::Invalid, Verdict::Failed, Verdict::Interrupted] {
        let bad = |ms| side(&[ms]).map(|v| Value { verdict, ..v });
        for condition in ["p99 > +10%", "p99 < -10%"] {
            let c = compared(vec![(ALL, P99, vec![side(&[2.0]), bad(2.0)])]);
            assert_eq!(
                check(condition, &c, false).unwrap(),
                [format!(
                    "{condition}: p99 of all in b is of a result that is {verdict}"
                )]
            );
            assert_eq!(check(condition, &c, true).unwrap(), [""; 0]);
        }
        let c = compared(vec![(ALL, P99, vec![side(&[2.0]), bad(3.0)])]);
        let met = check("p99 > +10%", &c, true).unwrap();
        assert!(met[0].contains("changed by +50.0 %"), "{met:?}");
        // An invalid first result does not meet the condition.
        let c = compared(vec![(ALL, P99, vec![bad(2.0), side(&[2.0])])]);
        assert_eq!(check("p99 > +10%", &c, false).unwrap(), [""; 0]);
    }
}

#[test]
fn a_percentile_of_too_few_operations_is_not_known() {
    let few = |ms| {
        side(&[ms]).map(|v| Value {
            enough_samples: false,
            ..v
        })
    };
    let of = |sides| compared(vec![(ALL, P99, sides)]);
    for (sides, name) in [
        (vec![side(&[2.0]), few(2.0)], "b"),
        (vec![few(2.0), side(&[2.0])], "a"),
    ] {
        assert_eq!(
            check("p99 > +10%", &of(sides), false).unwrap(),
            [format!(
                "p99 > +10%: p99 of all in {name} is not known: it needs 100 operations"
            )]
        );
    }
    let neither = of(vec![few(2.0), few(2.0)]);
    assert_eq!(
        check("p99 > +10%", &neither, false).unwrap_err(),
        "p99 of all is not known: it needs 100 operations"
    );
}

#[test]
fn a_lower_bound_does_not_pass_for_a_good_result() {
    let bound = |at_least, ms| side(&[ms]).map(|v| Value { at_least, ..v });
    let bounds = |first, second| {
        compared(vec![(
            ALL,
            P99,
            vec![bound(first, 2.0), bound(second, 2.1)],
        )])
    };
    let unknown = |condition, c: &Comparison| {
        let met = check(condition, c, false).unwrap();
        met.len() == 1 && met[0].contains(": the change of p99 of all in b is not known")
    };
    // At least 2.1 is certainly more than 1 % above 2.0, and may be more than 10 % above 2.0.
    let up = bounds(false, true);
    assert!(unknown("p99 > +10%", &up));
    assert!(is_met("p99 > +1%", &up) && !unknown("p99 > +1%", &up));
    assert!(!is_met("p99 < -10%", &up));
    // From at least 2.0 to 2.1, the change may be a fall.
    let down = bounds(true, false);
    assert!(unknown("p99 < -10%", &down));
    assert!(!is_met("p99 > +10%", &down));
}

#[test]
fn without_a_name_a_condition_is_on_every_configuration_of_a_profile() {
    let pair = |a: &[f64], b: &[f64]| vec![side(a), side(b)];
    let profile = |rows| Comparison {
        has_total: false,
        ..compared(rows)
    };
    let c = profile(vec![
        ("one", Metric::OpsPerS, pair(&[1.0], &[1.0])),
        ("two", Metric::OpsPerS, pair(&[1.0], &[1.0])),
        ("three", Metric::OpsPerS, pair(&[0.0], &[0.0])),
        ("one", Metric::MeanMs, pair(&[1.0], &[2.0])),
        ("two", Metric::MeanMs, pair(&[1.0], &[])),
    ]);
    assert_eq!(
        check("mean > +10%", &c, false).unwrap(),
        [
            "mean > +10%: mean of one in b changed by +100.0 % (each result has one run)",
            "mean > +10%: b (valid) has no mean of two",
            "mean > +10%: no result has mean of three",
        ]
    );
    assert_eq!(check("one:mean > +200%", &c, false).unwrap(), [""; 0]);
    assert_eq!(
        check("three:mean > +10%", &c, false).unwrap_err(),
        "there is no mean of `three`; there is of one, two"
    );
    // The condition covers every configuration even if one has the name of the row of all operations.
    let c = profile(vec![
        (ALL, Metric::MeanMs, pair(&[1.0], &[1.0])),
        ("one", Metric::MeanMs, pair(&[1.0], &[2.0])),
    ]);
    assert_eq!(check("mean > +10%", &c, false).unwrap().len(), 1);
}

#[test]
fn an_invalid_load_point_meets_every_condition_unless_allowed() {
    let curve = |invalid: f64, verdict| {
        let point = |load: f64| Point {
            load,
            achieved: load,
            latency_ms: load,
            verdict: match load == invalid {
                true => PointVerdict::Invalid,
                false => PointVerdict::Valid,
            },
        };
        CurveSet {
            name: format!("invalid at {invalid}"),
            workload: "vda".into(),
            metric: "SFS 2014 VDA-style".into(),
            unit: "streams".into(),
            ending: "complete".into(),
            verdict,
            scale: 1.0,
            published: false,
            curve: Curve::new([1.0, 2.0, 3.0].map(point).to_vec()).unwrap(),
            left_out: vec![],
        }
    };
    let c = of_curves(&[curve(1.0, Verdict::Valid), curve(3.0, Verdict::Valid)]);
    let met = |condition| check(condition, &c, false).unwrap();
    assert_eq!(
        met("load 1:mean > +10%"),
        ["load 1:mean > +10%: mean of load 1 in invalid at 1 is of an invalid point"]
    );
    assert_eq!(met("load 2:mean > +10%"), [""; 0]);
    assert_eq!(
        met("load 3:mean > +10%"),
        ["load 3:mean > +10%: mean of load 3 in invalid at 3 is of a result that is invalid"]
    );
    assert_eq!(met("highest-valid-load < -5%").len(), 1);
    for load in ["load 1:mean > +10%", "load 3:mean > +10%"] {
        assert_eq!(check(load, &c, true).unwrap(), [""; 0]);
    }
    let error = check("load 4:mean > +10%", &c, false).unwrap_err();
    assert!(
        error.starts_with("there is no mean of `load 4`; there is of load 1, "),
        "{error}"
    );
    // A failed curve is refused at its completed loads too.
    let failed = of_curves(&[curve(9.0, Verdict::Valid), curve(9.0, Verdict::Failed)]);
    for condition in [
        "load 2:mean > +10%",
        "ort > +10%",
        "highest-valid-load < -5%",
    ] {
        let met = check(condition, &failed, false).unwrap();
        assert!(met[0].ends_with("is of a result that is failed"), "{met:?}");
        assert_eq!(check(condition, &failed, true).unwrap(), [""; 0]);
    }
}

#[test]
fn texts_that_are_no_conditions_are_refused() {
    for bad in [
        "",
        "p99",
        "p > 1%",
        "p0 > 1%",
        "p100.1 > 1%",
        "99 > 1%",
        "pp99 > 1%",
        "service p > 1%",
        "service 99 > 1%",
        "p99 > 1",
        "p99 > x%",
        ":p99 > 1%",
        "p99 > NaN%",
        "p99 > inf%",
        // No figure can fall by more than 100 %.
        "ops/s < -100%",
        "ops/s < -250%",
    ] {
        let error = bad.parse::<Condition>().unwrap_err();
        assert!(error.contains("a condition is like"), "{error}");
    }
    for good in [
        "p99<-10%",
        "p99 < -99.9 %",
        "p99 > -100%",
        "read1:ops/s < -5%",
    ] {
        good.parse::<Condition>().unwrap();
    }
}

proptest! {
    #[test]
    fn any_text_is_a_condition_or_an_error(text in "\\PC{0,20}") {
        if let Ok(condition) = text.parse::<Condition>() {
            let again: Condition = condition.to_string().parse().unwrap();
            prop_assert_eq!(again, condition);
        }
    }

    #[test]
    fn a_condition_is_printed_as_it_is_read(
        percent in prop_oneof![-100.0f64..1e6, Just(-99.999_999_999_999_99)],
        more: bool,
    ) {
        let sign = if more { '>' } else { '<' };
        let condition: Condition = format!("p99 {sign} {percent}%").parse().unwrap();
        prop_assert_eq!(condition.to_string().parse(), Ok(condition));
    }
}
