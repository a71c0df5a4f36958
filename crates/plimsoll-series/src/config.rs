//! Data that every rank needs for a run: Plan, target and interval.

use plimsoll_engine::Settings;
use plimsoll_plan::Plan;
use plimsoll_results::{MeasuredRun, Target};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// Configuration of a run, equal at all ranks: Plan, target and settings of the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunConfig {
    /// Plan that the ranks execute together.
    pub plan: Plan,
    /// Target of the load; the description of the target is known when the run has ended.
    pub target: Target,
    /// Length of an interval of the time series in seconds.
    pub interval_s: f64,
    /// Whether the run leaves the work directory claimed for the next run of the series.
    pub holds: bool,
}

impl RunConfig {
    /// Input of [`Run::assemble`](plimsoll_results::Run::assemble) for a run of the configuration that began at
    /// `started`, without measurements.
    pub(crate) fn unmeasured(&self, started: SystemTime) -> MeasuredRun {
        MeasuredRun {
            clock: self.settings().clock(),
            ..MeasuredRun::new(self.plan.clone(), self.target.clone(), started)
        }
    }

    /// Settings of the engine for the run.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings {
            target: self.target.url.clone(),
            interval: Duration::try_from_secs_f64(self.interval_s)
                .unwrap_or(Duration::from_secs(1)),
            holds: self.holds,
        }
    }
}
