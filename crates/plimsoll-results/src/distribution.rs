//! Latency distributions as sums of histograms from `histograms.hlog`.

use crate::SparseHistogram;
use plimsoll_measure::{censored_quantile, quantile_rank};

/// Significant bits of a value that select its bucket; at least as many as the log keeps.
const SIGNIFICANT_BITS: u32 = 10;

/// A latency distribution with fast addition. Values keep three significant digits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Distribution {
    counts: Vec<u64>,
    total: u64,
}

impl Distribution {
    fn index(value: u64) -> usize {
        let bucket = value.max(1).ilog2().saturating_sub(SIGNIFICANT_BITS);
        ((u64::from(bucket) << SIGNIFICANT_BITS) + (value >> bucket)) as usize
    }

    /// Greatest latency in nanoseconds that the bucket at an index counts.
    fn greatest(index: usize) -> u64 {
        let index = index as u64;
        let bucket = (index >> SIGNIFICANT_BITS).saturating_sub(1);
        let within = index - (bucket << SIGNIFICANT_BITS);
        // The shifted value is 2⁶⁴ for the last index and wraps to 0.
        ((within + 1) << bucket).wrapping_sub(1)
    }

    /// Adds the samples of a histogram, given in nanoseconds.
    pub fn add(&mut self, histogram: &SparseHistogram) {
        for (value, n) in &histogram.counts {
            let index = Self::index(*value);
            if index >= self.counts.len() {
                self.counts.resize(index + 1, 0);
            }
            self.counts[index] = self.counts[index].saturating_add(*n);
            self.total = self.total.saturating_add(*n);
        }
    }

