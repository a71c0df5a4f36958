//! Axes of charts: positions, labels and format of values.

use crate::{latency, rate};
use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan, Zoned};
use plimsoll_plan::Count;

/// Length of a day in seconds.
const DAY_S: f64 = 86_400.0;

/// Minimum distance of a fraction from 1 that [`Scale::Tail`] distinguishes from 0.
const MIN_TAIL: f64 = 1e-9;

/// Minimum value that a [`Scale::Log`] shows, and reciprocal of the maximum: far beyond any measurement, and small
/// multiples of both are finite.
const MIN_DRAWN: f64 = 1e-300;

/// An axis of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Axis {
    /// Quantity, with its unit.
    pub label: String,
    /// Mapping of values to positions.
    pub scale: Scale,
    /// Format of values.
    pub unit: Unit,
    /// Whether the axis begins at zero whatever the values are; ignored by [`Scale::Log`].
    pub from_zero: bool,
}

/// Mapping of values to positions on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal distances for equal differences.
    #[default]
    Linear,
    /// Equal distances for equal ratios; values must be positive.
    Log,
    /// Fractions from 0 to below 1, with equal distances for equal ratios of the distance from 1: 90 %, 99 % and 99.9 %
    /// are equally spaced.
    Tail,
}

/// Format of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Seconds since the beginning of the chart.
    Seconds,
    /// A rate or another plain number.
    #[default]
    Number,
    /// Milliseconds, shown in the unit that fits.
    Milliseconds,
    /// A fraction from 0 to 1, shown as a percentage.
    Share,
    /// A whole number.
    Count,
    /// A ratio of two figures.
    Ratio,
    /// An instant in seconds since 1970, shown as date and time in the time zone of this machine.
    Date,
}

impl Unit {
    /// Formats a value with its unit.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Seconds => format!("{} s", short(value)),
            Self::Number => rate(value),
            Self::Milliseconds => latency(value),
            Self::Share => format!("{} %", short(value * 100.0)),
            Self::Count => Count(value.max(0.0).round() as u64).to_string(),
            Self::Ratio => format!("{value:.4}"),
            Self::Date => date_text(value, &TimeZone::system(), "%Y-%m-%d %H:%M:%S"),
        }
    }

    /// Formats a value as the label of a tick, with few digits.
    fn tick(self, value: f64) -> String {
        match self {
            Self::Seconds => short(value),
            Self::Number | Self::Count if value.abs() >= 10_000.0 => thousands(value),
            Self::Number | Self::Count | Self::Ratio => short(value),
            Self::Milliseconds if value <= 0.0 => "0".into(),
            Self::Milliseconds => {
                let (value, unit) = match value * 1e6 {
                    ns if ns < 999.5 => (ns, "ns"),
                    ns if ns < 999.5e3 => (ns / 1e3, "µs"),
                    ns if ns < 999.5e6 => (ns / 1e6, "ms"),
                    ns => (ns / 1e9, "s"),
                };
                format!("{} {unit}", short(value))
            }
            Self::Share => self.show(value),
            Self::Date => date_tick(value, &TimeZone::system()),
        }
    }
}

/// Calendar time of an instant in a time zone; `None` beyond the range of the calendar.
fn zoned(seconds: f64, zone: &TimeZone) -> Option<Zoned> {
    let time = Timestamp::from_second(seconds.round() as i64).ok()?;
    Some(time.to_zoned(zone.clone()))
}

fn date_text(seconds: f64, zone: &TimeZone, format: &str) -> String {
    zoned(seconds, zone).map_or_else(String::new, |time| time.strftime(format).to_string())
}

/// Tick label of a date axis: the date at midnight; otherwise month, day and time of day.
fn date_tick(seconds: f64, zone: &TimeZone) -> String {
    let is_day = zoned(seconds, zone).is_some_and(|time| time.time() == Time::midnight());
    let format = if is_day { "%Y-%m-%d" } else { "%m-%d %H:%M" };
    date_text(seconds, zone, format)
}

