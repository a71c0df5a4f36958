//! Comparison of results: figures, their changes, and the significance of the changes.

mod condition;
mod curves;
mod headline;
mod labels;
mod metric;
mod order;
mod pairs;
mod profiles;
mod results;
mod runs;
mod show;
mod significance;

pub use condition::Condition;
pub use curves::{CurveSet, of_curves};
pub use metric::Metric;
pub(crate) use order::Drift;
pub use pairs::{Effect, PairedEffects, of_pairs};
pub use profiles::{ProfileSet, of_profiles};
pub use results::{Results, side_by_side};
pub(crate) use runs::{FigureOfRuns, Figures, metrics, operation_names};
pub use runs::{OPERATION_PERCENTILES, RunSet, TOTAL_PERCENTILES, of_runs};
pub use show::{blocks, document, letter};
pub(crate) use significance::note_on_real;
pub use significance::{ChangeVerdict, Tests};

use plimsoll_measure::compare::Difference;
use plimsoll_results::{Distribution, Verdict};
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
    /// Short names of the results in tables and charts: distinct parts of the results' names, or letters.
    #[serde(skip)]
    labels: Vec<String>,
    /// Latencies of all operations of each result; `None` for a result without a complete log of latencies. Empty
    /// unless [`Comparison::read_latencies`] read the latencies.
    #[serde(skip)]
    pub(crate) latencies: Vec<Option<Distribution>>,
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
    /// Compared figure, such as `mean_ms` or the 99th percentile of latency.
    pub metric: Metric,
    /// Figure of each compared result, in the order of the results; null for a result without the figure.
    pub values: Vec<Option<Value>>,
    /// Whether the operation belongs to a group of similar operations, which tables show instead.
    #[serde(skip)]
    is_in_group: bool,
}

/// One figure of one compared result, over the result's runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Value {
    /// Mean of the compared figure over the runs that have the figure.
    pub mean: f64,
    /// Compared figure of each run of the result that has the figure; never empty.
    pub runs: Vec<f64>,
    /// Number of the result's runs without the figure.
    pub runs_without: usize,
    /// Worst verdict of the result's runs; for a load curve, verdict of the load point.
    pub verdict: Verdict,
    /// Minimum number of operations in a run of the result; `None` for load curves.
    #[serde(skip)]
    pub operations: Option<u64>,
    /// Whether the figure is the rate at which an open load offered operations, which its schedule sets.
    pub offered: bool,
    /// Whether every run has enough operations for the figure, a percentile; true if the figure is not a percentile.
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
    /// Reason why the order of the runs allows no statement on the change; `None` if the order allows a statement.
    #[serde(skip)]
    confounded: Option<ChangeVerdict>,
    /// Statement on the change: whether the difference is statistically significant, or why no test was made.
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

impl Value {
    /// Value of one result before the comparison with the first result; `figures` has one entry per run. `None` if no
    /// run has the figure.
    fn new(figures: Vec<Option<f64>>, verdict: Verdict) -> Option<Self> {
        let all = figures.len();
        let runs: Vec<f64> = figures.into_iter().flatten().collect();
        (!runs.is_empty()).then(|| Self {
            mean: runs.iter().sum::<f64>() / runs.len() as f64,
            runs_without: all - runs.len(),
            runs,
            verdict,
            operations: None,
            offered: false,
            enough_samples: true,
            at_least: false,
            change: None,
            difference: None,
            confounded: None,
            statement: ChangeVerdict::NoBase,
        })
    }
}

/// Items without repetitions, in the order of their first occurrence.
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
    fn new(operation: &str, metric: Metric, values: Vec<Option<Value>>) -> Option<Self> {
        values.iter().any(Option::is_some).then(|| Self {
            operation: operation.to_owned(),
            load: None,
            metric,
            values,
            is_in_group: false,
        })
    }

    /// Whether tables show the row: rows of grouped operations, and of errors or bytes that are zero in all results,
    /// are hidden.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        let zero = self.values.iter().flatten().all(|v| v.mean == 0.0);
        !(self.is_in_group || zero && self.metric.is_hidden_at_zero())
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
            labels: labels::of(&sets),
            sets,
            warnings,
            load_axis,
            latencies: vec![],
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

    /// Short names of the results, in the order of the results.
    #[must_use]
    pub fn labels(&self) -> &[String] {
        &self.labels
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