    /// Adds the samples of another distribution; counts saturate at 2⁶⁴ − 1.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (sum, n) in self.counts.iter_mut().zip(&other.counts) {
            *sum = sum.saturating_add(*n);
        }
        self.total = self.total.saturating_add(other.total);
    }

    /// Number of operations whose latencies form the distribution.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Latency in nanoseconds that a share of the samples, from 0 to 1, does not exceed, to three
    /// significant digits; 0 without samples.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = quantile_rank(share, self.total);
        let mut seen = 0;
        let mut counts = self.counts.iter().enumerate();
        let reached = counts.find(|(_, n)| {
            seen += **n;
            seen >= rank
        });
        reached.map_or(0, |(index, _)| Self::greatest(index))
    }

    /// Latency in nanoseconds that a share of the operations does not exceed, with operations in flight as censored
    /// observations: `ages` holds pairs of an age in nanoseconds and a number of operations, in increasing order of
    /// age. The quantile is `None` if only operations in flight reach the quantile.
    #[must_use]
    pub fn quantile_with(&self, ages: &[(u64, u64)], share: f64) -> Option<u64> {
        if ages.is_empty() {
            return Some(self.quantile(share));
        }
        let used = self.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        let completed = used.map(|(index, n)| (Self::greatest(index), *n));
        censored_quantile(completed, ages, self.total, share)
    }

    /// Latencies in milliseconds that shares of the samples, in increasing order and from 0 to 1,
    /// do not exceed; `None` for shares so great that less than one sample is beyond them.
    #[must_use]
    pub fn quantiles_ms(&self, shares: &[f64]) -> Vec<Option<f64>> {
        let mut counts = self.counts.iter().enumerate();
        let (mut seen, mut value) = (0u64, 0u64);
        let mut out = Vec::new();
        for share in shares {
            let beyond = (1.0 - share) * self.total as f64;
            // A rounded 1 may be slightly less than 1.
            if self.total == 0 || beyond < 0.999 {
                out.push(None);
                continue;
            }
            let rank = quantile_rank(*share, self.total);
            while seen < rank {
                let Some((index, n)) = counts.next() else {
                    break;
                };
                if *n > 0 {
                    value = Self::greatest(index);
                    seen += n;
                }
            }
            out.push(Some(value as f64 / 1e6));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_samples(
            mut samples in prop::collection::vec(1u64..10_000_000_000, 1..300),
            at in 0usize..9,
        ) {
            let mut d = Distribution::default();
            for s in &samples {
                d.add(&SparseHistogram { counts: vec![(*s, 1)] });
            }
            samples.sort_unstable();
            let share = at as f64 / 10.0;
            let rank = ((share * samples.len() as f64).ceil() as usize).max(1);
            let exact = samples[rank - 1] as f64 / 1e6;
            prop_assert_eq!(d.count(), samples.len() as u64);
            let one = d.quantile(share) as f64 / 1e6;
            prop_assert!((one - exact).abs() <= exact * 1e-3 + 1e-6, "{one} {exact}");
            match d.quantiles_ms(&[0.0, share])[1] {
                Some(got) => prop_assert!((got - exact).abs() <= exact * 1e-3 + 1e-6, "{got} {exact}"),
                None => prop_assert!((1.0 - share) * (samples.len() as f64) < 1.0),
            }
        }

        #[test]
        fn a_value_is_counted_where_it_is_found_again(
            value in prop_oneof![0u64..10_000_000_000, any::<u64>(), Just(u64::MAX)],
        ) {
            let index = Distribution::index(value);
            let greatest = Distribution::greatest(index);
            prop_assert!(greatest >= value);
            prop_assert!((greatest - value) as f64 <= value as f64 * 1e-3);
            prop_assert_eq!(Distribution::index(greatest), index);
            if index > 0 {
                prop_assert!(Distribution::greatest(index - 1) < value);
            }
        }
    }

    #[test]
    fn nothing_has_no_latency() {
        assert_eq!(Distribution::default().quantile(0.99), 0);
    }

    fn of(counts: &[(u64, u64)]) -> Distribution {
        let mut d = Distribution::default();
        d.add(&SparseHistogram {
            counts: counts.to_vec(),
        });
        d
    }

    #[test]
    fn distributions_add_up_whichever_is_longer() {
        let (short, long) = (of(&[(5, 2), (7, 1)]), of(&[(7, 3), (900, 4)]));
        let all = of(&[(5, 2), (7, 4), (900, 4)]);
        for (first, second) in [(&short, &long), (&long, &short)] {
            let mut sum = first.clone();
            sum.merge(second);
            assert_eq!((&sum, sum.count()), (&all, 10));
        }
        assert_eq!(
            [0.0, 0.2, 0.21, 0.6, 0.61, 1.0].map(|q| all.quantile(q)),
            [5, 5, 7, 7, 900, 900]
        );
    }

    #[test]
    fn a_quantile_is_of_the_sample_of_its_rank() {
        let counts: Vec<(u64, u64)> = (1..=100).map(|value| (value, 1)).collect();
        let all = of(&counts);
        for percent in 1..=100 {
            assert_eq!(all.quantile(percent as f64 / 100.0), percent, "{percent} %");
        }
    }

    #[test]
    fn ages_are_part_of_a_quantile() {
        let d = of(&[(5, 2), (100, 2)]);
        assert_eq!(d.quantile_with(&[], 0.75), Some(100));
        // Operations in flight are distributed over the completed operations that took longer than their age.
        assert_eq!(d.quantile_with(&[(50, 4)], 0.25), Some(5));
        assert_eq!(d.quantile_with(&[(50, 4)], 0.26), Some(100));
        assert_eq!(d.quantile_with(&[(200, 4)], 0.51), None);
        assert_eq!(d.quantile_with(&[(200, 4)], 0.5), Some(100));
    }

    #[test]
    fn shares_with_less_than_one_sample_beyond_have_no_latency() {
        let d = of(&[(5_000_000, 90), (7_000_000, 10)]);
        let figures = d.quantiles_ms(&[0.0, 0.9, 0.95, 0.99, 0.995, 1.0]);
        let about = |got: Option<f64>, expected: f64| (got.unwrap() / expected - 1.0).abs() < 1e-3;
        assert!(about(figures[0], 5.0) && about(figures[1], 5.0));
        assert!(about(figures[2], 7.0) && about(figures[3], 7.0));
        assert_eq!(figures[4..], [None, None]);
        assert_eq!(
            Distribution::default().quantiles_ms(&[0.0, 0.5]),
            [None, None]
        );
    }
}
