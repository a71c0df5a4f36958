//! Sizes, counts and durations in the form that people write and read.

use std::fmt;
use std::time::Duration;

/// A byte count shown with binary prefixes, three significant digits.
#[derive(Debug, Clone, Copy)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let mut value = self.0 as f64;
        let mut name = 0;
        while value >= 999.5 && name + 1 < NAMES.len() {
            value /= 1024.0;
            name += 1;
        }
        let digits = match value {
            v if name == 0 || v >= 99.95 => 0,
            v if v >= 9.995 => 1,
            _ => 2,
        };
        let text = format!("{value:.digits$}");
        let text = match digits {
            0 => &text,
            _ => text.trim_end_matches('0').trim_end_matches('.'),
        };
        write!(f, "{text} {}", NAMES[name])
    }
}

/// A sum of bytes, shown as [`Bytes`] are, and with the word "about" if it is an estimate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByteSum {
    /// Number of bytes.
    pub bytes: u64,
    /// Whether the number is an estimate.
    pub estimated: bool,
}

impl ByteSum {
    /// An exact sum.
    #[must_use]
    pub fn exact(bytes: u64) -> Self {
        Self {
            bytes,
            estimated: false,
        }
    }
}

impl std::ops::AddAssign for ByteSum {
    /// Saturates; a sum with an estimate in it is one.
    fn add_assign(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.estimated = self.estimated || other.estimated;
    }
}

impl fmt::Display for ByteSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = if self.estimated { "about " } else { "" };
        write!(f, "{about}{}", Bytes(self.bytes))
    }
}

/// A count with thin groups of three digits: `1 234 567`.
#[derive(Debug, Clone, Copy)]
pub struct Count(pub u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut out = String::with_capacity(digits.len() * 4 / 3);
        for (i, c) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                out.push(' ');
            }
            out.push(c);
        }
        f.pad(&out)
    }
}

/// Parses a duration: a number and one of `us ms s m min h`; a bare number is seconds.
///
/// # Errors
/// One sentence that states the expected form.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "`{text}` is not a duration: expected a number and ms, s, m or h, such as 500ms or 10s"
        )
    };
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit.trim() {
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "s" | "" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

/// Parses a size: a whole number with an optional `k m g t` (powers of 1024, either case).
///
/// # Errors
/// One sentence that states the expected form.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!("`{text}` is not a size: expected a whole number with k, m, g or t, such as 16k")
    };
    let lower = text.to_ascii_lowercase();
    let mut units = [('k', 10), ('m', 20), ('g', 30), ('t', 40)].into_iter();
    let with_unit = units.find_map(|(unit, shift)| Some((lower.strip_suffix(unit)?, shift)));
    let (digits, shift) = with_unit.unwrap_or((lower.as_str(), 0));
    let n: u64 = digits.parse().map_err(|_| wrong())?;
    n.checked_shl(shift)
        .filter(|v| v >> shift == n)
        .ok_or_else(wrong)
}

/// Writes a number of things: `1 file`, `1 000 files`.
#[must_use]
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", Count(n), if n == 1 { one } else { many })
}

/// Writes a duration, rounded, in readable units: `350ms`, `1.5s`, `2m`, `1h30m`.
#[must_use]
pub fn show_duration(d: Duration) -> String {
    let s = d.as_secs_f64();
    if d.is_zero() {
        "0s".into()
    } else if s < 1e-3 {
        format!("{}us", trimmed(s * 1e6))
    } else if s < 1.0 {
        format!("{}ms", trimmed(s * 1e3))
    } else if s < 60.0 {
        format!("{}s", trimmed(s))
    } else {
        let whole = s.round() as u64;
        let (h, m, s) = (whole / 3600, whole / 60 % 60, whole % 60);
        let parts = [(h, "h"), (m, "m"), (s, "s")];
        parts
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, u)| format!("{n}{u}"))
            .collect()
    }
}

/// Writes a duration without rounding, in the largest unit of which it is at least one: `1.25s`,
/// `10ms`, `250us`. [`parse_duration`] reads it.
#[must_use]
pub fn show_exactly(d: Duration) -> String {
    let (nanos, unit) = match d {
        _ if d >= Duration::from_secs(1) || d.is_zero() => (1_000_000_000, "s"),
        _ if d >= Duration::from_millis(1) => (1_000_000, "ms"),
        _ => (1000, "us"),
    };
    let (whole, rest) = (d.as_nanos() / nanos, d.as_nanos() % nanos);
    let digits = nanos.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    match fraction.trim_end_matches('0') {
        "" => format!("{whole}{unit}"),
        fraction => format!("{whole}.{fraction}{unit}"),
    }
}

