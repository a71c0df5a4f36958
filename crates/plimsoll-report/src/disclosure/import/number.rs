//! Numbers in reports: digits, optionally with a point and decimals.

/// Maximum number in a report, far above any measurement.
const MAX_NUMBER: f64 = 1e15;

/// Number of a report, with the precision to which the report rounds it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Number {
    pub(super) value: f64,
    /// Number of digits that the report prints after the decimal point.
    pub(super) decimals: u32,
}

impl Number {
    /// Maximum rounding error with `decimals` digits after the point: half a unit of the last digit.
    pub(super) fn rounding(decimals: u32) -> f64 {
        0.5 * 10f64.powi(-(decimals.min(300) as i32))
    }
}

/// Parses a number of a report, without sign and exponent. The error states the expected form of a number, or that the
/// number is above [`MAX_NUMBER`].
pub(super) fn read(text: &str) -> Result<Number, &'static str> {
    const EXPECTED: &str = "expected digits, such as 170 or 1.6";
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    let ends_in_point = text.ends_with('.');
    if whole.is_empty() || ends_in_point || !digits(whole) || !digits(part) {
        return Err(EXPECTED);
    }
    let value: f64 = text.parse().map_err(|_| EXPECTED)?;
    if value > MAX_NUMBER {
        return Err("this is more than any system ever answered");
    }
    Ok(Number {
        value,
        decimals: u32::try_from(part.len()).unwrap_or(u32::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_with_a_point() {
        let number = |value, decimals| Ok(Number { value, decimals });
        assert_eq!(read("170"), number(170.0, 0));
        assert_eq!(read("1.60"), number(1.6, 2));
        assert_eq!(read("0.0"), number(0.0, 1));
        for bad in [
            "", ".", "1.", ".5", "1,592", "-1", "+1", "1e3", "NaN", "inf", "1.2.3", "٣",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert!(read(&"9".repeat(400)).is_err());
        assert!(read(&format!("0.{}", "3".repeat(400))).is_ok());
    }

    #[test]
    fn rounding_is_half_of_the_last_digit() {
        assert!((Number::rounding(1) - 0.05).abs() < 1e-15);
        assert!((Number::rounding(0) - 0.5).abs() < 1e-15);
        assert!(Number::rounding(u32::MAX) >= 0.0);
    }
}
