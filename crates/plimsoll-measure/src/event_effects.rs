//! Effects of events during a run: throughput before, during and after an event, longest time without a success,
//! recovery time, and failed operations.

use crate::completions::SlotSet;
use crate::{ErrorCode, Gap, Interval, Nanos};
use std::collections::BTreeMap;

/// Fraction of the throughput before an event at which the throughput counts as recovered.
pub const RECOVERED_SHARE: f64 = 0.9;

/// Number of consecutive intervals with at least [`RECOVERED_SHARE`] of the throughput before the event that make a
/// recovery; the time of the recovery is the start of the first interval.
pub const RECOVERY_INTERVALS: usize = 3;

/// Totals of an interval over all operations, for judging events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntervalSummary {
    /// Number of the measured window in the run, from 1.
    pub window: u32,
    /// Number of the interval in the window, from 0.
    pub index: u64,
    /// Start of the interval, in nanoseconds since the window opened.
    pub start: Nanos,
    /// Length of the interval in nanoseconds; the last interval of a window may be shorter.
    pub length: Nanos,
    /// Number of operations that succeeded, of the rows that count in the summary.
    pub ops: u64,
    /// Number of failed operations of all rows of the workload, by error code.
    pub errors: BTreeMap<ErrorCode, u64>,
    /// Completion times of the operations in `ops`.
    pub successes: Successes,
}

/// Completion times of successful operations in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Successes {
    /// Length of a slot in nanoseconds: the resolution of the completion times.
    slot_ns: Nanos,
    /// Slots of the interval in which an operation succeeded.
    slots: SlotSet,
}

impl IntervalSummary {
    /// Length in nanoseconds of all intervals of a window but the last; 0 without intervals. If only the last, shorter
    /// interval has operations, its start determines the length.
    #[must_use]
    pub fn full_length(intervals: &[Self]) -> Nanos {
        let of = |i: &Self| match i.start.checked_div(i.index) {
            Some(length) => length.max(i.length),
            None => i.length,
        };
        intervals.iter().map(of).max().unwrap_or(0)
    }

    /// Summarises an interval. `is_counted`: whether operations of a row count in the summary of a run;
    /// `is_of_workload`: whether a row belongs to the workload, so that its failures count.
    #[must_use]
    pub fn of(
        interval: &Interval,
        is_counted: impl Fn(usize) -> bool,
        is_of_workload: impl Fn(usize) -> bool,
    ) -> Self {
        let mut sum = Self {
            window: interval.window,
            index: interval.index,
            start: interval.start,
            length: interval.length,
            successes: Successes {
                slot_ns: interval.completions.slot_ns,
                slots: SlotSet::default(),
            },
            ..Self::default()
        };
        for (row, totals) in interval.rows.iter().enumerate() {
            if is_counted(row) {
                sum.ops += totals.ops;
                if let Some(slots) = interval.completions.rows.get(row) {
                    sum.successes.slots.union(slots);
                }
            }
            if is_of_workload(row) {
                for (code, n) in &totals.errors {
                    *sum.errors.entry(code.clone()).or_default() += n;
                }
            }
        }
        sum
    }
}

/// Effect of an event, computed from the intervals of the window in which the event began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventEffect {
    /// Throughput before the event in operations per second: mean of the whole intervals between the previous event, or
    /// the window start, and the event; `None` without a whole interval.
    pub before_per_s: Option<f64>,
    /// Throughput in operations per second from the event to recovery, the next event or the window end, whichever is
    /// first: mean of the intervals whose middle is in this time; `None` without such an interval.
    pub during_per_s: Option<f64>,
    /// Throughput in operations per second from recovery until the next event, except an event in the recovery interval
    /// itself, or until the window end; `None` without recovery or without an interval.
    pub after_per_s: Option<f64>,
    /// Nanoseconds from the event to the first of [`RECOVERY_INTERVALS`] consecutive intervals with at least
    /// [`RECOVERED_SHARE`] of the throughput before the event; 0 if the throughput never fell below. Recovery may come
    /// after later events. `None` without recovery, or without throughput before the event.
    pub time_to_recover: Option<Nanos>,
    /// Longest time without a successful operation that began or lasted after the event and began before the next
    /// event, in nanoseconds since the window opened.
    pub max_gap: Gap,
    /// Resolution of `max_gap` in nanoseconds: the maximum slot length of the intervals; 0 without intervals.
    pub gap_resolution: Nanos,
    /// Number of failed operations by error code, from the interval in which the event began up to the interval of the
    /// next event.
    pub errors: BTreeMap<ErrorCode, u64>,
}

