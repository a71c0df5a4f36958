//! `run`: runs a workload.

use super::series::{self, ReadySeries};
use super::sut;
use crate::cli::{CommonRunArgs, Format, RunArgs};
use crate::communicator::{join, stop_on_interrupt};
use crate::console;
use crate::console_host::ConsoleHost;
use crate::exit::{CommandError, Exit};
use crate::new_series;
use crate::output_options::OutputOptions;
use crate::workload;
use plimsoll_plan::Plan;
use plimsoll_report::{filebench, terminal};
use plimsoll_results::{Document, Repeats, Run, RunDir, RunWriter, SeriesKind, SettleRule, Target};
use plimsoll_series::events::check_phases;
use plimsoll_series::{
    RunConfig, RunContext, RunFacts, Written, fingerprint, refuse_results_among_files,
};
use std::path::Path;

/// Runs the workload of `run` once, or `--repeat` times as a series, writes the results and prints the report.
pub fn run(args: &RunArgs) -> Result<Exit, CommandError> {
    args.manner
        .ranks
        .check_target(&args.workload.how.files.target)?;
    if args.workload.how.dry_run {
        sut::text()?;
        let plan = plan(args)?;
        let settings = workload::settings(&args.workload.how, &plan);
        refuse_results_among_files(&args.root.results, &plan, &settings.target)?;
        settle(args)?;
        if let (Some(times), Format::Text) = (args.repeat, args.manner.format) {
            super::print(&format!("{times} runs, each with the next seed\n\n"))?;
        }
        return super::plan::show(&plan, &settings, args.manner.format);
    }
    match args.repeat {
        None => run_once(args),
        Some(times) => repeat(args, times),
    }
}

/// Plan of the workload given to `run`, checked with the hosts and the events. Only rank 0 makes the Plan: the other
/// ranks receive the Plan from rank 0.
fn plan(args: &RunArgs) -> Result<Plan, CommandError> {
    let plan = workload::plan(&args.workload)?;
    let target = workload::settings(&args.workload.how, &plan).target;
    args.manner.ranks.check_io(&target)?;
    check_phases(&args.workload.events.event, &plan, &target).map_err(CommandError::usage)?;
    Ok(plan)
}

/// Makes a series of `times` runs of one workload; each run has the seed of the previous run plus 1.
fn repeat(args: &RunArgs, times: u32) -> Result<Exit, CommandError> {
    series::run(&args.manner, 1, |communicator| {
        let plan = plan(args)?;
        let (how, events) = (&args.workload.how, &args.workload.events);
        let kind = SeriesKind::Repeats(Repeats {
            requested_runs: times,
            settle: settle(args)?,
        });
        let ranks = communicator.working();
        let mut series = new_series::of_workload(kind, plan, how, events, ranks)?;
        new_series::check(&mut series, &args.root.results)?;
        ReadySeries::new(series, &args.root.results)
    })
}

/// Rule of the wait before each repeated run; `None` without `--settle`.
fn settle(args: &RunArgs) -> Result<Option<SettleRule>, CommandError> {
    let clock = args.workload.how.clock();
    args.settle.map(|settle| settle.rule(clock)).transpose()
}

fn run_once(args: &RunArgs) -> Result<Exit, CommandError> {
    let communicator = join(&args.manner.ranks)?;
    let mut description = None;
    let plan: Plan = communicator.run_on_root_and_broadcast(|| {
        description = sut::text()?;
        plan(args)
    })?;
    let how = &args.workload.how;
    let config = config(plan, how)?;
    let output = OutputOptions::from(&args.manner);
    let host = ConsoleHost::of_runs(&output, stop_on_interrupt(&communicator)?);
    let context = RunContext {
        per_rank: output.per_rank,
        events: args.workload.events.event.clone(),
        ..RunContext::new(&communicator, &host)
    };
    if !communicator.is_root() {
        context.run_as_member(&config)?;
        return Ok(Exit::Valid);
    }
    let root = &args.root.results;
    refuse_results_among_files(root, &config.plan, &config.target.url)?;
    let facts = RunFacts {
        number: Some(1),
        ..RunFacts::default()
    };
    let written = context.run_as_root(&config, &facts, |started| {
        let writer =
            RunWriter::create(root, &config.plan, started, config.settings().clock(), None)?;
        description
            .iter()
            .try_for_each(|text| writer.write_sut(text))?;
        Ok(writer)
    })?;
    if output.format == Format::Json {
        warn_of_unremoved(&written);
    }
    let Written { run, dir, .. } = written;
    report(output.format, &run, dir.as_ref().ok().map(RunDir::path))?;
    if args.filebench {
        let windows = run.earlier_windows.iter().map(|window| &window.summary);
        for summary in windows.chain([&run.summary]) {
            super::print(&format!("{}\n", filebench::io_summary(summary)))?;
        }
    }
    dir.map_err(CommandError::failed)?;
    Ok(run.validity.verdict.into())
}

/// Configuration of a single run: Plan, target, clock, lanes and interval of the time series.
fn config(plan: Plan, how: &CommonRunArgs) -> Result<RunConfig, CommandError> {
    let settings = workload::settings(how, &plan);
    Ok(RunConfig {
        plan,
        target: target_of(&settings.target),
        interval_s: settings.interval.as_secs_f64(),
        holds: false,
    })
}

/// Target of a single run, with the URL as given to `--target`, and the fingerprint of a simulated system. An unknown
/// simulated system is refused later, when the run connects to the target.
pub(super) fn target_of(url: &str) -> Target {
    Target {
        url: url.to_owned(),
        description: String::new(),
        system: fingerprint(url).unwrap_or_default(),
    }
}

/// Prints warnings about files that could not be removed, for output without a report.
pub(super) fn warn_of_unremoved(written: &Written) {
    for text in &written.unremoved {
        console::err(&format!("warning: {text}\n"));
    }
}

/// Prints the report of a run as text, or its `run.json`.
pub(super) fn report(format: Format, run: &Run, dir: Option<&Path>) -> Result<(), CommandError> {
    super::print_report(
        format,
        || run.to_json(),
        |layout| terminal::render(&plimsoll_report::run::document(run).at(dir), layout),
    )
}
