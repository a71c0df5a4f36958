//! Confidence intervals of the figures of a single window, by batch means.
//!
//! A window is divided into batches of equal length. Rates and latencies of neighbouring batches depend on each other,
//! so neighbours are merged until the lag-1 autocorrelation of the batches is not significant, or few batches are left.
//! The standard error counts only as many batches as would be independent (module `regression`), and a figure has an
//! interval only with enough independent batches. A window cannot show changes that take longer than the window.
//!
//! C. Alexopoulos and A. F. Seila: Output data analysis, in: Handbook of Simulation (1998), section 7.4.1. Percentiles:
//! the interval of the fraction of operations that do not exceed the percentile, P. Heidelberger and P. A. W. Lewis:
//! Quantile estimation in dependent sequences (1984).

use crate::latency::quantile_rank;
use crate::regression::{autocorrelation, freedom, independent};
use crate::student::quantile;
use crate::{Interval, Latency, Nanos};
use plimsoll_plan::counted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of batches in memory: with more, neighbours are merged.
const MAX_BATCHES: u64 = 128;

/// Minimum number of batches of a window whose figures have intervals.
pub const MIN_BATCHES: u64 = 20;

/// Number of batches below which neighbours are not merged.
const MIN_MERGED: usize = 32;

/// Autocorrelation in standard errors, above which neighbours are merged: a one-sided test at 5 %.
const SIGNIFICANT_CORRELATION: f64 = 1.645;

/// Minimum number of independent batches of a figure with an interval.
const MIN_INDEPENDENT: f64 = 4.0;

/// Minimum number of operations on each side of a percentile with an interval.
const MIN_OPS_BEYOND: f64 = 10.0;

/// Probability that an interval contains the long-term figure.
pub const CONFIDENCE: f64 = 0.95;

/// Operations of one row in a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Batch {
    ops: u64,
    /// Sum of the latencies in nanoseconds.
    sum: u128,
    /// Latencies in nanoseconds in increasing order, with their numbers of occurrences.
    counts: Vec<(Nanos, u64)>,
}

impl Batch {
    fn add(&mut self, ops: u64, latency: &Latency) {
        self.ops += ops;
        self.sum += latency.sum();
        // The values of a histogram are rounded up, beyond the exact maximum.
        let counts = latency.recorded();
        self.add_counts(counts.map(|(value, n)| (value.min(latency.max()), n)));
    }

    fn merge(&mut self, other: Self) {
        self.ops += other.ops;
        self.sum += other.sum;
        self.add_counts(other.counts.into_iter());
    }

    fn add_counts(&mut self, counts: impl Iterator<Item = (Nanos, u64)>) {
        if self.counts.is_empty() {
            self.counts.extend(counts);
            return;
        }
        let before = std::mem::take(&mut self.counts);
        let mut before = before.into_iter().peekable();
        for (value, n) in counts {
            while let Some(smaller) = before.next_if(|(v, _)| *v < value) {
                self.counts.push(smaller);
            }
            let same = before.next_if(|(v, _)| *v == value).map_or(0, |(_, n)| n);
            self.counts.push((value, n + same));
        }
        self.counts.extend(before);
    }
}

/// Operations of a window by row and batch. A window has at most 128 batches, which are as short as possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batches {
    /// Length of an interval in nanoseconds.
    length: Nanos,
    /// Number of intervals in a batch.
    size: u64,
    /// Batches of each row from the window start; batches without an operation at the end are left out.
    rows: Vec<Vec<Batch>>,
}

impl Default for Batches {
    fn default() -> Self {
        Self {
            length: 0,
            size: 1,
            rows: vec![],
        }
    }
}

impl Batches {
    /// Adds the operations of an interval.
    pub fn add(&mut self, interval: &Interval) {
        self.length = self.length.max(interval.length);
        while interval.index / self.size >= MAX_BATCHES {
            self.size *= 2;
            self.rows.iter_mut().for_each(merge_neighbours);
        }
        let at = (interval.index / self.size) as usize;
        self.rows
            .resize(self.rows.len().max(interval.rows.len()), vec![]);
        for (batches, row) in self.rows.iter_mut().zip(&interval.rows) {
            if row.ops > 0 {
                batches.resize(batches.len().max(at + 1), Batch::default());
                batches[at].add(row.ops, row.latency());
            }
        }
    }

    /// Intervals of the figures of the chosen rows together, in a window of `window` nanoseconds.
    #[must_use]
    pub fn confidence(&self, is_chosen: impl Fn(usize) -> bool, window: Nanos) -> Confidence {
        let intervals = window.checked_div(self.length).unwrap_or(0);
        if intervals < MIN_BATCHES {
            let intervals = counted(intervals, "interval", "intervals");
            return Confidence::doubtful(format!(
                "the window has {intervals}, fewer than {MIN_BATCHES}"
            ));
        }
        let mut batches = vec![Batch::default(); (intervals / self.size) as usize];
        let rows = self.rows.iter().enumerate();
        for (_, row) in rows.filter(|(number, _)| is_chosen(*number)) {
            for (sum, batch) in batches.iter_mut().zip(row) {
                sum.merge(batch.clone());
            }
        }
        let seconds = (self.size * self.length) as f64 / 1e9;
        Confidence::of(&batches, seconds)
    }
}

/// Merges each two neighbours; the last batch may have no neighbour.
fn merge_neighbours(batches: &mut Vec<Batch>) {
    let mut merged = Vec::with_capacity(batches.len().div_ceil(2));
    let mut before = std::mem::take(batches).into_iter();
    while let Some(mut batch) = before.next() {
        if let Some(next) = before.next() {
            batch.merge(next);
        }
        merged.push(batch);
    }
    *batches = merged;
}

