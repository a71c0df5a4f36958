//! What must be true of an execution, by an independent calculation.

use crate::execution::{Execution, RankEnd};
use crate::scenario::{DisturbanceKind, Scenario};
use crate::workload::Step;
use plimsoll_engine::{EngineError, Outcome};
use plimsoll_measure::{Interval, OpTotals, WindowTotals};
use plimsoll_runtime::SimulationEnd;
use std::fmt;

/// A rule that an execution breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The name of the rule.
    pub rule: &'static str,
    /// How it is broken.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

/// Fails with a rule and what breaks it, unless the condition holds.
macro_rules! must {
    ($rule:literal, $condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err(Violation { rule: $rule, what: format!($($what)+) });
        }
    };
}

/// Nanoseconds by which operations of a null target may take longer than its latency: turns of other threads of
/// the simulation, and of other workers of the lane.
const MAX_LATENESS_NS: u64 = 500_000;

/// Checks an execution.
///
/// # Errors
/// The first rule that it breaks.
pub fn check(scenario: &Scenario, execution: &Execution) -> Result<(), Violation> {
    must!(
        "no panic",
        execution.panics.is_empty(),
        "{}",
        execution.panics.join("\n")
    );
    must!(
        "everything ends",
        execution.end == SimulationEnd::Finished,
        "{:?}",
        execution.end
    );
    check_ends(scenario, execution)?;
    let Some(root) = &execution.ranks[0] else {
        return Ok(());
    };
    let Ok(outcome) = &root.outcome else {
        return Ok(());
    };
    for window in &outcome.windows {
        check_sums(scenario, &window.totals, &root.intervals)?;
        check_latencies(scenario, &window.totals)?;
    }
    check_rate(scenario, execution, outcome)?;
    check_limit(scenario, execution, outcome)
}

/// The ranks end as what happened to them says.
fn check_ends(scenario: &Scenario, execution: &Execution) -> Result<(), Violation> {
    let applied = || {
        let applied = scenario.disturbances.iter().zip(&execution.applied);
        applied.filter_map(|(d, at)| Some((d.kind, (*at)?)))
    };
    let was_killed = |rank: u32| applied().any(|(kind, _)| kind == DisturbanceKind::Kill { rank });
    for (rank, end) in (0..).zip(&execution.ranks) {
        must!(
            "only killed ranks have no end",
            end.is_some() || was_killed(rank),
            "rank {rank}"
        );
    }
    if scenario.is_calm() {
        for (rank, end) in execution.ranks.iter().enumerate() {
            let end = end.as_ref().expect("nobody was killed");
            match &end.outcome {
                Err(e) => must!("calm runs succeed", false, "rank {rank}: {e}"),
                Ok(outcome) => must!(
                    "calm runs succeed",
                    outcome.failure.is_none() && !outcome.interrupted,
                    "rank {rank}: {:?}, interrupted: {}",
                    outcome.failure,
                    outcome.interrupted
                ),
            }
        }
    }
    let Some(RankEnd { outcome, at, .. }) = &execution.ranks[0] else {
        return Ok(());
    };
    let lost = |(kind, when): (DisturbanceKind, u64)| match kind {
        DisturbanceKind::Kill { rank } if rank > 0 => Some((rank, when)),
        _ => None,
    };
    // A rank that is killed while it works is noticed by rank 0; near the end it may have done its part.
    let planned = scenario.planned_us() * 1000;
    let early = applied().filter_map(lost).find(|(_, when)| *when < planned && when + 20_000_000_000 < *at);
    if let Some((rank, _)) = early {
        let noticed = match outcome {
            Err(EngineError::Failed(_) | EngineError::Interrupted) => true,
            Err(EngineError::Refused(_)) => false,
            Ok(outcome) => outcome.failure.is_some() || outcome.is_early(),
        };
        must!("lost ranks are noticed", noticed, "rank {rank}");
    }
    Ok(())
}

/// Whether a run ended for a reason other than its plan.
trait EarlyEnd {
    fn is_early(&self) -> bool;
}

impl EarlyEnd for Outcome {
    fn is_early(&self) -> bool {
        self.interrupted || self.ran_out.is_some() || !self.stuck.is_empty()
    }
}

