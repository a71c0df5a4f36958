//! Comparison of load curves, measured and published.

use super::{ALL, ComparedResult, Comparison, Metric, Row, Value};
use plimsoll_measure::curve::{Curve, Point, PointVerdict, Rule};
use plimsoll_plan::Count;
use plimsoll_results::Verdict;

/// A load curve as one of the compared results.
#[derive(Debug, Clone)]
pub struct CurveSet {
    /// Name of the results.
    pub name: String,
    /// Name of the workload, or of the metric of a published report.
    pub workload: String,
    /// Name of the metric in a disclosure report, such as `SFS 2014 VDA-style`.
    pub metric: String,
    /// Unit of the load.
    pub unit: String,
    /// End of the curve, in a word.
    pub ending: String,
    /// Verdict on the curve: valid if it ended as planned or by a stop rule.
    pub verdict: Verdict,
    /// Fraction of the full data and rates that was measured; 1 is all.
    pub scale: f64,
    /// Whether the curve is a published result of SPEC's own benchmark, rather than measured by Plimsoll.
    pub published: bool,
    /// Points of the curve.
    pub curve: Curve,
    /// Loads whose runs failed or were interrupted, with the verdict; they are not points of the curve.
    pub left_out: Vec<(u64, String)>,
}

/// Meaning of the loads at which curves are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadAxis {
    /// Requested loads.
    Offered,
    /// Achieved operations per second, the loads of published results of SPECsfs2008.
    Achieved,
}

/// Compares curves by their figures, and by the latency at each load at which any curve was measured. Between two valid
/// points of a curve the latency is interpolated linearly; beyond the ends, beside an invalid point and across a load
/// whose run failed, the curve has no latency.
///
/// If the units of load differ and a curve follows the rule of SPECsfs2008, curves are compared at their achieved
/// operations per second. A point at which no operation completed has no figures.
#[must_use]
pub fn of_curves(sets: &[CurveSet]) -> Comparison {
    let axis = axis(sets);
    let of = |pick: &dyn Fn(&Curve) -> Option<f64>| {
        let figure = |s: &CurveSet| Value::new(vec![pick(&s.curve)], s.verdict);
        sets.iter().map(figure).collect()
    };
    let ort = |rule| move |c: &Curve| c.overall_response_time(rule).ok();
    let peak = |c: &Curve| c.peak().map(|p| position(p, axis));
    let mut rows = Vec::new();
    rows.extend(Row::new(ALL, Metric::Peak, of(&peak)));
    rows.extend(Row::new(ALL, Metric::OrtMs, of(&ort(Rule::Sfs2014))));
    rows.extend(Row::new(ALL, Metric::Ort2008Ms, of(&ort(Rule::Sfs2008))));
    let lines: Vec<Vec<Option<Point>>> = sets.iter().map(|s| line(s, axis)).collect();
    let points = lines.iter().flatten().flatten();
    let mut loads: Vec<f64> = points.map(|p| p.load).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    for load in loads {
        let number = match load.fract() == 0.0 && load < 1e15 {
            true => Count(load as u64).to_string(),
            false => load.to_string(),
        };
        let at: Vec<Option<Point>> = lines.iter().map(|l| between(l, load)).collect();
        let row = |name: &str, metric, pick: fn(&Point) -> f64| {
            let sides = sets.iter().zip(&at);
            let figures = sides.map(|(s, point)| figure(s, point.as_ref(), pick));
            let row = Row::new(name, metric, figures.collect())?;
            Some(Row {
                load: Some(load),
                ..row
            })
        };
        match axis {
            LoadAxis::Offered => {
                let name = format!("load {number}");
                rows.extend(row(&name, Metric::MeanMs, |p| p.latency_ms));
                rows.extend(row(&name, Metric::OpsPerS, |p| p.achieved));
            }
            LoadAxis::Achieved => {
                let name = format!("{number} ops/s");
                rows.extend(row(&name, Metric::MeanMs, |p| p.latency_ms));
            }
        }
    }
    let side = |s: &CurveSet| ComparedResult {
        name: s.name.clone(),
        workload: s.workload.clone(),
        runs: 1,
        verdict: s.ending.clone(),
    };
    let sides = sets.iter().map(side).collect();
    let load_axis = axis_name(sets, axis);
    Comparison::new(sides, warnings(sets, axis), Some(load_axis), rows)
}

/// A figure of a curve at a load.
fn figure(set: &CurveSet, point: Option<&Point>, pick: fn(&Point) -> f64) -> Option<Value> {
    let point = point?;
    let verdict = match point.verdict {
        PointVerdict::Invalid => Verdict::Invalid,
        PointVerdict::Valid => set.verdict,
    };
    Value::new(vec![Some(pick(point))], verdict)
}

/// Name of the axis with its unit.
fn axis_name(sets: &[CurveSet], axis: LoadAxis) -> String {
    match axis {
        LoadAxis::Achieved => "achieved operations/s".into(),
        LoadAxis::Offered if has_one_unit(sets) => format!("load in {}", sets[0].unit),
        LoadAxis::Offered => "load".into(),
    }
}

