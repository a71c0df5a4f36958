//! Results side by side: figures, their changes, and whether a change is more than chance.

mod condition;
mod curves;
mod metric;
mod profiles;
mod results;
mod runs;
mod show;
mod significance;

pub use condition::{Condition, MetCondition};
pub use curves::{CurveSet, of_curves};
pub use metric::Metric;
pub use profiles::{ProfileSet, of_profiles};
pub use results::{Results, side_by_side};
pub use runs::{OPERATION_PERCENTILES, RunSet, TOTAL_PERCENTILES, of_runs};
pub use show::{blocks, document, letter};
pub use significance::{ChangeVerdict, Tests};

use plimsoll_measure::compare::Difference;
use plimsoll_results::Verdict;
use serde::{Serialize, Serializer};

/// Name of the row of all operations together.
pub const ALL: &str = "all";

/// Results side by side; changes are from the first of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The compared results.
    pub sets: Vec<ComparedResult>,
    /// Warnings about differences that make the comparison difficult.
    pub warnings: Vec<String>,
    /// Of load curves what the loads of the rows are, such as `load in streams`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_axis: Option<String>,
    /// Whether the rows named [`ALL`] are of all operations together, and not of a configuration of that name.
    #[serde(skip)]
    has_total: bool,
    /// The tests of all figures together.
    tests: Tests,
    /// One entry per operation and figure.
    rows: Vec<Row>,
}

/// One of the compared results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedResult {
    /// Name of the results.
    pub name: String,
    /// Name of the workload, or of the metric of a published curve.
    pub workload: String,
    /// The number of its runs.
    pub runs: usize,
    /// The different verdicts of its runs, such as `valid`.
    pub verdict: String,
}

/// One figure of one operation in each of the results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the operation, [`ALL`] for all together.
    pub operation: String,
    /// Of load curves the load, or the achieved operations per second, that the row belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The figure.
    pub metric: Metric,
    /// One entry per result; null if it does not have the figure.
    pub values: Vec<Option<Value>>,
}

/// A figure of one result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Value {
    /// Mean over the runs that have the figure.
    pub mean: f64,
    /// The figure of each of these runs; at least one.
    pub runs: Vec<f64>,
    /// Number of the result's runs that do not have the figure.
    pub runs_without: usize,
    /// Worst verdict of the runs, or of the load point.
    pub verdict: Verdict,
    /// Whether the figure is the rate at which an open load offered operations, which its schedule sets.
    pub offered: bool,
    /// Whether every run has as many operations as a percentile needs; true of other figures.
    pub enough_samples: bool,
    /// Whether the figure is only a lower bound in some run, because of operations in flight at the end.
    pub at_least: bool,
    /// Change from the first result as a fraction of its figure: 0.1 is ten percent more. In JSON the
    /// change from zero to another figure is the text `Infinity`. Null for the first result itself, and
    /// if there is nothing to compare with.
    #[serde(serialize_with = "change_in_json")]
    pub change: Option<f64>,
    /// Statistics of the change; null without repeated runs.
    pub difference: Option<Difference>,
    /// Significance of the change.
    pub statement: ChangeVerdict,
}

/// JSON has no infinite numbers; `Infinity` is what languages that read JSON call them.
fn change_in_json<S: Serializer>(change: &Option<f64>, json: S) -> Result<S::Ok, S::Error> {
    match change {
        Some(change) if change.is_infinite() => json.serialize_str(match *change > 0.0 {
            true => "Infinity",
            false => "-Infinity",
        }),
        change => change.serialize(json),
    }
}

/// A figure of one result before it is compared.
#[derive(Debug, Clone)]
struct Measured {
    /// The figure of each run; none of a run that does not have it.
    runs: Vec<Option<f64>>,
    /// Worst verdict of the runs, or of the load point.
    verdict: Verdict,
    offered: bool,
    enough_samples: bool,
    at_least: bool,
}

impl Measured {
    fn new(runs: Vec<Option<f64>>, verdict: Verdict) -> Self {
        Self {
            runs,
            verdict,
            offered: false,
            enough_samples: true,
            at_least: false,
        }
    }

    /// The figure, not yet compared; none if no run has it.
    fn value(self) -> Option<Value> {
        let runs: Vec<f64> = self.runs.iter().copied().flatten().collect();
        (!runs.is_empty()).then(|| Value {
            mean: runs.iter().sum::<f64>() / runs.len() as f64,
            runs_without: self.runs.len() - runs.len(),
            runs,
            verdict: self.verdict,
            offered: self.offered,
            enough_samples: self.enough_samples,
            at_least: self.at_least,
            change: None,
            difference: None,
            statement: ChangeVerdict::NoBase,
        })
    }
}

/// The items without duplicates, in the order of their first occurrence.
#[must_use]
pub fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}

impl Row {
    /// A row of a figure of each result; `None` if no result has the figure.
    fn new(operation: &str, metric: Metric, figures: Vec<Measured>) -> Option<Self> {
        let values: Vec<_> = figures.into_iter().map(Measured::value).collect();
        values.iter().any(Option::is_some).then(|| Self {
            operation: operation.to_owned(),
            load: None,
            metric,
            values,
        })
    }

    /// Whether tables show the row: errors and bytes that are zero in all results are left out.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        let zero = self.values.iter().flatten().all(|v| v.mean == 0.0);
        !(zero && matches!(self.metric, Metric::Errors | Metric::MibPerS))
    }
}

impl Comparison {
    /// Compares the rows of figures.
    fn new(
        sets: Vec<ComparedResult>,
        warnings: Vec<String>,
        load_axis: Option<String>,
        mut rows: Vec<Row>,
    ) -> Self {
        Self {
            sets,
            warnings,
            load_axis,
            has_total: true,
            tests: significance::test(&mut rows),
            rows,
        }
    }

    /// The figures, one row per operation and figure.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The tests of all figures together.
    #[must_use]
    pub fn tests(&self) -> Tests {
        self.tests
    }

    /// Removes rows. The others are tested without them.
    pub fn retain_rows(&mut self, is_kept: impl Fn(&Row) -> bool) {
        self.rows.retain(is_kept);
        self.tests = significance::test(&mut self.rows);
    }
}

#[cfg(test)]
mod tests;
