use super::*;
use crate::document::{Block, Tone};
use crate::html::chart::{Chart, ChartOverlay};
use crate::markdown;
use plimsoll_measure::curve::{Curve, Point, PointVerdict};
use plimsoll_results::Percentile;

fn sets(names: &[&str]) -> Vec<ComparedResult> {
    let side = |n: &&str| ComparedResult {
        name: (*n).to_owned(),
        workload: "w".into(),
        runs: 1,
        verdict: "valid".into(),
    };
    names.iter().map(side).collect()
}

fn markdown(comparison: &Comparison) -> String {
    markdown::render(&document(comparison))
}

fn comparison(rows: Vec<Row>) -> Comparison {
    Comparison::new(sets(&["a", "b"]), vec![], None, rows)
}

/// A row of valid results; each has the figures of its runs.
fn row(operation: &str, metric: Metric, figures: &[&[f64]]) -> Row {
    let measured = |runs: &&[f64]| {
        let runs = runs.iter().copied().map(Some);
        Value::new(runs.collect(), Verdict::Valid)
    };
    Row::new(operation, metric, figures.iter().map(measured).collect()).unwrap()
}

const P99: Metric = Metric::PercentileMs(Percentile::P99);

fn p99(a: &[f64], b: &[f64]) -> Comparison {
    comparison(vec![row(ALL, P99, &[a, b])])
}

fn second(c: &Comparison) -> &Value {
    c.rows[0].values[1].as_ref().unwrap()
}

/// Remark of the comparison that contains `words`; panics unless there is exactly one.
fn remark(c: &Comparison, words: &str) -> String {
    let mut all = c.remarks().into_iter().filter(|r| r.contains(words));
    let one = all.next().unwrap_or_else(|| panic!("{words}: {c:?}"));
    assert_eq!(all.next(), None);
    one
}

#[test]
fn a_single_run_has_a_change_and_no_statement() {
    let c = p99(&[2.0], &[2.5]);
    assert_eq!(second(&c).change, Some(0.25));
    assert_eq!(second(&c).statement, ChangeVerdict::OneRunEach);
    assert!(c.remarks()[0].starts_with("one run each: no statement"));
    assert!(c.remarks()[0].ends_with("run --repeat 4"));
    assert_eq!(c.tests().tested, 0);
}

const LOW: [f64; 5] = [1.0, 1.1, 0.9, 1.05, 0.95];
const HIGH: [f64; 5] = [2.0, 2.1, 1.9, 2.05, 1.95];

#[test]
fn a_figure_that_is_tested_alone_is_judged_by_its_runs() {
    for (a, b, statement) in [
        (&LOW[..], &HIGH[..], ChangeVerdict::Real),
        (&LOW[..4], &HIGH[..4], ChangeVerdict::Real),
        (&[0.0; 5], &HIGH, ChangeVerdict::Real),
        (
            &LOW,
            &[1.02, 1.12, 0.92, 1.07, 0.97],
            ChangeVerdict::NotShown,
        ),
        (&LOW[..3], &HIGH[..3], ChangeVerdict::TooFewRuns),
        (&LOW[..1], &HIGH, ChangeVerdict::TooFewRuns),
        (&LOW[..1], &HIGH[..1], ChangeVerdict::OneRunEach),
        (&[2.0; 5], &[2.0; 4], ChangeVerdict::Same),
        (&[0.0; 5], &[0.0; 5], ChangeVerdict::Same),
    ] {
        let c = p99(a, b);
        assert_eq!(second(&c).statement, statement, "{a:?} {b:?}");
        let is_tested = matches!(statement, ChangeVerdict::Real | ChangeVerdict::NotShown);
        assert_eq!(c.tests().tested, usize::from(is_tested));
        assert_eq!(
            c.tests().real,
            usize::from(statement == ChangeVerdict::Real)
        );
        let said = c
            .remarks()
            .iter()
            .any(|r| r.starts_with("1 figure was tested"));
        assert_eq!(said, is_tested);
    }
}

