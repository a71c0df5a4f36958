use super::*;
use plimsoll_measure::curve::{Curve, Point, PointVerdict};
use plimsoll_results::Percentile;
use proptest::prelude::*;

fn sets(names: &[&str]) -> Vec<ComparedResult> {
    let side = |n: &&str| ComparedResult {
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
        load_axis: None,
        rows,
    }
}

fn p99(a: Vec<f64>, b: Vec<f64>) -> Comparison {
    comparison(
        row(ALL, Metric::PercentileMs(Percentile::P99), vec![a, b])
            .into_iter()
            .collect(),
    )
}

fn second(c: &Comparison) -> &Value {
    c.rows[0].values[1].as_ref().unwrap()
}

#[test]
fn a_single_run_has_a_change_and_no_statement() {
    let c = p99(vec![2.0], vec![2.5]);
    assert_eq!(second(&c).change, Some(0.25));
    assert_eq!(second(&c).statement, ChangeVerdict::OneRunEach);
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
        ChangeVerdict::Real
    );
    assert_eq!(
        second(&p99(a.clone(), a.clone())).statement,
        ChangeVerdict::NotShown
    );
    assert_eq!(
        second(&p99(a[..3].to_vec(), b[..3].to_vec())).statement,
        ChangeVerdict::TooFewRuns
    );
    assert_eq!(
        second(&p99(vec![0.0; 5], b)).statement,
        ChangeVerdict::NoBase
    );
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
    ] {
        let error = bad.parse::<Condition>().unwrap_err();
        assert!(error.contains("a condition is like"), "{error}");
    }
}

#[test]
fn any_percentile_is_a_figure() {
    for name in ["p98", "p99.999", "service p99.99", "p100", "service mean"] {
        let condition: Condition = format!("{name} > +1%").parse().unwrap();
        assert_eq!(condition.to_string(), format!("{name} > +1%"));
        let metric = Metric::of_name(name).unwrap();
        assert_eq!(Metric::try_from(String::from(metric)).unwrap(), metric);
    }
    let json = |name| String::from(Metric::of_name(name).unwrap());
    assert_eq!(
        ["p99", "p99.9", "p99.99", "service p50", "mean", "ops/s"].map(json),
        [
            "p99_ms",
            "p999_ms",
            "p99.99_ms",
            "service_p50_ms",
            "mean_ms",
            "ops_per_s"
        ]
    );
    assert!(Metric::try_from("px_ms".to_owned()).is_err());
}

#[test]
fn a_percentile_of_too_few_operations_is_marked_and_meets_no_condition() {
    let mut c = p99(vec![2.0], vec![9.0]);
    c.rows[0].values[1].as_mut().unwrap().enough_samples = false;
    let condition: Condition = "p99 > +10%".parse().unwrap();
    assert_eq!(
        condition.check(&c).unwrap_err(),
        "p99 of all in b is not known: it needs 100 operations"
    );
    let text = markdown(&c);
    assert!(text.contains("| all | 2.00 ms | 9.00 ms? |"), "{text}");
    assert!(
        text.contains("fewer operations than the percentile needs"),
        "{text}"
    );
}

#[test]
fn a_condition_on_a_lower_bound_does_not_pass_for_a_good_result() {
    let bounds = |first: bool, second: bool| {
        let mut c = p99(vec![2.0], vec![2.1]);
        c.rows[0].values[0].as_mut().unwrap().at_least = first;
        c.rows[0].values[1].as_mut().unwrap().at_least = second;
        c
    };
    let check = |text: &str, c: &Comparison| text.parse::<Condition>().unwrap().check(c);
    // At least 2.1 may be more than a tenth above 2.0, and is more than a hundredth above it.
    let up = bounds(false, true);
    let error = check("p99 > +10%", &up).unwrap_err();
    assert!(
        error.starts_with("the change of p99 of all in b is not known"),
        "{error}"
    );
    assert_eq!(check("p99 > +1%", &up).unwrap().len(), 1);
    assert_eq!(check("p99 < -10%", &up).unwrap(), []);
    // From at least 2.0 to 2.1 it may be a fall.
    let down = bounds(true, false);
    assert!(check("p99 < -10%", &down).is_err());
    assert_eq!(check("p99 > +10%", &down).unwrap(), []);
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
        metric: "SFS 2014 VDA-style".into(),
        unit: "streams".into(),
        verdict: "complete".into(),
        scale: 1.0,
        published: false,
        curve: Curve::new(points.iter().map(point).collect()).unwrap(),
        left_out: vec![],
    }
}

