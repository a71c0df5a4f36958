//! Numbers of a workload: constants, and random variables with a draw at every use.

use crate::ids::VariableId;
use crate::seed::Rng;
use rand::RngExt;
use rand_distr::{Distribution as _, Exp, Gamma, LogNormal, Normal, Weibull};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of a workload: a constant, or a draw of a random variable at every use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Constant, the same at every use.
    Const(u64),
    /// Draw of a random variable at every use: the index of the variable.
    Draw(VariableId),
}

impl Value {
    /// The number, if the number is a constant; `None` for a random variable.
    #[must_use]
    pub fn constant(self) -> Option<u64> {
        match self {
            Value::Const(n) => Some(n),
            Value::Draw(_) => None,
        }
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Value::Const(n)
    }
}

/// Random variable of a workload, from which sizes, counts and times are drawn.
///
/// A draw of the distribution is clamped to `[min, max]`, rounded to the nearest multiple of `round`, and never below
/// zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Variable {
    /// Name of the random variable, without the dollar sign.
    pub name: String,
    /// Distribution of the draws before bounds and rounding.
    pub distribution: Distribution,
    /// Minimum to which smaller draws are raised; null for a minimum of 0.
    pub min: Option<f64>,
    /// Maximum to which larger draws are lowered; null without a maximum.
    pub max: Option<f64>,
    /// Rounding: draws are rounded to the nearest multiple of the number; 0 and 1 mean whole numbers.
    pub round: u64,
    /// Seed that the workload gives to the random variable, mixed with the Plan's seed; null for the Plan's seed alone.
    pub seed: Option<u64>,
}

impl Variable {
    /// Random variable without bounds and without a seed of its own, rounded to whole numbers.
    #[must_use]
    pub fn new(name: impl Into<String>, distribution: Distribution) -> Self {
        Self {
            name: name.into(),
            distribution,
            min: None,
            max: None,
            round: 0,
            seed: None,
        }
    }
}

/// Distribution of a random variable. Parameters are in the unit of the drawn value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "type")]
#[allow(missing_docs)] // the parameters carry their textbook names
pub enum Distribution {
    /// Uniform distribution over `[lower, upper]`.
    Uniform { lower: f64, upper: f64 },
    /// Normal distribution with mean `mean` and standard deviation `sigma`, at least 0.
    Normal { mean: f64, sigma: f64 },
    /// Log-normal distribution: `exp` of a normal variate with mean `mu` and standard deviation `sigma`.
    Lognormal { mu: f64, sigma: f64 },
    /// Exponential distribution with mean `mean`, above 0.
    Exponential { mean: f64 },
    /// Gamma distribution shifted by `offset`; an integer `shape` gives an Erlang distribution.
    Gamma { offset: f64, shape: f64, scale: f64 },
    /// Triangular distribution over `[lower, upper]` with the peak at `mode`.
    Triangular { lower: f64, upper: f64, mode: f64 },
    /// Weibull distribution with shape and scale, both above 0.
    Weibull { shape: f64, scale: f64 },
    /// Table distribution: a row is drawn by its percentage, then a value uniformly within the row.
    Table { rows: Vec<Row> },
}

/// Row of a table distribution: a range of values with its percentage of the draws.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Percentage of the draws that fall into the row; the percentages of all rows sum to 100.
    pub percent: f64,
    /// Minimum of the values drawn from the row.
    pub min: f64,
    /// Maximum of the values drawn from the row.
    pub max: f64,
}

