//! The machines of a run of several ranks.

use crate::format::{inline_latency, latency, percent, rate};
use crate::table::Table;
use plimsoll_measure::StartFigures;
use plimsoll_plan::{Bytes, Count, counted};
use plimsoll_results::{HostFigures, Run};

/// The columns of the table of the machines.
pub const COLUMNS: [&str; 11] = [
    "host", "ranks", "ops", "ops/s", "errors", "mean", "max", "CPU", "busy", "received", "sent",
];

/// The rows of the table of the machines, each with the name of one; empty if there is only one.
#[must_use]
pub fn rows(run: &Run) -> Vec<Vec<String>> {
    run.hosts.iter().map(row).collect()
}

/// A table of the machines; `None` if there is only one.
pub(crate) fn table(run: &Run) -> Option<Table> {
    if run.hosts.is_empty() {
        return None;
    }
    let mut table = Table::new(&COLUMNS);
    rows(run).into_iter().for_each(|row| table.row(row));
    Some(table)
}

fn row(host: &HostFigures) -> Vec<String> {
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    vec![
        host.host.clone(),
        host.ranks.to_string(),
        Count(host.ops).to_string(),
        rate(host.ops_per_s),
        Count(host.errors).to_string(),
        known((host.ops > 0).then(|| latency(host.mean_ms))),
        known((host.ops > 0).then(|| latency(host.max_ms))),
        format!("{:.1} s", host.cpu_s),
        known(host.machine_busy.map(percent)),
        known(host.received_bytes.map(|n| Bytes(n).to_string())),
        known(host.sent_bytes.map(|n| Bytes(n).to_string())),
    ]
}

/// How far apart the ranks started, as a sentence; `None` for one rank.
#[must_use]
pub fn starts(run: &Run) -> Option<String> {
    let StartFigures {
        spread_ms,
        round_trip_ms,
    } = run.starts?;
    Some(format!(
        "{} started within {}, longest round trip {}",
        counted(u64::from(run.ranks), "rank", "ranks"),
        inline_latency(spread_ms),
        inline_latency(round_trip_ms)
    ))
}
