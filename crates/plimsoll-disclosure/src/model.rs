//! What a full disclosure report says.

use plimsoll_measure::curve::{Curve, CurveError, Point, PointVerdict, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A full disclosure report: one system, one workload, its load points and all that is told
/// about how they came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disclosure {
    /// Title, such as `SPECsfs2008_nfs.v3 Result`.
    pub title: String,
    /// Who sells or built the product.
    pub vendor: String,
    /// What was measured.
    pub product: String,
    /// Name of the metric, such as `SPEC SFS2014_vda`.
    pub metric: String,
    /// The figure that is claimed: the highest load of a point that counts; 0 if none does.
    pub peak: f64,
    /// What the load is counted in, such as `Ops/Sec` or `Streams`.
    pub unit: String,
    /// What the report says between its claim and its load points; nothing in published ones.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
    /// Load points in increasing order of load.
    pub points: Vec<LoadPoint>,
    /// Overall response time as the report says it, in milliseconds; null if it claims none.
    pub ort_published_ms: Option<f64>,
    /// Overall response time computed from the points, in milliseconds; null where too few
    /// points count.
    pub ort_ms: Option<f64>,
    /// The rule by which the overall response time is computed.
    pub rule: Rule,
    /// Everything else, in the order of the report.
    pub sections: Vec<Section>,
    /// When and by what the report was made, as its last lines say it.
    pub generated: String,
}

/// One load point of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPoint {
    /// Load in the unit of the report: the throughput achieved (SPECsfs2008) or the business
    /// metrics asked for (later).
    pub load: f64,
    /// Mean latency in milliseconds; null where no operation was done, and such a point is invalid.
    pub latency_ms: Option<f64>,
    /// Operations a second that were achieved, where the report says it apart from the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops_per_s: Option<f64>,
    /// Megabytes a second that were moved, where the report says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mb_per_s: Option<f64>,
    /// Whether the point counts; reports mark those that do not.
    pub verdict: PointVerdict,
}

/// An underlined heading and what stands below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Section {
    /// The heading.
    pub name: String,
    /// The text, with the line breaks that the report has.
    pub text: String,
}

impl Disclosure {
    /// The load points that have a latency as a curve. Where the report does not say the throughput
    /// apart from the load, the load is the throughput.
    ///
    /// # Errors
    /// As [`Curve::new`]; never for a disclosure that was imported.
    pub fn curve(&self) -> Result<Curve, CurveError> {
        let point = |p: &LoadPoint| {
            Some(Point {
                load: p.load,
                achieved: p.ops_per_s.unwrap_or(p.load),
                latency_ms: p.latency_ms?,
                verdict: p.verdict,
            })
        };
        Curve::new(self.points.iter().filter_map(point).collect())
    }

    /// The text of the first section of this name.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&str> {
        let found = self.sections.iter().find(|s| s.name == name)?;
        Some(&found.text)
    }
}
