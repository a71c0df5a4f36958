//! Files of the target, their faults, and the rules for the files after a run.

use crate::concurrent::{self, ConcurrentEnd};
use crate::execution::{Execution, RankEnd, bounds, marked_dir};
use crate::results::assembled;
use crate::scenario::Scenario;
use crate::violation::{Violation, must};
use crate::workload::Load;
use plimsoll_engine::{EngineError, Outcome};
use plimsoll_measure::OpTotals;
use plimsoll_plan::{OnError, OpKind, Plan};
use plimsoll_results::Verdict;
use plimsoll_target::simulated::{Call, CallKind, FileFaults};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::io::Errno;
use std::collections::{BTreeMap, HashSet};

/// The work directory of every scenario.
pub(crate) const WORK_DIR: &str = "/simulated";

/// Path and content of a file that is not Plimsoll's.
type ForeignFile = (&'static str, &'static [u8]);

/// Foreign files beside the work directory.
const BESIDE: [ForeignFile; 2] = [
    ("/simulated-other/precious", b"not to be touched"),
    ("/precious", b"nor this"),
];

/// A foreign file in the parent directory of a pattern's root; the file exists before the run.
const IN_PARENT: ForeignFile = ("/simulated/mine", b"nor what was there before");

/// The files of a scenario that are not Plimsoll's.
pub(crate) fn foreign(plan: &Plan) -> impl Iterator<Item = ForeignFile> {
    let has_parent = marked_dir(plan) != WORK_DIR;
    BESIDE.into_iter().chain(has_parent.then_some(IN_PARENT))
}

/// Errors that simulated operations return.
const ERRORS: [Errno; 7] = [
    Errno::IO,
    Errno::NOSPC,
    Errno::DQUOT,
    Errno::ACCESS,
    Errno::STALE,
    Errno::MFILE,
    Errno::CONNRESET,
];

/// Target that keeps files in memory, with its faults, and further runs on the same files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesSpec {
    /// Errors, delays and outages of the target's calls, with probabilities and times.
    pub faults: FileFaults,
    /// Whether the run counts errors (`--on-error count`); otherwise the first error ends the run.
    pub counts_errors: bool,
    /// Whether the run verifies the contents that workers read (`--verify`).
    pub verifies: bool,
    /// Whether the run's work directory exists, empty, before the run.
    pub has_dir: bool,
    /// Start times of further runs in the same directory, in microseconds after the end of the ranks. Each run has one
    /// process and no faults.
    pub again_us: Vec<u64>,
}

impl FilesSpec {
    /// Files without faults.
    #[must_use]
    pub fn calm(latency_us: u64) -> Self {
        Self {
            faults: FileFaults::none(latency_us * 1000),
            counts_errors: false,
            verifies: false,
            has_dir: false,
            again_us: vec![],
        }
    }

    /// Draws the faults: first the kinds of faults, then their frequencies and times.
    pub(crate) fn draw(rng: &mut Xoshiro256PlusPlus, planned_us: u64) -> Self {
        let mut this = Self {
            counts_errors: rng.random_bool(0.5),
            verifies: rng.random_bool(0.3),
            ..Self::calm(rng.random_range(20..1000))
        };
        if rng.random_bool(0.4) {
            return this;
        }
        let faults = &mut this.faults;
        let kinds: Vec<bool> = (0..9).map(|_| rng.random_bool(0.25)).collect();
        // Populating takes a few seconds at most, and then the load begins.
        let end_ns = planned_us * 1000 + 2_000_000_000;
        let rare = |rng: &mut Xoshiro256PlusPlus| [20, 500, 10_000][rng.random_range(0..3)];
        faults.from_ns = rng.random_range(0..end_ns);
        if kinds[0] {
            let error = ERRORS[rng.random_range(0..ERRORS.len())];
            faults.errors = vec![(error, rare(rng))];
        }
        if kinds[1] {
            faults.slow = Some((rare(rng), rng.random_range(2..200)));
        }
        if kinds[2] {
            faults.short_reads = rare(rng);
        }
        if kinds[3] {
            faults.wrong_reads = rare(rng);
        }
        if kinds[4] {
            faults.lost_writes = rare(rng);
        }
        if kinds[5] {
            faults.capacity = Some(rng.random_range(0..4 << 20));
        }
        if kinds[6] {
            faults.read_only_from_ns = Some(rng.random_range(0..end_ns));
        }
        if kinds[7] {
            let begin = rng.random_range(0..end_ns);
            faults.outage_ns = Some(begin..begin + rng.random_range(1_000_000..5_000_000_000));
        }
        if kinds[8] {
            faults.silent_from_ns = Some(rng.random_range(0..end_ns));
        }
        this
    }

