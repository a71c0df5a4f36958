//! The content of a full disclosure report.

use plimsoll_measure::curve::{Curve, CurveError, Point, PointVerdict, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A full disclosure report: one system, one workload, its load points and a description of how they
/// were measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disclosure {
    /// Title, such as `SPECsfs2008_nfs.v3 Result`.
    pub title: String,
    /// Vendor or builder of the product.
    pub vendor: String,
    /// The measured product.
    pub product: String,
    /// Name of the metric, such as `SPEC SFS2014_vda`.
    pub metric: String,
    /// The claimed figure: the highest load of a valid point; 0 if there is none.
    pub peak: f64,
    /// Unit of the load, such as `Ops/Sec` or `Streams`.
    pub unit: String,
    /// Remark between the claim and the load points; empty in published reports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
    /// Load points in increasing order of load.
    pub points: Vec<LoadPoint>,
    /// Overall response time as published, in milliseconds; null if the report claims none.
    pub ort_published_ms: Option<f64>,
    /// Overall response time computed from the points, in milliseconds; null if too few points are
    /// valid.
    pub ort_ms: Option<f64>,
    /// The rule by which the overall response time is computed.
    pub rule: Rule,
    /// Everything else, in the order of the report.
    pub sections: Vec<Section>,
    /// Date and program that generated the report, from its last lines.
    pub generated: String,
}

/// One load point of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPoint {
    /// Load in the unit of the report: the achieved throughput (SPECsfs2008) or the requested business
    /// metrics (later).
    pub load: f64,
    /// Mean latency in milliseconds; null if no operation completed, which makes the point invalid.
    pub latency_ms: Option<f64>,
    /// Achieved operations per second, if the report states it separately from the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops_per_s: Option<f64>,
    /// Megabytes per second, if the report states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mb_per_s: Option<f64>,
    /// Whether the point is valid; reports mark invalid ones.
    pub verdict: PointVerdict,
}

/// An underlined heading and the text below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Section {
    /// The heading.
    pub name: String,
    /// The text, with the line breaks of the report.
    pub text: String,
}

impl Disclosure {
    /// The load points with a latency as a curve. If the report does not state the throughput
    /// separately, the load is the throughput.
    ///
    /// # Errors
    /// Those of [`Curve::new`]; never for an imported disclosure.
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
