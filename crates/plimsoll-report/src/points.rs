//! Load points and search runs as comma-separated values.

use crate::csv::{at_least_from, known, line};
use crate::find::purpose;
use crate::percentiles::PercentileKind;
use plimsoll_results::{
    LoadCurve, LoadSearch, Percentile, PercentileFigure, Percentiles, Series, SeriesOf, SeriesRun,
};

/// Percentiles with columns of their own.
const POINT_PERCENTILES: [Percentile; 3] = [Percentile::P50, Percentile::P95, Percentile::P99];

/// Columns of the CSV files.
const HEAD: [&str; 19] = [
    "results",
    "workload",
    "metric",
    "scale",
    "load",
    "verdict",
    "offered_ops_per_s",
    "achieved_ops_per_s",
    "bytes_per_s",
    "latency_mean_ms",
    "latency_p50_ms",
    "latency_p95_ms",
    "latency_p99_ms",
    "latency_max_ms",
    "service_mean_ms",
    "slowest_process_percent",
    "errors",
    "window_s",
    "run",
];

/// Names of the columns, including additional percentiles and the lowest percentile that is a lower bound.
fn names(more: &[Percentile]) -> Vec<String> {
    let more = more.iter().map(|p| format!("latency_{p}_ms"));
    let names = HEAD.map(str::to_owned).into_iter().chain(more);
    names.chain(["latency_at_least_from".to_owned()]).collect()
}

/// A header line, and a line per load point of each curve, with the figures of `series.json`. A figure that was not
/// measured is empty, like an additional percentile with too few operations, unless the figure is a lower bound.
#[must_use]
pub fn csv(curves: &[(&str, SeriesOf<'_, LoadCurve>)]) -> String {
    let requested = curves
        .iter()
        .filter_map(|(_, c)| c.percentiles_shown.as_ref());
    let more = Percentiles::extra(requested, &POINT_PERCENTILES);
    let mut out = line(&names(&more));
    for (name, curve) in curves {
        for run in curve.measured() {
            out.push_str(&line(
                &[&facts(name, curve)[..], &values(run, &more)].concat(),
            ));
        }
    }
    out
}

/// A header line, and a line per run of each search: the columns of [`csv`], and purpose, verdict and margin of the
/// run.
#[must_use]
pub fn search_csv(searches: &[(&str, SeriesOf<'_, LoadSearch>)]) -> String {
    let own = ["number", "purpose", "passed", "margin"];
    let requested = searches
        .iter()
        .filter_map(|(_, s)| s.percentiles_shown.as_ref());
    let more = Percentiles::extra(requested, &POINT_PERCENTILES);
    let mut head = names(&more);
    head.extend(own.map(str::to_owned));
    let mut out = line(&head);
    for (name, search) in searches {
        for (number, run) in (1u64..).zip(search.measured()) {
            let of = facts(name, search);
            let own = [
                number.to_string(),
                purpose(run),
                run.is_valid().to_string(),
                run.margin.map_or_else(String::new, |m| m.to_string()),
            ];
            out.push_str(&line(&[&of[..], &values(run, &more), &own].concat()));
        }
    }
    out
}

/// First cells of each line of a series.
fn facts(name: &str, series: &Series) -> [String; 4] {
    [
        name.to_owned(),
        series.name.clone(),
        series.metric_name().to_owned(),
        series.scale().to_string(),
    ]
}

/// The load of a run of a curve or a search.
fn load_of(run: &SeriesRun) -> u64 {
    run.load.unwrap_or_default()
}

fn values(p: &SeriesRun, more: &[Percentile]) -> Vec<String> {
    let number = |n: Option<f64>| n.map_or_else(String::new, |n| n.to_string());
    let figures = Percentiles::new(more.iter().copied().chain(POINT_PERCENTILES));
    let figures = figures.as_slice().iter().map(|at| p.percentile(*at));
    let figures: Vec<PercentileFigure> = figures.flatten().collect();
    let known =
        |at: &Percentile| known(p.percentile(*at), PercentileKind::Latency).unwrap_or_default();
    let mut values = vec![
        load_of(p).to_string(),
        p.verdict.to_string(),
        number(p.offered_ops_per_s),
        p.achieved_ops_per_s.to_string(),
        p.bytes_per_s.to_string(),
        number(p.mean_ms),
        number(p.p50_ms),
        number(p.p95_ms),
        number(p.p99_ms),
        number(p.max_ms),
        number(p.service_mean_ms),
        number(p.slowest_process_percent),
        p.errors.to_string(),
        p.window_s.to_string(),
        p.directory.clone(),
    ];
    values.extend(more.iter().map(known));
    values.push(at_least_from(
        &figures,
        PercentileKind::Latency,
        p.max_at_least,
    ));
    values
}
