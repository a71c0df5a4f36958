//! Repeated runs in a terminal or a text file.

use crate::format::{latency, rate};
use crate::percentiles::{LOWER_BOUND_MARK, PercentileKind, UNCERTAIN_MARK};
use crate::terminal::Layout;
use crate::text::{Paint, series_location};
use plimsoll_results::{Percentile, Percentiles, Run, Series, SeriesDir, Verdict};

/// The spread of repeated runs that were measured to their end: means, and the least and greatest figure.
#[must_use]
pub fn render(series: &Series, runs: &[&Run], dir: Option<&SeriesDir>, layout: Layout) -> String {
    let mut out = String::new();
    let is_measured =
        |run: &&&Run| matches!(run.validity.verdict, Verdict::Valid | Verdict::Invalid);
    let measured: Vec<&Run> = runs.iter().filter(is_measured).copied().collect();
    if !measured.is_empty() {
        out.push_str(&spread(series, &measured));
    }
    series_location(&mut out, series, dir, Paint(layout.color));
    out
}

fn spread(series: &Series, runs: &[&Run]) -> String {
    let range = |pick: &dyn Fn(&Run) -> f64, show: fn(f64) -> String| {
        let values = || runs.iter().map(|run| pick(run));
        let mean = values().sum::<f64>() / runs.len() as f64;
        let (least, most) = values().fold((f64::MAX, f64::MIN), |(l, m), v| (l.min(v), m.max(v)));
        let shown = [mean, least, most].map(|v| show(v).replace("  ", " "));
        format!("{} ({} to {})", shown[0], shown[1], shown[2])
    };
    let requested = series.percentiles_shown.as_ref();
    let percentiles = Percentiles::shown_percentiles(requested, &[Percentile::P99]);
    let times = |mean: fn(&Run) -> f64, of: PercentileKind| {
        let mut parts = vec![format!("mean {}", range(&mean, latency))];
        for p in percentiles {
            let figure = |r: &Run| r.summary.percentile(*p);
            let ms = |r: &Run| figure(r).map_or(0.0, |f| of.ms(&f));
            let doubtful = runs
                .iter()
                .filter_map(|run| figure(run))
                .any(|f| !f.enough_samples);
            let doubt = if doubtful { UNCERTAIN_MARK } else { "" };
            let at_least = runs
                .iter()
                .filter_map(|run| figure(run))
                .any(|f| of.at_least(&f));
            let bound = if at_least { LOWER_BOUND_MARK } else { "" };
            parts.push(format!("{p} {bound}{}{doubt}", range(&ms, latency)));
        }
        parts.join(", ")
    };
    let service = if runs.iter().any(|r| r.summary.service.is_some()) {
        let times = times(|r| r.summary.service().mean_ms, PercentileKind::Service);
        format!("; service time {times}")
    } else {
        String::new()
    };
    format!(
        "{} runs: {} ops/s, {}{service}\n",
        runs.len(),
        range(&|r| r.summary.ops_per_s, rate),
        times(|r| r.summary.mean_ms, PercentileKind::Latency),
    )
}
