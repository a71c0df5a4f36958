//! Live line of a run in progress.

use crate::format::{latency, mib_per_s, rate};
use plimsoll_plan::{LoadTime, counted, show_duration};
use std::time::Duration;

/// Figures of the latest interval, for the live line.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveFigures {
    /// Time since the workers started.
    pub elapsed: Duration,
    /// Planned time of the load; `None` without a limit.
    pub planned: Option<LoadTime>,
    /// Operations completed per second in the latest interval.
    pub ops_per_s: f64,
    /// Bytes read and written per second in the latest interval.
    pub bytes_per_s: f64,
    /// Mean and 99th percentile of the latency in milliseconds; `None` until an operation has completed.
    pub latency_ms: Option<(f64, f64)>,
    /// Mean and 99th percentile of the service time in milliseconds; `None` unless operations are paced.
    pub service_ms: Option<(f64, f64)>,
    /// Number of failed operations since the run began.
    pub errors: u64,
}

/// The live line, without a line break.
#[must_use]
pub fn line(m: &LiveFigures) -> String {
    let shown = |ms: Option<f64>| ms.map_or("-".into(), latency);
    let whole = Duration::from_secs(m.elapsed.as_secs());
    let service = m.service_ms.map(|(mean, p99)| {
        let (mean, p99) = (latency(mean), latency(p99));
        format!("service mean {mean:>7}  p99 {p99:>7}  ")
    });
    let planned = m.planned.map_or_else(String::new, |planned| {
        let most = show_duration(planned.at_most);
        format!(" of {}{most}", planned.limit_words())
    });
    format!(
        "{:>6}{planned}  {:>9} ops/s  {:>7} MiB/s  mean {:>7}  p99 {:>7}  {}{}",
        show_duration(whole),
        rate(m.ops_per_s),
        mib_per_s(m.bytes_per_s),
        shown(m.latency_ms.map(|l| l.0)),
        shown(m.latency_ms.map(|l| l.1)),
        service.unwrap_or_default(),
        counted(m.errors, "error", "errors"),
    )
}
