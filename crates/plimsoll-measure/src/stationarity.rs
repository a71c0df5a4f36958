//! Whether the rate of operations stayed the same during a measured window: trend, change of level, greatest excursion.
//!
//! Rates of neighbouring intervals are rarely independent, and a test that assumes independence calls most runs of a
//! cached or queued system unsteady. The tests here estimate the lag-1 autocorrelation of the residuals, and count only
//! as many intervals as would be independent (the module `regression`). A trend or a change of level is stated if
//! chance explains the change with a probability below 1 %, and if the rate changes by more than 5 % of the window's
//! mean. A change of level must also move the window's mean by more than 1 %: a short start-up of a long window does
//! not matter.

use crate::regression::Regression;
use crate::{Interval, Nanos};
use plimsoll_plan::{counted, three_digits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Minimum number of intervals of a window for a judgement of the rate.
pub const MIN_INTERVALS: u32 = 10;

/// Maximum number of slices in which a window is judged. Slices of several intervals are less dependent on each other
/// than intervals.
const MAX_SLICES: u64 = 100;

/// Minimum mean number of operations in a slice, so that counts are nearly normally distributed.
const MIN_SLICE_OPS: u64 = 10;

/// Change of the rate, as a fraction of the window's mean, up to which the rate counts as steady.
const PRACTICAL_CHANGE: f64 = 0.05;

/// Distance between the window's mean and the mean on the longer of two levels, as a fraction of the window's mean, up
/// to which the rate counts as steady.
const PRACTICAL_SHIFT: f64 = 0.01;

/// Probability of a trend or change of level by chance, below which the change is stated.
const SIGNIFICANCE: f64 = 0.01;

/// Probability that the confidence interval of the trend contains the true trend.
const CONFIDENCE: f64 = 0.95;

/// Minimum number of independent slices for a judgement: fewer cannot distinguish a trend from a slow wave.
const MIN_INDEPENDENT: f64 = 4.0;

/// Minimum number of slices on each of two levels.
const MIN_LEVEL: usize = 2;

/// Minimum fraction of the slices on each of two levels, as a divisor.
const LEVELS_PER_WINDOW: usize = 50;

/// Numbers of counted operations in the intervals of a window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalCounts {
    /// Length of an interval in nanoseconds; the last interval of a window may be shorter.
    length: Nanos,
    /// Number of operations by number of the interval. Intervals without a record, of which a long window in virtual
    /// time may have billions, had no operation.
    ops: BTreeMap<u64, u64>,
}

impl IntervalCounts {
    /// Adds the operations of an interval, of the rows that are set in `counted`.
    pub fn add(&mut self, interval: &Interval, counted: &[bool]) {
        let rows = interval.rows.iter().zip(counted).filter(|(_, c)| **c);
        let ops = rows.map(|(row, _)| row.ops).sum();
        self.add_ops(interval.index, interval.length, ops);
    }

    /// Adds `ops` operations to the interval with the number `index`, of `length` nanoseconds.
    pub fn add_ops(&mut self, index: u64, length: Nanos, ops: u64) {
        *self.ops.entry(index).or_default() += ops;
        self.length = self.length.max(length);
    }

    /// The whole intervals in a window of `window` nanoseconds: the last, shorter interval is left out.
    fn whole(&self, window: Nanos) -> WholeIntervals {
        let number = window.checked_div(self.length).unwrap_or(0);
        WholeIntervals {
            number,
            ops: self.ops.range(..number).map(|(i, n)| (*i, *n)).collect(),
        }
    }
}

/// Numbers of operations in the intervals of a window that have their full length.
struct WholeIntervals {
    /// Number of the intervals.
    number: u64,
    /// Number and operations of each interval with a record, in order.
    ops: Vec<(u64, u64)>,
}

impl WholeIntervals {
    fn all_ops(&self) -> u64 {
        self.ops.iter().map(|(_, ops)| ops).sum()
    }

