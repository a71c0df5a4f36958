//! Conditions under which a comparison fails, for use in scripts.

use super::metric::METRIC_HELP;
use super::{ALL, ChangeVerdict, ComparedResult, Comparison, Metric, Row, Value, distinct};
use plimsoll_measure::compare::{FALSE_DISCOVERY_RATE, relative_change};
use plimsoll_plan::{ConditionParts, Count, Relation};
use plimsoll_results::{Percentile, Verdict};
use std::fmt;
use std::str::FromStr;

/// A condition on a change, such as `p99 > +10%`; a comparison that meets the condition fails.
///
/// A tested change that may be chance counts as no change, except a change from zero, which is infinite. A change that
/// was not tested, for example with too few runs, counts at its full size.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Name of the operation; `None` for all operations together.
    operation: Option<String>,
    metric: Metric,
    /// Whether the condition is `>`, not `<`.
    more: bool,
    /// Threshold of the change, in percent of the first result's figure.
    percent: f64,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |expected: &str| {
            format!(
                "{expected} in `{text}`; a condition is like 'p99 > +10%' or 'read1:ops/s < -5%'"
            )
        };
        let parts = ConditionParts::of(text).map_err(wrong)?;
        let more = match parts.relation {
            Relation::More => true,
            Relation::Less => false,
            Relation::AtMost | Relation::AtLeast => return Err(wrong("expected `<` or `>`")),
        };
        let name = parts.figure;
        let metric = Metric::of_name(name).ok_or_else(|| {
            wrong(&format!(
                "`{name}` is not a figure: expected one of {METRIC_HELP}"
            ))
        })?;
        let number = parts
            .limit
            .strip_suffix('%')
            .ok_or_else(|| wrong("expected a change in percent"))?
            .trim();
        let percent: f64 = number
            .parse()
            .ok()
            .filter(|n: &f64| n.is_finite())
            .ok_or_else(|| wrong(&format!("`{number}` is not a number")))?;
        if !more && percent <= -100.0 {
            return Err(wrong("no figure falls by more than 100 %"));
        }
        Ok(Self {
            operation: parts.operation.map(str::to_owned),
            metric,
            more,
            percent,
        })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = &self.operation {
            write!(f, "{operation}:")?;
        }
        let sign = if self.more { '>' } else { '<' };
        write!(f, "{} {sign} {:+}%", self.metric.name(), self.percent)
    }
}

impl Condition {
    /// Percentile that the condition tests; `None` if the condition tests another figure, such as the mean latency.
    #[must_use]
    pub fn percentile(&self) -> Option<Percentile> {
        self.metric.percentile()
    }

    /// Failures of the results after the first by the condition, such as `p99 > +10%`: a sentence, which begins with
    /// the condition, for each result that meets or may meet the condition, lacks the condition's figure, or is not
    /// valid (unless `allow_invalid`).
    ///
    /// # Errors
    /// A sentence if no result has the condition's figure, so that a misspelled operation does not count as a good
    /// result.
    pub fn check(
        &self,
        comparison: &Comparison,
        allow_invalid: bool,
    ) -> Result<Vec<String>, String> {
        let named: Vec<(&str, Option<&Row>)> = self.rows(comparison);
        let sides = &comparison.sets;
        let known = |(_, row): &(&str, Option<&Row>)| {
            row.is_some_and(|r| r.values.iter().flatten().any(|v| v.enough_samples))
        };
        if !named.iter().any(known) {
            return Err(self.unknown(comparison, &named));
        }
        let mut met = Vec::new();
        for (operation, row) in named {
            let figure = format!("{} of {operation}", self.metric);
            let Some(row) = row else {
                met.push(format!("no result has {figure}"));
                continue;
            };
            let value = |i: usize| row.values[i].as_ref();
            let base = match self.usable(&sides[0], value(0), &figure) {
                Err(why) => {
                    met.push(why);
                    continue;
                }
                Ok(base) if base.statement == ChangeVerdict::InvalidPoint && !allow_invalid => {
                    let name = &sides[0].name;
                    met.push(format!("{figure} in {name} is of an invalid point"));
                    continue;
                }
                Ok(base) => base,
            };
            for (i, side) in sides.iter().enumerate().skip(1) {
                let checked = match self.usable(side, value(i), &figure) {
                    Ok(value) if value.verdict != Verdict::Valid && !allow_invalid => Err(format!(
                        "{figure} in {} is of a result that is {}",
                        side.name, value.verdict
                    )),
                    Ok(value) => self.compare(base, value, &figure, side),
                    Err(why) => Err(why),
                };
                met.extend(checked.err());
            }
        }
        let met = met.into_iter().map(|text| format!("{self}: {text}"));
        Ok(met.collect())
    }

