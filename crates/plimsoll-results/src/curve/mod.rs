//! What `curve.json` holds: a load curve, point by point.

mod dir;
mod point;

pub use dir::{CurveDir, CurveWriter};
pub use plimsoll_points::StopRules;
pub use point::{CriterionResult, CurvePoint};

use crate::document::{self, Document};
use crate::renames::{self, Rename};
use crate::{
    ClockKind, Environment, Hooks, Percentile, Percentiles, Program, Reason, Target, Verdict,
};
use plimsoll_measure::curve::{Curve, CurveError, Point, PointVerdict, Rule, UslFit};
use plimsoll_plan::{Criteria, Note, Plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Version of `curve.json`; raised when a field changes meaning or goes.
pub const CURVE_SCHEMA: u32 = 3;

/// Name of the file that holds the [`LoadCurve`].
pub const CURVE_FILE: &str = "curve.json";

/// A load curve: a workload measured at several loads, in increasing order, on one data set that
/// grew with the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadCurve {
    /// Version of this form.
    pub schema_version: u32,
    /// Name of the workload.
    pub workload: String,
    /// What the load is a number of, such as `streams`.
    pub metric: String,
    /// Share of the full data and of the full rates.
    pub scale: f64,
    /// Whether data and rates are the full ones; if not, the result is scaled: not comparable.
    pub comparable: bool,
    /// Root of all random choices.
    pub seed: u64,
    /// When the curve was begun: RFC 3339, in UTC.
    pub started_at: String,
    /// Loads asked for, in increasing order.
    pub loads: Vec<u64>,
    /// Seconds of warm-up before each point is measured.
    pub warmup_s: f64,
    /// Seconds each point is measured for.
    pub measure_s: f64,
    /// When a load counts as carried.
    pub criteria: Criteria,
    /// When the curve ends before its last load.
    pub stop_rules: StopRules,
    /// How far the curve is.
    pub state: CurveState,
    /// Which rule or what error ended it before its last load.
    pub stop_reason: Option<Reason>,
    /// The points measured so far, in increasing order of load; those that are invalid are kept.
    pub points: Vec<CurvePoint>,
    /// Overall response time in milliseconds over the valid points, by the rule of SPEC SFS 2014:
    /// area under mean response time over load from the first to the last, divided by their
    /// distance. Null with fewer than two valid points.
    pub ort_ms: Option<f64>,
    /// The same by the rule of SPECsfs2008: over the throughput achieved, from the origin, divided
    /// by the highest. Null where that is not defined.
    pub ort_2008_ms: Option<f64>,
    /// The highest load that was valid.
    pub highest_valid_load: Option<u64>,
    /// The load line: the highest load that was valid with all measured loads below it.
    pub load_line: Option<u64>,
    /// The load at which the response time turns up; null if it does not.
    pub knee: Option<f64>,
    /// The Universal Scalability Law fitted to throughput over load; null without a fit.
    pub usl: Option<UslFit>,
    /// Percentiles that tables show; null where no others were requested than the usual ones.
    #[serde(default)]
    pub percentiles_shown: Option<Percentiles>,
    /// Program that measured it.
    pub program: Program,
    /// What the load was put on.
    pub target: Target,
    /// Clock of the runs.
    pub clock: ClockKind,
    /// Threads that drive the workers, if their number was asked for.
    pub lanes: Option<u64>,
    /// Seconds of an interval of the points' series.
    pub interval_s: f64,
    /// Processes that ran each point together.
    pub ranks: u32,
    /// Program that is told of the phases of each point.
    #[serde(default, with = "plimsoll_plan::path_text::option")]
    #[schemars(with = "Option<String>")]
    pub monitor: Option<PathBuf>,
    /// Whether the files stay at the end.
    pub keep: bool,
    /// Commands of the user around the phases of each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
    /// Remarks.
    pub notes: Vec<Note>,
    /// The machine and the place of the files.
    pub environment: Environment,
    /// Everything the run of the greatest load is to do; the other points are parts of it.
    pub plan: Plan,
}

/// How far a curve is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CurveState {
    /// Points are missing: it is being measured, or its process was killed.
    Unfinished,
    /// Every load was measured.
    Complete,
    /// A stop rule ended it.
    Stopped,
    /// Somebody ended it; points are missing.
    Interrupted,
    /// An error ended it; points are missing.
    Failed,
}

impl CurveState {
    /// Whether points are still to be measured.
    #[must_use]
    pub fn can_resume(self) -> bool {
        !matches!(self, Self::Complete | Self::Stopped)
    }
}

impl LoadCurve {
    /// Percentiles that a table shows, which has `usual` where no others were requested.
    #[must_use]
    pub fn shown_percentiles<'a>(&'a self, usual: &'a [Percentile]) -> &'a [Percentile] {
        Percentiles::shown_percentiles(self.percentiles_shown.as_ref(), usual)
    }

    /// The points as a curve that figures are computed of; points that failed or were
    /// interrupted are none.
    ///
    /// # Errors
    /// [`CurveError`] if the loads do not increase or a number is out of range, which no curve
    /// that this program wrote is.
    pub fn curve(&self) -> Result<Curve, CurveError> {
        let point = |p: &CurvePoint| {
            let verdict = match p.verdict {
                Verdict::Valid => PointVerdict::Valid,
                Verdict::Invalid => PointVerdict::Invalid,
                Verdict::Failed | Verdict::Interrupted => return None,
            };
            Some(Point {
                load: p.load as f64,
                achieved: p.achieved_ops_per_s,
                latency_ms: p.mean_ms.unwrap_or(0.0),
                verdict,
            })
        };
        Curve::new(self.points.iter().filter_map(point).collect())
    }

    /// Computes the figures of the curve from its points.
    pub fn compute(&mut self) {
        let is_valid = |p: &&CurvePoint| p.verdict == Verdict::Valid;
        self.highest_valid_load = self.points.iter().rfind(is_valid).map(|p| p.load);
        let carried = self.points.iter().take_while(is_valid);
        self.load_line = carried.last().map(|p| p.load);
        let curve = self.curve().ok();
        let ort = |rule| curve.as_ref()?.overall_response_time(rule).ok();
        self.ort_ms = ort(Rule::Sfs2014);
        self.ort_2008_ms = ort(Rule::Sfs2008);
        self.knee = curve.as_ref().and_then(|c| Some(c.knee()?.load));
        self.usl = curve.as_ref().and_then(|c| c.fit_usl().ok());
    }

    /// The loads that are still to be measured.
    #[must_use]
    pub fn missing(&self) -> Vec<u64> {
        let last = self.points.last().map_or(0, |p| p.load);
        self.loads.iter().copied().filter(|l| *l > last).collect()
    }

    /// Whether any point is valid.
    #[must_use]
    pub fn any_valid(&self) -> bool {
        self.points.iter().any(|p| p.verdict == Verdict::Valid)
    }

    /// The curve as `curve.json` holds it: pretty-printed, with a newline at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        document::json(self)
    }
}

impl Document for LoadCurve {
    const FILE: &str = CURVE_FILE;
    const SCHEMA: u32 = CURVE_SCHEMA;
    const KIND_NAME: &str = "curve";
    const RENAMES: &[&[Rename]] = &[renames::POINT, renames::CURVE, renames::PLAN];
}

/// The JSON schema of `curve.json`, pretty-printed.
#[must_use]
pub fn curve_schema() -> String {
    document::schema::<LoadCurve>()
}
