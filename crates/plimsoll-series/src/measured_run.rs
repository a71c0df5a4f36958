//! Conversion of an engine outcome to results.

use crate::config::RunConfig;
use plimsoll_measure::{Outcome, WindowTotals};
use plimsoll_results::{Environment, MeasuredRun, Percentiles, Target};
use std::time::SystemTime;

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

impl RunMetadata {
    /// Combines the metadata with the outcome. Commands and events are left empty; the results writer adds them.
    pub fn with(self, outcome: Outcome) -> MeasuredRun {
        let config = self.config;
        MeasuredRun {
            target: Target {
                description: outcome.target.clone(),
                ..config.target
            },
            plan: config.plan,
            clock: config.clock,
            started: self.started,
            environment: self.environment,
            ranks: self.ranks,
            percentiles: self.percentiles,
            outcome,
            commands: vec![],
            events: vec![],
            summaries: vec![],
        }
    }
}

/// Restricts a run of all ranks to the figures of this rank's workers.
pub fn own(all: &MeasuredRun, own: Vec<WindowTotals>, lanes: usize) -> MeasuredRun {
    let mut mine = all.clone();
    // Mount counters and intervals are sums over all ranks, so a single rank has none.
    mine.environment.read_source = None;
    mine.summaries = vec![];
    let outcome = &mut mine.outcome;
    outcome.lanes = lanes;
    outcome.starts = None;
    for window in &mut outcome.windows {
        window.hosts = vec![];
    }
    for (window, own) in outcome.windows.iter_mut().zip(own) {
        window.totals = own;
    }
    for stage in &mut outcome.stages {
        stage.ranks.truncate(1);
    }
    mine
}
