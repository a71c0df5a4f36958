//! Significance of changes: all figures of a comparison are tested together, once, and tables, pages, JSON and
//! conditions show the same statements.

use super::{Comparison, Metric, Row, Value, distinct};
use crate::percentiles::{LOWER_BOUND_NOTE, UNCERTAIN_NOTE};
use plimsoll_measure::compare::{
    self as statistics, Difference, FALSE_DISCOVERY_RATE, has_enough_runs, relative_change,
    significant,
};
use plimsoll_plan::counted;
use plimsoll_results::Verdict;
use serde::Serialize;

/// Summary of the tests of all figures of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tests {
    /// Number of tested figures: each figure of each result against the first result.
    pub tested: usize,
    /// Number of tested figures whose difference from the first result is significant.
    pub real: usize,
    /// Maximum expected fraction of chance among the significant differences.
    pub false_discovery_rate: f64,
    /// Number of runs of each result that suffices to show a difference in a single figure, counting the figures with
    /// too few runs too.
    pub runs_needed: usize,
}

/// Statement on the change of one figure against the first result: tested and significant, tested without a finding, or
/// the reason why no test was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeVerdict {
    /// The figure belongs to the first result, with which all other results are compared.
    Base,
    /// Each result has a single run, so no test is possible.
    OneRunEach,
    /// The two results have too few runs for the rank-sum test to find any difference significant.
    TooFewRuns,
    /// The runs of a result have a trend over time, so that the mean of the runs describes none of the runs.
    Drift,
    /// All runs of one result were measured before the runs of the other result, so that a drift of the machine looks
    /// like a difference.
    MeasuredApart,
    /// The figure has the same value in every run of both results.
    Same,
    /// The rate at which an open load offers operations: set by the schedule, and so not tested.
    Offered,
    /// The figure is a percentile of too few operations, or a lower bound, and is not tested.
    NotKnown,
    /// The difference is significant at the false discovery rate of the comparison.
    Real,
    /// The difference was tested and is not significant: the difference may be chance.
    NotShown,
    /// The runs of the two results do not overlap, but among so many figures the difference may be chance: more runs
    /// are needed.
    NotDecided,
    /// The first result lacks the figure, or has a figure that cannot be a base for comparisons.
    NoBase,
    /// The figure belongs to an invalid load point, and is not tested.
    InvalidPoint,
}

impl ChangeVerdict {
    /// The statement, or the reason why there is none, in a clause.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::OneRunEach => "each result has one run",
            Self::TooFewRuns => "too few runs for a test",
            Self::Drift => "the runs drift",
            Self::MeasuredApart => "the results were measured one after the other",
            Self::Same => "the same in every run",
            Self::Offered => "set by the schedule",
            Self::NotKnown => "not known exactly",
            Self::Real => "real",
            Self::NotShown => "may be chance",
            Self::NotDecided => "no overlap, but too few runs to exclude chance",
            Self::NoBase => "nothing to compare with",
            Self::InvalidPoint => "the load point is invalid",
        }
    }

    /// Whether the statement comes from a test, or from too few runs for a test.
    fn is_of_test(self) -> bool {
        matches!(
            self,
            Self::OneRunEach | Self::TooFewRuns | Self::Real | Self::NotShown | Self::NotDecided
        )
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
            Self::NotShown | Self::NotDecided => " ~",
            _ => "",
        }
    }
}

