//! Another run in the same directory, which begins while the ranks work: a directory has one run at a time.

use crate::execution::{Execution, IntervalObserver, Shared, with};
use crate::scenario::Scenario;
use crate::violation::{Violation, must};
use plimsoll_engine::{EngineError, Outcome, Settings, Stop};
use plimsoll_plan::Plan;
use plimsoll_runtime::SimulationHandle;
use plimsoll_series::outcome_or_refusal;
use std::time::Duration;

/// Time from the release of a directory to the end of its run, without the results.
const TIME_AFTER_RELEASE_NS: u64 = 10_000_000;

/// Calls to the disk with which results are published.
const CALLS_OF_PUBLISHING: u64 = 20;

/// How the other run ended.
#[derive(Debug, Clone)]
pub struct ConcurrentEnd {
    /// When it began, in nanoseconds of the simulation.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
    /// Its outcome, or why there is none.
    pub outcome: Result<Box<Outcome>, EngineError>,
}

/// A run of the same Plan by one process.
pub(crate) struct ConcurrentRun {
    pub(crate) at_us: u64,
    pub(crate) plan: Plan,
    pub(crate) settings: Settings,
    pub(crate) handle: SimulationHandle,
    pub(crate) end: Shared<Option<ConcurrentEnd>>,
}

impl ConcurrentRun {
    pub(crate) fn run(self) {
        plimsoll_runtime::sleep(Duration::from_micros(self.at_us));
        let (began, stop) = (self.handle.now(), Stop::default());
        let observer = &mut IntervalObserver::new(None, &stop);
        let ran = plimsoll_engine::run(&self.plan, &self.settings, &stop, observer);
        let end = ConcurrentEnd {
            began,
            ended: self.handle.now(),
            outcome: ran.map(Box::new),
        };
        with(&self.end, |found| *found = Some(end));
    }
}

/// Whether the ranks were refused because of the other run, so that nothing else is known of theirs.
pub(crate) fn refuses_ranks(execution: &Execution) -> bool {
    let root = execution.ranks[0].as_ref().map(|end| &end.outcome);
    match &execution.concurrent {
        Some(other) => is_in_use(root) && other.outcome.is_ok(),
        None => false,
    }
}

/// The execution of the ranks alone: without the calls of a run that followed them. `None` if there was no other.
pub(crate) fn of_ranks(execution: &Execution) -> Option<Execution> {
    let other = execution.concurrent.as_ref()?;
    let mut of_ranks = execution.clone();
    of_ranks.concurrent = None;
    if let (Ok(_), Some(files)) = (&other.outcome, &mut of_ranks.files) {
        files.calls.retain(|call| call.at_ns < other.began);
    }
    Some(of_ranks)
}

/// Of two runs in a directory one is refused, and the other one does not notice it.
pub(crate) fn check(scenario: &Scenario, execution: &Execution) -> Result<(), Violation> {
    let Some(other) = &execution.concurrent else {
        return Ok(());
    };
    let Some(root) = &execution.ranks[0] else {
        return Ok(());
    };
    if is_in_use(Some(&other.outcome)) {
        must!(
            "of two runs in a directory one is refused",
            !is_in_use(Some(&root.outcome)),
            "{:?} and {:?}",
            other.outcome,
            root.outcome
        );
        return Ok(());
    }
    let outcome = other.outcome.as_ref().ok().map(|outcome| &**outcome);
    let succeeds = |outcome: &Outcome| outcome.failure.is_none() && !outcome.interrupted;
    must!(
        "a run in a directory that is free succeeds",
        outcome.is_some_and(succeeds),
        "{:?}",
        outcome_or_refusal(other.outcome.clone().map(|outcome| *outcome))
            .ok()
            .map(|o| o.failure)
    );
    let latency_ns = scenario.results.unwrap_or_default().latency.as_nanos() as u64;
    let released = root
        .at
        .saturating_sub(TIME_AFTER_RELEASE_NS + CALLS_OF_PUBLISHING * latency_ns);
    must!(
        "a directory has one run at a time",
        is_in_use(Some(&root.outcome)) || other.began >= released,
        "the other one from {} to {} ns, rank 0 to {} ns: {:?}",
        other.began,
        other.ended,
        root.at,
        root.outcome.as_ref().err()
    );
    Ok(())
}

/// Whether a run was refused because another one uses the directory.
fn is_in_use(outcome: Option<&Result<Box<Outcome>, EngineError>>) -> bool {
    match outcome {
        Some(Err(EngineError::Refused(why))) => why.contains("is in use by another run"),
        _ => false,
    }
}
