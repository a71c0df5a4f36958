//! Events of a run on the command line: shell commands and faults of a simulated system at a given time, and shell
//! commands before or after phases.

use crate::units::parse_duration;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Forms of an event on the command line, for error messages.
const EXPECTED: &str = "expected TIME sh COMMAND, before [PHASE] sh COMMAND or after [PHASE] sh COMMAND \
                        (`timeout TIME` may stand before sh), or for a simulated system TIME down WHAT, TIME up WHAT or TIME slow WHAT FACTOR, such as \
                        \"30s down edge.3\"";

/// Event that the option `--event` describes: an action, and the time or the phases at which the action happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSpec {
    /// Time of the event, or the phases around which the event happens.
    pub when: When,
    /// Maximum duration of the event's shell command, and the duration's text on the command line; `None` if the
    /// command line gives no maximum.
    timeout: Option<(Duration, String)>,
    /// Shell command that the event runs, or fault of a simulated system that the event begins or ends.
    pub action: Action,
}

/// Time of an event, or the phases around which the event happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// Event at a time of the run's clock.
    At {
        /// Time of the event in nanoseconds since the beginning of the run.
        nanos: u64,
        /// Time of the event as the user wrote the time, such as `1.5s`.
        text: String,
    },
    /// Event before each phase with the name; `None` for an event before every phase.
    Before(Option<String>),
    /// Event after each phase with the name; `None` for an event after every phase.
    After(Option<String>),
}

/// Effect of an event: a shell command, or the beginning or end of a fault of a simulated system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Runs a shell command: `sh COMMAND`.
    Command(String),
    /// Begins or ends a fault of an element of a simulated system: verb, arguments and element, separated by one space.
    Fault(String),
}

impl EventSpec {
    /// Time of the event in nanoseconds since the beginning of the run; `None` for an event around phases.
    #[must_use]
    pub fn at(&self) -> Option<u64> {
        match self.when {
            When::At { nanos, .. } => Some(nanos),
            When::Before(_) | When::After(_) => None,
        }
    }

    /// Name of the phase around which the event happens; `None` for every phase, and for an event at a time.
    #[must_use]
    pub fn phase(&self) -> Option<&str> {
        match &self.when {
            When::At { .. } => None,
            When::Before(phase) | When::After(phase) => phase.as_deref(),
        }
    }

    /// Maximum duration of the event's shell command (`timeout TIME`); `None` if the command line gives no maximum.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout.as_ref().map(|(timeout, _)| *timeout)
    }
}

/// Returns the first word of a text, and the text after the word without leading blanks.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

impl FromStr for EventSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, mut rest) = split_word(text.trim());
        let when = match first {
            "before" | "after" => {
                let mut phase = Vec::new();
                loop {
                    match split_word(rest) {
                        ("sh" | "timeout", _) => break,
                        ("", _) => return Err(EXPECTED.into()),
                        (word, after) => {
                            phase.push(word);
                            rest = after;
                        }
                    }
                }
                let phase = (!phase.is_empty()).then(|| phase.join(" "));
                match first {
                    "before" => When::Before(phase),
                    _ => When::After(phase),
                }
            }
            _ if rest.is_empty() => return Err(EXPECTED.into()),
            time => {
                let at = parse_duration(time)?;
                let nanos = u64::try_from(at.as_nanos());
                When::At {
                    nanos: nanos.map_err(|_| format!("{time} is too long"))?,
                    text: time.into(),
                }
            }
        };
        let mut timeout = None;
        if let ("timeout", after) = split_word(rest) {
            let (time, command) = split_word(after);
            timeout = Some((parse_duration(time)?, time.to_owned()));
            rest = command;
        }
        let action = match split_word(rest) {
            ("sh", "") => return Err(EXPECTED.into()),
            ("sh", command) => Action::Command(command.trim_end().into()),
            _ if timeout.is_some() => {
                return Err("a timeout is for commands: expected timeout TIME sh COMMAND".into());
            }
            // The simulation parses the fault and reports missing words.
            _ => Action::Fault(Vec::from_iter(rest.split_whitespace()).join(" ")),
        };
        Ok(Self {
            when,
            timeout,
            action,
        })
    }
}

impl fmt::Display for EventSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.when)?;
        if let Some((_, text)) = &self.timeout {
            write!(f, "timeout {text} ")?;
        }
        self.action.fmt(f)
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (time, phase) = match self {
            Self::At { text, .. } => (text.as_str(), None),
            Self::Before(phase) => ("before", phase.as_deref()),
            Self::After(phase) => ("after", phase.as_deref()),
        };
        f.write_str(time)?;
        phase.map_or(Ok(()), |phase| write!(f, " {phase}"))
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
        assert_eq!(fault.at(), Some(30_000_000_000));
        assert_eq!(fault.action, Action::Fault("delay 20ms server.1".into()));
        // A command keeps its blanks, because the shell splits the command into words.
        let command = read("1.5s sh printf '%s  %s' a b");
        assert_eq!(
            command.action,
            Action::Command("printf '%s  %s' a b".into())
        );
        assert_eq!(command.to_string(), "1.5s sh printf '%s  %s' a b");
        assert_eq!(read(&command.to_string()), command);
    }

    #[test]
    fn commands_around_phases_are_read_as_they_are_written() {
        for (text, when, phase) in [
            ("before sh sync", When::Before(None), None),
            (
                "after  load   sh df",
                When::After(Some("load".into())),
                Some("load"),
            ),
            (
                "before file creation sh sync",
                When::Before(Some("file creation".into())),
                Some("file creation"),
            ),
        ] {
            let event = read(text);
            assert_eq!((&event.when, event.phase()), (&when, phase), "{text}");
            assert_eq!((event.at(), event.timeout()), (None, None));
            assert!(matches!(event.action, Action::Command(_)));
            assert_eq!(read(&event.to_string()), event);
        }
        assert_eq!(
            read("after load sh a  sh b").to_string(),
            "after load sh a  sh b"
        );
    }

    #[test]
    fn a_command_may_have_a_timeout() {
        let event = read("before timeout 90s sh sync");
        assert_eq!(event.timeout(), Some(Duration::from_secs(90)));
        assert_eq!(event.to_string(), "before timeout 90s sh sync");
        let event = read("5s timeout 1m sh ./failover timeout");
        assert_eq!(event.timeout(), Some(Duration::from_secs(60)));
        assert_eq!(event.to_string(), "5s timeout 1m sh ./failover timeout");
        assert_eq!(read(&event.to_string()), event);
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, expected) in [
            ("", "expected TIME sh COMMAND"),
            ("30s", "expected TIME sh COMMAND"),
            ("30s sh", "expected TIME sh COMMAND"),
            ("30s sh  ", "expected TIME sh COMMAND"),
            ("before", "expected TIME sh COMMAND"),
            ("before load", "before [PHASE] sh COMMAND"),
            ("after sh", "after [PHASE] sh COMMAND"),
            ("1s timeout x sh true", "`x` is not a duration"),
            ("1s timeout 1m down edge", "a timeout is for commands"),
            ("soon kill server", "`soon` is not a duration"),
            ("-1s kill server", "`-1s` is not a duration"),
            ("9999999999h kill server", "is too long"),
        ] {
            let error = text.parse::<EventSpec>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
