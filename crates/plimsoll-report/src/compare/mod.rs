//! Comparison of results: figures, their changes, and the significance of the changes.

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

/// Results side by side; changes are relative to the first result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The compared results.
    pub sets: Vec<ComparedResult>,
    /// Warnings about differences between the results that impair the comparison.
    pub warnings: Vec<String>,
    /// Meaning of the rows' loads, such as `load in streams`; `None` unless load curves are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_axis: Option<String>,
    /// Whether rows named [`ALL`] are the total of all operations, rather than a configuration of that name.
    #[serde(skip)]
    has_total: bool,
    /// Summary of the tests of all figures.
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
    /// Number of runs of the result.
    pub runs: usize,
    /// The distinct verdicts of the runs, such as `valid`.
    pub verdict: String,
}

/// One figure of one operation in each result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the operation; [`ALL`] for all operations together.
    pub operation: String,
    /// Load of the row, or achieved operations per second; null unless load curves are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The figure.
    pub metric: Metric,
    /// One entry per result; null if the result lacks the figure.
    pub values: Vec<Option<Value>>,
}

/// A figure of one result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Value {
    /// Mean over the runs that have the figure.
    pub mean: f64,
    /// The figure of each run that has it; at least one.
    pub runs: Vec<f64>,
    /// Number of the result's runs without the figure.
    pub runs_without: usize,
    /// Worst verdict of the runs, or of the load point.
    pub verdict: Verdict,
    /// Whether the figure is the rate at which an open load offered operations, which its schedule sets.
    pub offered: bool,
    /// Whether every run has enough operations for the percentile; true of other figures.
    pub enough_samples: bool,
    /// Whether the figure of any run is only a lower bound, because of operations in flight at the end.
    pub at_least: bool,
    /// Change from the first result as a fraction of the first figure: 0.1 is ten percent more. A change from zero to
    /// another figure is infinite, in JSON the text `Infinity`. Null for the first result itself, and if the first
    /// result has no usable figure.
    #[serde(serialize_with = "change_in_json")]
    pub change: Option<f64>,
    /// Statistics of the change; null without repeated runs.
    pub difference: Option<Difference>,
    /// Significance of the change.
    pub statement: ChangeVerdict,
}

/// JSON has no infinite numbers; the text `Infinity` is a valid number in languages that read JSON.
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
    /// The figure of each run; `None` for a run without the figure.
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

    /// The figure before comparison; `None` if no run has the figure.
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

/// Distinct items, in the order of their first occurrence.
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
    /// A row with a figure of each result; `None` if no result has the figure.
    fn new(operation: &str, metric: Metric, figures: Vec<Measured>) -> Option<Self> {
        let values: Vec<_> = figures.into_iter().map(Measured::value).collect();
        values.iter().any(Option::is_some).then(|| Self {
            operation: operation.to_owned(),
            load: None,
            metric,
            values,
        })
    }

    /// Whether tables show the row: rows of errors or bytes that are zero in all results are hidden.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        let zero = self.values.iter().flatten().all(|v| v.mean == 0.0);
        !(zero && matches!(self.metric, Metric::Errors | Metric::MibPerS))
    }
}

impl Comparison {
    /// Compares and tests the rows.
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

    /// Summary of the tests of all figures.
    #[must_use]
    pub fn tests(&self) -> Tests {
        self.tests
    }

    /// Removes rows, and tests the remaining rows anew.
    pub fn retain_rows(&mut self, is_kept: impl Fn(&Row) -> bool) {
        self.rows.retain(is_kept);
        self.tests = significance::test(&mut self.rows);
    }
}

#[cfg(test)]
mod tests;