/// A comparison of `figures` figures with `runs` runs each. The runs of the first `differing` figures do not overlap;
/// the runs of the other figures are mixed.
fn of_many(figures: usize, differing: usize, runs: usize) -> Comparison {
    let names: Vec<String> = (0..figures).map(|i| format!("op{i}")).collect();
    let numbers = |from: usize| (0..runs).map(|i| (from + 2 * i) as f64).collect::<Vec<_>>();
    let (low, mixed, high) = (numbers(10), numbers(11), numbers(100));
    let rows = names.iter().enumerate().map(|(i, name)| {
        let other = if i < differing { &high } else { &mixed };
        row(name, P99, &[&low, other])
    });
    comparison(rows.collect())
}

fn statements(c: &Comparison) -> Vec<ChangeVerdict> {
    let seconds = c.rows().iter().map(|r| r.values[1].as_ref());
    seconds.flatten().map(|v| v.statement).collect()
}

#[test]
fn figures_are_judged_together() {
    // Seven runs of each result show a difference in one of sixty figures: 2 / C(14, 7) · 60 < 0.05.
    let c = of_many(60, 1, 7);
    assert_eq!((c.tests().tested, c.tests().real), (60, 1));
    assert_eq!(
        statements(&c)[..2],
        [ChangeVerdict::Real, ChangeVerdict::NotShown]
    );
    assert!(remark(&c, "60 figures were tested").contains("false discovery rate of 5 %"));
    assert!(remark(&c, "* the difference is real").contains("at most 5 %"));
    // Six runs of each result do not, although the runs do not overlap, and the text says so.
    let c = of_many(60, 1, 6);
    assert_eq!((c.tests().tested, c.tests().real), (60, 0));
    assert_eq!(
        statements(&c)[..2],
        [ChangeVerdict::NotDecided, ChangeVerdict::NotShown]
    );
    assert_eq!(
        remark(&c, "too few"),
        "too few runs to exclude chance among 60 figures, although those of both results do not \
         overlap: p99 latency (op0) in b; 7 runs of each result that have the figure are needed"
    );
    // Six runs of each result show differences in three figures together: 2 / C(12, 6) · 60 / 3 < 0.05.
    assert_eq!(of_many(60, 2, 6).tests().real, 0);
    assert_eq!(of_many(60, 3, 6).tests().real, 3);
    // Four runs of each result show differences in 35 figures together: 2 / C(8, 4) · 60 / 35 < 0.05.
    assert_eq!(of_many(60, 34, 4).tests().real, 0);
    assert_eq!(of_many(60, 35, 4).tests().real, 35);
    // Removed rows do not count.
    let mut c = of_many(60, 1, 6);
    c.retain_rows(|r| ["op0", "op1"].contains(&r.operation.as_str()));
    assert_eq!((c.tests().tested, c.tests().real), (2, 1));
}

#[test]
fn figures_with_too_few_runs_are_named() {
    let rows = vec![
        row(ALL, Metric::MeanMs, &[&LOW, &HIGH]),
        row(ALL, P99, &[&LOW, &HIGH[..2]]),
        row("read1", P99, &[&LOW, &HIGH[..1]]),
        row("read1", Metric::MeanMs, &[&LOW, &HIGH[..2]]),
    ];
    let c = comparison(rows);
    assert_eq!(
        remark(&c, "too few"),
        "too few runs for a test: mean latency (read1), p99 latency (all, read1) in b; at least 4 runs \
         of each result that have the figure are needed, and 5 to show a difference in a single one of them"
    );
    assert_eq!(c.tests().tested, 1);
    let all = remark(&p99(&LOW[..3], &HIGH[..3]), "too few");
    assert_eq!(
        all,
        "too few runs for a test: every figure in b; at least 4 runs of each result that have the \
         figure are needed"
    );
    // Figures that are equal in all runs are not named: no number of runs would permit a test.
    let rows = vec![
        row(ALL, P99, &[&LOW[..3], &HIGH[..3]]),
        row(ALL, Metric::OpsPerS, &[&[5.0; 3], &[5.0; 3]]),
    ];
    assert_eq!(remark(&comparison(rows), "too few"), all);
}