    /// Makes calls of the load fail from its beginning, with a drawn error and probability; draws whether the run
    /// counts errors.
    pub(crate) fn fail_calls_of_load(&mut self, rng: &mut Xoshiro256PlusPlus) {
        let error = ERRORS[rng.random_range(0..ERRORS.len())];
        let probability = [1000, 10_000, 100_000][rng.random_range(0..3)];
        self.counts_errors = rng.random_bool(0.6);
        self.faults.of_load_only = true;
        self.faults.from_ns = 0;
        self.faults.errors = vec![(error, probability)];
    }

    pub(crate) fn on_error(&self) -> OnError {
        match self.counts_errors {
            true => OnError::Count,
            false => OnError::Stop,
        }
    }

    /// Whether the target has no faults except in timing.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let f = &self.faults;
        f.errors.is_empty()
            && (f.short_reads, f.wrong_reads, f.lost_writes) == (0, 0, 0)
            && f.capacity.is_none()
            && f.read_only_from_ns.is_none()
            && f.silent_from_ns.is_none()
    }

    /// Whether every call returns at once or after its latency.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.is_sound() && self.faults.slow.is_none() && self.faults.outage_ns.is_none()
    }
}

/// Files and directories that runs have left on the target, and every call that the target received.
#[derive(Debug, Clone, Default)]
pub struct FilesEnd {
    /// Ranks that still ran 10 s after the end of rank 0, on a silent target, and were killed.
    pub orphans: Vec<u32>,
    /// Content of the target's files, by path, after the end of all ranks; directories are included.
    pub after_run: BTreeMap<String, Vec<u8>>,
    /// Ends of the further runs in the work directory of the ranks, in the order of the runs.
    pub again: Vec<ConcurrentEnd>,
    /// Content of the target's files, by path, after the further runs; equal to `after_run` without further runs.
    pub after_again: BTreeMap<String, Vec<u8>>,
    /// Content of the target's files, by path, after a removal as by `plimsoll clean`, during which no call fails.
    pub after_clean: BTreeMap<String, Vec<u8>>,
    /// Reason why `plimsoll clean` failed; `None` after a success.
    pub clean_error: Option<String>,
    /// Calls to the target, in order, until the ranks and the concurrent run had ended.
    pub calls: Vec<Call>,
    /// Calls to the target, in order, by further runs in the work directory.
    pub calls_again: Vec<Call>,
    /// Paths outside of the work directory that calls to the target named; every such path breaks a rule.
    pub strays: Vec<String>,
}

/// Checks the remaining files, the calls to the target, and the verdict of the run.
pub(crate) fn check(
    scenario: &Scenario,
    spec: &FilesSpec,
    execution: &Execution,
) -> Result<(), Violation> {
    let Some(end) = &execution.files else {
        return Ok(());
    };
    must!(
        "nothing outside the work directory is used",
        end.strays.is_empty(),
        "{:?}",
        end.strays
    );
    check_trees(spec, execution, end)?;
    let Some(Ok(outcome)) = execution.ranks[0].as_ref().map(|end| end.outcome.as_ref()) else {
        return Ok(());
    };
    check_errors(scenario, spec, execution, outcome, end)?;
    check_counted_errors(scenario, execution, outcome, end)?;
    check_verdict(execution, outcome)?;
    check_verification(scenario, spec, outcome, end)?;
    check_calls(scenario, spec, execution, outcome, end)
}

