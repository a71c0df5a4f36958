//! Parsing of lists of loads, such as the value of `--load`.

use plimsoll_diagnostics::{Diagnostics, Problem, Source, Span};
use std::fmt;
use std::ops::Range;

/// Maximum number of load points of one curve, and of values of one parameter: at the usual ten minutes each, a week.
pub const MAX_POINTS: u64 = 1000;

/// Maximum load that can be requested, in business metrics, and maximum value of a searched parameter, in the unit of
/// the search.
pub const MAX_LOAD: u64 = 1_000_000_000_000;

/// Loads in increasing order, each at least 1; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loads(Vec<u64>);

impl Loads {
    /// Reads a list such as `10,20,30`, `10..100/10` or `1,2,4,10..100/10`.
    ///
    /// `A..B/STEP` is A, A + STEP and so on up to the last value that does not exceed B. The default step is 1.
    /// `option` is the name of the option in messages, such as `--load`.
    ///
    /// # Errors
    /// The first error, with its position: not a number, a load of 0 or above [`MAX_LOAD`], a load that is not above
    /// the previous load, or more than [`MAX_POINTS`] loads.
    pub fn parse(option: &str, text: &str) -> Result<Self, Diagnostics> {
        let reader = Reader { text };
        let mut loads = Vec::new();
        let mut at = 0;
        for item in text.split(',') {
            let place = at..at + item.len();
            at = place.end + 1;
            let read = reader.item(place.clone(), &mut loads);
            read.map_err(|p| Diagnostics::new(vec![Source::new(option, text)], vec![*p]))?;
        }
        Ok(Self(loads))
    }

    /// The loads of the list, in increasing order.
    #[must_use]
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// The highest load of the list.
    #[must_use]
    pub fn greatest(&self) -> u64 {
        *self.0.last().expect("loads are never empty")
    }
}

impl fmt::Display for Loads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loads: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&loads.join(","))
    }
}

/// A problem in a list of loads; boxed, because a problem is much larger than a parsed value.
type BoxedProblem = Box<Problem>;

