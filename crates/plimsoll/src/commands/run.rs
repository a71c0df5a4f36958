//! `run`: runs a workload.

mod repeat;

use crate::cli::{Format, RunArgs};
use crate::communicator::Communicator;
use crate::exit::{CommandError, Exit};
use crate::hook::RunFacts;
use crate::load_runner::{files_of, ranks_of};
use crate::progress_display::RunTitle;
use crate::results_writer::Written;
use crate::run_context::{
    RunContext, refuse_results_among_files, results_path_error, stop_on_interrupt,
};
use crate::workload;
use plimsoll_diagnostics::foreign;
use plimsoll_engine::Settings;
use plimsoll_plan::{Plan, show_duration};
use plimsoll_report::terminal;
use plimsoll_results::{Document, RepeatsWriter, Run, RunDir, RunWriter};
use std::path::Path;

/// Runs the workload, writes the results and prints the report.
pub fn run(args: &RunArgs) -> Result<Exit, CommandError> {
    args.manner.ranks.check_target(&args.workload.how.target)?;
    let communicator = Communicator::join(&args.manner.ranks)?;
    let hooks = || args.manner.hooks.hooks(args.workload.how.allow_commands);
    let plan = communicator.run_on_root_and_broadcast(|| {
        hooks()?;
        let plan = workload::plan(&args.workload)?;
        let target = workload::settings(&args.workload.how, &plan).target;
        args.manner.ranks.check_io(&target)?;
        Ok(plan)
    })?;
    let context = RunContext {
        communicator: &communicator,
        settings: &workload::settings(&args.workload.how, &plan),
        stop: &stop_on_interrupt(&communicator)?,
        output: (&args.manner).into(),
        hooks: hooks()?,
        events: args.workload.events.event.clone(),
        results_error: results_path_error,
    };
    let root = &args.root.results;
    match args.repeat {
        None => run_once(&context, &plan, root, None, 1),
        Some(times) => repeat::run(&context, &plan, root, times),
    }
}

/// Runs the Plan once and prints its report. Its results go below `root`, or to repeated runs.
fn run_once(
    context: &RunContext<'_>,
    plan: &Plan,
    root: &Path,
    repeats: Option<&mut RepeatsWriter>,
    number: u64,
) -> Result<Exit, CommandError> {
    if !context.communicator.is_root() {
        return context.run_as_member(plan).map(|_| Exit::Valid);
    }
    refuse_results_among_files(root, plan, context.settings)?;
    let facts = RunFacts {
        number: Some(number),
        ..RunFacts::default()
    };
    let title = RunTitle {
        label: String::new(),
        opening_line: Some(headline(
            plan,
            context.settings,
            context.communicator.working(),
        )),
    };
    let written =
        context.run_as_root(plan, title, &facts, None, |started, clock| match &repeats {
            Some(repeats) => repeats.next(plan, started, clock),
            None => RunWriter::create(root, plan, started, clock),
        })?;
    let format = context.output.format;
    if format == Format::Json {
        written.warn_of_unremoved();
    }
    let is_clean = written.is_clean();
    let Written { run, dir, .. } = written;
    report(format, &run, dir.as_ref().ok().map(RunDir::path))?;
    let dir = dir.map_err(CommandError::failed)?;
    if let Some(repeats) = repeats {
        repeats.add(&dir).map_err(CommandError::failed)?;
    }
    Ok(context.output.exit(run.validity.verdict.into(), is_clean))
}

/// The first line: the workload, the place of its files and the target.
pub(super) fn headline(plan: &Plan, settings: &Settings, ranks: u32) -> String {
    format!(
        "{}: {}, target {}{}, intervals of {}",
        plan.name,
        foreign::escaped(&files_of(plan, &settings.target)),
        settings.target,
        ranks_of(ranks),
        show_duration(settings.interval)
    )
}

/// Prints the report of a run.
pub(super) fn report(format: Format, run: &Run, dir: Option<&Path>) -> Result<(), CommandError> {
    super::print_report(
        format,
        || run.to_json(),
        |layout| terminal::render(run, dir, layout),
    )
}
