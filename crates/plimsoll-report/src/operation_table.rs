//! Tables with a row for each operation.

use crate::document::{Figure, Table};
use crate::format::{latency, mib_per_s, or_dash, rate};
use crate::percentiles::{
    BRIEF_PERCENTILES, PercentileKind, UNCERTAIN_NOTE, any_doubtful, bounded, shown,
};
use plimsoll_plan::{Count, OpKind};
use plimsoll_results::{LatencyKind, OperationFigures, Percentile, Run, Summary};

/// Note on a table with rows of service times.
const PACED: &str = "the latency of a paced operation is its response time, from its intended start; \
                     its service time, from the call, stands below it";

/// Note below a table with rows of the kind `local_close`.
const LOCAL: &str =
    "local_close: closes that sent no call to the server, which the totals leave out";

/// Table of a run's operations: counts, throughput, processor time, and latency with `percentiles`. A second row below
/// the row of a paced operation has the operation's service times.
#[must_use]
pub fn operation_table(
    caption: &str,
    operations: &[OperationFigures],
    percentiles: &[Percentile],
) -> Table {
    let entries = operations.iter().map(|o| (o, vec![]));
    unfolding_table(caption, entries.collect(), percentiles)
}

/// Table of a run's operations as [`operation_table`] makes it, in which an entry unfolds to the rows beside the entry.
pub(crate) fn unfolding_table(
    caption: &str,
    entries: Vec<(&OperationFigures, Vec<&OperationFigures>)>,
    percentiles: &[Percentile],
) -> Table {
    let errors = entries.iter().any(|(o, _)| o.errors > 0);
    let mut head = vec!["operation", "kind", "ops", "ops/s", "MiB/s"];
    head.extend(errors.then_some("errors"));
    head.push("CPU µs/op");
    let mut table = with_latencies(caption, &head, percentiles);
    let add = |table: &mut Table, o: &OperationFigures| {
        let mut row = vec![
            o.name.clone(),
            o.kind.to_string(),
            Count(o.ops).to_string(),
            rate(o.ops_per_s),
            mib_per_s(o.bytes_per_s),
        ];
        row.extend(errors.then(|| Count(o.errors).to_string()));
        row.push(o.cpu_us_per_op.map_or("-".into(), |us| format!("{us:.1}")));
        row.extend(latency_cells(o, percentiles, PercentileKind::Latency));
        table.row(row);
        if o.service.is_some() {
            let mut row = vec!["service time".to_owned()];
            row.resize(head.len(), String::new());
            row.extend(latency_cells(o, percentiles, PercentileKind::Service));
            table.nested_row(row);
        }
    };
    for (o, rows) in &entries {
        let first = table.rows.len();
        add(&mut table, o);
        if !rows.is_empty() {
            let entry = table.rows.len();
            rows.iter().for_each(|o| add(&mut table, o));
            let folded = table.rows.split_off(entry);
            table.folded.insert(first, folded);
        }
    }
    let is_paced = entries.iter().any(|(o, _)| o.service.is_some());
    table.notes.extend(is_paced.then(|| PACED.to_owned()));
    let is_local = entries.iter().any(|(o, _)| o.kind == OpKind::LocalClose);
    table.notes.extend(is_local.then(|| LOCAL.to_owned()));
    noted(table, entries.iter().map(|(o, _)| *o), percentiles)
}

/// A table of a target's calls for operations: counts, errors and latencies. `head` names the first columns: call,
/// count, and count per second.
#[must_use]
pub fn call_table(
    caption: &str,
    head: [&str; 3],
    calls: &[OperationFigures],
    percentiles: &[Percentile],
) -> Table {
    let head = [&head[..], &["errors"]].concat();
    let mut table = with_latencies(caption, &head, percentiles);
    for o in calls {
        let mut row = vec![
            o.name.clone(),
            Count(o.ops).to_string(),
            rate(o.ops_per_s),
            Count(o.errors).to_string(),
        ];
        row.extend(latency_cells(o, percentiles, PercentileKind::Latency));
        table.row(row);
    }
    noted(table, calls.iter(), percentiles)
}

/// A table with the columns `head`, followed by latency columns.
fn with_latencies(caption: &str, head: &[&str], percentiles: &[Percentile]) -> Table {
    let names = percentiles.iter().map(Percentile::to_string);
    let latencies = std::iter::once("mean".to_owned()).chain(names);
    let latencies = latencies.chain(["max".to_owned()]);
    let all = head.iter().map(|h| (*h).to_owned()).chain(latencies);
    Table {
        breaks: vec![head.len()],
        ..Table::new(caption, all)
    }
}

/// Adds a note if a percentile has too few operations.
fn noted<'a>(
    mut table: Table,
    operations: impl Iterator<Item = &'a OperationFigures>,
    percentiles: &[Percentile],
) -> Table {
    let figures = operations.flat_map(|o| percentiles.iter().map(|p| o.percentile(*p)));
    table
        .notes
        .extend(any_doubtful(figures).then(|| UNCERTAIN_NOTE.to_owned()));
    table
}

/// Cells of an operation: mean, percentiles and maximum.
fn latency_cells(
    o: &OperationFigures,
    percentiles: &[Percentile],
    of: PercentileKind,
) -> Vec<String> {
    let figures = of.figures(o);
    let completed = o.ops > 0;
    let known = o.has_latencies();
    let max = known.then(|| bounded(figures.max_ms, figures.max_at_least));
    let mut cells = vec![or_dash(completed.then(|| latency(figures.mean_ms)))];
    cells.extend(percentiles.iter().map(|p| shown(o.percentile(*p), of)));
    cells.push(or_dash(max));
    cells
}

/// Mean and percentiles of all operations, with the name of the latency; nothing for a run without latencies. The name is
/// empty if no operation was paced. If operations were paced, a second entry has the service times.
#[must_use]
pub fn latency_figures(run: &Run) -> Vec<(String, Vec<Figure>)> {
    let s: &Summary = &run.summary;
    if !s.has_latencies() {
        return vec![];
    }
    let percentiles = run.shown_percentiles(&BRIEF_PERCENTILES);
    let times = |mean_ms: f64, of: PercentileKind| {
        let mean = or_dash((s.ops > 0).then(|| latency(mean_ms)));
        let percentiles = percentiles.iter();
        let percentiles =
            percentiles.map(|p| Figure::new(p.to_string(), shown(s.percentile(*p), of)));
        std::iter::once(Figure::new("mean", mean))
            .chain(percentiles)
            .collect()
    };
    let latency = times(s.mean_ms, PercentileKind::Latency);
    let name = match (s.latency_kind(), s.service) {
        (LatencyKind::Service, _) | (_, None) => return vec![(String::new(), latency)],
        (LatencyKind::Mixed, _) => format!("latency ({} of the ops paced)", Count(s.paced_ops)),
        (kind, _) => kind.name().to_owned(),
    };
    let service = times(s.service().mean_ms, PercentileKind::Service);
    vec![(name, latency), ("service time".to_owned(), service)]
}
