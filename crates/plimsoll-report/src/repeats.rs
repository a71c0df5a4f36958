//! Report on repeated runs: mean and range of each figure over the runs.

use crate::document::{Block, Document, Tone};
use crate::format::{latency, rate};
use crate::percentiles::{LOWER_BOUND_MARK, PercentileKind, UNCERTAIN_MARK};
use crate::series;
use plimsoll_plan::counted;
use plimsoll_results::{Percentile, Percentiles, Run, Series, SeriesKind, Verdict};

/// The report with mean, minimum and maximum of the figures, over the runs that were measured to their end.
#[must_use]
pub fn document(series: &Series, runs: &[&Run]) -> Document {
    let is_measured =
        |run: &&&Run| matches!(run.validity.verdict, Verdict::Valid | Verdict::Invalid);
    let measured: Vec<&Run> = runs.iter().filter(is_measured).copied().collect();
    let requested = match &series.kind {
        SeriesKind::Repeats(repeats) => u64::from(repeats.requested_runs),
        _ => series.runs.len() as u64,
    };
    let state = format!(
        "{} of {}",
        measured.len(),
        counted(requested, "run", "runs")
    );
    let worst = runs.iter().map(|run| run.validity.verdict).max();
    let tone = match worst.map(Tone::from) {
        Some(tone @ (Tone::Doubtful | Tone::Bad)) => tone,
        _ if series.state.can_resume() => Tone::Doubtful,
        _ => Tone::Good,
    };
    let mut document = Document::new(format!("{}, repeated", series.name), state, tone);
    let spread = (!measured.is_empty())
        .then(|| Block::sentence(line(&measured, series.percentiles_shown.as_ref())));
    document.head = series::qualifiers(series);
    document.section("spread", "Spread", spread.into_iter().collect());
    document
}

/// One line with throughput and latencies of repeated runs, with the requested percentiles.
///
/// A run in which no operation completed has no latencies; the figure then states the number of runs that have it.
#[must_use]
pub fn line(runs: &[&Run], percentiles: Option<&Percentiles>) -> String {
    let percentiles = Percentiles::shown_percentiles(percentiles, &[Percentile::P99]);
    let times = |mean: fn(&Run) -> f64, of: PercentileKind| {
        let completed = |r: &Run| (r.summary.ops > 0).then(|| mean(r));
        let mut parts = vec![format!("mean {}", range(runs, completed, latency))];
        for p in percentiles {
            let figure = |r: &Run| r.summary.percentile(*p);
            let doubtful = runs
                .iter()
                .filter_map(|r| figure(r))
                .any(|f| !f.enough_samples);
            let doubt = if doubtful { UNCERTAIN_MARK } else { "" };
            let at_least = runs
                .iter()
                .filter_map(|r| figure(r))
                .any(|f| of.at_least(&f));
            let bound = if at_least { LOWER_BOUND_MARK } else { "" };
            let range = range(runs, |r| figure(r).map(|f| of.ms(&f)), latency);
            parts.push(format!("{p} {bound}{range}{doubt}"));
        }
        parts.join(", ")
    };
    let service = match runs.iter().any(|r| r.summary.service.is_some()) {
        true => {
            let times = times(|r| r.summary.service().mean_ms, PercentileKind::Service);
            format!("; service time {times}")
        }
        false => String::new(),
    };
    format!(
        "{} runs: {} ops/s, {}{service}",
        runs.len(),
        range(runs, |r| Some(r.summary.ops_per_s), rate),
        times(|r| r.summary.mean_ms, PercentileKind::Latency),
    )
}

/// Mean, minimum and maximum of a figure over the runs that have the figure; a dash if no run has.
fn range(runs: &[&Run], figure: impl Fn(&Run) -> Option<f64>, show: fn(f64) -> String) -> String {
    let values: Vec<f64> = runs.iter().filter_map(|r| figure(r)).collect();
    if values.is_empty() {
        return "-".into();
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let (min, max) = values.iter().fold((f64::MAX, f64::MIN), |(min, max), v| {
        (min.min(*v), max.max(*v))
    });
    let [mean, min, max] = [mean, min, max].map(show);
    let of = match values.len() == runs.len() {
        true => String::new(),
        false => format!(", {} of {} runs", values.len(), runs.len()),
    };
    format!("{mean} ({min} to {max}{of})")
}
