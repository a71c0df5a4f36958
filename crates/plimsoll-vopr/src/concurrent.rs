//! Other runs in the directory of the ranks, during or after the run of the ranks: a directory has one run at a time.

use crate::execution::{Execution, IntervalObserver, Shared, with};
use crate::files::own_paths;
use crate::scenario::Scenario;
use crate::violation::{Violation, must};
use plimsoll_engine::{EngineError, Outcome, Settings, Stop};
use plimsoll_plan::Plan;
use plimsoll_runtime::SimulationHandle;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// End of a further run that one process makes in the work directory of the ranks.
#[derive(Debug, Clone)]
pub struct ConcurrentEnd {
    /// Number of the process that made the further run.
    pub process: u32,
    /// Start of the further run, in nanoseconds of the simulation.
    pub began: u64,
    /// End of the further run, in nanoseconds of the simulation.
    pub ended: u64,
    /// Outcome of the further run; an error if the run was refused or failed without an outcome.
    pub outcome: Result<Box<Outcome>, EngineError>,
}

/// Further run of the ranks' Plan, by one process, in the ranks' work directory.
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
            process: plimsoll_runtime::process_id(),
            began,
            ended: self.handle.now(),
            outcome: ran.map(Box::new),
        };
        with(&self.end, |found| *found = Some(end));
    }
}

/// Whether the ranks were refused because of the other run, so that the run of the ranks has no other results.
pub(crate) fn refuses_ranks(execution: &Execution) -> bool {
    match (&execution.ranks[0], &execution.concurrent) {
        (Some(root), Some(other)) => is_in_use(&root.outcome) && other.outcome.is_ok(),
        _ => false,
    }
}

/// The execution without the calls of the other run. `None` if the execution has no other run.
pub(crate) fn of_ranks(execution: &Execution) -> Option<Execution> {
    let other = execution.concurrent.as_ref()?;
    let mut of_ranks = execution.clone();
    of_ranks.concurrent = None;
    if let Some(files) = &mut of_ranks.files {
        files.calls.retain(|call| call.process != other.process);
    }
    Some(of_ranks)
}

/// Of two runs in a directory, one is refused, and the other is not affected.
pub(crate) fn check(scenario: &Scenario, execution: &Execution) -> Result<(), Violation> {
    check_alone(execution)?;
    let (Some(other), Some(root)) = (&execution.concurrent, &execution.ranks[0]) else {
        return Ok(());
    };
    if is_in_use(&other.outcome) {
        must!(
            "of two runs in a directory one is refused",
            !is_in_use(&root.outcome),
            "{:?} and {:?}",
            other.outcome,
            root.outcome
        );
        return Ok(());
    }
    if is_of_objects(execution, &other.outcome) {
        return Ok(());
    }
    let succeeds = |outcome: &Outcome| outcome.failure.is_none() && !outcome.interrupted;
    must!(
        "a run in a directory that is free succeeds",
        other
            .outcome
            .as_ref()
            .is_ok_and(|outcome| succeeds(outcome)),
        "{:?}",
        other.outcome.as_ref().map(|outcome| &outcome.failure)
    );
    if let (Ok(outcome), Some(spec), Some(files)) =
        (&other.outcome, &scenario.files, &execution.files)
        && is_in_use(&root.outcome)
    {
        let left = own_paths(&execution.plan, spec, &files.after_run);
        must!(
            "what a run leaves it says",
            left.is_empty() || !outcome.cleanup.unremoved.is_empty(),
            "{} left, such as {:?}",
            left.len(),
            left.first()
        );
    }
    Ok(())
}

/// No two runs change files of the directory at the same time: the intervals from the first to the last change of each
/// run do not overlap.
fn check_alone(execution: &Execution) -> Result<(), Violation> {
    let Some(files) = &execution.files else {
        return Ok(());
    };
    // All ranks belong to one run.
    let run_of = |process: u32| match execution.processes.contains(&process) {
        true => execution.processes[0],
        false => process,
    };
    let mut times = BTreeMap::<u32, RangeInclusive<u64>>::new();
    for call in files.calls.iter().chain(&files.calls_again) {
        if call.changes_file {
            let first = times.entry(run_of(call.process));
            let time = first.or_insert(call.at_ns..=call.at_ns);
            *time = *time.start()..=call.at_ns;
        }
    }
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_by_key(|(_, time)| *time.start());
    for pair in times.windows(2) {
        let [(one, before), (another, after)] = pair else {
            unreachable!("windows have two elements");
        };
        must!(
            "a directory has one run at a time",
            before.end() <= after.start(),
            "process {one} in {before:?} ns, process {another} in {after:?} ns"
        );
    }
    Ok(())
}

/// Whether a run of a pattern was refused because the directory has objects of another run, which a later phase may
/// use.
pub(crate) fn is_of_objects(
    execution: &Execution,
    outcome: &Result<Box<Outcome>, EngineError>,
) -> bool {
    match outcome {
        Err(EngineError::Refused(why)) => {
            execution.plan.pattern().is_some() && why.contains("plimsoll clean")
        }
        _ => false,
    }
}

/// Whether the engine refused a run because another run holds the claim on the work directory.
pub(crate) fn is_in_use(outcome: &Result<Box<Outcome>, EngineError>) -> bool {
    match outcome {
        Err(EngineError::Refused(why)) => why.contains("is in use by another run"),
        _ => false,
    }
}
