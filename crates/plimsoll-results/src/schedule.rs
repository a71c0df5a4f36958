//! Figures of an event schedule (`eventlimit` flowops): the offered and the achieved event rate.

use crate::latency::per_second;
use plimsoll_measure::ScheduleCounts;
use plimsoll_plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Events that the event rate scheduled for `eventlimit`, with the numbers used and dropped.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventSchedule {
    /// Offered rate: events per second that the event rate of the workload schedules.
    pub offered_events_per_s: f64,
    /// Achieved rate: events per second of the measured window that the workers used.
    pub achieved_events_per_s: f64,
    /// Number of events scheduled in the measured window, up to the end of the last worker that waits for events.
    pub scheduled: u64,
    /// Number of events that the workers used in the measured window.
    pub completed: u64,
    /// Number of events of the measured window that were dropped, because the workers were more than 5 s behind the
    /// schedule.
    pub dropped: u64,
}

impl EventSchedule {
    /// Computes the figures of a window from the schedule of each rank; `None` without a schedule.
    #[must_use]
    pub fn of(plan: &Plan, ranks: &[ScheduleCounts], seconds: f64) -> Option<Self> {
        let offered = plan.event_rate.filter(|_| !ranks.is_empty())?;
        let mut sum = ScheduleCounts::default();
        ranks.iter().for_each(|counts| sum.add(counts));
        assert!(
            sum.dropped <= sum.scheduled,
            "{} of {} scheduled events were dropped",
            sum.dropped,
            sum.scheduled
        );
        Some(Self {
            offered_events_per_s: offered,
            achieved_events_per_s: per_second(sum.completed, seconds),
            scheduled: sum.scheduled,
            completed: sum.completed,
            dropped: sum.dropped,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_add_up_to_the_rate_of_the_plan() {
        let mut plan = Plan::empty("w");
        let rank = |completed| ScheduleCounts {
            scheduled: 100,
            completed,
            dropped: 20,
        };
        let ranks = [rank(50), rank(30)];
        assert_eq!(EventSchedule::of(&plan, &ranks, 10.0), None);
        plan.event_rate = Some(20.0);
        assert_eq!(EventSchedule::of(&plan, &[], 10.0), None);
        let figures = EventSchedule::of(&plan, &ranks, 10.0).unwrap();
        let expected = EventSchedule {
            offered_events_per_s: 20.0,
            achieved_events_per_s: 8.0,
            scheduled: 200,
            completed: 80,
            dropped: 40,
        };
        assert_eq!(figures, expected);
        let nothing = EventSchedule::of(&plan, &ranks, 0.0).unwrap();
        assert_eq!(nothing.achieved_events_per_s, 0.0);
    }
}
