//! Stalls: each stall of the target is found, and nothing else is reported as a stall.

use crate::check::MAX_LATENESS_NS;
use crate::execution::Execution;
use crate::scenario::{DisturbanceKind, Scenario};
use crate::violation::{Violation, must};
use crate::workload::Load;
use plimsoll_engine::Outcome;
use plimsoll_measure::{STALL_NS, WindowTotals};

/// A target that stops for more than a second under closed loops is reported as stalled; a target that does not stop is
/// not reported.
pub(crate) fn check(
    scenario: &Scenario,
    execution: &Execution,
    outcome: &Outcome,
) -> Result<(), Violation> {
    let all = outcome.windows.last().map(|window| &window.totals);
    let (Some(all), None) = (all, &scenario.files) else {
        return Ok(());
    };
    // An operation makes at most two calls, or the calls of one object; eight latencies are an upper bound.
    let calls_ns = 8 * scenario.latency_us * 1000 + MAX_LATENESS_NS;
    let length_ns = scenario
        .stall_ms
        .map_or(0, |(length, _)| length * 1_000_000);
    if scenario.is_calm() && length_ns + calls_ns <= STALL_NS {
        must!(
            "a target that does not stop is not stalled",
            all.stalls.is_empty() && all.rank_stalls.is_empty(),
            "{:?}, of ranks {:?}",
            all.stalls,
            all.rank_stalls
        );
    }
    let own = outcome.own.last().unwrap_or(all);
    if outcome.failure.is_none() && must_be_found(scenario, execution, own, calls_ns) {
        must!(
            "a target that stops is stalled",
            !own.stalls.is_empty(),
            "it stopped for {:?} ms, and the longest gap of rank 0 is {:?}",
            scenario.stall_ms,
            own.gaps.all
        );
    }
    Ok(())
}

/// Whether rank 0 must report the target's stall: in the measured window, the stall lasts more than a second and much
/// longer than service times and the usual distance between completions. Times in which rank 0 itself is stopped do not
/// count, because a stopped rank 0 cannot see the stall.
fn must_be_found(
    scenario: &Scenario,
    execution: &Execution,
    window: &WindowTotals,
    calls_ns: u64,
) -> bool {
    let (Load::Threads(threads), Some((length, after))) =
        (&scenario.workload.load, scenario.stall_ms)
    else {
        return false;
    };
    let (from, to) = (after * 1_000_000, (after + length) * 1_000_000);
    let stopped_ns = to
        .min(window.end)
        .saturating_sub(from.max(window.start))
        .saturating_sub(calls_ns)
        .saturating_sub(own_stops_ns(scenario));
    let rows = execution.plan.operations.iter().zip(&window.rows);
    let counted = || {
        rows.clone()
            .filter(|(operation, _)| operation.kind.counts())
    };
    let completions: u64 = counted().map(|(_, row)| row.ops + row.error_count()).sum();
    let others_ns = (window.end - window.start).saturating_sub(stopped_ns);
    let distance_ns = others_ns / completions.max(1);
    let is_usually_short = counted().all(|(_, row)| row.service.quantile(0.5) < stopped_ns / 20);
    threads.ops.is_none()
        && completions >= 20
        && stopped_ns > STALL_NS
        && stopped_ns > 120 * distance_ns
        && is_usually_short
}

/// Total time in nanoseconds for which `SIGSTOP` stops rank 0 in the scenario.
fn own_stops_ns(scenario: &Scenario) -> u64 {
    let stops = scenario.disturbances.iter().map(|d| match d.kind {
        DisturbanceKind::Stop { rank: 0, for_ms } => for_ms * 1_000_000,
        _ => 0,
    });
    stops.sum()
}
