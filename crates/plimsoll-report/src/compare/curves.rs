//! Load curves side by side: measured ones and published ones.

use super::{ALL, ChangeVerdict, ComparedResult, Comparison, Metric, Row, row};
use plimsoll_measure::curve::{Curve, Point, PointVerdict, Rule};
use plimsoll_plan::Count;

/// A curve that is one of the compared results.
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
    /// How the curve ended, in a word.
    pub verdict: String,
    /// Fraction of the full data and rates that was measured; 1 is all.
    pub scale: f64,
    /// Whether it is a published result of SPEC's own benchmark, not measured by Plimsoll.
    pub published: bool,
    /// Its points.
    pub curve: Curve,
    /// Loads whose runs failed or were interrupted, and how: these are not points.
    pub left_out: Vec<(u64, String)>,
}

/// The loads at which curves are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadAxis {
    /// The requested loads.
    Offered,
    /// The achieved operations per second, which are the loads of published results of SPECsfs2008.
    Achieved,
}

/// Compares curves by their figures and by the latency at each load at which any of them was measured:
/// between two valid points of a curve the latency is interpolated linearly, beyond its ends and beside
/// an invalid point there is none.
///
/// Curves by the rule of SPECsfs2008 with different units of load are compared at the achieved
/// operations per second. A point at which no operation completed has no figures.
#[must_use]
pub fn of_curves(sets: &[CurveSet]) -> Comparison {
    let axis = axis(sets);
    let of = |pick: &dyn Fn(&Curve) -> Option<f64>| -> Vec<Vec<f64>> {
        let figures = sets.iter().map(|s| pick(&s.curve));
        figures.map(|f| f.into_iter().collect()).collect()
    };
    let ort = |rule| move |c: &Curve| c.overall_response_time(rule).ok();
    let peak = |c: &Curve| c.peak().map(|p| position(p, axis));
    let mut rows = Vec::new();
    rows.extend(row(ALL, Metric::Peak, of(&peak)));
    rows.extend(row(ALL, Metric::OrtMs, of(&ort(Rule::Sfs2014))));
    rows.extend(row(ALL, Metric::Ort2008Ms, of(&ort(Rule::Sfs2008))));
    let lines: Vec<Vec<Point>> = sets.iter().map(|s| line(&s.curve, axis)).collect();
    let mut loads: Vec<f64> = lines.iter().flatten().map(|p| p.load).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    for load in loads {
        let number = match load.fract() == 0.0 && load < 1e15 {
            true => Count(load as u64).to_string(),
            false => load.to_string(),
        };
        let at: Vec<Option<Point>> = lines.iter().map(|l| between(l, load)).collect();
        match axis {
            LoadAxis::Offered => {
                let name = format!("load {number}");
                rows.extend(point_row(&name, load, Metric::MeanMs, &at, |p| {
                    p.latency_ms
                }));
                rows.extend(point_row(&name, load, Metric::OpsPerS, &at, |p| p.achieved));
            }
            LoadAxis::Achieved => {
                let name = format!("{number} ops/s");
                rows.extend(point_row(&name, load, Metric::MeanMs, &at, |p| {
                    p.latency_ms
                }));
            }
        }
    }
    let side = |s: &CurveSet| ComparedResult {
        name: s.name.clone(),
        workload: s.workload.clone(),
        runs: 1,
        verdict: s.verdict.clone(),
    };
    Comparison {
        sets: sets.iter().map(side).collect(),
        warnings: warnings(sets, axis),
        load_axis: Some(axis_name(sets, axis)),
        rows,
    }
}

/// What the loads of an axis are.
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

/// Position of a point on the axis; throughputs to thousandths, as reports print them.
fn position(point: &Point, axis: LoadAxis) -> f64 {
    match axis {
        LoadAxis::Offered => point.load,
        LoadAxis::Achieved => (point.achieved * 1000.0).round() / 1000.0,
    }
}

/// The points by their position on the axis. Beyond the peak, throughput falls while the load rises:
/// there a throughput does not have a single latency, and those points are omitted.
fn line(curve: &Curve, axis: LoadAxis) -> Vec<Point> {
    let mut line: Vec<Point> = Vec::new();
    for point in curve.points() {
        let load = position(point, axis);
        if load > line.last().map_or(0.0, |p| p.load) {
            line.push(Point { load, ..*point });
        }
    }
    line
}

/// The point at a load, or the interpolation between the valid points beside it; `None` if no operation
/// completed.
fn between(points: &[Point], load: f64) -> Option<Point> {
    if let Some(point) = points.iter().find(|p| p.load == load) {
        return (point.achieved > 0.0).then_some(*point);
    }
    let pair = points
        .windows(2)
        .find(|w| w[0].load < load && load < w[1].load)?;
    let counts = |p: &Point| p.verdict == PointVerdict::Valid && p.achieved > 0.0;
    if !pair.iter().all(counts) {
        return None;
    }
    let share = (load - pair[0].load) / (pair[1].load - pair[0].load);
    let mid = |pick: fn(&Point) -> f64| pick(&pair[0]) + share * (pick(&pair[1]) - pick(&pair[0]));
    Some(Point {
        load,
        achieved: mid(|p| p.achieved),
        latency_ms: mid(|p| p.latency_ms),
        verdict: PointVerdict::Valid,
    })
}

/// The row of a figure at a load; no change is computed to and from an invalid point.
fn point_row(
    name: &str,
    load: f64,
    metric: Metric,
    at: &[Option<Point>],
    pick: fn(&Point) -> f64,
) -> Option<Row> {
    let figures = at.iter().map(|p| p.iter().map(pick).collect()).collect();
    let mut row = row(name, metric, figures)?;
    row.load = Some(load);
    let invalid = |p: &Option<Point>| p.is_some_and(|p| p.verdict == PointVerdict::Invalid);
    let no_base = at.first().is_some_and(invalid);
    for (value, point) in row.values.iter_mut().zip(at) {
        let Some(value) = value else { continue };
        if no_base || invalid(point) {
            (value.change, value.difference) = (None, None);
            value.statement = match invalid(point) {
                true => ChangeVerdict::InvalidPoint,
                false => ChangeVerdict::NoBase,
            };
        }
    }
    Some(row)
}

/// The letters and digits of a name in lower case: reports write `Job_Sets` for `job sets`.
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
