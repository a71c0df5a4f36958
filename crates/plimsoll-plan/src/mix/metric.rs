//! Business metrics: units of load, and the criteria of a valid load point.

use crate::units::optional_seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Business metric: a unit of load that means something to users, such as a video stream, a software build or a
/// desktop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusinessMetric {
    /// Name of the business metric in the plural, such as `streams`.
    pub name: String,
    /// Load that the run offers, as a number of business metrics.
    pub load: u64,
    /// Scale: the fraction of the full data and rates that the run uses, above 0 and at most 1. Results of different
    /// scales are not comparable.
    pub scale: f64,
    /// Size of the data files of one business metric at full scale, in bytes.
    pub data: u64,
    /// Scheduled rate of one business metric at full scale, in operations per second; null if operations are not paced.
    pub rate: Option<f64>,
    /// Criteria that a run must meet to be a valid load point.
    pub criteria: Criteria,
}

impl BusinessMetric {
    /// Whether the data and the rates are less than full, that is, the scale is below 1.
    #[must_use]
    pub fn is_scaled(&self) -> bool {
        self.scale != 1.0
    }
}

/// Mark of every reported result with a scale below 1.
pub const SCALED: &str = "scaled: not comparable";

/// Mark of a result with the scale `scale`, below 1: [`SCALED`] and the scale.
#[must_use]
pub fn scaled(scale: f64) -> String {
    format!("{SCALED} (data and rates are {scale} of the full ones)")
}

/// Criteria that a run must meet to be a valid load point, in addition to the criterion that no operation fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Criteria {
    /// Minimum percentage of its own scheduled operations that each process must complete, 0 to 100.
    pub process_percent: f64,
    /// Minimum percentage of all scheduled operations that all processes together must complete, 0 to 100.
    pub total_percent: f64,
    /// Maximum of the mean response time of all operations, in seconds; null without a limit.
    #[serde(with = "optional_seconds", rename = "latency_s")]
    #[schemars(with = "Option<f64>", rename = "latency_s")]
    pub latency: Option<Duration>,
}

impl Default for Criteria {
    fn default() -> Self {
        Self {
            process_percent: 75.0,
            total_percent: 95.0,
            latency: None,
        }
    }
}

/// A criterion of a valid load point that a run does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCriterion {
    /// Code of the failed criterion in results: `process_rate`, `total_rate` or `latency`.
    pub code: &'static str,
    /// Measured figure and limit of the failed criterion, as a sentence.
    pub text: String,
}

impl Criteria {
    /// Whether a load at which the queue of the target grows is not valid. A minimum total percentage below the usual
    /// minimum accepts loads that the target does not sustain, whose queue always grows.
    #[must_use]
    pub fn refuses_queue_growth(&self) -> bool {
        self.total_percent >= Self::default().total_percent
    }

    /// Criteria of a valid load point that a run does not meet; empty if the run meets all criteria.
    ///
    /// `processes` has the scheduled and the completed operations of each process; `mean` is the mean response time of
    /// all operations. For each process, one operation more than the completed operations counts as completed, because
    /// an operation may be in flight at the end.
    #[must_use]
    pub fn missed(&self, processes: &[(u64, u64)], mean: Option<Duration>) -> Vec<FailedCriterion> {
        let mut failed = Vec::new();
        let slow = processes
            .iter()
            .filter(|p| !is_achieved(&[**p], self.process_percent));
        let slow: Vec<(f64, &(u64, u64))> = slow.map(|p| (fraction(p.1, p.0), p)).collect();
        if let Some((slowest, (scheduled, completed))) =
            slow.iter().min_by(|a, b| a.0.total_cmp(&b.0))
        {
            let text = format!(
                "{} of {} processes did less than {} % of their operations; the slowest \
                 {:.1} % ({completed} of {scheduled})",
                slow.len(),
                processes.len(),
                self.process_percent,
                100.0 * slowest,
            );
            failed.push(FailedCriterion {
                code: "process_rate",
                text,
            });
        }
        failed.extend(self.missed_total(
            processes,
            "all processes together did",
            "their operations",
        ));
        if let (Some(limit), Some(mean)) = (self.latency, mean)
            && mean > limit
        {
            let ms = |d: Duration| d.as_secs_f64() * 1e3;
            let text = format!(
                "the mean response time was {:.3} ms, the limit is {} ms",
                ms(mean),
                ms(limit)
            );
            failed.push(FailedCriterion {
                code: "latency",
                text,
            });
        }
        failed
    }

