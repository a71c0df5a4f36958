//! The options of a target's URL: `scheme:?name=value&name=value`.

use crate::connect::TargetError;
use plimsoll_plan::parse_duration;
use std::time::Duration;

/// Maximum duration of an option.
const MAX_OPTION_DURATION: Duration = Duration::from_secs(3600);

/// Options that the target has not taken yet.
pub(crate) struct UrlOptions {
    target: &'static str,
    left: Vec<(String, String)>,
}

impl UrlOptions {
    pub(crate) fn parse(target: &'static str, url: &str) -> Result<Self, TargetError> {
        let rest = url.split_once(':').map_or("", |(_, rest)| rest);
        let mut options = Self {
            target,
            left: vec![],
        };
        let query = match rest.strip_prefix('?') {
            Some(query) => query,
            None if rest.is_empty() => "",
            None => {
                let reason = format!("`{rest}` has no meaning here: expected ?name=value");
                return Err(options.wrong(reason));
            }
        };
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(options.wrong(format!("`{pair}` is not name=value")));
            };
            if options.left.iter().any(|(n, _)| n == name) {
                return Err(options.wrong(format!("option `{name}` is given twice")));
            }
            options.left.push((name.into(), value.into()));
        }
        Ok(options)
    }

    fn wrong(&self, reason: String) -> TargetError {
        TargetError::of(self.target, reason)
    }

    /// Takes the value of an option; `None` if the URL does not have the option.
    fn take(&mut self, name: &str) -> Option<String> {
        let at = self.left.iter().position(|(n, _)| n == name)?;
        Some(self.left.remove(at).1)
    }

    /// Takes the text of an option.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.take(name)
    }

    /// Takes a duration of at most [`MAX_OPTION_DURATION`].
    pub(crate) fn duration(&mut self, name: &str) -> Result<Option<Duration>, TargetError> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        match parse_duration(&value).map_err(|e| self.wrong(e))? {
            time if time > MAX_OPTION_DURATION => {
                Err(self.wrong(format!("{name} {value} is too long: expected at most 1h")))
            }
            time => Ok(Some(time)),
        }
    }

    /// Takes a whole number from 1 to `max`.
    pub(crate) fn count(&mut self, name: &str, max: u32) -> Result<Option<u32>, TargetError> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let count = value.parse().ok().filter(|n| (1..=max).contains(n));
        count.map(Some).ok_or_else(|| {
            self.wrong(format!(
                "`{value}` is not a number of {name}: expected one from 1 to {max}"
            ))
        })
    }

    /// Fails if the URL has options that the target has not taken.
    pub(crate) fn finish(self, known: &str) -> Result<(), TargetError> {
        match self.left.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(self.wrong(format!("unknown option `{name}`: expected {known}")))
            }
        }
    }
}
