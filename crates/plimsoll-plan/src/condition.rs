//! Conditions on the figures of a run, such as `p99 <= 5ms`, and promises, which are conditions that a run must meet.

use crate::percentile::Percentile;
use crate::{OpKind, Plan, parse_duration, show_exactly};
use plimsoll_diagnostics::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// List of the figures of conditions, for error messages.
pub const FIGURE_HELP: &str = "ops/s, MiB/s, mean, a percentile such as p99 or p99.9, service mean, service p99 and \
                               other percentiles of the service time, cpu, errors, stalled, client, queue growth";

/// Figure that a condition limits: of one operation, of all operations together, or of the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Successful operations per second.
    OpsPerS,
    /// Moved MiB per second.
    MibPerS,
    /// Mean latency: response time of paced operations, service time of other operations.
    Mean,
    /// Percentile of the latency.
    Percentile(Percentile),
    /// Mean service time.
    ServiceMean,
    /// Percentile of the service time.
    ServicePercentile(Percentile),
    /// Processor time of the client per operation.
    Cpu,
    /// Number of failed operations.
    Errors,
    /// Number of failed operations, as a fraction of the number of successful and failed operations.
    ErrorShare,
    /// Fraction of the measured window in which the target stalled.
    Stalled,
    /// Processor time that the client used, as a fraction of the processor time that the client may use.
    Client,
    /// Growth of the queue: the increase, over the measured window, of the time by which the processes of a mix are
    /// behind their schedules.
    QueueGrowth,
}

/// Quantity that a figure measures, which decides the unit of a condition's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A number without a unit.
    Number,
    /// A time; values are in seconds.
    Time,
    /// A fraction, which is written in percent; values are 1 for 100 %.
    Share,
}

/// Figures other than percentiles, each with its name in conditions.
const NAMED_FIGURES: [(Figure, &str); 9] = [
    (Figure::OpsPerS, "ops/s"),
    (Figure::MibPerS, "MiB/s"),
    (Figure::Mean, "mean"),
    (Figure::ServiceMean, "service mean"),
    (Figure::Cpu, "cpu"),
    (Figure::Errors, "errors"),
    (Figure::Stalled, "stalled"),
    (Figure::Client, "client"),
    (Figure::QueueGrowth, "queue growth"),
];

impl Figure {
    /// The figure with a name in conditions; `None` for other names. The limit of a condition decides whether `errors`
    /// is a number or a fraction.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let percentile = |text: &str| -> Option<Percentile> {
            let number = text.strip_prefix('p')?;
            let is_number = number.starts_with(|c: char| c.is_ascii_digit());
            number.parse().ok().filter(|_| is_number)
        };
        let named = NAMED_FIGURES.iter().find(|(_, known)| *known == name);
        if let Some((figure, _)) = named {
            return Some(*figure);
        }
        match name.strip_prefix("service ") {
            Some(rest) => percentile(rest.trim()).map(Self::ServicePercentile),
            None => percentile(name).map(Self::Percentile),
        }
    }

    /// Quantity of the figure.
    #[must_use]
    pub fn quantity(self) -> Quantity {
        match self {
            Self::OpsPerS | Self::MibPerS | Self::Errors => Quantity::Number,
            Self::Mean
            | Self::Percentile(_)
            | Self::ServiceMean
            | Self::ServicePercentile(_)
            | Self::Cpu
            | Self::QueueGrowth => Quantity::Time,
            Self::ErrorShare | Self::Stalled | Self::Client => Quantity::Share,
        }
    }

    /// Percentile of the figure; `None` for other figures.
    #[must_use]
    pub fn percentile(self) -> Option<Percentile> {
        match self {
            Self::Percentile(p) | Self::ServicePercentile(p) => Some(p),
            _ => None,
        }
    }

    /// Whether single operations have the figure. Other figures describe the whole run.
    #[must_use]
    pub fn is_of_operations(self) -> bool {
        !matches!(self, Self::Stalled | Self::Client | Self::QueueGrowth)
    }

    /// Phrase on a measured value of the figure, such as `p99 was`.
    #[must_use]
    pub fn was(self) -> String {
        match self {
            Self::OpsPerS | Self::MibPerS | Self::Errors | Self::ErrorShare => {
                format!("{self} were")
            }
            Self::Stalled => "the target stalled for".into(),
            Self::Client => "the client used".into(),
            Self::Cpu => "the processor time per operation was".into(),
            Self::QueueGrowth => "the queue grew by".into(),
            _ => format!("{self} was"),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percentile(p) => f.pad(&p.to_string()),
            Self::ServicePercentile(p) => f.pad(&format!("service {p}")),
            Self::ErrorShare => f.pad("errors"),
            _ => {
                let named = NAMED_FIGURES.iter().find(|(figure, _)| figure == self);
                f.pad(named.expect("every figure but percentiles has a name").1)
            }
        }
    }
}

