//! Business metrics: what a load is a number of, and when it is carried.

use crate::units::optional_seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A unit of load that means something to people: a video stream, a software build, a desktop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusinessMetric {
    /// Name of several of them, such as `streams`.
    pub name: String,
    /// How many of them the Plan carries.
    pub load: u64,
    /// Share of the full data and of the full rates that this Plan has; 1 is all. Results of
    /// different shares cannot be compared.
    pub scale: f64,
    /// Bytes of data files of each at full scale.
    pub data: u64,
    /// Operations a second of each at full scale; `None` if they are not paced.
    pub rate: Option<f64>,
    /// When the load counts as carried.
    pub criteria: Criteria,
}

impl BusinessMetric {
    /// Whether data and rates are a part of the full ones.
    #[must_use]
    pub fn is_scaled(&self) -> bool {
        self.scale != 1.0
    }
}

/// How every report marks a result of less than the full data and rates.
pub const SCALED: &str = "scaled: not comparable";

/// The mark of a scaled result with its share of the full data and rates.
#[must_use]
pub fn scaled(scale: f64) -> String {
    format!("{SCALED} (data and rates are {scale} of the full ones)")
}

/// When a load counts as carried. A failed operation always stands against it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Criteria {
    /// Least part of its operations that each process must have done, in percent.
    pub process_percent: f64,
    /// Least part of all operations that all processes together must have done, in percent.
    pub total_percent: f64,
    /// Greatest mean response time of all operations.
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

/// A criterion that was missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCriterion {
    /// A word for scripts: `process_rate`, `total_rate` or `latency`.
    pub code: &'static str,
    /// A sentence for people.
    pub text: String,
}

impl Criteria {
    /// What was missed of what a load must meet.
    ///
    /// `processes` are each process's operations due and done; `mean` is the mean response time
    /// of all operations. A process has at most one operation under way when the time is over,
    /// and that one is not held against it.
    #[must_use]
    pub fn missed(&self, processes: &[(u64, u64)], mean: Option<Duration>) -> Vec<FailedCriterion> {
        let enough = |due: u64, done: u64, under_way: u64, percent: f64| {
            (done + under_way) as f64 >= due as f64 * percent / 100.0
        };
        let mut missed = Vec::new();
        let slow = |(due, done): &&(u64, u64)| !enough(*due, *done, 1, self.process_percent);
        let behind: Vec<&(u64, u64)> = processes.iter().filter(slow).collect();
        let share = |(due, done): (u64, u64)| 100.0 * done as f64 / due.max(1) as f64;
        if let Some(worst) = behind
            .iter()
            .min_by(|a, b| share(***a).total_cmp(&share(***b)))
        {
            let text = format!(
                "{} of {} processes did less than {} % of their operations; the slowest {:.1} % \
                 ({} of {})",
                behind.len(),
                processes.len(),
                self.process_percent,
                share(**worst),
                worst.1,
                worst.0
            );
            missed.push(FailedCriterion {
                code: "process_rate",
                text,
            });
        }
        let sum = |of: fn(&(u64, u64)) -> u64| processes.iter().map(of).sum::<u64>();
        let (due, done) = (sum(|p| p.0), sum(|p| p.1));
        if !enough(due, done, processes.len() as u64, self.total_percent) {
            let text = format!(
                "all processes together did {:.1} % of their operations ({done} of {due}), less \
                 than {} %",
                share((due, done)),
                self.total_percent
            );
            missed.push(FailedCriterion {
                code: "total_rate",
                text,
            });
        }
        if let (Some(limit), Some(mean)) = (self.latency, mean)
            && mean > limit
        {
            let ms = |d: Duration| d.as_secs_f64() * 1e3;
            let text = format!(
                "the mean response time was {:.3} ms, the limit is {} ms",
                ms(mean),
                ms(limit)
            );
            missed.push(FailedCriterion {
                code: "latency",
                text,
            });
        }
        missed
    }
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
        // 749 and the one under way are 75 %; 748 are not.
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
    fn failed_criteria_are_described_with_their_numbers() {
        let missed = Criteria::default().missed(&[(1000, 1000), (1000, 500), (1000, 600)], None);
        assert_eq!(
            missed[0].text,
            "2 of 3 processes did less than 75 % of their operations; the slowest 50.0 % (500 of \
             1000)"
        );
        assert_eq!(
            missed[1].text,
            "all processes together did 70.0 % of their operations (2100 of 3000), less than 95 %"
        );
    }
}
