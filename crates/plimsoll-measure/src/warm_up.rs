//! Rules that find the end of a warm-up, on the rates of operations since the start of the load. A schedule fixes the rate of
//! a load, so that the rules judge the mean response times of a load with a schedule instead.

use crate::Nanos;
use crate::regression::Regression;
use crate::stationarity::{mean, range};
use plimsoll_plan::SteadyRule;
use std::time::Duration;

/// Minimum number of rates for the marginal standard error rule.
const MIN_RATES: usize = 20;

/// Minimum mean number of operations in each rate of the marginal standard error rule.
const MIN_OPS: u64 = 10;

/// Maximum part of the rates that the mean leaves out in a steady load, as a divisor. A rate that still changes leaves out
/// as many rates as the rule permits, which is half of all rates.
const MAX_TRANSIENT: usize = 4;

/// Rise or fall of the line of best fit over the kept rates, as a fraction of their mean, up to which a trend does not
/// matter.
const MAX_TREND: f64 = 0.05;

/// Slope in standard errors, above which a trend is no chance.
const SIGNIFICANT_SLOPE: f64 = 2.0;

/// Number of rounds of SNIA's rule.
const ROUNDS: usize = 5;

/// Maximum difference between rounds, as a fraction of their mean.
const MAX_RANGE: f64 = 0.2;

/// Maximum rise or fall of the line of best fit over the rounds, as a fraction of their mean.
const MAX_RISE: f64 = 0.1;

/// Progress of a load by an instant of a warm-up.
#[derive(Debug, Clone, Copy, Default)]
pub struct WarmUpCount {
    /// Instant of the count, in nanoseconds since the start of the warm-up.
    pub at: Nanos,
    /// Number of completed operations.
    pub ops: u64,
    /// Sum of the response times of the completed operations in nanoseconds, which may wrap at 2^64.
    pub response_ns: u64,
}

/// Figure that a rule judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUpFigure {
    /// Rate of operations.
    Rate,
    /// Mean response time, of a load with a schedule.
    ResponseTime,
}

/// Counts of operations during a warm-up, read at intervals of [`WarmUp::interval`].
#[derive(Debug, Clone)]
pub struct WarmUp {
    rule: SteadyRule,
    figure: WarmUpFigure,
    counts: Vec<WarmUpCount>,
}

impl WarmUp {
    /// A warm-up without a count. The first count is of the start of the warm-up.
    #[must_use]
    pub fn new(rule: SteadyRule, figure: WarmUpFigure) -> Self {
        Self {
            rule,
            figure,
            counts: vec![],
        }
    }

    /// Time between two counts.
    #[must_use]
    pub fn interval(&self) -> Duration {
        match self.rule {
            SteadyRule::Mser => Duration::from_millis(250),
            SteadyRule::Snia { round } => round,
            SteadyRule::Slope { .. } | SteadyRule::Deviation { .. } => Duration::from_secs(1),
        }
    }

    /// Adds a later count.
    pub fn add(&mut self, count: WarmUpCount) {
        debug_assert!(
            self.counts.last().is_none_or(|last| last.at < count.at),
            "counts are in order"
        );
        self.counts.push(count);
    }