#[test]
fn the_rate_of_an_open_load_and_what_is_not_known_are_not_tested() {
    let tested = |change: fn(&mut Value, usize)| {
        let mut sides = [LOW, HIGH].map(|f| Value::new(f.map(Some).to_vec(), Verdict::Valid));
        for (i, side) in sides.iter_mut().enumerate() {
            change(side.as_mut().unwrap(), i);
        }
        let c = comparison(vec![
            Row::new(ALL, Metric::OpsPerS, sides.to_vec()).unwrap(),
        ]);
        assert_eq!(second(&c).change, Some(1.0));
        (second(&c).statement, c.tests().tested, c.remarks().concat())
    };
    assert_eq!(tested(|_, _| ()).0, ChangeVerdict::Real);
    let (statement, count, remarks) = tested(|m, _| m.offered = true);
    assert_eq!((statement, count), (ChangeVerdict::Offered, 0));
    assert!(
        remarks.contains("open load that was sustained are not tested: its schedule sets them")
    );
    // Compared with a closed loop, or with a load that was not sustained, the rate is a measurement.
    assert_eq!(tested(|m, i| m.offered = i == 0).0, ChangeVerdict::Real);
    for i in [0, 1] {
        let unknown: [fn(&mut Value, usize); 2] = match i {
            0 => [|m, i| m.at_least = i == 0, |m, i| m.enough_samples = i != 0],
            _ => [|m, i| m.at_least = i == 1, |m, i| m.enough_samples = i != 1],
        };
        for change in unknown {
            let (statement, count, _) = tested(change);
            assert_eq!((statement, count), (ChangeVerdict::NotKnown, 0));
        }
    }
}

#[test]
fn a_figure_that_some_runs_do_not_have_says_so() {
    let some = [Some(2.0), None, Some(2.1), None, None];
    let sides = vec![
        Value::new(LOW.map(Some).to_vec(), Verdict::Valid),
        Value::new(some.to_vec(), Verdict::Valid),
    ];
    let other = row("read1", P99, &[&LOW, &HIGH]);
    let c = comparison(vec![Row::new(ALL, P99, sides).unwrap(), other]);
    assert_eq!((second(&c).mean, second(&c).runs_without), (2.05, 3));
    assert_eq!(
        remark(&c, "not all runs"),
        "not all runs have these figures: p99 latency (all) in b"
    );
}

#[test]
fn json_has_the_tests_and_the_change_from_zero() {
    let c = comparison(vec![row(ALL, Metric::Errors, &[&[0.0], &[102.0]])]);
    let json = serde_json::to_value(&c).unwrap();
    assert_eq!(json["rows"][0]["values"][1]["change"], "Infinity");
    assert_eq!(
        json["rows"][0]["values"][0]["change"],
        serde_json::Value::Null
    );
    assert_eq!(json["tests"]["tested"], 0);
    let json = serde_json::to_value(of_many(60, 1, 7)).unwrap();
    let tests = serde_json::json!({
        "tested": 60, "real": 1, "false_discovery_rate": 0.05, "runs_needed": 7
    });
    assert_eq!(json["tests"], tests);
    assert_eq!(json["rows"][0]["values"][1]["statement"], "real");
    let text = markdown(&c);
    assert!(text.contains("| all | 0 | 102 | +∞ |"), "{text}");
}

