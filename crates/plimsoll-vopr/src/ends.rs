//! Rules for the ends of ranks and of their measured windows after interrupts, kills and other disturbances.

use crate::execution::{Execution, RankEnd, bounds};
use crate::results::ResultsEnd;
use crate::scenario::{DisturbanceKind, Scenario};
use crate::violation::{Violation, must};
use plimsoll_engine::{EngineError, Outcome};

/// Maximum time, in nanoseconds, in which a rank notices an interrupt or the closed connections of a killed process,
/// and ends the window.
const NOTICE_NS: u64 = 300_000_000;

/// Checks that each rank ended as its disturbances demand.
pub(crate) fn check_ranks(scenario: &Scenario, execution: &Execution) -> Result<(), Violation> {
    let applied = || {
        let applied = scenario.disturbances.iter().zip(&execution.applied);
        applied.filter_map(|(d, at)| Some((d.kind, (*at)?)))
    };
    let was_killed = |rank: u32| applied().any(|(kind, _)| kind == DisturbanceKind::Kill { rank });
    let orphans = execution
        .files
        .as_ref()
        .map_or(&[][..], |files| &files.orphans);
    for (rank, end) in (0..).zip(&execution.ranks) {
        must!(
            "only killed ranks have no end",
            end.is_some() || was_killed(rank) || orphans.contains(&rank),
            "rank {rank}"
        );
    }
    check_calm(scenario, execution)?;
    check_interrupts(scenario, execution)?;
    let lost = |(kind, when): (DisturbanceKind, u64)| match kind {
        DisturbanceKind::Kill { rank } if rank > 0 => Some((rank, when)),
        _ => None,
    };
    check_losses(scenario, execution, applied().filter_map(lost))
}

/// An undisturbed run succeeds at every rank.
fn check_calm(scenario: &Scenario, execution: &Execution) -> Result<(), Violation> {
    if scenario.is_calm() {
        for (rank, end) in execution.ranks.iter().enumerate() {
            let end = end.as_ref().expect("no rank was killed");
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
    Ok(())
}

/// No rank reports an interrupt as a failure.
fn check_interrupts(scenario: &Scenario, execution: &Execution) -> Result<(), Violation> {
    // A run whose results cannot begin fails.
    let has_begun = |results: &ResultsEnd| results.log.has_draft;
    let begun = execution.results.as_ref().is_none_or(has_begun);
    if begun && scenario.is_sound() && scenario.keeps_ranks() {
        for (rank, end) in execution.ranks.iter().enumerate() {
            let failure = match end.as_ref().map(|end| &end.outcome) {
                Some(Ok(outcome)) => outcome.failure.as_ref().map(ToString::to_string),
                Some(Err(EngineError::Failed(why))) => Some(why.clone()),
                Some(Err(_)) | None => None,
            };
            must!(
                "an interrupt is not a failure",
                failure.is_none(),
                "rank {rank}: {failure:?}"
            );
        }
    }
    Ok(())
}

/// Checks that rank 0 notices killed ranks; `lost` has the number of each killed rank and the time of the kill in
/// nanoseconds.
fn check_losses(
    scenario: &Scenario,
    execution: &Execution,
    mut lost: impl Iterator<Item = (u32, u64)>,
) -> Result<(), Violation> {
    let Some(RankEnd { outcome, at, .. }) = &execution.ranks[0] else {
        return Ok(());
    };
    // A rank that is killed near the planned end may have finished its part before, so only earlier kills must be
    // noticed.
    let planned = scenario.planned_us() * 1000;
    let early = lost.find(|(_, when)| *when < planned && when + 20_000_000_000 < *at);
    if let Some((rank, _)) = early {
        let noticed = match outcome {
            Err(EngineError::Failed(_) | EngineError::Interrupted) => true,
            Err(EngineError::Refused(_)) => false,
            Ok(o) => {
                o.failure.is_some()
                    || o.interrupted
                    || o.ran_out.is_some()
                    || !o.hung_workers.is_empty()
            }
        };
        must!("lost ranks are noticed", noticed, "rank {rank}");
    }
    Ok(())
}

/// Checks that an interrupt or the kill of a rank ends the measured window in time.
pub(crate) fn check_window(
    scenario: &Scenario,
    execution: &Execution,
    outcome: &Outcome,
) -> Result<(), Violation> {
    let Some(window) = outcome.windows.last() else {
        return Ok(());
    };
    // A stopped rank notices nothing, and a rank whose clock jumps reports another start of the window.
    let is_one = |kind| match kind {
        DisturbanceKind::Interrupt { .. } => true,
        DisturbanceKind::Kill { rank } => rank > 0,
        _ => false,
    };
    let has_other_end = scenario.workload.ops_limit().is_some()
        || scenario.is_pattern()
        || outcome.ran_out.is_some();
    let window_ns = bounds(window);
    let applied = scenario.disturbances.iter().zip(&execution.applied);
    let applied = applied.filter_map(|(d, at)| Some(((*at)?, d.kind)));
    // Rank 0 interrupts its run if intervals cannot be written any more.
    let lost = execution
        .results
        .as_ref()
        .and_then(|r| r.log.error.as_ref());
    let lost = lost.map(|(at, _)| (*at, DisturbanceKind::Interrupt { rank: 0 }));
    let in_window = applied.chain(lost).filter(|(at, _)| window_ns.contains(at));
    let first = in_window.min_by_key(|(at, _)| *at);
    let (Some((at, kind)), true, false) = (first, scenario.has_only(is_one), has_other_end) else {
        return Ok(());
    };
    // Messages travel through the tree of ranks and back twice: once until all ranks know of the end, and once to close
    // the measured window.
    let (delay, jitter) = scenario.delay_us;
    let way_ns = 4 * scenario.tree_depth() * (delay + jitter) * 1000;
    let is_in_time = window_ns.end <= at + NOTICE_NS + way_ns;
    if let DisturbanceKind::Kill { .. } = kind {
        must!(
            "a lost rank ends the window",
            is_in_time,
            "at {at} ns, in a window of {window_ns:?} ns"
        );
        return Ok(());
    }
    let planned_end = window_ns.start + scenario.workload.time_ms * 1_000_000;
    let is_cut = window_ns.end + 1_000_000 < planned_end;
    must!(
        "an interrupt ends the window, and is reported",
        outcome.failure.is_some() || is_in_time && (outcome.interrupted || !is_cut),
        "at {at} ns, in a window of {window_ns:?} ns; interrupted: {}",
        outcome.interrupted
    );
    Ok(())
}