    /// Whether the rule finds the figure steady.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        if self.counts.len() < 2 {
            return false;
        }
        match self.rule {
            SteadyRule::Mser => is_steady_by_mser(&self.values(self.group())),
            SteadyRule::Snia { .. } => is_steady_by_snia(&self.values(1)),
            SteadyRule::Slope { percent, over } => self.latest(over).is_some_and(|rates| {
                Regression::over_time(&rates).slope.abs() < percent / 100.0 * mean(&rates)
            }),
            SteadyRule::Deviation { percent, over } => self.latest(over).is_some_and(|rates| {
                let mean = mean(&rates);
                let limit = percent / 100.0 * mean;
                mean > 0.0 && rates.iter().all(|rate| (rate - mean).abs() <= limit)
            }),
        }
    }

    /// Values of the figure between each `group`-th count, without a shorter rest at the begin: operations per second, or
    /// nanoseconds.
    fn values(&self, group: usize) -> Vec<f64> {
        let counts: Vec<_> = self.counts.iter().rev().step_by(group).collect();
        let value = |pair: &[&WarmUpCount]| {
            let (later, earlier) = (pair[0], pair[1]);
            let ops = (later.ops - earlier.ops) as f64;
            match self.figure {
                WarmUpFigure::Rate => ops * 1e9 / (later.at - earlier.at) as f64,
                WarmUpFigure::ResponseTime => {
                    later.response_ns.wrapping_sub(earlier.response_ns) as f64 / ops.max(1.0)
                }
            }
        };
        let mut values: Vec<f64> = counts.windows(2).map(value).collect();
        values.reverse();
        values
    }

    /// Number of counts for each value, so that a value has enough operations.
    fn group(&self) -> usize {
        let (first, last) = (self.counts[0], self.counts[self.counts.len() - 1]);
        let values = (self.counts.len() - 1) as u64;
        let ops = (last.ops - first.ops).max(1);
        (MIN_OPS * values).div_ceil(ops).max(1) as usize
    }

    /// Values of the latest part of the warm-up; `None` before the warm-up is that long.
    fn latest(&self, over: Duration) -> Option<Vec<f64>> {
        let number = over.as_nanos().div_ceil(self.interval().as_nanos()) as usize;
        let values = self.values(1);
        let first = values.len().checked_sub(number)?;
        Some(values[first..].to_vec())
    }
}

/// Whether the mean of the rates has its smallest standard error without at most a quarter of the rates.
fn is_steady_by_mser(rates: &[f64]) -> bool {
    if rates.len() < MIN_RATES {
        return false;
    }
    let most = rates.len() / 2;
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, most);
    for (first, rate) in rates.iter().enumerate().rev() {
        sum += rate;
        squares += rate * rate;
        let n = (rates.len() - first) as f64;
        // Rounding errors of equal rates are no deviations.
        let deviations = squares - sum * sum / n;
        let deviations = if deviations > squares * 1e-12 {
            deviations
        } else {
            0.0
        };
        let error = deviations / (n * n);
        if first <= most && error <= best.0 {
            best = (error, first);
        }
    }
    let (_, first) = best;
    sum > 0.0 && first <= rates.len() / MAX_TRANSIENT && !has_trend(&rates[first..])
}

/// Whether the rates rise or fall by more than a part of the mean, and by more than chance explains if the rates are
/// independent. Rates that depend on each other have a trend by chance more often, which prolongs the warm-up. The rule
/// of the standard error alone accepts a short series that begins low and then becomes high.
fn has_trend(rates: &[f64]) -> bool {
    let trend = Regression::over_time(rates);
    let n = rates.len() as f64;
    // The sum of the squared distances of n steps from their middle is n (n² − 1) / 12.
    let error = (trend.squares / (n - 2.0) / (n * (n * n - 1.0) / 12.0)).sqrt();
    let rise = trend.slope.abs() * (n - 1.0);
    rise > MAX_TREND * mean(rates) && trend.slope.abs() > SIGNIFICANT_SLOPE * error
}

