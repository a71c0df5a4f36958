//! Table of operations: the figures of `run.json`.

use crate::parquet::ParquetError;
use crate::parquet::level::Level;
use crate::parquet::run_facts::{self, OfRun, RunFacts};
use crate::parquet::table::{Cell, Column, Table, column};
use crate::parquet::windows::Part;
use plimsoll_diagnostics::foreign;
use plimsoll_measure::{RankRow, RankStage};
use plimsoll_plan::{OpClass, Operation};
use plimsoll_results::{
    LatencyFigures, OperationFigures, Percentile, PercentileFigure, Run, Stage, Summary, Window,
};
use std::sync::Arc;

const NS_PER_MS: f64 = 1e6;

const NS_PER_S: f64 = 1e9;

/// Window, stage or rank of a row.
#[derive(Clone)]
struct Scope {
    part: Part,
    window: u32,
    stage: Option<(Arc<str>, u32)>,
    rank: Option<u32>,
    start_s: f64,
    window_s: f64,
}

/// A latency distribution in milliseconds.
#[derive(Clone, Copy, Default)]
struct Latencies {
    mean: Option<f64>,
    min: Option<f64>,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    max: Option<f64>,
}

/// A row of the table.
pub(crate) struct Row {
    run: Arc<RunFacts>,
    scope: Scope,
    level: Level,
    name: Option<String>,
    kind: Option<String>,
    class: Option<&'static str>,
    ops: u64,
    ops_per_s: f64,
    bytes: u128,
    bytes_per_s: f64,
    errors: u64,
    cpu_us_per_op: Option<f64>,
    paced_ops: Option<u64>,
    latency: Latencies,
    service: Latencies,
    lower_bound_ms: Option<f64>,
    service_lower_bound_ms: Option<f64>,
    in_flight: Option<u64>,
    oldest_in_flight_ms: Option<f64>,
    max_gap_ms: Option<f64>,
    expected_max_gap_ms: Option<f64>,
}

impl OfRun for Row {
    fn run(&self) -> &Arc<RunFacts> {
        &self.run
    }
}

pub(crate) fn columns() -> Vec<Column<Row>> {
    let mut columns = run_facts::columns();
    columns.extend(scope_columns());
    columns.extend([
        column("level", Cell::Text(|r: &Row| Some(r.level.name()))),
        column("operation", Cell::Text(|r| r.name.as_deref())),
        column("kind", Cell::Text(|r| r.kind.as_deref())),
        column("class", Cell::Text(|r| r.class)),
        column("ops", Cell::Count(|r| Some(r.ops))),
        column("ops_per_s", Cell::Real(|r| Some(r.ops_per_s))),
        column("bytes", Cell::Real(|r| Some(r.bytes as f64))),
        column("bytes_per_s", Cell::Real(|r| Some(r.bytes_per_s))),
        column("errors", Cell::Count(|r| Some(r.errors))),
        column("cpu_us_per_op", Cell::Real(|r| r.cpu_us_per_op)),
        column("paced_ops", Cell::Count(|r| r.paced_ops)),
    ]);
    columns.extend(latency_columns());
    columns.extend([
        column("lower_bound_ms", Cell::Real(|r: &Row| r.lower_bound_ms)),
        column(
            "service_lower_bound_ms",
            Cell::Real(|r| r.service_lower_bound_ms),
        ),
        column("in_flight", Cell::Count(|r| r.in_flight)),
        column("oldest_in_flight_ms", Cell::Real(|r| r.oldest_in_flight_ms)),
        column("max_gap_ms", Cell::Real(|r| r.max_gap_ms)),
        column("expected_max_gap_ms", Cell::Real(|r| r.expected_max_gap_ms)),
    ]);
    columns
}

fn scope_columns() -> [Column<Row>; 7] {
    [
        column("part", Cell::Text(|r| Some(r.scope.part.name()))),
        column(
            "window_number",
            Cell::Count(|r| Some(u64::from(r.scope.window))),
        ),
        column(
            "stage",
            Cell::Text(|r| r.scope.stage.as_ref().map(|s| &*s.0)),
        ),
        column(
            "iteration",
            Cell::Count(|r| r.scope.stage.as_ref().map(|s| u64::from(s.1))),
        ),
        column("rank", Cell::Count(|r| r.scope.rank.map(u64::from))),
        column("window_start_s", Cell::Real(|r| Some(r.scope.start_s))),
        column("window_s", Cell::Real(|r| Some(r.scope.window_s))),
    ]
}

