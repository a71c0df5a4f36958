//! A load curve in `curve.json`, and its directory.

use crate::collection::{Collection, CollectionWriter};
use crate::document::{Directory, Document};
use crate::load_test::{LoadPoints, LoadTest};
use crate::whole_file::write_new;
use crate::{
    CURVE_FILE, ClockKind, CurvePoint, Reason, ResultsError, RunDir, RunWriter, SUT_FILE, Verdict,
};
use plimsoll_measure::curve::{Curve, CurveError, Point, PointVerdict, Rule, UslFit};
use plimsoll_measure::{Bottleneck, SATURATED_UTILISATION};
use plimsoll_plan::Plan;
use plimsoll_points::StopRules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::SystemTime;

/// A load curve: a workload measured at several loads, in increasing order, on one data set that
/// grew with the load.
pub type LoadCurve = LoadTest<CurveLoads, CurveResults, CurveSettings>;

/// The loads of a curve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CurveLoads {
    /// Requested loads, in increasing order.
    pub loads: Vec<u64>,
}

/// The points of a curve and the figures that follow from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveResults {
    /// Rules that end the curve before its last load.
    pub stop_rules: StopRules,
    /// State of the curve.
    pub state: CurveState,
    /// The rule or the error that ended it before its last load.
    pub stop_reason: Option<Reason>,
    /// The points measured so far, in increasing order of load; invalid ones are kept.
    pub points: Vec<CurvePoint>,
    /// Overall response time in milliseconds over the valid points, by the rule of SPEC SFS 2014:
    /// area under mean response time over load from the first to the last, divided by their
    /// distance. Null with fewer than two valid points.
    pub ort_ms: Option<f64>,
    /// Overall response time in milliseconds by the rule of SPECsfs2008: over the achieved
    /// throughput, from the origin, divided by the highest. Null if it is not defined.
    pub ort_2008_ms: Option<f64>,
    /// The highest load that was valid.
    pub highest_valid_load: Option<u64>,
    /// The load line: the highest load that was valid with all measured loads below it.
    pub load_line: Option<u64>,
    /// The load at which the response time turns up; null if it does not.
    pub knee: Option<f64>,
    /// The Universal Scalability Law fitted to throughput over load; null without a fit.
    pub usl: Option<UslFit>,
}

/// Settings that only a curve has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CurveSettings {
    /// Program that is informed of the phases of each point.
    #[serde(with = "plimsoll_plan::path_text::option")]
    #[schemars(with = "Option<String>")]
    pub monitor: Option<PathBuf>,
    /// Whether the files are kept at the end.
    pub keep: bool,
}

/// State of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CurveState {
    /// Points are missing: it is being measured, or its process was killed.
    Unfinished,
    /// Every load was measured.
    Complete,
    /// A stop rule ended it.
    Stopped,
    /// The user ended it; points are missing.
    Interrupted,
    /// An error ended it; points are missing.
    Failed,
}

impl CurveResults {
    /// The results of a curve without points.
    #[must_use]
    pub fn new(stop_rules: StopRules) -> Self {
        Self {
            stop_rules,
            state: CurveState::Unfinished,
            stop_reason: None,
            points: vec![],
            ort_ms: None,
            ort_2008_ms: None,
            highest_valid_load: None,
            load_line: None,
            knee: None,
            usl: None,
        }
    }
}

impl LoadPoints for CurveResults {
    fn points_mut(&mut self) -> impl Iterator<Item = &mut CurvePoint> {
        self.points.iter_mut()
    }
}

impl CurveState {
    /// Whether points remain to be measured.
    #[must_use]
    pub fn can_resume(self) -> bool {
        !matches!(self, Self::Complete | Self::Stopped)
    }
}

impl LoadCurve {
    /// The points as a curve from which figures are computed, without points that failed or were
    /// interrupted.
    ///
    /// # Errors
    /// [`CurveError`] if the loads do not increase or a number is out of range, which is never so
    /// in a curve that this program wrote.
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

    /// The loads that remain to be measured.
    #[must_use]
    pub fn missing(&self) -> Vec<u64> {
        let last = self.points.last().map_or(0, |p| p.load);
        self.selection
            .loads
            .iter()
            .copied()
            .filter(|l| *l > last)
            .collect()
    }

    /// The first point at which a station of the simulated system is saturated, with that station.
    #[must_use]
    pub fn saturated_from(&self) -> Option<(u64, &Bottleneck)> {
        self.points.iter().find_map(|p| {
            let station = p.bottleneck.as_ref()?;
            (station.utilisation >= SATURATED_UTILISATION).then_some((p.load, station))
        })
    }

