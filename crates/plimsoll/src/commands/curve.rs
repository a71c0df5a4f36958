//! `curve`: measures a workload at several loads, in increasing order, on one data set.

mod point_processes;
mod points;
mod setup;

use crate::cli::CurveArgs;
use crate::console;
use crate::exit::{CommandError, Exit};
use crate::load_runner::{self, LoadRunner};
use crate::monitor::Monitor;
use crate::process_pool::process_count;
use plimsoll_plan::Note;
use plimsoll_points::CurveEnd;
use plimsoll_results::{
    CurvePoint, CurveState, CurveWriter, Document, LoadCurve, Reason, ResultsError, Verdict,
};
pub use point_processes::measure_point;
use points::{Fate, PointEnd, Points};

/// Measures the points, writes the results and prints the report.
pub fn run(args: &CurveArgs) -> Result<Exit, CommandError> {
    load_runner::run_on_all_ranks(
        &args.manner,
        |communicator| setup::ready(args, communicator.working()),
        |runner, writer| run_as_root(runner, writer, process_count(args.jobs)),
    )
}

fn run_as_root(
    runner: &mut LoadRunner<'_>,
    mut writer: CurveWriter,
    jobs: usize,
) -> Result<Exit, CommandError> {
    let curve = writer.document();
    if let Some(program) = &curve.settings.monitor {
        match Monitor::new(program, &curve.workload, runner.stop) {
            Ok(monitor) => runner.monitor = Some(monitor),
            Err(reason) => return refused(writer, CommandError::usage(reason)),
        }
    }
    runner.runs = curve.points.len() as u64;
    if let Err(e) = runner.prepare(&mut writer) {
        return Err(lost(runner, &writer, e, None));
    }
    let points = Points::new(runner, &writer, jobs);
    let curve = writer.document();
    let headline = setup::headline(curve, runner.config, runner.communicator.working(), &points);
    runner.output.print_message(&headline);
    for point in &curve.points {
        runner.output.print_message(&line_before(point));
    }
    let measured = measure(runner, &mut writer, points);
    // The monitor's last output comes before the report.
    runner.monitor = None;
    let cleaned = match measured {
        Ok(()) => clean(runner, &mut writer, runner.used),
        Err(CurveAbort::Refused(error)) if is_withdrawn(&writer) => {
            let error = runner.config.clean_up_after_refusal(error, runner.stop);
            return refused(writer, error);
        }
        Err(CurveAbort::Refused(error)) => {
            let reason = error.reason();
            match fail(&mut writer, reason.clone()) {
                Ok(()) => clean(runner, &mut writer, false),
                Err(e) => return Err(lost(runner, &writer, e, Some(&reason))),
            }
        }
        Err(CurveAbort::Lost(e)) => return Err(lost(runner, &writer, e, None)),
    };
    let (curve, dir) = (writer.document(), Some(writer.dir().path()));
    super::print_report(
        runner.output.format,
        || curve.to_json(),
        |layout| plimsoll_report::curve::render(curve, dir, layout),
    )?;
    let exit = exit_of(curve);
    cleaned.map(|is_clean| runner.output.exit(exit, is_clean))
}

/// The error of a curve that could not be written, after it had ended for a reason if there is one.
fn lost(
    runner: &LoadRunner<'_>,
    writer: &CurveWriter,
    e: ResultsError,
    reason: Option<&Reason>,
) -> CommandError {
    runner.end_without_results(e, reason, ("curve", writer.dir().path()))
}

/// The line of a point that an earlier process measured.
fn line_before(point: &CurvePoint) -> String {
    let line = plimsoll_report::curve::line(point);
    format!("{line} (measured before)")
}

/// Reasons why points were not measured to the end.
enum CurveAbort {
    /// The run of a point was refused.
    Refused(CommandError),
    /// The results could not be written.
    Lost(ResultsError),
}

impl From<ResultsError> for CurveAbort {
    fn from(e: ResultsError) -> Self {
        Self::Lost(e)
    }
}

/// Whether a refusal leaves nothing of the curve: it begins here and has no points.
fn is_withdrawn(writer: &CurveWriter) -> bool {
    writer.is_new() && writer.document().points.is_empty()
}

/// Ends a curve that measured nothing. One that is resumed stays as it is.
fn refused(writer: CurveWriter, error: CommandError) -> Result<Exit, CommandError> {
    // The refusal says more than an error of the removal.
    let _ = writer.withdraw();
    Err(error)
}

