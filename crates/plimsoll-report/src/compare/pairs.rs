//! Effects of a paired comparison on every figure, tested together.

use super::runs::{Figures, RowKey, fell_short, of_all_metrics, operation_rows};
use super::{ALL, Metric};
use plimsoll_measure::compare::{PairedRatio, significant};
use plimsoll_results::{LatencyKind, Percentile, Percentiles, Run};
use std::collections::BTreeSet;

/// Effect on one figure of one operation: B by A.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// Name of the operation; [`ALL`] for all operations together.
    pub operation: String,
    /// Compared figure.
    pub metric: Metric,
    /// Geometric means of the figure over the pairs, of A and of B.
    pub means: (f64, f64),
    /// Ratio of the figure, with interval and test.
    pub ratio: PairedRatio,
    /// Whether the difference is significant: of the primary figure by itself, of the other figures at the false
    /// discovery rate of all of them together.
    pub is_real: bool,
}

impl Effect {
    /// Whether the figure of B is better than the figure of A.
    #[must_use]
    pub fn is_better(&self) -> bool {
        (self.ratio.ratio > 1.0) == self.metric.more_is_better()
    }
}

/// Effects on all figures that pairs of runs have.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PairedEffects {
    /// The effects: all operations together first, then each operation.
    pub rows: Vec<Effect>,
    /// Number of figures that were tested together: all but the primary figure.
    pub tested: usize,
}

impl PairedEffects {
    /// The figures that have effects, in the order of the tables.
    #[must_use]
    pub fn metrics(&self) -> BTreeSet<Metric> {
        self.rows.iter().map(|row| row.metric).collect()
    }
}

/// Compares pairs of runs, A before B, figure by figure, with the requested percentiles, which the runs must have.
/// `primary` is the figure of all operations that was chosen before the runs, which is tested by itself.
#[must_use]
pub fn of_pairs(
    pairs: &[(&Run, &Run)],
    primary: Metric,
    percentiles: Option<&Percentiles>,
) -> PairedEffects {
    let runs = || pairs.iter().flat_map(|(a, b)| [*a, *b]);
    let is_paced = runs().any(|run| run.summary.service.is_some());
    let all = of_all_metrics(percentiles, is_paced).into_iter();
    let all = all.filter(|metric| *metric != Metric::Errors);
    let all_rows = vec![(ALL.to_owned(), RowKey::All, all.collect::<Vec<_>>())];
    let shown = Percentiles::shown_percentiles(percentiles, &[Percentile::P99]);
    let of_one: Vec<Metric> = [Metric::OpsPerS, Metric::MeanMs]
        .into_iter()
        .chain(shown.iter().map(|p| Metric::PercentileMs(*p)))
        .collect();
    // A group stands for its operations.
    let own = operation_rows(runs())
        .into_iter()
        .filter(|row| !row.is_in_group);
    let own = own.map(|row| (row.name, row.key, of_one.clone()));
    let effects = all_rows
        .into_iter()
        .chain(own)
        .flat_map(|(name, key, metrics)| {
            let effect = |metric: &Metric| effect(name.clone(), &key, *metric, pairs);
            metrics.iter().filter_map(effect).collect::<Vec<Effect>>()
        });
    let mut rows: Vec<Effect> = effects.collect();
    let is_primary = |row: &Effect| row.operation == ALL && row.metric == primary;
    let (mut first, mut others): (Vec<&mut Effect>, Vec<&mut Effect>) =
        rows.iter_mut().partition(|row| is_primary(row));
    for row in &mut first {
        row.is_real = row.ratio.is_significant();
    }
    let p_values: Vec<f64> = others.iter().map(|row| row.ratio.p).collect();
    for (row, is_real) in others.iter_mut().zip(significant(&p_values)) {
        row.is_real = is_real;
    }
    PairedEffects {
        tested: others.len(),
        rows,
    }
}

/// Effect on a figure, over the pairs of which both runs have an exact figure above 0; `None` for fewer than two such
/// pairs, and for a rate that the schedule of the load set in every run.
fn effect(name: String, key: &RowKey, metric: Metric, pairs: &[(&Run, &Run)]) -> Option<Effect> {
    let figures = |run| Figures::of_row(run, key);
    let is_rate = matches!(metric, Metric::OpsPerS | Metric::MibPerS);
    let is_offered = |run| {
        let kind = figures(run).map(|f| f.latency_kind);
        kind == Some(LatencyKind::Response) && !fell_short(run)
    };
    if is_rate && pairs.iter().all(|(a, b)| is_offered(a) && is_offered(b)) {
        return None;
    }
    let values = pairs.iter().filter_map(|(a, b)| {
        let exact = |run| figures(run)?.exact(metric);
        Some((exact(a)?, exact(b)?))
    });
    let values: Vec<(f64, f64)> = values.collect();
    Some(Effect {
        operation: name,
        metric,
        means: geometric_means(&values),
        ratio: PairedRatio::of(&values)?,
        is_real: false,
    })
}

/// Geometric means of the first and of the second figures of pairs.
fn geometric_means(pairs: &[(f64, f64)]) -> (f64, f64) {
    let mean = |of: fn(&(f64, f64)) -> f64| {
        let sum: f64 = pairs.iter().map(|pair| of(pair).ln()).sum();
        (sum / pairs.len() as f64).exp()
    };
    (mean(|pair| pair.0), mean(|pair| pair.1))
}