/// Computes the effects of events. `intervals` belong to one window of length `window`; missing intervals had no
/// operations. `events` are the sorted start times of the events in nanoseconds since the window opened; an event
/// outside the window has an empty effect.
#[must_use]
pub fn event_effects(
    intervals: &[IntervalSummary],
    window: Nanos,
    events: &[Nanos],
) -> Vec<EventEffect> {
    assert!(events.is_sorted(), "events are in order");
    let series = Series::of(intervals, window);
    let mut effects: Vec<EventEffect> = (0..events.len())
        .map(|i| match events[i] < window && !series.ops.is_empty() {
            true => series.effect(Neighbours::of(events, i, window)),
            false => EventEffect::default(),
        })
        .collect();
    note_gaps(intervals, window, events, &mut effects);
    effects
}

/// An event and the times of its neighbours. Simultaneous events count as one.
#[derive(Clone, Copy)]
struct Neighbours<'a> {
    events: &'a [Nanos],
    previous: Nanos,
    at: Nanos,
    next: Nanos,
}

impl<'a> Neighbours<'a> {
    fn of(events: &'a [Nanos], number: usize, window: Nanos) -> Self {
        let at = events[number];
        let earlier = events[..number].iter().rev().find(|e| **e < at);
        Self {
            events,
            previous: earlier.copied().unwrap_or(0),
            at,
            next: next_after(events, at, window),
        }
    }
}

/// Time of the first event after an instant, or the window end.
fn next_after(events: &[Nanos], at: Nanos, window: Nanos) -> Nanos {
    let later = events.iter().find(|e| **e > at);
    later.map_or(window, |next| (*next).min(window))
}

/// Intervals of a window in order, with an empty interval for each missing interval.
struct Series {
    window: Nanos,
    /// Length in nanoseconds of each interval; the last interval may be shorter.
    interval: Nanos,
    ops: Vec<u64>,
    errors: BTreeMap<usize, BTreeMap<ErrorCode, u64>>,
}

impl Series {
    fn of(intervals: &[IntervalSummary], window: Nanos) -> Self {
        let length = IntervalSummary::full_length(intervals);
        let interval = length.max(1);
        let count = match length {
            0 => 0,
            _ => window.div_ceil(interval) as usize,
        };
        let mut series = Self {
            window,
            interval,
            ops: vec![0; count],
            errors: BTreeMap::new(),
        };
        let Some(last) = count.checked_sub(1) else {
            return series;
        };
        for i in intervals {
            // Completions at the very end of the window are in an interval of length 0.
            let place = usize::try_from(i.index).map_or(last, |index| index.min(last));
            series.ops[place] += i.ops;
            for (code, n) in &i.errors {
                let sum = series.errors.entry(place).or_default();
                *sum.entry(code.clone()).or_default() += n;
            }
        }
        series
    }

    fn start(&self, place: usize) -> Nanos {
        place as Nanos * self.interval
    }

    fn end(&self, place: usize) -> Nanos {
        (self.start(place) + self.interval).min(self.window)
    }

    fn is_whole(&self, place: usize) -> bool {
        self.end(place) - self.start(place) == self.interval
    }

    /// Operations per second of selected intervals; `None` if no interval is selected.
    fn mean(&self, is_wanted: impl Fn(usize) -> bool) -> Option<f64> {
        let wanted = || (0..self.ops.len()).filter(|place| is_wanted(*place));
        let time: Nanos = wanted().map(|p| self.end(p) - self.start(p)).sum();
        let ops: u64 = wanted().map(|p| self.ops[p]).sum();
        (time > 0).then(|| ops as f64 * 1e9 / time as f64)
    }

