//! Figures of operation mixes: the part of the load that was sustained.

use crate::latency::{LatencyFigures, per_second};
use plimsoll_measure::{InFlightAges, Latency, OpTotals, ProcessCounts, ScheduleCounts};
use plimsoll_plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Offered, achieved and dropped load of an operation mix in the last measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixFigures {
    /// Offered load in business metrics; 0 if the Plan has no business metric.
    pub load: u64,
    /// Name of the business metric in the plural, such as `streams`; empty without a business metric.
    pub metric: String,
    /// Scale: the fraction of the full data and rates, above 0 and at most 1. Results of different scales are not
    /// comparable.
    pub scale: f64,
    /// Figures of all components of the mix together.
    pub total: ScheduledFigures,
    /// Figures of each component of the mix, in the order of the Plan's groups.
    pub components: Vec<ComponentFigures>,
}

/// Figures of a component: one kind of process of an operation mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComponentFigures {
    /// Name of the component in the operation mix.
    pub name: String,
    /// Number of processes of the component, in all ranks.
    pub processes: u64,
    /// Rates and counts of the component's operations.
    #[serde(flatten)]
    pub carried: ScheduledFigures,
}

/// Rates and counts of the scheduled, completed and dropped operations of a mix or of one of its components.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduledFigures {
    /// Offered rate: operations per second that the schedule starts; null without a schedule.
    pub offered_ops_per_s: Option<f64>,
    /// Achieved rate: successful operations per second of the measured window.
    pub achieved_ops_per_s: f64,
    /// Number of operations that the schedule had due in the measured window; 0 without a schedule.
    pub scheduled: u64,
    /// Number of operations that succeeded in the measured window.
    pub completed: u64,
    /// Number of operations that were not started, because their process was more than 1 s behind its schedule.
    pub dropped: u64,
    /// Completed operations of the slowest process, as a percentage of its scheduled operations; null without a
    /// schedule.
    pub slowest_process_percent: Option<f64>,
    /// Response time of all paced operations, from intended start to return; null without a schedule, and if no
    /// operation completed or was in flight. If operations were in flight at the end and none completed, percentiles
    /// and maximum of the response time are lower bounds, and minimum and mean are 0.
    pub response: Option<LatencyFigures>,
    /// Start delay of the operations, caused by the client: the time from the intended start to the start by a free
    /// process; null without a schedule, and if no operation started.
    pub start_delay: Option<LatencyFigures>,
}

/// Sums of rates, counts and latencies over the processes and the rows of a component of an operation mix, or of all
/// components.
#[derive(Default)]
struct MixSum {
    offered: f64,
    paced: bool,
    counts: ScheduleCounts,
    slowest: Option<f64>,
    response: Latency,
    in_flight: InFlightAges,
    start_delay: Latency,
}

impl MixSum {
    fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.paced |= other.paced;
        self.counts.add(&other.counts);
        let both = [self.slowest, other.slowest].into_iter().flatten();
        self.slowest = both.reduce(f64::min);
        self.response.add(&other.response);
        self.in_flight.merge(&other.in_flight);
        self.start_delay.add(&other.start_delay);
    }

    fn figures(&self, seconds: f64) -> ScheduledFigures {
        let latency = |l: &Latency, ages: &InFlightAges| {
            let known = l.count() > 0 || ages.oldest() > 0;
            known.then(|| LatencyFigures::of(l, ages))
        };
        ScheduledFigures {
            offered_ops_per_s: self.paced.then_some(self.offered),
            achieved_ops_per_s: per_second(self.counts.completed, seconds),
            scheduled: self.counts.scheduled,
            completed: self.counts.completed,
            dropped: self.counts.dropped,
            slowest_process_percent: self.slowest,
            response: latency(&self.response, &self.in_flight),
            start_delay: latency(&self.start_delay, &InFlightAges::default()),
        }
    }
}

