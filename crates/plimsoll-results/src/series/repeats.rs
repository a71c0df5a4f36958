//! Repeated runs: rule of a series of runs of one workload with consecutive seeds.

use crate::series::next::{check_repeats, missing_runs};
use crate::series::{NextRun, Series, Strategy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rule of repeated runs: one workload with consecutive seeds, so that random choices differ between the runs, as
/// between runs on different days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repeats {
    /// Number of runs that the user requested.
    pub requested_runs: u32,
}

impl Strategy for Repeats {
    fn independent(&self, series: &Series) -> Vec<NextRun> {
        missing_runs(series, self.requested_runs, |_, number| {
            format!("run-{number:02}")
        })
    }

    fn check(&self, _: &Series) -> Result<(), String> {
        check_repeats(self.requested_runs)
    }
}
