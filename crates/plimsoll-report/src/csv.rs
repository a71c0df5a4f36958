//! The figures of runs as comma-separated values, for spreadsheets and scripts.

use crate::markdown::SCALED;
use crate::percentiles::PercentileKind;
use plimsoll_diagnostics::foreign;
use plimsoll_results::{
    LatencyFigures, OperationFigures, Percentile, PercentileFigure, Percentiles, Run,
};

/// Columns before the latencies.
const HEAD: [&str; 14] = [
    "results",
    "workload",
    "started_at",
    "verdict",
    "window_s",
    "operation",
    "kind",
    "ops",
    "ops_per_s",
    "bytes",
    "bytes_per_s",
    "errors",
    "cpu_us_per_op",
    "paced_ops",
];

/// Columns of a latency distribution, after `latency_` or `service_`.
const LATENCIES: [&str; 7] = [
    "mean_ms", "min_ms", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms",
];

/// Columns after the latencies: the scale of an operation mix and a remark on the scale, empty without a mix; offered
/// rate, achieved rate and number dropped of the run's schedule (in operations of a mix, or in events), empty without a
/// schedule.
const LOAD: [&str; 5] = [
    "scale",
    "remark",
    "offered_per_s",
    "achieved_per_s",
    "dropped",
];

/// Last columns: operations in flight at the end, gaps, and the lowest percentile of latency and of service time that
/// is a lower bound.
const STANDSTILL: [&str; 6] = [
    "in_flight",
    "oldest_in_flight_ms",
    "max_gap_ms",
    "expected_max_gap_ms",
    "latency_at_least_from",
    "service_at_least_from",
];

/// A header line, and a line per operation of each run, with the figures of `run.json`; a figure that was not measured
/// is empty. The latency of an unpaced operation is its service time. Additional requested percentiles have their own
/// columns, which are empty if there are too few operations, unless the figure is a lower bound. `runs` holds names of
/// results directories and their runs.
#[must_use]
pub fn render(runs: &[(&str, &Run)]) -> String {
    let requested = runs
        .iter()
        .filter_map(|(_, r)| r.percentiles_shown.as_ref());
    let more = Percentiles::extra(requested, &Percentile::DEFAULT_TABLE);
    let latencies = ["latency", "service"].into_iter().flat_map(|kind| {
        let fixed = LATENCIES.iter().map(move |l| format!("{kind}_{l}"));
        fixed.chain(more.iter().map(move |p| format!("{kind}_{p}_ms")))
    });
    let head: Vec<String> = HEAD
        .map(str::to_owned)
        .into_iter()
        .chain(latencies)
        .chain(LOAD.map(str::to_owned))
        .chain(STANDSTILL.map(str::to_owned))
        .collect();
    let mut out = line(&head);
    for (name, run) in runs {
        for operation in &run.operations {
            out.push_str(&line(&row(name, run, operation, &more)));
        }
    }
    out
}

fn row(name: &str, run: &Run, o: &OperationFigures, more: &[Percentile]) -> Vec<String> {
    let scale = run.mix.as_ref().map(|m| m.scale);
    let remark = scale.filter(|s| *s != 1.0).map_or("", |_| SCALED);
    let mut cells = vec![
        name.to_owned(),
        run.workload.clone(),
        run.started_at.clone(),
        run.validity.verdict.to_string(),
        run.window_s.to_string(),
        o.name.clone(),
        o.kind.to_string(),
        o.ops.to_string(),
        o.ops_per_s.to_string(),
        o.bytes.to_string(),
        o.bytes_per_s.to_string(),
        o.errors.to_string(),
        o.cpu_us_per_op
            .map_or_else(String::new, |us| us.to_string()),
        o.paced_ops.to_string(),
    ];
    for of in [PercentileKind::Latency, PercentileKind::Service] {
        cells.extend(latency(o, of.figures(o)));
        let known = |p: &Percentile| known(o.percentile(*p), of);
        cells.extend(more.iter().map(|p| known(p).unwrap_or_default()));
    }
    cells.push(scale.map_or_else(String::new, |s| s.to_string()));
    cells.push(remark.to_owned());
    cells.extend(schedule(run));
    cells.push(o.in_flight.to_string());
    let times = [o.oldest_in_flight_ms, o.max_gap_ms, o.expected_max_gap_ms];
    cells.extend(times.map(|ms| ms.map_or_else(String::new, |ms| ms.to_string())));
    let figures = Percentiles::new(more.iter().copied().chain(Percentile::DEFAULT_TABLE));
    let figures = figures.as_slice().iter().map(|p| o.percentile(*p));
    let figures: Vec<PercentileFigure> = figures.flatten().collect();
    let of = PercentileKind::Latency;
    cells.push(at_least_from(&figures, of, o.latency.max_at_least));
    let of = PercentileKind::Service;
    cells.push(at_least_from(&figures, of, o.service().max_at_least));
    cells
}

/// Offered rate, achieved rate and number dropped of the run's schedule; empty without a schedule.
fn schedule(run: &Run) -> [String; 3] {
    let mix = run.mix.as_ref().map(|m| &m.total);
    let mix = mix.and_then(|m| Some((m.offered_ops_per_s?, m.achieved_ops_per_s, m.dropped)));
    let events = run.schedule.as_ref();
    let events = events.map(|e| (e.offered_events_per_s, e.achieved_events_per_s, e.dropped));
    let rates = mix.or(events);
    rates.map_or_else(Default::default, |(offered, achieved, dropped)| {
        [
            offered.to_string(),
            achieved.to_string(),
            dropped.to_string(),
        ]
    })
}

/// The lowest percentile that is a lower bound, like all higher percentiles and the maximum; `max` if only the maximum
/// is a lower bound, empty if the maximum is exact. `figures` are in increasing order of percentile.
pub(crate) fn at_least_from(
    figures: &[PercentileFigure],
    of: PercentileKind,
    max_at_least: bool,
) -> String {
    match figures.iter().find(|f| of.at_least(f)) {
        Some(figure) => figure.percentile.to_string(),
        None if max_at_least => "max".to_owned(),
        None => String::new(),
    }
}

/// A percentile in milliseconds; `None` if there are too few operations, unless the figure is a lower bound.
pub(crate) fn known(figure: Option<PercentileFigure>, of: PercentileKind) -> Option<String> {
    let figure = figure.filter(|f| f.enough_samples || of.at_least(f))?;
    Some(of.ms(&figure).to_string())
}

/// Cells of the columns [`LATENCIES`]. If all operations are still in flight, only lower bounds of the percentiles and
/// the maximum are known.
fn latency(o: &OperationFigures, f: &LatencyFigures) -> [String; 7] {
    let of_completed = |ms: f64| match o.ops {
        0 => String::new(),
        _ => ms.to_string(),
    };
    let bounded = |ms: f64| match o.has_latencies() {
        false => String::new(),
        true => ms.to_string(),
    };
    let [p50, p95, p99, p999, max] =
        [f.p50_ms, f.p95_ms, f.p99_ms, f.p999_ms, f.max_ms].map(bounded);
    let [mean, min] = [f.mean_ms, f.min_ms].map(of_completed);
    [mean, min, p50, p95, p99, p999, max]
}

/// A line of cells as in RFC 4180, but ended by LF instead of CRLF.
pub(crate) fn line(cells: &[String]) -> String {
    let quoted = |cell: &String| {
        let cell = foreign::escaped_lines(cell);
        match cell.contains([',', '"', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.into_owned(),
        }
    };
    let cells: Vec<String> = cells.iter().map(quoted).collect();
    cells.join(",") + "\n"
}