    /// Operations of the condition with their rows, if the comparison has them. Profiles have no row for all
    /// operations: a condition without a name then applies to each configuration.
    fn rows<'a>(&'a self, comparison: &'a Comparison) -> Vec<(&'a str, Option<&'a Row>)> {
        let rows = comparison.rows();
        let named: Vec<&str> = match self.operation.as_deref() {
            Some(name) => vec![name],
            None if comparison.has_total => vec![ALL],
            None => distinct(rows.iter().map(|r| r.operation.as_str())),
        };
        let find = |name: &str| {
            let mut rows = rows.iter();
            rows.find(|r| r.metric == self.metric && r.operation == name)
        };
        named.into_iter().map(|name| (name, find(name))).collect()
    }

    /// The error that no result has the figure.
    fn unknown(&self, comparison: &Comparison, named: &[(&str, Option<&Row>)]) -> String {
        let metric = self.metric;
        let has_few = named.iter().find_map(|(name, row)| row.map(|_| name));
        if let (Some(operation), Some(percentile)) = (has_few, self.percentile()) {
            return format!(
                "{metric} of {operation} is not known: it needs {} operations",
                Count(percentile.needs())
            );
        }
        let known = comparison.rows().iter().filter(|r| r.metric == metric);
        let known: Vec<&str> = known.map(|r| r.operation.as_str()).collect();
        match known.is_empty() {
            true => format!("the results have no {metric}"),
            false => format!(
                "there is no {metric} of `{}`; there is of {}",
                self.operation.as_deref().unwrap_or(ALL),
                known.join(", ")
            ),
        }
    }

    /// Returns the figure of a result.
    ///
    /// # Errors
    /// A sentence if the result lacks the figure, or if the figure is a percentile of too few operations.
    fn usable<'a>(
        &self,
        side: &ComparedResult,
        value: Option<&'a Value>,
        figure: &str,
    ) -> Result<&'a Value, String> {
        let Some(value) = value else {
            return Err(format!("{} ({}) has no {figure}", side.name, side.verdict));
        };
        match self.percentile() {
            Some(percentile) if !value.enough_samples => Err(format!(
                "{figure} in {} is not known: it needs {} operations",
                side.name,
                Count(percentile.needs())
            )),
            _ => Ok(value),
        }
    }

    /// Checks the change of a figure.
    ///
    /// # Errors
    /// A sentence if the change meets the condition, or may meet it because a figure is a lower bound.
    fn compare(
        &self,
        base: &Value,
        value: &Value,
        figure: &str,
        side: &ComparedResult,
    ) -> Result<(), String> {
        // Processor time is sampled, so any run may lack the figure by chance.
        let is_lost = base.runs_without == 0 && value.runs_without > 0;
        if is_lost && self.metric != Metric::CpuUsPerOp {
            let runs = value.runs.len() + value.runs_without;
            return Err(format!(
                "{} of {runs} runs of {} have no {figure}",
                value.runs_without, side.name
            ));
        }
        let change = relative_change(base.mean, value.mean);
        let is_met = |change: f64| match self.more {
            true => change > self.percent / 100.0,
            false => change < self.percent / 100.0,
        };
        let is_chance = match value.statement {
            ChangeVerdict::NotShown => true,
            // Where the order of the runs allows no statement, a change that chance explains (p above the false
            // discovery rate) still counts as no change.
            ChangeVerdict::Drift | ChangeVerdict::MeasuredApart => value
                .difference
                .is_some_and(|d| d.p() > FALSE_DISCOVERY_RATE),
            _ => false,
        } && change.is_finite();
        if is_met(if is_chance { 0.0 } else { change }) {
            let words = value.statement.words();
            return Err(match change.is_finite() {
                true => format!(
                    "{figure} in {} changed by {:+.1} % ({words})",
                    side.name,
                    change * 100.0,
                ),
                false => format!(
                    "{figure} in {} rose from 0 to {} ({words})",
                    side.name,
                    self.metric.show(value.mean),
                ),
            });
        }
        // The true change may be greater if the second figure is a lower bound, and smaller if the first is.
        match if self.more {
            value.at_least
        } else {
            base.at_least
        } {
            true => Err(format!(
                "the change of {figure} in {} is not known: operations were in flight at the end, and \
                 only lower bounds are known",
                side.name
            )),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
