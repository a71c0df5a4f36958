//! System events on the command line.

use crate::system::Change;
use plimsoll_diagnostics::Span;
use plimsoll_measure::Nanos;
use plimsoll_plan::parse_duration;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Expected form of an event, for messages.
const EXPECTED: &str = "expected TIME down WHAT, TIME up WHAT or TIME slow WHAT FACTOR, such as \
                        \"30s down edge.3\"";

/// A timed change of a system: `30s down edge.3`, `60s up edge.3`, `10s slow wan 10`.
///
/// Times count from the start of the run's workers, so they include the warm-up.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemEvent {
    /// The words of the event, separated by single spaces.
    text: String,
    pub(crate) at: Nanos,
    pub(crate) change: Change,
    /// Byte range of the subject in the text.
    what: Range<usize>,
}

impl SystemEvent {
    /// Name of the element that the event changes, such as `edge.3`.
    pub(crate) fn what(&self) -> &str {
        &self.text[self.what.clone()]
    }

    /// Span of the subject, in a text with this event at `offset`.
    pub(crate) fn span(&self, file: u16, offset: usize) -> Span {
        Span {
            file,
            start: (offset + self.what.start) as u32,
            end: (offset + self.what.end) as u32,
        }
    }

    /// The event as a value in a URL, such as `30s,down,edge.3`.
    #[must_use]
    pub fn to_url(&self) -> String {
        self.text.replace(' ', ",")
    }

    /// Parses an event from a URL.
    ///
    /// # Errors
    /// One sentence that states the expected form.
    pub fn from_url(value: &str) -> Result<Self, String> {
        value.replace(',', " ").parse()
    }
}

impl FromStr for SystemEvent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (time, change, what) = match words[..] {
            [time, "down", what] => (time, Change::Down, what),
            [time, "up", what] => (time, Change::Up, what),
            [time, "slow", what, factor] => {
                let factor = factor
                    .parse()
                    .ok()
                    .filter(|f: &f64| f.is_finite() && *f > 0.0);
                let factor = factor.ok_or("the factor of an event must be a number above 0")?;
                (time, Change::Slow(factor), what)
            }
            _ => return Err(EXPECTED.into()),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if !what.chars().all(is_name) {
            return Err(format!("`{what}` is not a name: {EXPECTED}"));
        }
        let at = parse_duration(time)?;
        let at = Nanos::try_from(at.as_nanos()).map_err(|_| format!("{time} is too long"))?;
        let before: usize = words[..2].iter().map(|word| word.len() + 1).sum();
        Ok(Self {
            text: words.join(" "),
            at,
            change,
            what: before..before + what.len(),
        })
    }
}

impl fmt::Display for SystemEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_are_written() {
        let event: SystemEvent = " 30s  slow edge.3 2.5 ".parse().unwrap();
        assert_eq!(event.to_string(), "30s slow edge.3 2.5");
        assert_eq!(
            (event.at, event.change),
            (30_000_000_000, Change::Slow(2.5))
        );
        assert_eq!(event.what(), "edge.3");
        assert_eq!(event.to_url(), "30s,slow,edge.3,2.5");
        assert_eq!(SystemEvent::from_url(&event.to_url()), Ok(event));
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, expected) in [
            ("", "expected TIME down WHAT"),
            ("30s down", "expected TIME down WHAT"),
            ("30s slow wan", "expected TIME down WHAT"),
            ("30s slow wan -1", "must be a number above 0"),
            ("30s slow wan x", "must be a number above 0"),
            ("soon down wan", "`soon` is not a duration"),
            ("1s down a,b", "`a,b` is not a name"),
        ] {
            let error = text.parse::<SystemEvent>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
