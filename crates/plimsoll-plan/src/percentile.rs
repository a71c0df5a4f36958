//! Percentiles of distributions, with their names.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Millionths of a percent in a percent: the resolution of percentiles.
const MILLIONTHS: u32 = 1_000_000;

/// Maximum number of decimals of a percentile.
const MAX_DECIMALS: usize = 6;

/// A percentile: above 0 and at most 100, in millionths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percentile(u32);

impl Percentile {
    /// The 50th percentile: the median.
    pub const P50: Self = Self(50 * MILLIONTHS);
    /// The 95th percentile.
    pub const P95: Self = Self(95 * MILLIONTHS);
    /// The 99th percentile.
    pub const P99: Self = Self(99 * MILLIONTHS);
    /// The 99.9th percentile.
    pub const P999: Self = Self(99_900_000);

    /// Percentiles that tables of operations show unless the user requests others.
    pub const DEFAULT_TABLE: [Self; 4] = [Self::P50, Self::P95, Self::P99, Self::P999];

    /// Percentiles that every run stores in `run.json`; other percentiles are computed from `histograms.hlog`.
    pub const DEFAULT_STORED: [Self; 7] = [
        Self::P50,
        Self(90 * MILLIONTHS),
        Self::P95,
        Self::P99,
        Self::P999,
        Self(99_990_000),
        Self(99_999_000),
    ];

    /// The percentile as a fraction of the operations, above 0 and at most 1.
    #[must_use]
    pub fn share(self) -> f64 {
        f64::from(self.0) / f64::from(100 * MILLIONTHS)
    }

    /// Minimum number of operations that distinguishes the percentile from the maximum: at least one operation lies
    /// beyond the percentile.
    #[must_use]
    pub fn needs(self) -> u64 {
        let all = 100 * MILLIONTHS;
        match all - self.0 {
            0 => 1,
            beyond => u64::from(all.div_ceil(beyond)),
        }
    }

    /// The percentile as a number, such as `99.99`.
    fn number(self) -> String {
        let (whole, rest) = (self.0 / MILLIONTHS, self.0 % MILLIONTHS);
        match rest {
            0 => whole.to_string(),
            _ => {
                let decimals = format!("{rest:06}");
                format!("{whole}.{}", decimals.trim_end_matches('0'))
            }
        }
    }
}

/// Writes the percentile as in `p99.99`.
impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("p{}", self.number()))
    }
}

/// Error on a text that is not a percentile: a phrase with the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAPercentile(&'static str);

impl FromStr for Percentile {
    type Err = NotAPercentile;

    /// Reads a percentile such as `99.99` or `p99.99`, with at most six decimals.
    fn from_str(text: &str) -> Result<Self, NotAPercentile> {
        let number = text.strip_prefix(['p', 'P']).unwrap_or(text);
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        let wanted = NotAPercentile("expected a number above 0 and at most 100, such as 99.9");
        if whole.is_empty() || !digits(whole) || !digits(decimals) || number.ends_with('.') {
            return Err(wanted);
        }
        let decimals = decimals.trim_end_matches('0');
        if decimals.len() > MAX_DECIMALS {
            return Err(NotAPercentile("a percentile has at most six decimals"));
        }
        let millionths = format!("{decimals:0<MAX_DECIMALS$}");
        let millionths: u32 = millionths.parse().expect("six digits are a number");
        let whole: u32 = whole
            .parse()
            .ok()
            .filter(|w| *w <= 100)
            .ok_or(wanted.clone())?;
        match whole * MILLIONTHS + millionths {
            n if n > 0 && n <= 100 * MILLIONTHS => Ok(Self(n)),
            _ => Err(wanted),
        }
    }
}

impl Serialize for Percentile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / f64::from(MILLIONTHS))
    }
}

impl<'de> Deserialize<'de> for Percentile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let percent = f64::deserialize(deserializer)?;
        let millionths = (percent * f64::from(MILLIONTHS)).round();
        if millionths >= 1.0 && millionths <= f64::from(100 * MILLIONTHS) {
            return Ok(Self(millionths as u32));
        }
        let text =
            format!("{percent} is not a percentile: expected a number above 0 and at most 100");
        Err(serde::de::Error::custom(text))
    }
}

impl JsonSchema for Percentile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Percentile".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A percentile, such as 99.99.",
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 100
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_percentile_needs_one_operation_beyond_it() {
        let needs = |text: &str| text.parse::<Percentile>().unwrap().needs();
        let all = ["50", "90", "99", "99.9", "99.99", "99.999", "100", "33"].map(needs);
        assert_eq!(all, [2, 10, 100, 1000, 10_000, 100_000, 1, 2]);
    }

    proptest! {
        #[test]
        fn percentiles_survive_text_and_json(millionths in 1u32..=100 * MILLIONTHS) {
            let p = Percentile(millionths);
            prop_assert_eq!(p.to_string().parse::<Percentile>().unwrap(), p);
            let json = serde_json::to_string(&p).unwrap();
            prop_assert_eq!(serde_json::from_str::<Percentile>(&json).unwrap(), p);
        }
    }

    #[test]
    fn a_percentile_is_a_fraction_and_can_be_padded() {
        assert_eq!(Percentile::P999.share(), 0.999);
        assert_eq!(
            format!("{:>6}|{:<6}", Percentile::P50, Percentile::P95),
            "   p50|p95   "
        );
    }

    #[test]
    fn percentiles_reach_up_to_a_hundred() {
        let read = |text: &str| serde_json::from_str::<Percentile>(text).map_err(|e| e.to_string());
        assert_eq!(read("100"), Ok(Percentile(100 * MILLIONTHS)));
        assert_eq!(read("0.000001"), Ok(Percentile(1)));
        for bad in ["0", "0.0000004", "100.000001", "-5", "1e300"] {
            assert!(
                read(bad).unwrap_err().contains("is not a percentile"),
                "{bad}"
            );
        }
        assert_eq!("101".parse::<Percentile>().ok(), None);
        assert_eq!(
            "100.0".parse::<Percentile>(),
            Ok(Percentile(100 * MILLIONTHS))
        );
        assert_eq!("P0.5".parse::<Percentile>(), Ok(Percentile(500_000)));
    }
}
