//! `find`: looks for the load line of a workload, the highest load that meets its criteria.

mod setup;

use crate::cli::{FindArgs, Format};
use crate::console::Stream;
use crate::exit::{CommandError, Exit};
use crate::load_runner::{self, LoadRunner};
use plimsoll_plan::Note;
use plimsoll_points::{Purpose, SearchEnd, Step};
use plimsoll_report::terminal;
use plimsoll_results::{FindWriter, LoadSearch, Reason, ResultsError, Run, Verdict};
use std::path::Path;

/// Looks for the load line, writes every run and prints what was found.
pub fn run(args: &FindArgs) -> Result<Exit, CommandError> {
    load_runner::run_on_all_ranks(
        &args.manner,
        |communicator| setup::ready(args, communicator.size()),
        lead,
    )
}

/// Why the search ended before it was through.
enum SearchAbort {
    /// A run was refused.
    Refused(CommandError),
    /// A run failed.
    Failed(Reason),
    /// Somebody ended it.
    Interrupted,
    /// The results could not be written.
    Lost(ResultsError),
}

/// What rank 0 does.
fn lead(points: &mut LoadRunner<'_>, mut writer: FindWriter) -> Result<Exit, CommandError> {
    points.hooks = writer.search().hooks.clone();
    points.runs = writer.search().runs.len() as u64;
    keep_percentiles(points, &mut writer).map_err(CommandError::failed)?;
    let ranks = points.communicator.size();
    let headline = setup::headline(writer.search(), points.config, ranks);
    points.output.print_message(&headline);
    for (number, run) in (1..).zip(&writer.search().runs) {
        let line = plimsoll_report::find::line(&writer.search().metric, number, run);
        points
            .output
            .print_message(&format!("{line} (made before)"));
    }
    let searched = search(points, &mut writer);
    let is_interrupted = matches!(searched, Err(SearchAbort::Interrupted));
    let failure = match searched {
        Ok(()) => None,
        Err(SearchAbort::Interrupted) => None,
        Err(SearchAbort::Failed(reason)) => Some(reason),
        Err(SearchAbort::Refused(stopped)) if writer.search().runs.is_empty() => {
            // What is left of it is named by what refused it.
            let _ = writer.withdraw();
            return Err(points.config.clean_up_after_refusal(stopped, points.stop));
        }
        Err(SearchAbort::Refused(stopped)) => Some(Reason {
            code: "refused".into(),
            text: stopped.message.trim().trim_start_matches("error: ").into(),
        }),
        Err(SearchAbort::Lost(e)) => return Err(CommandError::failed(e)),
    };
    let change = |s: &mut LoadSearch| {
        s.load_line = s.search.load_line(&s.trials());
        if is_interrupted && s.load_line.termination == SearchEnd::Unfinished {
            s.load_line.termination = SearchEnd::Interrupted;
        }
        s.failure = failure;
    };
    writer.change(change).map_err(CommandError::failed)?;
    let wrong = clean(points, writer.search());
    let is_clean = wrong.is_empty();
    if !is_clean {
        let add = |s: &mut LoadSearch| s.notes.extend(wrong);
        writer.change(add).map_err(CommandError::failed)?;
    }
    report(points.output.format, writer.search(), writer.dir().path())?;
    Ok(points.output.exit(exit_of(writer.search()), is_clean))
}

/// Percentiles that were requested are those of the search; one that goes on has its own where none
/// were.
fn keep_percentiles(
    points: &mut LoadRunner<'_>,
    writer: &mut FindWriter,
) -> Result<(), ResultsError> {
    let Some(asked) = points.output.percentiles.clone() else {
        points.output.percentiles = writer.search().percentiles_shown.clone();
        return Ok(());
    };
    let made = writer.dir().read_with(Some(&asked))?;
    writer.change(|search| {
        search.runs = made.runs;
        search.percentiles_shown = Some(asked);
    })
}

/// Runs one load after the other, as the search asks for them.
fn search(points: &mut LoadRunner<'_>, writer: &mut FindWriter) -> Result<(), SearchAbort> {
    let rules = writer.search().search;
    while let Step::Measure(load, purpose) = rules.next(&writer.search().trials()) {
        if points.stop.is_requested() {
            return Err(SearchAbort::Interrupted);
        }
        measure(points, writer, load, purpose)?;
        let search = writer.search();
        if let Some(run) = search.runs.last() {
            let line = plimsoll_report::find::line(&search.metric, search.runs.len(), run);
            points.output.print_message(&line);
        }
    }
    Ok(())
}

/// Makes one run and adds it to the results, unless it did not come to its end.
fn measure(
    points: &mut LoadRunner<'_>,
    writer: &mut FindWriter,
    load: u64,
    purpose: Purpose,
) -> Result<(), SearchAbort> {
    let place = &*writer;
    let measured = points
        .measure(load, |plan, started, clock| {
            place.next_run(load, plan, started, clock)
        })
        .map_err(SearchAbort::Refused)?;
    let dir = measured.dir.map_err(SearchAbort::Lost)?;
    match measured.run.validity.verdict {
        Verdict::Interrupted => Err(SearchAbort::Interrupted),
        Verdict::Failed => Err(SearchAbort::Failed(why(&measured.run, load))),
        Verdict::Valid | Verdict::Invalid => {
            let added = writer.add(&measured.run, &dir, load, purpose);
            added.map_err(SearchAbort::Lost)?;
            let line = |s: &mut LoadSearch| s.load_line = s.search.load_line(&s.trials());
            writer.change(line).map_err(SearchAbort::Lost)
        }
    }
}

/// Why a run failed.
fn why(run: &Run, load: u64) -> Reason {
    let reasons = run.validity.reasons.iter().map(|r| r.text.as_str());
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    Reason {
        code: "failed".into(),
        text: format!("load {load}: {reasons}"),
    }
}

/// Removes the files, or leaves them if they are to stay: because the user said so, or because a
/// search that did not come to its end goes on with them. Notes of what went wrong.
fn clean(points: &LoadRunner<'_>, search: &LoadSearch) -> Vec<Note> {
    let ground = points.config;
    let stays = search.can_resume() && !ground.plan.work_dir.temporary;
    let stays = ground.plan.options.keep || stays;
    if points.used && !stays {
        ground.report_removal(&points.output);
    }
    let wrong = ground.end(stays, points.used, points.stop);
    let notes = wrong.into_iter().map(|text| Note {
        text,
        location: None,
    });
    notes.collect()
}

fn exit_of(search: &LoadSearch) -> Exit {
    match (&search.failure, search.load_line.termination) {
        (Some(_), _) => Exit::Failed,
        (None, SearchEnd::Interrupted | SearchEnd::Unfinished) => Exit::Interrupted,
        (None, _) if search.load_line.sustained.is_some() => Exit::Valid,
        (None, _) => Exit::Invalid,
    }
}

fn report(format: Format, search: &LoadSearch, dir: &Path) -> Result<(), CommandError> {
    let text = match format {
        Format::Json => search.to_json(),
        Format::Text => {
            let layout = terminal::Layout {
                width: Stream::Out.width(),
                color: Stream::Out.color(),
            };
            let report = plimsoll_report::find::render(search, Some(dir), layout);
            format!("\n{report}")
        }
    };
    super::print(&text).map(|_| ())
}