/// Compares every figure with the first result, and tests all figures together.
pub(super) fn test(rows: &mut [Row]) -> Tests {
    let mut tested: Vec<(&mut Value, Difference)> = Vec::new();
    let mut too_few = 0;
    for row in rows {
        let is_point = row.load.is_some();
        let Some((first, others)) = row.values.split_first_mut() else {
            continue;
        };
        if let Some(first) = first {
            first.statement = match is_invalid_point(first, is_point) {
                true => ChangeVerdict::InvalidPoint,
                false => ChangeVerdict::Base,
            };
        }
        for value in others.iter_mut().flatten() {
            let statement = untested(first.as_ref(), value, is_point);
            let base = first.as_ref().filter(|_| {
                !matches!(
                    statement,
                    Some(ChangeVerdict::NoBase | ChangeVerdict::InvalidPoint)
                )
            });
            value.change = base.map(|f| relative_change(f.mean, value.mean));
            let difference = || Difference::of(&base?.runs, &value.runs);
            value.difference = value.difference.or_else(difference);
            match (statement, value.difference) {
                (None, Some(difference)) => tested.push((value, difference)),
                (statement, _) => {
                    let statement = statement.unwrap_or(ChangeVerdict::NotKnown);
                    too_few += usize::from(matches!(
                        statement,
                        ChangeVerdict::OneRunEach | ChangeVerdict::TooFewRuns
                    ));
                    value.statement = statement;
                }
            }
        }
    }
    let p_values: Vec<f64> = tested.iter().map(|(_, d)| d.p()).collect();
    let found = significant(&p_values);
    let tests = Tests {
        tested: tested.len(),
        real: found.iter().filter(|f| **f).count(),
        false_discovery_rate: FALSE_DISCOVERY_RATE,
        runs_needed: statistics::runs_needed(tested.len() + too_few),
    };
    for ((value, difference), is_real) in tested.into_iter().zip(found) {
        value.statement = match is_real {
            true => ChangeVerdict::Real,
            // No order of the runs would be stronger evidence: only more runs can help.
            false if difference.test.separated => ChangeVerdict::NotDecided,
            false => ChangeVerdict::NotShown,
        };
    }
    tests
}

fn is_invalid_point(value: &Value, is_point: bool) -> bool {
    is_point && value.verdict == Verdict::Invalid
}

/// Reason why a figure is not tested; `None` if it is tested.
fn untested(first: Option<&Value>, value: &Value, is_point: bool) -> Option<ChangeVerdict> {
    if is_invalid_point(value, is_point) {
        return Some(ChangeVerdict::InvalidPoint);
    }
    let Some(first) = first.filter(|f| !is_invalid_point(f, is_point)) else {
        return Some(ChangeVerdict::NoBase);
    };
    let sizes = (first.runs.len(), value.runs.len());
    let known = |v: &Value| v.enough_samples && !v.at_least;
    let all = || first.runs.iter().chain(&value.runs);
    if sizes == (1, 1) {
        Some(ChangeVerdict::OneRunEach)
    } else if all().all(|v| *v == first.runs[0]) {
        Some(ChangeVerdict::Same)
    } else if first.offered && value.offered {
        Some(ChangeVerdict::Offered)
    } else if !known(first) || !known(value) {
        Some(ChangeVerdict::NotKnown)
    } else if !has_enough_runs(sizes.0, sizes.1) {
        Some(ChangeVerdict::TooFewRuns)
    } else {
        value.confounded
    }
}

/// Explanation of the mark of a significant difference.
pub(crate) fn note_on_real() -> String {
    format!(
        "* the difference is real: of all that are marked so, at most {} % are expected to be chance",
        100.0 * FALSE_DISCOVERY_RATE
    )
}

