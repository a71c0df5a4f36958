//! Number formats of MD-Workbench, without NaN and infinity.

use plimsoll_measure::Nanos;

/// Number of bytes in a MiB.
pub(crate) const MIB: f64 = 1_048_576.0;

/// Converts nanoseconds to seconds.
pub(crate) fn seconds(ns: Nanos) -> f64 {
    ns as f64 / 1e9
}

/// `a / b`, or 0 if `b` is not above 0, as for a rate over a stage that took no time.
pub(crate) fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

/// Formats a finite number with four decimal digits and an exponent of at least two digits, as C's `%.4e`.
pub(crate) fn exponential(x: f64) -> String {
    let text = format!("{x:.4e}");
    let (digits, exponent) = text
        .split_once('e')
        .expect("a finite number has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a whole number");
    format!("{digits}e{exponent:+03}")
}

/// Mean and sample standard deviation (n − 1); the deviation of a single number is 0.
pub(crate) fn mean_and_deviation(xs: &[f64]) -> (f64, f64) {
    let n = xs.len() as f64;
    let mean = ratio(xs.iter().sum(), n);
    let squares: f64 = xs.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, ratio(squares, n - 1.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exponents_are_those_of_c() {
        let cases = [
            (1.2016e-2, "1.2016e-02"),
            (0.0, "0.0000e+00"),
            (8.799e-6, "8.7990e-06"),
            (12345.6, "1.2346e+04"),
            (9.99996e-10, "1.0000e-09"),
            (1e100, "1.0000e+100"),
        ];
        for (x, shown) in cases {
            assert_eq!(exponential(x), shown);
        }
    }

    proptest! {
        #[test]
        fn exponential_numbers_read_back(x in 1e-9f64..1e6) {
            let back: f64 = exponential(x).parse().unwrap();
            prop_assert!((back - x).abs() <= x * 5e-5);
        }

        #[test]
        fn deviations_are_those_of_the_textbook(xs in prop::collection::vec(0.0f64..1e4, 1..20)) {
            let (mean, deviation) = mean_and_deviation(&xs);
            let n = xs.len() as f64;
            let square_mean = xs.iter().map(|x| x * x).sum::<f64>() / n;
            let variance = (square_mean - mean * mean).max(0.0);
            if xs.len() == 1 {
                prop_assert_eq!((mean, deviation), (xs[0], 0.0));
            } else {
                let expected = (variance * n / (n - 1.0)).sqrt();
                prop_assert!((deviation - expected).abs() < 1e-3 + expected * 1e-6);
            }
        }
    }
}
