//! Service time distributions.

use plimsoll_measure::Nanos;
use plimsoll_plan::Rng;
use rand::RngExt as _;
use rand_distr::{Distribution, Exp1, Gamma, LogNormal};

/// Distribution of the time for which a station serves an operation, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ServiceTime {
    Constant(f64),
    Exponential {
        mean: f64,
    },
    /// Exponential with the first mean with this probability, otherwise with the second mean.
    Hyperexponential {
        probability: f64,
        means: [f64; 2],
    },
    LogNormal(LogNormal<f64>),
    Erlang(Gamma<f64>),
    Uniform {
        low: f64,
        high: f64,
    },
    /// Times with their cumulative probabilities, ascending to 1.
    Table(Vec<(f64, f64)>),
}

impl ServiceTime {
    /// Hyperexponential distribution with the given mean (ns) and squared coefficient of variation (at least 1), with
    /// balanced means: both branches contribute equally to the mean.
    ///
    /// The long times have the probability p = (1 − √((c² − 1)/(c² + 1)))/2 and the mean m/(2p), and the short times
    /// have the mean m/(2(1 − p)), where m is the mean and c² the squared coefficient of variation of all times.
    pub(crate) fn hyperexponential(mean: f64, squared_cv: f64) -> Self {
        let probability = (1.0 - ((squared_cv - 1.0) / (squared_cv + 1.0)).sqrt()) / 2.0;
        Self::Hyperexponential {
            probability,
            means: [mean / 2.0 / probability, mean / 2.0 / (1.0 - probability)],
        }
    }

    /// Log-normal distribution with the given mean (ns) and squared coefficient of variation, both positive.
    ///
    /// The log-normal distribution with σ² = ln(1 + c²) and μ = ln m − σ²/2 has the mean m and the variance c²·m².
    pub(crate) fn log_normal(mean: f64, squared_cv: f64) -> Self {
        let variance = squared_cv.ln_1p();
        let draw = LogNormal::new(mean.ln() - variance / 2.0, variance.sqrt())
            .expect("the logarithm of a checked variation is finite and not negative");
        Self::LogNormal(draw)
    }

    /// Erlang distribution with this mean (ns): the sum of `stages` exponential times.
    pub(crate) fn erlang(mean: f64, stages: u32) -> Self {
        let shape = f64::from(stages);
        let draw = Gamma::new(shape, mean / shape)
            .expect("a checked mean and number of stages are above 0");
        Self::Erlang(draw)
    }

    /// Discrete distribution of times (ns) and weights with a positive sum.
    pub(crate) fn table(rows: &[(f64, f64)]) -> Self {
        let total: f64 = rows.iter().map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let rows = rows.iter().map(|&(time, weight)| {
            sum += weight / total;
            (time, sum)
        });
        Self::Table(rows.collect())
    }

    /// Draws a random service time of the distribution, in nanoseconds.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> f64 {
        match self {
            Self::Constant(time) => *time,
            Self::Exponential { mean } => {
                let unit: f64 = Exp1.sample(rng);
                mean * unit
            }
            Self::Uniform { low, high } => low + (high - low) * rng.random::<f64>(),
            Self::Hyperexponential { probability, means } => {
                let unit: f64 = Exp1.sample(rng);
                let is_long = rng.random::<f64>() < *probability;
                unit * means[usize::from(!is_long)]
            }
            Self::LogNormal(draw) => draw.sample(rng),
            Self::Erlang(draw) => draw.sample(rng),
            Self::Table(rows) => {
                let at: f64 = rng.random();
                let row = rows
                    .partition_point(|(_, sum)| *sum <= at)
                    .min(rows.len() - 1);
                rows[row].0
            }
        }
    }
}

/// Service demand of a station visit: a time, plus a time per byte.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Service {
    pub(crate) time: ServiceTime,
    /// Service time of each byte, in nanoseconds; 0 without bandwidth.
    pub(crate) per_byte: f64,
}

impl Service {
    /// Draws the service time of a visit with `bytes`, rounded to whole nanoseconds.
    #[inline]
    pub(crate) fn draw(&self, bytes: u64, rng: &mut Rng) -> Nanos {
        let time = self.time.draw(rng) + self.per_byte * bytes as f64 + 0.5;
        // The conversion goes via a signed integer, to which processors convert in one instruction; the range of 292
        // years suffices.
        (time as i64).max(0) as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::Stream;

    /// Mean and squared coefficient of variation of a million draws.
    fn moments(time: &ServiceTime) -> (f64, f64) {
        let mut rng = Stream::new(7).rng();
        let n = 1_000_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let x = time.draw(&mut rng);
            sum += x;
            squares += x * x;
        }
        let mean = sum / f64::from(n);
        (mean, squares / f64::from(n) / (mean * mean) - 1.0)
    }

    #[test]
    fn distributions_have_their_moments() {
        for (time, squared_cv) in [
            (ServiceTime::Constant(1000.0), 0.0),
            (ServiceTime::Exponential { mean: 1000.0 }, 1.0),
            (ServiceTime::hyperexponential(1000.0, 1.0), 1.0),
            (ServiceTime::hyperexponential(1000.0, 9.0), 9.0),
            (ServiceTime::log_normal(1000.0, 2.0), 2.0),
            (ServiceTime::erlang(1000.0, 4), 0.25),
            (ServiceTime::table(&[(500.0, 3.0), (2500.0, 1.0)]), 0.75),
        ] {
            let (mean, found) = moments(&time);
            // The standard error of the mean of 10⁶ draws is cv/1000; five standard errors, and a margin for cv².
            assert!(
                (mean / 1000.0 - 1.0).abs() < 0.005 * (1.0 + squared_cv),
                "{time:?}: {mean}"
            );
            assert!(
                (found - squared_cv).abs() < 0.05 * (0.01 + squared_cv),
                "{time:?}: {found}"
            );
        }
    }
}
