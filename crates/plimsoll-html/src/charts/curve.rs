//! Charts of load curves.

use crate::chart::{Axis, Chart, ChartOverlay, Column, SeriesStyle, Unit};
use plimsoll_plan::Count;
use plimsoll_results::{CurvePoint, LoadCurve, Verdict};

/// Response time and throughput over load; empty without points.
#[must_use]
pub fn of_curve(curve: &LoadCurve) -> Vec<Chart> {
    if curve.points.is_empty() {
        return vec![];
    }
    vec![response(curve), throughput(curve)]
}

fn load_axis(curve: &LoadCurve) -> Axis {
    let label = match curve.metric.as_str() {
        "" => "load".to_owned(),
        metric => format!("load in {metric}"),
    };
    Axis::linear(&label, Unit::Count)
}

fn loads(curve: &LoadCurve) -> Vec<f64> {
    curve.points.iter().map(|p| p.load as f64).collect()
}

/// Two columns of one figure: of valid points, and of those that are not.
fn by_verdict(
    curve: &LoadCurve,
    names: [&str; 2],
    unit: Unit,
    figure: impl Fn(&CurvePoint) -> Option<f64>,
) -> Vec<Column> {
    let column = |name: &str, valid: bool, ink| Column {
        name: name.into(),
        unit,
        values: curve
            .points
            .iter()
            .map(|p| figure(p).filter(|_| (p.verdict == Verdict::Valid) == valid))
            .collect(),
        ink: Some(ink),
    };
    let mut columns = vec![column(names[0], true, SeriesStyle::Series(0))];
    if curve.points.iter().any(|p| p.verdict != Verdict::Valid) {
        columns.push(column(names[1], false, SeriesStyle::Series(1)));
    }
    columns
}

fn response(curve: &LoadCurve) -> Chart {
    let mut about = "Mean response time at each load.".to_owned();
    if let Some(ms) = curve.ort_ms {
        let ort = Unit::Milliseconds.show(ms);
        about.push_str(&format!(" The overall response time is {ort}."));
    }
    let mut columns = by_verdict(
        curve,
        ["mean response time", "of invalid points"],
        Unit::Milliseconds,
        |p| p.mean_ms,
    );
    columns.push(Column {
        name: "99th percentile".into(),
        unit: Unit::Milliseconds,
        values: curve.points.iter().map(|p| p.p99_ms).collect(),
        ink: None,
    });
    Chart {
        id: "load-curve".into(),
        title: "Response time over load".into(),
        about,
        x: load_axis(curve),
        y: Axis::linear("response time", Unit::Milliseconds),
        at: loads(curve),
        columns,
        extra: line(curve),
    }
}

/// The load line, where there is one.
fn line(curve: &LoadCurve) -> ChartOverlay {
    match curve.load_line {
        Some(load) => ChartOverlay::Mark {
            at: load as f64,
            text: format!("load line {}", Count(load)),
        },
        None => ChartOverlay::None,
    }
}

fn throughput(curve: &LoadCurve) -> Chart {
    let mut columns = by_verdict(
        curve,
        ["achieved", "achieved, invalid points"],
        Unit::Number,
        |p| Some(p.achieved_ops_per_s),
    );
    if curve.points.iter().any(|p| p.offered_ops_per_s.is_some()) {
        columns.push(Column {
            name: "offered".into(),
            unit: Unit::Number,
            values: curve.points.iter().map(|p| p.offered_ops_per_s).collect(),
            ink: Some(SeriesStyle::Series(7)),
        });
    }
    Chart {
        id: "throughput".into(),
        title: "Throughput over load".into(),
        about: "Offered and achieved operations per second.".into(),
        x: load_axis(curve),
        y: Axis::linear("operations/s", Unit::Number),
        at: loads(curve),
        columns,
        extra: line(curve),
    }
}
