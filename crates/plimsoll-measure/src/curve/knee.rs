//! The knee of a load curve (Kneedle).

use super::{Curve, Point};
use std::fmt;

/// Minimum number of points: with three points, any bend would be a knee.
const MIN_POINTS: usize = 4;

/// Minimum number of points beyond a knee: the height of a single point would determine whether there is a knee, and
/// where.
const MIN_POINTS_BEYOND: usize = 2;

/// Kneedle's sensitivity S: required return of the curve after a candidate knee, in mean load steps. The authors use 1.
const SENSITIVITY: f64 = 1.0;

/// Minimum distance of a knee from the straight line, in errors of the points. Of straight curves with normally
/// distributed errors, at most 6 in 100 have a knee.
const MIN_ERRORS: f64 = 2.0;

/// Reason why a curve has no knee.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KneeError {
    /// Fewer than four points.
    TooFew {
        /// Number of load points of the curve, which is less than four.
        have: usize,
    },
    /// Latency is flat, straight or concave over load.
    NoTurn,
    /// Latency turns up, but only one point is beyond the turn.
    TooFewBeyond {
        /// Load at which latency turns up.
        load: f64,
        /// Number of load points beyond the load, which is less than two.
        have: usize,
    },
    /// Latency turns up by an amount that errors of the points can cause.
    WithinErrors {
        /// Load at which latency seems to turn up.
        load: f64,
        /// Distance of the point from the straight line, in milliseconds.
        distance_ms: f64,
        /// Error of the points in milliseconds.
        error_ms: f64,
    },
}

impl fmt::Display for KneeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { have } => {
                write!(f, "{MIN_POINTS} load points are needed, there are {have}")
            }
            Self::NoTurn => f.write_str("the response time does not turn up"),
            Self::TooFewBeyond { load, have } => write!(
                f,
                "the response time turns up at load {load}, but {MIN_POINTS_BEYOND} load points are needed beyond the \
                 turn, there is {have}"
            ),
            Self::WithinErrors {
                load,
                distance_ms,
                error_ms,
            } => write!(
                f,
                "at load {load} the response time is {distance_ms:.3} ms below a straight line, but load points \
                 deviate from a rising curve by up to {error_ms:.3} ms"
            ),
        }
    }
}

impl std::error::Error for KneeError {}

/// A point at which latency seems to turn up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Turn {
    /// Index of the point, from 0.
    pub(super) index: usize,
    /// Distance of the point below the straight line, in milliseconds.
    distance_ms: f64,
}

impl Curve {
    /// The point at which latency turns from nearly flat to steep.
    ///
    /// The method is Kneedle (Satopää, Albrecht, Irwin and Raghavan, "Finding a 'Kneedle' in a
    /// Haystack", 2011) for a rising convex curve: load and latency are scaled to 0–1, and the
    /// knee is where the curve lies farthest below the straight line from its first to its last
    /// point, provided the curve returns towards that line by at least one mean load step before turning away again.
    /// Kneedle's initial smoothing is omitted, because published curves have too few points. Noise has turns too, so a
    /// knee also needs two points beyond the knee, and a distance from the line of more than twice the error of the
    /// points. The error is the largest excess of a point over a rising convex curve: over a later point, or over the
    /// straight line between its neighbours.
    ///
    /// Limits: the knee is always one of the points, so the distance of the points limits its precision. The
    /// knee depends on the highest load: the steeper the last point, the closer the knee is to the last point.
    ///
    /// # Errors
    /// [`KneeError`] with fewer than 4 points, for a flat curve, for a curve that is nowhere below the line (a concave
    /// curve), with fewer than two points beyond the turn, and if the turn is within the errors of the points.
    pub fn knee(&self) -> Result<&Point, KneeError> {
        let points = self.points();
        if points.len() < MIN_POINTS {
            return Err(KneeError::TooFew { have: points.len() });
        }
        let Turn { index, distance_ms } = self.turn().ok_or(KneeError::NoTurn)?;
        let (load, have) = (points[index].load, points.len() - 1 - index);
        if have < MIN_POINTS_BEYOND {
            return Err(KneeError::TooFewBeyond { load, have });
        }
        let error_ms = self.latency_error_ms();
        if distance_ms <= MIN_ERRORS * error_ms {
            return Err(KneeError::WithinErrors {
                load,
                distance_ms,
                error_ms,
            });
        }
        Ok(&points[index])
    }

    /// The knee by Kneedle alone, whatever the errors of the points; `None` if latency does not turn up.
    pub(super) fn turn(&self) -> Option<Turn> {
        let points = self.points();
        let (xs, _) = scaled(points.iter().map(|p| p.load))?;
        let (ys, range_ms) = scaled(points.iter().map(|p| p.latency_ms))?;
        let below: Vec<f64> = xs.iter().zip(&ys).map(|(x, y)| x - y).collect();
        let step = 1.0 / (points.len() - 1) as f64;
        let is_knee = |i: usize| {
            let back = below[i] - SENSITIVITY * step;
            let after = &below[i + 1..];
            // The curve may return towards the line only until a point farther below the line than the candidate, where
            // the curve turns away again.
            let reach = after.iter().take_while(|d| **d <= below[i]);
            below[i] > 0.0 && reach.into_iter().any(|d| *d <= back)
        };
        (1..points.len() - 1)
            .filter(|i| below[*i] >= below[i - 1] && below[*i] > below[i + 1])
            .filter(|i| is_knee(*i))
            .max_by(|a, b| below[*a].total_cmp(&below[*b]))
            .map(|index| Turn {
                index,
                distance_ms: below[index] * range_ms,
            })
    }

    /// Error of the points: the largest excess of a point over a rising convex curve, in milliseconds; 0 if the curve
    /// is rising and convex.
    fn latency_error_ms(&self) -> f64 {
        let points = self.points();
        let mut highest = 0.0f64;
        let falls = points.iter().map(|p| {
            highest = highest.max(p.latency_ms);
            highest - p.latency_ms
        });
        let excesses = points.windows(3).map(|three| {
            let [a, b, c] = three else {
                unreachable!("windows of three points")
            };
            let share = (b.load - a.load) / (c.load - a.load);
            b.latency_ms - (a.latency_ms + share * (c.latency_ms - a.latency_ms))
        });
        falls.chain(excesses).fold(0.0, f64::max)
    }
}

/// Scales values to fractions of their range, which is the second result; `None` if all values are equal.
fn scaled(values: impl Iterator<Item = f64> + Clone) -> Option<(Vec<f64>, f64)> {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.clone().fold(f64::NEG_INFINITY, f64::max);
    let range = high - low;
    let fractions = || values.map(|v| (v - low) / range).collect();
    (range > 0.0 && range.is_finite()).then(|| (fractions(), range))
}
