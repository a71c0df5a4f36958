//! Schedules: due times of events, and the events that are dropped because the workers are too far behind.
//!
//! Filebench's queue holds the events of five seconds and adds none while full. Plimsoll drops the oldest events
//! instead, so that a backlog adds at most five seconds to a response time, or the time between two events if that time
//! is longer.

use crate::worker_id::WorkerId;
use plimsoll_measure::{Nanos, ScheduleCounts, WindowBacklog, WindowBounds};
use plimsoll_plan::Plan;
use plimsoll_runtime::sync::atomic::AtomicU64;
use plimsoll_runtime::sync::atomic::Ordering::Relaxed;
use std::ops::Range;

/// Maximum delay of an operation of a mix in nanoseconds. Operations with a longer delay are dropped, except the latest
/// due operation, so that a server does not get all delayed operations at once after a stall.
pub(crate) const MAX_MIX_BACKLOG_NS: Nanos = 1_000_000_000;

/// Maximum delay of an event in nanoseconds: Filebench's queue holds the events of five seconds.
pub(crate) const MAX_EVENT_BACKLOG_NS: Nanos = 5_000_000_000;

/// Whether an event that was due at `due` is dropped at `now`: the delay exceeds `max_backlog`, and the next event of
/// the schedule, at `next`, is due too. The latest due event is therefore never dropped, however low the rate is.
pub(crate) fn is_dropped(due: Nanos, next: Nanos, now: Nanos, max_backlog: Nanos) -> bool {
    due < now.saturating_sub(max_backlog) && next <= now
}

/// Events at a fixed rate, which the workers of a process share. Event `n`, counted from 1, is due `n/rate` after the
/// start. All times are nanoseconds after the start.
pub(crate) struct EventSource {
    rate: f64,
    /// Number of events that were taken or dropped.
    passed: AtomicU64,
    /// Number of events that were dropped.
    dropped: AtomicU64,
}

/// Events that a worker has taken.
pub(crate) struct TakenEvents {
    /// Due time of the last taken event.
    due: Nanos,
    /// The dropped events: the events after number `start`, up to number `end`.
    pub(crate) dropped: Range<u64>,
}

impl TakenEvents {
    /// Due time of the last taken event, in a schedule that began at `start`; [`Nanos::MAX`], which means never, for a
    /// time beyond the range of the clock.
    pub(crate) fn due_after(&self, start: Nanos) -> Nanos {
        start.saturating_add(self.due)
    }
}