/// Relation of a figure to the limit of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// The figure is below the limit.
    Less,
    /// The figure is at most the limit.
    AtMost,
    /// The figure is above the limit.
    More,
    /// The figure is at least the limit.
    AtLeast,
}

impl Relation {
    /// Whether `value` has the relation to `limit`.
    #[must_use]
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Less => value < limit,
            Self::AtMost => value <= limit,
            Self::More => value > limit,
            Self::AtLeast => value >= limit,
        }
    }

    /// Whether greater values meet the relation.
    #[must_use]
    pub fn wants_more(self) -> bool {
        matches!(self, Self::More | Self::AtLeast)
    }

    fn opposite(self) -> Self {
        match self {
            Self::Less => Self::AtLeast,
            Self::AtMost => Self::More,
            Self::More => Self::AtMost,
            Self::AtLeast => Self::Less,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
        }
    }
}

/// Parts of a text such as `read1:p99 > 5ms`, whose figure and limit are not interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionParts<'a> {
    /// Name of the operation before the colon; `None` for all operations together.
    pub operation: Option<&'a str>,
    /// Name of the figure.
    pub figure: &'a str,
    /// Relation of the figure to the limit.
    pub relation: Relation,
    /// Text after the relation, without blanks around it.
    pub limit: &'a str,
}

impl<'a> ConditionParts<'a> {
    /// Splits a condition.
    ///
    /// # Errors
    /// A phrase that states what is missing.
    pub fn of(text: &'a str) -> Result<Self, &'static str> {
        // The last sign is the relation: names of operations may contain `<` and `>`, figures and numbers cannot.
        let at = text
            .rfind(['<', '>'])
            .ok_or("expected `<`, `<=`, `>` or `>=`")?;
        let (what, rest) = (text[..at].trim(), &text[at..]);
        let (relation, limit) = match (rest.strip_prefix("<="), rest.strip_prefix(">=")) {
            (Some(limit), _) => (Relation::AtMost, limit),
            (_, Some(limit)) => (Relation::AtLeast, limit),
            _ if rest.starts_with('<') => (Relation::Less, &rest[1..]),
            _ => (Relation::More, &rest[1..]),
        };
        let (operation, figure) = match what.rsplit_once(':') {
            Some((operation, figure)) => (Some(operation.trim()), figure.trim()),
            None => (None, what),
        };
        if operation == Some("") {
            return Err("expected the name of an operation before `:`");
        }
        Ok(Self {
            operation,
            figure,
            relation,
            limit: limit.trim(),
        })
    }
}

/// A condition on a figure of a run, such as `p99 <= 5ms` or `write_file:errors < 0.1%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// Name of the operation; `None` for all operations together.
    pub operation: Option<String>,
    /// Figure that the condition limits.
    pub figure: Figure,
    /// Relation of the figure to the limit.
    pub relation: Relation,
    /// Limit in the unit of the figure's quantity: a number, seconds, or a fraction.
    pub limit: f64,
}

/// Error on a text that is not a condition: one sentence that contains the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotACondition(String);

impl FromStr for Condition {
    type Err = NotACondition;

    fn from_str(text: &str) -> Result<Self, NotACondition> {
        let wrong = |expected: &str| {
            NotACondition(format!(
                "{expected} in `{text}`; a condition is like 'p99 > 5ms' or 'write1:errors > 0.1%'"
            ))
        };
        let parts = ConditionParts::of(text).map_err(wrong)?;
        let name = parts.figure;
        let figure = Figure::of_name(name).ok_or_else(|| {
            wrong(&format!(
                "`{name}` is not a figure: expected one of {FIGURE_HELP}"
            ))
        })?;
        let figure = match figure {
            Figure::Errors if parts.limit.ends_with('%') => Figure::ErrorShare,
            figure => figure,
        };
        if parts.operation.is_some() && !figure.is_of_operations() {
            return Err(wrong(&format!(
                "`{figure}` is a figure of the whole run and not of an operation"
            )));
        }
        let limit = limit_of(figure, parts.limit).map_err(|e| wrong(&e))?;
        Ok(Self {
            operation: parts.operation.map(str::to_owned),
            figure,
            relation: parts.relation,
            limit,
        })
    }
}