/// Intervals follow each other and add up to the window, row by row.
fn check_sums(
    scenario: &Scenario,
    window: &WindowTotals,
    all: &[Interval],
) -> Result<(), Violation> {
    let intervals: Vec<&Interval> = all.iter().filter(|i| i.window == window.number).collect();
    let length = scenario.interval_ms * 1_000_000;
    for (number, interval) in (0..).zip(&intervals) {
        must!(
            "intervals follow each other",
            interval.index == number && interval.start == number * length,
            "number {number} has index {} and starts at {}",
            interval.index,
            interval.start
        );
        must!(
            "intervals have the length that was chosen",
            interval.length == length || number + 1 == intervals.len() as u64 && interval.length < length,
            "number {number} of {}: {} ns",
            intervals.len(),
            interval.length
        );
    }
    for (row, totals) in window.rows.iter().enumerate() {
        let mut sum = OpTotals::default();
        intervals.iter().for_each(|i| sum.add(&i.rows[row]));
        let figures = |t: &OpTotals| (t.ops, t.bytes, t.error_count(), t.service.count(), t.service.sum());
        must!(
            "intervals add up to the window",
            figures(&sum) == figures(totals),
            "row {row}: {:?} in intervals, {:?} in the window",
            figures(&sum),
            figures(totals)
        );
        let counted: u64 = totals.service.histogram().iter_recorded().map(|v| v.count_at_value()).sum();
        must!(
            "histograms hold every operation",
            counted == totals.ops && totals.service.count() == totals.ops,
            "row {row}: {counted} in the histogram, {} operations",
            totals.ops
        );
    }
    Ok(())
}

/// Operations take the latency of the target, and nothing else.
fn check_latencies(scenario: &Scenario, window: &WindowTotals) -> Result<(), Violation> {
    let latency = scenario.latency_us * 1000;
    let stopped: u64 = scenario.disturbances.iter().map(|d| match d.kind {
        DisturbanceKind::Stop { for_ms, .. } => for_ms * 1_000_000,
        _ => 0,
    }).sum();
    let stalled = scenario.stall_ms.map_or(0, |(length, _)| length * 1_000_000);
    for (row, totals) in window.rows.iter().enumerate().filter(|(_, t)| t.ops > 0) {
        // A delay has a row of its own, and no operation of the target.
        let is_delay = totals.service.max() >= 3_000_000 && totals.bytes == 0 && latency > 3_000_000 && totals.service.min() < latency;
        must!(
            "no operation is faster than the target",
            is_delay || totals.service.min() >= latency.min(3_000_000),
            "row {row}: {} ns of {latency} ns",
            totals.service.min()
        );
        let most = latency.max(3_000_000) + stalled + stopped + MAX_LATENESS_NS;
        must!(
            "no operation is slower than what happened",
            totals.service.max() <= most,
            "row {row}: {} ns, at most {most} ns",
            totals.service.max()
        );
    }
    Ok(())
}

/// A closed loop without delays does what Little's law says: workers, divided by the latency, per second.
fn check_rate(
    scenario: &Scenario,
    execution: &Execution,
    outcome: &Outcome,
) -> Result<(), Violation> {
    let programs = scenario.workload.threads.iter();
    let delays = programs.flat_map(|(_, steps)| steps).any(|s| *s == Step::Delay || *s == Step::Replace);
    if !scenario.is_calm() || delays || scenario.stall_ms.is_some() || scenario.workload.ops.is_some() {
        return Ok(());
    }
    let Some(window) = outcome.windows.last() else {
        return Ok(());
    };
    let seconds = (window.totals.end - window.totals.start) as f64 / 1e9;
    let ops: u64 = window.totals.rows.iter().map(|r| r.ops).sum();
    let workers = execution.plan.workers() as f64;
    let expected = workers * seconds / (scenario.latency_us as f64 / 1e6);
    // A worker has one operation more or less, and turns of threads take time beside short latencies.
    let slack = workers + expected * 0.02 + expected * (20.0 * workers / scenario.latency_us as f64);
    must!(
        "closed loops follow Little's law",
        (ops as f64) <= expected + workers && (ops as f64) >= expected - slack,
        "{ops} operations, {expected:.0} expected, slack {slack:.0}"
    );
    Ok(())
}

/// A number of operations that ends the run is done exactly.
fn check_limit(
    scenario: &Scenario,
    execution: &Execution,
    outcome: &Outcome,
) -> Result<(), Violation> {
    let (Some(limit), Some(window)) = (scenario.workload.ops, outcome.windows.last()) else {
        return Ok(());
    };
    let counted: u64 = execution
        .plan
        .operations
        .iter()
        .zip(&window.totals.rows)
        .filter(|(o, _)| o.kind.is_of_workload())
        .map(|(_, row)| row.ops)
        .sum();
    must!(
        "limits of operations hold",
        counted <= limit,
        "{counted} operations, of {limit}"
    );
    Ok(())
}
