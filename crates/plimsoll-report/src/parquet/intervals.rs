//! Table of intervals: a row for each line of `intervals.csv`.

use crate::parquet::ParquetError;
use crate::parquet::facts::{RunFacts, WindowFacts, Windows, level};
use crate::parquet::table::{Cell, Table, count, real, text, time};
use plimsoll_results::{IntervalRow, RunDir};

/// Cells of a line of `intervals.csv`, which follow the cells of its run and window in a row.
pub(super) fn cells(facts: &RunFacts, window: &WindowFacts, line: &IntervalRow) -> [Cell; 20] {
    let start_s = window.start_s.map(|start_s| start_s + line.start_s);
    let known = |ms: f64| (line.ops > 0).then_some(ms);
    // `intervals.csv` before version 2 has no columns of service times: its latencies are service times.
    let service = |service_ms: Option<f64>, ms| known(service_ms.unwrap_or(ms));
    [
        count("interval_number", line.interval),
        real("start_s", line.start_s),
        real("length_s", line.length_s),
        time("time", start_s.and_then(|s| facts.time_us(s))),
        text("level", level(&line.kind)),
        text("operation", &*line.operation),
        text("kind", &*line.kind),
        count("ops", line.ops),
        real("bytes", line.bytes as f64),
        count("errors", line.errors),
        count("paced_ops", line.paced_ops),
        real("latency_mean_ms", known(line.mean_ms)),
        real("latency_p50_ms", known(line.p50_ms)),
        real("latency_p99_ms", known(line.p99_ms)),
        real("latency_max_ms", known(line.max_ms)),
        real(
            "service_mean_ms",
            service(line.service_mean_ms, line.mean_ms),
        ),
        real("service_p50_ms", service(line.service_p50_ms, line.p50_ms)),
        real("service_p99_ms", service(line.service_p99_ms, line.p99_ms)),
        real("service_max_ms", service(line.service_max_ms, line.max_ms)),
        text("events", Some(&*line.events).filter(|e| !e.is_empty())),
    ]
}

/// Adds the intervals of a run.
pub(super) fn add(
    table: &mut Table,
    facts: &RunFacts,
    windows: &mut Windows,
    dir: &RunDir,
) -> Result<(), ParquetError> {
    for line in dir.read_intervals()? {
        let window = windows.get(line.window);
        let row = cells(facts, window, &line);
        table.push(facts.cells.iter().chain(&window.cells).chain(&row))?;
    }
    Ok(())
}