    /// Number of intervals in a slice: as few as give at most [`MAX_SLICES`] slices of at least [`MIN_SLICE_OPS`]
    /// operations on average, but at least [`MIN_INTERVALS`] slices.
    fn slice_size(&self) -> u64 {
        let for_ops = MIN_SLICE_OPS.saturating_mul(self.number);
        let for_ops = for_ops.div_ceil(self.all_ops().max(1));
        let at_least = self.number.div_ceil(MAX_SLICES).max(for_ops);
        at_least.min(self.number / u64::from(MIN_INTERVALS))
    }

    /// Numbers of operations in slices of `size` intervals; the last, shorter slice is left out.
    fn slices(&self, size: u64) -> Vec<f64> {
        let mut slices = vec![0.0; (self.number / size) as usize];
        for (index, ops) in &self.ops {
            if let Some(slice) = slices.get_mut((index / size) as usize) {
                *slice += *ops as f64;
            }
        }
        slices
    }

    /// The first of the intervals whose numbers of operations are farthest from the mean, and the relative distance.
    fn farthest(&self) -> (u64, f64) {
        let mean = self.all_ops() as f64 / self.number as f64;
        let without_record = (0..)
            .zip(&self.ops)
            .find(|(expected, (index, _))| expected != index);
        let empty = without_record.map_or(self.ops.len() as u64, |(index, _)| index);
        let empty = (empty < self.number).then_some((empty, 0));
        let all = self.ops.iter().copied().chain(empty);
        let distances = all.map(|(index, ops)| (index, ops as f64 / mean - 1.0));
        let farthest = distances.max_by(|a, b| {
            let far = a.1.abs().total_cmp(&b.1.abs());
            far.then(b.0.cmp(&a.0))
        });
        farthest.expect("the window has intervals")
    }
}

/// Whether the rate of all counted operations together stayed the same during a measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stationarity {
    /// Judgement of the rate during the window.
    pub judgement: RateJudgement,
    /// Reason why the judgement is `unknown`, as a clause; null for any other judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// Number of whole intervals in the window.
    pub intervals: u64,
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// Number of slices of equal length in which the window was judged, each of one or several intervals; 0 if there
    /// were too few intervals or operations.
    pub slices: u64,
    /// Number of independent slices that have as much information as the slices of the window, whose rates depend on
    /// each other: the effective sample size by the lag-1 autocorrelation of the residuals of the two levels, or else
    /// of the trend. Null without slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub independent_slices: Option<f64>,
    /// Linear trend of the rate, also if the trend may be due to chance; null if the residuals of the trend have fewer
    /// than three independent slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend: Option<RateTrend>,
    /// Change of the level of the rate; null unless the judgement is `levels`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<RateLevels>,
    /// Interval whose rate is farthest from the mean rate of the window; null without slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excursion: Option<RateExcursion>,
}

/// Judgement of the rate during a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateJudgement {
    /// Neither a trend nor a change of level is significant and larger than 5 % of the mean rate.
    Steady,
    /// The rate rises or falls.
    Trend,
    /// The rate has two levels, one after the other.
    Levels,
    /// The window has too few intervals, too few operations, or rates that change too slowly for a judgement.
    Unknown,
}

/// Linear trend of the rate during a window, by least squares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateTrend {
    /// Change of the rate from the beginning to the end of the window, in percent of the window's mean rate.
    pub percent: f64,
    /// Lower bound of the 95 % confidence interval of `percent`.
    pub low: f64,
    /// Upper bound of the 95 % confidence interval of `percent`.
    pub high: f64,
}

/// Two levels of the rate, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateLevels {
    /// Time of the change of level, in seconds since the window opened, to the resolution of a slice.
    pub changed_at_s: f64,
    /// Mean rate before the change, in operations per second.
    pub before_ops_per_s: f64,
    /// Mean rate after the change, in operations per second.
    pub after_ops_per_s: f64,
}

