//! The results directory of a run, written as by the program, and read after the end of all processes: despite
//! disturbances of the processes and faults of the disk, the results are complete and state how the run ended.

use crate::check::MAX_LATENESS_NS;
use crate::execution::{Execution, Shared, with};
use crate::scenario::{DisturbanceKind, Scenario};
use crate::violation::{Violation, must};
use plimsoll_engine::{EngineError, Outcome};
use plimsoll_measure::Interval;
use plimsoll_plan::Plan;
use plimsoll_results::{
    ClockKind, IntervalRow, MeasuredRun, ResultsError, Run, RunDir, RunWriter, Target, Verdict,
    recover,
};
use plimsoll_runtime::{SimulationHandle, system_time};
use plimsoll_series::outcome_or_refusal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;

/// Number of calls to the disk for an interval.
const CALLS_OF_INTERVAL: u64 = 2;

/// Directory in which rank 0 makes its results; the directory outlives a killed rank 0.
pub(crate) struct ResultsRoot {
    dir: TempDir,
    log: Shared<ResultsLog>,
}

/// Log of rank 0's actions on the results of a run, from which rules derive the permitted content of the results
/// directory.
#[derive(Debug, Clone, Default)]
pub struct ResultsLog {
    /// Whether rank 0 has written the draft of `run.json`, from which results can be recovered after a kill.
    pub has_draft: bool,
    /// Intervals that rank 0 passed to the writer, each with its time in nanoseconds of the simulation.
    pub passed: Vec<(u64, Interval)>,
    /// Error of the disk that ended the writing of results, with its time in nanoseconds of the simulation; `None`
    /// without an error.
    pub error: Option<(u64, String)>,
    /// Content of `run.json` that rank 0 tries to publish at the end of the run; `None` before the end.
    pub ended: Option<Box<Run>>,
    /// Whether the writer reported the results as published.
    pub is_published: bool,
}

/// Writer of rank 0's results during a run, which logs each action on the results in a [`ResultsLog`].
pub(crate) struct RunResults {
    plan: Plan,
    writer: Option<RunWriter>,
    handle: SimulationHandle,
    log: Shared<ResultsLog>,
}

impl ResultsRoot {
    /// Creates an empty directory for the results of rank 0.
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("there is a temporary directory"),
            log: Shared::default(),
        }
    }

    /// Place of the results, to be given to the process of rank 0.
    pub(crate) fn place(&self) -> ResultsPlace {
        ResultsPlace(self.dir.path().to_owned(), self.log.clone())
    }

    /// Reads the results directory after the end of all processes; recovers unfinished results that have a draft.
    pub(crate) fn end(self) -> ResultsEnd {
        let entries = std::fs::read_dir(self.dir.path()).expect("the directory is there");
        let paths = entries.map(|entry| entry.expect("the directory is there").path());
        let is_hidden = |path: &PathBuf| {
            let name = path.file_name().expect("an entry has a name");
            name.as_encoded_bytes().starts_with(b".")
        };
        let (hidden, published): (Vec<_>, Vec<_>) = paths.partition(is_hidden);
        let log = with(&self.log, std::mem::take);
        let found = match (&hidden[..], &published[..]) {
            ([], []) => Found::Nothing,
            ([], [dir]) => Found::Published(read(Ok(RunDir::at(dir)))),
            ([dir], []) if log.has_draft => Found::Hidden(Some(read(recovered(dir)))),
            ([_], []) => Found::Hidden(None),
            _ => Found::Several([hidden, published].concat()),
        };
        ResultsEnd { log, found }
    }
}

/// Directory in which rank 0 makes the results of a run, and the log of rank 0's actions on the results.
#[derive(Clone)]
pub(crate) struct ResultsPlace(PathBuf, Shared<ResultsLog>);

