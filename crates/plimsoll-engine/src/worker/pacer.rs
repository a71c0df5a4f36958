//! The schedule of a worker's operations.

use crate::schedule::{MAX_MIX_BACKLOG_NS, is_dropped};
use plimsoll_measure::Nanos;
use plimsoll_plan::{Arrivals, Rng};
use rand::RngExt;

/// The schedule of a worker: an open loop, independent of the results of operations.
pub(super) struct Pacer {
    arrivals: Arrivals,
    /// Mean time between two operations in nanoseconds.
    gap: f64,
    /// Intended start of the first operation, in nanoseconds of the run's clock.
    first: f64,
    /// Number of the operation after the next operation, from 0.
    number: u64,
    /// Intended starts of the next operation and of the operation after it, in nanoseconds of the run's clock.
    next: f64,
    after: f64,
}

impl Pacer {
    /// A schedule of `rate` operations per second that begins at `start`.
    pub(super) fn new(rate: f64, arrivals: Arrivals, start: Nanos, rng: &mut Rng) -> Self {
        assert!(
            rate.is_finite() && rate > 0.0,
            "a rate of {rate} has no gap"
        );
        let gap = 1e9 / rate;
        let mut pacer = Self {
            arrivals,
            gap,
            first: start as f64,
            number: 0,
            next: 0.0,
            after: 0.0,
        };
        pacer.first += match arrivals {
            // The first start is a random instant of the first gap, so that workers are not synchronised.
            Arrivals::Constant => rng.random::<f64>() * gap,
            Arrivals::Poisson => pacer.draw(rng),
        };
        pacer.after = pacer.first;
        pacer.advance(rng);
        pacer
    }

    fn draw(&self, rng: &mut Rng) -> f64 {
        // 1 − u is above 0, so the logarithm is finite.
        -(1.0 - rng.random::<f64>()).ln() * self.gap
    }

    /// The intended start of the next operation.
    pub(super) fn due(&self) -> Nanos {
        self.next as Nanos
    }

    /// Advances the schedule by one operation.
    pub(super) fn advance(&mut self, rng: &mut Rng) {
        self.number += 1;
        self.next = self.after;
        self.after = match self.arrivals {
            // Each start is computed from the first start, so that rounding errors do not add up.
            Arrivals::Constant => self.first + self.number as f64 * self.gap,
            Arrivals::Poisson => self.after + self.draw(rng),
        };
        debug_assert!(self.after >= self.next, "arrivals go back in time");
    }

    /// Drops operations that are delayed by more than [`MAX_MIX_BACKLOG_NS`], but never the latest due operation. Calls
    /// `dropped` with the intended start of each dropped operation.
    pub(super) fn catch_up(&mut self, now: Nanos, rng: &mut Rng, mut dropped: impl FnMut(Nanos)) {
        while is_dropped(self.due(), self.after as Nanos, now, MAX_MIX_BACKLOG_NS) {
            dropped(self.due());
            self.advance(rng);
        }
    }

    /// Backlog of the next operation at `now`: its delay, and the time of the `dropped` operations, which the schedule
    /// would otherwise still have to start.
    pub(super) fn backlog(&self, now: Nanos, dropped: u64) -> Nanos {
        now.saturating_sub(self.due()) + (dropped as f64 * self.gap) as Nanos
    }

