//! Order of the compared runs in time: drift within a result, and results that were measured one after the other.

use super::{ChangeVerdict, RunSet};
use crate::format::rate;
use crate::latency;
use jiff::Timestamp;
use plimsoll_measure::ClockKind;
use plimsoll_measure::compare::Trend;
use plimsoll_plan::counted;
use plimsoll_results::{LatencyKind, Run};
use std::borrow::Borrow;
use std::fmt;

/// Significant trend of runs in their order in time, by the Mann–Kendall test of one figure: throughput of all operations
/// together, or the mean response time if a schedule set the throughput of every run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drift {
    /// Figure of the test.
    name: &'static str,
    show: fn(f64) -> String,
    /// Figure of the first run and of the last run.
    ends: (f64, f64),
    /// Number of runs.
    runs: usize,
    trend: Trend,
}

impl Drift {
    /// Tests runs, in any order, for a trend; `None` without a significant trend, and if a run has no start time in real
    /// time.
    pub(crate) fn of(runs: &[impl Borrow<Run>]) -> Option<Self> {
        let starts = starts(runs)?.into_iter();
        let mut in_order: Vec<(Timestamp, &Run)> =
            starts.zip(runs.iter().map(Borrow::borrow)).collect();
        in_order.sort_by_key(|(start, _)| *start);
        let runs = in_order.into_iter().map(|(_, run)| run);
        let offered = runs
            .clone()
            .all(|r| r.summary.latency_kind() == LatencyKind::Response);
        let (name, show): (_, fn(f64) -> String) = match offered {
            true => ("the mean response time", latency),
            false => ("ops/s", rate),
        };
        let value = |run: &Run| match offered {
            true => run.summary.mean_ms,
            false => run.summary.ops_per_s,
        };
        let values: Vec<f64> = runs.map(value).collect();
        let trend = Trend::of(&values).filter(Trend::is_significant)?;
        Some(Self {
            name,
            show,
            ends: (*values.first()?, *values.last()?),
            runs: values.len(),
            trend,
        })
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.trend.s > 0 { "rises" } else { "falls" };
        write!(
            f,
            "{} {direction} from {} to {} over {} (Mann-Kendall test, p = {:.3})",
            self.name,
            (self.show)(self.ends.0),
            (self.show)(self.ends.1),
            counted(self.runs as u64, "run", "runs"),
            self.trend.p
        )
    }
}

/// Start times of runs in real time; `None` if a run was made in virtual time, where a machine cannot drift, or has no
/// readable time.
fn starts(runs: &[impl Borrow<Run>]) -> Option<Vec<Timestamp>> {
    let start = |run: &Run| match run.clock {
        ClockKind::Real => run.started_at.parse().ok(),
        ClockKind::Virtual => None,
    };
    runs.iter().map(|run| start(run.borrow())).collect()
}

/// Warning that the runs of a result drift; `None` without a significant trend.
pub(super) fn drift_warning(set: &RunSet<'_>) -> Option<String> {
    Drift::of(set.runs).map(|drift| format!("{} drifts: {drift}", set.name))
}

/// Reason why the order in time of two results' runs allows no statement on a difference between the results; `None`
/// if the order allows a statement.
pub(super) fn confounder(first: &[Run], second: &[Run]) -> Option<ChangeVerdict> {
    if Drift::of(first).or_else(|| Drift::of(second)).is_some() {
        return Some(ChangeVerdict::Drift);
    }
    measured_apart(first, second).then_some(ChangeVerdict::MeasuredApart)
}

/// Whether all runs of one result began before the first run of the other result.
fn measured_apart(first: &[Run], second: &[Run]) -> bool {
    let span = |runs: &[Run]| {
        let starts = starts(runs)?;
        Some((*starts.iter().min()?, *starts.iter().max()?))
    };
    let (Some(first), Some(second)) = (span(first), span(second)) else {
        return false;
    };
    first.1 < second.0 || second.1 < first.0
}