impl ResultsPlace {
    /// Begins the results of a run with `ranks` ranks.
    ///
    /// # Errors
    /// If a call to the disk fails.
    pub(crate) fn begin(
        &self,
        plan: &Plan,
        ranks: u32,
        handle: &SimulationHandle,
    ) -> Result<RunResults, String> {
        let mut results = RunResults {
            plan: plan.clone(),
            writer: None,
            handle: handle.clone(),
            log: self.1.clone(),
        };
        let writer = RunWriter::create(&self.0, plan, system_time(), ClockKind::Real, None);
        let begun = writer.and_then(|mut writer| {
            writer.draft(&draft(plan, ranks))?;
            Ok(writer)
        });
        match begun {
            Ok(writer) => results.writer = Some(writer),
            Err(e) => return Err(results.lose(&e)),
        }
        with(&results.log, |log| log.has_draft = true);
        Ok(results)
    }
}

impl RunResults {
    /// Appends an interval; returns `false` if the interval cannot be written, which ends the results.
    pub(crate) fn interval(&mut self, interval: &Interval) -> bool {
        let Some(writer) = &mut self.writer else {
            return true;
        };
        let at = self.handle.now();
        match writer.interval(interval) {
            Ok(()) => {
                with(&self.log, |log| log.passed.push((at, interval.clone())));
                true
            }
            Err(e) => {
                self.lose(&e);
                false
            }
        }
    }

    /// Publishes the results of a run that has ended, unless the results were lost before or the run was refused.
    pub(crate) fn publish(mut self, ran: &Result<Outcome, EngineError>) {
        let (Some(writer), Ok(outcome)) = (self.writer.take(), outcome_or_refusal(ran.clone()))
        else {
            return;
        };
        let run = assembled(&self.plan, &outcome);
        with(&self.log, |log| log.ended = Some(Box::new(run.clone())));
        match writer.finish(&run) {
            Ok(_) => with(&self.log, |log| log.is_published = true),
            Err(e) => _ = self.lose(&e),
        }
    }

    /// Records the error of the disk that ends the writing of results; returns the error's text.
    fn lose(&mut self, error: &ResultsError) -> String {
        // Dropping the writer removes the unfinished results.
        self.writer = None;
        let (at, text) = (self.handle.now(), error.to_string());
        with(&self.log, |log| log.error = Some((at, text.clone())));
        text
    }
}

/// Run read from a results directory, with the rows of `intervals.csv`; an error if a file cannot be read.
pub type ReadRun = Result<(Box<Run>, Vec<IntervalRow>), String>;

fn read(dir: Result<RunDir, String>) -> ReadRun {
    let dir = dir?;
    let run = dir.read().map_err(|e| e.to_string())?;
    let rows = dir.read_intervals().map_err(|e| e.to_string())?;
    Ok((Box::new(run), rows))
}

/// Recovers the remains of a killed process from a copy: threads of the process still hold a lock on the original.
fn recovered(left: &Path) -> Result<RunDir, String> {
    let copied = left.with_file_name(".plimsoll-copied");
    copy(left, &copied);
    let mut found = recover(&copied).map_err(|e| e.to_string())?;
    found.remove(0).map_err(|e| e.to_string())
}

/// Copies a directory.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("the temporary directory is writable");
    let entries = std::fs::read_dir(from).expect("the directory is there");
    for entry in entries.map(|entry| entry.expect("the directory is there")) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
            continue;
        }
        std::fs::copy(from, to).expect("the temporary directory is writable");
    }
}

/// The observations of the results.
#[derive(Debug, Clone)]
pub struct ResultsEnd {
    /// Actions of rank 0.
    pub log: ResultsLog,
    /// Results in the directory.
    pub found: Found,
}

impl ResultsEnd {
    /// Text that follows from the seed: without paths, and without errors that contain paths.
    pub(crate) fn digest(&self) -> String {
        let found = match &self.found {
            Found::Nothing => "nothing".to_owned(),
            Found::Several(paths) => format!("{} directories", paths.len()),
            Found::Published(run) => format!("published {:?}", run.as_ref().ok()),
            Found::Hidden(run) => format!("hidden {:?}", run.as_ref().map(|r| r.as_ref().ok())),
        };
        let failed_at = self.log.error.as_ref().map(|(at, _)| at);
        format!("{} {failed_at:?} {found}", self.log.has_draft)
    }
}

