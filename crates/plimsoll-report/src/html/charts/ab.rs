//! Charts of a paired comparison.

use crate::ab::{metric, primary_in_order};
use crate::compare::{Effect, Metric, PairedEffects};
use crate::html::chart::{Axis, Chart, Column, Scale, SeriesStyle, Unit};
use crate::html::charts::forest::{Ratio, forest};
use crate::html::charts::{distributions_of, id_of};
use plimsoll_results::{Distribution, PairedComparison, PrimaryFigure, SeriesOf, Side};

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
    let mut charts: Vec<Chart> = shown
        .filter_map(|metric| effects_on(effects, metric))
        .collect();
    let variants = Side::BOTH.iter().map(Side::to_string).zip(distributions);
    charts.extend(distributions_of(
        "Latency distributions of A and B",
        "in all pairs that count together",
        &variants.collect::<Vec<_>>(),
    ));
    charts.extend(in_order(of));
    charts
}

/// Forest plot of a figure: the effect on each operation with its interval; `None` for a figure without effects.
fn effects_on(effects: &PairedEffects, metric: Metric) -> Option<Chart> {
    let rows = effects.rows.iter().filter(|row| row.metric == metric);
    let ratio = |row: &Effect| Ratio {
        name: row.operation.clone(),
        ratio: row.ratio.ratio,
        interval: Some(row.ratio.interval),
    };
    let title = metric.title();
    forest(
        (
            format!("effect-{}", id_of(metric)),
            format!("Effect on {title}, B by A"),
        ),
        format!(
            "The ratio of {title} with its 95 % interval: an interval that contains 1 shows no difference."
        ),
        "B / A",
        rows.map(ratio).collect(),
    )
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
