//! Parsing of target URLs and their options; an error underlines the wrong part of the URL.

use crate::connect::TargetError;
use plimsoll_diagnostics::nearest;
use plimsoll_plan::parse_duration;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Maximum value of the options `lanes` and `clients`: a run has at most one lane per worker, whatever the URL requests.
const MAX_LANES: u64 = 1 << 16;

/// A target URL whose scheme is known, for parsing and for error messages.
pub(crate) struct UrlParser<'a> {
    pub(crate) scheme: &'static str,
    pub(crate) url: &'a str,
}

impl<'a> UrlParser<'a> {
    /// Splits the URL after the scheme's colon into the part before the first `?` and the options after the `?`.
    pub(crate) fn parts(&self) -> (&'a str, &'a str) {
        let end = &self.url[self.url.len()..];
        let (_, rest) = self.url.split_once(':').unwrap_or((self.url, end));
        rest.split_once('?').unwrap_or((rest, end))
    }

    /// The options of a URL that has only options after the scheme, such as `null:?latency=1ms`; an error for any other
    /// part.
    pub(crate) fn only_options(&self) -> Result<Vec<(&'a str, &'a str)>, TargetError> {
        let (place, options) = self.parts();
        match place.is_empty() {
            true => self.options(options),
            false => {
                let expected = "expected ?name=value; a directory is given by --dir";
                Err(self.wrong(place, format!("`{place}` has no meaning here: {expected}")))
            }
        }
    }

    /// Splits options `name=value&…` into pairs of name and value; an error for a name that is given twice.
    pub(crate) fn options(&self, text: &'a str) -> Result<Vec<(&'a str, &'a str)>, TargetError> {
        let mut options: Vec<(&str, &str)> = Vec::new();
        for pair in text.split('&').filter(|p| !p.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(self.wrong(pair, format!("`{pair}` is not name=value")));
            };
            if options.iter().any(|(n, _)| *n == name) {
                return Err(self.wrong(name, format!("option `{name}` is given twice")));
            }
            options.push((name, value));
        }
        Ok(options)
    }

    /// The error that underlines `part` in the URL; panics if `part` is not a slice of the URL.
    pub(crate) fn wrong(&self, part: &str, reason: impl Into<String>) -> TargetError {
        let begin = (part.as_ptr() as usize).checked_sub(self.url.as_ptr() as usize);
        let begin = begin.expect("the part is a slice of the URL");
        assert!(
            begin + part.len() <= self.url.len(),
            "`{part}` is not a slice of `{}`",
            self.url
        );
        TargetError::Url {
            target: self.scheme,
            reason: reason.into(),
            url: self.url.into(),
            at: begin..begin + part.len(),
        }
    }

    /// The error that an option's value is not as `expected`; underlines the value.
    pub(crate) fn wrong_value(&self, name: &str, value: &str, expected: &str) -> TargetError {
        self.wrong(value, format!("{name} `{value}`: expected {expected}"))
    }

    /// The error that an option of the URL has no meaning or cannot be satisfied; underlines the option's name.
    pub(crate) fn wrong_option(&self, name: &str, reason: &str) -> TargetError {
        let at = self.url.find(&format!("{name}="));
        let at = at.expect("the option is in the URL");
        self.wrong(&self.url[at..at + name.len()], reason)
    }

    pub(crate) fn port(&self, text: &str) -> Result<u16, TargetError> {
        let port = text.parse().ok().filter(|p| *p != 0);
        port.ok_or_else(|| self.wrong(text, format!("`{text}` is not a port: expected 1 to 65535")))
    }

    pub(crate) fn number(
        &self,
        name: &str,
        value: &str,
        range: RangeInclusive<u64>,
    ) -> Result<u32, TargetError> {
        let number = value.parse().ok().filter(|n| range.contains(n));
        let number = number.and_then(|n| u32::try_from(n).ok());
        number.ok_or_else(|| {
            let expected = format!("{} to {}", range.start(), range.end());
            self.wrong_value(name, value, &expected)
        })
    }

    /// Parses an option `name` for the number of threads that drive the workers of a rank.
    pub(crate) fn lanes(&self, name: &str, value: &str) -> Result<Option<usize>, TargetError> {
        let lanes = self.number(name, value, 1..=MAX_LANES)?;
        Ok(Some(lanes as usize))
    }

    /// The meaning of an option's value by a table of words; an error for a word that the table lacks.
    pub(crate) fn word<T: Copy>(
        &self,
        name: &str,
        value: &str,
        words: &[(&str, T)],
    ) -> Result<T, TargetError> {
        let known = words.iter().find(|(word, _)| *word == value);
        known.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let (last, first) = words.split_last().expect("an option has a value");
            let first: Vec<&str> = first.iter().map(|(word, _)| *word).collect();
            let expected = match first[..] {
                [] => last.0.to_owned(),
                _ => format!("{} or {}", first.join(", "), last.0),
            };
            self.wrong_value(name, value, &expected)
        })
    }

    /// Parses a duration such as `5ms`; an error outside the range, which `expected` describes.
    pub(crate) fn duration(
        &self,
        name: &str,
        value: &str,
        (range, expected): (RangeInclusive<Duration>, &str),
    ) -> Result<Duration, TargetError> {
        let time = parse_duration(value).map_err(|e| self.wrong(value, e))?;
        match range.contains(&time) {
            true => Ok(time),
            false => Err(self.wrong_value(name, value, expected)),
        }
    }

    /// The error for an option that the target lacks, with a similar option as suggestion.
    pub(crate) fn unknown_option(&self, name: &str, options: &[&str]) -> TargetError {
        let hint = match nearest(name, options.iter().copied()) {
            Some(option) => format!(", did you mean `{option}`?"),
            None => String::new(),
        };
        let known = options.join(", ");
        let reason = format!("unknown option `{name}`: expected one of {known}{hint}");
        self.wrong(name, reason)
    }
}
