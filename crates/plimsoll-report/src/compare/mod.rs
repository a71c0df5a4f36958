//! Results side by side: figures, their changes, and whether a change is more than chance.

mod condition;
mod curves;
mod metric;
mod profiles;
mod results;
mod runs;
mod show;

pub use condition::{Condition, MetCondition};
pub use curves::{CurveSet, of_curves};
pub use metric::Metric;
pub use profiles::{ProfileSet, of_profiles};
pub use results::{Results, side_by_side};
pub use runs::{OPERATION_PERCENTILES, RunSet, TOTAL_PERCENTILES, of_runs};
pub use show::{Cell, FigureBlock, blocks, letter, markdown, text};

use crate::percentiles::{LOWER_BOUND_NOTE, UNCERTAIN_NOTE};
use plimsoll_measure::compare::{Difference, has_enough_runs};
use serde::{Deserialize, Serialize};

/// Name of the row of all operations together.
pub const ALL: &str = "all";

/// Results side by side; changes are from the first of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The compared results.
    pub sets: Vec<ComparedResult>,
    /// Warnings about differences that make the comparison difficult.
    pub warnings: Vec<String>,
    /// Of load curves what the loads of the rows are, such as `load in streams`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_axis: Option<String>,
    /// One entry per operation and figure.
    pub rows: Vec<Row>,
}

/// One of the compared results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the operation, [`ALL`] for all together.
    pub operation: String,
    /// Of load curves the load, or the achieved operations per second, that the row belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The figure.
    pub metric: Metric,
    /// One entry per result; null if it does not have the figure.
    pub values: Vec<Option<Value>>,
}

/// A figure of one result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// Mean over the runs.
    pub mean: f64,
    /// The figure of each run.
    pub runs: Vec<f64>,
    /// Change from the first result as a fraction of it: 0.1 is ten percent more; null for the first
    /// itself, and if the first is zero or missing.
    pub change: Option<f64>,
    /// Statistics of the change; null without repeated runs.
    pub difference: Option<Difference>,
    /// Significance of the change.
    pub statement: ChangeVerdict,
    /// Whether every run has as many operations as a percentile needs; true of other figures.
    pub enough_samples: bool,
    /// Whether it is only a lower bound in some run, because of operations in flight at the end.
    #[serde(default)]
    pub at_least: bool,
}

/// Significance of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeVerdict {
    /// It is the first result, to which the others are compared.
    Base,
    /// One run each: no statement.
    OneRunEach,
    /// Too few runs to distinguish any difference from chance.
    TooFewRuns,
    /// The difference is significant.
    Real,
    /// The runs do not show that the difference is more than chance.
    NotShown,
    /// There is nothing to compare with.
    NoBase,
    /// It is of or from an invalid load point.
    InvalidPoint,
}

impl ChangeVerdict {
    /// The statement in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::OneRunEach => "one run each: no statement",
            Self::TooFewRuns => "too few runs for a statement",
            Self::Real => "real",
            Self::NotShown => "may be chance",
            Self::NoBase => "nothing to compare with",
            Self::InvalidPoint => "the load point is invalid",
        }
    }

    /// Mark of the figure itself in a table.
    #[must_use]
    pub fn figure_mark(self) -> &'static str {
        match self {
            Self::InvalidPoint => " !",
            _ => "",
        }
    }

    /// Mark of a change in a table.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::Real => " *",
            Self::NotShown => " ~",
            _ => "",
        }
    }
}

impl Value {
    /// Compares the figures of a result's runs with those of the first result.
    fn of(runs: Vec<f64>, first: Option<&[f64]>) -> Self {
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let own = mean(&runs);
        let base = first.map(mean).filter(|b| *b != 0.0);
        let difference = first.and_then(|first| Difference::of(first, &runs));
        let statement = match (first, base) {
            (Some(first), Some(_)) if first.len() == 1 && runs.len() == 1 => {
                ChangeVerdict::OneRunEach
            }
            (Some(first), Some(_)) if !has_enough_runs(first.len(), runs.len()) => {
                ChangeVerdict::TooFewRuns
            }
            (Some(_), Some(_)) => match difference {
                Some(d) if d.is_significant() => ChangeVerdict::Real,
                _ => ChangeVerdict::NotShown,
            },
            _ => ChangeVerdict::NoBase,
        };
        Self {
            mean: own,
            runs,
            change: base.map(|b| (own - b) / b.abs()),
            difference,
            statement,
            enough_samples: true,
            at_least: false,
        }
    }

    fn base(runs: Vec<f64>) -> Self {
        Self {
            change: None,
            difference: None,
            statement: ChangeVerdict::Base,
            ..Self::of(runs, None)
        }
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

/// A row of the figures of each result's runs; `None` if no result has the figure.
fn row(operation: &str, metric: Metric, figures: Vec<Vec<f64>>) -> Option<Row> {
    if figures.iter().all(Vec::is_empty) {
        return None;
    }
    let first = figures.first().filter(|f| !f.is_empty()).cloned();
    let values = figures.into_iter().enumerate().map(|(i, runs)| {
        (!runs.is_empty()).then(|| match i {
            0 => Value::base(runs),
            _ => Value::of(runs, first.as_deref()),
        })
    });
    Some(Row {
        operation: operation.to_owned(),
        load: None,
        metric,
        values: values.collect(),
    })
}

impl Comparison {
    /// Explanations of the marks in the tables, in sentences.
    #[must_use]
    pub fn remarks(&self) -> Vec<&'static str> {
        let values = || self.rows.iter().flat_map(|r| r.values.iter().flatten());
        let any = |s: ChangeVerdict| values().any(|v| v.statement == s);
        let sentences = [
            (
                ChangeVerdict::OneRunEach,
                "one run each: no statement on whether a difference is real; repeat the runs with \
                 --repeat 5",
            ),
            (
                ChangeVerdict::TooFewRuns,
                "too few runs for a statement on whether a difference is real; at least four of \
                 each are needed",
            ),
            (
                ChangeVerdict::Real,
                "* the difference is real: the 95 % confidence interval excludes zero, and p < 0.05 \
                 in the Mann-Whitney test",
            ),
            (ChangeVerdict::NotShown, "~ the difference may be chance"),
            (
                ChangeVerdict::InvalidPoint,
                "! the load point is invalid: no change is computed to or from it",
            ),
        ];
        let used = sentences.into_iter().filter(|(s, _)| any(*s));
        let uncertain = values()
            .any(|v| !v.enough_samples)
            .then_some(UNCERTAIN_NOTE);
        let bounds = values().any(|v| v.at_least).then_some(LOWER_BOUND_NOTE);
        let used = used.map(|(_, text)| text);
        used.chain(uncertain).chain(bounds).collect()
    }
}

#[cfg(test)]
mod tests;