/// Interval whose rate is farthest from the mean rate of the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateExcursion {
    /// Start of the interval, in seconds since the window opened.
    pub at_s: f64,
    /// Distance of the interval's rate from the mean rate of the window, in percent of the mean rate.
    pub percent: f64,
}

impl Stationarity {
    /// Judges the rate of a window of `window` nanoseconds; `None` if no interval of the window has a record.
    #[must_use]
    pub fn of(counts: &IntervalCounts, window: Nanos) -> Option<Self> {
        if counts.ops.is_empty() {
            return None;
        }
        let whole = counts.whole(window);
        let unjudged = Self {
            judgement: RateJudgement::Unknown,
            doubt: None,
            intervals: whole.number,
            interval_s: counts.length as f64 / 1e9,
            slices: 0,
            independent_slices: None,
            trend: None,
            levels: None,
            excursion: None,
        };
        let doubt = |doubt| Self {
            doubt: Some(doubt),
            ..unjudged.clone()
        };
        if whole.number < MIN_INTERVALS.into() {
            let intervals = counted(whole.number, "interval", "intervals");
            return Some(doubt(format!(
                "the window has {intervals}, fewer than {MIN_INTERVALS}"
            )));
        }
        let (ops, needed) = (whole.all_ops(), MIN_SLICE_OPS * u64::from(MIN_INTERVALS));
        if ops < needed {
            let operations = counted(ops, "operation", "operations");
            return Some(doubt(format!(
                "the window has {operations}, fewer than {needed}"
            )));
        }
        Some(unjudged.judged(&whole))
    }

    /// Whether the rate had a trend or two levels.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        matches!(self.judgement, RateJudgement::Trend | RateJudgement::Levels)
    }

    /// The judgement of a window with enough intervals and operations.
    fn judged(self, whole: &WholeIntervals) -> Self {
        let size = whole.slice_size();
        let slices = whole.slices(size);
        if slices.iter().all(|ops| *ops == 0.0) {
            // A rate of 0 has no relative change.
            return Self {
                doubt: Some("operations completed only at the end of the window".into()),
                ..self
            };
        }
        let (farthest, distance) = whole.farthest();
        let (n, mean) = (slices.len() as f64, mean(&slices));
        let seconds = self.interval_s * size as f64;
        let trend = Regression::over_time(&slices);
        let (change, levels) = best_levels(&slices);
        let is_trend = trend.p() < SIGNIFICANCE && is_large(trend.slope * n, mean);
        let levels_p = levels.p() * splits(slices.len()).count() as f64;
        let shorter = change.min(slices.len() - change) as f64;
        let shift = levels.slope * shorter / n;
        let is_levels = levels_p < SIGNIFICANCE
            && is_large(levels.slope, mean)
            && shift.abs() > PRACTICAL_SHIFT * mean;
        // The Bayesian information criterion (Schwarz 1978): levels have one parameter more, the time of the change.
        let levels_cost = n * levels.squares.ln() + n.ln();
        let judgement = if is_trend && (!is_levels || n * trend.squares.ln() < levels_cost) {
            RateJudgement::Trend
        } else if is_levels {
            RateJudgement::Levels
        } else if is_large(range(&slices), mean) && trend.independent < MIN_INDEPENDENT {
            RateJudgement::Unknown
        } else {
            RateJudgement::Steady
        };
        let doubt = (judgement == RateJudgement::Unknown).then(|| {
            format!(
                "the rate changes so slowly that {} slices of the window are worth {:.1} independent slices, \
                 fewer than {MIN_INDEPENDENT}",
                slices.len(),
                trend.independent
            )
        });
        let of_window = |slope: f64| 100.0 * slope * n / mean;
        let of_levels = || {
            let (before, after) = slices.split_at(change);
            RateLevels {
                changed_at_s: change as f64 * seconds,
                before_ops_per_s: self::mean(before) / seconds,
                after_ops_per_s: self::mean(after) / seconds,
            }
        };
        Self {
            judgement,
            doubt,
            slices: slices.len() as u64,
            independent_slices: Some(if judgement == RateJudgement::Levels {
                levels.independent
            } else {
                trend.independent
            }),
            trend: trend.interval(CONFIDENCE).map(|(low, high)| RateTrend {
                percent: of_window(trend.slope),
                low: of_window(low),
                high: of_window(high),
            }),
            levels: (judgement == RateJudgement::Levels).then(of_levels),
            excursion: Some(RateExcursion {
                at_s: farthest as f64 * self.interval_s,
                percent: 100.0 * distance,
            }),
            ..self
        }
    }
}

