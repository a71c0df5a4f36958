//! Repeated runs.

use crate::series::next::{all_valid, check_repeats};
use crate::series::{NextRun, Series, SeriesRun, SeriesState, Step, Strategy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One workload, run several times. Each run has the seed after that of the one before, so that what is random differs
/// between the runs as it does between those of different days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repeats {
    /// Requested number of runs.
    pub requested_runs: u32,
}

impl Repeats {
    fn runs(self, series: &Series) -> impl Iterator<Item = NextRun> {
        let seed = series.first_plan().seed;
        (0..self.requested_runs).map(move |i| NextRun {
            configuration: 0,
            load: None,
            purpose: None,
            seed: seed.wrapping_add(u64::from(i)),
            directory: format!("run-{:02}", i + 1),
        })
    }
}

impl Strategy for Repeats {
    fn next(&self, series: &Series) -> Step {
        match self.independent(series).into_iter().next() {
            Some(run) => Step::Run(run),
            None => Step::End(SeriesState::Complete, None),
        }
    }

    fn independent(&self, series: &Series) -> Vec<NextRun> {
        let is_made = |run: &NextRun| series.runs.iter().any(|made| made.seed == run.seed);
        self.clone()
            .runs(series)
            .filter(|run| !is_made(run))
            .collect()
    }

    fn conclude(&mut self, _: &[SeriesRun]) {}

    fn is_valid(&self, runs: &[SeriesRun]) -> bool {
        all_valid(runs)
    }

    fn check(&self, _: &Series) -> Result<(), String> {
        check_repeats(self.requested_runs)
    }
}