fn latency_columns() -> [Column<Row>; 14] {
    [
        column("latency_mean_ms", Cell::Real(|r| r.latency.mean)),
        column("latency_min_ms", Cell::Real(|r| r.latency.min)),
        column("latency_p50_ms", Cell::Real(|r| r.latency.p50)),
        column("latency_p95_ms", Cell::Real(|r| r.latency.p95)),
        column("latency_p99_ms", Cell::Real(|r| r.latency.p99)),
        column("latency_p999_ms", Cell::Real(|r| r.latency.p999)),
        column("latency_max_ms", Cell::Real(|r| r.latency.max)),
        column("service_mean_ms", Cell::Real(|r| r.service.mean)),
        column("service_min_ms", Cell::Real(|r| r.service.min)),
        column("service_p50_ms", Cell::Real(|r| r.service.p50)),
        column("service_p95_ms", Cell::Real(|r| r.service.p95)),
        column("service_p99_ms", Cell::Real(|r| r.service.p99)),
        column("service_p999_ms", Cell::Real(|r| r.service.p999)),
        column("service_max_ms", Cell::Real(|r| r.service.max)),
    ]
}

/// Adds the figures of a run: the whole run, earlier windows, stages and the ranks of stages.
pub(crate) fn add(
    table: &mut Table<Row>,
    facts: &Arc<RunFacts>,
    run: &Run,
) -> Result<(), ParquetError> {
    let scope = |part, window: &Window, stage| Scope {
        part,
        window: window.number,
        stage,
        rank: None,
        start_s: window.start_s,
        window_s: window.window_s,
    };
    let mut rows = Vec::new();
    // Even a run that measured nothing has exactly one summary row of this part.
    let whole = Scope {
        part: Part::Run,
        window: run.window_number,
        stage: None,
        rank: None,
        start_s: run.window_start_s,
        window_s: run.window_s,
    };
    let figures = Figures {
        summary: &run.summary,
        rows: [
            &run.operations,
            &run.procedures,
            run.completion_delay.as_slice(),
        ],
    };
    rows.extend(rows_of(facts, &whole, figures));
    for window in &run.earlier_windows {
        let scope = scope(Part::EarlierWindow, window, None);
        rows.extend(rows_of(facts, &scope, figures_of(window)));
    }
    for stage in &run.stages {
        let name: Arc<str> = foreign::escaped(&stage.name).into();
        let scope = scope(Part::Stage, &stage.window, Some((name, stage.iteration)));
        rows.extend(rows_of(facts, &scope, figures_of(&stage.window)));
        rows.extend(rank_rows(facts, &scope, stage, &run.plan.operations));
    }
    rows.into_iter().try_for_each(|row| table.push(row))
}

/// Figures of a window.
struct Figures<'a> {
    summary: &'a Summary,
    rows: [&'a [OperationFigures]; 3],
}

fn figures_of(window: &Window) -> Figures<'_> {
    Figures {
        summary: &window.summary,
        rows: [
            &window.operations,
            &window.procedures,
            window.completion_delay.as_slice(),
        ],
    }
}

fn rows_of(facts: &Arc<RunFacts>, scope: &Scope, figures: Figures<'_>) -> Vec<Row> {
    let mut rows = vec![summary_row(facts, scope, figures.summary)];
    let all = figures.rows.into_iter().flatten();
    rows.extend(all.map(|o| operation_row(facts, scope, o)));
    rows
}

fn summary_row(facts: &Arc<RunFacts>, scope: &Scope, s: &Summary) -> Row {
    let completed = |ms: f64| (s.ops > 0).then_some(ms);
    let percentile = |p: Percentile| s.percentile(p);
    let bound = |of: fn(&PercentileFigure) -> bool| {
        let is_bound = s.percentiles.iter().any(of);
        is_bound.then_some(s.oldest_in_flight_ms).flatten()
    };
    let latency = |p| percentile(p).map(|f| f.ms);
    let service = |p| percentile(p).map(|f| f.service_ms.unwrap_or(f.ms));
    Row {
        run: Arc::clone(facts),
        scope: scope.clone(),
        level: Level::Summary,
        name: None,
        kind: None,
        class: None,
        ops: s.ops,
        ops_per_s: s.ops_per_s,
        bytes: s.bytes,
        bytes_per_s: s.bytes_per_s,
        errors: s.errors,
        cpu_us_per_op: s.cpu_us_per_op,
        paced_ops: Some(s.paced_ops),
        latency: Latencies {
            mean: completed(s.mean_ms),
            p50: latency(Percentile::P50),
            p95: latency(Percentile::P95),
            p99: latency(Percentile::P99),
            p999: latency(Percentile::P999),
            ..Latencies::default()
        },
        service: Latencies {
            mean: completed(s.service().mean_ms),
            p50: service(Percentile::P50),
            p95: service(Percentile::P95),
            p99: service(Percentile::P99),
            p999: service(Percentile::P999),
            ..Latencies::default()
        },
        lower_bound_ms: bound(|f| f.at_least),
        service_lower_bound_ms: bound(|f| f.service_at_least.unwrap_or(f.at_least)),
        in_flight: Some(s.in_flight),
        oldest_in_flight_ms: s.oldest_in_flight_ms,
        max_gap_ms: s.max_gap_ms,
        expected_max_gap_ms: s.expected_max_gap_ms,
    }
}

