//! `populate`: creates the files of a workload, for a later run in the same directory.

use super::{plan, print};
use crate::cli::{Format, PopulateArgs};
use crate::communicator::{join_launched, stop_on_interrupt};
use crate::exit::{CommandError, Exit};
use crate::{console, io_choice, workload};
use plimsoll_engine::{Event, Observer, Outcome, Settings, Stop};
use plimsoll_plan::{Bytes, Phase, Plan, PopulatedFileset, counted};
use plimsoll_series::outcome_or_refusal;

/// Creates the files of a workload's filesets, which stay for a later run in the same directory.
pub fn run(args: &PopulateArgs) -> Result<Exit, CommandError> {
    let mut plan = workload::plan_of_files(args)?;
    keep_population(&mut plan)?;
    let settings = Settings {
        target: io_choice::target_of(&args.files.target, &plan),
        ..Settings::default()
    };
    refuse_target_without_files(&settings)?;
    if args.dry_run {
        return plan::show(&plan, &settings, Format::Text);
    }
    let stop = stop_on_interrupt(&join_launched()?)?;
    match populate(&plan, &settings, &stop, args.quiet)? {
        None => Ok(Exit::Interrupted),
        Some(made) => print(&made),
    }
}

/// Creates the files of a Plan whose script only populates; returns a text with a line for each fileset, or `None`
/// after a signal, which stops the creation: the marker lists the files created so far.
///
/// # Errors
/// If the target keeps no files, or a file cannot be created.
pub(super) fn populate(
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
    is_quiet: bool,
) -> Result<Option<String>, CommandError> {
    refuse_target_without_files(settings)?;
    let mut observer = PopulateObserver { is_quiet };
    let ran = plimsoll_engine::run(plan, settings, stop, &mut observer);
    // The notes of the outcome refer to the load of a run, which does not happen.
    let Outcome {
        failure,
        interrupted,
        populated,
        ..
    } = outcome_or_refusal(ran)?;
    match failure {
        _ if interrupted => Ok(None),
        Some(failure) => Err(CommandError::failed(failure.error)),
        None => Ok(Some(populated.iter().map(line).collect())),
    }
}

/// Refuses a target on which no file stays.
pub(super) fn refuse_target_without_files(settings: &Settings) -> Result<(), CommandError> {
    match plimsoll_target::keeps_files(&settings.target) {
        true => Ok(()),
        false => Err(CommandError::usage(format!(
            "--target {}: it keeps no files",
            settings.target
        ))),
    }
}

/// Removes every phase but the creation of filesets from the script of a Plan, and marks the files as kept after the
/// run.
///
/// # Errors
/// If the Plan has nothing to create: a pattern, or a script without filesets.
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

/// Report line on a fileset: numbers of files and directories, bytes, and whether the files were created or found.
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

/// Observer of `populate` that prints a line to standard error when the creation of a fileset begins, unless `--quiet`
/// is given.
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