    /// The failed criterion of all schedules together; `None` if at least [`Criteria::total_percent`] of the scheduled
    /// operations of mixes, or of the scheduled events of other workloads, was completed.
    ///
    /// `schedules` has the scheduled and the completed operations or events of each schedule; one more operation or
    /// event of each schedule counts as completed, because one operation or event may be in flight at the end. The
    /// sentence of the failed criterion begins with `who`, such as `the workers used`; `done` names the operations or
    /// events in the sentence.
    #[must_use]
    pub fn missed_total(
        &self,
        schedules: &[(u64, u64)],
        who: &str,
        done: &str,
    ) -> Option<FailedCriterion> {
        let (scheduled, completed) = sums(schedules);
        (!is_achieved(schedules, self.total_percent)).then(|| FailedCriterion {
            code: "total_rate",
            text: format!(
                "{who} {:.1} % of {done} ({completed} of {scheduled}), less than {} %",
                100.0 * fraction(completed, scheduled),
                self.total_percent
            ),
        })
    }
}

fn sums(schedules: &[(u64, u64)]) -> (u64, u64) {
    let sum = |(scheduled, completed), schedule: &(u64, u64)| {
        (scheduled + schedule.0, completed + schedule.1)
    };
    schedules.iter().fold((0, 0), sum)
}

fn fraction(completed: u64, scheduled: u64) -> f64 {
    completed as f64 / scheduled.max(1) as f64
}

/// Whether the schedules together completed `percent` % of their operations; one operation in flight per schedule
/// counts as completed.
fn is_achieved(schedules: &[(u64, u64)], percent: f64) -> bool {
    let (scheduled, completed) = sums(schedules);
    (completed + schedules.len() as u64) as f64 >= scheduled as f64 * percent / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(processes: &[(u64, u64)], mean_ms: u64) -> Vec<&'static str> {
        let criteria = Criteria {
            latency: Some(Duration::from_millis(20)),
            ..Criteria::default()
        };
        let mean = Some(Duration::from_millis(mean_ms));
        let missed = criteria.missed(processes, mean);
        missed.into_iter().map(|m| m.code).collect()
    }

    #[test]
    fn a_load_is_sustained_down_to_its_thresholds() {
        assert!(codes(&[(1000, 1000), (1000, 950)], 20).is_empty());
        // 749 completed operations and one operation in flight are 75 % of 1000 operations; 748 and one in flight are
        // less.
        assert_eq!(codes(&[(9000, 9000), (1000, 749)], 1), [] as [&str; 0]);
        assert_eq!(codes(&[(9000, 9000), (1000, 748)], 1), ["process_rate"]);
        assert_eq!(codes(&[(1000, 948), (1000, 950)], 1), [] as [&str; 0]);
        assert_eq!(codes(&[(1000, 947), (1000, 950)], 1), ["total_rate"]);
        assert_eq!(codes(&[(1000, 1000)], 21), ["latency"]);
        assert_eq!(
            codes(&[(1000, 500)], 21),
            ["process_rate", "total_rate", "latency"]
        );
        assert!(codes(&[], 0).is_empty());
    }

    #[test]
    fn a_latency_above_its_limit_is_described_with_both() {
        let criteria = Criteria {
            latency: Some(Duration::from_millis(20)),
            ..Criteria::default()
        };
        let missed = criteria.missed(&[(10, 10)], Some(Duration::from_micros(20_001)));
        let expected = FailedCriterion {
            code: "latency",
            text: "the mean response time was 20.001 ms, the limit is 20 ms".into(),
        };
        assert_eq!(missed, [expected]);
        assert_eq!(criteria.missed(&[(10, 10)], None), []);
    }

    #[test]
    fn failed_criteria_are_described_with_their_numbers() {
        // The message names as slowest the process with the smallest percentage of completed operations, 300 of 1000.
        let missed = Criteria::default().missed(&[(100, 40), (1000, 300), (10, 4), (0, 0)], None);
        assert_eq!(
            missed.iter().map(|m| m.text.as_str()).collect::<Vec<_>>(),
            [
                "3 of 4 processes did less than 75 % of their operations; the slowest 30.0 % (300 \
                 of 1000)",
                "all processes together did 31.0 % of their operations (344 of 1110), less than 95 %"
            ]
        );
    }
}
