//! Order of the compared runs in time: drift within a result, and results that were measured one after the other.

use super::{ChangeVerdict, RunSet};
use crate::format::rate;
use crate::latency;
use jiff::Timestamp;
use plimsoll_measure::ClockKind;
use plimsoll_measure::compare::Trend;
use plimsoll_plan::counted;
use plimsoll_results::{LatencyKind, Run};

/// Figure by which a drift of runs is judged: name, formatter, and the value of each run in order of time.
struct Primary {
    name: &'static str,
    show: fn(f64) -> String,
    values: Vec<f64>,
}

/// Start times of runs in real time; `None` if a run was made in virtual time, where a machine cannot drift, or has no
/// readable time.
fn starts(runs: &[Run]) -> Option<Vec<Timestamp>> {
    let start = |run: &Run| match run.clock {
        ClockKind::Real => run.started_at.parse().ok(),
        ClockKind::Virtual => None,
    };
    runs.iter().map(start).collect()
}

/// Throughput of all operations together, or the mean response time if a schedule set the throughput of every run;
/// `None` if a run has no start time in real time.
fn primary(runs: &[Run]) -> Option<Primary> {
    let mut in_order: Vec<(Timestamp, &Run)> = starts(runs)?.into_iter().zip(runs).collect();
    in_order.sort_by_key(|(start, _)| *start);
    let offered = runs
        .iter()
        .all(|r| r.summary.latency_kind() == LatencyKind::Response);
    let value = |run: &Run| match offered {
        true => run.summary.mean_ms,
        false => run.summary.ops_per_s,
    };
    Some(Primary {
        name: if offered {
            "the mean response time"
        } else {
            "ops/s"
        },
        show: if offered { latency } else { rate },
        values: in_order.into_iter().map(|(_, run)| value(run)).collect(),
    })
}

/// Primary figure of runs, with its significant trend (Mann–Kendall test) in order of time; `None` if no trend is
/// significant.
fn drift(runs: &[Run]) -> Option<(Primary, Trend)> {
    let primary = primary(runs)?;
    let trend = Trend::of(&primary.values).filter(Trend::is_significant)?;
    Some((primary, trend))
}

/// Warning that the runs of a result drift; `None` without a significant trend.
pub(super) fn drift_warning(set: &RunSet<'_>) -> Option<String> {
    let (Primary { name, show, values }, trend) = drift(set.runs)?;
    let (first, last) = (values.first()?, values.last()?);
    let direction = if trend.s > 0 { "rises" } else { "falls" };
    Some(format!(
        "{} drifts: {name} {direction} from {} to {} over its {} (Mann-Kendall test, p = {:.3})",
        set.name,
        show(*first),
        show(*last),
        counted(values.len() as u64, "run", "runs"),
        trend.p
    ))
}

/// Reason why the order in time of two results' runs allows no statement on a difference between the results; `None`
/// if the order allows a statement.
pub(super) fn confounder(first: &[Run], second: &[Run]) -> Option<ChangeVerdict> {
    if drift(first).or_else(|| drift(second)).is_some() {
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