fn trimmed(x: f64) -> String {
    format!("{x:.1}").trim_end_matches(".0").to_string()
}

/// Durations in JSON: seconds as a number.
pub(crate) mod seconds {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::time::Duration;

    pub fn serialize<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(d.as_secs_f64())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(d)?).map_err(D::Error::custom)
    }
}

/// Optional durations in JSON: seconds as a number, or null.
pub(crate) mod optional_seconds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
    use std::time::Duration;

    pub fn serialize<S: Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
        d.map(|d| d.as_secs_f64()).serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
        Option::<f64>::deserialize(d)?
            .map(|s| Duration::try_from_secs_f64(s).map_err(D::Error::custom))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_read_well() {
        let shown: Vec<String> = [
            0,
            999,
            1000,
            1024,
            1536,
            131_072,
            1 << 20,
            1300 << 20,
            u64::MAX,
        ]
        .iter()
        .map(|n| Bytes(*n).to_string())
        .collect();
        assert_eq!(
            shown,
            [
                "0 B", "999 B", "0.98 KiB", "1 KiB", "1.5 KiB", "128 KiB", "1 MiB", "1.27 GiB",
                "16 EiB"
            ]
        );
    }

    #[test]
    fn a_sum_with_an_estimate_in_it_is_one() {
        let mut sum = ByteSum::exact(2048);
        assert_eq!(sum.to_string(), "2 KiB");
        sum += ByteSum {
            bytes: 1024,
            estimated: true,
        };
        sum += ByteSum::exact(1024);
        assert_eq!(sum.to_string(), "about 4 KiB");
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(Count(1).to_string(), "1");
        assert_eq!(Count(1234).to_string(), "1 234");
        assert_eq!(Count(1_234_567).to_string(), "1 234 567");
    }

    #[test]
    fn one_thing_is_singular() {
        let shown = [0, 1, 2000].map(|n| counted(n, "entry", "entries"));
        assert_eq!(shown, ["0 entries", "1 entry", "2 000 entries"]);
    }

    #[test]
    fn durations_take_the_units_of_the_command_line() {
        let ms = |t: &str| parse_duration(t).unwrap().as_millis();
        assert_eq!(
            [ms("500ms"), ms("10s"), ms("2m"), ms("1h"), ms("1.5")],
            [500, 10_000, 120_000, 3_600_000, 1500]
        );
        for bad in ["", "s", "1x", "-1s", "1 year"] {
            assert!(
                parse_duration(bad).unwrap_err().contains("expected"),
                "{bad}"
            );
        }
    }

    #[test]
    fn exact_durations_have_all_their_digits() {
        let shown = |nanos| show_exactly(Duration::from_nanos(nanos));
        assert_eq!(
            [0, 500, 250_000, 10_000_000, 1_250_000_000, 90_000_000_000].map(shown),
            ["0s", "0.5us", "250us", "10ms", "1.25s", "90s"]
        );
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        assert_eq!(parse_size("16k"), Ok(16384));
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        assert!(parse_size("99999999999t").is_err());
        assert!(parse_size("k").is_err());
    }

    proptest! {
        #[test]
        fn exact_durations_are_read_as_they_were(nanos in 0u64..1 << 50) {
            let d = Duration::from_nanos(nanos);
            let read = parse_duration(&show_exactly(d)).unwrap();
            // The reader takes a number of 53 bits.
            let off = read.as_nanos().abs_diff(d.as_nanos());
            prop_assert!(off <= 1 + (d.as_nanos() >> 52), "{} as {}", show_exactly(d), off);
        }

        #[test]
        fn whole_durations_survive_a_round_trip(s in 1u64..200_000) {
            let d = Duration::from_secs(s);
            let text = show_duration(d);
            let parts = text.split_inclusive(['h', 'm', 's']);
            let sum: Duration = parts.map(|p| parse_duration(p).unwrap()).sum();
            prop_assert_eq!(sum, d);
        }
    }
}