/// Parses the limit of a condition in the unit of the figure's quantity.
fn limit_of(figure: Figure, text: &str) -> Result<f64, String> {
    let number = |text: &str| {
        let number = text.trim().parse().ok();
        number.filter(|n: &f64| n.is_finite() && *n >= 0.0)
    };
    match figure.quantity() {
        Quantity::Number => {
            number(text).ok_or_else(|| format!("`{text}` is not a number of at least 0"))
        }
        Quantity::Share => {
            let percent = text.strip_suffix('%').and_then(number);
            let percent = percent.filter(|p| *p <= 100.0).ok_or_else(|| {
                format!("`{text}` is not a percentage: {figure} has a limit such as 5%")
            })?;
            Ok(percent / 100.0)
        }
        Quantity::Time => {
            let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
            let time = parse_duration(text).ok().filter(|_| has_unit);
            let time = time.ok_or_else(|| {
                format!("`{text}` is not a time: {figure} has a limit such as 5ms or 1.5s")
            })?;
            Ok(time.as_secs_f64())
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = &self.operation {
            write!(f, "{operation}:")?;
        }
        let limit = match self.figure.quantity() {
            Quantity::Number => self.limit.to_string(),
            // Rounded to nanoseconds, as times are read.
            Quantity::Time => show_exactly(Duration::from_secs_f64(self.limit)),
            Quantity::Share => format!("{}%", (self.limit * 1e14).round() / 1e12),
        };
        write!(f, "{} {} {limit}", self.figure, self.relation.sign())
    }
}

impl Condition {
    /// The condition that holds exactly if this condition does not hold.
    #[must_use]
    pub fn opposite(&self) -> Self {
        Self {
            relation: self.relation.opposite(),
            ..self.clone()
        }
    }

    /// Whether a value of the figure meets the condition.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        self.relation.holds(value, self.limit)
    }

    /// Distance of a value from the limit, as a fraction of the limit: positive if the value meets the condition, and
    /// negative if not. `None` for a limit of 0.
    #[must_use]
    pub fn margin(&self, value: f64) -> Option<f64> {
        let distance = (self.limit - value) / self.limit;
        let margin = if self.relation.wants_more() {
            -distance
        } else {
            distance
        };
        Some(margin).filter(|m| m.is_finite())
    }

    /// Formats a measured value of the figure as tables do, with three significant digits and the unit. The text has
    /// more digits if three digits would change the side of the limit on which the value is.
    #[must_use]
    pub fn show_measured(&self, value: f64) -> String {
        let (scale, unit) = match self.figure.quantity() {
            Quantity::Number => (1.0, ""),
            Quantity::Share => (100.0, " %"),
            Quantity::Time => match value.abs() {
                0.0 => (1.0, " s"),
                s if s < 999.5e-9 => (1e9, " ns"),
                s if s < 999.5e-6 => (1e6, " µs"),
                s if s < 999.5e-3 => (1e3, " ms"),
                _ => (1.0, " s"),
            },
        };
        // The sum -0.0 + 0.0 is 0.0, so that no minus sign is shown.
        let scaled = value * scale + 0.0;
        let keeps_side = |text: &String| {
            let shown = text.parse::<f64>().expect("the text is a decimal number");
            self.holds(shown / scale) == self.holds(value)
        };
        // The integer part of a scaled time has at most three digits; a double has at most 17 significant digits.
        let decimals = match scaled.abs() {
            whole if whole.fract() == 0.0 => 0,
            v if v < 9.995 => 2,
            v if v < 99.95 => 1,
            _ => 0,
        };
        let text = (decimals..17)
            .map(|decimals| format!("{scaled:.decimals$}"))
            .find(keeps_side)
            .unwrap_or_else(|| scaled.to_string());
        format!("{text}{unit}")
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Condition {
    fn schema_name() -> Cow<'static, str> {
        "Condition".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A condition on a figure of a run: [OPERATION:]FIGURE, then <, <=, > or >=, and a limit with \
                            the figure's unit, such as `p99 <= 5ms`.",
            "type": "string"
        })
    }
}

/// Promise: a condition that a run must meet; a run that does not meet a promise is invalid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Promise {
    /// Name of the promise in reports; by default, reports show the condition alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Condition that a run meets if the run keeps the promise, such as `p99 <= 5ms`.
    pub condition: Condition,
}

impl Promise {
    /// Code of the reason that makes a run with a broken promise invalid.
    pub const BROKEN: &str = "promise_broken";
}

