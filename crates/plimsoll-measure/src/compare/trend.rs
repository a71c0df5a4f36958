//! Mann–Kendall test for a trend in the order of repeated measurements.

use super::complementary_error;

/// Minimum number of measurements for a trend with a p-value below 0.05: of four measurements, even a strictly
/// monotone order has a p-value of 0.083.
const MIN_TREND_RUNS: usize = 5;

/// Significance level: a trend with a p-value below the level is more than chance.
const TREND_P: f64 = 0.05;

/// Maximum number of measurements for the exact distribution, which takes about n⁴/8 additions for n measurements.
const MAX_EXACT: usize = 100;

/// Trend in the order of repeated measurements, by the two-sided Mann–Kendall test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Test statistic S: the number of pairs in which the later measurement is larger, minus the number of pairs in
    /// which the later measurement is smaller.
    pub s: i64,
    /// p-value, above 0 and at most 1: the probability that S is at least as far from 0 as `s` if all orders of the
    /// measurements are equally likely. The p-value is exact for at most 100 measurements without ties, and otherwise
    /// the normal approximation, corrected for ties and continuity.
    pub p: f64,
}

impl Trend {
    /// Tests measurements, in their order, for a trend; `None` for fewer than five measurements, or if a
    /// measurement is not finite.
    ///
    /// H. B. Mann: Nonparametric Tests Against Trend (1945); M. G. Kendall: Rank Correlation Methods (1975), whose
    /// recurrence counts the orders with a number of inversions.
    #[must_use]
    pub fn of(measurements: &[f64]) -> Option<Self> {
        let n = measurements.len();
        if n < MIN_TREND_RUNS || !measurements.iter().all(|v| v.is_finite()) {
            return None;
        }
        let (mut s, mut has_ties) = (0, false);
        for (i, earlier) in measurements.iter().enumerate() {
            for later in &measurements[i + 1..] {
                s += i64::from(later > earlier) - i64::from(later < earlier);
                has_ties |= later == earlier;
            }
        }
        let p = match has_ties || n > MAX_EXACT {
            true => normal_p(measurements, s),
            false => exact_p(n, s),
        };
        Some(Self { s, p })
    }

    /// Whether the trend is more than chance, at a p-value below 0.05.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.p < TREND_P
    }
}

/// Probability over all orders of `n` different measurements that the statistic S is at least as far from 0 as `s`.
fn exact_p(n: usize, s: i64) -> f64 {
    // orders[k]: probability of k inversions among the first measurements.
    let mut orders = vec![1.0];
    for i in 2..=n {
        let mut next = vec![0.0; orders.len() + i - 1];
        for (k, p) in orders.iter().enumerate() {
            for inversions in &mut next[k..k + i] {
                *inversions += p / i as f64;
            }
        }
        orders = next;
    }
    let pairs = (n * (n - 1) / 2) as i64;
    let statistic = |inversions: usize| pairs - 2 * inversions as i64;
    let far = orders
        .iter()
        .enumerate()
        .filter(|(k, _)| statistic(*k).abs() >= s.abs());
    far.map(|(_, p)| p).sum::<f64>().min(1.0)
}

fn normal_p(measurements: &[f64], s: i64) -> f64 {
    let mut sorted = measurements.to_vec();
    sorted.sort_by(f64::total_cmp);
    let term = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let groups = sorted.chunk_by(|a, b| a == b);
    let ties: f64 = groups.map(|g| term(g.len() as f64)).sum();
    let variance = (term(measurements.len() as f64) - ties) / 18.0;
    if variance <= 0.0 {
        // The variance is 0 if all measurements are equal.
        return 1.0;
    }
    let distance = (s.abs() - 1).max(0) as f64;
    complementary_error(distance / variance.sqrt() / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// p-values by counting: of the n! orders of n measurements, the number of orders with S at least as far from 0.
    #[test]
    fn p_values_are_those_of_the_table() {
        for (measurements, s, p) in [
            (&[1.0, 2.0, 3.0, 4.0, 5.0][..], 10, 2.0 / 120.0),
            (&[5.0, 4.0, 3.0, 2.0, 1.0], -10, 2.0 / 120.0),
            (&[1.0, 2.0, 3.0, 5.0, 4.0], 8, 10.0 / 120.0),
            (&[2.0, 4.0, 1.0, 5.0, 3.0], 2, 98.0 / 120.0),
            (&[1.0, 2.0, 3.0, 4.0, 6.0, 5.0], 13, 12.0 / 720.0),
        ] {
            let trend = Trend::of(measurements).unwrap();
            assert_eq!(trend.s, s, "{measurements:?}");
            assert!((trend.p - p).abs() < 1e-12, "{measurements:?}: {}", trend.p);
        }
    }

    #[test]
    fn four_measurements_and_no_numbers_have_no_trend() {
        assert_eq!(Trend::of(&[1.0, 2.0, 3.0, 4.0]), None);
        assert_eq!(Trend::of(&[1.0, 2.0, f64::NAN, 4.0, 5.0]), None);
    }

    #[test]
    fn equal_measurements_have_no_trend() {
        assert_eq!(Trend::of(&[3.0; 6]), Some(Trend { s: 0, p: 1.0 }));
        // Kendall's variance for ten measurements with a group of three: (10·9·25 − 3·2·11) / 18.
        let measurements = [1.0, 2.0, 2.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let trend = Trend::of(&measurements).unwrap();
        let z = (42.0 - 1.0) / ((2250.0 - 66.0) / 18.0_f64).sqrt();
        assert_eq!(trend.s, 42);
        assert!((trend.p - complementary_error(z / 2.0_f64.sqrt())).abs() < 1e-12);
    }

    #[test]
    fn exact_and_normal_p_values_agree_for_many_measurements() {
        for s in [3, 101, 301, 501] {
            let all: Vec<f64> = (0..60).map(f64::from).collect();
            let (exact, normal) = (exact_p(60, s + 1), normal_p(&all, s + 1));
            assert!((exact - normal).abs() < 0.003, "{s}: {exact} {normal}");
        }
    }

    /// A series of random numbers has a significant trend with a probability of at most 5 %, and of less if S has few
    /// possible values.
    #[test]
    fn chance_is_rarely_a_trend() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        for n in [5, 8, 20] {
            let mut found = 0;
            for _ in 0..2000 {
                let measurements: Vec<f64> = (0..n).map(|_| random.random()).collect();
                found += u32::from(Trend::of(&measurements).unwrap().is_significant());
            }
            assert!((20..130).contains(&found), "{n} measurements: {found}");
        }
    }
}