#[test]
fn errors_that_never_occurred_are_compared_and_not_shown() {
    let c = comparison(vec![
        row(ALL, Metric::OpsPerS, &[&[5.0], &[5.0]]),
        row(ALL, Metric::Errors, &[&[0.0], &[0.0]]),
    ]);
    assert_eq!(c.rows()[1].values[1].as_ref().unwrap().change, Some(0.0));
    let blocks = blocks(&c).into_iter();
    let tables = blocks.filter_map(|block| match block {
        Block::Table(table) => Some(table.caption),
        _ => None,
    });
    assert_eq!(tables.collect::<Vec<_>>(), ["ops/s"]);
}

#[test]
fn any_percentile_is_a_figure() {
    for name in ["p98", "p99.999", "service p99.99", "p100", "service mean"] {
        let condition: Condition = format!("{name} > +1%").parse().unwrap();
        assert_eq!(condition.to_string(), format!("{name} > +1%"));
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
}

#[test]
fn a_percentile_of_too_few_operations_is_marked() {
    let mut c = p99(&[2.0], &[9.0]);
    c.rows[0].values[1].as_mut().unwrap().enough_samples = false;
    let text = markdown(&c);
    assert!(text.contains("| all | 2.00 ms | 9.00 ms? |"), "{text}");
    assert!(
        text.contains("fewer operations than the percentile needs"),
        "{text}"
    );
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
        ending: "complete".into(),
        verdict: Verdict::Valid,
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

/// A curve with some points replaced.
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
    // The second curve is invalid at load 3: the figure is shown and marked, without a change.
    let three = mean("load 3")[1].clone().unwrap();
    assert_eq!((three.mean, three.change), (9.0, None));
    assert_eq!(three.statement, ChangeVerdict::InvalidPoint);
    // The first curve is invalid at load 5: there is no base for a change.
    let five = mean("load 5");
    let statements = five.iter().flatten().map(|v| (v.statement, v.change));
    assert_eq!(
        statements.collect::<Vec<_>>(),
        [
            (ChangeVerdict::InvalidPoint, None),
            (ChangeVerdict::NoBase, None)
        ]
    );
    // Latency is interpolated between valid points, but not beside an invalid point.
    assert_eq!(mean("load 2")[0].as_ref().unwrap().mean, 1.5);
    assert_eq!(mean("load 6")[0], None);
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
    // Loads are in hundreds of operations per second, which all points but the last achieve.
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
    // Curves with the same unit are compared at the requested loads.
    let two = of_curves(&[ours.clone(), ours]);
    let axis = two.load_axis.as_deref();
    assert_eq!(axis, Some("load in hundreds of operations a second"));
    assert_eq!(values(&two, "load 30", Metric::MeanMs).len(), 2);
    assert_eq!(two.warnings, [""; 0]);
}

#[test]
fn nothing_is_interpolated_across_a_load_whose_run_failed() {
    let whole = curve(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0)]);
    let short = CurveSet {
        left_out: vec![(3, "failed".into())],
        ..curve(&[(1.0, 1.0), (2.0, 2.0), (4.0, 4.0)])
    };
    let c = of_curves(&[whole, short]);
    assert_eq!(values(&c, "load 3", Metric::MeanMs)[1], None);
    assert_eq!(
        values(&c, "load 2", Metric::MeanMs)[1]
            .as_ref()
            .unwrap()
            .mean,
        2.0
    );
    // A failed load is not bridged on the axis of achieved operations per second either.
    let ours = |points: &[(f64, f64)], left_out| CurveSet {
        metric: "SFS 2008 NFSv3-style".into(),
        unit: "hundreds of operations a second".into(),
        left_out,
        ..curve(points)
    };
    let theirs = CurveSet {
        unit: "Ops/Sec".into(),
        ..curve(&[(2.0, 2.0), (2.5, 9.0)])
    };
    let mean = |set: CurveSet| {
        let c = of_curves(&[theirs.clone(), set]);
        values(&c, "25 ops/s", Metric::MeanMs)[1]
            .clone()
            .map(|v| v.mean)
    };
    let points = [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)];
    assert_eq!(mean(ours(&points, vec![])), Some(2.5));
    let without = [(1.0, 1.0), (3.0, 3.0)];
    assert_eq!(mean(ours(&without, vec![])), Some(2.5));
    assert_eq!(mean(ours(&without, vec![(2, "failed".into())])), None);
}

