//! Values of varied parameters on the command line: lists, ranges, steps and factors, with units.

use crate::series::loads::{MAX_LOAD, MAX_POINTS, RangePlaces, wrong};
use plimsoll_diagnostics::{Diagnostics, Problem, Source};
use plimsoll_plan::{parse_duration, parse_size, show_exactly};
use std::ops::Range;
use std::time::Duration;

/// Maximum of a number without a unit: longer texts of digits are names.
const MAX_NUMBER: f64 = 1e18;

/// Quantity of numeric values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariedUnit {
    /// Numbers without a unit.
    Number,
    /// Sizes in bytes.
    Bytes,
    /// Times in milliseconds.
    Milliseconds,
}

/// Values of a parameter as numbers with one unit.
#[derive(Debug, Clone, PartialEq)]
pub struct VariedNumbers {
    /// Unit of the numbers.
    pub unit: VariedUnit,
    /// Numbers in the order of the values.
    pub numbers: Vec<f64>,
}

impl VariedNumbers {
    /// The numbers of `values`; `None` if a value is not a number, or if the units differ. A number without a unit agrees
    /// with sizes.
    #[must_use]
    pub fn of(values: &[String]) -> Option<Self> {
        let read: Vec<(VariedUnit, f64)> =
            values.iter().map(|v| number(v)).collect::<Option<_>>()?;
        let units = read.iter().map(|(unit, _)| *unit);
        let has = |wanted| units.clone().any(|unit| unit == wanted);
        let unit = match (has(VariedUnit::Bytes), has(VariedUnit::Milliseconds)) {
            (true, true) => return None,
            (true, false) => VariedUnit::Bytes,
            (false, true) if has(VariedUnit::Number) => return None,
            (false, true) => VariedUnit::Milliseconds,
            (false, false) => VariedUnit::Number,
        };
        Some(Self {
            unit,
            numbers: read.into_iter().map(|(_, number)| number).collect(),
        })
    }
}

/// The number of a value with its unit; `None` if the value is not a number.
fn number(text: &str) -> Option<(VariedUnit, f64)> {
    // `inf` and `nan` are names, although they parse as numbers.
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if let Ok(number) = text.parse::<f64>() {
        return (number <= MAX_NUMBER).then_some((VariedUnit::Number, number));
    }
    if let Ok(size) = parse_size(text) {
        return Some((VariedUnit::Bytes, size as f64));
    }
    let time = parse_duration(text).ok()?;
    Some((VariedUnit::Milliseconds, time.as_secs_f64() * 1e3))
}

/// End or step of a range: a whole number, a number of bytes, or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Whole {
    unit: VariedUnit,
    /// The number; bytes of a size, nanoseconds of a time.
    number: u64,
}

impl Whole {
    fn of(text: &str) -> Option<Self> {
        let of = |unit, number| Self { unit, number };
        if text.bytes().all(|b| b.is_ascii_digit()) {
            return Some(of(VariedUnit::Number, text.parse().ok()?));
        }
        if let Ok(size) = parse_size(text) {
            return Some(of(VariedUnit::Bytes, size));
        }
        let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
        let time = parse_duration(text).ok().filter(|_| has_unit)?;
        let nanos = u64::try_from(time.as_nanos()).ok()?;
        Some(of(VariedUnit::Milliseconds, nanos))
    }

    fn text(self) -> String {
        match self.unit {
            VariedUnit::Number => self.number.to_string(),
            VariedUnit::Bytes => {
                let units = [(40, 't'), (30, 'g'), (20, 'm'), (10, 'k')];
                let fits = |(shift, _): &&(u32, char)| {
                    self.number > 0 && self.number.is_multiple_of(1 << shift)
                };
                match units.iter().find(fits) {
                    Some((shift, unit)) => format!("{}{unit}", self.number >> shift),
                    None => self.number.to_string(),
                }
            }
            VariedUnit::Milliseconds => show_exactly(Duration::from_nanos(self.number)),
        }
    }
}

/// Distance between the values of a range.
#[derive(Debug, Clone, Copy)]
enum Distance {
    Step(u64),
    Factor(u64),
}

impl Distance {
    fn next(self, number: u64) -> Option<u64> {
        match self {
            Self::Step(step) => number.checked_add(step),
            Self::Factor(factor) => number.checked_mul(factor),
        }
    }
}

/// Reads the values of a parameter: a list such as `1,2,4`, `4k..1m/x2`, `1ms..9ms/2ms` or `uniform,zipf`, in the order
/// of the text.
///
/// `A..B/STEP` is A, A + STEP and so on, and `A..B/xFACTOR` is A, A · FACTOR and so on, up to the last value that does not
/// exceed B. The default step of numbers without a unit is 1. `option` is the name of the option in messages.
///
/// # Errors
/// The first error, with its position: an empty value, a range whose ends, step or factor are not such numbers, a value
/// that is given twice, or more than [`MAX_POINTS`] values.
pub fn values_of(option: &str, text: &str) -> Result<Vec<String>, Diagnostics> {
    let mut values: Vec<String> = Vec::new();
    let mut at = 0;
    for item in text.split(',') {
        let place = at..at + item.len();
        at = place.end + 1;
        let read = item_of(text, &place).and_then(|items| add(&mut values, items, &place));
        read.map_err(|p| Diagnostics::new(vec![Source::new(option, text)], vec![*p]))?;
    }
    Ok(values)
}