impl Distribution {
    /// Mean of the distribution, before clamping and rounding.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Uniform { lower, upper } => (lower + upper) / 2.0,
            Self::Normal { mean, .. } | Self::Exponential { mean } => *mean,
            Self::Lognormal { mu, sigma } => (mu + sigma * sigma / 2.0).exp(),
            Self::Gamma {
                offset,
                shape,
                scale,
            } => offset + shape * scale,
            Self::Triangular { lower, upper, mode } => (lower + upper + mode) / 3.0,
            Self::Weibull { shape, scale } => scale * gamma_function(1.0 + 1.0 / shape),
            Self::Table { rows } => rows
                .iter()
                .map(|r| r.percent / 100.0 * (r.min + r.max) / 2.0)
                .sum(),
        }
    }

    /// Checks that the parameters define a distribution.
    ///
    /// # Errors
    /// One sentence that names the parameter at fault and its range.
    pub fn check(&self) -> Result<(), String> {
        let positive = |name: &str, x: f64| match x.is_finite() && x > 0.0 {
            true => Ok(()),
            false => Err(format!("{name} must be above 0, is {x}")),
        };
        match self {
            Self::Uniform { lower, upper } if lower > upper => {
                Err(format!("lower ({lower}) must not exceed upper ({upper})"))
            }
            Self::Normal { sigma, .. } | Self::Lognormal { sigma, .. }
                if !(sigma.is_finite() && *sigma >= 0.0) =>
            {
                Err(format!("the deviation must be at least 0, is {sigma}"))
            }
            Self::Exponential { mean } => positive("mean", *mean),
            Self::Gamma { shape, scale, .. } => {
                positive("shape", *shape)?;
                match *scale < 0.0 {
                    true => Err("the mean must not be below min".into()),
                    false => Ok(()),
                }
            }
            Self::Triangular { lower, upper, mode } if !(lower <= mode && mode <= upper) => Err(
                format!("needs lower ≤ mode ≤ upper, has {lower}, {mode}, {upper}"),
            ),
            Self::Weibull { shape, scale } => {
                positive("shape", *shape).and_then(|()| positive("scale", *scale))
            }
            Self::Table { rows } => check_table(rows),
            _ => Ok(()),
        }
    }
}

fn check_table(rows: &[Row]) -> Result<(), String> {
    if rows.is_empty() {
        return Err("the table has no rows".into());
    }
    if let Some(r) = rows.iter().find(|r| r.min > r.max || r.percent < 0.0) {
        return Err(format!(
            "row {{{}, {}, {}}} needs min ≤ max",
            r.percent, r.min, r.max
        ));
    }
    let sum: f64 = rows.iter().map(|r| r.percent).sum();
    if (sum - 100.0).abs() > 1e-6 {
        return Err(format!("the percentages sum to {sum}, not to 100"));
    }
    Ok(())
}

/// Γ(x) for x > 1 by Lanczos' approximation (g = 7, 9 terms; error below 1e-13).
fn gamma_function(x: f64) -> f64 {
    const G: f64 = 7.0;
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + G + 0.5;
    let term = |(i, c): (usize, &f64)| c / (x + i as f64);
    let sum: f64 = TERMS[0] + TERMS.iter().enumerate().skip(1).map(term).sum::<f64>();
    (2.0 * std::f64::consts::PI).sqrt() * t.powf(x + 0.5) * (-t).exp() * sum
}

/// Random variable ([`Variable`]) whose parameters were checked, prepared for draws.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampler {
    shape: Shape,
    min: f64,
    max: f64,
    round: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Fixed(f64),
    Uniform(f64, f64),
    Normal(Normal<f64>),
    Lognormal(LogNormal<f64>),
    Exponential(Exp<f64>),
    Gamma(f64, Gamma<f64>),
    Triangular {
        lower: f64,
        upper: f64,
        mode: f64,
    },
    Weibull(Weibull<f64>),
    /// Rows of a table distribution, each with the sum of the percentages up to the row.
    Table(Vec<(f64, Row)>),
}