/// The sentences of the head and their colours; `set` changes the values before the test.
fn headline(metric: Metric, sides: [&[f64]; 2], set: fn(&mut Value)) -> (String, Tone) {
    let value = |runs: &[f64]| {
        let mut value = Value::new(runs.iter().copied().map(Some).collect(), Verdict::Valid);
        value.iter_mut().for_each(set);
        value
    };
    let row = Row::new(ALL, metric, sides.map(value).to_vec()).unwrap();
    head_of(&comparison(vec![row]))
}

/// The first sentence of a document, and its colour.
fn head_of(c: &Comparison) -> (String, Tone) {
    match document(c).head.into_iter().next() {
        Some(Block::Line(line)) => (line.text, line.tone),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_sentence_is_the_answer_or_the_reason_for_none() {
    let rate = Metric::OpsPerS;
    let said = |metric, a: &[f64], b: &[f64]| headline(metric, [a, b], |_| ());
    let (low, high) = (LOW.map(|v| v * 1000.0), LOW.map(|v| v * 1120.0));
    for (a, b, expected) in [
        (
            &LOW.map(|v| 1000.0 + v)[..],
            &LOW.map(|v| 1120.0 + v)[..],
            (
                "b is 12 % faster than a (ops/s 1 001 → 1 121, real)",
                Tone::Good,
            ),
        ),
        (
            &LOW.map(|v| 1120.0 + v),
            &LOW.map(|v| 1000.0 + v),
            (
                "b is 11 % slower than a (ops/s 1 121 → 1 001, real)",
                Tone::Bad,
            ),
        ),
        (
            &LOW,
            &HIGH,
            (
                "b is 2.0 times as fast as a (ops/s 1.00 → 2.00, real)",
                Tone::Good,
            ),
        ),
        (
            &[0.0; 5],
            &HIGH,
            (
                "ops/s of b rises from zero (ops/s 0 → 2.00, real)",
                Tone::Good,
            ),
        ),
        (
            &low,
            &low.map(|v| v + 2.0),
            (
                "no difference of ops/s between a and b is more than chance (1 000 → 1 002, +0.2 %)",
                Tone::Plain,
            ),
        ),
        (
            &[2.0; 5],
            &[2.0; 4],
            (
                "no difference of ops/s between a and b in any run (2.00 → 2.00)",
                Tone::Plain,
            ),
        ),
        (
            &low[..3],
            &high[..3],
            (
                "no statement on the difference of ops/s between a and b (1 000 → 1 120, +12.0 %): \
                 too few runs for a test",
                Tone::Doubtful,
            ),
        ),
        (
            &low[..1],
            &high[..1],
            (
                "no statement on the difference of ops/s between a and b (1 000 → 1 120, +12.0 %): \
                 each result has one run",
                Tone::Doubtful,
            ),
        ),
    ] {
        let (text, tone) = said(rate, a, b);
        assert_eq!((&*text, tone), expected);
    }
    for (set, why) in [
        (
            (|v| v.confounded = Some(ChangeVerdict::Drift)) as fn(&mut Value),
            "the runs drift",
        ),
        (
            |v| v.confounded = Some(ChangeVerdict::MeasuredApart),
            "the results were measured one after the other",
        ),
    ] {
        let (text, tone) = headline(rate, [&LOW, &HIGH], set);
        assert_eq!(tone, Tone::Doubtful);
        assert_eq!(
            text,
            format!(
                "no statement on the difference of ops/s between a and b (1.00 → 2.00, +100 %): {why}"
            )
        );
    }
}

#[test]
fn the_answer_on_an_open_load_is_its_latency() {
    let mut sides = [LOW, HIGH].map(|f| Value::new(f.map(Some).to_vec(), Verdict::Valid));
    sides.iter_mut().flatten().for_each(|v| v.offered = true);
    let rows = vec![
        Row::new(ALL, Metric::OpsPerS, sides.to_vec()).unwrap(),
        row(ALL, Metric::MeanMs, &[&HIGH, &LOW]),
    ];
    let said = "mean latency of b is 50 % lower than that of a (2.00 ms → 1.00 ms, real)";
    assert_eq!(head_of(&comparison(rows)), (said.into(), Tone::Good));
}

#[test]
fn curves_are_answered_by_their_highest_valid_loads() {
    let (a, b) = (
        curve(&[(1.0, 1.0), (4.0, 2.0)]),
        curve(&[(1.0, 1.0), (5.0, 2.0)]),
    );
    let named = |name: &str, set: &CurveSet| CurveSet {
        name: name.into(),
        ..set.clone()
    };
    let (text, tone) = head_of(&of_curves(&[named("old", &a), named("new", &b)]));
    assert_eq!(
        (&*text, tone),
        (
            "highest valid load of new is 25 % higher than that of old (4.00 → 5.00, not tested)",
            Tone::Plain
        )
    );
    let (text, _) = head_of(&of_curves(&[named("old", &a), named("new", &a)]));
    assert_eq!(text, "highest valid load of old and new is the same: 4.00");
}

/// Charts of the page of a comparison.
fn charts(c: &Comparison) -> Vec<Chart> {
    document(c).charts(false)
}

#[test]
fn the_forest_plot_has_the_ratio_of_each_operation_with_its_interval() {
    let rows = vec![
        row(ALL, Metric::OpsPerS, &[&LOW, &HIGH]),
        row("read1", Metric::OpsPerS, &[&[4.0], &[2.0]]),
        row("stat1", Metric::OpsPerS, &[&[0.0], &[2.0]]),
        row(ALL, Metric::MeanMs, &[&LOW, &HIGH]),
    ];
    let charts = charts(&comparison(rows));
    let [plot] = &charts[..] else {
        panic!("{charts:?}")
    };
    assert_eq!(plot.title, "Relative change of ops/s, b by a");
    let ChartOverlay::Intervals(intervals) = &plot.extra else {
        panic!("{plot:?}")
    };
    // A change from zero has no ratio.
    let shown: Vec<(&str, f64)> = intervals.iter().map(|i| (&*i.name, i.middle)).collect();
    assert_eq!(shown, [("all", 2.0), ("read1", 0.5)]);
    assert!(1.0 < intervals[0].low && intervals[0].low < 2.0 && 2.0 < intervals[0].high);
    // One run each has a point without an interval.
    assert_eq!((intervals[1].low, intervals[1].high), (0.5, 0.5));
    assert_eq!(plot.columns[1].name, "from");
    assert!(plot.columns[1].values[0].is_some() && plot.columns[1].values[1].is_none());
}

#[test]
fn latencies_of_results_are_lines_of_one_chart() {
    let mut c = comparison(vec![row(ALL, Metric::OpsPerS, &[&LOW, &HIGH])]);
    let of = |ns: u64| {
        let mut latencies = Distribution::default();
        let counts = vec![(ns, 100)];
        latencies.add(&plimsoll_results::SparseHistogram { counts });
        latencies
    };
    c.latencies = vec![Some(of(1_000_000)), Some(of(2_000_000))];
    let charts = charts(&c);
    let chart = charts.iter().find(|c| c.id == "distributions").unwrap();
    let lines: Vec<&str> = chart.columns.iter().map(|c| &*c.name).collect();
    assert_eq!(lines, ["a", "b"]);
    let median = chart.columns.iter().map(|c| c.values[5].unwrap());
    let median: Vec<f64> = median.map(|ms| ms.round()).collect();
    assert_eq!(median, [1.0, 2.0]);
}
