//! Rules that find the end of a warm-up, on the rates of operations since the start of the load.

use crate::Nanos;
use plimsoll_plan::SteadyRule;
use std::time::Duration;

/// Minimum number of rates for the marginal standard error rule.
const MIN_RATES: usize = 20;

/// Minimum mean number of operations in each rate of the marginal standard error rule.
const MIN_OPS: u64 = 10;

/// Maximum part of the rates that the mean leaves out in a steady load, as a divisor. A rate that still changes leaves out
/// as many rates as the rule permits, which is half of all rates.
const MAX_TRANSIENT: usize = 4;

/// Number of rounds of SNIA's rule.
const ROUNDS: usize = 5;

/// Maximum difference between rounds, as a fraction of their mean.
const MAX_RANGE: f64 = 0.2;

/// Maximum rise or fall of the line of best fit over the rounds, as a fraction of their mean.
const MAX_RISE: f64 = 0.1;

/// Counts of operations during a warm-up, read at intervals of [`WarmUp::interval`].
#[derive(Debug, Clone)]
pub struct WarmUp {
    rule: SteadyRule,
    /// Times in nanoseconds since the start of the warm-up, with the operations completed by then.
    counts: Vec<(Nanos, u64)>,
}

impl WarmUp {
    /// A warm-up that has just begun, after `ops` operations.
    #[must_use]
    pub fn new(rule: SteadyRule, ops: u64) -> Self {
        Self {
            rule,
            counts: vec![(0, ops)],
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

    /// Adds a count: the operations completed by the time `at`, in nanoseconds since the start of the warm-up.
    pub fn add(&mut self, at: Nanos, ops: u64) {
        debug_assert!(
            self.counts.last().is_some_and(|(last, _)| *last < at),
            "counts are in order"
        );
        self.counts.push((at, ops));
    }

    /// Whether the rule finds the rate steady.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        match self.rule {
            SteadyRule::Mser => is_steady_by_mser(&self.rates(self.group())),
            SteadyRule::Snia { .. } => is_steady_by_snia(&self.rates(1)),
            SteadyRule::Slope { percent, over } => self.latest(over).is_some_and(|rates| {
                let (mean, slope) = line(&rates);
                slope.abs() < percent / 100.0 * mean
            }),
            SteadyRule::Deviation { percent, over } => self.latest(over).is_some_and(|rates| {
                let (mean, _) = line(&rates);
                let limit = percent / 100.0 * mean;
                mean > 0.0 && rates.iter().all(|rate| (rate - mean).abs() <= limit)
            }),
        }
    }

    /// Rates between each `group`-th count, in operations per second, without a shorter rest at the begin.
    fn rates(&self, group: usize) -> Vec<f64> {
        let counts: Vec<_> = self.counts.iter().rev().step_by(group).collect();
        let rate = |pair: &[&(Nanos, u64)]| {
            let (later, earlier) = (pair[0], pair[1]);
            (later.1 - earlier.1) as f64 * 1e9 / (later.0 - earlier.0) as f64
        };
        let mut rates: Vec<f64> = counts.windows(2).map(rate).collect();
        rates.reverse();
        rates
    }

    /// Number of counts for each rate, so that a rate has enough operations.
    fn group(&self) -> usize {
        let (first, last) = (self.counts[0], self.counts[self.counts.len() - 1]);
        let rates = (self.counts.len() - 1) as u64;
        let ops = (last.1 - first.1).max(1);
        (MIN_OPS * rates).div_ceil(ops).max(1) as usize
    }

    /// Rates of the latest part of the warm-up; `None` before the warm-up is that long.
    fn latest(&self, over: Duration) -> Option<Vec<f64>> {
        let number = over.as_nanos().div_ceil(self.interval().as_nanos()) as usize;
        let rates = self.rates(1);
        let first = rates.len().checked_sub(number)?;
        Some(rates[first..].to_vec())
    }
}

/// Mean of a series, and slope of the line of best fit per step.
fn line(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let middle = (n - 1.0) / 2.0;
    let steps = (0..).map(|step| f64::from(step) - middle);
    let (products, squares) = steps
        .zip(values)
        .fold((0.0, 0.0), |(p, s), (x, y)| (p + x * (y - mean), s + x * x));
    (mean, products / squares)
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
    sum > 0.0 && best.1 <= rates.len() / MAX_TRANSIENT
}

fn is_steady_by_snia(rounds: &[f64]) -> bool {
    let Some(first) = rounds.len().checked_sub(ROUNDS) else {
        return false;
    };
    let rounds = &rounds[first..];
    let (mean, slope) = line(rounds);
    let largest = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let rise = slope.abs() * (ROUNDS - 1) as f64;
    mean > 0.0 && largest - smallest <= MAX_RANGE * mean && rise <= MAX_RISE * mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::Noise;

    const SECOND: Nanos = 1_000_000_000;

    /// Time in seconds after which a rule ends the warm-up of a load with a rate, in operations per second, at each time
    /// in seconds; `None` if the rule does not end the warm-up within `most` seconds.
    fn end(rule: &str, most: u64, mut rate: impl FnMut(f64) -> f64) -> Option<f64> {
        let mut warm_up = WarmUp::new(rule.parse().unwrap(), 0);
        let step = warm_up.interval().as_nanos() as Nanos;
        let (mut at, mut ops) = (0, 0.0);
        while at < most * SECOND {
            ops += rate(at as f64 / 1e9) * step as f64 / 1e9;
            at += step;
            warm_up.add(at, ops as u64);
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
                let falling = 8000.0 - 200.0 * s.min(20.0);
                falling * (1.0 + 0.005 * noise.normal())
            });
            let ended = noisy.unwrap_or_else(|| panic!("{rule} ends no warm-up"));
            assert!((20.0..80.0).contains(&ended), "{rule}: {ended}");
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
    fn rare_operations_are_counted_over_longer_times() {
        let mut noise = Noise::new(1);
        let ended = end("mser", 1000, |_| 2.0 * (1.0 + 0.1 * noise.normal()));
        // Twenty rates of ten operations each, at two operations per second.
        assert!(ended.is_some_and(|s| s >= 100.0), "{ended:?}");
    }
}