/// Lower and upper bound of a confidence interval, in the unit of the figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// Lower bound of the interval.
    pub low: f64,
    /// Upper bound of the interval.
    pub high: f64,
}

impl Bounds {
    /// Half of the interval's width, as a fraction of the interval's centre; infinite for a centre of 0.
    #[must_use]
    pub fn relative_half_width(self) -> f64 {
        let centre = f64::midpoint(self.low, self.high);
        if centre > 0.0 {
            (self.high - self.low) / 2.0 / centre
        } else {
            f64::INFINITY
        }
    }

    fn scaled(self, factor: f64) -> Self {
        Self {
            low: self.low * factor,
            high: self.high * factor,
        }
    }
}

/// 95 % confidence intervals of the figures of a window, from the variation within the window. The intervals say how
/// much a longer window could change the figures; other runs can differ more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confidence {
    /// Operations per second; null if the window cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops_per_s: Option<Bounds>,
    /// Mean latency in milliseconds; null if the window cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ms: Option<Bounds>,
    /// 50th percentile of the latency in milliseconds; null if the window cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<Bounds>,
    /// 95th percentile of the latency in milliseconds; null if the window cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<Bounds>,
    /// 99th percentile of the latency in milliseconds; null if the window cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<Bounds>,
    /// Reason why no figure has an interval, as a clause; null if a figure has an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

impl Confidence {
    fn doubtful(doubt: String) -> Self {
        Self {
            doubt: Some(doubt),
            ..Self::default()
        }
    }

    /// Intervals of the figures of batches of `seconds` each.
    fn of(batches: &[Batch], seconds: f64) -> Self {
        let ops: Vec<f64> = batches.iter().map(|b| b.ops as f64).collect();
        let all: f64 = ops.iter().sum();
        if all == 0.0 {
            return Self::doubtful("the window has no operation".into());
        }
        let lengths = vec![seconds; batches.len()];
        let times: Vec<f64> = batches.iter().map(|b| b.sum as f64).collect();
        let mut whole = Batch::default();
        batches.iter().for_each(|b| whole.merge(b.clone()));
        let percentile = |share: f64| {
            let value = whole.value_at(share);
            let upto: Vec<f64> = batches.iter().map(|b| b.ops_upto(value) as f64).collect();
            let beyond = all * share.min(1.0 - share);
            let half = half_width(&upto, &ops).filter(|_| beyond >= MIN_OPS_BEYOND)?;
            let within = share - half > 0.0 && share + half < 1.0;
            within.then(|| Bounds {
                low: whole.value_at(share - half) as f64 / 1e6,
                high: whole.value_at(share + half) as f64 / 1e6,
            })
        };
        let confidence = Self {
            ops_per_s: ratio(&ops, &lengths),
            mean_ms: ratio(&times, &ops).map(|b| b.scaled(1e-6)),
            p50_ms: percentile(0.5),
            p95_ms: percentile(0.95),
            p99_ms: percentile(0.99),
            doubt: None,
        };
        if confidence == Self::default() {
            return Self::doubtful("the figures change slowly during the window".into());
        }
        confidence
    }
}

impl Batch {
    /// Latency in nanoseconds that a fraction of the operations does not exceed.
    fn value_at(&self, share: f64) -> Nanos {
        let number = self.counts.iter().map(|(_, n)| n).sum();
        let rank = quantile_rank(share, number);
        let mut upto = 0;
        let at = self.counts.iter().find(|(_, n)| {
            upto += n;
            upto >= rank
        });
        at.or(self.counts.last()).map_or(0, |(value, _)| *value)
    }

    fn ops_upto(&self, value: Nanos) -> u64 {
        let upto = self.counts.iter().take_while(|(v, _)| *v <= value);
        upto.map(|(_, n)| n).sum()
    }
}

/// Interval of the ratio of the sums of two series, clipped at 0; `None` with too few independent batches.
fn ratio(numerators: &[f64], denominators: &[f64]) -> Option<Bounds> {
    let centre = numerators.iter().sum::<f64>() / denominators.iter().sum::<f64>();
    let half = half_width(numerators, denominators)?;
    Some(Bounds {
        low: (centre - half).max(0.0),
        high: centre + half,
    })
}

/// Half width of the confidence interval of the ratio of the sums of two series, by the residuals of the ratio; `None`
/// with too few independent batches.
fn half_width(numerators: &[f64], denominators: &[f64]) -> Option<f64> {
    let all: f64 = denominators.iter().sum();
    let centre = numerators.iter().sum::<f64>() / all;
    let pairs = numerators.iter().zip(denominators);
    let mut residuals: Vec<f64> = pairs.map(|(y, x)| y - centre * x).collect();
    let scale: f64 = numerators.iter().map(|y| y * y).sum();
    loop {
        let n = residuals.len() as f64;
        let squares: f64 = residuals.iter().map(|e| e * e).sum();
        if squares <= scale * f64::EPSILON {
            // All batches have the same figure.
            return Some(0.0);
        }
        // The centre is the only parameter of the fit.
        let correlation = autocorrelation(&residuals, squares, 1.0);
        if correlation * n.sqrt() > SIGNIFICANT_CORRELATION && residuals.len() >= MIN_MERGED {
            // Without a neighbour, the last batch is left out of the spread.
            residuals = residuals.chunks_exact(2).map(|e| e[0] + e[1]).collect();
            continue;
        }
        let independent = independent(residuals.len(), correlation);
        if independent < MIN_INDEPENDENT {
            return None;
        }
        let left = independent - 1.0;
        let error = (squares * n / left).sqrt() / all;
        let student = quantile(f64::midpoint(1.0, CONFIDENCE), freedom(left));
        return Some(error * student);
    }
}

#[cfg(test)]
mod tests;
