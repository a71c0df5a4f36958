//! Rules that end a curve before its last load.

use plimsoll_measure::curve::{Point, PointVerdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Rules that end a curve before its last load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopRules {
    /// Number of consecutive invalid points after which the curve ends; null: never.
    pub stop_after_invalid: Option<u32>,
    /// Whether the curve ends when an invalid point achieves less than the point before it.
    pub stop_past_peak: bool,
}

impl Default for StopRules {
    /// Two invalid points in a row, or an invalid point that achieved less than the point before.
    fn default() -> Self {
        Self {
            stop_after_invalid: Some(2),
            stop_past_peak: true,
        }
    }
}

/// Reasons why a curve ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "rule")]
pub enum CurveEnd {
    /// Every load was measured.
    AllMeasured,
    /// Consecutive points were invalid.
    ConsecutiveInvalid {
        /// Number of points.
        points: u32,
        /// Load of the last of them.
        load: f64,
    },
    /// A higher load was invalid and achieved less.
    PastPeak {
        /// The load that did.
        load: f64,
        /// Operations per second that it achieved.
        achieved_ops_per_s: f64,
        /// Load of the point before.
        before_load: f64,
        /// Operations per second that the point before achieved.
        before_achieved_ops_per_s: f64,
    },
}

impl CurveEnd {
    /// Code for programs, the tag of the JSON form: `all_measured`, `consecutive_invalid` or `past_peak`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::AllMeasured => "all_measured",
            Self::ConsecutiveInvalid { .. } => "consecutive_invalid",
            Self::PastPeak { .. } => "past_peak",
        }
    }
}

impl fmt::Display for CurveEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllMeasured => f.write_str("every load was measured"),
            Self::ConsecutiveInvalid { points: 1, load } => write!(f, "load {load} was invalid"),
            Self::ConsecutiveInvalid { points, load } => {
                write!(
                    f,
                    "{points} invalid points in a row, the last at load {load}"
                )
            }
            Self::PastPeak {
                load,
                achieved_ops_per_s: achieved,
                before_load,
                before_achieved_ops_per_s: before_achieved,
            } => write!(
                f,
                "load {load} was invalid and achieved {achieved:.0} ops/s, less than load \
                 {before_load} with {before_achieved:.0}"
            ),
        }
    }
}

impl StopRules {
    /// The reason why a curve ends after `points`, which are in increasing order of load; `None` to continue.
    /// Consecutive invalid points are checked before a past peak.
    #[must_use]
    pub fn stop(&self, points: &[Point]) -> Option<CurveEnd> {
        let (last, before) = points.split_last()?;
        let invalid = |p: &&Point| p.verdict == PointVerdict::Invalid;
        let in_a_row = points.iter().rev().take_while(invalid).count();
        if let Some(most) = self.stop_after_invalid
            && in_a_row >= most.max(1) as usize
        {
            return Some(CurveEnd::ConsecutiveInvalid {
                points: u32::try_from(in_a_row).unwrap_or(u32::MAX),
                load: last.load,
            });
        }
        // A valid point may achieve slightly less by chance, so only an invalid point counts.
        let before = before.last()?;
        let fell = self.stop_past_peak && invalid(&last) && last.achieved < before.achieved;
        fell.then_some(CurveEnd::PastPeak {
            load: last.load,
            achieved_ops_per_s: last.achieved,
            before_load: before.load,
            before_achieved_ops_per_s: before.achieved,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PointVerdict::{Invalid, Valid};

    fn points(of: &[(f64, PointVerdict)]) -> Vec<Point> {
        let point = |(i, (achieved, verdict)): (usize, &(f64, PointVerdict))| Point {
            load: (i + 1) as f64,
            achieved: *achieved,
            latency_ms: 1.0,
            verdict: *verdict,
        };
        of.iter().enumerate().map(point).collect()
    }

    #[test]
    fn one_invalid_point_is_passed_two_in_a_row_are_not() {
        let rules = StopRules::default();
        assert_eq!(rules.stop(&[]), None);
        assert_eq!(rules.stop(&points(&[(10.0, Valid), (20.0, Invalid)])), None);
        let mixed = [(10.0, Invalid), (20.0, Valid), (30.0, Invalid)];
        assert_eq!(rules.stop(&points(&mixed)), None);
        let two = points(&[(10.0, Valid), (20.0, Invalid), (20.0, Invalid)]);
        let end = rules.stop(&two).unwrap();
        assert_eq!(
            end,
            CurveEnd::ConsecutiveInvalid {
                points: 2,
                load: 3.0
            }
        );
        assert_eq!(
            end.to_string(),
            "2 invalid points in a row, the last at load 3"
        );
        let patient = StopRules {
            stop_after_invalid: Some(3),
            ..rules
        };
        assert_eq!(patient.stop(&two), None);
        let never = StopRules {
            stop_after_invalid: None,
            stop_past_peak: false,
        };
        assert_eq!(never.stop(&points(&[(9.0, Invalid); 50])), None);
    }

    #[test]
    fn an_invalid_point_that_achieves_less_is_the_last() {
        let rules = StopRules::default();
        let at = |third, verdict| points(&[(1000.0, Valid), (2000.0, Valid), (third, verdict)]);
        assert_eq!(rules.stop(&at(2000.0, Invalid)), None);
        assert_eq!(rules.stop(&at(1999.0, Valid)), None, "noise");
        let end = rules.stop(&at(1999.0, Invalid)).unwrap();
        let expected = CurveEnd::PastPeak {
            load: 3.0,
            achieved_ops_per_s: 1999.0,
            before_load: 2.0,
            before_achieved_ops_per_s: 2000.0,
        };
        assert_eq!(end, expected);
        let text = "load 3 was invalid and achieved 1999 ops/s, less than load 2 with 2000";
        assert_eq!(end.to_string(), text);
        let blind = StopRules {
            stop_past_peak: false,
            ..rules
        };
        assert_eq!(blind.stop(&at(1.0, Invalid)), None);
    }

    #[test]
    fn ends_have_their_code_in_json() {
        let ends = [
            CurveEnd::AllMeasured,
            CurveEnd::ConsecutiveInvalid {
                points: 2,
                load: 3.0,
            },
            CurveEnd::PastPeak {
                load: 3.0,
                achieved_ops_per_s: 1.0,
                before_load: 2.0,
                before_achieved_ops_per_s: 2.0,
            },
        ];
        for end in ends {
            let json = serde_json::to_value(end).unwrap();
            assert_eq!(json["rule"], end.code());
            assert_eq!(serde_json::from_value::<CurveEnd>(json).unwrap(), end);
        }
    }
}
