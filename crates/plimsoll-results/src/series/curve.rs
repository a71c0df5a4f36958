//! Load curve: rule and figures of one workload at increasing loads.

use crate::Verdict;
use crate::series::next::check_metric;
use crate::series::stop::early_end;
use crate::series::{NextRun, Series, SeriesRun, SeriesState, Step, Strategy};
use plimsoll_measure::curve::{Curve, CurveError, Point, PointVerdict, Rule, UslFit};
use plimsoll_measure::{Bottleneck, SATURATED_UTILISATION};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One workload at several loads, in increasing order, on one data set that grows with the load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadCurve {
    /// Requested loads in business metrics, in increasing order.
    pub loads: Vec<u64>,
    /// Number of consecutive invalid points after which the curve ends; null if every load is measured. Unless the
    /// number is null, an invalid point that achieves less than the previous point ends the curve too.
    pub stop_after_invalid: Option<u32>,
    /// Overall response time in milliseconds over the valid points, by the rule of SPEC SFS 2014: the area under mean
    /// response time over load from the first valid load to the last, divided by the difference of the two loads. Null
    /// with fewer than two valid points.
    pub ort_ms: Option<f64>,
    /// Overall response time in milliseconds over the valid points, by the rule of SPECsfs2008: the area under mean
    /// response time over achieved throughput from the origin, divided by the highest throughput. Null without valid
    /// points, and if throughput does not increase from point to point.
    pub ort_2008_ms: Option<f64>,
    /// Highest load with a valid point, in business metrics; null without a valid point.
    pub highest_valid_load: Option<u64>,
    /// Load line in business metrics: the highest load that was valid together with all lower measured loads; null if
    /// the lowest measured load was not valid.
    pub load_line: Option<u64>,
    /// Knee in business metrics: the load at which the response time turns up, by the Kneedle algorithm; null without a
    /// knee, with fewer than two points beyond the knee, and if the turn is within the errors of the points.
    pub knee: Option<f64>,
    /// Universal Scalability Law fitted to throughput over load; null if the points permit no fit, if fewer than two
    /// points fall short of throughput in proportion to load, and if the difference is within the errors of the points.
    pub usl: Option<UslFit>,
}

impl LoadCurve {
    /// A load curve before its first run: requested loads without figures.
    #[must_use]
    pub fn new(loads: Vec<u64>, stop_after_invalid: Option<u32>) -> Self {
        Self {
            loads,
            stop_after_invalid,
            ..Self::default()
        }
    }
}

/// Makes the points of a curve from runs; failed and interrupted runs are left out.
fn curve_of<'a>(runs: impl Iterator<Item = &'a SeriesRun>) -> Result<Curve, CurveError> {
    let point = |run: &SeriesRun| {
        let verdict = match run.verdict {
            Verdict::Valid => PointVerdict::Valid,
            Verdict::Invalid => PointVerdict::Invalid,
            Verdict::Failed | Verdict::Interrupted => return None,
        };
        Some(Point {
            load: run.load? as f64,
            achieved: run.achieved_ops_per_s,
            latency_ms: run.mean_ms.unwrap_or(0.0),
            verdict,
        })
    };
    Curve::new(runs.filter_map(point).collect())
}

impl Strategy for LoadCurve {
    fn next(&self, series: &Series) -> Step {
        let Some(next) = self.independent(series).into_iter().next() else {
            return Step::End(SeriesState::Complete, None);
        };
        let measured = curve_of(series.runs.iter()).ok();
        match measured.and_then(|curve| early_end(curve.points(), self.stop_after_invalid)) {
            Some(reason) => Step::End(SeriesState::Stopped, Some(reason)),
            None => Step::Run(next),
        }
    }

    fn independent(&self, series: &Series) -> Vec<NextRun> {
        let last = series
            .measured()
            .filter_map(|run| run.load)
            .max()
            .unwrap_or(0);
        let loads = (1..).zip(&self.loads).filter(|(_, load)| **load > last);
        let run = |(number, load): (usize, &u64)| NextRun {
            configuration: 0,
            load: Some(*load),
            value: None,
            purpose: None,
            seed: series.first_plan().seed,
            directory: format!("point-{number:02}-load-{load}"),
        };
        loads.map(run).collect()
    }

    fn conclude(&mut self, runs: &[SeriesRun]) {
        let points = || runs.iter().filter(|run| run.is_measured());
        self.highest_valid_load = points()
            .rfind(|run| run.is_valid())
            .and_then(|run| run.load);
        let sustained = points().take_while(|run| run.is_valid());
        self.load_line = sustained.last().and_then(|run| run.load);
        let curve = curve_of(points()).ok();
        let ort = |rule| curve.as_ref()?.overall_response_time(rule).ok();
        self.ort_ms = ort(Rule::Sfs2014);
        self.ort_2008_ms = ort(Rule::Sfs2008);
        self.knee = curve.as_ref().and_then(|c| Some(c.knee().ok()?.load));
        self.usl = curve.as_ref().and_then(|c| c.fit_usl().ok());
    }

    fn is_valid(&self, runs: &[SeriesRun]) -> bool {
        runs.iter().any(SeriesRun::is_valid)
    }

    fn shares_files(&self, _: &Series) -> bool {
        true
    }

    fn check(&self, series: &Series) -> Result<(), String> {
        check_metric(series)?;
        let has_first = self.loads.first().is_some_and(|load| *load > 0);
        if !has_first || !self.loads.is_sorted_by(|a, b| a < b) {
            return Err("the loads of the curve do not increase from 1 or more".into());
        }
        let loads = series.measured().filter_map(|run| run.load);
        if !loads.is_sorted_by(|a, b| a < b) {
            return Err("the points of the curve are not in increasing order of load".into());
        }
        Ok(())
    }
}

impl Series {
    /// The measured runs as points of a curve, without failed and interrupted runs.
    ///
    /// # Errors
    /// [`CurveError`] if a number is out of range; never for a curve that Plimsoll wrote.
    pub fn points(&self) -> Result<Curve, CurveError> {
        curve_of(self.runs.iter())
    }

    /// The lowest measured load at which the bottleneck of the simulated system is saturated, and the bottleneck;
    /// `None` if no station was saturated.
    #[must_use]
    pub fn saturated_from(&self) -> Option<(u64, &Bottleneck)> {
        self.measured().find_map(|run| {
            let station = run.bottleneck.as_ref()?;
            (station.utilisation >= SATURATED_UTILISATION).then_some((run.load?, station))
        })
    }
}