    /// Operations per second of the intervals inside a time span.
    fn mean_within(&self, from: Nanos, to: Nanos) -> Option<f64> {
        self.mean(|p| self.start(p) >= from && self.end(p) <= to)
    }

    /// Mean throughput in operations per second of the intervals whose middle is in a time span.
    fn mean_around(&self, from: Nanos, to: Nanos) -> Option<f64> {
        let middle = |p| self.start(p).midpoint(self.end(p));
        self.mean(|p| (from..to).contains(&middle(p)))
    }

    /// Time of recovery after the instant `at`, in nanoseconds since the window opened: the start of the first of
    /// [`RECOVERY_INTERVALS`] consecutive whole intervals with enough throughput, but not before `at`.
    fn back(&self, at: Nanos, before_per_s: f64) -> Option<Nanos> {
        let wanted = RECOVERED_SHARE * before_per_s;
        let is_back = |p: usize| {
            self.is_whole(p) && self.ops[p] as f64 * 1e9 / self.interval as f64 >= wanted
        };
        let first = (at / self.interval) as usize;
        let last = self.ops.len().checked_sub(RECOVERY_INTERVALS)?;
        let place = (first..=last).find(|p| (*p..*p + RECOVERY_INTERVALS).all(is_back))?;
        Some(self.start(place).max(at))
    }

    fn effect(&self, event: Neighbours<'_>) -> EventEffect {
        let Neighbours { at, next, .. } = event;
        let before = self.mean_within(event.previous, at);
        let back = before
            .filter(|per_s| *per_s > 0.0)
            .and_then(|per_s| self.back(at, per_s));
        let end = back.map_or(next, |back| back.min(next));
        let after = back.and_then(|back| {
            // An event in the recovery interval is the cause of the recovery.
            let recovered = match back > at {
                true => back + self.interval - 1,
                false => at,
            };
            self.mean_within(back, next_after(event.events, recovered, self.window))
        });
        let (first, last) = (at / self.interval, next / self.interval);
        let last = match next == self.window {
            true => self.ops.len(),
            false => (last.max(first + 1)) as usize,
        };
        let mut errors = BTreeMap::new();
        for (code, n) in self.errors.range(first as usize..last).flat_map(|e| e.1) {
            *errors.entry(code.clone()).or_default() += n;
        }
        EventEffect {
            before_per_s: before,
            during_per_s: self.mean_around(at, end),
            after_per_s: after,
            time_to_recover: back.map(|back| back - at),
            max_gap: Gap { from: at, to: at },
            gap_resolution: 0,
            errors,
        }
    }
}

/// Finds the longest time without a success after each event.
fn note_gaps(
    intervals: &[IntervalSummary],
    window: Nanos,
    events: &[Nanos],
    effects: &mut [EventEffect],
) {
    let mut note = |gap: Gap| {
        if gap.length() == 0 {
            return;
        }
        let later = events.partition_point(|at| *at <= gap.from);
        // The gap counts for all events at the time of the last event before the gap, and for events in the gap.
        let before = events[..later].last();
        let first = before.map_or(0, |at| events.partition_point(|e| e < at));
        let first = if before.is_none() { later } else { first };
        for (at, effect) in events.iter().zip(effects.iter_mut()).skip(first) {
            if *at >= gap.to {
                break;
            }
            let from = gap.from.max(*at);
            if gap.to - from > effect.max_gap.length() {
                effect.max_gap = Gap { from, to: gap.to };
            }
        }
    };
    let mut latest = 0;
    for i in intervals {
        i.successes.slots.for_each(|slot| {
            let start = i.start + slot * i.successes.slot_ns;
            note(Gap {
                from: latest,
                to: start.min(window),
            });
            latest = start + i.successes.slot_ns;
        });
    }
    note(Gap {
        from: latest,
        to: window,
    });
    let resolution = intervals
        .iter()
        .map(|i| i.successes.slot_ns)
        .max()
        .unwrap_or(0);
    for effect in effects {
        effect.gap_resolution = resolution;
    }
}

#[cfg(test)]
mod tests;