fn is_steady_by_snia(rounds: &[f64]) -> bool {
    let Some(first) = rounds.len().checked_sub(ROUNDS) else {
        return false;
    };
    let rounds = &rounds[first..];
    let (mean, slope) = (mean(rounds), Regression::over_time(rounds).slope);
    let rise = slope.abs() * (ROUNDS - 1) as f64;
    mean > 0.0 && range(rounds) <= MAX_RANGE * mean && rise <= MAX_RISE * mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::Noise;

    const SECOND: Nanos = 1_000_000_000;

    /// Time in seconds after which a rule ends the warm-up of a load with a rate, in operations per second, at each time
    /// in seconds; `None` if the rule does not end the warm-up within `most` seconds.
    fn end(rule: &str, most: u64, mut rate: impl FnMut(f64) -> f64) -> Option<f64> {
        let mut warm_up = WarmUp::new(rule.parse().unwrap(), WarmUpFigure::Rate);
        warm_up.add(WarmUpCount::default());
        let step = warm_up.interval().as_nanos() as Nanos;
        let (mut at, mut ops) = (0, 0.0);
        while at < most * SECOND {
            ops += rate(at as f64 / 1e9) * step as f64 / 1e9;
            at += step;
            warm_up.add(WarmUpCount {
                at,
                ops: ops as u64,
                response_ns: 0,
            });
            if warm_up.is_steady() {
                return Some(at as f64 / 1e9);
            }
        }
        None
    }

    const RULES: [&str; 4] = ["mser", "snia=1s", "slope=0.3%/10s", "deviation=3%/10s"];

    #[test]
    fn a_constant_rate_is_steady_as_soon_as_a_rule_can_tell() {
        let ends = RULES.map(|rule| end(rule, 100, |_| 4000.0));
        assert_eq!(ends, [Some(5.0), Some(5.0), Some(10.0), Some(10.0)]);
    }

    #[test]
    fn a_rate_of_nothing_and_a_rate_that_keeps_falling_are_never_steady() {
        for rule in RULES {
            assert_eq!(end(rule, 100, |_| 0.0), None, "{rule}");
            let falling = end(rule, 100, |s| 1e6 - 9.9e3 * s);
            assert!(
                falling.is_none() || rule == "snia=1s",
                "{rule}: {falling:?}"
            );
        }
        // Over five rounds of a second, this rate falls by little; over five rounds of 10 s, by half.
        assert_eq!(end("snia=10s", 100, |s| 1e6 - 9.9e3 * s), None);
    }

    #[test]
    fn a_rate_that_falls_for_20_s_is_steady_afterwards() {
        for rule in RULES {
            let mut noise = Noise::new(7);
            let noisy = end(rule, 200, |s| {
                let falling = 20_000.0 - 800.0 * s.min(20.0);
                falling * (1.0 + 0.005 * noise.normal())
            });
            let ended = noisy.unwrap_or_else(|| panic!("{rule} ends no warm-up"));
            assert!((20.0..100.0).contains(&ended), "{rule}: {ended}");
        }
    }

    /// A transient that decays exponentially: the rule of the standard error ends the warm-up when the rest of the
    /// transient no longer shows in the noise.
    #[test]
    fn the_window_after_a_transient_has_the_steady_rate() {
        let mut ends = 0;
        for series in 0..1000 {
            let mut noise = Noise::new(series);
            let mut decays = |s: f64| 1e5 * (1.0 + (-s / 5.0).exp() + 0.05 * noise.normal());
            let ended = end("mser", 120, &mut decays).expect("the warm-up ends");
            // The rest of the transient is less than 5 %.
            ends += u32::from((-ended / 5.0).exp() < 0.05);
        }
        assert!(ends >= 950, "{ends} of 1000 warm-ups end in time");
    }

    #[test]
    fn response_times_that_settle_end_the_warm_up_of_a_steady_rate() {
        for rule in RULES {
            let first = WarmUpCount {
                at: 0,
                ops: 0,
                response_ns: u64::MAX - 50 * SECOND,
            };
            let mut warm_up = WarmUp::new(rule.parse().unwrap(), WarmUpFigure::ResponseTime);
            warm_up.add(first);
            let step = warm_up.interval().as_nanos() as Nanos;
            let mut count = first;
            while !warm_up.is_steady() {
                assert!(count.at < 100 * SECOND, "{rule}");
                count.at += step;
                count.ops += 100;
                // 20 ms, which fall to 10 ms within 20 s.
                let falling = 10_000_000
                    + 10_000_000 * (20 * SECOND).saturating_sub(count.at) / (20 * SECOND);
                count.response_ns = count.response_ns.wrapping_add(100 * falling);
                warm_up.add(count);
            }
            assert!(count.at >= 20 * SECOND, "{rule}: {}", count.at);
        }
    }

    #[test]
    fn rare_operations_are_counted_over_longer_times() {
        let mut noise = Noise::new(1);
        let ended = end("mser", 1000, |_| 2.0 * (1.0 + 0.1 * noise.normal()));
        // Twenty rates of ten operations each, at two operations per second.
        assert!(ended.is_some_and(|s| s >= 100.0), "{ended:?}");
    }
}