#[test]
fn points_that_are_none_are_said_to_be_left_out() {
    let whole = curve(&[(1.0, 1.0), (2.0, 2.0)]);
    let short = CurveSet {
        name: "short".into(),
        left_out: vec![(2, "failed".into()), (3000, "was interrupted".into())],
        ..curve(&[(1.0, 1.0)])
    };
    let expected = [
        "short: the run at load 2 failed, and is left out",
        "short: the run at load 3 000 was interrupted, and is left out",
    ];
    assert_eq!(of_curves(&[whole, short]).warnings, expected);
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

/// The value of a figure in each result.
fn values(c: &Comparison, operation: &str, metric: Metric) -> Vec<Option<Value>> {
    let mut rows = c.rows.iter();
    let row = rows.find(|r| r.operation == operation && r.metric == metric);
    row.unwrap_or_else(|| panic!("no {operation}: {c:?}"))
        .values
        .clone()
}

/// The curve with some points made anew.
fn changed(set: CurveSet, change: impl Fn(&mut Point)) -> CurveSet {
    let mut points = set.curve.points().to_vec();
    points.iter_mut().for_each(change);
    let curve = Curve::new(points).unwrap();
    CurveSet { curve, ..set }
}

#[test]
fn invalid_points_are_marked_and_no_change_is_counted_from_or_to_them() {
    let ours = curve(&[(1.0, 1.0), (3.0, 2.0), (5.0, 3.0), (7.0, 4.0)]);
    let theirs = curve(&[(1.0, 1.0), (2.0, 2.0), (3.0, 9.0), (5.0, 9.0), (6.0, 1.0)]);
    let invalid = |load| {
        move |p: &mut Point| {
            if p.load == load {
                p.verdict = PointVerdict::Invalid;
            }
        }
    };
    let (a, b) = (changed(ours, invalid(5.0)), changed(theirs, invalid(3.0)));
    let c = of_curves(&[a, b]);
    let mean = |load: &str| values(&c, load, Metric::MeanMs);
    // The second is invalid: shown, marked, and no change.
    let three = mean("load 3")[1].clone().unwrap();
    assert_eq!((three.mean, three.change), (9.0, None));
    assert_eq!(three.statement, ChangeVerdict::InvalidPoint);
    // The first is: there is nothing to count from.
    let five = mean("load 5");
    let statements = five.iter().flatten().map(|v| (v.statement, v.change));
    assert_eq!(
        statements.collect::<Vec<_>>(),
        [
            (ChangeVerdict::InvalidPoint, None),
            (ChangeVerdict::NoBase, None)
        ]
    );
    // Between valid points there is a line, beside an invalid one none.
    assert_eq!(mean("load 2")[0].as_ref().unwrap().mean, 1.5);
    assert_eq!(mean("load 6")[0], None);
    for condition in ["load 3:mean > +10%", "load 5:mean > +10%"] {
        let condition: Condition = condition.parse().unwrap();
        assert_eq!(condition.check(&c).unwrap(), []);
    }
    let text = markdown(&c);
    for line in [
        r"| load 1 | 1.00 ms | 1.00 ms | +0.0 % |",
        r"| load 3 | 2.00 ms | 9.00 ms \! | - |",
        r"| load 5 | 3.00 ms \! | 9.00 ms | - |",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}: {text}");
    }
    assert!(text.contains("the load point is invalid"), "{text}");
}

#[test]
fn a_point_at_which_nothing_was_done_has_no_figures() {
    let nothing = |p: &mut Point| {
        if p.load == 3.0 {
            (p.achieved, p.latency_ms) = (0.0, 0.0);
        }
    };
    let three = [(1.0, 1.0), (3.0, 2.0), (5.0, 3.0)];
    let c = of_curves(&[
        curve(&[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0)]),
        changed(curve(&three), nothing),
    ]);
    for metric in [Metric::MeanMs, Metric::OpsPerS] {
        assert!(values(&c, "load 3", metric)[0].is_some());
        assert_eq!(values(&c, "load 3", metric)[1], None);
        assert_eq!(values(&c, "load 2", metric)[1], None);
    }
}

