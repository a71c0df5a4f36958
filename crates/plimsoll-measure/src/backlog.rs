//! Backlog of the workers of an open load: the time by which they are behind their schedules, over a measured window.

use crate::{Nanos, WindowBounds};
use serde::{Deserialize, Serialize};

/// Number of equal parts of a window in which backlogs are averaged.
const PARTS: usize = 10;

/// Minimum number of pairs of parts, of the 45 pairs, in which the later part has the longer backlog, if the backlog
/// rises steadily. Parts in random order have so many pairs once in 2000 windows.
const MIN_RISING_PAIRS: usize = 40;

/// Minimum backlog in the last part of a window in which the backlog grows, as a multiple of the backlog in the first
/// part. In a warm-up as long as the window, a queue with steady growth reaches half of its length at the window end.
const MIN_GROWTH_RATIO: f64 = 1.5;

/// Minimum growth in mean service times. Shorter queues come and go below the load line too.
const MIN_GROWTH_SERVICE_TIMES: f64 = 5.0;

/// Backlogs of operations in equal parts of the latest measured window, by the operations' starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowBacklog {
    /// Number of the window, from 1; 0 before the first window.
    window: u32,
    parts: [BacklogPart; PARTS],
}

/// Backlogs of the operations in a part of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct BacklogPart {
    operations: u64,
    /// Sum of the operations' backlogs in nanoseconds.
    sum_ns: u64,
}

impl BacklogPart {
    /// Mean backlog in nanoseconds; `None` without operations.
    fn mean_ns(&self) -> Option<f64> {
        (self.operations > 0).then(|| self.sum_ns as f64 / self.operations as f64)
    }
}

/// Mean backlogs at both ends of a window in which the backlog grew steadily.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BacklogGrowth {
    /// Mean backlog in the first tenth of the window, in nanoseconds.
    pub first_ns: f64,
    /// Mean backlog in the last tenth of the window, in nanoseconds.
    pub last_ns: f64,
}

impl WindowBacklog {
    /// Adds an operation that starts at `start`, `backlog` behind the schedule. Forgets an earlier window, and ignores an
    /// operation outside the window and in a window without a known end.
    pub fn record(&mut self, window: WindowBounds, start: Nanos, backlog: Nanos) {
        if !window.contains(start) || window.end == Nanos::MAX {
            return;
        }
        if window.number != self.window {
            *self = Self {
                window: window.number,
                ..Self::default()
            };
        }
        let part_length = (window.end - window.start).div_ceil(PARTS as Nanos);
        let part = (start - window.start) / part_length;
        let part = &mut self.parts[part as usize];
        part.operations += 1;
        part.sum_ns = part.sum_ns.saturating_add(backlog);
    }

    /// Adds the backlogs of other workers in the same window; those of the later window replace those of the earlier.
    pub fn add(&mut self, other: &Self) {
        if other.window > self.window {
            *self = other.clone();
        } else if other.window == self.window {
            for (mine, theirs) in self.parts.iter_mut().zip(&other.parts) {
                mine.operations += theirs.operations;
                mine.sum_ns = mine.sum_ns.saturating_add(theirs.sum_ns);
            }
        }
    }

    /// Increase of the mean backlog from the first tenth of the window to the last, in nanoseconds; negative for a
    /// decrease. `None` if the first or the last tenth has no operation.
    #[must_use]
    pub fn increase_ns(&self) -> Option<f64> {
        Some(self.parts[PARTS - 1].mean_ns()? - self.parts[0].mean_ns()?)
    }

