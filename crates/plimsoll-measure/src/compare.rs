//! Significance of differences between sets of repeated measurements.
//!
//! Each figure is judged by two methods: the bootstrap confidence interval of the difference of the means shows size
//! and direction, and the Mann–Whitney test is robust against outliers. The p-value of a figure is the p-value of the
//! Mann–Whitney test if the interval excludes zero, and 1 otherwise. [`significant`] controls the false discovery rate
//! among all figures that are tested together.

mod paired;
mod spread;
mod trend;

pub use paired::PairedRatio;
pub use spread::{Deviation, Spread};
pub use trend::Trend;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limit of the false discovery rate: the expected fraction of chance differences among all significant differences,
/// and the probability of any significant difference if nothing differs.
pub const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// Fraction of the resampled differences inside the confidence interval.
pub const CONFIDENCE: f64 = 0.95;

/// Number of resamples from which the bootstrap computes the interval of a difference.
const RESAMPLES: usize = 10_000;

/// Fixed seed of the bootstrap: equal measurements give equal intervals.
const SEED: u64 = 1;

/// Minimum number of measurements in a set: a single measurement has no variation.
const MIN_RUNS: usize = 2;

/// Maximum number of measurements in both sets for the exact test, which counts subsets: up to 50, every count is a
/// whole number below 2⁵³. Larger sets use the normal approximation.
const MAX_EXACT_SAMPLES: usize = 50;

/// Two-sided Mann–Whitney U test of the null hypothesis that two sets of measurements have the same distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MannWhitney {
    /// Test statistic U: the number of pairs in which the measurement of the first set is larger than the measurement
    /// of the second set; a pair of equal measurements counts half.
    pub u: f64,
    /// p-value, above 0 and at most 1: the probability, if both sets come from one distribution, that the test
    /// statistic is at least as far from its mean as `u`.
    pub p: f64,
    /// Whether `p` is the exact probability; otherwise `p` is the normal approximation, corrected for ties and for
    /// continuity.
    pub exact: bool,
    /// Whether every measurement of one set is larger than every measurement of the other set.
    pub separated: bool,
}

/// Comparison of one figure in two sets of repeated runs: the interval of the difference of the means, and a rank-sum
/// test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Bounds of the 95 % bootstrap confidence interval of the second mean minus the first mean, in the unit of the
    /// measurements.
    pub interval: (f64, f64),
    /// Mann–Whitney test of the null hypothesis that both sets of measurements have the same distribution.
    pub test: MannWhitney,
}

impl Difference {
    /// Compares two sets of measurements; `None` if a set has fewer than two measurements, or a measurement is not
    /// finite.
    #[must_use]
    pub fn of(first: &[f64], second: &[f64]) -> Option<Self> {
        let finite = first.iter().chain(second).all(|v| v.is_finite());
        if !finite || first.len() < MIN_RUNS || second.len() < MIN_RUNS {
            return None;
        }
        // Replace −0, which the test would rank below 0.
        let [first, second] =
            [first, second].map(|s| s.iter().map(|v| v + 0.0).collect::<Vec<_>>());
        Some(Self {
            interval: bootstrap(&first, &second),
            test: mann_whitney(&first, &second)?,
        })
    }

    /// p-value of the difference by the interval and the rank-sum test together: 1 if the interval includes zero,
    /// otherwise the p-value of the test.
    #[must_use]
    pub fn p(&self) -> f64 {
        let (low, high) = self.interval;
        match low > 0.0 || high < 0.0 {
            true => self.test.p,
            false => 1.0,
        }
    }
}

/// Relative change from one figure to another: 0.1 is an increase of 10 %. The change is infinite from zero to any
/// other figure, and 0 between equal figures.
#[must_use]
pub fn relative_change(from: f64, to: f64) -> f64 {
    match from == to {
        true => 0.0,
        false => (to - from) / from.abs(),
    }
}

/// Marks the significant p-values among all figures that are tested together, by Benjamini and Hochberg's procedure at
/// a false discovery rate of [`FALSE_DISCOVERY_RATE`].
///
/// Of `m` p-values in increasing order, the first `k` are significant for the largest `k` whose p-value
/// is at most `k / m` times the rate.
///
/// Y. Benjamini, Y. Hochberg: Controlling the False Discovery Rate: a Practical and Powerful Approach to
/// Multiple Testing (1995).
#[must_use]
pub fn significant(p_values: &[f64]) -> Vec<bool> {
    let mut ordered = p_values.to_vec();
    ordered.sort_by(f64::total_cmp);
    let tests = (1..).zip(&ordered);
    let accepted = tests.filter(|(k, p)| **p <= limit(*k, ordered.len()));
    let highest = accepted.map(|(_, p)| *p).last();
    let is_significant = |p: &f64| highest.is_some_and(|h| *p <= h);
    p_values.iter().map(is_significant).collect()
}

/// Maximum significant p-value at rank `k` of `m` figures.
fn limit(k: usize, m: usize) -> f64 {
    FALSE_DISCOVERY_RATE * k as f64 / m as f64
}

/// Whether a single figure can differ significantly between sets of `first` and `second` runs, in the best case of
/// completely separated sets.
#[must_use]
pub fn has_enough_runs(first: usize, second: usize) -> bool {
    first >= MIN_RUNS && second >= MIN_RUNS && smallest_p(first, second) <= limit(1, 1)
}