impl From<Condition> for Promise {
    fn from(condition: Condition) -> Self {
        Self {
            name: String::new(),
            condition,
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            write!(f, "{}", self.condition)
        } else {
            write!(f, "{}: {}", self.name, self.condition)
        }
    }
}

impl Plan {
    /// Checks that the results of the Plan's runs have the figure and the operation of a condition.
    ///
    /// # Errors
    /// A sentence that names the condition; for an unknown operation, also a similar operation or all operations.
    pub fn check_condition(&self, condition: &Condition) -> Result<(), String> {
        if condition.figure == Figure::QueueGrowth && !self.has_paced_mix() {
            return Err(format!(
                "`{condition}`: only an operation mix with a rate has a queue whose growth is measured"
            ));
        }
        let Some(operation) = &condition.operation else {
            return Ok(());
        };
        let is_shown = |kind: OpKind| {
            kind.is_of_workload() && !matches!(kind, OpKind::Prepare | OpKind::Start)
        };
        let shown = self.operations.iter().filter(|o| is_shown(o.kind));
        let names: Vec<&str> = shown.map(|o| o.name.as_str()).collect();
        if names.contains(&operation.as_str()) {
            return Ok(());
        }
        let hint = match nearest(operation, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is {}", names.join(", ")),
        };
        Err(format!(
            "`{condition}`: the workload has no operation `{operation}`: {hint}"
        ))
    }

