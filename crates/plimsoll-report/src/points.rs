//! Load points and search runs as comma-separated values.

use crate::csv::{at_least_from, known, line, names, or_empty};
use crate::find::purpose;
use crate::percentiles::PercentileKind;
use plimsoll_results::{Percentile, Percentiles, Series, SeriesRun};

/// Percentiles for which the CSV of load points always has a column.
const POINT_PERCENTILES: [Percentile; 3] = [Percentile::P50, Percentile::P95, Percentile::P99];

/// Columns of the CSV of load points before additional requested percentiles.
const HEAD: &str = "results,workload,metric,scale,load,verdict,offered_ops_per_s,achieved_ops_per_s,\
                    bytes_per_s,latency_mean_ms,latency_p50_ms,latency_p95_ms,latency_p99_ms,\
                    latency_max_ms,service_mean_ms,slowest_process_percent,errors,window_s,run";

/// CSV of curves or searches, with the figures of `series.json`: a header line, and a line per load point of each curve
/// or per run of each search. A cell of the CSV is empty if the cell's figure was not measured, or is a percentile of
/// too few operations that is not a lower bound. Runs of searches also have their number, purpose, verdict and margin.
/// `series` holds names of results directories and their series, all curves or all searches.
#[must_use]
pub fn csv(series: &[(&str, &Series)]) -> String {
    let requested = series
        .iter()
        .filter_map(|(_, s)| s.percentiles_shown.as_ref());
    let more = Percentiles::extra(requested, &POINT_PERCENTILES);
    let are_searches = series.iter().any(|(_, s)| s.as_search().is_some());
    let mut head: Vec<String> = names(HEAD).collect();
    head.extend(more.iter().map(|p| format!("latency_{p}_ms")));
    head.push("latency_at_least_from".to_owned());
    if are_searches {
        head.extend(names("number,purpose,passed,margin"));
    }
    let mut out = line(&head);
    for (name, series) in series {
        for (number, run) in (1u64..).zip(series.measured()) {
            let mut cells = row(name, series, run, &more);
            if are_searches {
                cells.extend([
                    number.to_string(),
                    purpose(run),
                    run.is_valid().to_string(),
                    or_empty(run.margin),
                ]);
            }
            out.push_str(&line(&cells));
        }
    }
    out
}

fn row(name: &str, series: &Series, p: &SeriesRun, more: &[Percentile]) -> Vec<String> {
    let of = PercentileKind::Latency;
    let all = Percentiles::new(more.iter().copied().chain(POINT_PERCENTILES));
    let figures = all.as_slice().iter().map(|at| p.percentile(*at));
    let mut cells = vec![
        name.to_owned(),
        series.name.clone(),
        series.load_name(),
        series.scale().to_string(),
        p.load_or_value().unwrap_or_default().to_string(),
        p.verdict.to_string(),
        or_empty(p.offered_ops_per_s),
        p.achieved_ops_per_s.to_string(),
        p.bytes_per_s.to_string(),
        or_empty(p.mean_ms),
        or_empty(p.p50_ms),
        or_empty(p.p95_ms),
        or_empty(p.p99_ms),
        or_empty(p.max_ms),
        or_empty(p.service_mean_ms),
        or_empty(p.slowest_process_percent),
        p.errors.to_string(),
        p.window_s.to_string(),
        p.directory.clone(),
    ];
    cells.extend(more.iter().map(|at| known(p.percentile(*at), of)));
    cells.push(at_least_from(figures, of, p.max_at_least));
    cells
}
