//! Input of a full disclosure report from a measured load curve, or from a run as its only point.

use super::{DisclosureInput, MeasuredPoint};
use crate::disclosure::sut::Sut;
use crate::suite_rules;
use plimsoll_measure::curve::PointVerdict;
use plimsoll_plan::{Criteria, Note, counted, show_duration};
use plimsoll_results::{
    ClockKind, LoadCurve, NextRun, Run, SeriesOf, SeriesRun, SeriesState, Target, Verdict,
};
use std::time::Duration;

/// Bytes of a megabyte in reports.
const MEGABYTE: f64 = 1e6;

impl DisclosureInput {
    /// The input of a report from a curve and a description of the system; `date` is the date of the report.
    ///
    /// Failed and interrupted points are left out. The notes list the facts that the description does not state.
    #[must_use]
    pub fn of_curve(curve: SeriesOf<'_, LoadCurve>, sut: Sut, date: String) -> Self {
        Self {
            workload: curve.name.clone(),
            unit: curve.metric_name().to_owned(),
            points: curve.measured().filter_map(point).collect(),
            criteria: criteria(curve.metric().map(|m| &m.criteria)),
            rules: suite_rules::check(curve),
            scale: curve.scale(),
            environment: curve.environment.clone(),
            notes: notes(curve, &sut),
            sut,
            version: curve.program.version.clone(),
            date,
            started_at: curve.started_at.clone(),
        }
    }

    /// The input of a report from a single run: a curve with one point, and therefore without an overall response time.
    /// Without a business metric, the load is the throughput, as in SPECsfs2008; a run that failed, was interrupted or
    /// completed no operation has no point.
    #[must_use]
    pub fn of_run(run: &Run, sut: Sut, date: String) -> Self {
        let mix = run.mix.as_ref();
        let only = NextRun {
            configuration: 0,
            load: Some(mix.map_or(0, |m| m.load)),
            value: None,
            purpose: None,
            seed: run.seed,
            directory: String::new(),
        };
        let point = point(&SeriesRun::of(run, &only, ""));
        let mut point = point.filter(|_| run.summary.ops > 0);
        if let (None, Some(point)) = (mix, &mut point) {
            point.load = super::thousandths(point.ops_per_s);
        }
        let metric = run.plan.metric.as_ref();
        Self {
            workload: run.workload.clone(),
            unit: mix.map_or("Ops/Sec".into(), |m| m.metric.clone()),
            points: point.into_iter().collect(),
            criteria: criteria(metric.map(|m| &m.criteria)),
            rules: vec![],
            scale: mix.map_or(1.0, |m| m.scale),
            environment: run.environment.clone(),
            notes: run_notes(run, &sut),
            sut,
            version: run.program.version.clone(),
            date,
            started_at: run.started_at.clone(),
        }
    }
}

fn point(p: &SeriesRun) -> Option<MeasuredPoint> {
    let verdict = match p.verdict {
        Verdict::Valid => PointVerdict::Valid,
        Verdict::Invalid => PointVerdict::Invalid,
        Verdict::Failed | Verdict::Interrupted => return None,
    };
    Some(MeasuredPoint {
        load: p.load? as f64,
        asked_ops_per_s: p.offered_ops_per_s,
        ops_per_s: p.achieved_ops_per_s,
        mb_per_s: p.bytes_per_s / MEGABYTE,
        latency_ms: p.mean_ms,
        verdict,
        reasons: p.reasons.iter().map(|r| r.text.clone()).collect(),
    })
}

/// Criteria of a valid point; without a business metric, only the criteria of every run.
fn criteria(of_metric: Option<&Criteria>) -> Vec<String> {
    let mut all = vec![];
    if let Some(c) = of_metric {
        all.push(format!(
            "every process does at least {} % of its operations",
            c.process_percent
        ));
        all.push(format!(
            "all processes together do at least {} % of theirs",
            c.total_percent
        ));
    }
    all.extend([
        "no operation fails".into(),
        "the target does not stand still at the end of the measured time, nor for more than a twentieth of it"
            .into(),
        "the measuring machine has processor time left, and starts operations on schedule".into(),
    ]);
    if let Some(limit) = of_metric.and_then(|c| c.latency) {
        let limit = limit.as_secs_f64() * 1e3;
        all.push(format!("the mean response time is at most {limit} ms"));
    }
    all
}

