//! Hosts of a run of several ranks.

use crate::document::Table;
use crate::format::{latency, or_dash, percent, rate};
use plimsoll_plan::{Bytes, Count, counted};
use plimsoll_results::{HostFigures, Run};

/// A table of the hosts; without rows for a single host.
pub(crate) fn table(run: &Run) -> Table {
    let head = "host|ranks|ops|ops/s|errors|mean|max|CPU|busy|received|sent";
    Table::new("Hosts", head.split('|')).with_rows(run.hosts.iter().map(row))
}

fn row(host: &HostFigures) -> Vec<String> {
    vec![
        host.host.clone(),
        host.ranks.to_string(),
        Count(host.ops).to_string(),
        rate(host.ops_per_s),
        Count(host.errors).to_string(),
        or_dash((host.ops > 0).then(|| latency(host.mean_ms))),
        or_dash((host.ops > 0).then(|| latency(host.max_ms))),
        format!("{:.1} s", host.cpu_s),
        or_dash(host.machine_busy.map(percent)),
        or_dash(host.received_bytes.map(|n| Bytes(n).to_string())),
        or_dash(host.sent_bytes.map(|n| Bytes(n).to_string())),
    ]
}

/// A sentence on the spread of the ranks' starts; `None` for one rank.
#[must_use]
pub fn starts(run: &Run) -> Option<String> {
    let starts = run.starts?;
    Some(format!(
        "{} started within {}, longest round trip {}",
        counted(u64::from(run.ranks), "rank", "ranks"),
        latency(starts.spread_ms),
        latency(starts.round_trip_ms)
    ))
}
