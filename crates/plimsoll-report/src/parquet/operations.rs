//! Table of operations: the figures of `run.json`.

use crate::parquet::facts::{WindowFacts, level};
use crate::parquet::table::{Cell, count, real, text};
use crate::percentiles::{PercentileKind, columns};
use plimsoll_measure::{RankRow, RankStage};
use plimsoll_plan::{OpKind, Operation};
use plimsoll_results::{
    OperationFigures, Percentile, PercentileFigure, Run, Stage, Summary, Window, per_second,
};

const NS_PER_MS: f64 = 1e6;

const NS_PER_S: f64 = 1e9;

/// Columns of latencies in milliseconds, in the order of the values of [`columns`].
const LATENCIES: &str = "latency_mean_ms latency_min_ms latency_p50_ms latency_p95_ms latency_p99_ms \
                         latency_p999_ms latency_max_ms";

/// Columns of service times in milliseconds, in the order of the values of [`columns`].
const SERVICE_TIMES: &str = "service_mean_ms service_min_ms service_p50_ms service_p95_ms service_p99_ms \
                             service_p999_ms service_max_ms";

/// Cells that identify the window, stage and rank of a row, which follow the cells of the run. `window_s` is the length
/// of the window, or of the rank's part in a stage, in seconds.
fn scope(window: WindowFacts, rank: Option<u32>, window_s: f64) -> Vec<Cell> {
    let start_s = window.start_s;
    let mut cells = Vec::from(window.cells);
    cells.extend([
        count("rank", rank.map(u64::from)),
        real("window_start_s", start_s),
        real("window_s", window_s),
    ]);
    cells
}

/// Sample row of the table of operations, after the cells of the run: it defines the names and types of the columns.
pub(super) fn sample() -> Vec<Cell> {
    let window = WindowFacts::new("run", 0, None, None);
    [scope(window, None, 0.0), summary(&Summary::default())].concat()
}

/// Calls `push` with each row of a run, without the cells of the run: rows of the whole run, earlier windows, stages
/// and the ranks of stages.
pub(crate) fn rows<E>(run: &Run, mut push: impl FnMut(&[Cell]) -> Result<(), E>) -> Result<(), E> {
    // The row with part `run` and all operations together exists exactly once per run, even if the run measured
    // nothing.
    let whole = WindowFacts::new("run", run.window_number, None, Some(run.window_start_s));
    let whole = scope(whole, None, run.window_s);
    let each = run.operations.iter().chain(&run.procedures);
    let each = each.chain(&run.completion_delay);
    window_rows(&whole, &run.summary, each, &mut push)?;
    for window in &run.earlier_windows {
        of_window("earlier_window", None, window, &mut push)?;
    }
    for stage in &run.stages {
        of_window("stage", Some(stage), &stage.window, &mut push)?;
        for rank in &stage.ranks {
            of_rank(stage, rank, &run.plan.operations, &mut push)?;
        }
    }
    Ok(())
}

fn of_window<E>(
    part: &str,
    stage: Option<&Stage>,
    window: &Window,
    push: &mut impl FnMut(&[Cell]) -> Result<(), E>,
) -> Result<(), E> {
    let of = WindowFacts::new(part, window.number, stage, Some(window.start_s));
    let scope = scope(of, None, window.window_s);
    let each = window.operations.iter().chain(&window.procedures);
    let each = each.chain(&window.completion_delay);
    window_rows(&scope, &window.summary, each, push)
}

fn window_rows<'a, E>(
    scope: &[Cell],
    all: &Summary,
    mut each: impl Iterator<Item = &'a OperationFigures>,
    push: &mut impl FnMut(&[Cell]) -> Result<(), E>,
) -> Result<(), E> {
    push(&[scope, &summary(all)].concat())?;
    each.try_for_each(|o| push(&[scope, &operation(o)].concat()))
}