    fn has_paced_mix(&self) -> bool {
        let mut mixes = self.groups.iter().filter_map(|g| g.program.mix());
        mixes.any(|mix| mix.pacing.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn condition(text: &str) -> Condition {
        text.parse().unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn conditions_have_a_figure_and_a_limit_in_its_unit() {
        let p99 = Figure::Percentile(Percentile::P99);
        for (text, operation, figure, relation, limit, shown) in [
            ("p99 > 5ms", None, p99, Relation::More, 0.005, "p99 > 5ms"),
            ("p99<=1.5s", None, p99, Relation::AtMost, 1.5, "p99 <= 1.5s"),
            (
                " write_file : service p99.9 >= 250us ",
                Some("write_file"),
                Figure::ServicePercentile(Percentile::P999),
                Relation::AtLeast,
                0.000_25,
                "write_file:service p99.9 >= 250us",
            ),
            (
                "a<b>c:d:errors > 0",
                Some("a<b>c:d"),
                Figure::Errors,
                Relation::More,
                0.0,
                "a<b>c:d:errors > 0",
            ),
            (
                "errors > 0.1%",
                None,
                Figure::ErrorShare,
                Relation::More,
                0.001,
                "errors > 0.1%",
            ),
            (
                "stalled < 5 %",
                None,
                Figure::Stalled,
                Relation::Less,
                0.05,
                "stalled < 5%",
            ),
            (
                "ops/s < 1000",
                None,
                Figure::OpsPerS,
                Relation::Less,
                1000.0,
                "ops/s < 1000",
            ),
            (
                "queue growth > 20ms",
                None,
                Figure::QueueGrowth,
                Relation::More,
                0.02,
                "queue growth > 20ms",
            ),
        ] {
            let read = condition(text);
            let expected = Condition {
                operation: operation.map(str::to_owned),
                figure,
                relation,
                limit,
            };
            assert_eq!(read, expected, "{text}");
            assert_eq!(read.to_string(), shown);
            assert_eq!(condition(shown), read);
        }
    }

    #[test]
    fn a_wrong_condition_is_refused_with_what_was_expected() {
        for (text, expected) in [
            ("p99 5ms", "expected `<`, `<=`, `>` or `>=` in `p99 5ms`"),
            ("p99 > 5", "`5` is not a time: p99 has a limit such as 5ms"),
            ("p99 > +10%", "`+10%` is not a time"),
            ("p99 > -1ms", "`-1ms` is not a time"),
            (
                "speed > 5",
                "`speed` is not a figure: expected one of ops/s, MiB/s",
            ),
            ("p101 > 5ms", "`p101` is not a figure"),
            ("pp99 > 5ms", "`pp99` is not a figure"),
            ("errors > x", "`x` is not a number of at least 0"),
            ("errors > x%", "`x%` is not a percentage"),
            ("errors > 100.1%", "`100.1%` is not a percentage"),
            ("ops/s > inf", "`inf` is not a number"),
            (
                "client > 0.5",
                "`0.5` is not a percentage: client has a limit such as 5%",
            ),
            (":p99 > 5ms", "expected the name of an operation before `:`"),
            (
                "read1:stalled > 5%",
                "`stalled` is a figure of the whole run",
            ),
            ("ops/s > 1 > 2", "`ops/s > 1` is not a figure"),
        ] {
            let error = text.parse::<Condition>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(error.contains("a condition is like"), "{error}");
        }
    }

    #[test]
    fn the_opposite_holds_exactly_where_the_condition_does_not() {
        for sign in ["<", "<=", ">", ">="] {
            let condition = condition(&format!("ops/s {sign} 10"));
            for value in [9.9, 10.0, 10.1] {
                assert_ne!(condition.holds(value), condition.opposite().holds(value));
            }
            assert_eq!(condition.opposite().opposite(), condition);
        }
        assert!(condition("ops/s <= 10").holds(10.0) && !condition("ops/s < 10").holds(10.0));
        assert!(condition("ops/s >= 10").holds(10.0) && !condition("ops/s > 10").holds(10.0));
    }

    #[test]
    fn a_margin_is_the_distance_from_the_limit_as_a_fraction() {
        let margin = |text: &str, value| condition(text).margin(value);
        assert_eq!(margin("p99 <= 4s", 3.0), Some(0.25));
        assert_eq!(margin("p99 <= 4s", 5.0), Some(-0.25));
        assert_eq!(margin("ops/s >= 200", 150.0), Some(-0.25));
        assert_eq!(margin("ops/s >= 200", 250.0), Some(0.25));
        assert_eq!(margin("errors <= 0", 3.0), None);
        assert_eq!(margin("errors <= 0", 0.0), None);
    }

    #[test]
    fn a_condition_on_an_unknown_operation_gets_a_suggestion() {
        let mut plan = Plan::empty("w");
        plan.add_row("write_file", OpKind::Write, None);
        plan.add_row("READ", OpKind::Rpc, None);
        let check = |text: &str| plan.check_condition(&condition(text));
        assert_eq!(check("write_file:p99 > 5ms"), Ok(()));
        assert_eq!(check("p99 > 5ms"), Ok(()));
        let expected = "`writefile:p99 > 5ms`: the workload has no operation `writefile`: did you mean `write_file`?";
        assert_eq!(check("writefile:p99 > 5ms"), Err(expected.into()));
        let expected =
            "`READ:p99 > 5ms`: the workload has no operation `READ`: there is write_file";
        assert_eq!(check("READ:p99 > 5ms"), Err(expected.into()));
        let queue = check("queue growth > 1s").unwrap_err();
        assert!(
            queue.contains("only an operation mix with a rate"),
            "{queue}"
        );
    }

    #[test]
    fn measured_values_have_three_digits_unless_the_limit_needs_more() {
        let shown = |condition: &str, value| {
            let condition: Condition = condition.parse().expect("the condition is valid");
            condition.show_measured(value)
        };
        for (seconds, expected) in [
            (0.0, "0 s"),
            (120e-9, "120 ns"),
            (546.815e-6, "547 µs"),
            (0.007_123, "7.12 ms"),
            (0.999_6, "1.00 s"),
            (12.0, "12 s"),
        ] {
            assert_eq!(shown("p99 < 20s", seconds), expected);
        }
        assert_eq!(shown("queue growth < 1s", -0.25), "-250 ms");
        assert_eq!(shown("errors < 1%", 0.001_254), "0.13 %");
        assert_eq!(shown("ops/s > 10", 1234.5), "1234");
        // With three digits, a broken promise would look kept.
        assert_eq!(shown("p99 <= 5ms", 0.005_000_4), "5.0004 ms");
        assert_eq!(shown("ops/s >= 1000", 999.96), "999.96");
        assert_eq!(shown("ops/s > 1000", 1000.0), "1000");
    }

    proptest! {
        #[test]
        fn conditions_survive_their_text(
            figure in 0usize..5, nanos in 0u64..1 << 50, sign in 0usize..4,
        ) {
            let figure = ["ops/s", "p99.99", "errors", "stalled", "service mean"][figure];
            let sign = ["<", "<=", ">", ">="][sign];
            let limit = match Figure::of_name(figure).unwrap().quantity() {
                Quantity::Number => (nanos as f64 / 1e3).to_string(),
                Quantity::Time => show_exactly(Duration::from_nanos(nanos)),
                Quantity::Share => format!("{}%", nanos as f64 / 1e14),
            };
            let read = condition(&format!("{figure} {sign} {limit}"));
            let again = condition(&read.to_string());
            prop_assert_eq!(again.to_string(), read.to_string());
            let off = (again.limit - read.limit).abs();
            prop_assert!(off <= read.limit * 1e-9 + 1e-9, "{} {}", read, again);
        }
    }
}
