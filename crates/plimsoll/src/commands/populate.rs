//! `populate`: creates the files of a workload, which a run in the same directory uses.

use super::print;
use crate::cli::PopulateArgs;
use crate::communicator::{join_launched, stop_on_interrupt};
use crate::exit::{CommandError, Exit};
use crate::{console, workload};
use plimsoll_engine::{Event, Observer, Outcome};
use plimsoll_plan::{Bytes, Phase, Plan, PopulatedFileset, counted};
use plimsoll_series::outcome_or_refusal;

/// Creates the files and keeps them.
pub fn run(args: &PopulateArgs) -> Result<Exit, CommandError> {
    refuse_options_of_runs(args)?;
    let mut plan = workload::plan(&args.workload)?;
    keep_population(&mut plan)?;
    let settings = workload::settings(&args.workload.how, &plan);
    if !plimsoll_target::keeps_files(&settings.target) {
        return Err(CommandError::usage(format!(
            "--target {}: it keeps no files",
            settings.target
        )));
    }
    // A signal stops it; what was created is listed in the marker.
    let stop = stop_on_interrupt(&join_launched()?)?;
    let mut observer = PopulateObserver {
        is_quiet: args.quiet,
    };
    let ran = plimsoll_engine::run(&plan, &settings, &stop, &mut observer);
    // Its notes are on the load that a run would be.
    let Outcome {
        failure,
        interrupted,
        populated,
        ..
    } = outcome_or_refusal(ran)?;
    match failure {
        _ if interrupted => Ok(Exit::Interrupted),
        Some(failure) => Err(CommandError::failed(failure.error)),
        None => print(&populated.iter().map(line).collect::<String>()),
    }
}

/// Refuses options by which files are not as those of a run without them, or that act on a run only.
fn refuse_options_of_runs(args: &PopulateArgs) -> Result<(), CommandError> {
    let how = &args.workload.how;
    let options = [
        (
            "--verify",
            how.verify,
            "every verified run creates its own files",
        ),
        (
            "--drop-caches",
            how.drop_caches.is_some(),
            "a run drops caches before it begins",
        ),
        (
            "--event",
            !args.workload.events.event.is_empty(),
            "events happen while a run runs",
        ),
    ];
    match options.iter().find(|(_, is_given, _)| *is_given) {
        Some((option, _, why)) => Err(CommandError::usage(format!(
            "{option} does not apply to populate: {why}"
        ))),
        None => Ok(()),
    }
}

/// Leaves nothing of a Plan but the creation of its files, which stay.
fn keep_population(plan: &mut Plan) -> Result<(), CommandError> {
    if plan.pattern().is_some() {
        return Err(CommandError::usage(
            "a pattern creates its objects itself, in a phase of its own",
        ));
    }
    plan.script
        .retain(|phase| matches!(phase, Phase::Populate { .. }));
    plan.options.keep = true;
    let has_files = |phase: &Phase| match phase {
        Phase::Populate { filesets } => !filesets.is_empty(),
        _ => false,
    };
    match plan.script.iter().any(has_files) {
        true => Ok(()),
        false => Err(CommandError::usage(format!(
            "{} has no files before it begins",
            plan.name
        ))),
    }
}

/// One line on a fileset.
fn line(fileset: &PopulatedFileset) -> String {
    let what = match fileset.reused {
        true => "found".to_owned(),
        false => format!("created in {:.1} s", fileset.seconds),
    };
    format!(
        "{}: {}, {} in {}, {what}\n",
        fileset.fileset,
        counted(fileset.files, "file", "files"),
        Bytes(fileset.bytes),
        counted(fileset.dirs, "directory", "directories"),
    )
}

/// Says which fileset is being created.
struct PopulateObserver {
    is_quiet: bool,
}

impl Observer for PopulateObserver {
    fn event(&mut self, event: Event<'_>) {
        if let Event::PopulateStart { fileset, files, .. } = event
            && !self.is_quiet
        {
            let files = counted(files, "file", "files");
            console::err(&format!("populating {fileset}: {files}\n"));
        }
    }
}
