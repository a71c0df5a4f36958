//! `curve`: measures a workload at several loads, in increasing order, on one data set.

mod setup;

use crate::cli::{CurveArgs, Format};
use crate::console::Stream;
use crate::exit::{CommandError, Exit};
use crate::load_runner::{self, LoadRunner};
use crate::monitor::Monitor;
use plimsoll_plan::Note;
use plimsoll_points::CurveEnd;
use plimsoll_report::terminal;
use plimsoll_results::{
    CurvePoint, CurveState, CurveWriter, LoadCurve, Reason, ResultsError, Verdict,
};
use std::path::Path;

/// Measures the points, writes the results and prints the report.
pub fn run(args: &CurveArgs) -> Result<Exit, CommandError> {
    load_runner::run_on_all_ranks(
        &args.manner,
        |communicator| setup::ready(args, communicator),
        lead,
    )
}

/// What rank 0 does.
fn lead(points: &mut LoadRunner<'_>, mut writer: CurveWriter) -> Result<Exit, CommandError> {
    if let Some(program) = &writer.curve().monitor {
        let workload = &writer.curve().workload;
        let monitor = Monitor::new(program, workload, points.stop);
        match monitor {
            Ok(monitor) => points.monitor = Some(monitor),
            Err(reason) => {
                return refused(writer, CommandError::usage(reason));
            }
        }
    }
    points.hooks = writer.curve().hooks.clone();
    points.runs = writer.curve().points.len() as u64;
    keep_percentiles(points, &mut writer).map_err(CommandError::failed)?;
    points.output.print_message(&setup::headline(
        writer.curve(),
        points.config,
        points.communicator.size(),
    ));
    for point in &writer.curve().points {
        let line = plimsoll_report::curve::line(point);
        points
            .output
            .print_message(&format!("{line} (measured before)"));
    }
    let measured = measure(points, &mut writer);
    // The last words of the monitor come before the report.
    points.monitor = None;
    let ended = match measured {
        Ok(()) => clean(points, &mut writer, points.used),
        Err(CurveAbort::Refused(stopped)) if writer.curve().points.is_empty() => {
            return refused(
                writer,
                points.config.clean_up_after_refusal(stopped, points.stop),
            );
        }
        Err(CurveAbort::Refused(stopped)) => {
            let text = stopped.message.trim().trim_start_matches("error: ").into();
            fail(&mut writer, "refused", text)
                .map_err(CommandError::failed)
                .and_then(|()| clean(points, &mut writer, false))
        }
        Err(CurveAbort::Lost(e)) => return Err(CommandError::failed(e)),
    };
    report(points.output.format, writer.curve(), writer.dir().path())?;
    let exit = exit_of(writer.curve());
    ended.map(|is_clean| points.output.exit(exit, is_clean))
}

/// Percentiles that were requested are those of the curve; one that goes on has its own where none were.
fn keep_percentiles(
    points: &mut LoadRunner<'_>,
    writer: &mut CurveWriter,
) -> Result<(), ResultsError> {
    let Some(asked) = points.output.percentiles.clone() else {
        points.output.percentiles = writer.curve().percentiles_shown.clone();
        return Ok(());
    };
    let measured = writer.dir().read_with(Some(&asked))?;
    writer.change(|curve| {
        curve.points = measured.points;
        curve.percentiles_shown = Some(asked);
    })
}

/// Why points were not measured to the end.
enum CurveAbort {
    /// The run of a point was refused.
    Refused(CommandError),
    /// The results could not be written.
    Lost(ResultsError),
}

/// Nothing was measured, and nothing is left.
fn refused(writer: CurveWriter, stopped: CommandError) -> Result<Exit, CommandError> {
    // A curve that goes on has points of its own.
    if writer.curve().points.is_empty() && writer.curve().state == CurveState::Unfinished {
        // What is left of it is named by what refused it.
        let _ = writer.withdraw();
    }
    Err(stopped)
}

