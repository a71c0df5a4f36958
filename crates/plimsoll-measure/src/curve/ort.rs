//! Overall response time (ORT): a single latency figure for a curve.

use super::{Curve, CurveError, increasing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rule by which the overall response time of a curve is computed.
///
/// Both rules divide the area under mean latency over load, by trapezoids, by the length of the load axis under the
/// area. The rules differ in the load axis (achieved throughput or offered load) and in the point at which the axis
/// begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// SPECsfs2008: area under latency over the achieved throughput, from the origin (no load, no latency) through
    /// every valid point, divided by the highest throughput. The rule of SPECsfs2008 reproduces five published results.
    Sfs2008,
    /// SPEC SFS 2014 and SPECstorage 2020: area under latency over the offered load, from the first valid point to the
    /// last, divided by the difference of the two loads. The rule of SPEC SFS 2014 reproduces the published result that
    /// is known to us.
    Sfs2014,
}

impl Curve {
    /// Overall response time in milliseconds, over the valid points.
    ///
    /// # Errors
    /// [`CurveError::TooFew`] with fewer than one ([`Rule::Sfs2008`]) or two ([`Rule::Sfs2014`]) valid points;
    /// [`CurveError::NotIncreasing`] if a throughput under [`Rule::Sfs2008`] does not exceed the previous throughput:
    /// the system was past its peak, and the area is undefined.
    pub fn overall_response_time(&self, rule: Rule) -> Result<f64, CurveError> {
        let (mut corners, need) = match rule {
            Rule::Sfs2008 => (vec![(0.0, 0.0)], 1),
            Rule::Sfs2014 => (vec![], 2),
        };
        let have = self.valid().count();
        if have < need {
            return Err(CurveError::TooFew { have, need });
        }
        let points = self.valid();
        corners.extend(points.map(|p| match rule {
            Rule::Sfs2008 => (p.achieved, p.latency_ms),
            Rule::Sfs2014 => (p.load, p.latency_ms),
        }));
        if rule == Rule::Sfs2008 {
            // The origin is not checked, so that the index in an error counts load points from 0.
            increasing(corners[1..].iter().map(|c| c.0))?;
        }
        let (first, last) = (corners[0].0, corners[corners.len() - 1].0);
        if last <= first {
            // The curve is a single point without throughput; any other curve was refused before.
            return Err(CurveError::NotIncreasing {
                index: 0,
                before: first,
                value: last,
            });
        }
        Ok(area(&corners) / (last - first))
    }
}

/// Area under the polyline through the corners.
fn area(corners: &[(f64, f64)]) -> f64 {
    let trapezoid = |w: &[(f64, f64)]| (w[1].0 - w[0].0) * (w[0].1 + w[1].1) / 2.0;
    corners.windows(2).map(trapezoid).sum()
}
