//! Events of a run as the user writes them: what happens to the system under test at a time.

use crate::units::parse_duration;
use std::fmt;
use std::str::FromStr;

/// The form of an event, for messages.
const EXPECTED: &str = "expected TIME sh COMMAND, or for a simulated system TIME down WHAT, TIME up \
                        WHAT or TIME slow WHAT FACTOR, such as \"30s down edge.3\"";

/// An event of the command line: an action and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSpec {
    /// The time as it was given.
    time: String,
    /// The same in nanoseconds since the beginning of the run.
    pub at: u64,
    /// What happens.
    pub action: Action,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A shell command is run: `sh COMMAND`.
    Command(String),
    /// A fault of an element of a simulated system, or its end: a verb, its arguments and the element, with one space
    /// between them.
    Fault(String),
}

impl FromStr for EventSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (time, action) = text
            .trim()
            .split_once(char::is_whitespace)
            .ok_or(EXPECTED)?;
        let action = match action.trim().split_once(char::is_whitespace) {
            Some(("sh", command)) => Action::Command(command.trim().into()),
            None if action.trim() == "sh" => return Err(EXPECTED.into()),
            // Who knows the verbs says what is missing.
            _ => Action::Fault(Vec::from_iter(action.split_whitespace()).join(" ")),
        };
        let at = parse_duration(time)?;
        Ok(Self {
            at: u64::try_from(at.as_nanos()).map_err(|_| format!("{time} is too long"))?,
            time: time.into(),
            action,
        })
    }
}

impl fmt::Display for EventSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.time, self.action)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(f, "sh {command}"),
            Self::Fault(action) => f.write_str(action),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> EventSpec {
        text.parse().unwrap()
    }

    #[test]
    fn events_are_read_as_they_are_written() {
        let fault = read(" 30s  delay 20ms  server.1 ");
        assert_eq!(fault.to_string(), "30s delay 20ms server.1");
        assert_eq!(fault.at, 30_000_000_000);
        assert_eq!(fault.action, Action::Fault("delay 20ms server.1".into()));
        // The text of a command is the shell's.
        let command = read("1.5s sh printf '%s  %s' a b");
        assert_eq!(
            command.action,
            Action::Command("printf '%s  %s' a b".into())
        );
        assert_eq!(command.to_string(), "1.5s sh printf '%s  %s' a b");
        assert_eq!(read(&command.to_string()), command);
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, expected) in [
            ("", "expected TIME sh COMMAND"),
            ("30s", "expected TIME sh COMMAND"),
            ("30s sh", "expected TIME sh COMMAND"),
            ("30s sh  ", "expected TIME sh COMMAND"),
            ("soon kill server", "`soon` is not a duration"),
            ("-1s kill server", "`-1s` is not a duration"),
            ("9999999999h kill server", "is too long"),
        ] {
            let error = text.parse::<EventSpec>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