/// Parser of a load list, by byte ranges of the text.
struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    /// Parses one item of the list (a load or a range), and appends the loads of the item to `loads`.
    fn item(&self, place: Range<usize>, loads: &mut Vec<u64>) -> Result<(), BoxedProblem> {
        let Some(RangePlaces { first, last, step }) = RangePlaces::of(self.text, &place) else {
            let load = self.number(place.clone(), "a load")?;
            return self.append(&place, load..=load, 1, loads);
        };
        let first = self.number(first, "the first load of a range")?;
        let step = step.map_or(Ok(1), |step| self.number(step, "a step"))?;
        let last = self.number(last, "the last load of a range")?;
        if last < first {
            return Err(wrong(
                &place,
                format!("the range ends at {last}, below its begin at {first}"),
                "load points are measured in increasing order",
            )
            .help(format!("write `{last}..{first}`"))
            .into());
        }
        self.append(&place, first..=last, step, loads)
    }

    fn append(
        &self,
        place: &Range<usize>,
        range: std::ops::RangeInclusive<u64>,
        step: u64,
        loads: &mut Vec<u64>,
    ) -> Result<(), BoxedProblem> {
        let (first, last) = range.into_inner();
        if let Some(before) = loads.last().filter(|b| **b >= first) {
            return Err(wrong(
                place,
                format!(
                    "{first} comes after {before}: load points are measured in increasing order"
                ),
                "must exceed the load before it",
            )
            .into());
        }
        if (last - first) / step + 1 > MAX_POINTS - loads.len() as u64 {
            return Err(wrong(
                place,
                format!("a curve has at most {MAX_POINTS} load points"),
                "too many with these",
            )
            .help("a step makes fewer, as in `10..100/10`")
            .into());
        }
        let mut load = first;
        while load <= last {
            loads.push(load);
            load += step;
        }
        Ok(())
    }

    /// Parses a number from 1 to [`MAX_LOAD`], ignoring surrounding blanks.
    fn number(&self, place: Range<usize>, what: &str) -> Result<u64, BoxedProblem> {
        let raw = &self.text[place.clone()];
        let digits = raw.trim();
        let begin = place.start + (raw.len() - raw.trim_start().len());
        let place = begin..begin + digits.len();
        let fail = |label: String| {
            let message = format!("expected {what}: a whole number from 1 to {MAX_LOAD}");
            wrong(&place, message, label)
        };
        if digits.is_empty() {
            return Err(fail("nothing here".into())
                .help("loads are written as in `10,20,30` or `10..100/10`")
                .into());
        }
        match digits.parse::<u64>() {
            Ok(n) if digits.starts_with('+') || n == 0 || n > MAX_LOAD => {
                Err(fail("out of range".into()).into())
            }
            Ok(n) => Ok(n),
            Err(_) => Err(self
                .with_hint(fail("not such a number".into()), digits)
                .into()),
        }
    }

    /// Adds help to a problem: the spelling of the range or number that the user probably meant.
    fn with_hint(&self, problem: Problem, digits: &str) -> Problem {
        let parts = |by: char| -> Option<(u64, u64)> {
            let (a, b) = digits.split_once(by)?;
            Some((a.trim().parse().ok()?, b.trim().parse().ok()?))
        };
        if let Some((a, b)) = parts('-').or_else(|| parts(':')) {
            return problem.help(format!("a range is written `{a}..{b}`"));
        }
        if let Some((a, b)) = parts('/') {
            return problem.help(format!("a step belongs to a range, as in `{b}..{a}/{b}`"));
        }
        if parts(';').is_some() || digits.split_whitespace().count() > 1 {
            return problem.help("loads are separated by commas");
        }
        if let Some(last) = digits.strip_prefix('=') {
            return problem.help(format!("write `..{last}`: a range has its last load in it"));
        }
        problem.help("loads are written as in `10,20,30` or `10..100/10`")
    }
}

/// Byte ranges of the parts of a range `FIRST..LAST/STEP` in a text.
pub(super) struct RangePlaces {
    pub(super) first: Range<usize>,
    pub(super) last: Range<usize>,
    pub(super) step: Option<Range<usize>>,
}

impl RangePlaces {
    /// The parts of the range at `place`; `None` if the text at `place` is not a range.
    pub(super) fn of(text: &str, place: &Range<usize>) -> Option<Self> {
        let dots = place.start + text[place.clone()].find("..")?;
        let rest = dots + 2..place.end;
        let slash = text[rest.clone()].find('/').map(|at| rest.start + at);
        Some(Self {
            first: place.start..dots,
            last: rest.start..slash.unwrap_or(rest.end),
            step: slash.map(|slash| slash + 1..rest.end),
        })
    }
}

pub(super) fn wrong(
    place: &Range<usize>,
    message: impl Into<String>,
    label: impl Into<String>,
) -> Problem {
    Problem::new(span(place), message, label)
}