fn operation_row(facts: &Arc<RunFacts>, scope: &Scope, o: &OperationFigures) -> Row {
    Row {
        run: Arc::clone(facts),
        scope: scope.clone(),
        level: Level::of(o.kind),
        name: Some(foreign::escaped(&o.name).into_owned()),
        kind: Some(o.kind.to_string()),
        class: Some(class_name(o.class)),
        ops: o.ops,
        ops_per_s: o.ops_per_s,
        bytes: o.bytes,
        bytes_per_s: o.bytes_per_s,
        errors: o.errors,
        cpu_us_per_op: o.cpu_us_per_op,
        paced_ops: Some(o.paced_ops),
        latency: latencies(o, &o.latency),
        service: latencies(o, o.service()),
        lower_bound_ms: o.latency.max_at_least.then_some(o.latency.max_ms),
        service_lower_bound_ms: o.service().max_at_least.then_some(o.service().max_ms),
        in_flight: Some(o.in_flight),
        oldest_in_flight_ms: o.oldest_in_flight_ms,
        max_gap_ms: o.max_gap_ms,
        expected_max_gap_ms: o.expected_max_gap_ms,
    }
}

/// Latencies of a row. If all operations are still in flight, only lower bounds of the percentiles and the maximum are
/// known.
fn latencies(o: &OperationFigures, f: &LatencyFigures) -> Latencies {
    let completed = |ms: f64| (o.ops > 0).then_some(ms);
    let known = |ms: f64| o.has_latencies().then_some(ms);
    Latencies {
        mean: completed(f.mean_ms),
        min: completed(f.min_ms),
        p50: known(f.p50_ms),
        p95: known(f.p95_ms),
        p99: known(f.p99_ms),
        p999: known(f.p999_ms),
        max: known(f.max_ms),
    }
}

fn class_name(class: OpClass) -> &'static str {
    match class {
        OpClass::Io => "io",
        OpClass::Aio => "aio",
        OpClass::Sync => "sync",
        OpClass::Other => "other",
    }
}

fn rank_rows(
    facts: &Arc<RunFacts>,
    scope: &Scope,
    stage: &Stage,
    operations: &[Operation],
) -> Vec<Row> {
    let of_rank = |rank: &RankStage| {
        let scope = Scope {
            part: Part::Rank,
            rank: Some(rank.rank),
            window_s: rank.time_ns as f64 / NS_PER_S,
            ..scope.clone()
        };
        let named = operations.iter().zip(&rank.rows);
        let occurred = named.filter(|(_, row)| row.ops + row.errors > 0);
        let rows = occurred.map(|(o, row)| rank_row(facts, &scope, o, row));
        rows.collect::<Vec<_>>()
    };
    stage.ranks.iter().flat_map(of_rank).collect()
}

fn rank_row(facts: &Arc<RunFacts>, scope: &Scope, o: &Operation, row: &RankRow) -> Row {
    let per_s = |n: f64| match scope.window_s {
        0.0 => 0.0,
        s => n / s,
    };
    let [min, _, p50, _, _, p99, max] = row
        .quantiles_ns
        .map(|ns| (row.ops > 0).then_some(ns as f64 / NS_PER_MS));
    Row {
        run: Arc::clone(facts),
        scope: scope.clone(),
        level: Level::of(o.kind),
        name: Some(foreign::escaped(&o.name).into_owned()),
        kind: Some(o.kind.to_string()),
        class: Some(class_name(o.kind.class())),
        ops: row.ops,
        ops_per_s: per_s(row.ops as f64),
        bytes: row.bytes,
        bytes_per_s: per_s(row.bytes as f64),
        errors: row.errors,
        cpu_us_per_op: None,
        paced_ops: None,
        latency: Latencies {
            min,
            p50,
            p99,
            max,
            ..Latencies::default()
        },
        service: Latencies::default(),
        lower_bound_ms: None,
        service_lower_bound_ms: None,
        in_flight: None,
        oldest_in_flight_ms: None,
        max_gap_ms: None,
        expected_max_gap_ms: None,
    }
}
