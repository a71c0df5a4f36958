//! Comparison of two variants by pairs of measurements, such as runs made one after the other.
//!
//! What the two measurements of a pair have in common, such as the state of the machine in that minute, cancels in
//! their ratio. The effect is the geometric mean of the ratios; its interval and its test are Student's t on the
//! logarithms of the ratios (Student: The Probable Error of a Mean, 1908).

use super::{CONFIDENCE, Spread};
use crate::student::{quantile, tail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Probability with which a difference of the detectable size is found significant.
const POWER: f64 = 0.8;

/// Effect of one variant against another, from pairs of measurements: geometric mean of the ratios, second measurement
/// by first, with interval and test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedRatio {
    /// Number of pairs.
    pub pairs: u32,
    /// Geometric mean of the ratios of the second measurement to the first measurement: 1.1 is 10 percent more.
    pub ratio: f64,
    /// Bounds of the 95 % confidence interval of the ratio: Student's t on the logarithms of the ratios.
    pub interval: (f64, f64),
    /// p-value of the paired test of the null hypothesis that the ratio is 1: Student's t, two-sided.
    pub p: f64,
    /// Detectable difference, as a fraction: the relative difference that as many pairs with the observed spread find
    /// significant with a probability of 80 %. 0.05 is 5 percent.
    pub detectable: f64,
}

