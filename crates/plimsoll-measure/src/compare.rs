//! Whether two sets of repeated measurements differ significantly.
//!
//! A difference is [significant](Difference::is_significant) if the bootstrap confidence interval of
//! the change of the mean excludes zero, and if the p-value of the Mann–Whitney test is less than
//! [`SIGNIFICANCE`]. The interval gives the size of the difference, the test is robust against
//! outliers.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// p-value below which a difference is significant.
pub const SIGNIFICANCE: f64 = 0.05;

/// Fraction of the resampled changes inside the confidence interval.
pub const CONFIDENCE: f64 = 0.95;

/// Number of resamples of the bootstrap.
const RESAMPLES: usize = 10_000;

/// Seed of the bootstrap, so that the same measurements give the same interval.
const SEED: u64 = 1;

/// Maximum number of measurements of both sets for the exact test; for more, and for equal
/// measurements, the normal distribution is used.
const MAX_EXACT_SAMPLES: usize = 50;

/// Result of a two-sided Mann–Whitney U test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MannWhitney {
    /// Pairs of which the first set's measurement is the larger; pairs of equals count half.
    pub u: f64,
    /// Probability of a `u` at least as far from its mean if both sets came from one distribution,
    /// from 0 to 1.
    pub p: f64,
    /// Whether `p` is exact; otherwise it is that of the normal distribution, corrected for ties and
    /// for continuity.
    pub exact: bool,
}

/// The change from one set of measurements to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Change of the mean as a fraction of the first mean: 0.1 is ten percent more.
    pub change: f64,
    /// Bounds of the bootstrap confidence interval of the change.
    pub interval: (f64, f64),
    /// The test.
    pub test: MannWhitney,
}

impl Difference {
    /// Compares two sets; `None` if one has fewer than two measurements, if any is not finite, or
    /// if the first mean is zero.
    #[must_use]
    pub fn of(first: &[f64], second: &[f64]) -> Option<Self> {
        let finite = first.iter().chain(second).all(|v| v.is_finite());
        let base = mean(first);
        if !finite || first.len() < 2 || second.len() < 2 || base == 0.0 {
            return None;
        }
        Some(Self {
            change: (mean(second) - base) / base.abs(),
            interval: bootstrap(first, second)?,
            test: mann_whitney(first, second)?,
        })
    }

    /// Whether the difference is significant by both the interval and the test.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        let (low, high) = self.interval;
        (low > 0.0 || high < 0.0) && self.test.p < SIGNIFICANCE
    }
}

/// Whether sets of these sizes are large enough for any difference to be significant: the smallest
/// possible p-value of the test is below [`SIGNIFICANCE`].
#[must_use]
pub fn has_enough_runs(first: usize, second: usize) -> bool {
    // Of all ways to choose the ranks of one set, two are the most extreme.
    let ways = (1..=first).fold(1.0, |w, i| w * (second + i) as f64 / i as f64);
    2.0 / ways < SIGNIFICANCE
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
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
    let ties = ties(first, second);
    let exact = ties == 0.0 && n + m <= MAX_EXACT_SAMPLES;
    let p = match exact {
        true => exact_p(n, m, u),
        false => normal_p(n as f64, m as f64, u, ties),
    };
    Some(MannWhitney { u, p, exact })
}

/// Sum of `t³ − t` over groups of `t` equal measurements.
fn ties(first: &[f64], second: &[f64]) -> f64 {
    let mut all = [first, second].concat();
    all.sort_by(f64::total_cmp);
    let groups = all.chunk_by(|a, b| a.total_cmp(b).is_eq());
    groups.map(|g| g.len() as f64).map(|t| t * t * t - t).sum()
}

/// Twice the probability of a `u` that is at most the smaller of the two sides'.
///
/// The number of ways in which `n` and `m` different measurements have a certain `u` is counted by
/// removing the largest one: if it is of the first set, it exceeds all `m` of the second.
fn exact_p(n: usize, m: usize, u: f64) -> f64 {
    let least = u.min((n * m) as f64 - u) as usize;
    // ways[j][u] for the measurements of the first set taken so far, and j of the second.
    let mut ways = vec![vec![0.0f64; n * m + 1]; m + 1];
    for row in &mut ways {
        row[0] = 1.0;
    }
    for _ in 1..=n {
        let mut next = vec![vec![0.0f64; n * m + 1]; m + 1];
        next[0][0] = 1.0;
        for j in 1..=m {
            for value in 0..=n * m {
                let of_first = if value >= j { ways[j][value - j] } else { 0.0 };
                next[j][value] = of_first + next[j - 1][value];
            }
        }
        ways = next;
    }
    let all: f64 = ways[m].iter().sum();
    let extreme: f64 = ways[m][..=least].iter().sum();
    (2.0 * extreme / all).min(1.0)
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

/// `erfc` of a number that is not negative, with a relative error below 1.2e-7: the rational
/// Chebyshev approximation of Press et al., Numerical Recipes (1992), section 6.2.
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

/// Confidence interval of the change of the mean: both sets are resampled with replacement, and the
/// interval is the middle [`CONFIDENCE`] of the changes (percentile bootstrap, Efron 1979). `None`
/// if too many resamples of the first set have a mean of zero.
fn bootstrap(first: &[f64], second: &[f64]) -> Option<(f64, f64)> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut drawn = |values: &[f64]| {
        let sum: f64 = (0..values.len())
            .map(|_| values[rng.random_range(0..values.len())])
            .sum();
        sum / values.len() as f64
    };
    let mut changes: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let base = drawn(first);
            (drawn(second) - base) / base.abs()
        })
        .filter(|c| c.is_finite())
        .collect();
    changes.sort_by(f64::total_cmp);
    if changes.len() < RESAMPLES / 2 {
        return None;
    }
    let at = |q: f64| changes[(q * (changes.len() - 1) as f64).round() as usize];
    let outside = (1.0 - CONFIDENCE) / 2.0;
    Some((at(outside), at(1.0 - outside)))
}

#[cfg(test)]
mod tests;