impl Variable {
    /// Checks the parameters of the variable, and prepares the variable for draws.
    ///
    /// # Errors
    /// Errors of [`Distribution::check`], or a `min` above `max`.
    pub fn sampler(&self) -> Result<Sampler, String> {
        fn text(e: impl std::fmt::Display) -> String {
            e.to_string()
        }
        self.distribution.check()?;
        let shape = match &self.distribution {
            Distribution::Uniform { lower, upper } => Shape::Uniform(*lower, *upper),
            Distribution::Normal { mean, sigma } => {
                Shape::Normal(Normal::new(*mean, *sigma).map_err(text)?)
            }
            Distribution::Lognormal { mu, sigma } => {
                Shape::Lognormal(LogNormal::new(*mu, *sigma).map_err(text)?)
            }
            Distribution::Exponential { mean } => {
                Shape::Exponential(Exp::new(1.0 / mean).map_err(text)?)
            }
            // A gamma distribution with scale 0 is the constant `offset`.
            Distribution::Gamma { offset, scale, .. } if *scale == 0.0 => Shape::Fixed(*offset),
            Distribution::Gamma {
                offset,
                shape,
                scale,
            } => Shape::Gamma(*offset, Gamma::new(*shape, *scale).map_err(text)?),
            Distribution::Triangular { lower, upper, mode } => Shape::Triangular {
                lower: *lower,
                upper: *upper,
                mode: *mode,
            },
            Distribution::Weibull { shape, scale } => {
                Shape::Weibull(Weibull::new(*scale, *shape).map_err(text)?)
            }
            Distribution::Table { rows } => {
                let mut sum = 0.0;
                let with_sum = |row: &Row| {
                    sum += row.percent;
                    (sum, *row)
                };
                Shape::Table(rows.iter().map(with_sum).collect())
            }
        };
        let min = self.min.unwrap_or(0.0).max(0.0);
        let max = self.max.unwrap_or(f64::MAX);
        if min > max {
            return Err(format!("min ({min}) must not exceed max ({max})"));
        }
        Ok(Sampler {
            shape,
            min,
            max,
            round: self.round.max(1) as f64,
        })
    }
}

/// Number of a workload, prepared for drawing.
#[derive(Debug, Clone)]
pub enum Number {
    /// Constant.
    Same(u64),
    /// Random variable.
    Drawn(Sampler),
}

impl Number {
    /// The constant, or a number drawn from the random variable.
    #[must_use]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Same(n) => *n,
            Self::Drawn(sampler) => sampler.draw(rng),
        }
    }
}

impl Sampler {
    /// Draws a number from the distribution, clamps the number to the bounds, then rounds to the nearest multiple of
    /// `round`.
    #[must_use]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let x = match &self.shape {
            Shape::Fixed(x) => *x,
            Shape::Uniform(lower, upper) => lower + rng.random::<f64>() * (upper - lower),
            Shape::Normal(d) => d.sample(rng),
            Shape::Lognormal(d) => d.sample(rng),
            Shape::Exponential(d) => d.sample(rng),
            Shape::Gamma(offset, d) => offset + d.sample(rng),
            Shape::Triangular { lower, upper, mode } => triangular(*lower, *upper, *mode, rng),
            Shape::Weibull(d) => d.sample(rng),
            Shape::Table(rows) => {
                let at = rng.random::<f64>() * 100.0;
                let row = rows.iter().find(|(sum, _)| at < *sum).or(rows.last());
                let (_, r) = row.expect("a checked table has rows");
                r.min + rng.random::<f64>() * (r.max - r.min)
            }
        };
        let clamped = x.clamp(self.min, self.max);
        // As in Filebench, rounding comes last and may pass a bound by at most half of `round`.
        match self.round {
            1.0 => clamped.round() as u64,
            round => ((clamped / round).round() * round) as u64,
        }
    }
}

/// Draws by inverse transform, because `rand_distr` refuses a degenerate triangle, which workloads may have.
fn triangular(lower: f64, upper: f64, mode: f64, rng: &mut Rng) -> f64 {
    let width = upper - lower;
    if width == 0.0 {
        return lower;
    }
    let u: f64 = rng.random();
    let left = (mode - lower) / width;
    if u < left {
        lower + (u * width * (mode - lower)).sqrt()
    } else {
        upper - ((1.0 - u) * width * (upper - mode)).sqrt()
    }
}

#[cfg(test)]
mod tests;
