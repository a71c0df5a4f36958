//! Headlines of a comparison: a sentence for each result after the first, which compares the result with the first.

use super::{ChangeVerdict, Comparison, Metric, Row, Value, show::percent};
use crate::document::{Block, Line, Tone};
use crate::format::precise_percent;
use crate::percentiles::marked;
use plimsoll_plan::counted;

/// A figure of the first result and of a further result, each with the result's name.
struct Pair<'a> {
    metric: Metric,
    first: (&'a str, &'a Value),
    other: (&'a str, &'a Value),
}

impl Comparison {
    /// The figure that answers which result is faster: ops/s, unless a schedule sets the rate of a result.
    pub(super) fn main_metric(&self) -> Metric {
        if self.load_axis.is_some() {
            return Metric::Peak;
        }
        let mut rates = self.rows.iter().filter(|r| {
            r.metric == Metric::OpsPerS && (r.operation == super::ALL || !self.has_total)
        });
        let is_measured = |row: &Row| {
            let mut values = row.values.iter().skip(1).flatten();
            values.all(|v| v.statement != ChangeVerdict::Offered)
        };
        match rates.next().is_some_and(is_measured) && rates.all(is_measured) {
            true => Metric::OpsPerS,
            false => Metric::MeanMs,
        }
    }

    /// A sentence for each further result: how much faster or slower the result is than the first, or why there is no
    /// statement.
    pub(super) fn headlines(&self) -> Vec<Block> {
        let metric = self.main_metric();
        let rows = || self.rows.iter().filter(move |r| r.metric == metric);
        let sentence = |i: usize| match (self.has_total, rows().next()) {
            (false, _) => self.of_configurations(metric, i),
            (true, Some(row)) if row.operation == super::ALL => self.of_total(row, i),
            (true, _) => (format!("no result has {}", metric.title()), Tone::Doubtful),
        };
        let line = |(text, tone)| {
            Block::Line(Line {
                text,
                tone,
                ..Line::default()
            })
        };
        (1..self.sets.len()).map(|i| line(sentence(i))).collect()
    }

    /// Headline on all operations together, or on the highest valid load of a curve.
    fn of_total(&self, row: &Row, i: usize) -> (String, Tone) {
        let without = |label: &str| {
            let figure = row.metric.title();
            (
                format!("no statement: {label} has no {figure}"),
                Tone::Doubtful,
            )
        };
        let labels = (self.labels[0].as_str(), self.labels[i].as_str());
        let (Some(first), Some(other)) = (&row.values[0], &row.values[i]) else {
            let is_first = row.values[0].is_none();
            return without(if is_first { labels.0 } else { labels.1 });
        };
        let pair = Pair {
            metric: row.metric,
            first: (labels.0, first),
            other: (labels.1, other),
        };
        match self.load_axis {
            None => pair.sentence(),
            Some(_) => (pair.of_curves(), Tone::Plain),
        }
    }

    /// Headline on all configurations of a profile.
    fn of_configurations(&self, metric: Metric, i: usize) -> (String, Tone) {
        let (figure, first, other) = (metric.title(), &self.labels[0], &self.labels[i]);
        let rows = self.rows.iter().filter(|r| r.metric == metric);
        let values: Vec<&Value> = rows.filter_map(|r| r.values[i].as_ref()).collect();
        let all = counted(values.len() as u64, "configuration", "configurations");
        let real = |is_more: bool| {
            let real = values.iter().filter(|v| v.statement == ChangeVerdict::Real);
            real.filter(|v| (v.change.unwrap_or_default() > 0.0) == is_more)
                .count()
        };
        let (more, less) = (real(true), real(false));
        let mut untested = values.iter().map(|v| v.statement);
        let untested =
            untested.find(|s| !matches!(s, ChangeVerdict::NotShown | ChangeVerdict::Same));
        if more + less > 0 {
            let text = format!(
                "{figure} of {other} is higher than that of {first} in {more} and lower in {less} of {all} (real)"
            );
            return (text, Tone::Plain);
        }
        match untested {
            None => {
                let text = format!(
                    "no difference of {figure} between {first} and {other} is more than chance, in {all}"
                );
                (text, Tone::Plain)
            }
            Some(statement) => {
                let why = statement.words();
                let text = format!("no statement on {figure} of {other} and {first}: {why}");
                (text, Tone::Doubtful)
            }
        }
    }
}

impl Pair<'_> {
    /// Both figures, such as `1 204 → 1 350`.
    fn figures(&self) -> String {
        let [first, other] = [self.first.1, self.other.1]
            .map(|v| marked(&self.metric.show(v.mean), v.at_least, v.enough_samples));
        format!("{first} → {other}")
    }

    /// The change in words, such as `12 % higher than that of before`; `None` from zero.
    fn change(&self, more: &str, less: &str, than: &str, times: &str) -> Option<String> {
        let change = self.other.1.change.filter(|c| c.is_finite())?;
        let percent = precise_percent(change.abs());
        Some(match change {
            c if c >= 1.0 => format!("{:.1} times {times}", 1.0 + c),
            c if c >= 0.0 => format!("{percent} {more} than {than}"),
            _ => format!("{percent} {less} than {than}"),
        })
    }

    /// The ratio of the figures in words, such as `after is 12 % faster than before`.
    fn verdict(&self) -> String {
        let ((first, _), (other, _)) = (self.first, self.other);
        let title = self.metric.title();
        let (subject, change) = match self.metric {
            Metric::OpsPerS => {
                let times = format!("as fast as {first}");
                (
                    other.to_owned(),
                    self.change("faster", "slower", first, &times),
                )
            }
            _ => {
                let that = format!("that of {first}");
                let change = self.change("higher", "lower", &that, &that);
                (format!("{title} of {other}"), change)
            }
        };
        match change {
            Some(change) => format!("{subject} is {change}"),
            None => format!("{title} of {other} rises from zero"),
        }
    }

    /// Headline on a figure of runs.
    fn sentence(&self) -> (String, Tone) {
        let (title, figures) = (self.metric.title(), self.figures());
        let ((first, _), (other, value)) = (self.first, self.other);
        let change = value
            .change
            .map_or_else(String::new, |c| format!(", {}", percent(c)));
        match value.statement {
            ChangeVerdict::Real => {
                let of = match self.metric {
                    Metric::OpsPerS => format!("{title} "),
                    _ => String::new(),
                };
                let is_more = value.change.unwrap_or_default() > 0.0;
                let tone = match is_more == self.metric.more_is_better() {
                    true => Tone::Good,
                    false => Tone::Bad,
                };
                (format!("{} ({of}{figures}, real)", self.verdict()), tone)
            }
            ChangeVerdict::NotShown => {
                let text = format!(
                    "no difference of {title} between {first} and {other} is more than chance ({figures}{change})"
                );
                (text, Tone::Plain)
            }
            ChangeVerdict::Same => {
                let text = format!(
                    "no difference of {title} between {first} and {other} in any run ({figures})"
                );
                (text, Tone::Plain)
            }
            statement => {
                let why = statement.words();
                let text = format!(
                    "no statement on the difference of {title} between {first} and {other} ({figures}{change}): {why}"
                );
                (text, Tone::Doubtful)
            }
        }
    }

    /// Headline on the highest valid load of curves, which are not tested.
    fn of_curves(&self) -> String {
        let ((first, base), (other, value)) = (self.first, self.other);
        match base.mean == value.mean {
            true => format!(
                "{} of {first} and {other} is the same: {}",
                self.metric.title(),
                self.metric.show(base.mean)
            ),
            false => format!("{} ({}, not tested)", self.verdict(), self.figures()),
        }
    }
}
