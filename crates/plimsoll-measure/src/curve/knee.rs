//! The knee of a load curve (Kneedle).

use super::{Curve, Point};

/// Minimum number of points: with three points, any bend would be a knee.
const MIN_POINTS: usize = 4;

/// Kneedle's sensitivity S: required return of the curve after a candidate knee, in mean load steps. The authors use 1.
const SENSITIVITY: f64 = 1.0;

impl Curve {
    /// The point at which latency turns from nearly flat to steep; `None` if latency does not turn.
    ///
    /// The method is Kneedle (Satopää, Albrecht, Irwin and Raghavan, "Finding a 'Kneedle' in a
    /// Haystack", 2011) for a rising convex curve: load and latency are scaled to 0–1, and the
    /// knee is where the curve lies farthest below the straight line from its first to its last
    /// point, provided the curve returns towards that line by at least one mean load step before turning away again.
    /// Kneedle's initial smoothing is omitted, because published curves have too few points.
    ///
    /// Limits: `None` with fewer than 4 points, for a flat curve, and for a curve that is nowhere below the line (a
    /// concave curve). The knee is always one of the points, so the distance of the points limits its precision. The
    /// knee depends on the highest load: the steeper the last point, the closer the knee is to the last point.
    #[must_use]
    pub fn knee(&self) -> Option<&Point> {
        let points = self.points();
        if points.len() < MIN_POINTS {
            return None;
        }
        let xs = scaled(points.iter().map(|p| p.load))?;
        let ys = scaled(points.iter().map(|p| p.latency_ms))?;
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
            .map(|i| &points[i])
    }
}

/// Scales values to fractions of their range; `None` if all values are equal.
fn scaled(values: impl Iterator<Item = f64> + Clone) -> Option<Vec<f64>> {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.clone().fold(f64::NEG_INFINITY, f64::max);
    let range = high - low;
    (range > 0.0 && range.is_finite()).then(|| values.map(|v| (v - low) / range).collect())
}
