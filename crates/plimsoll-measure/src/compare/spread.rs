//! Mean and spread of repeated measurements.

use super::{CONFIDENCE, MIN_RUNS};
use crate::student::quantile;

/// Mean and spread of one figure over repeated measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Arithmetic mean of the measurements.
    pub mean: f64,
    /// Deviation of the measurements and interval of their mean; `None` for a single measurement, which has no spread.
    pub deviation: Option<Deviation>,
    /// Smallest measurement.
    pub min: f64,
    /// Largest measurement.
    pub max: f64,
}

/// Deviation of repeated measurements from their mean, and the uncertainty of the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deviation {
    /// Standard deviation of the measurements, with the number of measurements minus 1 as divisor.
    pub standard: f64,
    /// Bounds of the 95 % confidence interval of the mean: Student's t.
    pub interval: (f64, f64),
}

impl Spread {
    /// Mean and spread of measurements; `None` without a measurement, and if a measurement is not finite.
    #[must_use]
    pub fn of(measurements: &[f64]) -> Option<Self> {
        if measurements.is_empty() || !measurements.iter().all(|v| v.is_finite()) {
            return None;
        }
        let min = measurements.iter().copied().fold(f64::INFINITY, f64::min);
        let max = measurements
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        let n = measurements.len() as f64;
        // Equal measurements have no spread: their mean must not differ from them by rounding.
        let mean = match min == max {
            true => min,
            false => measurements.iter().map(|v| v / n).sum(),
        };
        Some(Self {
            mean,
            deviation: deviation(measurements, mean),
            min,
            max,
        })
    }
}

fn deviation(measurements: &[f64], mean: f64) -> Option<Deviation> {
    if measurements.len() < MIN_RUNS {
        return None;
    }
    let n = measurements.len() as f64;
    let squares: f64 = measurements.iter().map(|v| (v - mean).powi(2)).sum();
    let standard = (squares / (n - 1.0)).sqrt();
    let freedom = u32::try_from(measurements.len() - 1).ok()?;
    let half = quantile(f64::midpoint(1.0, CONFIDENCE), freedom) * standard / n.sqrt();
    Some(Deviation {
        standard,
        interval: (mean - half, mean + half),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values: the deviations -2, -1, 0, 1 and 2 have the sum of squares 10; Student's t with four degrees of
    /// freedom has the quantile 2.776445.
    #[test]
    fn five_measurements_have_the_interval_of_a_calculation_by_hand() {
        let spread = Spread::of(&[12.0, 8.0, 10.0, 11.0, 9.0]).unwrap();
        assert_eq!((spread.mean, spread.min, spread.max), (10.0, 8.0, 12.0));
        let deviation = spread.deviation.unwrap();
        assert!((deviation.standard - 2.5f64.sqrt()).abs() < 1e-12);
        let half = 2.776_445 * 0.5f64.sqrt();
        assert!((deviation.interval.0 - (10.0 - half)).abs() < 1e-5);
        assert!((deviation.interval.1 - (10.0 + half)).abs() < 1e-5);
    }

    #[test]
    fn equal_measurements_have_no_spread_and_one_measurement_has_no_interval() {
        let spread = Spread::of(&[0.1; 3]).unwrap();
        let deviation = spread.deviation.unwrap();
        assert_eq!((spread.mean, deviation.standard), (0.1, 0.0));
        assert_eq!(deviation.interval, (0.1, 0.1));
        let one = Spread::of(&[7.0]).unwrap();
        assert_eq!((one.mean, one.deviation), (7.0, None));
    }

    #[test]
    fn measurements_without_numbers_have_no_mean() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[1.0, f64::INFINITY]), None);
    }
}
