//! Sweep: one run for each value of a parameter, or for each combination of the values of several parameters.

use crate::series::next::{directory_name, end_of_independent, missing_of};
use crate::series::values::VariedNumbers;
use crate::series::{Configuration, NextRun, Series, SeriesRun, Step, Strategy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of combinations of values in a sweep.
pub const MAX_CELLS: usize = 1000;

/// Maximum length of a directory's name without a number at the end.
const MAX_DIRECTORY_BYTES: usize = 120;

/// A workload at every combination of the values of its parameters. The series has one configuration for each
/// combination; the values of the last parameter change first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Parameters with their values, in the order of the command line.
    pub parameters: Vec<VariedParameter>,
    /// Numbers of the configurations in the order of their runs: configurations with the same data set follow each other,
    /// so that their runs can use the same files.
    pub order: Vec<u32>,
}

/// A parameter of a sweep, with its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VariedParameter {
    /// Name of the parameter: a parameter of the workload, `load`, `rate`, or an option of the target's URL.
    pub name: String,
    /// Values of the parameter as texts, in the order of the command line.
    pub values: Vec<String>,
}

impl VariedParameter {
    /// The values as numbers with one unit; `None` if a value is not a number, or if the units differ.
    #[must_use]
    pub fn numbers(&self) -> Option<VariedNumbers> {
        VariedNumbers::of(&self.values)
    }
}

impl Sweep {
    /// A sweep over parameters, whose `configurations` have the order of [`Sweep::cells`].
    #[must_use]
    pub fn new(parameters: Vec<VariedParameter>, configurations: &[Configuration]) -> Self {
        let mut order: Vec<u32> = (0..).take(configurations.len()).collect();
        let data = |number: &u32| {
            let own = &configurations[*number as usize].plan.filesets;
            configurations.iter().position(|c| c.plan.filesets == *own)
        };
        order.sort_by_cached_key(data);
        Self { parameters, order }
    }

    /// All combinations of the values of `parameters`, each with a value for each parameter; the values of the last
    /// parameter change first.
    #[must_use]
    pub fn cells(parameters: &[VariedParameter]) -> Vec<Vec<(String, String)>> {
        let mut cells = vec![vec![]];
        for parameter in parameters {
            let longer = |cell: &Vec<(String, String)>| {
                let values = parameter.values.iter();
                let cell = cell.clone();
                values
                    .map(move |value| {
                        let mut cell = cell.clone();
                        cell.push((parameter.name.clone(), value.clone()));
                        cell
                    })
                    .collect::<Vec<_>>()
            };
            cells = cells.iter().flat_map(longer).collect();
        }
        cells
    }

    /// Name of the configuration of a combination, such as `iosize=4k,nthreads=2`, and name of the configuration's
    /// results directory, which differs from the directories of the configurations `before`.
    #[must_use]
    pub fn names(cell: &[(String, String)], before: &[Configuration]) -> (String, String) {
        let pairs: Vec<String> = cell.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let name = pairs.join(",");
        let mut plain = directory_name(&name);
        plain.truncate(MAX_DIRECTORY_BYTES);
        let numbered = (before.len() + 1..).map(|number| format!("{plain}-{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        let is_free = |directory: &String| before.iter().all(|c| c.directory != *directory);
        let directory = candidates.find(is_free);
        let directory = directory.expect("there are more numbers than configurations");
        (name, directory)
    }

    /// Number of the configuration of a combination, from the indices of the values of all parameters.
    #[must_use]
    pub fn configuration(&self, indices: &[usize]) -> u32 {
        let parameters = self.parameters.iter().zip(indices);
        let number = parameters.fold(0, |number, (parameter, index)| {
            number * parameter.values.len() + index
        });
        number as u32
    }

    /// Number of combinations of values.
    fn count(&self) -> usize {
        let counts = self.parameters.iter().map(|p| p.values.len());
        counts.fold(1, usize::saturating_mul)
    }
}

impl Strategy for Sweep {
    fn next(&self, series: &Series) -> Step {
        match self.independent(series).into_iter().next() {
            Some(run) => Step::Run(run),
            None => end_of_independent(series),
        }
    }

    fn independent(&self, series: &Series) -> Vec<NextRun> {
        let run = |number: &u32| {
            let configuration = series.configuration(*number);
            NextRun {
                configuration: *number,
                load: None,
                value: None,
                purpose: None,
                seed: configuration.plan.seed,
                directory: configuration.directory.clone(),
            }
        };
        missing_of(self.order.iter().map(run), &series.runs)
    }

    /// A sweep shows at which values runs are valid, so that a single valid run is enough.
    fn is_valid(&self, runs: &[SeriesRun]) -> bool {
        runs.iter().any(SeriesRun::is_valid)
    }

    fn shares_files(&self, series: &Series) -> bool {
        series.has_one_place()
    }

    /// A failed run does not end a sweep, because runs at other values may succeed.
    fn ends_with_a_failed_run(&self) -> bool {
        false
    }

    fn check(&self, series: &Series) -> Result<(), String> {
        let (expected, actual) = (self.count(), series.configurations.len());
        if self.parameters.is_empty() || expected != actual {
            return Err(format!(
                "the parameters have {expected} combinations of values, and there are {actual} configurations"
            ));
        }
        let mut order = self.order.clone();
        order.sort_unstable();
        if !order.into_iter().eq(0..actual as u32) {
            return Err("the order of the runs does not name each configuration once".into());
        }
        Ok(())
    }
}