/// Notes on the measurement of the curve, and on facts that are not stated.
fn notes(curve: SeriesOf<'_, LoadCurve>, sut: &Sut) -> Vec<String> {
    let (warmup_s, window_s) = curve.times_s();
    let measured = Measurement {
        started_at: &curve.started_at,
        points: "each load point",
        warmup_s,
        window_s,
        clock: curve.clock,
        target: curve.series.first_target(),
        ranks: curve.ranks,
        seed: curve.seed(),
    };
    let (done, all) = (curve.measured().count(), curve.figures.loads.len());
    let missing = (done < all).then(|| {
        let why = match curve.state {
            SeriesState::Stopped => "a stop rule ended the curve",
            SeriesState::Interrupted => "the user ended the curve",
            SeriesState::Failed => "an error ended the curve",
            SeriesState::Unfinished | SeriesState::Complete => "the curve was not finished",
        };
        let reason = curve.stop_reason.as_ref();
        let reason = reason.map_or(String::new(), |r| format!(" ({})", r.text));
        format!("{done} of {all} load points: {why}{reason}.")
    });
    measured.notes(missing, &curve.notes, sut)
}

/// Notes on the measurement and the events of the run, and on facts that are not stated.
fn run_notes(run: &Run, sut: &Sut) -> Vec<String> {
    let measured = Measurement {
        started_at: &run.started_at,
        points: "the only load point",
        warmup_s: run.window_start_s,
        window_s: run.window_s,
        clock: run.clock,
        target: &run.target,
        ranks: run.ranks,
        seed: run.seed,
    };
    let only = "One run, not a load curve: how the system behaves at other loads is not known.";
    let events = run.events.iter();
    let events: Vec<String> = events
        .map(|e| format!("{} s: {}", e.at_s, e.action))
        .collect();
    let happened =
        (!events.is_empty()).then(|| format!("Events during the run: {}.", events.join("; ")));
    let facts = [Some(only.to_owned()), happened];
    measured.notes(facts.into_iter().flatten(), &run.notes, sut)
}

/// Facts that the notes on every measurement contain.
struct Measurement<'a> {
    started_at: &'a str,
    points: &'a str,
    warmup_s: f64,
    window_s: f64,
    clock: ClockKind,
    target: &'a Target,
    ranks: u32,
    seed: u64,
}

impl Measurement<'_> {
    /// Paragraphs of the report's notes: how the curve was measured, `facts`, notes of the results, and the entries
    /// that `sut.toml` does not state.
    fn notes(
        &self,
        facts: impl IntoIterator<Item = String>,
        notes: &[Note],
        sut: &Sut,
    ) -> Vec<String> {
        let mut all = vec![self.sentence()];
        all.extend(facts);
        all.extend(notes.iter().map(|n| n.text.clone()));
        all.extend(not_stated(sut));
        all
    }

    fn sentence(&self) -> String {
        let length = |s: f64| show_duration(Duration::try_from_secs_f64(s).unwrap_or_default());
        let clock = match self.clock {
            ClockKind::Real => "",
            ClockKind::Virtual => ", of virtual time: simulated, not measured",
        };
        format!(
            "Measured from {} on: {} of warm-up and {} of measuring at {}{clock}. Target \
             {} ({}), {}, seed {}. Latencies are response times: from an operation's scheduled start \
             to its return.",
            self.started_at,
            length(self.warmup_s),
            length(self.window_s),
            self.points,
            self.target.url,
            self.target.description,
            counted(u64::from(self.ranks), "process", "processes"),
            self.seed
        )
    }
}

fn not_stated(sut: &Sut) -> Option<String> {
    let (_, missing) = sut.stated();
    // Without a stated test date, the report prints the month of the measurement.
    let missing: Vec<_> = missing
        .into_iter()
        .filter(|entry| *entry != "product.date_tested")
        .collect();
    (!missing.is_empty()).then(|| {
        format!(
            "The description of the system does not state: {}.",
            missing.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_latency(latency_ms: Option<f64>) -> MeasuredPoint {
        let point = SeriesRun {
            directory: String::new(),
            configuration: 0,
            seed: 0,
            load: Some(5),
            value: None,
            promises: vec![],
            phase: None,
            purpose: None,
            margin: None,
            achieved_ops_per_s: if latency_ms.is_some() { 2.0 } else { 0.0 },
            mean_ms: latency_ms,
            verdict: Verdict::Invalid,
            reasons: vec![],
            criteria: vec![],
            offered_ops_per_s: Some(50.0),
            slowest_process_percent: None,
            p50_ms: None,
            p95_ms: None,
            p99_ms: None,
            max_ms: None,
            max_at_least: false,
            percentiles: vec![],
            service_mean_ms: None,
            read_bytes_per_s: 0.0,
            write_bytes_per_s: 0.0,
            bytes_per_s: 0.0,
            errors: 0,
            window_s: 4.0,
            stationarity: None,
            qualifiers: vec![],
            time_at: vec![],
            bottleneck: None,
            settling: None,
            commands: vec![],
            started_at: String::new(),
        };
        super::point(&point).unwrap()
    }

    #[test]
    fn a_latency_of_nothing_is_none() {
        assert_eq!(of_latency(None).latency_ms, None);
        assert_eq!(of_latency(Some(5.0)).latency_ms, Some(5.0));
    }
}
