//! Load curves: measured load points, and figures derived from the points.
//!
//! A [`Curve`] is a list of [`Point`]s in increasing order of load. A curve gives the [overall response
//! time](Curve::overall_response_time) by the [`Rule`] of a benchmark, the [knee](Curve::knee), where latency turns up,
//! and a [fit](Curve::fit_usl) of the Universal Scalability Law.
//!
//! Figures of the system (overall response time, [peak](Curve::peak)) use only valid points. The shape of the curve
//! (knee, fit) uses all points: most invalid points have too high a load, where the curve bends. Both are refused with a
//! reason where the bend has too few points or is within the errors of the points.

mod knee;
mod ort;
mod usl;

#[cfg(test)]
mod tests;

pub use knee::KneeError;
pub use ort::Rule;
pub use usl::{UslError, UslFit};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum of the numbers of a point; its inverse is the minimum load. The maximum is far beyond any measurement, and
/// small enough that products of three numbers stay finite.
const MAX_VALUE: f64 = 1e100;

/// Verdict on a load point, by the criteria of the point's workload or series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PointVerdict {
    /// The load point met every criterion.
    #[default]
    Valid,
    /// The load point failed at least one criterion. Invalid points are kept and shown; the overall response time and
    /// the load line do not use invalid points.
    Invalid,
}

/// Load point of a curve: throughput and latency of one workload at one load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Offered load in business metrics or operations per second; more than 0 (at least 1e-100).
    pub load: f64,
    /// Achieved throughput in operations per second; at least 0.
    pub achieved: f64,
    /// Mean latency of the operations at the load, in milliseconds; at least 0.
    pub latency_ms: f64,
    /// Whether the load point met every criterion; the overall response time uses only valid points.
    pub verdict: PointVerdict,
}

/// Load points in increasing order of load.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    points: Vec<Point>,
}

/// Reason why points do not form a curve, or why a curve lacks the requested figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CurveError {
    /// A number is negative, greater than 1e100, not a number, or a load of zero.
    OutOfRange {
        /// Index, from 0, of the load point whose number is out of range.
        index: usize,
    },
    /// A load (or, for [`Rule::Sfs2008`], a throughput) does not exceed the previous value.
    NotIncreasing {
        /// Index of the later point, from 0; counts only valid points if a rule reports the error.
        index: usize,
        /// Load of the previous point, or, for [`Rule::Sfs2008`], the throughput of the previous point.
        before: f64,
        /// Load or throughput of the point with this `index`, which should be greater than `before`.
        value: f64,
    },
    /// Fewer valid points than the rule needs.
    TooFew {
        /// Number of valid load points of the curve.
        have: usize,
        /// Number of valid load points that the rule needs.
        need: usize,
    },
}

impl fmt::Display for CurveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { index } => write!(
                f,
                "load point {} has a number that is negative, infinite or not a number, or a load \
                 of zero",
                index + 1
            ),
            Self::NotIncreasing {
                index,
                before,
                value,
            } => write!(
                f,
                "load points come in increasing order, but point {} is at {value} after {before}",
                index + 1
            ),
            Self::TooFew { have, need } => {
                write!(f, "{need} valid load points are needed, there are {have}")
            }
        }
    }
}

impl std::error::Error for CurveError {}

impl Curve {
    /// A curve of points in increasing order of load; may be empty.
    ///
    /// Points are not sorted: a repeated load, or a load measured after a higher load, may have found the system in
    /// another state, which sorting would hide.
    ///
    /// # Errors
    /// [`CurveError::OutOfRange`] for a number outside the range of its field,
    /// [`CurveError::NotIncreasing`] if a load does not exceed the previous load.
    pub fn new(points: Vec<Point>) -> Result<Self, CurveError> {
        let in_range = |p: &Point| {
            (1.0 / MAX_VALUE..=MAX_VALUE).contains(&p.load)
                && [p.achieved, p.latency_ms]
                    .iter()
                    .all(|v| (0.0..=MAX_VALUE).contains(v))
        };
        if let Some(index) = points.iter().position(|p| !in_range(p)) {
            return Err(CurveError::OutOfRange { index });
        }
        increasing(points.iter().map(|p| p.load))?;
        Ok(Self { points })
    }

    /// The points, in increasing order of load.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The valid points, in increasing order of load.
    pub fn valid(&self) -> impl DoubleEndedIterator<Item = &Point> {
        let counts = |p: &&Point| p.verdict == PointVerdict::Valid;
        self.points.iter().filter(counts)
    }

    /// The valid point with the highest load; `None` without valid points.
    #[must_use]
    pub fn peak(&self) -> Option<&Point> {
        self.valid().next_back()
    }
}

/// Checks that every value exceeds the previous value.
fn increasing(values: impl Iterator<Item = f64>) -> Result<(), CurveError> {
    let mut last = f64::NEG_INFINITY;
    for (index, value) in values.enumerate() {
        if value <= last {
            return Err(CurveError::NotIncreasing {
                index,
                before: last,
                value,
            });
        }
        last = value;
    }
    Ok(())
}
