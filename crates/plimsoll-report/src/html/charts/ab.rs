//! Charts of a paired comparison.

use crate::ab::{metric, primary_in_order};
use crate::compare::{Effect, Metric, PairedEffects};
use crate::html::chart::{
    Axis, Chart, ChartOverlay, Column, Interval, Mark, Scale, SeriesStyle, Unit,
};
use crate::html::charts::{over_percentile, percentile_positions};
use plimsoll_results::{Distribution, PairedComparison, PrimaryFigure, SeriesOf, Side};

/// Maximum number of rows of a forest plot: more have no room.
const MAX_ROWS: usize = 12;

/// Effects with intervals, latency distributions, and the primary figure in the order of the runs; `distributions` are
/// the latencies of all operations in the pairs that count, of A and of B.
#[must_use]
pub fn of_pairs(
    of: SeriesOf<'_, PairedComparison>,
    effects: &PairedEffects,
    distributions: &[Distribution; 2],
) -> Vec<Chart> {
    // Forest plots show throughput and the percentiles of the latency.
    let is_shown = |m: &Metric| *m == Metric::OpsPerS || matches!(m, Metric::PercentileMs(_));
    let shown = effects.metrics().into_iter().filter(is_shown);
    let mut charts: Vec<Chart> = shown.map(|metric| forest(effects, metric)).collect();
    charts.extend(distribution(distributions));
    charts.extend(in_order(of));
    charts
}

/// Forest plot of a figure that has effects: the effect on each operation with its interval.
fn forest(effects: &PairedEffects, metric: Metric) -> Chart {
    let rows = effects.rows.iter().filter(|row| row.metric == metric);
    let rows: Vec<&Effect> = rows.take(MAX_ROWS).collect();
    let interval = |row: &&Effect| Interval {
        name: row.operation.clone(),
        low: row.ratio.interval.0,
        middle: row.ratio.ratio,
        high: row.ratio.interval.1,
    };
    let column = |name, of: fn(&Effect) -> f64| {
        let values = rows.iter().map(|row| Some(of(row)));
        Column::tabular(name, Unit::Ratio, values.collect())
    };
    let title = metric.title();
    Chart {
        id: format!("effect-{}", String::from(metric).replace(['.', '_'], "-")),
        title: format!("Effect on {title}, B by A"),
        about: format!(
            "The ratio of {title} with its 95 % interval: an interval that contains 1 shows no difference."
        ),
        x: Axis::scaled("B / A", Unit::Ratio, Scale::Log),
        y: Axis::default(),
        at: rows.iter().map(|row| row.ratio.ratio).collect(),
        columns: vec![
            column("B / A", |row| row.ratio.ratio),
            column("from", |row| row.ratio.interval.0),
            column("to", |row| row.ratio.interval.1),
        ],
        extra: ChartOverlay::Intervals(rows.iter().map(interval).collect()),
        marks: vec![Mark {
            at: 1.0,
            text: "no difference".into(),
        }],
        ..Chart::default()
    }
}

/// Latency over percentile, a line for each variant; `None` without samples.
fn distribution(distributions: &[Distribution; 2]) -> Option<Chart> {
    let max = distributions.iter().map(Distribution::count).max();
    let at = percentile_positions(max.filter(|max| *max > 0)?);
    let column = |(number, (side, of)): (usize, (Side, &Distribution))| {
        let (style, values) = (SeriesStyle::Series(number), of.quantiles_ms(&at));
        Column::drawn(&side.to_string(), Unit::Milliseconds, values, style)
    };
    let variants = Side::BOTH.into_iter().zip(distributions).enumerate();
    let columns: Vec<Column> = variants.map(column).collect();
    let about = "The latency that the given percentage of all operations does not exceed, in all pairs that count \
                 together.";
    let names = ("distributions", "Latency distributions of A and B");
    Some(over_percentile(names, about.into(), at, columns))
}

/// The primary figure of each run, in the order of the runs; `None` without a run that has the figure.
fn in_order(of: SeriesOf<'_, PairedComparison>) -> Option<Chart> {
    let primary = metric(of.figures.primary);
    let unit = match of.figures.primary {
        PrimaryFigure::OpsPerS | PrimaryFigure::BytesPerS => Unit::Number,
        PrimaryFigure::MeanMs | PrimaryFigure::Percentile(_) => Unit::Milliseconds,
    };
    let columns: Vec<Column> = (0..)
        .zip(Side::BOTH)
        .map(|(number, side)| {
            let values = primary_in_order(of, side);
            Column::drawn(&side.to_string(), unit, values, SeriesStyle::Series(number))
        })
        .collect();
    let is_known = columns.iter().any(|c| c.values.iter().any(Option::is_some));
    is_known.then(|| Chart {
        id: "order".into(),
        title: format!("Runs in their order, {}", primary.title()),
        about: "A run that does not count is left out.".into(),
        x: Axis::linear("run", Unit::Count),
        y: Axis::scaled(&primary.title(), unit, Scale::Linear),
        at: (1..=of.runs.len()).map(|n| n as f64).collect(),
        columns,
        ..Chart::default()
    })
}
