//! Events of a run: what happens to the system under test at a time, and who does it.
//!
//! `--event` is read here ([`EventSpec`]); `event/executor.rs` executes actions, and
//! `event/runner.rs` does so at their times, on threads of its own. Faults of test beds are in
//! `event/bed.rs`.

mod bed;
mod executor;
mod runner;

pub use bed::executor;
pub use executor::{EventExecutor, ShellExecutor};
pub use runner::{EventRunner, ExecutedEvents};

use plimsoll_measure::Nanos;
use plimsoll_plan::parse_duration;
use std::fmt;
use std::str::FromStr;

/// The form of an event, for messages.
const EXPECTED: &str = "expected TIME sh COMMAND, or for a simulated system TIME down WHAT, TIME up \
                        WHAT or TIME slow WHAT FACTOR, such as \"30s down edge.3\", or for a test bed \
                        TIME and an action of `testbed fault`, such as \"30s kill server.2\"";

/// An event of the command line: an action and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSpec {
    /// The time as it was given.
    time: String,
    /// The same in nanoseconds since the beginning of the run.
    pub at: Nanos,
    /// What happens.
    pub action: Action,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A shell command is run: `sh COMMAND`.
    Command(String),
    /// A fault of an element of the system under test, or its end, which the simulated system or the
    /// test bed reads: a verb, its arguments and the element, with one space between them.
    Fault(String),
}

impl EventSpec {
    /// Whether the event can be executed on a target. Events of simulated systems are part of its URL
    /// instead.
    ///
    /// # Errors
    /// A sentence if commands are not `allowed`, or if the target has no elements that can fail.
    pub fn check(&self, target: &str, allowed: bool) -> Result<(), String> {
        match &self.action {
            Action::Command(_) if !allowed => Err(format!(
                "--event '{self}' runs a shell command: allow it with --allow-commands"
            )),
            Action::Command(_) => Ok(()),
            Action::Fault(fault) if plimsoll_target::testbed::name_of(target).is_some() => {
                bed::check(target, fault).map_err(|e| format!("--event '{self}': {e}"))
            }
            Action::Fault(_) => Err(format!(
                "--event '{self}' needs a test bed (testbed:NAME) or a simulated system (sim:SYSTEM): \
                 the target is {target}; `TIME sh COMMAND` runs a command of your own"
            )),
        }
    }
}

impl EventSpec {
    /// The events that a document keeps, which may have been edited, for runs on a target. That its
    /// commands are allowed is checked elsewhere (`KeptCommands`).
    ///
    /// # Errors
    /// A sentence if one of them is none, or as those of [`check`](Self::check).
    pub fn kept(texts: &[String], target: &str) -> Result<Vec<Self>, String> {
        let read = |text: &String| {
            let event: Self = text.parse().map_err(|e| format!("event '{text}': {e}"))?;
            event.check(target, true).map(|()| event)
        };
        texts.iter().map(read).collect()
    }
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
            at: Nanos::try_from(at.as_nanos()).map_err(|_| format!("{time} is too long"))?,
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

    #[test]
    fn events_of_a_document_are_checked_again() {
        let kept = |text: &str| EventSpec::kept(&[text.to_owned()], "posix");
        assert_eq!(kept("1s sh true").unwrap(), [read("1s sh true")]);
        assert!(kept("1s kill a").unwrap_err().contains("needs a test bed"));
        assert!(
            kept("1s")
                .unwrap_err()
                .starts_with("event '1s': expected TIME")
        );
    }

    #[test]
    fn what_cannot_be_executed_is_refused() {
        let refused = |text: &str, target: &str, allowed| read(text).check(target, allowed);
        assert_eq!(refused("1s sh true", "posix", true), Ok(()));
        for (text, target, expected) in [
            ("1s sh true", "posix", "allow it with --allow-commands"),
            (
                "1s kill server.2",
                "nfs3://h/x",
                "needs a test bed (testbed:NAME) or",
            ),
            (
                "1s explode server.2",
                "testbed:trio",
                "`explode` is not an action: expected one of kill,",
            ),
        ] {
            let error = refused(text, target, false).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(error.starts_with(&format!("--event '{text}'")), "{error}");
        }
    }
}
