//! The line that is shown while a run goes on.

use crate::format::{latency, mib_per_s, rate};
use plimsoll_plan::show_duration;
use std::time::Duration;

/// What the latest moments of a run look like.
#[derive(Debug, Clone, Copy, Default)]
pub struct Moment {
    /// Time since the run began.
    pub elapsed: Duration,
    /// Operations a second.
    pub ops_per_s: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
    /// Mean service time in milliseconds.
    pub mean_ms: f64,
    /// 99th percentile of the service time in milliseconds.
    pub p99_ms: f64,
    /// Errors since the run began.
    pub errors: u64,
}

/// One line without its end.
#[must_use]
pub fn line(m: &Moment) -> String {
    let whole = Duration::from_secs(m.elapsed.as_secs());
    format!(
        "{:>6}  {:>9} ops/s  {:>7} MiB/s  mean {:>7}  p99 {:>7}  {} {}",
        show_duration(whole),
        rate(m.ops_per_s),
        mib_per_s(m.bytes_per_s),
        latency(m.mean_ms),
        latency(m.p99_ms),
        m.errors,
        if m.errors == 1 { "error" } else { "errors" },
    )
}
