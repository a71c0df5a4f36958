//! Forest plots: ratios of figures with their intervals, one row for each operation.

use crate::html::chart::{Axis, Chart, ChartOverlay, Column, Interval, Mark, Scale, Unit};

/// Maximum number of rows of a forest plot: more have no room.
const MAX_ROWS: usize = 12;

/// Lowest drawn bound of an interval, as a fraction of the ratio: the axis is logarithmic and has no zero.
const LOWEST_BOUND: f64 = 0.01;

/// A ratio of a figure, above 0 and finite, with its interval; `None` without repeated runs.
pub(super) struct Ratio {
    pub(super) name: String,
    pub(super) ratio: f64,
    pub(super) interval: Option<(f64, f64)>,
}

/// Forest plot of ratios; `of` is the name of the ratio, such as `B / A`. `None` without rows.
pub(super) fn forest(
    (id, title): (String, String),
    mut about: String,
    of: &str,
    mut rows: Vec<Ratio>,
) -> Option<Chart> {
    let all = rows.len();
    if all > MAX_ROWS {
        about.push_str(&format!(" The first {MAX_ROWS} of {all} rows."));
        rows.truncate(MAX_ROWS);
    }
    let interval = |row: &Ratio| {
        let (low, high) = row.interval.unwrap_or((row.ratio, row.ratio));
        Interval {
            name: row.name.clone(),
            low: low.max(LOWEST_BOUND * row.ratio),
            middle: row.ratio,
            high,
        }
    };
    let column = |name, of: fn(&Ratio) -> Option<f64>| {
        Column::tabular(name, Unit::Ratio, rows.iter().map(of).collect())
    };
    let mut columns = vec![column(of, |row| Some(row.ratio))];
    if rows.iter().any(|row| row.interval.is_some()) {
        columns.push(column("from", |row| row.interval.map(|i| i.0)));
        columns.push(column("to", |row| row.interval.map(|i| i.1)));
    }
    (!rows.is_empty()).then(|| Chart {
        id,
        title,
        about,
        x: Axis::scaled(of, Unit::Ratio, Scale::Log),
        y: Axis::default(),
        at: rows.iter().map(|row| row.ratio).collect(),
        columns,
        extra: ChartOverlay::Intervals(rows.iter().map(interval).collect()),
        marks: vec![Mark {
            at: 1.0,
            text: "no difference".into(),
        }],
        ..Chart::default()
    })
}
