//! The content of a full disclosure report.

use plimsoll_measure::curve::{Curve, CurveError, Point, PointVerdict, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Full disclosure report in the form of SPEC SFS: the claimed metric and peak, the load points, and sections on the
/// system under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disclosure {
    /// Title, such as `SPECsfs2008_nfs.v3 Result`.
    pub title: String,
    /// Vendor or builder of the product.
    pub vendor: String,
    /// Name of the measured product.
    pub product: String,
    /// Name of the metric, such as `SPEC SFS2014_vda`.
    pub metric: String,
    /// Claimed peak: the highest load of a valid load point, in the unit `unit`; 0 without a valid load point.
    pub peak: f64,
    /// Unit of the load, such as `Ops/Sec` or `Streams`.
    pub unit: String,
    /// Remark between the claim and the load points; empty in published reports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
    /// Load points in increasing order of load.
    pub points: Vec<LoadPoint>,
    /// Overall response time that the report claims, in milliseconds; null if the report claims none.
    pub ort_published_ms: Option<f64>,
    /// Overall response time recomputed from the load points by `rule`, in milliseconds; null if the rule does not
    /// define a value for the points, such as for too few valid points.
    pub ort_ms: Option<f64>,
    /// Rule of the report's generation by which `ort_ms` is computed.
    pub rule: Rule,
    /// Sections that follow the load points, such as the bill of materials, in the order of the report.
    pub sections: Vec<Section>,
    /// Date and program that generated the report, from its last lines.
    pub generated: String,
}

/// One load point of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPoint {
    /// Load in the unit of the report: the achieved throughput (SPECsfs2008), or the requested business metrics (SPEC
    /// SFS 2014 and later).
    pub load: f64,
    /// Mean latency at the load point in milliseconds; null if no operation completed, which makes the point invalid.
    pub latency_ms: Option<f64>,
    /// Achieved operations per second at the load point; null if the report has no rate besides the load (SPECsfs2008).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops_per_s: Option<f64>,
    /// Data rate at the load point in megabytes per second; null if the report states no data rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mb_per_s: Option<f64>,
    /// Verdict on the load point: invalid if the report marks the point as invalid.
    pub verdict: PointVerdict,
}

/// Section of a disclosure report: an underlined heading, and the text up to the next heading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Section {
    /// Heading of the section, such as `Bill of Materials`.
    pub name: String,
    /// Text below the section's heading, with the line breaks of the report.
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

    /// Text of the report's first section with the heading `name`; `None` if no section has the heading.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&str> {
        let found = self.sections.iter().find(|s| s.name == name)?;
        Some(&found.text)
    }
}