impl EventSource {
    pub(crate) fn new(rate: f64) -> Self {
        Self {
            rate,
            passed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Due time of event `n`.
    fn due(&self, n: u64) -> Nanos {
        (n as f64 / self.rate * 1e9) as Nanos
    }

    /// Number of events that are due before `at`.
    fn due_before(&self, at: Nanos) -> u64 {
        let (mut low, mut high) = (0, (at as f64 * self.rate / 1e9 * 1.000_001) as u64);
        high = high.saturating_add(2);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.due(middle + 1) < at {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Number of events, from the first, that are taken, dropped, or to be dropped at `now`. The first `passed` events
    /// are taken or dropped already.
    fn expired(&self, now: Nanos, passed: u64) -> u64 {
        let is_dropped = |n| is_dropped(self.due(n), self.due(n + 1), now, MAX_EVENT_BACKLOG_NS);
        if !is_dropped(passed + 1) {
            return passed;
        }
        let old = self.due_before(now.saturating_sub(MAX_EVENT_BACKLOG_NS));
        let expired = old.min(self.due_before(now.saturating_add(1)) - 1);
        debug_assert!(is_dropped(expired) && !is_dropped(expired + 1));
        expired
    }

    /// Drops the events that are too old at `now`, and takes the next `count` events.
    pub(crate) fn take(&self, now: Nanos, count: u64) -> TakenEvents {
        let last = |passed| self.expired(now, passed) + count;
        let take = |passed| Some(last(passed));
        let passed = self.passed.fetch_update(Relaxed, Relaxed, take);
        let passed = passed.expect("every number has a next");
        let last = last(passed);
        let dropped = last - count - passed;
        if dropped > 0 {
            self.dropped.fetch_add(dropped, Relaxed);
        }
        TakenEvents {
            due: self.due(last),
            dropped: passed..last - count,
        }
    }

    /// Number of events that are due from `from` until before `to`, among the events after number `events.start` up to
    /// number `events.end`.
    pub(crate) fn due_between(&self, events: &Range<u64>, from: Nanos, to: Nanos) -> u64 {
        let first = self.due_before(from).max(events.start);
        let last = self.due_before(to).min(events.end);
        last.saturating_sub(first)
    }
}

/// Backlogs of the event schedule in the latest window, at the events that a worker took. The backlog at an event is
/// the delay of the event plus the time of the events that all workers of the process dropped since the worker's first
/// event in the window.
#[derive(Default)]
pub(crate) struct EventBacklog {
    window: u32,
    /// Number of events of the schedule that were dropped up to the worker's first event in the window.
    dropped_before: u64,
    pub(crate) backlog: WindowBacklog,
}

impl EventBacklog {
    /// Adds an event of `events` that the worker takes at `now`, although the event was due at `due`.
    pub(crate) fn record(
        &mut self,
        events: &EventSource,
        window: WindowBounds,
        now: Nanos,
        due: Nanos,
    ) {
        let start = now.max(due);
        if !window.contains(start) {
            return;
        }
        let dropped = events.dropped.load(Relaxed);
        if window.number != self.window {
            (self.window, self.dropped_before) = (window.number, dropped);
        }
        let lost_s = (dropped - self.dropped_before) as f64 / events.rate;
        let backlog = (start - due) + (lost_s * 1e9) as Nanos;
        self.backlog.record(window, start, backlog);
    }
}

/// The part of the event rate that belongs to `workers`: their share of all workers with limiters, because only workers
/// with limiters take events. `None` without workers with limiters, or without a rate.
pub(crate) fn own_event_rate(plan: &Plan, workers: &[WorkerId]) -> Option<f64> {
    let groups = plan.groups.iter();
    let limited: Vec<bool> = groups.map(|g| g.program.has_limiter(|_| true)).collect();
    let own = workers.iter().filter(|w| limited[w.group as usize]).count();
    let all = plan.groups.iter().zip(&limited).filter(|(_, is)| **is);
    let all: u64 = all.map(|(g, _)| g.workers()).sum();
    let rate = plan.event_rate.filter(|_| own > 0)?;
    Some(rate * own as f64 / all as f64)
}

/// Schedule counts of a worker in the latest window.
#[derive(Clone, Copy, Default)]
pub(crate) struct WindowCounts {
    /// Number of the window, from 1; 0 before the first window.
    pub(crate) window: u32,
    pub(crate) counts: ScheduleCounts,
}

impl WindowCounts {
    /// The counts in the latest window; the counts begin at 0 in each window.
    pub(crate) fn in_window(&mut self, window: WindowBounds) -> &mut ScheduleCounts {
        if window.number != self.window {
            *self = Self {
                window: window.number,
                ..Self::default()
            };
        }
        &mut self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::{LimitKind, Op, OperationId, Program, Step, Value, WorkerGroup};
    use proptest::prelude::*;

    const SECOND: Nanos = 1_000_000_000;

    #[test]
    fn events_are_due_at_their_rate() {
        let events = EventSource::new(1000.0);
        assert_eq!(events.take(0, 1).due, 1_000_000);
        assert_eq!(events.take(0, 9).due, 10_000_000);
        assert_eq!(events.take(SECOND, 1).due, 11_000_000);
        let all = |from, to| events.due_between(&(0..u64::MAX), from * SECOND, to * SECOND);
        // The first event is due after 1 ms, and the event at 60 s is not in the window.
        assert_eq!((all(0, 60), all(10, 11)), (59_999, 1000));
        assert_eq!(all(5, 3), 0);
    }

    #[test]
    fn an_event_beyond_the_clock_is_never_due() {
        // The rate is one event in thirty thousand years.
        let events = EventSource::new(1e-12);
        for _ in 0..3 {
            assert_eq!(events.take(SECOND, 1).due_after(SECOND), Nanos::MAX);
        }
        let soon = EventSource::new(1.0).take(0, 1);
        assert_eq!(soon.due_after(SECOND), 2 * SECOND);
    }

    #[test]
    fn five_seconds_of_events_wait_and_older_ones_are_dropped() {
        let events = EventSource::new(100.0);
        // Event 1 is due at 10 ms.
        let taken = events.take(5 * SECOND + 10_000_000, 1);
        assert_eq!((taken.due, taken.dropped), (10_000_000, 0..0));
        let taken = events.take(5 * SECOND + 20_000_001, 1);
        assert_eq!((taken.due, taken.dropped), (30_000_000, 1..2));
        // All events of a minute except the events of the last five seconds are dropped or taken.
        let taken = events.take(60 * SECOND, 2);
        assert_eq!(
            (taken.due, taken.dropped.clone()),
            (55_010_000_000, 3..5499)
        );
        let of_window = |from, to| events.due_between(&taken.dropped, from * SECOND, to * SECOND);
        assert_eq!(
            (of_window(0, 60), of_window(10, 20), of_window(54, 60)),
            (5496, 1000, 100)
        );
    }

    #[test]
    fn the_latest_event_that_was_due_is_kept_at_any_rate() {
        // The rate is one event in ten seconds.
        let events = EventSource::new(0.1);
        let taken = events.take(19 * SECOND, 1);
        assert_eq!((taken.due, taken.dropped), (10 * SECOND, 0..0));
        let taken = events.take(45 * SECOND, 1);
        assert_eq!((taken.due, taken.dropped), (40 * SECOND, 1..3));
        let taken = events.take(45 * SECOND, 1);
        assert_eq!((taken.due, taken.dropped), (50 * SECOND, 4..4));
    }

    #[test]
    fn workers_without_limiters_have_no_part_of_the_rate() {
        let group = |name, instances, limiter: Option<LimitKind>| {
            let step = |kind| Step::Do {
                row: OperationId(0),
                iters: Value::Const(1),
                op: Op::Limit {
                    kind,
                    targets: None,
                },
            };
            let steps = limiter.map(step).into_iter().collect();
            WorkerGroup::new(name, instances, "t", Program::Sequence(steps))
        };
        let mut plan = Plan::empty("w");
        plan.groups = vec![
            group("paced", 3, Some(LimitKind::Calls)),
            group("free", 5, None),
            group("capped", 1, Some(LimitKind::Ops)),
        ];
        let workers = |groups: &[u32]| -> Vec<WorkerId> {
            let worker = |group: &u32| WorkerId {
                group: *group,
                number: 0,
                index: 0,
            };
            groups.iter().map(worker).collect()
        };
        assert_eq!(own_event_rate(&plan, &workers(&[0, 2])), None);
        plan.event_rate = Some(100.0);
        assert_eq!(own_event_rate(&plan, &workers(&[0, 1, 1, 2])), Some(50.0));
        assert_eq!(
            own_event_rate(&plan, &workers(&[0, 0, 0, 1, 2])),
            Some(100.0)
        );
        assert_eq!(own_event_rate(&plan, &workers(&[1, 1])), None);
    }

    #[test]
    fn counts_are_those_of_the_latest_window() {
        let window = |number| WindowBounds {
            number,
            start: 0,
            end: 10,
        };
        let mut counts = WindowCounts::default();
        counts.in_window(window(1)).completed += 2;
        counts.in_window(window(1)).completed += 1;
        assert_eq!((counts.window, counts.counts.completed), (1, 3));
        counts.in_window(window(2)).dropped += 1;
        assert_eq!((counts.counts.completed, counts.counts.dropped), (0, 1));
    }

    proptest! {
        #[test]
        fn what_is_dropped_follows_the_rule(
            rate in 0.05f64..500.0, passed in 0u64..2000, now in 0u64..30 * SECOND,
        ) {
            let events = EventSource::new(rate);
            events.passed.store(passed, Relaxed);
            let taken = events.take(now, 1);
            let one_by_one = (passed + 1..)
                .take_while(|n| is_dropped(events.due(*n), events.due(n + 1), now, MAX_EVENT_BACKLOG_NS))
                .count() as u64;
            prop_assert_eq!(taken.dropped, passed..passed + one_by_one);
            prop_assert_eq!(taken.due, events.due(passed + one_by_one + 1));
        }

        #[test]
        fn events_of_a_time_are_counted_as_one_by_one(
            rate in 0.05f64..500.0, from in 0u64..20 * SECOND, length in 0u64..20 * SECOND,
        ) {
            let events = EventSource::new(rate);
            let to = from + length;
            let due = (1..).map(|n| events.due(n)).take_while(|due| *due < to);
            let counted = events.due_between(&(0..u64::MAX), from, to);
            prop_assert_eq!(counted, due.filter(|due| *due >= from).count() as u64);
        }
    }
}