    /// Number of operations from the next operation until before `end`; for Poisson arrivals, the mean number.
    pub(super) fn left_until(&self, end: Nanos) -> u64 {
        let left = (end as f64 - self.next) / self.gap;
        match self.arrivals {
            _ if left <= 0.0 => 0,
            // The subtrahend absorbs the rounding of an instant.
            Arrivals::Constant => (left - 1e-3).ceil() as u64,
            // Of Poisson arrivals, only the start of the next operation is known.
            Arrivals::Poisson => 1 + left.round() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::{Rng, Stream};
    use proptest::prelude::*;

    const SECOND: Nanos = 1_000_000_000;

    fn dues(pacer: &mut Pacer, rng: &mut Rng, n: usize) -> Vec<Nanos> {
        let next = |_| {
            let due = pacer.due();
            pacer.advance(rng);
            due
        };
        (0..n).map(next).collect()
    }

    proptest! {
        #[test]
        fn constant_arrivals_keep_their_distance(rate in 0.01f64..1e6, start in 0u64..1 << 50, seed: u64) {
            let mut rng = Stream::new(seed).rng();
            let mut pacer = Pacer::new(rate, Arrivals::Constant, start, &mut rng);
            let all = dues(&mut pacer, &mut rng, 2000);
            let gap = 1e9 / rate;
            prop_assert!(all[0] >= start && (all[0] - start) as f64 <= gap + 1.0);
            for (n, due) in all.iter().enumerate() {
                let exact = all[0] as f64 + n as f64 * gap;
                prop_assert!((*due as f64 - exact).abs() <= 2.0, "{} of {}", due, exact);
            }
            // `left_until` counts the operations until a start without drawing any start.
            let fresh = Pacer::new(rate, Arrivals::Constant, start, &mut Stream::new(seed).rng());
            prop_assert_eq!(fresh.left_until(all[1500]), 1500);
        }

        #[test]
        fn what_is_dropped_is_overdue_and_something_is_kept(
            rate in 0.1f64..1000.0, late in 0u64..20 * SECOND, poisson: bool, seed: u64,
        ) {
            let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
            let mut rng = Stream::new(seed).rng();
            let mut pacer = Pacer::new(rate, arrivals, 0, &mut rng);
            let (first, mut dropped) = (pacer.due(), Vec::new());
            pacer.catch_up(late, &mut rng, |due| dropped.push(due));
            prop_assert!(dropped.iter().all(|due| due + MAX_MIX_BACKLOG_NS < late));
            prop_assert!(dropped.is_sorted());
            if first <= late {
                prop_assert!(pacer.due() <= late, "everything that was due was dropped");
            } else {
                prop_assert!(dropped.is_empty());
            }
            // A second call drops nothing more.
            let due = pacer.due();
            pacer.catch_up(late, &mut rng, |_| panic!("dropped in two goes"));
            prop_assert_eq!(pacer.due(), due);
        }
    }

    #[test]
    fn random_arrivals_are_as_many_and_exponential() {
        let mut rng = Stream::new(3).rng();
        let mut pacer = Pacer::new(1000.0, Arrivals::Poisson, 5 * SECOND, &mut rng);
        let all = dues(&mut pacer, &mut rng, 100_000);
        assert!(all.is_sorted() && all[0] >= 5 * SECOND);
        let gaps: Vec<f64> = all.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // The standard deviation of the mean is a 316th of the mean.
        assert!((mean / 1e6 - 1.0).abs() < 0.01, "{mean}");
        let longer = gaps.iter().filter(|g| **g > 1e6).count() as f64 / gaps.len() as f64;
        assert!((longer - (-1.0f64).exp()).abs() < 0.005, "{longer}");
    }

    #[test]
    fn a_second_of_backlog_is_kept() {
        let mut rng = Stream::new(1).rng();
        let mut pacer = Pacer::new(100.0, Arrivals::Constant, 0, &mut rng);
        let mut dropped = 0;
        pacer.catch_up(3 * SECOND, &mut rng, |_| dropped += 1);
        // The operations of the first two seconds are dropped, a hundred operations stay.
        assert_eq!(dropped, 200);
        assert_eq!(pacer.left_until(3 * SECOND), 100);
        // With a gap longer than the backlog, the latest due operation stays.
        let mut slow = Pacer::new(0.1, Arrivals::Constant, 0, &mut rng);
        let first = slow.due();
        slow.catch_up(first + 9 * SECOND, &mut rng, |_| panic!("the only one due"));
        slow.catch_up(first + 10 * SECOND + 1, &mut rng, |due| {
            assert_eq!(due, first)
        });
        assert!(slow.due() > first);
    }

    #[test]
    fn a_backlog_is_as_long_as_if_nothing_had_been_dropped() {
        let mut rng = Stream::new(1).rng();
        let mut pacer = Pacer::new(100.0, Arrivals::Constant, 0, &mut rng);
        let first = pacer.due();
        assert_eq!(pacer.backlog(0, 0), 0);
        let now = first + 3 * SECOND;
        assert_eq!(pacer.backlog(now, 0), 3 * SECOND);
        let mut dropped = 0;
        pacer.catch_up(now, &mut rng, |_| dropped += 1);
        assert!(dropped >= 199, "{dropped}");
        assert!(pacer.backlog(now, dropped).abs_diff(3 * SECOND) <= 2);
    }

    #[test]
    fn a_constant_schedule_begins_anywhere_in_its_first_gap() {
        let gap = 1e9 / 50.0;
        let firsts: Vec<f64> = (0..1000)
            .map(|seed| {
                let mut rng = Stream::new(seed).rng();
                let pacer = Pacer::new(50.0, Arrivals::Constant, 7 * SECOND, &mut rng);
                (pacer.due() - 7 * SECOND) as f64 / gap
            })
            .collect();
        assert!(firsts.iter().all(|f| (0.0..=1.0).contains(f)));
        // First starts are uniform within a gap: five deviations of the mean of a thousand starts are 0.046.
        let mean = firsts.iter().sum::<f64>() / 1000.0;
        assert!((mean - 0.5).abs() < 0.046, "{mean}");
        assert!(firsts.iter().any(|f| *f < 0.02) && firsts.iter().any(|f| *f > 0.98));
    }

    #[test]
    fn a_random_schedule_begins_like_any_other_gap() {
        let firsts: Vec<f64> = (0..4000)
            .map(|seed| {
                let mut rng = Stream::new(seed).rng();
                let pacer = Pacer::new(50.0, Arrivals::Poisson, SECOND, &mut rng);
                (pacer.due() - SECOND) as f64 / (1e9 / 50.0)
            })
            .collect();
        // First starts are exponential with a mean of one gap: five deviations of the mean are 0.08.
        let mean = firsts.iter().sum::<f64>() / 4000.0;
        assert!((mean - 1.0).abs() < 0.08, "{mean}");
    }

    #[test]
    fn operations_until_an_end_are_counted_to_the_instant() {
        let mut rng = Stream::new(2).rng();
        let gap = SECOND / 100;
        let constant = Pacer::new(100.0, Arrivals::Constant, 0, &mut rng);
        let due = constant.due();
        for (end, left) in [
            (0, 0),
            (due, 0),
            (due + gap / 2, 1),
            (due + gap - 1000, 1),
            (due + gap + gap / 2, 2),
            (due + 10 * gap - 1000, 10),
            (due + 10 * gap + gap / 100, 11),
        ] {
            assert_eq!(constant.left_until(end), left, "{end} from {due}");
        }
        // For Poisson arrivals, `left_until` counts the next operation and the mean number of further operations.
        let random = Pacer::new(100.0, Arrivals::Poisson, 0, &mut rng);
        let due = random.due();
        for (end, left) in [
            (0, 0),
            (due, 0),
            (due + gap / 4, 1),
            (due + 3 * gap / 4, 2),
            (due + 7 * gap + gap / 4, 8),
            (due + 7 * gap + 3 * gap / 4, 9),
        ] {
            assert_eq!(random.left_until(end), left, "{end} from {due}");
        }
    }

    #[test]
    fn a_delay_of_the_whole_backlog_is_not_dropped() {
        let schedule = || {
            Pacer::new(
                10.0,
                Arrivals::Constant,
                5 * SECOND,
                &mut Stream::new(1).rng(),
            )
        };
        let due = schedule().due();
        let dropped = |now: Nanos| {
            let (mut n, mut pacer) = (0, schedule());
            pacer.catch_up(now, &mut Stream::new(1).rng(), |_| n += 1);
            n
        };
        assert_eq!(dropped(0), 0);
        assert_eq!(dropped(due + MAX_MIX_BACKLOG_NS), 0);
        assert_eq!(dropped(due + MAX_MIX_BACKLOG_NS + 10), 1);
        let gap = SECOND / 10;
        assert_eq!(dropped(due + MAX_MIX_BACKLOG_NS + 5 * gap + 10), 6);
    }

    #[test]
    fn rates_without_a_gap_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let new = || Pacer::new(rate, Arrivals::Constant, 0, &mut Stream::new(1).rng());
            assert!(std::panic::catch_unwind(new).is_err(), "{rate}");
        }
    }
}
