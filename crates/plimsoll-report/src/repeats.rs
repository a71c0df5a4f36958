//! Report on repeated runs: mean and spread of each figure over the runs, and their trend.

use crate::compare::{self, Drift, FigureOfRuns, Metric};
use crate::document::{Block, Document, Table, Tone};
use crate::format::or_dash;
use crate::series::{append, head, qualifiers, rate_and_mean, reasons, settled, state};
use crate::text::reason_codes;
use plimsoll_measure::compare::{Deviation, Spread};
use plimsoll_plan::{Count, counted};
use plimsoll_results::{Percentile, Percentiles, Repeats, Run, SeriesOf};

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
    document.explained_section("spread", "Mean and spread", ABOUT, spread);
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
    table = table.with_rows(
        figures
            .iter()
            .map(|(metric, figure)| cells(*metric, figure)),
    );
    table.notes = FigureOfRuns::notes(figures.iter().map(|(_, figure)| figure));
    table
}

/// Figures of all operations together, as in comparisons of runs.
fn figures(runs: &[&Run], percentiles: &[Percentile]) -> Vec<(Metric, FigureOfRuns)> {
    let is_paced = runs.iter().any(|run| run.summary.service.is_some());
    let is_zero = |figure: &FigureOfRuns| figure.values.iter().flatten().all(|v| *v == 0.0);
    compare::metrics(percentiles, is_paced)
        .into_iter()
        // Processor time is sampled, so that any run may lack the figure by chance.
        .filter(|metric| *metric != Metric::CpuUsPerOp)
        .map(|metric| (metric, FigureOfRuns::of_all(metric, runs)))
        .filter(|(metric, figure)| !(metric.is_hidden_at_zero() && is_zero(figure)))
        .collect()
}

/// Cells of the row of a figure; the deviation of inexact values is not known.
fn cells(metric: Metric, figure: &FigureOfRuns) -> Vec<String> {
    let values: Vec<f64> = figure.values.iter().flatten().copied().collect();
    let spread = Spread::of(&values);
    let is_exact = figure.enough_samples && !figure.at_least;
    let deviation = spread.and_then(|s| s.deviation).filter(|_| is_exact);
    let of = |value: fn(Spread) -> f64| or_dash(spread.map(|s| figure.show(metric, value(s))));
    let interval = |d: Deviation| {
        // No figure is negative.
        let (low, high) = (d.interval.0.max(0.0), d.interval.1);
        format!("{} to {}", metric.show(low), metric.show(high))
    };
    vec![
        metric.title(),
        of(|s| s.mean),
        or_dash(deviation.map(|d| metric.show(d.standard))),
        or_dash(deviation.map(interval)),
        of(|s| s.min),
        of(|s| s.max),
        values.len().to_string(),
    ]
}
