//! Chart of compared load curves.

use crate::compare::{Comparison, Metric, Row, letter};
use crate::html::chart::{Axis, Chart, Column, SeriesStyle, Unit};

/// Response time over load, a line for each curve; `None` unless curves are compared. Curves are interpolated between
/// their points, so all have values at the same loads.
#[must_use]
pub fn of_comparison(comparison: &Comparison) -> Option<Chart> {
    let at_loads = |r: &&Row| r.load.is_some() && r.metric == Metric::MeanMs;
    let rows: Vec<&Row> = comparison.rows().iter().filter(at_loads).collect();
    let column = |i: usize, name: &str| {
        let value = |r: &&Row| r.values[i].as_ref().map(|v| v.mean);
        let name = format!("{}: {name}", letter(i));
        let values = rows.iter().map(value).collect();
        Column::drawn(&name, Unit::Milliseconds, values, SeriesStyle::Series(i))
    };
    let sets = comparison.sets.iter().enumerate();
    (!rows.is_empty()).then(|| Chart {
        id: "curves".into(),
        title: "Response time over load".into(),
        about: "Mean response time; between the points of a curve it is interpolated.".into(),
        x: Axis::linear(
            comparison.load_axis.as_deref().unwrap_or("load"),
            Unit::Count,
        ),
        y: Axis::linear("response time", Unit::Milliseconds),
        at: rows.iter().filter_map(|r| r.load).collect(),
        columns: sets.map(|(i, set)| column(i, &set.name)).collect(),
        ..Chart::default()
    })
}
