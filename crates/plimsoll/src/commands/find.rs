//! `find`: searches for the load line of a workload, the highest load that meets its criteria.

mod setup;

use crate::cli::FindArgs;
use crate::exit::{CommandError, Exit};
use crate::load_runner::{self, LoadRunner};
use plimsoll_plan::Note;
use plimsoll_points::{Purpose, SearchEnd, Step};
use plimsoll_results::{Document, FindWriter, LoadSearch, Reason, ResultsError, Verdict};

/// Searches for the load line, writes every run and prints what was found.
pub fn run(args: &FindArgs) -> Result<Exit, CommandError> {
    load_runner::run_on_all_ranks(
        &args.manner,
        |communicator| setup::ready(args, communicator.working()),
        run_as_root,
    )
}

/// Reasons why a search ended before it was complete.
enum SearchAbort {
    /// A run was refused.
    Refused(CommandError),
    /// A run failed.
    Failed(Reason),
    /// The user ended it.
    Interrupted,
    /// The results could not be written.
    Lost(ResultsError),
}

impl From<ResultsError> for SearchAbort {
    fn from(e: ResultsError) -> Self {
        Self::Lost(e)
    }
}

fn run_as_root(runner: &mut LoadRunner<'_>, mut writer: FindWriter) -> Result<Exit, CommandError> {
    runner.runs = writer.document().runs.len() as u64;
    if let Err(e) = runner.prepare(&mut writer) {
        return Err(lost(runner, &writer, e, None));
    }
    let search = writer.document();
    let headline = setup::headline(search, runner.config, runner.communicator.working());
    runner.output.print_message(&headline);
    for (number, run) in (1..).zip(&search.runs) {
        let line = plimsoll_report::find::line(&search.metric, number, run);
        let line = format!("{line} (made before)");
        runner.output.print_message(&line);
    }
    let searched = measure_loads(runner, &mut writer);
    let is_interrupted = matches!(searched, Err(SearchAbort::Interrupted));
    let failure = match searched {
        Ok(()) | Err(SearchAbort::Interrupted) => None,
        Err(SearchAbort::Failed(reason)) => Some(reason),
        Err(SearchAbort::Refused(error))
            if writer.is_new() && writer.document().runs.is_empty() =>
        {
            // The refusal says more than an error of the removal.
            let _ = writer.withdraw();
            return Err(runner.config.clean_up_after_refusal(error, runner.stop));
        }
        Err(SearchAbort::Refused(error)) => Some(error.reason()),
        Err(SearchAbort::Lost(e)) => return Err(lost(runner, &writer, e, None)),
    };
    let change = |s: &mut LoadSearch| {
        let mut line = s.selection.search.load_line(&s.trials());
        if is_interrupted && line.termination == SearchEnd::Unfinished {
            line.termination = SearchEnd::Interrupted;
        }
        (s.selection.load_line, s.selection.failure) = (line, failure.clone());
    };
    if let Err(e) = writer.change(change) {
        return Err(lost(runner, &writer, e, failure.as_ref()));
    }
    let failed = runner.clean(writer.document().can_resume(), runner.used);
    let is_clean = failed.is_empty();
    if !is_clean {
        let notes = failed.iter().cloned().map(Note::from);
        let noted = writer.change(|s| s.notes.extend(notes));
        noted.map_err(|e| CommandError::failed(e).with_warnings(failed))?;
    }
    let (search, dir) = (writer.document(), Some(writer.dir().path()));
    super::print_report(
        runner.output.format,
        || search.to_json(),
        |layout| plimsoll_report::find::render(search, dir, layout),
    )?;
    Ok(runner.output.exit(exit_of(search), is_clean))
}

/// The error of a search that could not be written, after it had ended for a reason if there is one.
fn lost(
    runner: &LoadRunner<'_>,
    writer: &FindWriter,
    e: ResultsError,
    reason: Option<&Reason>,
) -> CommandError {
    runner.end_without_results(e, reason, ("find", writer.dir().path()))
}

/// Measures one load after the other, as the search selects them.
fn measure_loads(runner: &mut LoadRunner<'_>, writer: &mut FindWriter) -> Result<(), SearchAbort> {
    let rules = writer.document().selection.search;
    while let Step::Measure(load, purpose) = rules.next(&writer.document().trials()) {
        if runner.stop.is_requested() {
            return Err(SearchAbort::Interrupted);
        }
        measure(runner, writer, load, purpose)?;
        let search = writer.document();
        if let Some(run) = search.runs.last() {
            let line = plimsoll_report::find::line(&search.metric, search.runs.len(), run);
            runner.output.print_message(&line);
        }
    }
    Ok(())
}

/// Makes one run and adds it to the results, unless it was interrupted or failed.
fn measure(
    runner: &mut LoadRunner<'_>,
    writer: &mut FindWriter,
    load: u64,
    purpose: Purpose,
) -> Result<(), SearchAbort> {
    let results = &*writer;
    let measured = runner
        .measure(load, |plan, started, clock| {
            results.next_run(load, plan, started, clock)
        })
        .map_err(SearchAbort::Refused)?;
    let dir = measured.dir?;
    let validity = &measured.run.validity;
    match validity.verdict {
        Verdict::Interrupted => Err(SearchAbort::Interrupted),
        Verdict::Failed => {
            let reason = load_runner::failure_at(load, &validity.reasons);
            Err(SearchAbort::Failed(reason))
        }
        Verdict::Valid | Verdict::Invalid => Ok(writer.add(&measured.run, &dir, load, purpose)?),
    }
}

fn exit_of(search: &LoadSearch) -> Exit {
    let line = &search.selection.load_line;
    match (&search.selection.failure, line.termination) {
        (Some(_), _) => Exit::Failed,
        (None, SearchEnd::Interrupted | SearchEnd::Unfinished) => Exit::Interrupted,
        (None, _) if line.sustained.is_some() => Exit::Valid,
        (None, _) => Exit::Invalid,
    }
}
