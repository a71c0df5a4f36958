//! Rules that find the end of a warm-up in the rate of operations.

use crate::units::{parse_duration, parse_percent, seconds, show_duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Rule that ends a warm-up when the rate of operations has become steady.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyRule {
    /// Marginal standard error rule: the mean of the rates without the first `d` rates has its smallest standard error
    /// for a `d` up to a quarter of all rates, and the other rates have no trend. K. P. White: An effective truncation
    /// heuristic for bias reduction in simulation output (1997).
    #[default]
    Mser,
    /// SNIA's rule: in the latest five rounds, the rates differ by at most 20 % of their mean, and the line of best fit
    /// rises or falls by at most 10 % of the mean. SNIA: Solid State Storage Performance Test Specification 2.0.1,
    /// definition of steady state.
    Snia {
        /// Length of a round in seconds.
        #[serde(with = "seconds", rename = "round_s")]
        #[schemars(with = "f64", rename = "round_s")]
        round: Duration,
    },
    /// The line of best fit through the rates of each second rises or falls by less than a limit per second, as fio's
    /// `iops_slope`.
    Slope {
        /// Limit in percent of the mean rate per second.
        percent: f64,
        /// Length of the latest part of the warm-up that is judged, in seconds.
        #[serde(with = "seconds", rename = "over_s")]
        #[schemars(with = "f64", rename = "over_s")]
        over: Duration,
    },
    /// Every rate of a second differs from the mean rate by at most a limit, as fio's `iops`.
    Deviation {
        /// Limit in percent of the mean rate.
        percent: f64,
        /// Length of the latest part of the warm-up that is judged, in seconds.
        #[serde(with = "seconds", rename = "over_s")]
        #[schemars(with = "f64", rename = "over_s")]
        over: Duration,
    },
}

/// Length of a round of SNIA's rule, as in the specification.
const SNIA_ROUND: Duration = Duration::from_secs(60);

/// Default length of the part of the warm-up that the rules of fio judge.
const DEFAULT_OVER: Duration = Duration::from_secs(30);

/// Minimum length of a round.
const MIN_ROUND: Duration = Duration::from_millis(100);

impl SteadyRule {
    /// Minimum length of the part of the warm-up that the rules of fio judge: three rates of a second.
    pub const MIN_OVER: Duration = Duration::from_secs(3);
}

impl FromStr for SteadyRule {
    type Err = String;

    /// Parses `mser`, `snia`, `snia=10s`, `slope=0.3%`, `slope=0.3%/30s`, `deviation=5%` or `deviation=5%/30s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        match (name, value) {
            ("mser", None) => Ok(Self::Mser),
            ("snia", None) => Ok(Self::Snia { round: SNIA_ROUND }),
            ("snia", Some(round)) => {
                let round = time_from("a round", round, MIN_ROUND)?;
                Ok(Self::Snia { round })
            }
            ("slope", Some(value)) => {
                limit(value).map(|(percent, over)| Self::Slope { percent, over })
            }
            ("deviation", Some(value)) => {
                limit(value).map(|(percent, over)| Self::Deviation { percent, over })
            }
            _ => Err(format!(
                "`{text}` is not a rule: expected mser, snia, snia=10s, slope=0.3%/30s or deviation=5%/30s"
            )),
        }
    }
}

/// Parses a limit such as `0.3%` or `0.3%/30s`.
fn limit(text: &str) -> Result<(f64, Duration), String> {
    let (percent, over) = match text.split_once('/') {
        Some((percent, over)) => {
            let least = SteadyRule::MIN_OVER;
            let over = time_from("the judged part of the warm-up", over, least)?;
            (percent, over)
        }
        None => (text, DEFAULT_OVER),
    };
    Ok((parse_percent(percent)?, over))
}

fn time_from(what: &str, text: &str, least: Duration) -> Result<Duration, String> {
    match parse_duration(text)? {
        time if time >= least => Ok(time),
        _ => Err(format!(
            "{what} has at least {}, and `{text}` is shorter",
            show_duration(least)
        )),
    }
}

impl fmt::Display for SteadyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mser => f.write_str("mser"),
            Self::Snia { round } => write!(f, "snia={}", show_duration(*round)),
            Self::Slope { percent, over } => {
                write!(f, "slope={percent}%/{}", show_duration(*over))
            }
            Self::Deviation { percent, over } => {
                write!(f, "deviation={percent}%/{}", show_duration(*over))
            }
        }
    }
}

/// Warm-up before a measured window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    /// Warm-up of a fixed length in seconds.
    Fixed(
        #[serde(with = "seconds")]
        #[schemars(with = "f64")]
        Duration,
    ),
    /// Warm-up that ends when a rule finds the rate steady, but at the latest after `at_most`.
    Steady {
        /// Rule that ends the warm-up.
        rule: SteadyRule,
        /// Maximum length of the warm-up in seconds.
        #[serde(with = "seconds", rename = "at_most_s")]
        #[schemars(with = "f64", rename = "at_most_s")]
        at_most: Duration,
    },
}

impl Warmup {
    /// Whether the warm-up has no length.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self == Self::Fixed(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_they_are_read() {
        for text in [
            "mser",
            "snia=1m",
            "snia=100ms",
            "slope=0.3%/30s",
            "deviation=5%/3s",
        ] {
            let rule: SteadyRule = text.parse().unwrap();
            assert_eq!(rule.to_string(), text);
            let json = serde_json::to_string(&rule).unwrap();
            assert_eq!(serde_json::from_str::<SteadyRule>(&json).unwrap(), rule);
        }
        assert_eq!("snia".parse(), Ok(SteadyRule::Snia { round: SNIA_ROUND }));
        let over = DEFAULT_OVER;
        let slope = SteadyRule::Slope { percent: 2.0, over };
        assert_eq!("slope=2%".parse(), Ok(slope));
    }

    #[test]
    fn wrong_rules_are_refused_with_what_was_expected() {
        for (text, expected) in [
            ("", "expected mser, snia"),
            ("mser=3", "expected mser, snia"),
            ("slope", "slope=0.3%/30s"),
            ("slope=3", "percentage above 0"),
            ("deviation=0%", "percentage above 0"),
            ("deviation=100%", "percentage above 0"),
            ("deviation=5%/2s", "at least 3s"),
            ("snia=10ms", "at least 100ms"),
            ("snia=soon", "soon"),
        ] {
            let said = text.parse::<SteadyRule>().unwrap_err();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }
}
