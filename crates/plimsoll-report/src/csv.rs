//! The figures of runs as comma-separated values, for spreadsheets and scripts.

use crate::markdown::SCALED;
use crate::percentiles::Of;
use plimsoll_diagnostics::foreign;
use plimsoll_results::{LatencyFigures, OperationFigures, Percentile, Percentiles, Run};

/// Columns before those of latencies.
const HEAD: [&str; 14] = [
    "results",
    "workload",
    "started",
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

/// Columns behind those of latencies: the share of the full data and rates, empty without an
/// operation mix, and what follows from it.
const SCALE: [&str; 2] = ["scale", "remark"];

/// Columns at the end, of what was under way when the window ended, and of gaps.
const STANDSTILL: [&str; 4] = [
    "in_flight",
    "oldest_in_flight_ms",
    "longest_gap_ms",
    "likely_gap_ms",
];

/// A line an operation of each run, with the figures as `run.json` has them and a first line of
/// names; what was not measured is empty. The latency of an operation that was not paced is its
/// service time. Percentiles that were requested besides the usual ones have columns of their own, which
/// are empty where there are too few operations. `runs` are names of results directories with what is in
/// them.
#[must_use]
pub fn render(runs: &[(&str, &Run)]) -> String {
    let asked = runs
        .iter()
        .filter_map(|(_, r)| r.percentiles_shown.as_ref());
    let more = Percentiles::besides(asked, &Percentile::SHOWN);
    let latencies = ["latency", "service"].into_iter().flat_map(|kind| {
        let fixed = LATENCIES.iter().map(move |l| format!("{kind}_{l}"));
        fixed.chain(more.iter().map(move |p| format!("{kind}_{p}_ms")))
    });
    let head: Vec<String> = HEAD
        .map(str::to_owned)
        .into_iter()
        .chain(latencies)
        .chain(SCALE.map(str::to_owned))
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
        run.started.clone(),
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
    for (figures, of) in [(&o.latency, Of::Latency), (o.service(), Of::Service)] {
        cells.extend(latency((o.ops > 0).then_some(figures)));
        let enough = |p: &Percentile| o.percentile(*p).filter(|f| f.enough);
        let ms = more
            .iter()
            .map(|p| enough(p).map(|f| of.ms(&f).to_string()));
        cells.extend(ms.map(Option::unwrap_or_default));
    }
    cells.push(scale.map_or_else(String::new, |s| s.to_string()));
    cells.push(remark.to_owned());
    cells.push(o.in_flight.to_string());
    let times = [o.oldest_in_flight_ms, o.longest_gap_ms, o.likely_gap_ms];
    cells.extend(times.map(|ms| ms.map_or_else(String::new, |ms| ms.to_string())));
    cells
}

fn latency(figures: Option<&LatencyFigures>) -> [String; 7] {
    let Some(f) = figures else {
        return Default::default();
    };
    [
        f.mean_ms, f.min_ms, f.p50_ms, f.p95_ms, f.p99_ms, f.p999_ms, f.max_ms,
    ]
    .map(|ms| ms.to_string())
}

/// A line of cells by RFC 4180, ended as on this system.
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
