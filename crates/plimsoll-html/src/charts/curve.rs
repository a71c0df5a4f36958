//! Charts of load curves.

use super::loads::{Loads, offered};
use crate::chart::{Chart, Column, SeriesStyle, Unit};
use plimsoll_results::{CurvePoint, LoadCurve, Verdict};

/// Response time and throughput over load; empty without points.
#[must_use]
pub fn of_curve(curve: &LoadCurve) -> Vec<Chart> {
    if curve.points.is_empty() {
        return vec![];
    }
    let loads = Loads {
        metric: &curve.metric,
        at: values(curve, |p| p.load as f64),
        load_line: curve.load_line,
    };
    vec![response(curve, &loads), throughput(curve, &loads)]
}

fn values<T>(curve: &LoadCurve, figure: impl Fn(&CurvePoint) -> T) -> Vec<T> {
    curve.points.iter().map(figure).collect()
}

/// Two columns of one figure: of the valid points, and of the others if there are any.
fn by_verdict(
    curve: &LoadCurve,
    names: [&str; 2],
    unit: Unit,
    figure: impl Fn(&CurvePoint) -> Option<f64>,
) -> Vec<Column> {
    let is_valid = |p: &CurvePoint| p.verdict == Verdict::Valid;
    let column = |name: &str, valid: bool, number| {
        let values = values(curve, |p| figure(p).filter(|_| is_valid(p) == valid));
        Column::drawn(name, unit, values, SeriesStyle::Series(number))
    };
    let mut columns = vec![column(names[0], true, 0)];
    if !curve.points.iter().all(is_valid) {
        columns.push(column(names[1], false, 1));
    }
    columns
}

fn response(curve: &LoadCurve, loads: &Loads<'_>) -> Chart {
    let mut about = "Mean response time at each load.".to_owned();
    if let Some(ms) = curve.ort_ms {
        let ort = Unit::Milliseconds.show(ms);
        about.push_str(&format!(" The overall response time is {ort}."));
    }
    let names = ["mean response time", "of invalid points"];
    let mut columns = by_verdict(curve, names, Unit::Milliseconds, |p| p.mean_ms);
    let p99 = values(curve, |p| p.p99_ms);
    columns.push(Column::tabular("99th percentile", Unit::Milliseconds, p99));
    loads.response("load-curve", about, columns)
}

fn throughput(curve: &LoadCurve, loads: &Loads<'_>) -> Chart {
    let names = ["achieved", "achieved, invalid points"];
    let mut columns = by_verdict(curve, names, Unit::Number, |p| Some(p.achieved_ops_per_s));
    columns.extend(offered(values(curve, |p| p.offered_ops_per_s)));
    loads.throughput(columns)
}