/// Ticks of a date axis at round local times: parts of an hour, hours, days, or first days of months.
fn date_ticks(start: f64, end: f64, max: usize, zone: &TimeZone) -> Vec<f64> {
    let rough = (end - start) / max as f64;
    let steps: [(f64, Span); 17] = [
        (60.0, 1.minute()),
        (300.0, 5.minutes()),
        (900.0, 15.minutes()),
        (1800.0, 30.minutes()),
        (3600.0, 1.hour()),
        (3.0 * 3600.0, 3.hours()),
        (6.0 * 3600.0, 6.hours()),
        (12.0 * 3600.0, 12.hours()),
        (DAY_S, 1.day()),
        (2.0 * DAY_S, 2.days()),
        (7.0 * DAY_S, 7.days()),
        (14.0 * DAY_S, 14.days()),
        (31.0 * DAY_S, 1.month()),
        (92.0 * DAY_S, 3.months()),
        (184.0 * DAY_S, 6.months()),
        (366.0 * DAY_S, 1.year()),
        (10.0 * 366.0 * DAY_S, 10.years()),
    ];
    let found = steps.iter().find(|(seconds, _)| *seconds >= rough);
    let (seconds, step) = found.unwrap_or(&steps[steps.len() - 1]);
    // Ticks are multiples of the step from the start of the day, or from the start of the year for steps of months.
    let begin = zoned(start, zone).and_then(|time| match *seconds > 14.0 * DAY_S {
        true => time.first_of_year().ok()?.start_of_day().ok(),
        false => time.start_of_day().ok(),
    });
    let Some(begin) = begin else { return vec![] };
    let ticks = begin.datetime().series(*step).map_while(|at| {
        let at = at.to_zoned(zone.clone()).ok()?.timestamp().as_second() as f64;
        (at <= end).then_some(at)
    });
    let mut ticks: Vec<f64> = ticks.skip_while(|at| *at < start).take(3 * max).collect();
    // Two ticks may fall on one instant, because clock changes skip local times.
    ticks.dedup();
    ticks
}

/// A number with at most six decimals and no trailing zeros.
fn short(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "" | "-0" => "0".into(),
        text => text.into(),
    }
}

fn thousands(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{} G", short(v / 1e9)),
        v if v >= 1e6 => format!("{} M", short(v / 1e6)),
        v => format!("{} k", short(v / 1e3)),
    }
}

impl Scale {
    /// Maps a value to its position; positions are proportional to distances in the drawing.
    #[must_use]
    pub fn position(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(f64::MIN_POSITIVE).log10(),
            Self::Tail => -(1.0 - value).max(MIN_TAIL).log10(),
        }
    }
}

impl Axis {
    /// A linear axis that begins at zero.
    #[must_use]
    pub fn linear(label: &str, unit: Unit) -> Self {
        Self {
            label: label.into(),
            scale: Scale::Linear,
            unit,
            from_zero: true,
        }
    }

    /// An axis with a given scale, which does not begin at zero.
    #[must_use]
    pub fn scaled(label: &str, unit: Unit, scale: Scale) -> Self {
        Self {
            scale,
            from_zero: false,
            ..Self::linear(label, unit)
        }
    }

    /// Range of the axis that covers `values`; the end is always greater than the begin, even for equal values.
    #[must_use]
    pub fn bounds(&self, values: &[f64]) -> (f64, f64) {
        let drawn = MIN_DRAWN..1.0 / MIN_DRAWN;
        let usable = |v: &f64| v.is_finite() && (self.scale != Scale::Log || drawn.contains(v));
        let values = || values.iter().copied().filter(usable);
        let extremes = values().reduce(f64::min).zip(values().reduce(f64::max));
        let Some((min, max)) = extremes else {
            return match self.scale {
                Scale::Linear | Scale::Tail => (0.0, 0.9),
                Scale::Log => (0.1, 1.0),
            };
        };
        match self.scale {
            Scale::Linear => {
                let (min, margin) = match self.from_zero {
                    true => (min.min(0.0), 0.05),
                    false => (min, 0.0),
                };
                match max > min {
                    true => (min, max + (max - min) * margin),
                    false => (min, min + min.abs().max(1.0)),
                }
            }
            // Intervals of ratios are often narrow, and far from the next power of ten.
            Scale::Log if self.unit == Unit::Ratio => {
                let margin = (max / min).powf(0.05).max(1.005);
                (min / margin, max * margin)
            }
            Scale::Log if max > min * 1.5 => (min / 1.1, max * 1.1),
            Scale::Log => (min / 2.0, max * 2.0),
            Scale::Tail => (min, max.max(0.9)),
        }
    }

    /// Values with a label, at most about `max`, in increasing order.
    #[must_use]
    pub fn ticks(&self, (start, end): (f64, f64), max: usize) -> Vec<f64> {
        let max = max.max(2);
        let ticks = match self.scale {
            Scale::Linear if self.unit == Unit::Date => {
                date_ticks(start, end, max, &TimeZone::system())
            }
            Scale::Linear => linear_ticks(start, end, max),
            Scale::Log if self.unit == Unit::Ratio && end < 3.0 * start => {
                linear_ticks(start, end, max)
            }
            Scale::Log => log_ticks(start, end, max),
            Scale::Tail => tail_ticks(max),
        };
        let inside = |t: &f64| (start..=end).contains(t);
        ticks.into_iter().filter(inside).collect()
    }

    /// Label of a tick.
    #[must_use]
    pub fn tick(&self, value: f64) -> String {
        self.unit.tick(value)
    }
}

fn linear_ticks(start: f64, end: f64, max: usize) -> Vec<f64> {
    let rough = (end - start) / max as f64;
    let decade = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|s| s * decade);
    let step = steps.into_iter().find(|s| *s >= rough * 0.999);
    let step = step.unwrap_or(10.0 * decade);
    let first = (start / step).ceil();
    (0..=max).map(|i| (first + i as f64) * step).collect()
}

