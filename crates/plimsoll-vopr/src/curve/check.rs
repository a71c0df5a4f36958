//! Rules for a curve, regardless of the number of resumptions.

use super::{Attempt, AttemptEnd, CurveExecution, CurveScenario, MeasuredPoint};
use crate::check::{check_figures, check_simulation};
use crate::execution::{Execution, RankEnd};
use crate::files::{WORK_DIR, foreign, own_paths};
use crate::results::assembled;
use crate::scenario::DisturbanceKind;
use crate::violation::{Violation, must};
use crate::workload::Load;
use plimsoll_measure::OpTotals;
use plimsoll_plan::Plan;
use plimsoll_results::{NextRun, Run, SeriesRun, SeriesState};
use plimsoll_runtime::SimulationEnd;
use std::collections::BTreeMap;

/// Checks the attempts at a curve, and the remaining files and results.
///
/// # Errors
/// The first broken rule.
pub fn check_curve(curve: &CurveScenario, execution: &CurveExecution) -> Result<(), Violation> {
    check_simulation(&execution.end, &execution.panics)?;
    must!(
        "any curve can be resumed",
        execution.resume_error.is_none(),
        "{:?}",
        execution.resume_error
    );
    must!(
        "nothing outside the work directory is used",
        execution.strays.is_empty(),
        "{:?}",
        execution.strays
    );
    let plan = curve.plan();
    let mut was_killed = false;
    let (mut before, mut loads): (&[SeriesRun], MeasuredLoads) = (&[], MeasuredLoads::default());
    for (number, attempt) in execution.attempts.iter().enumerate() {
        check_points(curve, attempt, before, &mut loads)?;
        check_end(curve, number, attempt)?;
        check_files(curve, &plan, attempt)?;
        for measured in &attempt.measured {
            check_measured(curve, number, measured)?;
        }
        // Unfinished results of a killed process stay until another process makes results in the same directory.
        was_killed |= attempt.end.is_none();
        must!(
            "what cannot be published is removed",
            attempt.unfinished.is_empty() || was_killed,
            "{:?}",
            attempt.unfinished
        );
        before = &attempt.series.runs;
    }
    check_foreign(&plan, &execution.tree)?;
    let left = own(curve, &plan, &execution.tree);
    must!(
        "the files of any curve can be removed",
        left.iter().all(|path| is_unmarked(path)),
        "{left:?}"
    );
    if let Load::Mix(mix) = &curve.scenario.workload.load
        && curve.attempts.is_empty()
        && !mix.turns_over
    {
        must!(
            "a curve makes each file once",
            execution.created == mix.files(),
            "{} made, {} files",
            execution.created,
            mix.files()
        );
    }
    let last = execution.attempts.last().expect("there is one attempt");
    check_complete(curve, &plan, execution, last)
}

/// Loads that attempts at a curve have measured to the end.
#[derive(Debug, Default)]
struct MeasuredLoads {
    /// Loads with reported results.
    written: Vec<u64>,
    /// Loads whose results may or may not exist.
    unknown: Vec<u64>,
}

/// Checks that the curve lists load points in increasing order of load, and that an attempt measures no load with
/// results from an earlier attempt. The check adds the loads that `attempt` measured to the end to `ended`.
fn check_points(
    curve: &CurveScenario,
    attempt: &Attempt,
    before: &[SeriesRun],
    ended: &mut MeasuredLoads,
) -> Result<(), Violation> {
    let points = &attempt.series.runs;
    let loads: Vec<u64> = points.iter().filter_map(|point| point.load).collect();
    must!(
        "points are measured in the order of the loads",
        curve.loads.starts_with(&loads),
        "{loads:?} of {:?}",
        curve.loads
    );
    must!(
        "a curve that is resumed keeps its points",
        points.starts_with(before),
        "{points:?}, before {before:?}"
    );
    for measured in &attempt.measured {
        let load = measured.load;
        must!(
            "no load is measured again",
            !ended.written.contains(&load),
            "{load} after {ended:?}"
        );
        if !measured.is_whole() {
            continue;
        }
        match measured.is_written {
            true => ended.written.push(load),
            false => ended.unknown.push(load),
        }
    }
    // After a kill or a failure of the disk, the last load may be unlisted.
    let loss = attempt.end.as_ref().map(|end| end.loss.as_ref());
    let may_lack_last = loss.is_none_or(|loss| loss.is_some());
    let is_listed =
        |load: &u64| loads.contains(load) || may_lack_last && ended.written.last() == Some(load);
    let was_measured = |load: &u64| ended.written.contains(load) || ended.unknown.contains(load);
    must!(
        "points are those that were measured to their end",
        ended.written.iter().all(is_listed) && loads.iter().all(was_measured),
        "{loads:?}, measured: {ended:?}"
    );
    Ok(())
}

/// Rank 0 reports the end of its loop: the end of the series, and losses if and only if the disk has failed.
fn check_end(curve: &CurveScenario, number: usize, attempt: &Attempt) -> Result<(), Violation> {
    let (end, warnings) = (attempt.end.as_ref(), &attempt.warnings);
    let is_lost = !warnings.is_empty() || end.is_some_and(|end| end.loss.is_some());
    must!(
        "results are lost only to their disk, and no error of it is overlooked",
        match attempt.disk_errors {
            0 => !is_lost,
            _ => is_lost || end.is_none_or(|end| end.refusal.is_some()),
        },
        "{} errors, {end:?}, {warnings:?}",
        attempt.disk_errors
    );
    let Some(AttemptEnd {
        refusal,
        loss: None,
        ..
    }) = end
    else {
        return Ok(());
    };
    let (series, disturbances) = (&attempt.series, curve.of_attempt(number).disturbances);
    let is_interrupt = |kind| matches!(kind, DisturbanceKind::Interrupt { .. });
    must!(
        "a curve that ends says how",
        match series.state {
            SeriesState::Complete => series.runs.len() == curve.loads.len(),
            SeriesState::Interrupted => disturbances.iter().any(|d| is_interrupt(d.kind)),
            SeriesState::Failed => series.stop_reason.is_some(),
            // A curve whose first run was refused has no runs.
            SeriesState::Unfinished => refusal.is_some() && series.runs.is_empty(),
            SeriesState::Stopped => false,
        },
        "{:?} with {} of {} points: {:?}",
        series.state,
        series.runs.len(),
        curve.loads.len(),
        series.stop_reason
    );
    Ok(())
}