/// Whether a change of the rate is large enough to matter.
fn is_large(change: f64, mean: f64) -> bool {
    change.abs() > PRACTICAL_CHANGE * mean
}

/// Numbers of slices that the first of two levels can have.
fn splits(slices: usize) -> std::ops::RangeInclusive<usize> {
    let least = MIN_LEVEL.max(slices.div_ceil(LEVELS_PER_WINDOW));
    least..=slices - least
}

/// The two levels with the least sum of squared residuals: number of slices on the first level, and the regression on
/// the level.
///
/// The search among all splits makes large differences likely by chance, so that the p-value must be multiplied by the
/// number of splits (Bonferroni).
fn best_levels(slices: &[f64]) -> (usize, Regression) {
    let (n, all) = (slices.len() as f64, slices.iter().sum::<f64>());
    let (mut best, mut most, mut first) = (0, f64::NEG_INFINITY, 0.0);
    let splits = splits(slices.len());
    for (split, slice) in (1..).zip(slices) {
        first += slice;
        if !splits.contains(&split) {
            continue;
        }
        let k = split as f64;
        let difference = (all - first) / (n - k) - first / k;
        let explained = difference * difference * k * (n - k) / n;
        if explained > most {
            (best, most) = (split, explained);
        }
    }
    let level: Vec<f64> = (0..slices.len())
        .map(|slice| f64::from(slice >= best))
        .collect();
    (best, Regression::of(&level, slices, 3.0))
}

/// Arithmetic mean of a series that is not empty.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Difference between the largest and the smallest value.
pub(crate) fn range(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    largest - smallest
}

impl fmt::Display for Stationarity {
    /// The judgement with its figures, as a phrase: `steady, +0.1 % over the window …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(doubt) = &self.doubt {
            write!(f, "cannot tell, because {doubt}")?;
        } else if let Some(levels) = &self.levels {
            let rates = [levels.before_ops_per_s, levels.after_ops_per_s].map(three_digits);
            let [before, after] = rates;
            let at = levels.changed_at_s;
            write!(f, "two levels: {before}, then {after} ops/s from {at:.1} s")?;
        } else if let Some(trend) = &self.trend {
            f.write_str(match self.judgement {
                RateJudgement::Trend if trend.percent < 0.0 => "falling",
                RateJudgement::Trend => "rising",
                _ => "steady",
            })?;
            write!(
                f,
                ", {} % over the window (95 % confidence: {} to {} %)",
                signed(trend.percent),
                signed(trend.low),
                signed(trend.high)
            )?;
        } else {
            f.write_str("steady")?;
        }
        match &self.excursion {
            Some(far) => write!(
                f,
                "; greatest excursion {} % at {:.1} s",
                signed(far.percent),
                far.at_s
            ),
            None => Ok(()),
        }
    }
}

/// A percentage with its sign, to one decimal place; a percentage of more than two digits to the unit.
fn signed(percent: f64) -> String {
    let digits = usize::from(percent.abs() < 99.95);
    let text = format!("{percent:+.digits$}");
    if text == "-0.0" { "+0.0".into() } else { text }
}

#[cfg(test)]
mod tests;
