//! Load curves side by side: measured ones and published ones.

use super::{ALL, Comparison, Metric, Side, row};
use plimsoll_measure::curve::{Curve, Point, Rule};
use plimsoll_plan::Count;

/// A curve that is one of the results compared.
#[derive(Debug, Clone)]
pub struct CurveSet {
    /// Name of the results.
    pub name: String,
    /// What was measured: a workload, or the metric of a published report.
    pub workload: String,
    /// What the load is counted in.
    pub unit: String,
    /// How the curve ended, in a word.
    pub verdict: String,
    /// Its points.
    pub curve: Curve,
}

/// Compares curves by their figures and by the latency at each load that any of them was measured
/// at: between two points of a curve the latency is taken to lie on a straight line, beyond its
/// ends there is none.
#[must_use]
pub fn of_curves(sets: &[CurveSet]) -> Comparison {
    let of = |pick: &dyn Fn(&Curve) -> Option<f64>| -> Vec<Vec<f64>> {
        let figures = sets.iter().map(|s| pick(&s.curve));
        figures.map(|f| f.into_iter().collect()).collect()
    };
    let ort = |rule| move |c: &Curve| c.overall_response_time(rule).ok();
    let mut rows = Vec::new();
    rows.extend(row(ALL, Metric::Peak, of(&|c| c.peak().map(|p| p.load))));
    rows.extend(row(ALL, Metric::OrtMs, of(&ort(Rule::Sfs2014))));
    rows.extend(row(ALL, Metric::Ort2008Ms, of(&ort(Rule::Sfs2008))));
    let mut loads: Vec<f64> = sets
        .iter()
        .flat_map(|s| s.curve.points().iter().map(|p| p.load))
        .collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    for load in loads {
        let name = match load.fract() == 0.0 && load < 1e15 {
            true => format!("load {}", Count(load as u64)),
            false => format!("load {load}"),
        };
        let at = |pick: fn(&Point) -> f64| of(&move |c: &Curve| between(c, load, pick));
        rows.extend(row(&name, Metric::MeanMs, at(|p| p.latency_ms)));
        rows.extend(row(&name, Metric::OpsPerS, at(|p| p.achieved)));
    }
    let side = |s: &CurveSet| Side {
        name: s.name.clone(),
        workload: s.workload.clone(),
        runs: 1,
        verdict: s.verdict.clone(),
    };
    Comparison {
        sets: sets.iter().map(side).collect(),
        warnings: warnings(sets),
        rows,
    }
}

/// A figure at a load, on a straight line between the points beside it.
fn between(curve: &Curve, load: f64, pick: fn(&Point) -> f64) -> Option<f64> {
    let points = curve.points();
    if let Some(point) = points.iter().find(|p| p.load == load) {
        return Some(pick(point));
    }
    let pair = points
        .windows(2)
        .find(|w| w[0].load < load && load < w[1].load)?;
    let share = (load - pair[0].load) / (pair[1].load - pair[0].load);
    Some(pick(&pair[0]) + share * (pick(&pair[1]) - pick(&pair[0])))
}

fn warnings(sets: &[CurveSet]) -> Vec<String> {
    let Some(first) = sets.first() else {
        return vec![];
    };
    let others = || sets.iter().skip(1);
    let mut warnings = Vec::new();
    if let Some(other) = others().find(|s| s.unit != first.unit) {
        warnings.push(format!(
            "loads are not of one kind: {}, but {} of {}",
            first.unit, other.unit, other.name
        ));
    }
    if let Some(other) = others().find(|s| s.workload != first.workload) {
        warnings.push(format!(
            "the workload differs: {}, but {} of {}",
            first.workload, other.workload, other.name
        ));
    }
    warnings
}