/// Measures the loads that are missing, until a rule, an error or somebody ends it.
fn measure(points: &mut LoadRunner<'_>, writer: &mut CurveWriter) -> Result<(), CurveAbort> {
    let state = |writer: &mut CurveWriter, state| writer.change(|c| c.state = state);
    // Of a curve that goes on.
    writer
        .change(|c| (c.state, c.stop_reason) = (CurveState::Unfinished, None))
        .map_err(CurveAbort::Lost)?;
    loop {
        if let Some(end) = stopped_by_rule(writer.curve()) {
            let reason = Reason {
                code: end.code().into(),
                text: end.to_string(),
            };
            let change = |c: &mut LoadCurve| {
                (c.state, c.stop_reason) = (CurveState::Stopped, Some(reason));
            };
            return writer.change(change).map_err(CurveAbort::Lost);
        }
        let Some(load) = writer.curve().missing().first().copied() else {
            return state(writer, CurveState::Complete).map_err(CurveAbort::Lost);
        };
        if points.stop.is_requested() {
            return state(writer, CurveState::Interrupted).map_err(CurveAbort::Lost);
        }
        let place = &*writer;
        let measured = points
            .measure(load, |plan, started, clock| {
                place.point(load, plan, started, clock)
            })
            .map_err(CurveAbort::Refused)?;
        let dir = measured.dir.map_err(CurveAbort::Lost)?;
        let name = dir.path().file_name().unwrap_or_default();
        let point = CurvePoint::of(&measured.run, load, &name.to_string_lossy());
        points
            .output
            .print_message(&plimsoll_report::curve::line(&point));
        let notes = measured.notes.into_iter();
        let notes: Vec<Note> = notes
            .map(|text| Note {
                text,
                location: None,
            })
            .collect();
        writer
            .change(|c| c.notes.extend(notes))
            .map_err(CurveAbort::Lost)?;
        match point.verdict {
            Verdict::Valid | Verdict::Invalid => writer.add(point).map_err(CurveAbort::Lost)?,
            Verdict::Interrupted => {
                return state(writer, CurveState::Interrupted).map_err(CurveAbort::Lost);
            }
            Verdict::Failed => {
                let reasons = point.reasons.iter().map(|r| r.text.as_str());
                let text = format!("load {load}: {}", reasons.collect::<Vec<_>>().join("; "));
                return fail(writer, "failed", text).map_err(CurveAbort::Lost);
            }
        }
    }
}

/// Writes that an error ended the curve.
fn fail(writer: &mut CurveWriter, code: &str, text: String) -> Result<(), ResultsError> {
    let reason = Reason {
        code: code.into(),
        text,
    };
    writer.change(|c| (c.state, c.stop_reason) = (CurveState::Failed, Some(reason)))
}

/// The rule by which the curve ends with the points it has, if there are loads left.
fn stopped_by_rule(curve: &LoadCurve) -> Option<CurveEnd> {
    if curve.missing().is_empty() {
        return None;
    }
    let measured = curve.curve().ok()?;
    curve.stop_rules.stop(measured.points())
}

/// Removes the files, or leaves them if they are to stay: because the user said so, or because a
/// curve that did not come to its end goes on with them. `used`: a point used them. Gives whether
/// everything went that was to go; the rest is noted.
fn clean(
    points: &LoadRunner<'_>,
    writer: &mut CurveWriter,
    used: bool,
) -> Result<bool, CommandError> {
    let ground = points.config;
    let stays = writer.curve().state.can_resume() && !ground.plan.work_dir.temporary;
    let stays = ground.plan.options.keep || stays;
    if points.used && !stays {
        ground.report_removal(&points.output);
    }
    let wrong = ground.end(stays, used, points.stop);
    if wrong.is_empty() {
        return Ok(true);
    }
    let notes = wrong.into_iter().map(|text| Note {
        text,
        location: None,
    });
    writer
        .change(|c| c.notes.extend(notes))
        .map_err(CommandError::failed)?;
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

fn report(format: Format, curve: &LoadCurve, dir: &Path) -> Result<(), CommandError> {
    let text = match format {
        Format::Json => curve.to_json(),
        Format::Text => {
            let layout = terminal::Layout {
                width: Stream::Out.width(),
                color: Stream::Out.color(),
            };
            format!(
                "\n{}",
                plimsoll_report::curve::render(curve, Some(dir), layout)
            )
        }
    };
    super::print(&text).map(|_| ())
}
