//! Report on repeated runs: mean and spread of each figure over the runs, and their trend.

use crate::compare::{Drift, Metric};
use crate::document::{Block, Document, Table, Tone};
use crate::percentiles::{
    LOWER_BOUND_MARK, LOWER_BOUND_NOTE, PercentileKind, UNCERTAIN_MARK, UNCERTAIN_NOTE,
};
use crate::series::{append, head, qualifiers, rate_and_mean, reasons, settled, state};
use crate::text::reason_codes;
use plimsoll_measure::compare::{Deviation, Spread};
use plimsoll_plan::{Count, counted};
use plimsoll_results::{Percentile, PercentileFigure, Percentiles, Repeats, Run, SeriesOf};

/// Explanation below the heading of the table.
const ABOUT: &str = "The deviation is the standard deviation of the runs. The interval is the confidence interval of the \
                     mean (Student's t), for runs that do not depend on each other.";

/// Consequence of a trend, and what to do about the trend.
const REMEDY: &str = "figures of these runs are not of one state; let the machine come to rest with --settle auto, or \
                      compare two variants with plimsoll ab";

/// Percentiles of the table unless others are requested.
const PERCENTILES: [Percentile; 1] = [Percentile::P99];

/// The report on repeated runs, of which `runs` are the listed runs, in the order of the series.
#[must_use]
pub fn document(of: SeriesOf<'_, Repeats>, runs: &[&Run]) -> Document {
    let measured = runs.iter().filter(|r| r.validity.verdict.is_measured());
    let measured: Vec<&Run> = measured.copied().collect();
    let requested = counted(of.figures.requested_runs.into(), "run", "runs");
    let (_, mut tone) = state(&of);
    let drift = Drift::of(&measured);
    if tone == Tone::Good {
        let worst = runs.iter().map(|run| run.validity.verdict).max();
        tone = match worst.map(Tone::from) {
            Some(worst @ (Tone::Doubtful | Tone::Bad)) => worst,
            _ if drift.is_some() => Tone::Doubtful,
            _ => Tone::Good,
        };
    }
    let state = format!("{} of {requested}", measured.len());
    let mut document = Document::new(format!("{}, repeated", of.name), state, tone);
    document.head = head(&of, requested);
    document.head.extend(qualifiers(&of));
    document
        .head
        .extend(drift.map(|drift| Block::warning(format!("the runs drift: {drift}; {REMEDY}"))));
    let table = table(&measured, of.percentiles_shown.as_ref());
    let waits = settled(&of, |number, _| format!("before run {number}"));
    let spread: Vec<Block> = Block::table(table)
        .into_iter()
        .chain(reasons(&of))
        .chain(waits)
        .collect();
    document.section("spread", "Mean and spread", spread);
    if let Some(section) = document.sections.first_mut() {
        section.about = ABOUT;
    }
    append(&mut document, &of);
    document
}

/// One line on a completed run; `number` is its index in the document, from 0.
#[must_use]
pub fn line(of: SeriesOf<'_, Repeats>, number: usize) -> String {
    let run = &of.runs[number];
    format!(
        "run {} of {}, seed {}: {}: {}{}",
        number + 1,
        of.figures.requested_runs,
        Count(run.seed),
        rate_and_mean(run),
        run.verdict,
        reason_codes(&run.reasons)
    )
}

/// A row of the table: a figure, and its value in each run that has the figure.
struct Figure {
    metric: Metric,
    values: Vec<f64>,
    /// Whether a value is a percentile of too few operations.
    is_uncertain: bool,
    /// Whether a value is a lower bound.
    is_bound: bool,
}

impl Figure {
    fn of(metric: Metric, runs: &[&Run], value: impl Fn(&Run) -> Option<f64>) -> Self {
        Self {
            metric,
            values: runs.iter().filter_map(|run| value(run)).collect(),
            is_uncertain: false,
            is_bound: false,
        }
    }

