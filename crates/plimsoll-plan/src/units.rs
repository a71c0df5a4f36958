//! Sizes, counts and durations as text.

use std::fmt;
use std::time::Duration;

/// Number of bytes, shown with a binary prefix and three significant digits: `1.5 KiB`.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<N = u64>(pub N);

impl<N: Copy + Into<u128>> fmt::Display for Bytes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 9] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"];
        let mut value = self.0.into() as f64;
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

/// Sum of file sizes, shown as [`Bytes`], with the word "about" before an estimate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByteSum {
    /// Sum of the file sizes in bytes.
    pub bytes: u128,
    /// Whether the sum is an estimate, from a sample of the files.
    pub estimated: bool,
}

impl ByteSum {
    /// Sum of `bytes` bytes, exact because no file size was sampled.
    #[must_use]
    pub fn exact(bytes: u128) -> Self {
        Self {
            bytes,
            estimated: false,
        }
    }
}

impl std::ops::AddAssign for ByteSum {
    /// Adds another sum of bytes; the result is an estimate if either sum is an estimate.
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.estimated = self.estimated || other.estimated;
    }
}

impl fmt::Display for ByteSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = if self.estimated { "about " } else { "" };
        write!(f, "{about}{}", Bytes(self.bytes))
    }
}

/// Whole number, shown with spaces between groups of three digits: `1 234 567`.
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

/// Number that is not negative, with at least three significant digits: `0.50`, `1.25`, `99.9`, `12 345`.
#[must_use]
pub fn three_digits(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => Count(v.round() as u64).to_string(),
    }
}

/// Maximum time in a workload or on the command line: 10⁹ s, about 31 years. A 64-bit clock of nanoseconds counts 18
/// times as far, so sums of a few times do not overflow.
pub const MAX_TIME: Duration = Duration::from_secs(1_000_000_000);

/// Converts seconds to a duration.
///
/// # Errors
/// One sentence, without its subject, if the number of seconds is negative, not a number, or more than [`MAX_TIME`].
pub fn time_of_seconds(seconds: f64) -> Result<Duration, String> {
    if seconds > MAX_TIME.as_secs_f64() {
        let most = MAX_TIME.as_secs();
        return Err(format!("is too long: expected at most {most} seconds"));
    }
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| "is not a time: expected a number of at least 0".into())
}

/// Parses a duration: a number with a unit `us`, `ms`, `s`, `m`, `min` or `h`, or a number of seconds.
///
/// # Errors
/// One sentence that states the expected form, or that the duration exceeds [`MAX_TIME`].
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
    time_of_seconds(seconds).map_err(|e| format!("`{text}` {e}"))
}

/// Parses a percentage above 0 and below 100, such as `2%`.
///
/// # Errors
/// One sentence if the text is no such percentage.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|n| n.parse::<f64>().ok());
    number
        .filter(|percent| *percent > 0.0 && *percent < 100.0)
        .ok_or_else(|| format!("`{text}` is not a percentage above 0 and below 100, such as 2%"))
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

/// Writes a number with the noun `one` for 1, and with the noun `many` for other numbers: `1 file`, `1 000 files`.
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

/// Writes a duration without rounding, in the largest of the units s, ms and us that gives at least 1, or in us below 1
/// us: `1.25s`, `10ms`, `250us`. [`parse_duration`] reads the text.
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

/// Durations in JSON, as a number of seconds.
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

