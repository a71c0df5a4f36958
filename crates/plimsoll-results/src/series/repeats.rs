//! Repeated runs: rule of a series of runs of one workload with consecutive seeds.

use crate::series::next::{check_repeats, missing_runs};
use crate::series::{NextRun, Series, SettleRule, Strategy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rule of repeated runs: one workload with consecutive seeds, so that random choices differ between the runs, as
/// between runs on different days.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeats {
    /// Number of runs that the user requested.
    pub requested_runs: u32,
    /// Wait before each run for the machine to come to rest; null for runs without a wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<SettleRule>,
}

impl Strategy for Repeats {
    fn independent(&self, series: &Series) -> Vec<NextRun> {
        missing_runs(series, self.requested_runs, |_, number| {
            format!("run-{number:02}")
        })
    }

    fn settle(&self) -> Option<SettleRule> {
        self.settle
    }

    fn check(&self, _: &Series) -> Result<(), String> {
        check_repeats(self.requested_runs)?;
        self.settle.map_or(Ok(()), SettleRule::check)
    }
}
