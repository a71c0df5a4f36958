//! Configuration of a run.

use plimsoll_engine::{ClockKind, Settings};
use plimsoll_plan::Plan;
use plimsoll_results::Target;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Plan, target and settings of a run, which all ranks have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunConfig {
    /// Plan.
    pub plan: Plan,
    /// Target, whose description is known when the run has ended.
    pub target: Target,
    /// Clock.
    pub clock: ClockKind,
    /// Requested number of threads that drive the workers.
    pub lanes: Option<u64>,
    /// Length of an interval of the time series in seconds.
    pub interval_s: f64,
    /// Whether the work directory stays claimed for the next run.
    pub holds: bool,
}

impl RunConfig {
    /// Settings of the engine.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings {
            target: self.target.url.clone(),
            clock: self.clock,
            lanes: self.lanes.and_then(|n| usize::try_from(n).ok()),
            interval: Duration::try_from_secs_f64(self.interval_s)
                .unwrap_or(Duration::from_secs(1)),
            holds: self.holds,
        }
    }
}