/// Foreign files are unchanged, and all other files can be removed.
fn check_trees(spec: &FilesSpec, execution: &Execution, end: &FilesEnd) -> Result<(), Violation> {
    let plan = &execution.plan;
    let marked = marked_dir(plan);
    let given_dir = given_dir(plan);
    let stays = |tree: &BTreeMap<String, Vec<u8>>| {
        foreign(plan).all(|(path, bytes)| tree.get(path).map(Vec::as_slice) == Some(bytes))
            && (!spec.has_dir || tree.contains_key(&given_dir))
    };
    must!(
        "foreign files stay",
        stays(&end.after_run) && stays(&end.after_clean),
        "{:?}",
        end.after_clean.keys()
    );
    let own = |tree| own_paths(plan, spec, tree);
    let left = own(&end.after_clean);
    // A process that is killed before it writes the marker leaves an empty work directory, which `clean` does not
    // remove.
    let is_unmarked = |path: &&String| marked.starts_with(path.trim_end_matches('/'));
    must!(
        "the files of any run can be removed",
        left.iter().all(is_unmarked) && end.clean_error.is_none(),
        "{:?}: {left:?}",
        end.clean_error
    );
    check_again(execution, end, &own(&end.after_run))?;
    let after_again = own(&end.after_again);
    if end.again.iter().any(|run| run.outcome.is_ok()) {
        must!(
            "another run takes the files over",
            after_again.iter().all(is_unmarked),
            "{after_again:?}"
        );
    }
    let Some(root) = &execution.ranks[0] else {
        return Ok(());
    };
    let left = own(&end.after_run);
    match &root.outcome {
        Ok(outcome) => must!(
            "what a run leaves it says",
            left.is_empty() || !outcome.cleanup.unremoved.is_empty(),
            "{} left, such as {:?}",
            left.len(),
            left.first()
        ),
        Err(EngineError::Refused(why)) => must!(
            "a refused run leaves nothing",
            left.is_empty() || why.contains("remove") || why.contains("clean"),
            "{why}: {left:?}"
        ),
        Err(_) => {}
    }
    Ok(())
}

/// Each further run takes over the files `left` in the directory, or is refused while another run has the directory.
fn check_again(execution: &Execution, end: &FilesEnd, left: &[&String]) -> Result<(), Violation> {
    let mut has_succeeded = false;
    for run in &end.again {
        match &run.outcome {
            outcome if concurrent::is_of_objects(execution, outcome) && !left.is_empty() => {
                has_succeeded = true;
            }
            outcome if concurrent::is_in_use(outcome) && end.again.len() > 1 => {}
            outcome => {
                must!(
                    "another run takes the files over",
                    outcome
                        .as_ref()
                        .is_ok_and(|outcome| outcome.failure.is_none()
                            && outcome.cleanup.unremoved.is_empty()
                            && outcome.hung_workers.is_empty()),
                    "{:?}",
                    outcome
                        .as_ref()
                        .map(|outcome| (&outcome.failure, &outcome.cleanup.unremoved))
                );
                has_succeeded = true;
            }
        }
    }
    must!(
        "of several runs in a directory one is not refused",
        has_succeeded || end.again.is_empty(),
        "{:?}",
        end.again.first().map(|run| run.outcome.as_ref().err())
    );
    Ok(())
}

/// The directory that the run marks, as a path of a tree.
fn given_dir(plan: &Plan) -> String {
    format!("{}/", marked_dir(plan))
}

/// Paths that only the run can have made.
pub(crate) fn own_paths<'a>(
    plan: &Plan,
    spec: &FilesSpec,
    tree: &'a BTreeMap<String, Vec<u8>>,
) -> Vec<&'a String> {
    let given_dir = given_dir(plan);
    let is_own = |path: &&String| {
        if spec.has_dir && given_dir.starts_with(path.as_str()) {
            return false;
        }
        let below = path
            .strip_prefix(WORK_DIR)
            .and_then(|p| p.strip_prefix('/'));
        let is_parent = below == Some("") && marked_dir(plan) != WORK_DIR;
        below.is_some() && !is_parent && foreign(plan).all(|(other, _)| other != path.as_str())
    };
    tree.keys().filter(is_own).collect()
}

/// Maximum time from the end of a call to the target until the worker records the operation of the call, in
/// nanoseconds.
const SLACK_NS: u64 = 1_000_000;