impl MixFigures {
    /// Computes the figures of an operation mix in a window of `seconds` from the counts of each process; `None` if the
    /// Plan has no operation mix.
    #[must_use]
    pub fn of(
        plan: &Plan,
        processes: &[ProcessCounts],
        rows: &[OpTotals],
        seconds: f64,
    ) -> Option<Self> {
        let mut total = MixSum::default();
        let mut components = Vec::new();
        for (i, group) in plan.groups.iter().enumerate() {
            let mix = group.program.mix()?;
            let mut sum = MixSum {
                offered: mix.pacing.map_or(0.0, |p| p.rate * group.workers() as f64),
                paced: mix.pacing.is_some(),
                ..MixSum::default()
            };
            for process in processes.iter().filter(|p| p.group as usize == i) {
                let counts = process.counts;
                assert!(
                    counts.dropped <= counts.scheduled,
                    "a process dropped {} of {} scheduled operations",
                    counts.dropped,
                    counts.scheduled
                );
                sum.counts.add(&counts);
                if counts.scheduled > 0 {
                    let part = 100.0 * counts.completed as f64 / counts.scheduled as f64;
                    sum.slowest = Some(sum.slowest.map_or(part, |s| s.min(part)));
                }
            }
            let row = |id: plimsoll_plan::OperationId| rows.get(id.0 as usize);
            for totals in mix.table.iter().filter_map(|r| row(r.row)) {
                if totals.paced > 0 {
                    sum.response.add(&totals.response);
                }
                if sum.paced {
                    sum.in_flight.merge(&totals.in_flight);
                }
            }
            if let Some(totals) = mix.pacing.and_then(|p| row(p.start)) {
                sum.start_delay.add(&totals.service);
            }
            total.add(&sum);
            components.push(ComponentFigures {
                name: group.process.clone(),
                processes: group.workers(),
                carried: sum.figures(seconds),
            });
        }
        let metric = plan.metric.as_ref();
        (!components.is_empty()).then(|| Self {
            load: metric.map_or(0, |m| m.load),
            metric: metric.map_or_else(String::new, |m| m.name.clone()),
            scale: metric.map_or(1.0, |m| m.scale),
            total: total.figures(seconds),
            components,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(scheduled: u64, completed: u64, slowest: Option<f64>) -> MixSum {
        MixSum {
            offered: 10.0,
            paced: scheduled > 0,
            counts: ScheduleCounts {
                scheduled,
                completed,
                dropped: 3,
            },
            slowest,
            response: Latency::of([completed * 1_000_000]),
            ..MixSum::default()
        }
    }

    #[test]
    fn components_add_up_and_the_slowest_process_is_that_of_all() {
        let mut total = MixSum::default();
        let figures = total.figures(2.0);
        assert_eq!((figures.offered_ops_per_s, figures.response), (None, None));
        total.add(&sum(0, 7, None));
        assert_eq!(total.figures(2.0).slowest_process_percent, None);
        total.add(&sum(10, 8, Some(80.0)));
        total.add(&sum(20, 10, Some(50.0)));
        total.add(&sum(20, 19, Some(95.0)));
        let figures = total.figures(2.0);
        assert_eq!(
            (figures.offered_ops_per_s, figures.achieved_ops_per_s),
            (Some(40.0), 22.0)
        );
        let counts = (figures.scheduled, figures.completed, figures.dropped);
        assert_eq!(counts, (50, 44, 12));
        assert_eq!(figures.slowest_process_percent, Some(50.0));
        let response = figures.response.unwrap();
        assert_eq!(
            (response.min_ms, response.max_ms, response.mean_ms),
            (7.0, 19.0, 11.0)
        );
        assert_eq!(total.figures(0.0).achieved_ops_per_s, 0.0);
    }

    #[test]
    fn a_response_time_of_what_is_in_flight_is_a_lower_bound() {
        let mut waiting = sum(10, 8, None);
        let is_bound = |of: &MixSum| of.figures(1.0).response.unwrap().max_at_least;
        assert!(!is_bound(&waiting));
        waiting.in_flight.add(5_000_000);
        assert!(!is_bound(&waiting), "8 ms is longer");
        waiting.in_flight.add(20_000_000);
        assert!(is_bound(&waiting));
        waiting.response = Latency::default();
        let alone = waiting.figures(1.0);
        assert_eq!(
            alone.response.map(|r| (r.max_ms, r.mean_ms)),
            Some((20.0, 0.0))
        );
        assert_eq!(alone.start_delay, None);
    }
}