impl Comparison {
    /// Explanations of the tests and of the marks in tables, as sentences.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let shown = self.rows.iter().filter(|r| r.is_shown());
        let values: Vec<&Value> = shown.flat_map(|r| r.values.iter().flatten()).collect();
        let any = |is_it: &dyn Fn(&Value) -> bool| values.iter().any(|v| is_it(v));
        let states = |s: ChangeVerdict| any(&|v| v.statement == s);
        let mut remarks = Vec::new();
        if states(ChangeVerdict::OneRunEach) {
            let advice = match self.load_axis {
                None => format!(
                    "; repeat the runs with run --repeat {}",
                    self.tests.runs_needed
                ),
                Some(_) => String::new(),
            };
            remarks.push(format!(
                "one run each: no statement on whether a difference is real{advice}"
            ));
        }
        if states(ChangeVerdict::Drift) {
            remarks.push(
                "no statement on whether a difference is real: the runs drift; remove the cause of the \
                 drift, or measure pairs in random order with plimsoll ab"
                    .into(),
            );
        }
        if states(ChangeVerdict::MeasuredApart) {
            remarks.push(
                "no statement on whether a difference is real: the results were measured one after the \
                 other, and drift of the machine and the difference cannot be told apart; measure pairs in \
                 random order with plimsoll ab"
                    .into(),
            );
        }
        remarks.extend(self.remarks_on_tests());
        if states(ChangeVerdict::Offered) {
            remarks.push(
                "ops/s and MiB/s of an open load that was sustained are not tested: its schedule sets \
                 them"
                .into(),
            );
        }
        if states(ChangeVerdict::InvalidPoint) {
            remarks.push("! the load point is invalid: no change is computed to or from it".into());
        }
        if let Some(named) = self.named(|v| v.runs_without > 0, |_| true) {
            remarks.push(format!("not all runs have these figures: {named}"));
        }
        if any(&|v| !v.enough_samples) {
            remarks.push(UNCERTAIN_NOTE.into());
        }
        if any(&|v| v.at_least) {
            remarks.push(LOWER_BOUND_NOTE.into());
        }
        remarks
    }

    /// Sentences on the tests, on the meaning of their marks, and on figures with too few runs.
    fn remarks_on_tests(&self) -> Vec<String> {
        let Tests {
            tested,
            real,
            false_discovery_rate,
            runs_needed,
        } = self.tests;
        let percent = 100.0 * false_discovery_rate;
        let mut remarks = Vec::new();
        if tested > 0 {
            let figures = counted(tested as u64, "figure was", "figures were");
            remarks.push(format!(
                "{figures} tested (Mann-Whitney test, bootstrap interval), with a false discovery rate \
                 of {percent} % for all of them together (Benjamini-Hochberg)"
            ));
        }
        if real > 0 {
            remarks.push(note_on_real());
        }
        if tested > real {
            remarks.push("~ the difference may be chance".into());
        }
        let named = |statement| {
            let is_it = |v: &Value| v.statement == statement;
            self.named(is_it, |v| v.statement.is_of_test())
        };
        if let Some(named) = named(ChangeVerdict::NotDecided) {
            remarks.push(format!(
                "too few runs to exclude chance among {tested} figures, although those of both results do \
                 not overlap: {named}; {runs_needed} runs of each result that have the figure are needed"
            ));
        }
        if let Some(named) = named(ChangeVerdict::TooFewRuns) {
            let least = statistics::runs_needed(1);
            let more = match runs_needed > least {
                true => format!(", and {runs_needed} to show a difference in a single one of them"),
                false => String::new(),
            };
            remarks.push(format!(
                "too few runs for a test: {named}; at least {least} runs of each result that have the figure are \
                 needed{more}"
            ));
        }
        remarks
    }

    /// Shown figures for which `is_it` holds, by result: `p99 latency (all) in after`, or `every figure in after` if
    /// `is_it` holds for all figures for which `among` holds.
    fn named(
        &self,
        is_it: impl Fn(&Value) -> bool,
        among: impl Fn(&Value) -> bool,
    ) -> Option<String> {
        let mut sides = Vec::new();
        for i in 0..self.sets.len() {
            let with = |is_it: &dyn Fn(&Value) -> bool| -> Vec<&Row> {
                let rows = self.rows.iter().filter(|r| r.is_shown());
                rows.filter(|r| r.values[i].as_ref().is_some_and(is_it))
                    .collect()
            };
            let rows = with(&is_it);
            if rows.is_empty() {
                continue;
            }
            let what = match rows.len() == with(&among).len() {
                true => "every figure".to_owned(),
                false => by_figure(&rows),
            };
            sides.push(format!("{what} in {}", self.labels[i]));
        }
        (!sides.is_empty()).then(|| sides.join(", "))
    }
}

/// Names of rows by figure: `p99 latency (all, read1), MiB/s (all)`.
fn by_figure(rows: &[&Row]) -> String {
    let mut metrics: Vec<Metric> = distinct(rows.iter().map(|r| r.metric));
    metrics.sort_unstable();
    let of = |metric: &Metric| {
        let rows = rows.iter().filter(|r| r.metric == *metric);
        let names: Vec<&str> = rows.map(|r| r.operation.as_str()).collect();
        format!("{} ({})", metric.title(), names.join(", "))
    };
    metrics.iter().map(of).collect::<Vec<_>>().join(", ")
}