fn span(place: &Range<usize>) -> Span {
    let offset = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Span {
        file: 0,
        start: offset(place.start),
        end: offset(place.end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<u64> {
        Loads::parse("--load", text).unwrap().as_slice().to_vec()
    }

    /// Column, message and help of the error on a list of loads.
    fn error(text: &str) -> (u32, String, String) {
        let wrong = Loads::parse("--load", text).unwrap_err();
        let mut findings = wrong.findings();
        assert_eq!(findings.len(), 1, "{text}: {findings:?}");
        let f = findings.remove(0);
        assert_eq!((f.file.as_str(), f.line), ("--load", 1), "{text}");
        (f.column, f.message, f.help.unwrap_or_default())
    }

    #[test]
    fn lists_and_ranges_are_read() {
        assert_eq!(read("10,20,30"), [10, 20, 30]);
        assert_eq!(read(" 10 , 20"), [10, 20]);
        assert_eq!(read("10..50/10"), [10, 20, 30, 40, 50]);
        assert_eq!(read("10..49/10"), [10, 20, 30, 40]);
        assert_eq!(read("3..6"), [3, 4, 5, 6]);
        assert_eq!(read("7..7/9"), [7]);
        assert_eq!(read("1,2, 4..8 / 2 ,100"), [1, 2, 4, 6, 8, 100]);
        assert_eq!(read("1..1000").len(), 1000);
        assert_eq!(read("10..2000/10").len(), 200);
        assert_eq!(read(&MAX_LOAD.to_string()), [MAX_LOAD]);
    }

    #[test]
    fn what_is_wrong_is_shown_at_its_place() {
        let cases = [
            ("", 1, "expected a load", "as in `10,20,30`"),
            ("10,,30", 4, "expected a load", "as in"),
            ("10,20,", 7, "expected a load", "as in"),
            ("10,x", 4, "expected a load", "as in"),
            ("10,-5", 4, "expected a load", "as in"),
            ("10, 0", 5, "expected a load", ""),
            ("+5", 1, "expected a load", ""),
            ("1000000000001", 1, "from 1 to 1000000000000", ""),
            ("99999999999999999999", 1, "expected a load", "as in"),
            ("10-100", 1, "expected a load", "`10..100`"),
            ("10:100", 1, "expected a load", "`10..100`"),
            ("100/10", 1, "expected a load", "`10..100/10`"),
            ("10;20", 1, "expected a load", "commas"),
            ("10 20", 1, "expected a load", "commas"),
            ("10..", 5, "the last load of a range", "as in"),
            ("..10", 1, "the first load of a range", "as in"),
            ("10..=20", 5, "the last load of a range", "`..20`"),
            ("10..20/0", 8, "a step", ""),
            ("10..20/", 8, "a step", "as in"),
            (
                "5,20..10/5",
                3,
                "ends at 10, below its begin at 20",
                "`10..20`",
            ),
            ("10,20,15", 7, "15 comes after 20", ""),
            ("10,10", 4, "10 comes after 10", ""),
            ("1..5,5", 6, "5 comes after 5", ""),
            (
                "5,6..1000000000000",
                3,
                "at most 1000 load points",
                "a step",
            ),
            ("1..1001", 1, "at most 1000 load points", "a step"),
            ("1..1000,1001", 9, "at most 1000 load points", "a step"),
            ("1ä,2", 1, "expected a load", "as in"),
        ];
        for (text, column, message, help) in cases {
            let found = error(text);
            assert_eq!(found.0, column, "{text}: {found:?}");
            assert!(found.1.contains(message), "{text}: {found:?}");
            assert!(found.2.contains(help), "{text}: {found:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_underlined_and_nothing_beside_it() {
        for (text, line) in [
            ("1, 12x4 ,5", "──┬─"),
            ("1, 12..x4/3 ,5", "─┬"),
            ("1,3..9999999", "─────┬────"),
        ] {
            let shown = Loads::parse("--load", text).unwrap_err().to_string();
            assert!(
                shown.lines().any(|l| l.ends_with(&format!(" {line}"))),
                "{shown}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_once(text in "[0-9., /;:ä=+x-]{0,24}") {
            match Loads::parse("--load", &text) {
                Ok(loads) => {
                    let loads = loads.as_slice();
                    prop_assert!(!loads.is_empty() && loads.len() as u64 <= MAX_POINTS);
                    prop_assert!(loads.is_sorted_by(|a, b| a < b) && loads[0] > 0);
                }
                Err(e) => prop_assert_eq!(e.findings().len(), 1),
            }
        }

        #[test]
        fn what_is_written_reads_back(loads in prop::collection::btree_set(1..=MAX_LOAD, 1..50)) {
            let loads = Loads(loads.into_iter().collect());
            prop_assert_eq!(Loads::parse("--load", &loads.to_string()).ok(), Some(loads));
        }
    }
}
