//! Charts of compared results.

use super::curve::INVALID;
use super::distributions_of;
use super::forest::{Ratio, forest};
use super::loads::axis_of_latencies;
use crate::compare::{Comparison, Metric, Row, Value};
use crate::html::chart::{Axis, Chart, Column, CrossedPoints, SeriesStyle, Unit};
use plimsoll_results::Verdict;

/// Response time over load, a line for each curve; `None` unless curves are compared. Curves are interpolated between
/// their points, so all have values at the same loads.
#[must_use]
pub fn of_comparison(comparison: &Comparison) -> Option<Chart> {
    let at_loads = |r: &&Row| r.load.is_some() && r.metric == Metric::MeanMs;
    let rows: Vec<&Row> = comparison.rows().iter().filter(at_loads).collect();
    let column = |(i, name): (usize, &String)| {
        let values = rows.iter().map(|r| r.values[i].as_ref().map(|v| v.mean));
        let values = values.collect();
        let is_invalid = |r: &Row| matches!(&r.values[i], Some(v) if v.verdict == Verdict::Invalid);
        let crossed = (0..rows.len()).filter(|at| is_invalid(rows[*at]));
        Column {
            crossed: CrossedPoints {
                at: crossed.collect(),
                word: INVALID,
            },
            ..Column::drawn(name, Unit::Milliseconds, values, SeriesStyle::Series(i))
        }
    };
    let labels = comparison.labels().iter().enumerate();
    let means = rows
        .iter()
        .flat_map(|r| r.values.iter().flatten().map(|v| v.mean));
    (!rows.is_empty()).then(|| Chart {
        id: "curves".into(),
        title: "Response time over load".into(),
        about: "Mean response time; between the points of a curve it is interpolated.".into(),
        x: Axis::linear(
            comparison.load_axis.as_deref().unwrap_or("load"),
            Unit::Count,
        ),
        y: axis_of_latencies("response time", means.clone()),
        at: rows.iter().filter_map(|r| r.load).collect(),
        columns: labels.map(column).collect(),
        ..Chart::default()
    })
}

/// Minimum number of operations in a run for a ratio without an interval: the count of fewer random operations varies
/// by more than 18 %.
const FEWEST_OPERATIONS: u64 = 30;

/// Forest plot of a figure: for each operation, the figure of each further result by the figure of the first; `None`
/// for load curves, and if no operation has a ratio.
pub(crate) fn relative_changes(comparison: &Comparison, metric: Metric) -> Option<Chart> {
    let (first, others) = comparison.labels().split_first()?;
    if comparison.load_axis.is_some() {
        return None;
    }
    let is_row = |row: &&Row| row.metric == metric && row.is_shown();
    let is_alone = others.len() == 1;
    let rows = comparison.rows().iter().filter(is_row);
    let ratios = rows.flat_map(|row| {
        let base = row.values.first().and_then(Option::as_ref);
        let values = row.values.iter().skip(1).zip(others);
        values.filter_map(move |(value, label)| {
            let name = match is_alone {
                true => row.operation.clone(),
                false => format!("{}, {label}", row.operation),
            };
            ratio(name, base?, value.as_ref()?)
        })
    });
    let rows: Vec<Ratio> = ratios.collect();
    let title = metric.title();
    let about: String = match rows.iter().any(|row| row.interval.is_some()) {
        true => {
            "The ratio with the 95 % interval of the difference of the means: an interval that contains 1 shows no \
             difference."
                .into()
        }
        false => format!(
            "The ratio, without an interval: repeated runs have intervals. Operations with fewer than \
             {FEWEST_OPERATIONS} executions in a run are not drawn."
        ),
    };

    let (of, title) = match others {
        [other] => (
            format!("{other} / {first}"),
            format!("Relative change of {title}, {other} by {first}"),
        ),
        _ => (
            format!("result / {first}"),
            format!("Relative change of {title}, each result by {first}"),
        ),
    };
    let id = format!("change-{}", super::id_of(metric));
    forest((id, title), about, &of, rows)
}

/// The ratio of two exactly known figures above 0, with the interval of their difference; `None` without an interval if
/// a run has too few operations.
fn ratio(name: String, base: &Value, value: &Value) -> Option<Ratio> {
    let exact = |v: &Value| v.enough_samples && !v.at_least && v.mean > 0.0;
    let ratio = 1.0 + value.change?;
    if !(exact(base) && exact(value) && ratio.is_finite() && ratio > 0.0) {
        return None;
    }
    let is_few = |v: &Value| v.operations.is_some_and(|n| n < FEWEST_OPERATIONS);
    if value.difference.is_none() && (is_few(base) || is_few(value)) {
        return None;
    }
    let relative = |bound: f64| 1.0 + bound / base.mean;
    Some(Ratio {
        name,
        ratio,
        interval: value
            .difference
            .map(|d| (relative(d.interval.0), relative(d.interval.1))),
    })
}

/// Latencies of all operations over percentile, a line for each result whose latencies were read; `None` without
/// latencies.
pub(crate) fn latencies(comparison: &Comparison) -> Option<Chart> {
    let labels = comparison.labels().iter().zip(&comparison.latencies);
    let known = labels.filter_map(|(label, of)| Some((label.clone(), of.as_ref()?)));
    let known: Vec<_> = known.collect();
    distributions_of(
        "Latency distributions",
        "in all runs of the result together",
        &known,
    )
}
