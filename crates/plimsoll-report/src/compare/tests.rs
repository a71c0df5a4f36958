use super::*;
use plimsoll_measure::curve::{Curve, Point, PointVerdict};
use proptest::prelude::*;

fn sets(names: &[&str]) -> Vec<Side> {
    let side = |n: &&str| Side {
        name: (*n).to_owned(),
        workload: "w".into(),
        runs: 1,
        verdict: "valid".into(),
    };
    names.iter().map(side).collect()
}

fn comparison(rows: Vec<Row>) -> Comparison {
    Comparison {
        sets: sets(&["a", "b"]),
        warnings: vec![],
        rows,
    }
}

fn p99(a: Vec<f64>, b: Vec<f64>) -> Comparison {
    comparison(row(ALL, Metric::P99Ms, vec![a, b]).into_iter().collect())
}

fn second(c: &Comparison) -> &Value {
    c.rows[0].values[1].as_ref().unwrap()
}

#[test]
fn a_single_run_has_a_change_and_no_statement() {
    let c = p99(vec![2.0], vec![2.5]);
    assert_eq!(second(&c).change, Some(0.25));
    assert_eq!(second(&c).statement, Statement::OneRunEach);
    assert!(c.remarks()[0].starts_with("one run each: no statement"));
}

#[test]
fn repeated_runs_are_judged() {
    let (a, b) = (
        vec![1.0, 1.1, 0.9, 1.05, 0.95],
        vec![2.0, 2.1, 1.9, 2.05, 1.95],
    );
    assert_eq!(
        second(&p99(a.clone(), b.clone())).statement,
        Statement::Real
    );
    assert_eq!(
        second(&p99(a.clone(), a.clone())).statement,
        Statement::NotShown
    );
    assert_eq!(
        second(&p99(a[..3].to_vec(), b[..3].to_vec())).statement,
        Statement::TooFewRuns
    );
    assert_eq!(second(&p99(vec![0.0; 5], b)).statement, Statement::NoBase);
}

#[test]
fn a_condition_is_met_by_a_change_beyond_it() {
    let condition: Condition = "p99 > +10%".parse().unwrap();
    assert_eq!(condition.to_string(), "p99 > +10%");
    let broken = condition.check(&p99(vec![2.0], vec![2.5])).unwrap();
    assert_eq!(broken.len(), 1);
    assert!(broken[0].text.contains("+25.0 %"), "{}", broken[0].text);
    assert!(
        condition
            .check(&p99(vec![2.0], vec![2.1]))
            .unwrap()
            .is_empty()
    );
    let less: Condition = "p99<-10%".parse().unwrap();
    assert_eq!(less.check(&p99(vec![2.0], vec![1.0])).unwrap().len(), 1);
}

#[test]
fn a_change_that_may_be_chance_meets_no_condition() {
    let condition: Condition = "p99 > +10%".parse().unwrap();
    let spread = p99(vec![1.0, 5.0, 2.0, 9.0, 3.0], vec![2.0, 9.0, 8.0, 4.0, 1.0]);
    assert!(second(&spread).change.unwrap() > 0.1);
    assert!(condition.check(&spread).unwrap().is_empty());
}

#[test]
fn a_condition_on_what_is_not_there_is_an_error() {
    let condition: Condition = "red:p99 > 1%".parse().unwrap();
    let error = condition.check(&p99(vec![1.0], vec![2.0])).unwrap_err();
    assert_eq!(error, "there is no p99 of `red`; there is of all");
    for bad in [
        "",
        "p99",
        "p98 > 1%",
        "p99 > 1",
        "p99 > x%",
        ":p99 > 1%",
        "p99 > NaN%",
    ] {
        let error = bad.parse::<Condition>().unwrap_err();
        assert!(error.contains("a condition is like"), "{error}");
    }
}

fn curve(points: &[(f64, f64)]) -> CurveSet {
    let point = |(load, latency_ms): &(f64, f64)| Point {
        load: *load,
        achieved: *load * 10.0,
        latency_ms: *latency_ms,
        verdict: PointVerdict::Valid,
    };
    CurveSet {
        name: "c".into(),
        workload: "vda".into(),
        unit: "streams".into(),
        verdict: "complete".into(),
        curve: Curve::new(points.iter().map(point).collect()).unwrap(),
    }
}

#[test]
fn curves_are_compared_at_every_load_of_either() {
    let c = of_curves(&[
        curve(&[(1.0, 1.0), (3.0, 2.0)]),
        curve(&[(2.0, 3.0), (4.0, 5.0)]),
    ]);
    let mean = |load: &str| -> Vec<Option<f64>> {
        let mut rows = c.rows.iter();
        let row = rows.find(|r| r.operation == load && r.metric == Metric::MeanMs);
        let values = &row.unwrap().values;
        values.iter().map(|v| v.as_ref().map(|v| v.mean)).collect()
    };
    assert_eq!(mean("load 1"), [Some(1.0), None]);
    assert_eq!(mean("load 2"), [Some(1.5), Some(3.0)]);
    assert_eq!(mean("load 3"), [Some(2.0), Some(4.0)]);
    let peak = c.rows.iter().find(|r| r.metric == Metric::Peak).unwrap();
    assert_eq!(peak.values[1].as_ref().unwrap().change, Some(1.0 / 3.0));
    // Area under straight lines, over the range: (1 + 2) / 2 and (3 + 5) / 2.
    let ort = c.rows.iter().find(|r| r.metric == Metric::OrtMs).unwrap();
    let ort: Vec<f64> = ort.values.iter().flatten().map(|v| v.mean).collect();
    assert_eq!(ort, [1.5, 4.0]);
}

proptest! {
    #[test]
    fn any_text_is_a_condition_or_an_error(text in "\\PC{0,20}") {
        if let Ok(condition) = text.parse::<Condition>() {
            let again: Condition = condition.to_string().parse().unwrap();
            prop_assert_eq!(again.to_string(), condition.to_string());
        }
    }
}
