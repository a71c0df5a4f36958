//! `ior`: IOR's command lines.

use super::md::{
    StageObserver, arguments, check_virtual_ranks, join_ranks, local_time, print_report,
};
use super::run::target_of;
use crate::cli::IorArgs;
use crate::communicator::stop_on_interrupt;
use crate::console_host::ConsoleHost;
use crate::exit::{CommandError, Exit};
use crate::io_choice;
use crate::output_options::OutputOptions;
use plimsoll_engine::{ClockKind, Settings};
use plimsoll_measure::OpTotals;
use plimsoll_plan::Plan;
use plimsoll_results::{RunDir, RunWriter};
use plimsoll_series::events::{EventSpec, check_phases};
use plimsoll_series::{
    RunConfig, RunContext, RunFacts, SeriesError, Written, refuse_results_among_files,
};
use plimsoll_workload::ior::{Options, Report};
use std::time::SystemTime;

/// Runs a test of IOR; the option `--dry-run` only prints the Plan.
pub fn run(args: &IorArgs) -> Result<Exit, CommandError> {
    if args.dry_run {
        let (plan, options, _) = checked(args, args.ranks.working()?)?;
        return super::plan::show(&plan, &settings_of(&options, &plan), args.format);
    }
    // Invalid options count as real time here: rank 0 reports them once the ranks are connected.
    let target = Options::new(&args.ior).ok().map(|options| options.target);
    let (communicator, ranks) = join_ranks(&args.ranks, target.as_deref())?;
    let mut outputs = None;
    let plan: Plan = communicator.run_on_root_and_broadcast(|| {
        let (plan, options, _) = checked(args, ranks)?;
        let (root, settings) = (&args.root.results, settings_of(&options, &plan));
        refuse_results_among_files(root, &plan, &settings.target)?;
        let started = SystemTime::now();
        let writer = RunWriter::create(root, &plan, started, settings.clock(), None);
        outputs = Some((writer.map_err(|e| SeriesError::results_path(&e))?, started));
        Ok::<_, CommandError>(plan)
    })?;
    let (options, events) = options(args)?;
    let settings = settings_of(&options, &plan);
    let config = RunConfig {
        plan,
        target: target_of(&settings.target),
        interval_s: settings.interval.as_secs_f64(),
        holds: false,
    };
    let output = OutputOptions {
        format: args.format,
        quiet: false,
        live: false,
        per_rank: args.ranks.per_rank,
    };
    let host = ConsoleHost::of_series(&output, stop_on_interrupt(&communicator)?, 1);
    let context = RunContext {
        per_rank: output.per_rank,
        events,
        ..RunContext::new(&communicator, &host)
    };
    let Some((writer, started)) = outputs else {
        context.run_as_member(&config)?;
        return Ok(Exit::Valid);
    };
    let report = Report::new(&options, &config.plan);
    let facts = RunFacts {
        number: Some(1),
        ..RunFacts::default()
    };
    let conductor = context.begin(&config, &facts, writer, started)?;
    let head = report.begin(&arguments(), env!("CARGO_PKG_VERSION"), &local_time());
    let lines = Box::new(move |stage, ranks: &[_], _: &[OpTotals]| report.stage(stage, ranks));
    let watch = StageObserver::new(conductor, head, lines, context.host.stop().clone());
    let end = |done: &[_]| report.end(done, &local_time());
    let (Written { run, dir, .. }, _) = watch.run(&context, &output, &config, &end)?;
    print_report(&output, &run, dir.as_ref().ok().map(RunDir::path))?;
    dir.map_err(CommandError::failed)?;
    Ok(run.validity.verdict.into())
}

/// Options of the test, with the events of a simulated system in the target's URL; and the remaining events.
fn options(args: &IorArgs) -> Result<(Options, Vec<EventSpec>), CommandError> {
    let mut options = Options::new(&args.ior).map_err(CommandError::usage)?;
    let events = args.events.add_to(&mut options.target)?;
    Ok((options, events))
}

/// Plan for `ranks` tasks, options and events, all checked.
fn checked(args: &IorArgs, ranks: u32) -> Result<(Plan, Options, Vec<EventSpec>), CommandError> {
    let (options, events) = options(args)?;
    args.ranks.check_target(&options.target)?;
    if plimsoll_target::clock(&options.target) == ClockKind::Virtual {
        check_virtual_ranks(&args.ranks, ranks)?;
    }
    let mut plan = plimsoll_workload::ior::lower(&options, ranks).map_err(CommandError::usage)?;
    io_choice::choose(&options.target, &mut plan);
    plan.add_procedures(&plimsoll_target::procedures(&options.target));
    let target = io_choice::target_of(&options.target, &plan);
    args.ranks.check_io(&target)?;
    check_phases(&events, &plan, &target).map_err(CommandError::usage)?;
    Ok((plan, options, events))
}

/// Engine settings for a Plan.
fn settings_of(options: &Options, plan: &Plan) -> Settings {
    Settings {
        target: io_choice::target_of(&options.target, plan),
        ..Settings::default()
    }
}
