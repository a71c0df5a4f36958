//! Linear regression of a series whose residuals depend on each other.
//!
//! The standard error is computed with the effective sample size `n (1 − r) / (1 + r)`, where `r` is the lag-1
//! autocorrelation of the residuals, and so are the degrees of freedom of Student's t distribution.
//!
//! B. D. Santer et al.: Statistical significance of trends and trend differences in layer-average atmospheric
//! temperature time series (2000).

use crate::student::{quantile, tail};

/// Maximum autocorrelation: at 1, the series would have no independent value.
const MAX_CORRELATION: f64 = 0.99;

/// Fraction of the sum of squares below which residuals are rounding errors.
const ROUNDING: f64 = 1e-24;

/// Maximum degrees of freedom for which Student's distribution is computed: with more, the distribution is normal for
/// all purposes.
const MAX_FREEDOM: u32 = 1000;

/// Linear regression of a series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Regression {
    /// Change of the series per unit of the regressor.
    pub(crate) slope: f64,
    /// Sum of the squared residuals.
    pub(crate) squares: f64,
    /// Effective sample size.
    pub(crate) independent: f64,
    /// Standard error of the slope; infinite with too few independent values.
    error: f64,
    /// Degrees of freedom of the slope's distribution, rounded down.
    freedom: u32,
}

/// Lag-1 autocorrelation, from 0 to [`MAX_CORRELATION`], of a series with the given residuals of a fit. `squares` is
/// the sum of the squared residuals, above 0, and `parameters` the number of parameters of the fit.
pub(crate) fn autocorrelation(residuals: &[f64], squares: f64, parameters: f64) -> f64 {
    let n = residuals.len() as f64;
    let products: f64 = residuals.windows(2).map(|e| e[0] * e[1]).sum();
    let measured = products / squares;
    // The residuals of a fit alternate more than the errors of the series (Marriott and Pope 1954).
    (measured + (parameters + 4.0 * measured) / n).clamp(0.0, MAX_CORRELATION)
}

/// Effective sample size: number of independent values that have as much information as `n` values with a lag-1
/// autocorrelation of `correlation`.
pub(crate) fn independent(n: usize, correlation: f64) -> f64 {
    n as f64 * (1.0 - correlation) / (1.0 + correlation)
}

/// Degrees of freedom for Student's distribution, rounded down.
pub(crate) fn freedom(left: f64) -> u32 {
    left.clamp(0.0, MAX_FREEDOM.into()) as u32
}

impl Regression {
    /// Regression of `series` on the number of each value: a linear trend.
    pub(crate) fn over_time(series: &[f64]) -> Self {
        let times: Vec<f64> = (0..series.len()).map(|time| time as f64).collect();
        Self::of(&times, series, 2.0)
    }

    /// Regression of `series` on `regressor`, which is not constant. `parameters` is the number of parameters that were
    /// fitted to the series.
    pub(crate) fn of(regressor: &[f64], series: &[f64], parameters: f64) -> Self {
        assert_eq!(regressor.len(), series.len(), "a value for each value");
        let n = series.len() as f64;
        let middle = |values: &[f64]| values.iter().sum::<f64>() / n;
        let (x0, y0) = (middle(regressor), middle(series));
        let pairs = || regressor.iter().zip(series).map(|(x, y)| (x - x0, y - y0));
        let spread: f64 = pairs().map(|(x, _)| x * x).sum();
        let slope = pairs().map(|(x, y)| x * y).sum::<f64>() / spread;
        let residuals: Vec<f64> = pairs().map(|(x, y)| y - slope * x).collect();
        let all: f64 = series.iter().map(|y| y * y).sum();
        let squares: f64 = residuals.iter().map(|e| e * e).sum();
        let squares = if squares > ROUNDING * all {
            squares
        } else {
            0.0
        };
        let correlation = if squares > 0.0 {
            autocorrelation(&residuals, squares, parameters)
        } else {
            0.0
        };
        let independent = independent(residuals.len(), correlation);
        let left = independent - parameters;
        Self {
            slope,
            squares,
            independent,
            error: if left > 0.0 {
                (squares / left / spread).sqrt()
            } else {
                f64::INFINITY
            },
            freedom: freedom(left),
        }
    }

    /// Probability that chance makes the slope at least as steep if the series has no slope; 1 without a degree of
    /// freedom.
    pub(crate) fn p(&self) -> f64 {
        if self.slope == 0.0 || self.freedom == 0 {
            return 1.0;
        }
        tail((self.slope / self.error).abs(), self.freedom)
    }

    /// Confidence interval of the slope; `None` without a degree of freedom.
    pub(crate) fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        if self.freedom == 0 {
            return None;
        }
        let half = self.error * quantile(f64::midpoint(1.0, confidence), self.freedom);
        Some((self.slope - half, self.slope + half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_without_a_degree_of_freedom_may_be_chance() {
        let r = Regression::of(&[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0], 3.0);
        assert_eq!((r.slope, r.p(), r.interval(0.95)), (0.5, 1.0, None));
    }

    /// Hand-computed: slope 0.6, residuals -0.2, 0.2, 0.6, -1, 0.4, with the squares 1.6 and the sum of products -0.92.
    #[test]
    fn the_slope_of_independent_values_has_the_textbook_error() {
        let x = [1.0, 2.0, 3.0, 4.0, 5.0];
        let r = Regression::of(&x, &[1.0, 2.0, 3.0, 2.0, 4.0], 2.0);
        assert!((r.slope - 0.6).abs() < 1e-12 && (r.squares - 1.6).abs() < 1e-12);
        assert_eq!(r.independent, 5.0);
        let (low, high) = r.interval(0.95).unwrap();
        let half = 3.182_446 * (1.6f64 / 3.0 / 10.0).sqrt();
        assert!((low - 0.6 + half).abs() < 1e-5 && (high - 0.6 - half).abs() < 1e-5);
        assert!((r.p() - tail(0.6 / (1.6f64 / 30.0).sqrt(), 3)).abs() < 1e-12);
    }

    #[test]
    fn values_that_depend_on_each_other_count_as_fewer() {
        let times: Vec<f64> = (0..400).map(f64::from).collect();
        let pairs: Vec<f64> = (0..400).map(|n| f64::from(n / 2 % 2)).collect();
        let paired = Regression::of(&times, &pairs, 2.0);
        // Of two neighbours, as many are equal as different.
        assert!((paired.independent - 400.0).abs() < 10.0, "{paired:?}");
        let blocks: Vec<f64> = (0..400).map(|n| f64::from(n / 20 % 2)).collect();
        let blocks = Regression::of(&times, &blocks, 2.0);
        // Of 20 neighbours, 19 are equal: the correlation is 0.9, and 400 × 0.1 / 1.9 values are independent.
        assert!((blocks.independent - 21.0).abs() < 4.0, "{blocks:?}");
    }

    #[test]
    fn a_series_on_a_line_has_no_error() {
        let times: Vec<f64> = (0..50).map(f64::from).collect();
        let line: Vec<f64> = times.iter().map(|t| 1000.1 - 0.3 * t).collect();
        let r = Regression::of(&times, &line, 2.0);
        assert_eq!((r.squares, r.independent, r.p()), (0.0, 50.0, 0.0));
        let (low, high) = r.interval(0.95).unwrap();
        assert!((low + 0.3).abs() < 1e-9 && (high + 0.3).abs() < 1e-9);
        let constant = Regression::of(&times, &[7.0; 50], 2.0);
        assert_eq!((constant.slope, constant.p()), (0.0, 1.0));
    }
}
