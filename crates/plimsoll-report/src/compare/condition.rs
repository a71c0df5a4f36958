//! Conditions under which a comparison fails, for use in scripts.

use super::metric::METRIC_HELP;
use super::{ALL, ChangeVerdict, Comparison, Metric, Row};
use plimsoll_plan::Count;
use plimsoll_results::Percentile;
use std::fmt;
use std::str::FromStr;

/// A change that must not occur, such as `p99 > +10%`.
///
/// Of repeated runs only a significant change counts; of single runs every change, because it cannot be
/// distinguished from chance.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The operation; `None` for all together.
    operation: Option<String>,
    metric: Metric,
    /// Whether the figure must not be more than the change, or not less.
    more: bool,
    /// The change as a fraction.
    change: f64,
}

/// A condition that a comparison meets.
#[derive(Debug, Clone, PartialEq)]
pub struct MetCondition {
    /// One sentence.
    pub text: String,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |expected: &str| {
            format!(
                "{expected} in `{text}`; a condition is like 'p99 > +10%' or 'read1:ops/s < -5%'"
            )
        };
        let at = text
            .find(['<', '>'])
            .ok_or_else(|| wrong("expected `<` or `>`"))?;
        let (what, rest) = (text[..at].trim(), &text[at..]);
        let more = rest.starts_with('>');
        let (operation, name) = match what.rsplit_once(':') {
            Some((operation, name)) => (Some(operation.trim().to_owned()), name.trim()),
            None => (None, what),
        };
        let metric = Metric::of_name(name).ok_or_else(|| {
            wrong(&format!(
                "`{name}` is not a figure: expected one of {METRIC_HELP}"
            ))
        })?;
        let percent = rest[1..].trim();
        let number = percent
            .strip_suffix('%')
            .ok_or_else(|| wrong("expected a change in percent"))?
            .trim();
        let change: f64 = number
            .parse()
            .ok()
            .filter(|n: &f64| n.is_finite())
            .ok_or_else(|| wrong(&format!("`{number}` is not a number")))?;
        if operation.as_deref() == Some("") {
            return Err(wrong("expected the name of an operation before `:`"));
        }
        Ok(Self {
            operation,
            metric,
            more,
            change: change / 100.0,
        })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = &self.operation {
            write!(f, "{operation}:")?;
        }
        let sign = if self.more { '>' } else { '<' };
        write!(
            f,
            "{} {sign} {:+}%",
            self.metric.name(),
            self.change * 100.0
        )
    }
}

impl Condition {
    /// The percentile of the condition.
    #[must_use]
    pub fn percentile(&self) -> Option<Percentile> {
        self.metric.percentile()
    }

    /// Returns every result that meets the condition.
    ///
    /// # Errors
    /// A sentence, if the comparison has no such operation or figure, so that a misspelled name does not
    /// pass for a good result.
    pub fn check(&self, comparison: &Comparison) -> Result<Vec<MetCondition>, String> {
        let rows = self.rows(comparison);
        if rows.is_empty() {
            let name = self.metric.name();
            let operation = self.operation.as_deref().unwrap_or(ALL);
            let known = comparison.rows.iter().filter(|r| r.metric == self.metric);
            let known: Vec<&str> = known.map(|r| r.operation.as_str()).collect();
            return Err(match known.is_empty() {
                true => format!("the results have no {name}"),
                false => format!(
                    "there is no {name} of `{operation}`; there is of {}",
                    known.join(", ")
                ),
            });
        }
        for row in &rows {
            self.has_enough(comparison, row)?;
            self.is_decided(comparison, row)?;
        }
        Ok(rows
            .into_iter()
            .flat_map(|r| self.broken(comparison, r))
            .collect())
    }

    /// Fails if a percentile has too few operations, which must not pass for a good result.
    fn has_enough(&self, comparison: &Comparison, row: &Row) -> Result<(), String> {
        let mut sides = comparison.sets.iter().zip(&row.values);
        let lacking = sides.find(|(_, v)| v.as_ref().is_some_and(|v| !v.enough_samples));
        match (lacking, self.percentile()) {
            (Some((side, _)), Some(percentile)) => Err(format!(
                "{} of {} in {} is not known: it needs {} operations",
                self.metric,
                row.operation,
                side.name,
                Count(percentile.needs())
            )),
            _ => Ok(()),
        }
    }

    /// Fails if a change from or to a lower bound may meet the condition, although that of the bounds does
    /// not.
    fn is_decided(&self, comparison: &Comparison, row: &Row) -> Result<(), String> {
        let first = row.values.first().and_then(Option::as_ref);
        let from_bound = first.is_some_and(|f| f.at_least);
        for (side, value) in comparison.sets.iter().zip(&row.values).skip(1) {
            let Some(value) = value else { continue };
            let Some(change) = value.change else { continue };
            // It may be more if this is a lower bound, and less if the first is.
            let may_meet = match self.more {
                true => value.at_least && change <= self.change,
                false => from_bound && change >= self.change,
            };
            if may_meet {
                return Err(format!(
                    "the change of {} of {} in {} is not known: operations were in flight at the end, \
                     and only lower bounds are known",
                    self.metric, row.operation, side.name
                ));
            }
        }
        Ok(())
    }

    /// The rows of the condition. Profiles have no row of all together: without a name the condition is
    /// on each of their configurations.
    fn rows<'a>(&self, comparison: &'a Comparison) -> Vec<&'a Row> {
        let of_metric = || comparison.rows.iter().filter(|r| r.metric == self.metric);
        let whole = comparison.rows.iter().any(|r| r.operation == ALL);
        match self.operation.as_deref() {
            None if !whole => of_metric().collect(),
            name => {
                let name = name.unwrap_or(ALL);
                of_metric().filter(|r| r.operation == name).collect()
            }
        }
    }

    /// The results that meet the condition in one row.
    fn broken(&self, comparison: &Comparison, row: &Row) -> Vec<MetCondition> {
        let operation = &row.operation;
        let mut broken = Vec::new();
        for (side, value) in comparison.sets.iter().zip(&row.values).skip(1) {
            let Some(value) = value else { continue };
            let Some(change) = value.change else { continue };
            let met = if self.more {
                change > self.change
            } else {
                change < self.change
            };
            let counts = !matches!(value.statement, ChangeVerdict::NotShown);
            if met && counts {
                broken.push(MetCondition {
                    text: format!(
                        "{self}: {operation} {} of {} is {} by {:+.1} % ({})",
                        self.metric.name(),
                        side.name,
                        if change > 0.0 { "more" } else { "less" },
                        change * 100.0,
                        value.statement.words(),
                    ),
                });
            }
        }
        broken
    }
}
