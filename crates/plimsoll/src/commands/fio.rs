//! `fio`: runs fio's jobs.

use super::populate::{self, populate};
use super::run::{self, target_of};
use crate::cli::{FioArgs, Format};
use crate::communicator::{join_launched, stop_on_interrupt};
use crate::console_host::ConsoleHost;
use crate::exit::{CommandError, Exit};
use crate::output_options::OutputOptions;
use crate::workload::{self, WorkloadSource};
use crate::{console, io_choice, new_file};
use plimsoll_engine::Settings;
use plimsoll_plan::{Note, Overrides, Plan, RunOptions, SourceKind};
use plimsoll_report::{fio_json, terminal};
use plimsoll_results::{Document, Run, RunDir, RunWriter};
use plimsoll_series::{
    Communicator, RunConfig, RunContext, RunFacts, Written, refuse_results_among_files,
};
use plimsoll_workload::fio::{self, CommandLine, Context, DepthSearch, Group, Input, OutputFormat};
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
    let input = fio::parse_command_line(&line, &workload::fio::surroundings())
        .map_err(workload::diagnosed)?;
    let groups = groups(args, &input)?;
    if let Some(search) = groups.iter().find_map(|group| group.search) {
        return find_depth(args, &line, &input, &groups, search);
    }
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

/// Searches for the highest depth at which the jobs keep their `latency_target`, as `plimsoll find --vary iodepth`
/// does.
fn find_depth(
    args: &FioArgs,
    line: &CommandLine,
    input: &Input,
    groups: &[Group],
    search: DepthSearch,
) -> Result<Exit, CommandError> {
    let refused = |why: &str| {
        CommandError::usage(format!(
            "`latency_target` searches for the highest `iodepth`: {why}"
        ))
    };
    let [group] = groups else {
        return Err(refused(
            "expected one group of jobs, without `stonewall`; `--section` selects jobs",
        ));
    };
    if line.format == OutputFormat::Json || line.output.is_some() {
        return Err(refused(
            "--output and --output-format=json have no form for a search; `--format json` prints series.json",
        ));
    }
    if plimsoll_target::device_of(&group.target).is_some() {
        return Err(refused("a search on a raw device is not supported"));
    }
    let name = format!("{}.fio", group.plan.name);
    let mut find = args.find_depth(&name, search.most, search.time);
    find.how.dry_run |= line.only_parses;
    let files = &mut find.how.files;
    if args.target.is_none() && group.target != files.target {
        files.target.clone_from(&group.target);
        files.set.push(("ioengine".into(), "libaio".into()));
    }
    let found = WorkloadSource {
        name,
        path: PathBuf::new(),
        text: input.job_file().map_err(|why| refused(&why))?,
        kind: SourceKind::File,
        current_dir: None,
    };
    super::find::search(&find, &found)
}

/// Plans and targets of the groups of jobs.
fn groups(args: &FioArgs, input: &Input) -> Result<Vec<Group>, CommandError> {
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
        random_seed: workload::fio::random_seed(),
        raw_device: args.raw_device.clone(),
        look_at_device: workload::fio::look_at_device,
    };
    let mut groups = fio::lower(input, &overrides, &context).map_err(workload::diagnosed)?;
    check_device_options(args, &groups)?;
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

/// Refuses options of the command line without effect on the devices of jobs.
fn check_device_options(args: &FioArgs, groups: &[Group]) -> Result<(), CommandError> {
    let is_on_device = |group: &Group| plimsoll_target::device_of(&group.target).is_some();
    let on_devices = groups.iter().filter(|group| is_on_device(group)).count();
    let only_devices = on_devices == groups.len();
    let why = match &args.raw_device {
        Some(_) if on_devices == 0 => {
            "--raw-device has no effect: no job has a device as `filename`, such as filename=/dev/sdb"
        }
        Some(serial) if serial.is_empty() || serial.contains('&') => {
            "--raw-device: a serial has at least one character, and none of them is `&`"
        }
        Some(_) if args.target.is_some() => {
            "--target and --raw-device exclude each other: the device is the target"
        }
        Some(_) if only_devices && args.dir.is_some() => {
            "--dir has no effect: a device is in no directory of the run"
        }
        Some(_) if only_devices && args.keep => {
            "--keep has no effect: a run on a device has no files"
        }
        _ => return Ok(()),
    };
    Err(CommandError::usage(why))
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
                // Output for programs has only the document of the runs on standard output.
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