/// Optional durations in JSON: a number of seconds, or null.
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
    fn bytes_are_rounded_to_three_digits() {
        // Rounded to three digits, sizes from 9.995, 99.95 and 999.5 KiB on are shown with fewer decimals or in MiB.
        for (bytes, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "0.98 KiB"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (10_234, "9.99 KiB"),
            (10_235, "10 KiB"),
            (102_348, "99.9 KiB"),
            (102_349, "100 KiB"),
            (1_023_487, "999 KiB"),
            (1_023_488, "0.98 MiB"),
            (20 << 20, "20 MiB"),
            (20 << 30 | 1 << 29, "20.5 GiB"),
            (1 << 40, "1 TiB"),
            (200 << 50, "200 PiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), expected);
        }
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
    fn counts_are_grouped_and_one_is_singular() {
        let shown = [0, 1, 2000, 1_234_567].map(|n| counted(n, "entry", "entries"));
        let expected = ["0 entries", "1 entry", "2 000 entries", "1 234 567 entries"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn durations_take_the_units_of_the_command_line() {
        let nanos = |t: &str| parse_duration(t).map(|d| d.as_nanos());
        for (text, micros) in [
            ("250us", 250),
            ("500ms", 500_000),
            ("10s", 10_000_000),
            ("2m", 120_000_000),
            ("3min", 180_000_000),
            ("2 h", 7_200_000_000),
            ("277777h", 999_997_200_000_000),
            ("1.5", 1_500_000),
            (".5", 500_000),
        ] {
            assert_eq!(nanos(text), Ok(1000 * micros), "{text}");
        }
        // Values beyond 64 bits of nanoseconds, just above the limit, and beyond 64 bits of seconds.
        for long in ["5124096h", "1000000001", "99999999999999999999h"] {
            let expected = format!("`{long}` is too long: expected at most 1000000000 seconds");
            assert_eq!(nanos(long), Err(expected));
        }
        for bad in ["", "s", "1x", "-1s", "1 year", "1.2.3s"] {
            let expected = format!(
                "`{bad}` is not a duration: expected a number and ms, s, m or h, such as 500ms or 10s"
            );
            assert_eq!(nanos(bad), Err(expected));
        }
    }

    #[test]
    fn exact_durations_have_all_their_digits() {
        let shown = |nanos| show_exactly(Duration::from_nanos(nanos));
        assert_eq!(
            [0, 1, 500, 250_000, 999_999, 1_000_000].map(shown),
            ["0s", "0.001us", "0.5us", "250us", "999.999us", "1ms"]
        );
        assert_eq!(
            [999_999_999, 1_000_000_000, 1_250_000_000, 90_000_000_000].map(shown),
            ["999.999999ms", "1s", "1.25s", "90s"]
        );
    }

    #[test]
    fn sums_of_bytes_do_not_wrap() {
        let mut sum = ByteSum::exact(u64::MAX.into());
        sum += ByteSum::exact(1);
        assert_eq!((sum.bytes, sum.to_string()), (1 << 64, "16 EiB".into()));
        let shown = [1 << 70, 3 << 80, 5000 << 80].map(|n: u128| Bytes(n).to_string());
        assert_eq!(shown, ["1 ZiB", "3 YiB", "5000 YiB"]);
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        let sizes = ["0", "16k", "3M", "2G", "5t", "16777215t"];
        let expected = [0, 16_384, 3 << 20, 2 << 30, 5 << 40, 16_777_215 << 40];
        assert_eq!(sizes.map(parse_size), expected.map(Ok));
        for bad in [
            "16777216t",
            "99999999999t",
            "k",
            "",
            "-1",
            "1.5k",
            "1kk",
            "16kb",
        ] {
            let expected = format!(
                "`{bad}` is not a size: expected a whole number with k, m, g or t, such as 16k"
            );
            assert_eq!(parse_size(bad), Err(expected));
        }
    }

    #[test]
    fn durations_are_shown_in_readable_units() {
        let (ms, s, h) = (1_000_000, 1_000_000_000, 3_600_000_000_000);
        for (nanos, expected) in [
            (0, "0s"),
            (1500, "1.5us"),
            (350_000, "350us"),
            (3 * ms / 2, "1.5ms"),
            (999 * ms, "999ms"),
            (s, "1s"),
            (3 * s / 2, "1.5s"),
            (59 * s, "59s"),
            (60 * s, "1m"),
            (60 * s + 700 * ms, "1m1s"),
            (90 * s, "1m30s"),
            (h + s, "1h1s"),
            (3 * h / 2, "1h30m"),
            (25 * h + 61 * s, "25h1m1s"),
        ] {
            assert_eq!(show_duration(Duration::from_nanos(nanos)), expected);
        }
    }

    #[test]
    fn seconds_in_json_are_numbers_of_at_least_0() {
        use crate::{Snapshots, Until};
        let snapshots = Snapshots {
            every: Duration::from_millis(2500),
            cleared: true,
        };
        let json = serde_json::to_value(snapshots).unwrap();
        assert_eq!(json, serde_json::json!({ "every_s": 2.5, "cleared": true }));
        assert_eq!(
            serde_json::from_value::<Snapshots>(json).unwrap(),
            snapshots
        );
        let read = |text: &str| serde_json::from_str::<Until>(text).map_err(|e| e.to_string());
        for at_most in [None, Some(Duration::from_millis(1500))] {
            let until = Until::Done { at_most };
            let text = serde_json::to_string(&until).unwrap();
            assert_eq!(read(&text), Ok(until));
        }
        let null = r#"{"done":{"seconds":null}}"#;
        assert_eq!(read(null), Ok(Until::Done { at_most: None }));
        for bad in [
            r#"{"elapsed":{"seconds":-1}}"#,
            r#"{"done":{"seconds":-1}}"#,
        ] {
            assert!(read(bad).is_err_and(|e| e.contains("negative")), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn exact_durations_are_read_as_they_were(nanos in 0u64..1 << 50) {
            let d = Duration::from_nanos(nanos);
            let read = parse_duration(&show_exactly(d)).unwrap();
            // `parse_duration` reads numbers with 53 bits of precision.
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