/// Cells of the row for all operations together, with a value or null for each column.
fn summary(s: &Summary) -> Vec<Cell> {
    let completed = |ms: f64| (s.ops > 0).then_some(ms);
    let bound = |of: PercentileKind| {
        let is_bound = s
            .percentiles
            .iter()
            .any(|f: &PercentileFigure| of.at_least(f));
        is_bound.then_some(s.oldest_in_flight_ms).flatten()
    };
    let times = |mean_ms, of: PercentileKind| {
        let at = |p| Some(of.ms(&s.percentile(p)?));
        let [p50, p95, p99, p999] = Percentile::DEFAULT_TABLE.map(at);
        [completed(mean_ms), None, p50, p95, p99, p999, None]
    };
    let unnamed = |column| text(column, None::<&str>);
    let mut cells = vec![
        text("level", "summary"),
        unnamed("operation"),
        unnamed("kind"),
        unnamed("class"),
        count("ops", s.ops),
        real("ops_per_s", s.ops_per_s),
        real("bytes", s.bytes as f64),
        real("bytes_per_s", s.bytes_per_s),
        count("errors", s.errors),
        real("cpu_us_per_op", s.cpu_us_per_op),
        count("paced_ops", s.paced_ops),
    ];
    let latencies = times(s.mean_ms, PercentileKind::Latency);
    let service = times(s.service().mean_ms, PercentileKind::Service);
    cells.extend(reals(LATENCIES, latencies).chain(reals(SERVICE_TIMES, service)));
    cells.extend([
        real("lower_bound_ms", bound(PercentileKind::Latency)),
        real("service_lower_bound_ms", bound(PercentileKind::Service)),
        count("in_flight", s.in_flight),
        real("oldest_in_flight_ms", s.oldest_in_flight_ms),
        real("max_gap_ms", s.max_gap_ms),
        real("expected_max_gap_ms", s.expected_max_gap_ms),
    ]);
    cells
}

fn reals(names: &'static str, values: [Option<f64>; 7]) -> impl Iterator<Item = Cell> {
    let all = names.split(' ').zip(values);
    all.map(|(name, value)| real(name, value))
}

/// Cells of the row of one operation: its level, name, kind and class, then its figures.
fn operation(o: &OperationFigures) -> Vec<Cell> {
    let (latency, service) = (&o.latency, o.service());
    let mut cells = named(&o.name, o.kind);
    cells.extend([
        count("ops", o.ops),
        real("ops_per_s", o.ops_per_s),
        real("bytes", o.bytes as f64),
        real("bytes_per_s", o.bytes_per_s),
        count("errors", o.errors),
        real("cpu_us_per_op", o.cpu_us_per_op),
        count("paced_ops", o.paced_ops),
    ]);
    cells.extend(reals(LATENCIES, columns(o, latency)));
    cells.extend(reals(SERVICE_TIMES, columns(o, service)));
    let bound = |max_ms: f64, at_least: bool| at_least.then_some(max_ms);
    cells.extend([
        real(
            "lower_bound_ms",
            bound(latency.max_ms, latency.max_at_least),
        ),
        real(
            "service_lower_bound_ms",
            bound(service.max_ms, service.max_at_least),
        ),
        count("in_flight", o.in_flight),
        real("oldest_in_flight_ms", o.oldest_in_flight_ms),
        real("max_gap_ms", o.max_gap_ms),
        real("expected_max_gap_ms", o.expected_max_gap_ms),
    ]);
    cells
}

fn named(name: &str, kind: OpKind) -> Vec<Cell> {
    let class = kind.class().to_string();
    let kind = kind.to_string();
    vec![
        text("level", level(&kind)),
        text("operation", name),
        text("kind", &*kind),
        text("class", &*class),
    ]
}

/// Calls `push` with a row for each operation that the rank called during a stage; operations without a call have no
/// row.
fn of_rank<E>(
    stage: &Stage,
    rank: &RankStage,
    operations: &[Operation],
    push: &mut impl FnMut(&[Cell]) -> Result<(), E>,
) -> Result<(), E> {
    let seconds = rank.time_ns as f64 / NS_PER_S;
    let window = &stage.window;
    let of = WindowFacts::new("rank", window.number, Some(stage), Some(window.start_s));
    let scope = scope(of, Some(rank.rank), seconds);
    let named = operations.iter().zip(&rank.rows);
    for (o, row) in named.filter(|(_, row)| row.ops + row.errors > 0) {
        push(&[&scope[..], &rank_row(o, row, seconds)].concat())?;
    }
    Ok(())
}

fn rank_row(o: &Operation, row: &RankRow, seconds: f64) -> Vec<Cell> {
    let known = |ns: u64| (row.ops > 0).then_some(ns as f64 / NS_PER_MS);
    let [min, _, p50, _, _, p99, max] = row.quantiles_ns.map(known);
    let mut cells = named(&o.name, o.kind);
    cells.extend([
        count("ops", row.ops),
        real("ops_per_s", per_second(row.ops, seconds)),
        real("bytes", row.bytes as f64),
        real("bytes_per_s", per_second(row.bytes, seconds)),
        count("errors", row.errors),
    ]);
    cells.extend(reals(LATENCIES, [None, min, p50, None, p99, None, max]));
    cells
}
