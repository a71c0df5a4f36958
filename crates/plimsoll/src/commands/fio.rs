//! `fio`: runs fio's jobs.

use super::populate::{self, populate};
use super::run::{self, target_of};
use crate::cli::{FioArgs, Format};
use crate::communicator::{join_launched, stop_on_interrupt};
use crate::console_host::ConsoleHost;
use crate::exit::{CommandError, Exit};
use crate::output_options::OutputOptions;
use crate::{console, io_choice, new_file, workload};
use plimsoll_engine::Settings;
use plimsoll_plan::{Note, Overrides, Plan, RunOptions};
use plimsoll_report::{fio_json, terminal};
use plimsoll_results::{Document, Run, RunDir, RunWriter};
use plimsoll_series::{
    Communicator, RunConfig, RunContext, RunFacts, Written, refuse_results_among_files,
};
use plimsoll_workload::fio::{
    self, CommandLine, Context, Group, Machine, OutputFormat, Surroundings,
};
use std::path::{Path, PathBuf};

/// Runs the groups of jobs, one after the other.
pub fn run(args: &FioArgs) -> Result<Exit, CommandError> {
    let line = CommandLine::parse(&args.words).map_err(CommandError::usage)?;
    if line.format == OutputFormat::Json && args.format == Format::Json {
        return Err(CommandError::usage(
            "--format json and --output-format=json exclude each other: the first prints Plimsoll's own document",
        ));
    }
    if let Some(path) = &line.output {
        new_file::refuse_existing(Path::new(path))?;
    }
    let groups = groups(args, &line)?;
    if args.dry_run || line.only_parses {
        for group in &groups {
            if group.only_populates() {
                populate::refuse_target_without_files(&settings_of(args, group))?;
            }
            super::plan::show(&group.plan, &settings_of(args, group), args.format)?;
        }
        return Ok(Exit::Valid);
    }
    let communicator = join_launched()?;
    if communicator.size() > 1 {
        return Err(CommandError::usage(
            "the jobs of fio run in one process: start `plimsoll fio` without a launcher",
        ));
    }
    run_groups(args, &line, &groups, &communicator)
}

/// Plans and targets of the groups of jobs.
fn groups(args: &FioArgs, line: &CommandLine) -> Result<Vec<Group>, CommandError> {
    let surroundings = Surroundings {
        variable: &|name| std::env::var(name).ok(),
        read: &|path| workload::read_text("job file", path),
        machine: machine(),
    };
    let input = fio::parse_command_line(line, &surroundings).map_err(workload::diagnosed)?;
    let overrides = Overrides {
        dir: args.dir.as_deref().map(workload::plain),
        options: RunOptions {
            on_error: args.on_error.unwrap_or_default().into(),
            allow_commands: args.allow_commands,
            keep: args.keep,
            require: args.require.iter().map(|r| (*r).into()).collect(),
            ..RunOptions::default()
        },
        ..Overrides::default()
    };
    let context = Context {
        temp_dir: workload::fresh_dir("fio"),
        random_seed: random_seed(),
    };
    let mut groups = fio::lower(&input, &overrides, &context).map_err(workload::diagnosed)?;
    for group in &mut groups {
        if let Some(target) = &args.target
            && *target != group.target
        {
            group.plan.notes.push(Note::from(format!(
                "--target {target} replaces the target of the jobs' engine, {}",
                group.target
            )));
            group.target.clone_from(target);
        }
        workload::adapt_to(&mut group.plan, args.dir.is_some(), &group.target);
    }
    Ok(groups)
}

/// Seed of jobs whose transfers differ from run to run, below 2⁵³ as JSON numbers require.
fn random_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = now.map_or(0, |time| time.as_nanos() as u64);
    plimsoll_plan::hash::mix64(nanos) >> 11
}

/// Numbers of this machine for the reserved words of job files.
fn machine() -> Machine {
    Machine {
        cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
        memory_mb: plimsoll_measure::system::machine_memory().map_or(0, |(total, _)| total >> 20),
        page_bytes: rustix::param::page_size() as u64,
    }
}