/// Results that the simulated run left in the results directory, read after the end of all processes.
#[derive(Debug, Clone)]
pub enum Found {
    /// The run left neither published nor unfinished results.
    Nothing,
    /// The run left one results directory with its final name, as published results have.
    Published(ReadRun),
    /// The run left one hidden directory with unfinished results; `None` if rank 0 had not yet written a draft of
    /// `run.json`, from which the results can be recovered.
    Hidden(Option<ReadRun>),
    /// The run left several results directories, published or hidden, although a run has one; paths of all results
    /// directories of the run.
    Several(Vec<PathBuf>),
}

/// Target of the simulated run, as `run.json` describes the target.
fn target(description: String) -> Target {
    Target {
        url: "simulated".into(),
        description,
        system: None,
    }
}

fn measured(plan: &Plan, description: String) -> MeasuredRun {
    MeasuredRun::new(plan.clone(), target(description), SystemTime::UNIX_EPOCH)
}

/// Draft of `run.json` at the begin of a run: an interrupted run without measurements.
fn draft(plan: &Plan, ranks: u32) -> Run {
    Run::assemble(MeasuredRun {
        ranks,
        outcome: Outcome {
            interrupted: true,
            ..Outcome::default()
        },
        ..measured(plan, String::new())
    })
}

/// Content of `run.json` that follows from the outcome of a run.
pub(crate) fn assembled(plan: &Plan, outcome: &Outcome) -> Run {
    let windows = outcome.windows.iter();
    let windows = windows.map(|w| w.totals.clone().into());
    Run::assemble(MeasuredRun {
        outcome: Outcome {
            windows: windows.collect(),
            ..outcome.clone()
        },
        ..measured(plan, outcome.target.clone())
    })
}

/// Numbers of operations, bytes and errors by window number and row name; rows of zeros are left out.
type Figures<'a> = BTreeMap<(u32, &'a str), (u64, u128, u64)>;

fn add<'a>(sums: &mut Figures<'a>, row: (u32, &'a str), (ops, bytes, errors): (u64, u128, u64)) {
    if (ops, bytes, errors) != (0, 0, 0) {
        let sum = sums.entry(row).or_default();
        *sum = (sum.0 + ops, sum.1 + bytes, sum.2 + errors);
    }
}

/// The sums over the first 0, 1, 2, … intervals.
fn sums<'a>(plan: &'a Plan, passed: &[(u64, Interval)]) -> Vec<Figures<'a>> {
    let mut sums = vec![Figures::new()];
    for (_, interval) in passed {
        let mut sum = sums.last().expect("there is that of none").clone();
        for (operation, totals) in plan.operations.iter().zip(&interval.rows) {
            let figures = (totals.ops, totals.bytes, totals.error_count());
            add(&mut sum, (interval.window, &operation.name), figures);
        }
        sums.push(sum);
    }
    sums
}

/// Checks the content of the results directory.
pub(crate) fn check(
    scenario: &Scenario,
    execution: &Execution,
    end: &ResultsEnd,
) -> Result<(), Violation> {
    let was_killed = execution.ranks[0].is_none();
    let error = end.log.error.as_ref();
    must!(
        "results are lost only to their disk, and no error of it is overlooked",
        match execution.disk_errors {
            0 => error.is_none(),
            _ => error.is_some() || was_killed,
        },
        "{} errors, {error:?}",
        execution.disk_errors
    );
    let was_refused = matches!(
        execution.ranks[0].as_ref().map(|end| &end.outcome),
        Some(Err(EngineError::Refused(_)))
    );
    match &end.found {
        Found::Several(paths) => must!("a run has one directory", false, "{paths:?}"),
        Found::Nothing => must!(
            "results are there unless their disk fails",
            error.is_some() || was_refused || was_killed && !end.log.has_draft,
            "{:?}",
            end.log
        ),
        Found::Hidden(recovered) => {
            must!(
                "what cannot be published is removed",
                was_killed,
                "{recovered:?}, {error:?}"
            );
            if let Some(run) = recovered {
                check_recovered(scenario, execution, &end.log, run)?;
            }
        }
        Found::Published(run) => {
            // If the disk fails during the rename, results may be published although the writer reports an error.
            must!(
                "results are published by their run",
                end.log.is_published || error.is_some() || was_killed,
                "{:?}",
                end.log
            );
            check_published(&execution.plan, &end.log, run)?;
        }
    }
    Ok(())
}