/// The files of a curve stay while the curve can be resumed, unless the files are temporary. Files that are not
/// Plimsoll's stay always.
fn check_files(curve: &CurveScenario, plan: &Plan, attempt: &Attempt) -> Result<(), Violation> {
    check_foreign(plan, &attempt.tree)?;
    let Some(end) = &attempt.end else {
        return Ok(());
    };
    must!(
        "a curve that ends releases its directory",
        end.left.is_empty(),
        "{end:?}"
    );
    let own = own(curve, plan, &attempt.tree);
    let can_resume = end.loss.is_some() || attempt.series.state.can_resume();
    let stays = can_resume && !curve.temporary;
    must!(
        "a curve removes its files in the end",
        stays || end.are_busy || own.iter().all(|path| is_unmarked(path)),
        "{own:?}"
    );
    let has_files = own.iter().any(|path| !is_unmarked(path));
    let are_needed = stays || end.are_busy;
    must!(
        "the files of a curve stay while they are needed",
        !are_needed || attempt.series.runs.is_empty() || has_files,
        "{} points, {end:?}",
        attempt.series.runs.len()
    );
    Ok(())
}

fn check_foreign(plan: &Plan, tree: &BTreeMap<String, Vec<u8>>) -> Result<(), Violation> {
    let mut foreign = foreign(plan);
    must!(
        "foreign files stay",
        foreign.all(|(path, bytes)| tree.get(path).map(Vec::as_slice) == Some(bytes)),
        "{:?}",
        tree.keys()
    );
    Ok(())
}

fn own<'a>(
    curve: &CurveScenario,
    plan: &Plan,
    tree: &'a BTreeMap<String, Vec<u8>>,
) -> Vec<&'a String> {
    let spec = curve.scenario.files.as_ref().expect("a curve has files");
    own_paths(plan, spec, tree)
}

/// Whether the path is the work directory itself: a process killed before it writes the marker leaves the directory
/// empty.
fn is_unmarked(path: &str) -> bool {
    path.trim_end_matches('/') == WORK_DIR
}

/// Checks that the figures of a measured run match the run's load.
fn check_measured(
    curve: &CurveScenario,
    attempt: usize,
    measured: &MeasuredPoint,
) -> Result<(), Violation> {
    let rows = measured.outcome.windows.iter().flat_map(|w| &w.totals.rows);
    let errors: u64 = rows.map(OpTotals::error_count).sum();
    must!(
        "no errors without faults",
        errors == 0,
        "{errors} at load {}",
        measured.load
    );
    let scenario = curve.at(measured.load, attempt);
    let run = Execution {
        plan: measured.plan.clone(),
        end: SimulationEnd::Finished,
        panics: vec![],
        ranks: vec![Some(RankEnd {
            outcome: Ok(measured.outcome.clone()),
            intervals: measured.intervals.clone(),
            at: measured.at,
        })],
        files: None,
        results: None,
        processes: vec![],
        concurrent: None,
        disk_errors: 0,
        applied: vec![None; scenario.disturbances.len()],
    };
    check_figures(&scenario, &run, &measured.outcome, &measured.intervals)
}

/// An undisturbed attempt completes the curve.
fn check_complete(
    curve: &CurveScenario,
    plan: &Plan,
    execution: &CurveExecution,
    last: &Attempt,
) -> Result<(), Violation> {
    let series = &last.series;
    must!(
        "the last attempt completes the curve",
        series.state == SeriesState::Complete && series.runs.len() == curve.loads.len(),
        "{:?} with {} points of {}: {:?}",
        series.state,
        series.runs.len(),
        curve.loads.len(),
        last.measured.last().map(|m| &m.outcome.failure)
    );
    let measured = || execution.attempts.iter().flat_map(|a| &a.measured);
    for (point, (load, run)) in series.runs.iter().zip(&execution.runs) {
        let run = match run {
            Ok(run) => run,
            Err(e) => {
                return Err(Violation {
                    rule: "results can be read",
                    what: format!("load {load}: {e}"),
                });
            }
        };
        let made_as = NextRun {
            configuration: 0,
            load: Some(*load),
            value: None,
            purpose: None,
            seed: plan.seed,
            directory: point.directory.clone(),
        };
        let again = SeriesRun::of(run, &made_as, &point.directory);
        must!(
            "a point is that of its run",
            again == *point && point.is_measured(),
            "load {load}: {point:?}, not {again:?}"
        );
        // After a kill during the publication of results, the log does not tell which measurement was published, so
        // only reported results are compared with their measurement.
        if let Some(of_run) = measured().find(|m| m.load == *load && m.is_whole() && m.is_written) {
            let expected = assembled(&of_run.plan, &of_run.outcome);
            let counts = |run: &Run| -> Vec<_> {
                let rows = run.operations.iter();
                rows.map(|o| (o.ops, o.bytes, o.errors, o.latency))
                    .collect()
            };
            must!(
                "results are those that were measured",
                run.operations == expected.operations,
                "load {load}: {:?}, not {:?}",
                counts(run),
                counts(&expected)
            );
        }
    }
    Ok(())
}