/// Minimum number of runs in each of two sets for a difference in a single one of `figures` figures to be significant.
/// `figures` is at least 1.
#[must_use]
pub fn runs_needed(figures: usize) -> usize {
    let is_enough = |n: &usize| smallest_p(*n, *n) <= limit(1, figures.max(1));
    let found = (MIN_RUNS..).find(is_enough);
    found.expect("the smallest p-value falls by half with each run")
}

/// Minimum p-value of the Mann–Whitney test: of all assignments of the measurements to the two sets, two separate the
/// sets completely.
fn smallest_p(first: usize, second: usize) -> f64 {
    let ways = (1..=first).fold(1.0, |w, i| w * (second + i) as f64 / i as f64);
    2.0 / ways
}

/// Mann–Whitney U test, two-sided; `None` if a set is empty.
///
/// H. B. Mann, D. R. Whitney: On a Test of Whether one of Two Random Variables is Stochastically
/// Larger than the Other (1947).
#[must_use]
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<MannWhitney> {
    let (n, m) = (first.len(), second.len());
    if n == 0 || m == 0 {
        return None;
    }
    let mut u = 0.0;
    for a in first {
        for b in second {
            u += match a.total_cmp(b) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    let exact = n + m <= MAX_EXACT_SAMPLES;
    let p = match exact {
        true => exact_p(first, second),
        false => normal_p(n as f64, m as f64, u, ties(first, second)),
    };
    let separated = u == 0.0 || u == (n * m) as f64;
    Some(MannWhitney {
        u,
        p,
        exact,
        separated,
    })
}

/// Sum of `t³ − t` over groups of `t` equal measurements.
fn ties(first: &[f64], second: &[f64]) -> f64 {
    let mut all = [first, second].concat();
    all.sort_by(f64::total_cmp);
    let groups = all.chunk_by(|a, b| a.total_cmp(b).is_eq());
    groups.map(|g| g.len() as f64).map(|t| t * t * t - t).sum()
}

/// Probability, over all assignments of the measurements to the sets, that the rank sum of the first set is at least as
/// far from its mean as observed. Equal measurements share their mean rank.
fn exact_p(first: &[f64], second: &[f64]) -> f64 {
    if first.len() > second.len() {
        // The p-value is symmetric in the two sets; with the smaller set first, fewer subsets are counted.
        return exact_p(second, first);
    }
    let mut all = [first, second].concat();
    all.sort_by(f64::total_cmp);
    // Doubled ranks are whole numbers, even for ties.
    let mut ranks = Vec::with_capacity(all.len());
    for group in all.chunk_by(|a, b| a.total_cmp(b).is_eq()) {
        let before = ranks.len();
        ranks.extend(std::iter::repeat_n(
            2 * before + group.len() + 1,
            group.len(),
        ));
    }
    let rank = |value: &f64| ranks[all.partition_point(|v| v.total_cmp(value).is_lt())];
    let observed: usize = first.iter().map(rank).sum();
    let n = first.len();
    // ways[j][s]: number of subsets of j of the ranks so far with sum s.
    let most = |of: &[usize], n: usize| -> usize { of.iter().rev().take(n).sum() };
    let mut ways = vec![vec![0.0f64; most(&ranks, n) + 1]; n + 1];
    ways[0][0] = 1.0;
    for (taken, rank) in ranks.iter().enumerate() {
        for j in (1..=n.min(taken + 1)).rev() {
            let (fewer, with) = ways.split_at_mut(j);
            let (fewer, with) = (&fewer[j - 1], &mut with[0][*rank..]);
            let reached = most(&ranks[..taken], j - 1);
            for (with, fewer) in with.iter_mut().zip(&fewer[..=reached]) {
                *with += fewer;
            }
        }
    }
    let mean = n * (all.len() + 1);
    let far = |sum: usize| sum.abs_diff(mean);
    let (mut every, mut extreme) = (0.0, 0.0);
    for (sum, count) in ways[n].iter().enumerate() {
        every += count;
        if far(sum) >= far(observed) {
            extreme += count;
        }
    }
    extreme / every
}

fn normal_p(n: f64, m: f64, u: f64, ties: f64) -> f64 {
    let all = n + m;
    let variance = n * m / 12.0 * ((all + 1.0) - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        // All measurements are equal.
        return 1.0;
    }
    let distance = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
    complementary_error(distance / variance.sqrt() / std::f64::consts::SQRT_2)
}

/// `erfc` of a non-negative number, with a relative error below 1.2e-7: the rational Chebyshev approximation of Press
/// et al., Numerical Recipes (1992), section 6.2.
fn complementary_error(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let t = 1.0 / (1.0 + 0.5 * x);
    let sum = COEFFICIENTS.iter().rev().fold(0.0, |sum, c| sum * t + c);
    (t * (-x * x + sum).exp()).min(1.0)
}

/// Confidence interval of the difference of the means by the percentile bootstrap (Efron 1979): both sets are resampled
/// with replacement, and the interval is the middle [`CONFIDENCE`] of the differences.
fn bootstrap(first: &[f64], second: &[f64]) -> (f64, f64) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut drawn = |values: &[f64]| {
        let sum: f64 = (0..values.len())
            .map(|_| values[rng.random_range(0..values.len())])
            .sum();
        sum / values.len() as f64
    };
    let mut differences: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let base = drawn(first);
            drawn(second) - base
        })
        .collect();
    differences.sort_by(f64::total_cmp);
    let at = |q: f64| differences[(q * (differences.len() - 1) as f64).round() as usize];
    let outside = (1.0 - CONFIDENCE) / 2.0;
    (at(outside), at(1.0 - outside))
}

#[cfg(test)]
mod like_with_like;
#[cfg(test)]
mod tests;