#[test]
fn names_of_reports_are_those_of_workloads() {
    let pairs = [
        ("SPEC SFS2014_vda", "SFS 2014 VDA-style", "Job_Sets"),
        ("SPECsfs2008_nfs.v3", "SFS 2008 NFSv3-style", "job sets"),
        (
            "SPECstorage Solution 2020_eda_blended",
            "Storage 2020 EDA_BLENDED-style",
            "Job_sets",
        ),
    ];
    let points = [(1.0, 1.0), (2.0, 2.0)];
    let named = |metric: &str, unit: &str| CurveSet {
        metric: metric.into(),
        unit: unit.into(),
        ..curve(&points)
    };
    for (published, ours, unit) in pairs {
        let c = of_curves(&[named(ours, "job sets"), named(published, unit)]);
        assert_eq!(c.warnings, [""; 0]);
    }
    let other = of_curves(&[
        named("SFS 2014 VDA-style", "streams"),
        named("SPEC SFS2014_vdi", "Desktops"),
    ]);
    assert_eq!(other.warnings.len(), 2, "{:?}", other.warnings);
}

#[test]
fn another_scale_is_not_comparable() {
    let points = [(1.0, 1.0), (2.0, 2.0)];
    let scaled = CurveSet {
        scale: 0.1,
        ..curve(&points)
    };
    let published = CurveSet {
        published: true,
        ..curve(&points)
    };
    let same = of_curves(&[scaled.clone(), scaled.clone()]);
    assert_eq!(same.warnings, [""; 0]);
    let c = of_curves(&[scaled, published]);
    assert_eq!(
        c.warnings,
        [
            "the scale differs: 0.1, but 1 of c: not comparable",
            "c is a published result; c was measured with Plimsoll: an open equivalent, not a SPEC \
             result",
        ]
    );
}

#[test]
fn curves_of_2008_in_two_units_are_compared_at_what_was_achieved() {
    // Loads are hundreds of operations a second, which are achieved but for the last.
    let ours = CurveSet {
        metric: "SFS 2008 NFSv3-style".into(),
        unit: "hundreds of operations a second".into(),
        ..curve(&[(10.0, 1.0), (20.0, 2.0), (30.0, 8.0)])
    };
    let ours = changed(ours, |p| {
        p.achieved = if p.load == 30.0 {
            1500.0
        } else {
            p.load * 100.0
        };
    });
    let theirs = CurveSet {
        metric: "SPECsfs2008_nfs.v3".into(),
        unit: "Ops/Sec".into(),
        ..curve(&[(1500.0, 3.0), (3000.0, 6.0)])
    };
    let theirs = changed(theirs, |p| p.achieved = p.load);
    let c = of_curves(&[ours.clone(), theirs]);
    let mean = |at: &str| -> Vec<Option<f64>> {
        let values = values(&c, at, Metric::MeanMs);
        values.iter().map(|v| v.as_ref().map(|v| v.mean)).collect()
    };
    assert_eq!(mean("1 000 ops/s"), [Some(1.0), None]);
    assert_eq!(mean("1 500 ops/s"), [Some(1.5), Some(3.0)]);
    assert_eq!(mean("2 000 ops/s"), [Some(2.0), Some(4.0)]);
    assert_eq!(mean("3 000 ops/s"), [None, Some(6.0)]);
    assert!(
        c.warnings[0].ends_with("; compared at the achieved operations per second"),
        "{:?}",
        c.warnings
    );
    assert_eq!(c.load_axis.as_deref(), Some("achieved operations/s"));
    // Two of one unit are compared at the loads asked for.
    let two = of_curves(&[ours.clone(), ours]);
    let axis = two.load_axis.as_deref();
    assert_eq!(axis, Some("load in hundreds of operations a second"));
    assert_eq!(values(&two, "load 30", Metric::MeanMs).len(), 2);
    assert_eq!(two.warnings, [""; 0]);
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
