//! The content of a report on a measured load curve.

use super::{DisclosureInput, MeasuredPoint};
use crate::sut::Sut;
use plimsoll_measure::curve::PointVerdict;
use plimsoll_plan::{Criteria, counted, show_duration};
use plimsoll_results::{ClockKind, CurvePoint, CurveState, LoadCurve, Verdict};
use std::time::Duration;

/// Bytes of a megabyte in reports.
const MEGABYTE: f64 = 1e6;

impl DisclosureInput {
    /// The input of a report from a curve and a description of the system; `date` is that of the report.
    ///
    /// Points that failed or were interrupted are left out. The notes list what the description does
    /// not state.
    #[must_use]
    pub fn of_curve(curve: &LoadCurve, sut: Sut, date: String) -> Self {
        Self {
            workload: curve.workload.clone(),
            unit: curve.metric.clone(),
            points: curve.points.iter().filter_map(point).collect(),
            criteria: criteria(&curve.criteria),
            scale: curve.scale,
            environment: curve.environment.clone(),
            notes: notes(curve, &sut),
            sut,
            version: curve.program.version.clone(),
            date,
        }
    }
}

fn point(p: &CurvePoint) -> Option<MeasuredPoint> {
    let verdict = match p.verdict {
        Verdict::Valid => PointVerdict::Valid,
        Verdict::Invalid => PointVerdict::Invalid,
        Verdict::Failed | Verdict::Interrupted => return None,
    };
    Some(MeasuredPoint {
        load: p.load as f64,
        asked_ops_per_s: p.offered_ops_per_s,
        ops_per_s: p.achieved_ops_per_s,
        mb_per_s: p.bytes_per_s / MEGABYTE,
        latency_ms: p.mean_ms,
        verdict,
        reasons: p.reasons.iter().map(|r| r.text.clone()).collect(),
    })
}

fn criteria(c: &Criteria) -> Vec<String> {
    let mut all =
        vec![
        format!("every process does at least {} % of its operations", c.process_percent),
        format!("all processes together do at least {} % of theirs", c.total_percent),
        "no operation fails".into(),
        "the target does not stand still at the end of the measured time, nor for more than a twentieth of it"
            .into(),
        "the measuring machine has processor time left, and starts operations on schedule".into(),
    ];
    if let Some(limit) = c.latency {
        let limit = limit.as_secs_f64() * 1e3;
        all.push(format!("the mean response time is at most {limit} ms"));
    }
    all
}

/// How the curve was measured, and what is not stated.
fn notes(curve: &LoadCurve, sut: &Sut) -> Vec<String> {
    let length = |s: f64| show_duration(Duration::try_from_secs_f64(s).unwrap_or_default());
    let clock = match curve.clock {
        ClockKind::Real => "",
        ClockKind::Virtual => ", of virtual time: simulated, not measured",
    };
    let mut notes = vec![format!(
        "Measured from {} on: {} of warm-up and {} of measuring at each load point{clock}. Target \
         {} ({}), {}, seed {}. Latencies are response times: from an operation's scheduled start \
         to its return.",
        curve.started_at,
        length(curve.warmup_s),
        length(curve.measure_s),
        curve.target.url,
        curve.target.description,
        counted(u64::from(curve.ranks), "process", "processes"),
        curve.seed
    )];
    let (done, all) = (curve.points.len(), curve.selection.loads.len());
    if done < all {
        let why = match curve.state {
            CurveState::Stopped => "a stop rule ended the curve",
            CurveState::Interrupted => "the user ended the curve",
            CurveState::Failed => "an error ended the curve",
            CurveState::Unfinished | CurveState::Complete => "the curve was not finished",
        };
        let reason = curve.stop_reason.as_ref();
        let reason = reason.map_or(String::new(), |r| format!(" ({})", r.text));
        notes.push(format!("{done} of {all} load points: {why}{reason}."));
    }
    notes.extend(curve.notes.iter().map(|n| n.text.clone()));
    let (_, missing) = sut.stated();
    if !missing.is_empty() {
        notes.push(format!(
            "The description of the system does not state: {}.",
            missing.join(", ")
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_latency(latency_ms: Option<f64>) -> MeasuredPoint {
        let point = CurvePoint {
            load: 5,
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
            time_at: vec![],
            bottleneck: None,
            commands: vec![],
            started_at: String::new(),
            run: String::new(),
        };
        super::point(&point).unwrap()
    }

    #[test]
    fn a_latency_of_nothing_is_none() {
        assert_eq!(of_latency(None).latency_ms, None);
        assert_eq!(of_latency(Some(5.0)).latency_ms, Some(5.0));
    }
}
