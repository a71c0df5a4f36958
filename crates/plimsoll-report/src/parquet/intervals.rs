//! Table of intervals: a row for each line of `intervals.csv`.

use crate::parquet::ParquetError;
use crate::parquet::level::Level;
use crate::parquet::run_facts::{self, OfRun, RunFacts};
use crate::parquet::table::{Cell, Column, Table, column};
use crate::parquet::windows::{WindowFacts, Windows};
use plimsoll_results::{IntervalRow, RunDir};
use std::sync::Arc;

/// A row of the table.
pub(crate) struct Row {
    run: Arc<RunFacts>,
    window: Arc<WindowFacts>,
    line: IntervalRow,
}

impl OfRun for Row {
    fn run(&self) -> &Arc<RunFacts> {
        &self.run
    }
}

/// A service time; equals the latency in files before version 2, whose latencies are service times.
fn service(line: &IntervalRow, service_ms: Option<f64>, latency_ms: f64) -> Option<f64> {
    (line.ops > 0).then(|| service_ms.unwrap_or(latency_ms))
}

/// A latency; null if no operation completed.
fn latency(line: &IntervalRow, ms: f64) -> Option<f64> {
    (line.ops > 0).then_some(ms)
}

pub(crate) fn columns() -> Vec<Column<Row>> {
    let mut columns = run_facts::columns();
    columns.extend([
        column("part", Cell::Text(|r: &Row| Some(r.window.part.name()))),
        column(
            "window_number",
            Cell::Count(|r| Some(u64::from(r.line.window))),
        ),
        column(
            "stage",
            Cell::Text(|r| r.window.stage.as_ref().map(|s| s.0.as_str())),
        ),
        column(
            "iteration",
            Cell::Count(|r| r.window.stage.as_ref().map(|s| u64::from(s.1))),
        ),
        column("interval_number", Cell::Count(|r| Some(r.line.interval))),
        column("start_s", Cell::Real(|r| Some(r.line.start_s))),
        column("length_s", Cell::Real(|r| Some(r.line.length_s))),
        column(
            "time",
            Cell::Time(|r| r.run.time_us(r.window.start_s? + r.line.start_s)),
        ),
        column(
            "level",
            Cell::Text(|r| Some(Level::of_name(&r.line.kind).name())),
        ),
        column("operation", Cell::Text(|r| Some(&r.line.operation))),
        column("kind", Cell::Text(|r| Some(&r.line.kind))),
        column("ops", Cell::Count(|r| Some(r.line.ops))),
        column("bytes", Cell::Real(|r| Some(r.line.bytes as f64))),
        column("errors", Cell::Count(|r| Some(r.line.errors))),
        column("paced_ops", Cell::Count(|r| Some(r.line.paced_ops))),
        column(
            "latency_mean_ms",
            Cell::Real(|r| latency(&r.line, r.line.mean_ms)),
        ),
        column(
            "latency_p50_ms",
            Cell::Real(|r| latency(&r.line, r.line.p50_ms)),
        ),
        column(
            "latency_p99_ms",
            Cell::Real(|r| latency(&r.line, r.line.p99_ms)),
        ),
        column(
            "latency_max_ms",
            Cell::Real(|r| latency(&r.line, r.line.max_ms)),
        ),
        column(
            "service_mean_ms",
            Cell::Real(|r| service(&r.line, r.line.service_mean_ms, r.line.mean_ms)),
        ),
        column(
            "service_p50_ms",
            Cell::Real(|r| service(&r.line, r.line.service_p50_ms, r.line.p50_ms)),
        ),
        column(
            "service_p99_ms",
            Cell::Real(|r| service(&r.line, r.line.service_p99_ms, r.line.p99_ms)),
        ),
        column(
            "service_max_ms",
            Cell::Real(|r| service(&r.line, r.line.service_max_ms, r.line.max_ms)),
        ),
        column(
            "events",
            Cell::Text(|r| Some(r.line.events.as_str()).filter(|e| !e.is_empty())),
        ),
    ]);
    columns
}

/// Adds the intervals of a run.
pub(crate) fn add(
    table: &mut Table<Row>,
    facts: &Arc<RunFacts>,
    windows: &Windows,
    dir: &RunDir,
) -> Result<(), ParquetError> {
    let mut last: Option<(u32, Arc<WindowFacts>)> = None;
    for line in dir.read_intervals()? {
        let window = match last.take() {
            Some((number, window)) if number == line.window => window,
            _ => Arc::new(windows.get(line.window)),
        };
        last = Some((line.window, Arc::clone(&window)));
        table.push(Row {
            run: Arc::clone(facts),
            window,
            line,
        })?;
    }
    Ok(())
}
