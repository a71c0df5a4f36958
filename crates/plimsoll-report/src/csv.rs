//! The figures of runs as comma-separated values, for spreadsheets and scripts.

use crate::markdown::SCALED;
use crate::percentiles::{PercentileKind, columns};
use plimsoll_diagnostics::foreign;
use plimsoll_results::{OperationFigures, Percentile, PercentileFigure, Percentiles, Run};

/// Columns of a line of the runs' CSV before the latencies.
const HEAD: &str = "results,workload,started_at,verdict,window_s,operation,kind,ops,ops_per_s,bytes,\
                    bytes_per_s,errors,cpu_us_per_op,paced_ops";

/// Columns of a latency distribution, after `latency_` or `service_`.
const LATENCIES: &str = "mean_ms,min_ms,p50_ms,p95_ms,p99_ms,p999_ms,max_ms";

/// Columns of a line of the runs' CSV after the latencies. Scale and remark are empty without an operation mix. Offered
/// rate, achieved rate and dropped number count operations of a mix, or events, and are empty without a schedule. The
/// last two columns hold the lowest percentile of latency and of service time that is only a lower bound.
const TAIL: &str = "scale,remark,offered_per_s,achieved_per_s,dropped,in_flight,oldest_in_flight_ms,\
                    max_gap_ms,expected_max_gap_ms,latency_at_least_from,service_at_least_from";

/// Splits a comma-separated list of column names.
pub(crate) fn names(list: &str) -> impl Iterator<Item = String> {
    list.split(',').map(str::to_owned)
}

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
    let mut head: Vec<String> = names(HEAD).collect();
    for kind in ["latency", "service"] {
        head.extend(names(LATENCIES).map(|name| format!("{kind}_{name}")));
        head.extend(more.iter().map(|p| format!("{kind}_{p}_ms")));
    }
    head.extend(names(TAIL));
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
    let kinds = [PercentileKind::Latency, PercentileKind::Service];
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
        or_empty(o.cpu_us_per_op),
        o.paced_ops.to_string(),
    ];
    for of in kinds {
        cells.extend(columns(o, of.figures(o)).map(or_empty));
        cells.extend(more.iter().map(|p| known(o.percentile(*p), of)));
    }
    cells.extend([or_empty(scale), remark.to_owned()]);
    cells.extend(schedule(run));
    cells.push(o.in_flight.to_string());
    cells.extend([o.oldest_in_flight_ms, o.max_gap_ms, o.expected_max_gap_ms].map(or_empty));
    let all = Percentiles::new(more.iter().copied().chain(Percentile::DEFAULT_TABLE));
    cells.extend(kinds.map(|of| {
        let figures = all.as_slice().iter().map(|p| o.percentile(*p));
        at_least_from(figures, of, of.figures(o).max_at_least)
    }));
    cells
}

/// Text of a CSV cell; empty for `None`, a figure that was not measured.
pub(crate) fn or_empty(figure: Option<impl ToString>) -> String {
    figure.map_or_else(String::new, |figure| figure.to_string())
}

/// CSV cells of a run's schedule: offered and achieved rate per second, and number of dropped operations or events;
/// empty without a schedule.
fn schedule(run: &Run) -> [String; 3] {
    let mix = run.mix.as_ref().map(|m| &m.total);
    let mix = mix.and_then(|m| Some((m.offered_ops_per_s?, m.achieved_ops_per_s, m.dropped)));
    let events = run.schedule.as_ref();
    let events = events.map(|e| (e.offered_events_per_s, e.achieved_events_per_s, e.dropped));
    let Some((offered, achieved, dropped)) = mix.or(events) else {
        return Default::default();
    };
    [
        offered.to_string(),
        achieved.to_string(),
        dropped.to_string(),
    ]
}

/// The lowest percentile that is a lower bound, like all higher percentiles and the maximum; `max` if only the maximum
/// is a lower bound, empty if the maximum is exact. `figures` are in increasing order of percentile.
pub(crate) fn at_least_from(
    figures: impl Iterator<Item = Option<PercentileFigure>>,
    of: PercentileKind,
    max_at_least: bool,
) -> String {
    match figures.flatten().find(|f| of.at_least(f)) {
        Some(figure) => figure.percentile.to_string(),
        None if max_at_least => "max".to_owned(),
        None => String::new(),
    }
}

/// CSV cell of a percentile in milliseconds; empty if too few operations completed for the percentile, unless the
/// figure is a lower bound.
pub(crate) fn known(figure: Option<PercentileFigure>, of: PercentileKind) -> String {
    let figure = figure.filter(|f| f.enough_samples || of.at_least(f));
    or_empty(figure.map(|f| of.ms(&f)))
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