    fn of_percentile(
        metric: Metric,
        percentile: Percentile,
        runs: &[&Run],
        kind: PercentileKind,
    ) -> Self {
        let figures = runs
            .iter()
            .filter_map(|run| run.summary.percentile(percentile));
        let figures: Vec<PercentileFigure> = figures.collect();
        Self {
            metric,
            values: figures.iter().map(|f| kind.ms(f)).collect(),
            is_uncertain: figures.iter().any(|f| !f.enough_samples),
            is_bound: figures.iter().any(|f| kind.at_least(f)),
        }
    }

    fn show(&self, value: f64) -> String {
        let bound = if self.is_bound { LOWER_BOUND_MARK } else { "" };
        let doubt = if self.is_uncertain {
            UNCERTAIN_MARK
        } else {
            ""
        };
        format!("{bound}{}{doubt}", self.metric.show(value))
    }

    /// Cells of the row; the deviation of inexact values is not known.
    fn cells(&self) -> Vec<String> {
        let is_exact = !self.is_uncertain && !self.is_bound;
        let spread = Spread::of(&self.values);
        let deviation = spread.and_then(|s| s.deviation).filter(|_| is_exact);
        let dash = || "-".to_owned();
        let of = |value: fn(Spread) -> f64| spread.map_or_else(dash, |s| self.show(value(s)));
        let interval = |d: Deviation| {
            // No figure is negative.
            let (low, high) = (d.interval.0.max(0.0), d.interval.1);
            format!("{} to {}", self.metric.show(low), self.metric.show(high))
        };
        vec![
            self.metric.title(),
            of(|s| s.mean),
            deviation.map_or_else(dash, |d| self.metric.show(d.standard)),
            deviation.map_or_else(dash, interval),
            of(|s| s.min),
            of(|s| s.max),
            self.values.len().to_string(),
        ]
    }
}

/// Table with a row for each figure of all operations together, over the runs that have the figure: a run in which no
/// operation completed has no latencies.
fn table(runs: &[&Run], percentiles: Option<&Percentiles>) -> Table {
    let head = [
        "all operations",
        "mean",
        "deviation",
        "95 % interval",
        "min",
        "max",
        "runs",
    ];
    let mut table = Table::new("Mean and spread", head);
    if runs.is_empty() {
        return table;
    }
    let figures = figures(
        runs,
        Percentiles::shown_percentiles(percentiles, &PERCENTILES),
    );
    table = table.with_rows(figures.iter().map(Figure::cells));
    let notes = [
        (figures.iter().any(|f| f.is_uncertain), UNCERTAIN_NOTE),
        (figures.iter().any(|f| f.is_bound), LOWER_BOUND_NOTE),
    ];
    let notes = notes.into_iter().filter(|(applies, _)| *applies);
    table.notes.extend(notes.map(|(_, note)| note.to_owned()));
    table
}

fn figures(runs: &[&Run], percentiles: &[Percentile]) -> Vec<Figure> {
    let completed = |run: &Run, ms: f64| (run.summary.ops > 0).then_some(ms);
    let mut figures = vec![Figure::of(Metric::OpsPerS, runs, |run| {
        Some(run.summary.ops_per_s)
    })];
    if runs.iter().any(|run| run.summary.bytes_per_s > 0.0) {
        figures.push(Figure::of(Metric::MibPerS, runs, |run| {
            Some(run.summary.bytes_per_s / crate::format::MIB)
        }));
    }
    figures.push(Figure::of(Metric::MeanMs, runs, |run| {
        completed(run, run.summary.mean_ms)
    }));
    figures.extend(percentiles.iter().map(|p| {
        Figure::of_percentile(Metric::PercentileMs(*p), *p, runs, PercentileKind::Latency)
    }));
    if runs.iter().any(|run| run.summary.service.is_some()) {
        figures.push(Figure::of(Metric::ServiceMeanMs, runs, |run| {
            completed(run, run.summary.service().mean_ms)
        }));
        figures.extend(percentiles.iter().map(|p| {
            let metric = Metric::ServicePercentileMs(*p);
            Figure::of_percentile(metric, *p, runs, PercentileKind::Service)
        }));
    }
    if runs.iter().any(|run| run.summary.errors > 0) {
        figures.push(Figure::of(Metric::Errors, runs, |run| {
            Some(run.summary.errors as f64)
        }));
    }
    figures
}