/// Checks that a failed call is counted as an error or ends the run, and that a run without faults has no errors.
fn check_errors(
    scenario: &Scenario,
    spec: &FilesSpec,
    execution: &Execution,
    outcome: &Outcome,
    end: &FilesEnd,
) -> Result<(), Violation> {
    let failed = end.calls.iter().filter(|c| c.of_load && c.error.is_some());
    let failed = failed.count() as u64;
    let counted: u64 = outcome
        .windows
        .iter()
        .flat_map(|w| &w.totals.rows)
        .map(OpTotals::error_count)
        .sum();
    // Failed calls and counted errors may differ: an operation can fail without a call, on a file that an earlier
    // failure has left short or closed.
    if spec.is_sound() && (!scenario.is_pattern() || scenario.keeps_ranks()) {
        let of_load = end.calls.iter().filter(|c| c.of_load);
        let errors: HashSet<Errno> = of_load.filter_map(|c| c.error).collect();
        // In a pattern, a rank that starts early may read objects that another rank has not created yet, and then use
        // files that could not be opened.
        if !scenario.has_all_objects() {
            must!(
                "no errors without faults",
                errors
                    .iter()
                    .all(|e| [Errno::NOENT, Errno::NOTEMPTY].contains(e)),
                "{counted} counted, {failed} calls failed: {errors:?}"
            );
            return Ok(());
        }
        must!(
            "no errors without faults",
            counted == 0 && failed == 0,
            "{counted} counted, {failed} calls failed"
        );
        return Ok(());
    }
    // An operation in flight at the end of the last measured window is not measured, even if its call fails.
    let end_ns = outcome.windows.last().map_or(u64::MAX, |w| bounds(w).end);
    let in_time = |c: &&Call| c.of_load && c.error.is_some() && c.at_ns + SLACK_NS < end_ns;
    let failed = end.calls.iter().filter(in_time).count();
    if !scenario.is_pattern() && !spec.counts_errors && failed > 0 && execution.is_undisturbed() {
        must!(
            "the first error ends the run",
            outcome.failure.is_some() || outcome.interrupted || !outcome.hung_workers.is_empty(),
            "{failed} calls failed"
        );
    }
    Ok(())
}

/// Checks that each failed call in the measured window is counted as an error of one operation.
fn check_counted_errors(
    scenario: &Scenario,
    execution: &Execution,
    outcome: &Outcome,
    end: &FilesEnd,
) -> Result<(), Violation> {
    /// Error code of an operation without a call, because its file is not open.
    const NOT_ISSUED: &str = "NOT_OPEN";

    if scenario.is_pattern() || scenario.has_other_clocks() {
        return Ok(());
    }
    let window = |rank: &Option<RankEnd>| {
        let outcome = rank.as_ref()?.outcome.as_ref().ok()?;
        outcome.windows.last().cloned()
    };
    let Some(windows) = execution
        .ranks
        .iter()
        .map(window)
        .collect::<Option<Vec<_>>>()
    else {
        return Ok(());
    };
    // The results do not contain errors of lost ranks.
    if windows.len() > 1 && outcome.failure.is_some() {
        return Ok(());
    }
    // The intersection of the windows of all ranks.
    let opened = windows.iter().map(|w| bounds(w).start).max().unwrap_or(0);
    let closed = windows.iter().map(|w| bounds(w).end).min().unwrap_or(0);
    let common = opened + SLACK_NS..closed.saturating_sub(SLACK_NS);
    // Sessions whose last file could not be opened or written.
    let mut has_remains = BTreeMap::<u64, bool>::new();
    let calls = end.calls.iter().filter(|call| {
        let has_failed = call.error.is_some();
        let remains = has_remains.entry(call.session).or_default();
        // After a failed open or write, the worker removes the file; the removal does not belong to an operation, so
        // its failure is not counted.
        let is_removal = call.kind == CallKind::Unlink && *remains;
        *remains = match call.kind {
            CallKind::Open | CallKind::Write => has_failed,
            CallKind::Close => *remains,
            _ => false,
        };
        call.of_load && has_failed && !is_removal
    });
    let failed = calls.filter(|c| common.contains(&c.at_ns)).count() as u64;
    let of_calls = |row: &OpTotals| -> u64 {
        let errors = row.errors.iter().filter(|(code, _)| *code != NOT_ISSUED);
        errors.map(|(_, n)| n).sum()
    };
    let counted: u64 = outcome
        .windows
        .last()
        .map_or(0, |w| w.totals.rows.iter().map(of_calls).sum());
    // The operation of each worker may end after the window although its call failed before: a file is closed first.
    must!(
        "errors are counted",
        counted + execution.plan.workers() >= failed,
        "{counted} counted, {failed} calls failed from {opened} to {closed} ns"
    );
    Ok(())
}