fn log_ticks(start: f64, end: f64, max: usize) -> Vec<f64> {
    let (from, to) = (start.log10().floor() as i32, end.log10().ceil() as i32);
    let decades = (to - from).max(1) as usize;
    let within: &[f64] = match max / decades {
        0 | 1 => &[1.0],
        2 => &[1.0, 3.0],
        _ => &[1.0, 2.0, 5.0],
    };
    // Of many decades, only every n-th has a label.
    let every = decades.div_ceil(max).max(1);
    (from..=to)
        .step_by(every)
        .flat_map(|d| within.iter().map(move |w| w * 10f64.powi(d)))
        .collect()
}

fn tail_ticks(max: usize) -> Vec<f64> {
    let decades = (0..9).map(|d| 1.0 - 10f64.powi(-d));
    let mut ticks: Vec<f64> = decades.collect();
    if max > 6 {
        ticks.insert(1, 0.5);
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round_numbers() {
        let axis = Axis::linear("ops/s", Unit::Number);
        assert_eq!(axis.ticks((0.0, 105.0), 5), [0.0, 50.0, 100.0]);
        let axis = Axis::scaled("latency", Unit::Milliseconds, Scale::Log);
        let labels: Vec<String> = axis
            .ticks((0.0008, 30.0), 6)
            .into_iter()
            .map(|t| axis.tick(t))
            .collect();
        assert_eq!(labels, ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms"]);
        let axis = Axis::scaled("percentile", Unit::Share, Scale::Tail);
        let labels: Vec<String> = axis
            .ticks((0.0, 0.9995), 5)
            .into_iter()
            .map(|t| axis.tick(t))
            .collect();
        assert_eq!(labels, ["0 %", "90 %", "99 %", "99.9 %"]);
    }

    #[test]
    fn values_are_shown_in_their_unit() {
        assert_eq!(Unit::Seconds.show(1.5), "1.5 s");
        assert_eq!(Unit::Share.show(0.999), "99.9 %");
        assert_eq!(Unit::Milliseconds.show(2000.0), "2.00 s");
        assert_eq!(Unit::Count.show(12345.0), "12 345");
        assert_eq!(Unit::Number.tick(250_000.0), "250 k");
        assert_eq!(Unit::Ratio.show(1.0 / 3.0), "0.3333");
    }

    #[test]
    fn ratios_near_1_have_a_narrow_axis_with_round_ticks() {
        let axis = Axis::scaled("B / A", Unit::Ratio, Scale::Log);
        let (start, end) = axis.bounds(&[0.95, 1.0, 1.1]);
        assert!(start > 0.9 && start < 0.95 && end > 1.1 && end < 1.15);
        let labels: Vec<String> = axis
            .ticks((start, end), 4)
            .into_iter()
            .map(|t| axis.tick(t))
            .collect();
        assert_eq!(labels, ["0.95", "1", "1.05", "1.1"]);
    }

    #[test]
    fn dates_have_ticks_at_round_times_of_the_zone() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let labels = |from: &str, to: &str, max| -> Vec<String> {
            let [from, to] = [from, to].map(|t| t.parse::<Timestamp>().unwrap().as_second() as f64);
            let ticks = date_ticks(from, to, max, &zone);
            ticks.into_iter().map(|at| date_tick(at, &zone)).collect()
        };
        // The clocks change on 29 March.
        assert_eq!(
            labels("2026-03-27T20:00:00Z", "2026-03-30T09:00:00Z", 4),
            ["2026-03-28", "2026-03-29", "2026-03-30"]
        );
        assert_eq!(
            labels("2026-03-27T20:10:00Z", "2026-03-27T23:10:00Z", 3),
            ["03-27 22:00", "03-27 23:00", "2026-03-28"]
        );
        assert_eq!(
            labels("2025-11-10T00:00:00Z", "2026-08-01T12:00:00Z", 4),
            ["2026-01-01", "2026-04-01", "2026-07-01"]
        );
        assert_eq!(date_text(1e18, &zone, "%Y"), "");
    }

    proptest! {
        #[test]
        fn any_values_give_an_axis_with_a_length_and_few_ticks_inside(
            values in prop::collection::vec(prop::num::f64::ANY.prop_map(|v| v % 1e12), 0..20),
            scale in prop::sample::select(vec![Scale::Linear, Scale::Log]),
            from_zero: bool,
            most in 2usize..12,
        ) {
            let axis = Axis { label: String::new(), scale, unit: Unit::Number, from_zero };
            let (least, end) = axis.bounds(&values);
            prop_assert!(least < end, "{least} {end}");
            prop_assert!(scale.position(least) < scale.position(end));
            let ticks = axis.ticks((least, end), most);
            prop_assert!(ticks.len() <= 3 * most + 3);
            prop_assert!(ticks.iter().all(|t| (least..=end).contains(t)));
            prop_assert!(ticks.windows(2).all(|w| w[0] < w[1]), "{ticks:?}");
        }
    }
}