/// Measures the missing points until a rule, an error or the user ends it.
fn measure(
    runner: &mut LoadRunner<'_>,
    writer: &mut CurveWriter,
    mut points: Points,
) -> Result<(), CurveAbort> {
    // A curve that is resumed has ended before.
    end(writer, CurveState::Unfinished, None)?;
    let measured = measure_points(runner, writer, &mut points);
    let fate = match &measured {
        Ok(()) if !writer.document().state.can_resume() => Fate::Removed,
        Err(CurveAbort::Refused(_)) if is_withdrawn(writer) => Fate::Removed,
        Ok(()) if writer.document().state == CurveState::Interrupted => Fate::Kept,
        _ => Fate::KeptIfComplete,
    };
    for text in points.end(writer, fate) {
        console::err(&format!("warning: {text}\n"));
    }
    measured
}

fn measure_points(
    runner: &mut LoadRunner<'_>,
    writer: &mut CurveWriter,
    points: &mut Points,
) -> Result<(), CurveAbort> {
    loop {
        if let Some(rule) = stopped_by_rule(writer.document()) {
            let reason = Reason::new(rule.code(), rule.to_string());
            return Ok(end(writer, CurveState::Stopped, Some(reason))?);
        }
        let Some(load) = writer.document().missing().first().copied() else {
            return Ok(end(writer, CurveState::Complete, None)?);
        };
        if runner.stop.is_requested() {
            return Ok(end(writer, CurveState::Interrupted, None)?);
        }
        let (point, line, notes) = match points.measure(load, runner, writer)? {
            PointEnd::Measured(point, notes) => {
                let line = plimsoll_report::curve::line(&point);
                (*point, line, notes)
            }
            PointEnd::MeasuredBefore(point) => {
                let line = line_before(&point);
                (*point, line, vec![])
            }
            PointEnd::Interrupted => return Ok(end(writer, CurveState::Interrupted, None)?),
            PointEnd::Lost(reason) => return Ok(fail(writer, reason)?),
        };
        runner.output.print_message(&line);
        writer.change(|c| c.notes.extend(notes.into_iter().map(Note::from)))?;
        match point.verdict {
            Verdict::Valid | Verdict::Invalid => writer.add(point)?,
            Verdict::Interrupted => return Ok(end(writer, CurveState::Interrupted, None)?),
            Verdict::Failed => {
                let reason = load_runner::failure_at(load, &point.reasons);
                return Ok(fail(writer, reason)?);
            }
        }
    }
}

/// Writes the state in which the curve ended, and the reason.
fn end(
    writer: &mut CurveWriter,
    state: CurveState,
    reason: Option<Reason>,
) -> Result<(), ResultsError> {
    writer.change(|c| (c.state, c.stop_reason) = (state, reason))
}

/// Writes that an error ended the curve.
fn fail(writer: &mut CurveWriter, reason: Reason) -> Result<(), ResultsError> {
    end(writer, CurveState::Failed, Some(reason))
}

/// The rule by which the curve ends with the points it has, if there are loads left.
fn stopped_by_rule(curve: &LoadCurve) -> Option<CurveEnd> {
    if curve.missing().is_empty() {
        return None;
    }
    let measured = curve.curve().ok()?;
    curve.stop_rules.stop(measured.points())
}

/// Removes the files, unless they are kept. Returns whether everything was removed that had to be;
/// the rest is noted. `used`: a point used the files.
fn clean(
    runner: &LoadRunner<'_>,
    writer: &mut CurveWriter,
    used: bool,
) -> Result<bool, CommandError> {
    let failed = runner.clean(writer.document().state.can_resume(), used);
    if failed.is_empty() {
        return Ok(true);
    }
    let notes = failed.iter().cloned().map(Note::from);
    let noted = writer.change(|c| c.notes.extend(notes));
    noted.map_err(|e| CommandError::failed(e).with_warnings(failed))?;
    Ok(false)
}

fn exit_of(curve: &LoadCurve) -> Exit {
    match curve.state {
        CurveState::Interrupted => Exit::Interrupted,
        CurveState::Failed | CurveState::Unfinished => Exit::Failed,
        CurveState::Complete | CurveState::Stopped => match curve.any_valid() {
            true => Exit::Valid,
            false => Exit::Invalid,
        },
    }
}