/// A run with an error, failure or interrupt is not valid.
fn check_verdict(execution: &Execution, outcome: &Outcome) -> Result<(), Violation> {
    let run = assembled(&execution.plan, outcome);
    let verdict = run.validity.verdict;
    let errors: u64 = run.operations.iter().map(|o| o.errors).sum();
    let is_good = outcome.verification.as_ref().is_none_or(|v| v.is_good());
    must!(
        "a verdict is that of what happened",
        verdict != Verdict::Valid
            || errors == 0
                && outcome.failure.is_none()
                && !outcome.interrupted
                && outcome.hung_workers.is_empty()
                && is_good,
        "valid with {errors} errors, {:?}, interrupted: {}, stuck: {:?}, verified: {is_good}",
        outcome.failure,
        outcome.interrupted,
        outcome.hung_workers
    );
    if outcome.failure.is_some() {
        must!(
            "a verdict is that of what happened",
            verdict == Verdict::Failed,
            "{verdict:?} of {:?}",
            outcome.failure
        );
    }
    Ok(())
}

/// Checks that verification finds no differences if the target has neither falsified nor lost contents.
fn check_verification(
    scenario: &Scenario,
    spec: &FilesSpec,
    outcome: &Outcome,
    end: &FilesEnd,
) -> Result<(), Violation> {
    let Some(found) = outcome.verification.as_ref().filter(|_| spec.verifies) else {
        return Ok(());
    };
    let falsified = end.calls.iter().any(|c| c.is_falsified);
    let lost = !spec.is_sound() || !scenario.is_calm();
    if !falsified && !lost {
        must!("what is right is verified", found.is_good(), "{found:?}");
    }
    Ok(())
}

/// The kind of call of operations with a single call.
fn call_of(kind: OpKind) -> Option<CallKind> {
    match kind {
        OpKind::Stat => Some(CallKind::Stat),
        OpKind::Close => Some(CallKind::Close),
        OpKind::Delete => Some(CallKind::Unlink),
        OpKind::Fsync => Some(CallKind::Sync),
        _ => None,
    }
}

/// The numbers of counted operations and of calls to the target agree.
fn check_calls(
    scenario: &Scenario,
    spec: &FilesSpec,
    execution: &Execution,
    outcome: &Outcome,
    end: &FilesEnd,
) -> Result<(), Violation> {
    let is_simple = matches!(scenario.workload.load, Load::Threads(_)) && !spec.verifies;
    if scenario.ranks > 1 || !is_simple || scenario.has_other_clocks() {
        return Ok(());
    }
    let Some(window) = outcome.windows.last() else {
        return Ok(());
    };
    for kind in [
        CallKind::Stat,
        CallKind::Close,
        CallKind::Unlink,
        CallKind::Sync,
    ] {
        let rows = execution.plan.operations.iter().zip(&window.totals.rows);
        let counted: u64 = rows
            .filter(|(operation, _)| call_of(operation.kind) == Some(kind))
            .map(|(_, row)| row.ops)
            .sum();
        // An operation on a file that was not opened fails without a call.
        let seen = end.calls.iter().filter(|c| c.error.is_none());
        let seen =
            seen.filter(|c| c.of_load && c.kind == kind && bounds(window).contains(&c.at_ns));
        let seen = seen.count() as u64;
        // Each worker may have one operation that crosses each end of the window.
        let at_ends = 2 * execution.plan.workers();
        must!(
            "the target has seen what is counted",
            counted.abs_diff(seen) <= at_ends,
            "{kind:?}: {counted} counted, {seen} seen, {} workers",
            execution.plan.workers()
        );
    }
    Ok(())
}
