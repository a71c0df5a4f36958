//! Profile: the configurations of a Filebench profile, as a series.

use crate::series::next::{check_repeats, end_of_independent, missing_runs};
use crate::series::{NextRun, Series, SeriesOf, Step, Strategy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Filebench profile as a series: each of its configurations on each file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Path of the profile's file, as given on the command line.
    pub file: String,
    /// Text of the profile's file when the series began.
    pub text: String,
    /// Description that the profile states; empty if the profile has no description.
    pub description: String,
    /// Number of runs of each configuration, with consecutive seeds.
    pub repeat: u32,
    /// Configurations of the profile that cannot be run; empty if all configurations are run.
    pub not_run: Vec<SkippedConfiguration>,
    /// Whether the report has a row for each operation of a configuration with few operations, as the report of a check
    /// has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_operation: bool,
}

/// A configuration of a profile that cannot be run, because its workload or its function is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedConfiguration {
    /// Name of the configuration, with the values that differ between the configurations of the profile.
    pub name: String,
    /// Reason why the configuration cannot be run, in one sentence for people.
    pub reason: String,
}

impl Strategy for Profile {
    fn next(&self, series: &Series) -> Step {
        if let Some(run) = self.independent(series).into_iter().next() {
            return Step::Run(run);
        }
        end_of_independent(series)
    }

    fn independent(&self, series: &Series) -> Vec<NextRun> {
        missing_runs(series, self.repeat, |configuration, number| {
            match self.repeat {
                1 => configuration.directory.clone(),
                _ => format!("{}/run-{number:02}", configuration.directory),
            }
        })
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
    /// Number of runs of all configurations together, made or not.
    #[must_use]
    pub fn requested_runs(&self) -> u64 {
        self.configurations.len() as u64 * u64::from(self.figures.repeat)
    }
}

impl Series {
    /// Names of the profile's file systems, in the order of the first configuration on each file system.
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