/// Adds the values of an item to the values before it.
fn add(
    values: &mut Vec<String>,
    items: Vec<String>,
    place: &Range<usize>,
) -> Result<(), Box<Problem>> {
    for value in items {
        if values.contains(&value) {
            let message = format!("the value {value} is given twice");
            return Err(wrong(place, message, "the second time").into());
        }
        values.push(value);
    }
    if values.len() as u64 > MAX_POINTS {
        let message = format!("a parameter has at most {MAX_POINTS} values");
        return Err(wrong(place, message, "too many with these").into());
    }
    Ok(())
}

/// The values of one item: a value, or the values of a range.
fn item_of(text: &str, place: &Range<usize>) -> Result<Vec<String>, Box<Problem>> {
    let Some(range) = RangePlaces::of(text, place) else {
        let value = text[place.clone()].trim();
        if value.is_empty() {
            return Err(wrong(place, "a value is missing", "nothing here")
                .help("values are written as in `1,2,4` or `4k..1m/x2`")
                .into());
        }
        return Ok(vec![value.to_owned()]);
    };
    let whole = |place: &Range<usize>, what: &str| {
        let raw = text[place.clone()].trim();
        Whole::of(raw).ok_or_else(|| {
            let message = format!(
                "expected {what}: a whole number, a size such as 64k or a time such as 5ms"
            );
            Box::new(wrong(place, message, "not such a number"))
        })
    };
    let (from, to) = (
        whole(&range.first, "the first value of a range")?,
        whole(&range.last, "the last value of a range")?,
    );
    // The ends of a range of sizes may lack the unit of the other end.
    let unit = match (from.unit, to.unit) {
        (a, b) if a == b => a,
        (VariedUnit::Number, VariedUnit::Bytes) | (VariedUnit::Bytes, VariedUnit::Number) => {
            VariedUnit::Bytes
        }
        _ => {
            let message = "expected ends of the range with the same kind of unit";
            return Err(wrong(place, message, "a number, a size and a time differ").into());
        }
    };
    if to.number < from.number {
        let message = "the range ends below its first value";
        return Err(wrong(place, message, "a range increases").into());
    }
    let distance = distance_of(text, place, range.step, unit)?;
    if from.number == 0 && matches!(distance, Distance::Factor(_)) {
        let message = "a range with a factor begins above 0";
        return Err(wrong(&range.first, message, "0 has no multiples").into());
    }
    let mut values = Vec::new();
    let mut number = from.number;
    while number <= to.number && values.len() as u64 <= MAX_POINTS {
        values.push(Whole { unit, number }.text());
        match distance.next(number) {
            Some(next) => number = next,
            None => break,
        }
    }
    Ok(values)
}

fn distance_of(
    text: &str,
    place: &Range<usize>,
    distance: Option<Range<usize>>,
    unit: VariedUnit,
) -> Result<Distance, Box<Problem>> {
    let Some(distance) = distance else {
        return match unit {
            VariedUnit::Number => Ok(Distance::Step(1)),
            _ => Err(wrong(
                place,
                "this range needs a step or a factor",
                "which values?",
            )
            .help("a factor is written as in `4k..1m/x2`, a step as in `1ms..9ms/2ms`")
            .into()),
        };
    };
    let raw = text[distance.clone()].trim();
    if let Some(factor) = raw.strip_prefix('x') {
        let factor = factor.parse().ok().filter(|f| *f >= 2);
        let message = "expected a factor: a whole number of at least 2 after `x`";
        return factor
            .map(Distance::Factor)
            .ok_or_else(|| wrong(&distance, message, "not such a factor").into());
    }
    let step = Whole::of(raw).filter(|s| s.number > 0);
    let step = step
        .filter(|s| s.unit == unit || s.unit == VariedUnit::Number && unit == VariedUnit::Bytes);
    let message = "expected a step in the unit of the range, above 0, or a factor such as `x2`";
    step.map(|s| Distance::Step(s.number))
        .ok_or_else(|| wrong(&distance, message, "not such a step").into())
}

/// First and highest value of a search over a parameter, with their unit: `8`, `4k` or `1ms..64ms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchStart {
    /// First value, in the unit.
    pub first: u64,
    /// Highest value that the search tries, in the unit; `None` without a limit.
    pub most: Option<u64>,
    /// Unit that follows each value, such as `k` or `ms`; empty for values without a unit.
    pub unit: String,
}

