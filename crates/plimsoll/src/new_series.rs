//! Creation of `series.json` for a new series: configurations, target and start time, before the first run.

use crate::cli::{CommonRunArgs, EventArgs};
use crate::exit::CommandError;
use crate::{io_choice, workload};
use plimsoll_engine::{ClockKind, Preflight, Settings};
use plimsoll_plan::Plan;
use plimsoll_results::{
    Configuration, Document, Environment, Program, Series, SeriesKind, SeriesState, Target,
};
use plimsoll_series::events::{EventSpec, check_phases};
use plimsoll_series::{environment, refuse_results_among_files};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Target of a series, as `series.json` records the target: a simulated system by absolute path, with a fingerprint of
/// the system file.
///
/// # Errors
/// If the system is unknown, or its path cannot be part of a URL.
pub fn target(url: &str) -> Result<Target, CommandError> {
    let (url, system) = workload::absolute_target(url)?;
    Ok(Target {
        url,
        description: String::new(),
        system,
    })
}

/// A new series without runs, whose start time is the current time.
pub fn series(
    kind: SeriesKind,
    name: &str,
    configurations: Vec<Configuration>,
    how: &CommonRunArgs,
    events: &EventArgs,
    ranks: u32,
) -> Series {
    let interval = how.interval(configurations.iter().map(|c| &c.plan));
    let events = events.event.iter().map(ToString::to_string).collect();
    with_interval(kind, name, configurations, interval, events, ranks)
}

/// A new series without runs, whose intervals have the length `interval`.
pub fn with_interval(
    kind: SeriesKind,
    name: &str,
    configurations: Vec<Configuration>,
    interval: Duration,
    events: Vec<String>,
    ranks: u32,
) -> Series {
    let started = jiff::Timestamp::now();
    let environment = match &configurations[..] {
        [only] => environment(&only.plan, &settings_with(only, interval)),
        _ => Environment::look(None),
    };
    let in_real_time = |c: &Configuration| plimsoll_target::clock(&c.target.url) == ClockKind::Real;
    let clock = match configurations.iter().any(in_real_time) {
        true => ClockKind::Real,
        false => ClockKind::Virtual,
    };
    Series {
        schema_version: Series::SCHEMA,
        name: name.to_owned(),
        started_at: format!("{started:.3}"),
        state: SeriesState::Unfinished,
        stop_reason: None,
        kind,
        runs: vec![],
        configurations,
        percentiles_shown: None,
        program: Program::plimsoll(),
        clock,
        interval_s: interval.as_secs_f64(),
        ranks,
        events,
        notes: vec![],
        unremoved: vec![],
        environment,
    }
}

/// A configuration without a name, for runs of a Plan on the target of a URL.
///
/// # Errors
/// If the target's system is unknown, the Plan lacks the phase of an event, or the process has no current directory.
pub fn configuration(
    mut plan: Plan,
    url: &str,
    events: &[EventSpec],
) -> Result<Configuration, CommandError> {
    workload::make_absolute(&mut plan, url)?;
    check_phases(events, &plan, url).map_err(CommandError::usage)?;
    Ok(Configuration {
        name: String::new(),
        filesystem: None,
        directory: String::new(),
        before: vec![],
        target: target(&io_choice::target_of(url, &plan))?,
        plan,
    })
}

/// A new series of one workload, whose only configuration has the Plan of the highest load.
///
/// # Errors
/// If the target's system is unknown, the Plan lacks the phase of an event, or the process has no current directory.
pub fn of_workload(
    kind: SeriesKind,
    plan: Plan,
    how: &CommonRunArgs,
    events: &EventArgs,
    ranks: u32,
) -> Result<Series, CommandError> {
    let name = plan.name.clone();
    let only = configuration(plan, &how.files.target, &events.event)?;
    Ok(series(kind, &name, vec![only], how, events, ranks))
}

/// Engine settings for the runs of a configuration.
pub fn settings(configuration: &Configuration, how: &CommonRunArgs) -> Settings {
    settings_with(configuration, how.interval([&configuration.plan]))
}

fn settings_with(configuration: &Configuration, interval: Duration) -> Settings {
    Settings {
        target: configuration.target.url.clone(),
        interval,
        holds: false,
    }
}

/// Checks the needs of a series' configurations, and adds the descriptions of their targets and their notes.
///
/// # Errors
/// If a run would be refused, or the results below `root` would be among the run's files.
pub fn check(series: &mut Series, root: &Path) -> Result<(), CommandError> {
    let interval = series.interval();
    for configuration in &mut series.configurations {
        refuse_results_among_files(root, &configuration.plan, &configuration.target.url)?;
        let settings = settings_with(configuration, interval);
        let look = plimsoll_engine::preflight(&configuration.plan, &settings);
        let look = look.map_err(CommandError::usage)?;
        if !look.refusals.is_empty() {
            return Err(CommandError::usage(look.refusals.join("\n")));
        }
        for note in &configuration.plan.notes {
            if !series.notes.contains(note) {
                series.notes.push(note.clone());
            }
        }
        configuration.target.description = look.target;
    }
    Ok(())
}

/// The needs of a configuration, and the available resources.
///
/// # Errors
/// If the target cannot be inspected.
pub fn preflight(
    configuration: &Configuration,
    how: &CommonRunArgs,
) -> Result<Preflight, CommandError> {
    plimsoll_engine::preflight(&configuration.plan, &settings(configuration, how))
        .map_err(CommandError::usage)
}

/// Start time of a series that this process has created, from the field `started_at`.
pub fn started(series: &Series) -> SystemTime {
    let stamp: Result<jiff::Timestamp, _> = series.started_at.parse();
    stamp.expect("this program writes the time").into()
}
