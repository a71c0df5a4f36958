//! Results side by side: figures, their change, and whether a change is more than chance.

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

use crate::percentiles::{AT_LEAST_MEANS, UNCERTAIN_NOTE};
use plimsoll_measure::compare::{Difference, has_enough_runs};
use serde::{Deserialize, Serialize};

/// Name of the row of all operations together.
pub const ALL: &str = "all";

/// Results side by side; changes are from the first of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared.
    pub sets: Vec<ComparedResult>,
    /// Remarks on what makes the results hard to compare.
    pub warnings: Vec<String>,
    /// One entry an operation and figure.
    pub rows: Vec<Row>,
}

/// One of the results that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedResult {
    /// Name of the results.
    pub name: String,
    /// Name of the workload, or of the metric of a published curve.
    pub workload: String,
    /// Runs of it.
    pub runs: usize,
    /// The verdicts of all runs in a word, such as `valid`.
    pub verdict: String,
}

/// One figure of one operation, of each of the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the operation, [`ALL`] for all together.
    pub operation: String,
    /// Which figure.
    pub metric: Metric,
    /// One entry a result; null where it has no such figure.
    pub values: Vec<Option<Value>>,
}

/// A figure of one result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// Mean over the runs.
    pub mean: f64,
    /// The figure of each run.
    pub runs: Vec<f64>,
    /// Change from the first result as a share of it: 0.1 is ten percent more; null for the first
    /// itself, and where the first is zero or missing.
    pub change: Option<f64>,
    /// What repeated runs say of the change; null without repeated runs.
    pub difference: Option<Difference>,
    /// What may be said of the change.
    pub statement: ChangeVerdict,
    /// Whether every run has as many operations as a percentile needs; true of other figures.
    pub enough_samples: bool,
    /// Whether it is known only as a lower bound in some run, from operations under way at the end.
    #[serde(default)]
    pub at_least: bool,
}

/// What may be said of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeVerdict {
    /// It is the first result, from which changes are counted.
    Base,
    /// One run each: no statement.
    OneRunEach,
    /// So few runs that no difference could be told from chance.
    TooFewRuns,
    /// The difference is more than chance.
    Real,
    /// The runs do not show that the difference is more than chance.
    NotShown,
    /// There is nothing to compare with.
    NoBase,
    /// It is of an invalid load point, which no change is counted to or from.
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

    /// What stands beside the figure itself in a table.
    #[must_use]
    pub fn figure_mark(self) -> &'static str {
        match self {
            Self::InvalidPoint => " !",
            _ => "",
        }
    }

    /// What stands beside a change in a table.
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
    /// The figures of a result's runs, compared with those of the first result.
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

/// Makes a row of the runs' figures of each result; `None` if no result has the figure.
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
        metric,
        values: values.collect(),
    })
}

impl Comparison {
    /// What may be said of the changes, in sentences.
    #[must_use]
    pub fn remarks(&self) -> Vec<&'static str> {
        let values = || self.rows.iter().flat_map(|r| r.values.iter().flatten());
        let any = |s: ChangeVerdict| values().any(|v| v.statement == s);
        let sentences = [
            (
                ChangeVerdict::OneRunEach,
                "one run each: no statement on whether a difference is real; run --repeat 5 lets \
                 one be made",
            ),
            (
                ChangeVerdict::TooFewRuns,
                "too few runs for a statement on whether a difference is real; four of each are \
                 the least",
            ),
            (
                ChangeVerdict::Real,
                "* the difference is real: the 95 % confidence interval leaves out zero, and the \
                 Mann-Whitney test gives less than 5 % for chance",
            ),
            (ChangeVerdict::NotShown, "~ the difference may be chance"),
            (
                ChangeVerdict::InvalidPoint,
                "! the load point is invalid: no change is counted to or from it",
            ),
        ];
        let said = sentences.into_iter().filter(|(s, _)| any(*s));
        let doubtful = values()
            .any(|v| !v.enough_samples)
            .then_some(UNCERTAIN_NOTE);
        let bounds = values().any(|v| v.at_least).then_some(AT_LEAST_MEANS);
        let said = said.map(|(_, text)| text);
        said.chain(doubtful).chain(bounds).collect()
    }
}

#[cfg(test)]
mod tests;