fn readable(run: &ReadRun) -> Result<(&Run, Figures<'_>), Violation> {
    let (run, rows) = run.as_ref().map_err(|e| Violation {
        rule: "results can be read",
        what: e.clone(),
    })?;
    let mut found = Figures::new();
    for row in rows {
        let figures = (row.ops, row.bytes, row.errors);
        add(&mut found, (row.window, &row.operation), figures);
    }
    Ok((run, found))
}

fn check_published(plan: &Plan, log: &ResultsLog, run: &ReadRun) -> Result<(), Violation> {
    let (run, found) = readable(run)?;
    must!(
        "results are those that were written",
        log.ended.as_deref() == Some(run),
        "{run:?}, not {:?}",
        log.ended
    );
    let passed = sums(plan, &log.passed);
    must!(
        "results have every interval",
        passed.last() == Some(&found),
        "{found:?}, not {:?}",
        passed.last()
    );
    Ok(())
}

/// Results of a killed process have the intervals that the disk had at the kill, complete and in order.
fn check_recovered(
    scenario: &Scenario,
    execution: &Execution,
    log: &ResultsLog,
    run: &ReadRun,
) -> Result<(), Violation> {
    // The process may have been killed during the publication of the complete results.
    if let Ok((whole, _)) = run
        && log.ended.as_ref() == Some(whole)
    {
        return check_published(&execution.plan, log, run);
    }
    let (run, found) = readable(run)?;
    must!(
        "results of a killed run are interrupted",
        run.validity.verdict == Verdict::Interrupted,
        "{:?}",
        run.validity
    );
    let passed = sums(&execution.plan, &log.passed);
    let Some(kept) = passed.iter().rposition(|sum| *sum == found) else {
        must!(
            "results of a killed run have the first of its intervals",
            false,
            "{found:?}, of {passed:?}"
        );
        return Ok(());
    };
    let written = written_before_kill(scenario, execution, log);
    must!(
        "a killed run keeps the intervals that were written",
        kept >= written,
        "{kept} of {}, at least {written}",
        log.passed.len()
    );
    // The figures of a pattern are the sums over all of its windows.
    let is_shown = |window: u32| scenario.is_pattern() || window == run.window_number;
    for operation in &run.operations {
        let mut sum = (0, 0, 0);
        for ((window, name), (ops, bytes, errors)) in &found {
            if is_shown(*window) && *name == operation.name {
                sum = (sum.0 + ops, sum.1 + bytes, sum.2 + errors);
            }
        }
        let figures = (operation.ops, operation.bytes, operation.errors);
        must!(
            "what a killed run has measured is in its results",
            figures == sum,
            "{}: {figures:?}, not {sum:?}",
            operation.name
        );
    }
    Ok(())
}

/// The number of intervals that were on the disk of rank 0 at the kill: intervals are written one after the other.
fn written_before_kill(scenario: &Scenario, execution: &Execution, log: &ResultsLog) -> usize {
    let disk = scenario.results.unwrap_or_default();
    let was_stopped = |kind| matches!(kind, DisturbanceKind::Stop { rank: 0, .. });
    if disk.fault.is_some() || scenario.disturbances.iter().any(|d| was_stopped(d.kind)) {
        return 0;
    }
    let applied = scenario.disturbances.iter().zip(&execution.applied);
    let kills = applied.filter(|(d, _)| d.kind == DisturbanceKind::Kill { rank: 0 });
    let Some(killed_at) = kills.filter_map(|(_, at)| *at).min() else {
        return 0;
    };
    let latency_ns = u64::try_from(disk.latency.as_nanos()).expect("a latency is short");
    let mut done_at = 0;
    let is_written = |at: u64| {
        done_at = at.max(done_at) + CALLS_OF_INTERVAL * latency_ns + MAX_LATENESS_NS;
        done_at < killed_at
    };
    let times = log.passed.iter().map(|(at, _)| *at);
    times
        .map(is_written)
        .take_while(|is_written| *is_written)
        .count()
}
