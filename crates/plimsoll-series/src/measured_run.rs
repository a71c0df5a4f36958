//! From the outcome of the engine to the results.

use crate::config::RunConfig;
use plimsoll_engine::{Outcome, Window};
use plimsoll_measure::WindowTotals;
use plimsoll_plan::Note;
use plimsoll_results::{
    ClockKind, Environment, MeasuredRun, Percentiles, StartFigures, Target, VariableFigures,
};
use std::time::{Duration, SystemTime};

/// Facts about a run besides its outcome.
#[derive(Clone)]
pub struct RunMetadata {
    /// Plan, target and settings.
    pub config: RunConfig,
    /// Begin of the run.
    pub started: SystemTime,
    /// Machine, and file system of the work directory.
    pub environment: Environment,
    /// Number of ranks that run together.
    pub ranks: u32,
    /// Requested percentiles.
    pub percentiles: Option<Percentiles>,
}

/// Combines the outcome and the metadata of a run to the input of its figures.
pub fn measured(outcome: Outcome, metadata: RunMetadata) -> MeasuredRun {
    let config = metadata.config;
    let simulated = outcome.windows.iter();
    let simulated = simulated.filter_map(|w| Some((w.totals.number, w.simulated.clone()?)));
    let simulated = simulated.collect();
    let hosts = outcome.windows.iter().map(|w| w.hosts.clone()).collect();
    let clock_started = match config.clock {
        ClockKind::Real => outcome.windows.last().and_then(clock_start),
        ClockKind::Virtual => None,
    };
    let windows = outcome.windows.into_iter();
    let stages = outcome.stages.into_iter();
    let variables = outcome.variables.into_iter();
    MeasuredRun {
        plan: config.plan,
        target: Target {
            description: outcome.target,
            ..config.target
        },
        clock: config.clock,
        lanes: outcome.lanes as u64,
        started: metadata.started,
        clock_started,
        windows: windows.map(|w| (w.totals, w.system)).collect(),
        simulated,
        ranks: metadata.ranks,
        hosts,
        starts: outcome.starts.map(|starts| StartFigures {
            spread_ms: starts.spread.as_secs_f64() * 1e3,
            round_trip_ms: starts.round_trip.as_secs_f64() * 1e3,
        }),
        percentiles: metadata.percentiles,
        stages: stages.map(|s| (s.stage, s.ranks)).collect(),
        processes: outcome.processes,
        schedules: outcome.schedules,
        populated: outcome.populated,
        verification: outcome.verification,
        // Added when the results are written.
        commands: vec![],
        events: vec![],
        summaries: vec![],
        failure: outcome.failure,
        interrupted: outcome.interrupted,
        reasons: outcome.reasons,
        stuck: outcome.stuck,
        notes: outcome.notes.into_iter().map(Note::from).collect(),
        variables: variables
            .map(|v| VariableFigures {
                draws: v.stats.count,
                mean: v.stats.mean,
                sigma: v.stats.deviation(),
                name: v.name,
            })
            .collect(),
        environment: metadata.environment,
    }
}

/// Begin of the clock that a window was measured by.
fn clock_start(window: &Window) -> Option<SystemTime> {
    let since = Duration::from_nanos(window.totals.start);
    window.started.checked_sub(since)
}

/// Reduces the figures of all ranks to those of this rank's workers.
pub fn own(all: &MeasuredRun, own: Vec<WindowTotals>, lanes: usize) -> MeasuredRun {
    let mut mine = all.clone();
    mine.lanes = lanes as u64;
    // The counters are those of all ranks.
    mine.environment.read_source = None;
    mine.hosts = vec![];
    mine.starts = None;
    // The intervals are those of all ranks.
    mine.summaries = vec![];
    for ((totals, _), own) in mine.windows.iter_mut().zip(own) {
        *totals = own;
    }
    for (_, ranks) in &mut mine.stages {
        ranks.truncate(1);
    }
    mine
}