fn has_one_unit(sets: &[CurveSet]) -> bool {
    sets.windows(2).all(|w| key(&w[0].unit) == key(&w[1].unit))
}

fn axis(sets: &[CurveSet]) -> LoadAxis {
    let of_2008 = |s: &CurveSet| metric_key(&s.metric).starts_with("sfs2008");
    match !has_one_unit(sets) && sets.iter().any(of_2008) {
        true => LoadAxis::Achieved,
        false => LoadAxis::Offered,
    }
}

/// Position of a point on the axis; throughputs are rounded to thousandths, as in printed reports.
fn position(point: &Point, axis: LoadAxis) -> f64 {
    match axis {
        LoadAxis::Offered => point.load,
        LoadAxis::Achieved => (point.achieved * 1000.0).round() / 1000.0,
    }
}

/// The points by position on the axis. `None` marks a load without a known latency, and interrupts interpolation: no
/// operation completed, the run failed, or the throughput was not above the throughput at a lower load and so would
/// have two latencies.
fn line(set: &CurveSet, axis: LoadAxis) -> Vec<Option<Point>> {
    let points = set.curve.points().iter().map(|p| (p.load, Some(p)));
    let left_out = set.left_out.iter().map(|(load, _)| (*load as f64, None));
    let mut loads: Vec<(f64, Option<&Point>)> = points.chain(left_out).collect();
    loads.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut last = 0.0;
    let entry = |(_, point): (f64, Option<&Point>)| {
        let point = point.filter(|p| p.achieved > 0.0)?;
        let load = position(point, axis);
        (load > last).then(|| {
            last = load;
            Point { load, ..*point }
        })
    };
    loads.into_iter().map(entry).collect()
}

/// The point at a load, or the interpolation between the two adjacent valid points.
fn between(line: &[Option<Point>], load: f64) -> Option<Point> {
    if let Some(point) = line.iter().flatten().find(|p| p.load == load) {
        return Some(*point);
    }
    let valid = |p: &Option<Point>| p.filter(|p| p.verdict == PointVerdict::Valid);
    let pairs = line
        .windows(2)
        .filter_map(|w| Some((valid(&w[0])?, valid(&w[1])?)));
    let (low, high) = pairs
        .into_iter()
        .find(|(low, high)| low.load < load && load < high.load)?;
    let share = (load - low.load) / (high.load - low.load);
    let mid = |pick: fn(&Point) -> f64| pick(&low) + share * (pick(&high) - pick(&low));
    Some(Point {
        load,
        achieved: mid(|p| p.achieved),
        latency_ms: mid(|p| p.latency_ms),
        verdict: PointVerdict::Valid,
    })
}

/// Letters and digits of a name in lower case, because reports write `Job_Sets` for `job sets`.
fn key(name: &str) -> String {
    let kept = name.chars().filter(|c| c.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

/// A key that is equal for the published metric `SPEC SFS2014_vda` and for `SFS 2014 VDA-style`.
fn metric_key(metric: &str) -> String {
    let key = key(&metric.replace("(R)", "").replace("(TM)", ""));
    let key = key.strip_prefix("spec").unwrap_or(&key);
    let key = key.strip_suffix("style").unwrap_or(key);
    key.replacen("storagesolution", "storage", 1)
}

fn warnings(sets: &[CurveSet], axis: LoadAxis) -> Vec<String> {
    let Some(first) = sets.first() else {
        return vec![];
    };
    let others = || sets.iter().skip(1);
    let mut warnings = Vec::new();
    for set in sets {
        let left_out = set.left_out.iter().map(|(load, how)| {
            let load = Count(*load);
            format!(
                "{}: the run at load {load} {how}, and is left out",
                set.name
            )
        });
        warnings.extend(left_out);
    }
    let (unit, metric) = (key(&first.unit), metric_key(&first.metric));
    if let Some(other) = others().find(|s| key(&s.unit) != unit) {
        let then = match axis {
            LoadAxis::Offered => "",
            LoadAxis::Achieved => "; compared at the achieved operations per second",
        };
        warnings.push(format!(
            "the unit of load differs: {}, but {} of {}{then}",
            first.unit, other.unit, other.name
        ));
    }
    if let Some(other) = others().find(|s| metric_key(&s.metric) != metric) {
        warnings.push(format!(
            "the workload differs: {}, but {} of {}",
            first.workload, other.workload, other.name
        ));
    }
    if let Some(other) = others().find(|s| s.scale != first.scale) {
        warnings.push(format!(
            "the scale differs: {}, but {} of {}: not comparable",
            first.scale, other.scale, other.name
        ));
    }
    let of = |published| sets.iter().find(|s| s.published == published);
    if let (Some(published), Some(ours)) = (of(true), of(false)) {
        warnings.push(format!(
            "{} is a published result; {} was measured with Plimsoll: an open equivalent, not a \
             SPEC result",
            published.name, ours.name
        ));
    }
    warnings
}