impl SearchStart {
    /// Reads the first value, and the highest value after `..`.
    ///
    /// # Errors
    /// A phrase that states what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (first, most) = match text.split_once("..") {
            Some((first, most)) => (first, Some(most)),
            None => (text, None),
        };
        let split = |text: &str| -> Option<(u64, String)> {
            let text = text.trim();
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            let (number, unit) = text.split_at(digits);
            let known = ["", "k", "m", "g", "t", "us", "ms", "s", "min", "h"];
            let lower = unit.to_ascii_lowercase();
            let number = number.parse().ok();
            let number = number.filter(|n| (1..=MAX_LOAD).contains(n))?;
            known.contains(&lower.as_str()).then_some((number, lower))
        };
        let wrong = |text: &str| {
            format!(
                "`{text}` is not a value of a search: expected a whole number from 1 to {MAX_LOAD}, a size such as \
                 64k or a time such as 5ms"
            )
        };
        let (first, unit) = split(first).ok_or_else(|| wrong(first))?;
        let most = most
            .map(|text| {
                let (most, of) = split(text).ok_or_else(|| wrong(text))?;
                if of != unit {
                    return Err(format!(
                        "the highest value {text} needs the unit of the first value"
                    ));
                }
                if most < first {
                    return Err(format!("the highest value {text} is below the first value"));
                }
                Ok(most)
            })
            .transpose()?;
        Ok(Self { first, most, unit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        values_of("--vary", text).unwrap().join(" ")
    }

    #[test]
    fn values_are_lists_ranges_steps_and_factors() {
        for (text, expected) in [
            ("1,2,4", "1 2 4"),
            ("8, 1 ,4", "8 1 4"),
            ("1..4", "1 2 3 4"),
            ("1..64/x4", "1 4 16 64"),
            ("1..10/4", "1 5 9"),
            ("3..3/x2", "3"),
            ("4k..1m/x2", "4k 8k 16k 32k 64k 128k 256k 512k 1m"),
            ("512..2k/512", "512 1k 1536 2k"),
            ("1m..2m/512k", "1m 1536k 2m"),
            ("1ms..9ms/4ms", "1ms 5ms 9ms"),
            ("250us..1s/x4", "250us 1ms 4ms 16ms 64ms 256ms"),
            ("uniform,zipf", "uniform zipf"),
            ("0.5,0.9,1..2", "0.5 0.9 1 2"),
            (
                "18446744073709551615..18446744073709551615",
                "18446744073709551615",
            ),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn wrong_values_are_refused_in_their_place() {
        for (text, expected) in [
            ("", "a value is missing"),
            ("1,,2", "a value is missing"),
            ("a..b", "expected the first value of a range"),
            ("1..b", "expected the last value of a range"),
            ("1.5..3", "expected the first value of a range"),
            ("4..1", "the range ends below its first value"),
            ("0..4/x2", "a range with a factor begins above 0"),
            ("1k..1s/x2", "the same kind of unit"),
            ("4k..1m", "needs a step or a factor"),
            ("1ms..1s", "needs a step or a factor"),
            ("1..9/0", "expected a step"),
            ("1..9/1ms", "expected a step"),
            ("1ms..9ms/2", "expected a step"),
            ("1..9/x1", "expected a factor"),
            ("1..9/x1.5", "expected a factor"),
            ("1,2,1", "the value 1 is given twice"),
            ("1..2000", "at most 1000 values"),
        ] {
            let error = values_of("--vary", text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn values_are_numbers_if_all_are_and_have_one_unit() {
        let numbers = |text: &str| {
            VariedNumbers::of(&values_of("--vary", text).unwrap()).map(|n| (n.unit, n.numbers))
        };
        assert_eq!(numbers("1,2.5"), Some((VariedUnit::Number, vec![1.0, 2.5])));
        assert_eq!(
            numbers("512,1k"),
            Some((VariedUnit::Bytes, vec![512.0, 1024.0]))
        );
        assert_eq!(
            numbers("500us,1ms,2s"),
            Some((VariedUnit::Milliseconds, vec![0.5, 1.0, 2000.0]))
        );
        for none in [
            "uniform,zipf",
            "1,zipf",
            "1ms,2",
            "1k,1ms",
            "nan",
            "inf",
            "1e999",
        ] {
            assert_eq!(numbers(none), None, "{none}");
        }
    }

    #[test]
    fn a_search_begins_at_a_whole_number_with_its_unit() {
        let start = |text| {
            let start = SearchStart::parse(text)?;
            Ok::<_, String>((start.first, start.most, start.unit))
        };
        assert_eq!(start("8"), Ok((8, None, String::new())));
        assert_eq!(start("4K..64k"), Ok((4, Some(64), "k".into())));
        assert_eq!(start("1ms"), Ok((1, None, "ms".into())));
        for (bad, expected) in [
            ("0", "`0` is not a value of a search"),
            ("", "`` is not a value"),
            ("1.5", "`1.5` is not a value"),
            ("8x", "`8x` is not a value"),
            ("1000000000001", "`1000000000001` is not a value"),
            ("8..4", "the highest value 4 is below the first"),
            ("8..4k", "the highest value 4k needs the unit of the first"),
            ("8..", "`` is not a value"),
        ] {
            let error = start(bad).unwrap_err();
            assert!(error.starts_with(expected), "{bad}: {error}");
        }
    }
}