impl PairedRatio {
    /// Compares pairs of measurements; `None` for fewer than two pairs, if a measurement is not a finite number above 0,
    /// and if the spread is so large that a bound of the interval is not.
    ///
    /// The detectable difference is `(t₀.₉₇₅ + t₀.₈) · s / √n` on the logarithmic scale, with quantiles of Student's t:
    /// the usual approximation of the power of the t-test.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let is_usable = |v: f64| v.is_finite() && v > 0.0;
        if !pairs.iter().all(|(a, b)| is_usable(*a) && is_usable(*b)) {
            return None;
        }
        // The difference of the logarithms is finite even if the ratio of the measurements is not.
        let logs: Vec<f64> = pairs.iter().map(|(a, b)| b.ln() - a.ln()).collect();
        let spread = Spread::of(&logs)?;
        let (mean, deviation) = (spread.mean, spread.deviation?);
        let error = deviation.standard / (logs.len() as f64).sqrt();
        let freedom = u32::try_from(logs.len() - 1).ok()?;
        let p = match error > 0.0 {
            true => tail(mean.abs() / error, freedom),
            false if mean == 0.0 => 1.0,
            false => 0.0,
        };
        let t = quantile(f64::midpoint(1.0, CONFIDENCE), freedom) + quantile(POWER, freedom);
        let (low, high) = deviation.interval;
        let effect = Self {
            pairs: freedom + 1,
            ratio: mean.exp(),
            interval: (low.exp(), high.exp()),
            p,
            detectable: (t * error).exp_m1(),
        };
        let (low, high) = effect.interval;
        let is_known = is_usable(low) && is_usable(high) && effect.detectable.is_finite();
        is_known.then_some(effect)
    }

    /// Half of the width of the interval, as a fraction of the ratio: 0.02 if the upper bound is 2 percent above the
    /// ratio.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        self.interval.1 / self.ratio - 1.0
    }

    /// Whether a single figure differs significantly: the interval excludes 1.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.p < 1.0 - CONFIDENCE
    }

    /// The largest difference inside the interval, as a fraction: the distance of the farther bound from 1.
    #[must_use]
    pub fn largest_difference(&self) -> f64 {
        let (low, high) = self.interval;
        (high - 1.0).abs().max((1.0 - low).abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::significant;
    use crate::normal::standard_normal;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Number of simulated series of pairs.
    const SERIES: usize = 1000;

    /// Pairs whose measurements share a drift of the machine of 30 %, and have a spread of 3 % of their own; the true
    /// ratio is `ratio`.
    fn series(rng: &mut Xoshiro256PlusPlus, pairs: usize, ratio: f64) -> Vec<(f64, f64)> {
        let pair = |_| {
            let machine = 1000.0 * (0.3 * standard_normal(rng)).exp();
            let first = machine * (0.03 * standard_normal(rng)).exp();
            (first, machine * ratio * (0.03 * standard_normal(rng)).exp())
        };
        (0..pairs).map(pair).collect()
    }

    /// Number of simulated series of which a statement is true.
    fn count(pairs: usize, ratio: f64, is_it: impl Fn(&PairedRatio) -> bool) -> usize {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(pairs as u64);
        let all = (0..SERIES).map(|_| PairedRatio::of(&series(&mut rng, pairs, ratio)).unwrap());
        all.filter(is_it).count()
    }

    /// The bounds are three standard deviations of a binomial number of 1000 with the probability 0.95.
    #[test]
    fn intervals_contain_the_true_ratio_in_95_of_100_series() {
        for (pairs, ratio) in [(3, 1.0), (4, 1.1), (8, 1.29), (20, 0.5)] {
            let contain = |e: &PairedRatio| e.interval.0 <= ratio && ratio <= e.interval.1;
            let contained = count(pairs, ratio, contain);
            assert!((929..=971).contains(&contained), "{pairs}: {contained}");
        }
    }

    #[test]
    fn equal_variants_differ_by_chance_in_5_of_100_series() {
        let found = count(8, 1.0, PairedRatio::is_significant);
        assert!((29..=71).contains(&found), "{found}");
    }

    #[test]
    fn a_planted_difference_of_10_percent_is_found_despite_a_drift_of_30_percent() {
        let found = count(8, 1.1, |e| e.is_significant() && e.ratio > 1.0);
        assert!(found >= 990, "{found}");
    }

    /// The approximation of the power is a few percent off for few pairs.
    #[test]
    fn the_detectable_difference_is_found_in_80_of_100_series() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let spread = std::f64::consts::SQRT_2 * 0.03;
        let freedom = 7;
        let t = quantile(0.975, freedom) + quantile(POWER, freedom);
        let ratio = (t * spread / 8f64.sqrt()).exp();
        let estimates = (0..SERIES).map(|_| PairedRatio::of(&series(&mut rng, 8, ratio)).unwrap());
        let estimates: Vec<PairedRatio> = estimates.collect();
        let found = estimates.iter().filter(|e| e.is_significant()).count();
        assert!((760..=860).contains(&found), "{found}");
        let mean = estimates.iter().map(|e| e.detectable).sum::<f64>() / SERIES as f64;
        assert!((mean / (ratio - 1.0) - 1.0).abs() < 0.1, "{mean} {ratio}");
    }

    #[test]
    fn equal_variants_have_few_significant_figures_after_control() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let with_findings = (0..SERIES).filter(|_| {
            let p = |_| PairedRatio::of(&series(&mut rng, 8, 1.0)).unwrap().p;
            let p_values: Vec<f64> = (0..20).map(p).collect();
            significant(&p_values).contains(&true)
        });
        let found = with_findings.count();
        assert!((29..=71).contains(&found), "{found}");
    }

    /// Expected values: logarithms ln 2, ln 3, ln 4 have the mean 1.05935 and the standard deviation 0.34824; Student's t
    /// with two degrees of freedom has the quantile 4.302653, and at t = 5.26896 the tail 0.034184.
    #[test]
    fn three_pairs_have_the_effect_of_a_calculation_by_hand() {
        let effect = PairedRatio::of(&[(1.0, 2.0), (10.0, 30.0), (0.5, 2.0)]).unwrap();
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-4, "{a} {b}");
        close(effect.ratio, 24f64.cbrt());
        let half = 4.302_653 * 0.348_237_5 / 3f64.sqrt();
        close(effect.interval.0, (24f64.ln() / 3.0 - half).exp());
        close(effect.half_width(), half.exp() - 1.0);
        close(effect.p, 0.034_184_2);
        assert_eq!(effect.pairs, 3);
    }

    #[test]
    fn equal_ratios_have_no_spread() {
        let effect = PairedRatio::of(&[(1.0, 2.0), (3.0, 6.0), (5.0, 10.0)]).unwrap();
        assert!((effect.ratio - 2.0).abs() < 1e-12);
        let same = PairedRatio::of(&[(7.0, 7.0); 4]).unwrap();
        assert_eq!((same.ratio, same.interval, same.p), (1.0, (1.0, 1.0), 1.0));
        assert_eq!((same.detectable, same.largest_difference()), (0.0, 0.0));
        let different = PairedRatio::of(&[(1.0, 2.0); 2]).unwrap();
        assert!(different.is_significant() && different.p == 0.0);
    }

    #[test]
    fn what_has_no_ratio_has_no_effect() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(PairedRatio::of(&[(1.0, 1.0), (bad, 1.0)]), None);
            assert_eq!(PairedRatio::of(&[(1.0, 1.0), (1.0, bad)]), None);
        }
        assert_eq!(PairedRatio::of(&[(1.0, 1.0)]), None);
        assert_eq!(
            PairedRatio::of(&[(f64::MIN_POSITIVE, f64::MAX), (1.0, 1.0)]),
            None
        );
    }
}