fn settings_of(args: &FioArgs, group: &Group) -> Settings {
    Settings {
        target: io_choice::target_of(&group.target, &group.plan),
        interval: args
            .interval
            .unwrap_or_else(|| group.plan.default_interval()),
        holds: false,
    }
}

fn run_groups(
    args: &FioArgs,
    line: &CommandLine,
    groups: &[Group],
    communicator: &Communicator,
) -> Result<Exit, CommandError> {
    let output = OutputOptions {
        // Only the document of all runs is on standard output.
        format: match (line.format, &line.output) {
            (OutputFormat::Normal, None) => args.format,
            _ => Format::Json,
        },
        quiet: args.quiet,
        live: false,
        per_rank: false,
    };
    let stop = stop_on_interrupt(communicator)?;
    let host = ConsoleHost::of_runs(&output, stop.clone());
    let context = RunContext::new(communicator, &host);
    let mut done = Vec::new();
    let mut exit = Exit::Valid;
    for group in groups {
        if group.only_populates() {
            match populate(&group.plan, &settings_of(args, group), &stop, args.quiet)? {
                None => return Ok(Exit::Interrupted),
                // Standard output of programs has only the document of the runs.
                Some(made) if output.format == Format::Json => console::err(&made),
                Some(made) => drop(super::print(&made)?),
            }
            continue;
        }
        let written = run_group(args, group, &context)?;
        let verdict = written.run.validity.verdict;
        if output.format == Format::Json {
            run::warn_of_unremoved(&written);
        }
        let Written { run, dir, .. } = written;
        if line.format == OutputFormat::Normal && line.output.is_none() {
            run::report(args.format, &run, dir.as_ref().ok().map(RunDir::path))?;
        }
        let dir = dir.map_err(CommandError::failed)?;
        done.push((run, dir));
        if exit == Exit::Valid {
            exit = verdict.into();
        }
        if !verdict.is_measured() {
            break;
        }
    }
    if line.format == OutputFormat::Json || line.output.is_some() {
        publish(line, args.format, &done)?;
    }
    Ok(exit)
}

fn run_group(
    args: &FioArgs,
    group: &Group,
    context: &RunContext<'_>,
) -> Result<Written, CommandError> {
    let settings = settings_of(args, group);
    let config = RunConfig {
        plan: group.plan.clone(),
        target: target_of(&settings.target),
        interval_s: settings.interval.as_secs_f64(),
        holds: false,
    };
    let root = &args.root.results;
    refuse_results_among_files(root, &config.plan, &config.target.url)?;
    let facts = RunFacts {
        number: Some(1),
        ..RunFacts::default()
    };
    let clock = config.settings().clock();
    let create = |plan: &Plan, started| RunWriter::create(root, plan, started, clock, None);
    Ok(context.run_as_root(&config, &facts, |started| create(&config.plan, started))?)
}

/// Prints the results of all groups, or writes them to the file of `--output`.
fn publish(line: &CommandLine, format: Format, done: &[(Run, RunDir)]) -> Result<(), CommandError> {
    let text = match (line.format, format) {
        (OutputFormat::Json, _) => fio_json::document(done).map_err(CommandError::failed)?,
        (OutputFormat::Normal, Format::Json) => done.iter().map(|(run, _)| run.to_json()).collect(),
        (OutputFormat::Normal, Format::Text) => {
            let layout = terminal::Layout::plain();
            let report = |(run, dir): &(Run, RunDir)| {
                let document = plimsoll_report::run::document(run).at(Some(dir.path()));
                terminal::render(&document, layout)
            };
            done.iter().map(report).collect::<Vec<String>>().join("\n")
        }
    };
    match line.output.as_ref().map(PathBuf::from) {
        Some(path) => new_file::create(&path, &text),
        None => super::print(&text).map(|_| ()),
    }
}
