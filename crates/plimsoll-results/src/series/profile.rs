//! Profile: the configurations of a Filebench profile, as a series.

use crate::Verdict;
use crate::series::next::{all_valid, check_repeats};
use crate::series::{NextRun, Series, SeriesOf, SeriesRun, SeriesState, Step, Strategy};
use plimsoll_plan::{Reason, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The configurations of a Filebench profile, on each file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// File of the profile, as it was given.
    pub file: String,
    /// Text of the profile.
    pub text: String,
    /// Description in the profile; may be empty.
    pub description: String,
    /// Number of runs of each configuration, with seeds that follow each other.
    pub repeat: u32,
    /// Configurations that cannot be run.
    pub not_run: Vec<SkippedConfiguration>,
}

/// A configuration of a profile that cannot be run: its workload or its function is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedConfiguration {
    /// Name, with the values that differ between its runs.
    pub name: String,
    /// Reason, in one sentence.
    pub reason: String,
}

impl Profile {
    /// All runs of the profile, in order.
    fn runs(&self, series: &Series) -> impl Iterator<Item = NextRun> {
        let repeat = self.repeat;
        let configurations = (0..).zip(&series.configurations);
        configurations.flat_map(move |(number, configuration)| {
            (0..repeat).map(move |i| NextRun {
                configuration: number,
                load: None,
                purpose: None,
                seed: configuration.plan.seed.wrapping_add(u64::from(i)),
                directory: match repeat {
                    1 => configuration.directory.clone(),
                    _ => format!("{}/run-{:02}", configuration.directory, i + 1),
                },
            })
        })
    }
}

impl Strategy for Profile {
    fn next(&self, series: &Series) -> Step {
        if let Some(run) = self.independent(series).into_iter().next() {
            return Step::Run(run);
        }
        let failed = series
            .runs
            .iter()
            .filter(|run| run.verdict == Verdict::Failed)
            .count();
        match failed {
            0 => Step::End(SeriesState::Complete, None),
            n => {
                let text = format!("{} failed", counted(n as u64, "run", "runs"));
                Step::End(SeriesState::Failed, Some(Reason::new("failed", text)))
            }
        }
    }

    fn independent(&self, series: &Series) -> Vec<NextRun> {
        let made = series.runs.iter().map(|run| (run.configuration, run.seed));
        let made: HashSet<(u32, u64)> = made.collect();
        let missing = |run: &NextRun| !made.contains(&(run.configuration, run.seed));
        self.runs(series).filter(missing).collect()
    }

    fn conclude(&mut self, _: &[SeriesRun]) {}

    fn is_valid(&self, runs: &[SeriesRun]) -> bool {
        all_valid(runs)
    }

    /// A failed run does not end the series: other configurations may succeed.
    fn ends_with_a_failed_run(&self) -> bool {
        false
    }

    fn check(&self, _: &Series) -> Result<(), String> {
        check_repeats(self.repeat)
    }
}

impl SeriesOf<'_, Profile> {
    /// Number of runs of all configurations.
    #[must_use]
    pub fn requested_runs(&self) -> u64 {
        self.configurations.len() as u64 * u64::from(self.figures.repeat)
    }
}

impl Series {
    /// Names of the file systems, in the order of the first configurations on them.
    #[must_use]
    pub fn filesystems(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self
            .configurations
            .iter()
            .filter_map(|c| c.filesystem.as_deref())
        {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}