    /// Whether any point is valid.
    #[must_use]
    pub fn any_valid(&self) -> bool {
        self.points.iter().any(|p| p.verdict == Verdict::Valid)
    }
}

impl Collection for LoadCurve {
    fn directory_name(&self) -> String {
        format!("{}-curve", self.workload)
    }

    fn recompute(&mut self) {
        let is_valid = |p: &&CurvePoint| p.verdict == Verdict::Valid;
        self.highest_valid_load = self.points.iter().rfind(is_valid).map(|p| p.load);
        let sustained = self.points.iter().take_while(is_valid);
        self.load_line = sustained.last().map(|p| p.load);
        let curve = self.curve().ok();
        let ort = |rule| curve.as_ref()?.overall_response_time(rule).ok();
        self.ort_ms = ort(Rule::Sfs2014);
        self.ort_2008_ms = ort(Rule::Sfs2008);
        self.knee = curve.as_ref().and_then(|c| Some(c.knee()?.load));
        self.usl = curve.as_ref().and_then(|c| c.fit_usl().ok());
    }
}

impl Document for LoadCurve {
    const FILE: &str = CURVE_FILE;
    const SCHEMA: u32 = 1;
    const KIND_NAME: &str = "curve";
}

/// A curve directory: `curve.json`, and the results directories of its points.
pub type CurveDir = Directory<LoadCurve>;

impl Directory<LoadCurve> {
    /// The results of a point's run.
    #[must_use]
    pub fn run(&self, point: &CurvePoint) -> RunDir {
        self.listed(&point.run)
    }

    /// A writer of the results of the point with this load, one of `curve`, which is in the directory.
    ///
    /// # Errors
    /// As [`RunWriter::create`].
    pub fn point_writer(
        &self,
        curve: &LoadCurve,
        load: u64,
        plan: &Plan,
        started: SystemTime,
        clock: ClockKind,
    ) -> Result<RunWriter, ResultsError> {
        RunWriter::create_as(&name_of(curve, load), self.path(), plan, started, clock)
    }
}

/// A curve directory that is being written.
pub type CurveWriter = CollectionWriter<LoadCurve>;

impl CollectionWriter<LoadCurve> {
    /// A writer of the results of the point with this load.
    ///
    /// # Errors
    /// As [`RunWriter::create`].
    pub fn point(
        &self,
        load: u64,
        plan: &Plan,
        started: SystemTime,
        clock: ClockKind,
    ) -> Result<RunWriter, ResultsError> {
        self.dir()
            .point_writer(self.document(), load, plan, started, clock)
    }

    /// Writes the description of the system under test beside the curve.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses, or there is one.
    pub fn write_sut(&self, text: &str) -> Result<(), ResultsError> {
        write_new(&self.dir().path().join(SUT_FILE), text)
    }

    /// The point with this load, whose run was written and ended but is not listed: its process ended
    /// before it was, or it was measured before the points below it. It has the percentiles that the
    /// curve shows.
    #[must_use]
    pub fn unlisted_point(&self, load: u64) -> Option<CurvePoint> {
        let curve = self.document();
        let name = name_of(curve, load);
        let shown = curve.percentiles_shown.as_ref();
        let run = self.dir().listed(&name).read_with(shown).ok()?;
        let is_it = run.plan.metric.as_ref().is_some_and(|m| m.load == load)
            && run.target.system == curve.target.system
            && run.plan.seed == curve.seed
            && run.plan.filesets == curve.plan.filesets;
        let ended = matches!(run.validity.verdict, Verdict::Valid | Verdict::Invalid);
        (is_it && ended).then(|| CurvePoint::of(&run, load, &name))
    }

    /// The results of the run in the directory with this name.
    #[must_use]
    pub fn run_named(&self, name: &str) -> RunDir {
        self.dir().listed(name)
    }

    /// Adds a point and writes the curve.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; the file is then as it was.
    pub fn add(&mut self, point: CurvePoint) -> Result<(), ResultsError> {
        let last = self.document().points.last().map_or(0, |p| p.load);
        assert!(
            last < point.load,
            "points are added in increasing order of load"
        );
        self.change(|curve| curve.points.push(point))
    }
}

/// Name of the directory of the point with this load.
fn name_of(curve: &LoadCurve, load: u64) -> String {
    let at = curve.selection.loads.iter().position(|l| *l == load);
    format!("point-{:02}-load-{load}", at.map_or(0, |i| i + 1))
}