    /// The growth of the backlog over the window; `None` unless the backlog rises steadily, by at least half and by at
    /// least five mean service times. A window with a tenth without operations has no growth.
    #[must_use]
    pub fn growth(&self, mean_service_ns: f64) -> Option<BacklogGrowth> {
        let means = self.parts.iter().map(BacklogPart::mean_ns);
        let means: Vec<f64> = means.collect::<Option<_>>()?;
        let pairs = (0..PARTS).flat_map(|later| (0..later).map(move |earlier| (earlier, later)));
        let rising = pairs.filter(|(earlier, later)| means[*later] > means[*earlier]);
        let rising = rising.count();
        let (first_ns, last_ns) = (means[0], means[PARTS - 1]);
        let grows = rising >= MIN_RISING_PAIRS
            && last_ns >= MIN_GROWTH_RATIO * first_ns
            && last_ns - first_ns >= MIN_GROWTH_SERVICE_TIMES * mean_service_ns;
        grows.then_some(BacklogGrowth { first_ns, last_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;
    const WINDOW: WindowBounds = WindowBounds {
        number: 1,
        start: 500 * MS,
        end: 1500 * MS,
    };

    /// A window with an operation in the middle of each tenth, with these backlogs in milliseconds.
    fn of(backlogs_ms: [Nanos; 10]) -> WindowBacklog {
        let mut backlog = WindowBacklog::default();
        for (tenth, ms) in (0..).zip(backlogs_ms) {
            backlog.record(WINDOW, (550 + 100 * tenth) * MS, ms * MS);
        }
        backlog
    }

    fn growth_ms(backlog: &WindowBacklog, service_ms: f64) -> Option<(f64, f64)> {
        let growth = backlog.growth(service_ms * 1e6)?;
        Some((growth.first_ns / 1e6, growth.last_ns / 1e6))
    }

    #[test]
    fn a_backlog_that_rises_to_the_end_grows() {
        let queue = of([10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
        assert_eq!(growth_ms(&queue, 10.0), Some((10.0, 100.0)));
        // Five pairs of tenths may be in the other order.
        assert!(growth_ms(&of([20, 10, 40, 30, 60, 50, 80, 70, 100, 90]), 10.0).is_some());
        assert_eq!(
            growth_ms(&of([20, 10, 40, 30, 60, 70, 50, 90, 100, 80]), 10.0),
            None
        );
    }

    #[test]
    fn the_increase_is_from_the_first_tenth_to_the_last() {
        let increase = |backlog: &WindowBacklog| backlog.increase_ns().map(|ns| ns / 1e6);
        assert_eq!(
            increase(&of([10, 90, 0, 0, 0, 0, 0, 0, 70, 30])),
            Some(20.0)
        );
        assert_eq!(increase(&of([30, 0, 0, 0, 0, 0, 0, 0, 0, 10])), Some(-20.0));
        assert_eq!(increase(&WindowBacklog::default()), None);
    }

    #[test]
    fn a_queue_after_a_stall_does_not_grow() {
        assert_eq!(
            growth_ms(&of([0, 0, 0, 900, 700, 500, 300, 100, 0, 0]), 10.0),
            None
        );
        // The operations that the schedule dropped stay in the backlog.
        assert_eq!(
            growth_ms(&of([0, 0, 0, 900, 900, 900, 900, 900, 900, 900]), 10.0),
            None
        );
    }

    #[test]
    fn growth_is_relative_to_service_time_and_first_tenth() {
        let short = of([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(growth_ms(&short, 1.8), Some((0.0, 9.0)));
        assert_eq!(growth_ms(&short, 1.9), None);
        let from = |first: Nanos| of(std::array::from_fn(|i| first + 10 * i as Nanos));
        assert_eq!(growth_ms(&from(180), 1.0), Some((180.0, 270.0)));
        assert_eq!(growth_ms(&from(181), 1.0), None);
    }

    #[test]
    fn a_tenth_without_operations_leaves_the_growth_unknown() {
        let mut backlog = WindowBacklog::default();
        for tenth in (0..10).filter(|tenth| *tenth != 4) {
            backlog.record(WINDOW, (550 + 100 * tenth) * MS, tenth * 50 * MS);
        }
        assert_eq!(growth_ms(&backlog, 1.0), None);
        backlog.record(WINDOW, 950 * MS, 4 * 50 * MS);
        assert_eq!(growth_ms(&backlog, 1.0), Some((0.0, 450.0)));
    }

    #[test]
    fn operations_outside_the_window_do_not_count() {
        let mut backlog = of([0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
        let before = backlog.clone();
        for start in [0, 499, 1500, 9000] {
            backlog.record(WINDOW, start * MS, 1000 * MS);
        }
        let endless = WindowBounds {
            end: Nanos::MAX,
            ..WINDOW
        };
        backlog.record(endless, 700 * MS, 1000 * MS);
        assert_eq!(backlog, before);
    }

    #[test]
    fn workers_of_one_window_have_a_common_mean_and_a_later_window_replaces_an_earlier() {
        let mut sum = of([0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
        sum.add(&of([20, 30, 40, 50, 60, 70, 80, 90, 100, 110]));
        assert_eq!(growth_ms(&sum, 1.0), Some((10.0, 100.0)));
        let mut later = WindowBacklog::default();
        let second = WindowBounds {
            number: 2,
            ..WINDOW
        };
        for tenth in 0..10 {
            later.record(second, (550 + 100 * tenth) * MS, tenth * MS);
        }
        let earlier = sum.clone();
        sum.add(&later);
        assert_eq!(sum, later);
        sum.add(&earlier);
        assert_eq!(sum, later);
    }
}
