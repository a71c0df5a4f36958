//! Formats of numbers and times.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use plimsoll_plan::{show_duration, three_digits};
use plimsoll_results::ClockKind;
use std::time::Duration;

/// Bytes of a MiB.
pub const MIB: f64 = 1_048_576.0;

/// Formats a latency in milliseconds with three significant digits, in `ns`, `µs`, `ms` or `s`.
#[must_use]
pub fn latency(ms: f64) -> String {
    let ns = ms * 1e6;
    // A value that would be rounded to 1000 gets the next unit.
    let (value, unit) = match ns {
        n if n < 999.5 => return format!("{n:.0} ns"),
        n if n < 999.5e3 => (n / 1e3, "µs"),
        n if n < 999.5e6 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats a time in seconds; a negative or invalid time, as in damaged results, becomes 0.
#[must_use]
pub fn duration_text(seconds: f64) -> String {
    show_duration(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// A time of day (RFC 3339, in UTC) as the local time of this machine with its zone, beside the time in UTC; unchanged if
/// the text is not a time.
#[must_use]
pub fn local_time(utc: &str) -> String {
    match utc.parse() {
        Ok(time) => time_in(time, TimeZone::system()),
        Err(_) => utc.to_owned(),
    }
}

fn time_in(time: Timestamp, zone: TimeZone) -> String {
    let (utc, local) = (time.to_zoned(TimeZone::UTC), time.to_zoned(zone));
    let text = local.strftime("%Y-%m-%d %H:%M:%S %Z").to_string();
    if text.ends_with(" UTC") {
        return text;
    }
    let format = match utc.date() == local.date() {
        true => "%H:%M:%S UTC",
        false => "%Y-%m-%d %H:%M:%S UTC",
    };
    format!("{text} ({})", utc.strftime(format))
}

/// The note that times are of the virtual clock; empty in real time.
#[must_use]
pub fn clock_note(clock: ClockKind) -> &'static str {
    match clock {
        ClockKind::Real => "",
        ClockKind::Virtual => " of virtual time",
    }
}

/// Formats a number with at least three significant digits: `0.5`, `1.25`, `99.9`, `12 345`.
#[must_use]
pub fn rate(per_second: f64) -> String {
    if per_second == 0.0 {
        "0".into()
    } else {
        three_digits(per_second)
    }
}

/// Formats bytes per second as MiB per second.
#[must_use]
pub fn mib_per_s(bytes_per_s: f64) -> String {
    rate(bytes_per_s / MIB)
}

/// Table cell of a figure; `-` if the figure is not known.
pub(crate) fn or_dash(known: Option<String>) -> String {
    known.unwrap_or_else(|| "-".to_owned())
}

/// Formats a fraction as a percentage.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{:.0} %", fraction * 100.0)
}

/// Formats a fraction as a percentage with about two digits.
#[must_use]
pub fn precise_percent(fraction: f64) -> String {
    match 100.0 * fraction {
        p if p >= 9.95 => format!("{p:.0} %"),
        p if p >= 0.095 || p == 0.0 => format!("{p:.1} %"),
        p => format!("{p:.2} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_local_zone_beside_utc() {
        let time: Timestamp = "2026-03-01T23:30:05.25Z".parse().unwrap();
        let at = |hours: i8| time_in(time, TimeZone::fixed(jiff::tz::offset(hours)));
        assert_eq!(at(1), "2026-03-02 00:30:05 +01 (2026-03-01 23:30:05 UTC)");
        assert_eq!(at(-3), "2026-03-01 20:30:05 -03 (23:30:05 UTC)");
        assert_eq!(time_in(time, TimeZone::UTC), "2026-03-01 23:30:05 UTC");
        assert_eq!(local_time("</script>"), "</script>");
    }
    use proptest::prelude::*;

    #[test]
    fn latencies_take_the_unit_that_fits() {
        let shown: Vec<String> = [
            0.0,
            0.000_85,
            0.000_999_6,
            0.001_234,
            0.0999_96,
            0.9996,
            12.34,
            1000.0,
            3_600_000.0,
        ]
        .into_iter()
        .map(latency)
        .collect();
        assert_eq!(
            shown,
            [
                "0 ns", "850 ns", "1.00 µs", "1.23 µs", "100 µs", "1.00 ms", "12.3 ms", "1.00 s",
                "3 600 s"
            ]
        );
    }

    #[test]
    fn rates_keep_three_digits() {
        let shown: Vec<String> = [0.0, 0.5, 9.996, 99.96, 1234.6].map(rate).into();
        assert_eq!(shown, ["0", "0.50", "10.0", "100", "1 235"]);
        assert_eq!(mib_per_s(1_572_864.0), "1.50");
    }

    proptest! {
        #[test]
        fn a_latency_never_shows_a_thousand_of_a_smaller_unit(ms in 0.0f64..900_000.0) {
            let shown = latency(ms);
            let number = shown.rsplit_once(' ').unwrap().0.trim().replace(' ', "");
            prop_assert!(number.parse::<f64>().unwrap() < 1000.0, "{}", shown);
        }
    }
}
