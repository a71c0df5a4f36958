//! Charts of load curves.

use super::loads::{Loads, limits_of_series};
use crate::html::chart::{Chart, Column, MAX_SERIES, SeriesStyle, Unit};
use plimsoll_results::{LoadCurve, SeriesOf, SeriesRun, client_ms};

/// Word for points that are not valid.
pub(super) const INVALID: &str = "invalid";

/// Charts of response time and throughput over load; empty without points.
pub(super) fn of_curve(curve: SeriesOf<'_, LoadCurve>) -> Vec<Chart> {
    if curve.measured().next().is_none() {
        return vec![];
    }
    let loads = Loads::of(curve.series, curve.figures.load_line);
    let throughput = loads.throughput(INVALID);
    let mut charts = vec![response(curve, &loads), throughput];
    charts.extend(time_at(curve, &loads));
    charts
}

fn response(curve: SeriesOf<'_, LoadCurve>, loads: &Loads<'_>) -> Chart {
    let mut about = "Response time at each load.".to_owned();
    if let Some(ms) = curve.figures.ort_ms {
        let ort = Unit::Milliseconds.show(ms);
        about.push_str(&format!(" The overall response time is {ort}."));
    }
    loads.response("load-curve", about, INVALID, limits_of_series(curve.series))
}

/// Response time by element of the simulated system; `None` if the target is real.
fn time_at(curve: SeriesOf<'_, LoadCurve>, loads: &Loads<'_>) -> Option<Chart> {
    let mut sums: Vec<(&str, f64)> = Vec::new();
    for time in curve.series.measured().flat_map(|p| &p.time_at) {
        match sums.iter_mut().find(|(name, _)| *name == time.element) {
            Some((_, sum)) => *sum += time.mean_ms,
            None => sums.push((&time.element, time.mean_ms)),
        }
    }
    if sums.is_empty() {
        return None;
    }
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown = &sums[..sums.len().min(MAX_SERIES - 2)];
    let named = |p: &SeriesRun, name: &str| -> f64 {
        let of = p.time_at.iter().filter(|t| t.element == name);
        of.map(|t| t.mean_ms).sum()
    };
    let all = |p: &SeriesRun| p.time_at.iter().map(|t| t.mean_ms).sum::<f64>();
    let column = |i: usize, name: &str, ms: &dyn Fn(&SeriesRun) -> f64| {
        let values = loads.means(|p| p.mean_ms.map(|_| ms(p).max(0.0)));
        Column::drawn(name, Unit::Milliseconds, values, SeriesStyle::Series(i))
    };
    let mut columns: Vec<Column> = shown
        .iter()
        .enumerate()
        .map(|(i, (name, _))| column(i, name, &|p| named(p, name)))
        .collect();
    if sums.len() > shown.len() {
        let in_columns = |p: &SeriesRun| shown.iter().map(|(name, _)| named(p, name)).sum::<f64>();
        columns.push(column(MAX_SERIES - 2, "other elements", &|p| {
            all(p) - in_columns(p)
        }));
    }
    // Late operations of a paced load wait at the client for their process.
    let client = |p: &SeriesRun| client_ms(p.mean_ms.unwrap_or(0.0), &p.time_at);
    columns.push(column(MAX_SERIES - 1, "client", &client));
    Some(loads.time_at(columns))
}
