//! Execution of the actions of events.

use super::{Action, EventSpec};
use crate::command_output::CommandOutput;
use plimsoll_engine::{CommandEnd, Limits, run_command};
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Number of bytes at the end of an output that are searched for the last line.
const TAIL_BYTES: usize = 4096;

/// Maximum length of the last line that is kept, in characters.
const MAX_LINE_CHARS: usize = 200;

/// Executes the actions of events. Each call blocks the event's thread until the action ends.
pub trait EventExecutor: Send + Sync {
    /// Executes the action of an event. Once `stopped` returns true, because the run is over or interrupted, the action
    /// must end.
    fn execute(&self, event: &EventSpec, stopped: &dyn Fn() -> bool) -> Execution;
}

/// Outcome of an action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Execution {
    /// Exit status of a command; `None` if the command was terminated or never started.
    pub exit_status: Option<i32>,
    /// The signal that ended a command.
    pub signal: Option<i32>,
    /// The command was terminated: its timeout had passed, or the run was over or interrupted.
    pub timed_out: bool,
    /// Error that kept the action from being executed, as a sentence.
    pub error: Option<String>,
    /// Last line that a command printed.
    pub last_line: Option<String>,
}

impl Execution {
    /// Whether the action completed: no exit status other than 0, no signal, no timeout and no error.
    pub fn succeeded(&self) -> bool {
        let status = self.exit_status.is_none_or(|status| status == 0);
        status && self.signal.is_none() && !self.timed_out && self.error.is_none()
    }

    /// Outcome of an action that could not be executed.
    pub fn failed(error: impl ToString) -> Self {
        Self {
            error: Some(error.to_string()),
            ..Self::default()
        }
    }
}

/// Executes shell commands; their output is kept in the results directory.
pub struct ShellExecutor {
    /// Environment variables of every command.
    pub facts: Vec<(&'static str, OsString)>,
    /// Directory of the results.
    pub results: PathBuf,
}

impl EventExecutor for ShellExecutor {
    fn execute(&self, event: &EventSpec, stopped: &dyn Fn() -> bool) -> Execution {
        let Action::Command(command) = &event.action else {
            unreachable!("faults of real targets are refused before the run");
        };
        self.call(command, event.timeout(), stopped)
            .unwrap_or_else(Execution::failed)
    }
}

impl ShellExecutor {
    fn call(
        &self,
        command: &str,
        timeout: Option<Duration>,
        stopped: &dyn Fn() -> bool,
    ) -> io::Result<Execution> {
        let output = CommandOutput::new(&self.results)?;
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(command)
            .envs(self.facts.iter().map(|(name, value)| (name, value)))
            .env("PLIMSOLL_WHEN", "event")
            .env("PLIMSOLL_RESULTS", &self.results)
            .stdin(Stdio::null())
            .stdout(output.stream()?)
            .stderr(output.stream()?);
        let limits = Limits {
            time: timeout,
            time_once_stopped: Duration::ZERO,
        };
        let printed = RefCell::new(Vec::new());
        let stopped = || {
            // `finish` reports an error that persists.
            let _ = output.take(&mut *printed.borrow_mut());
            stopped()
        };
        let mut execution = match run_command(&mut shell, limits, &stopped) {
            Ok(CommandEnd::Ended(status)) => Execution {
                exit_status: status.code(),
                signal: status.signal(),
                ..Execution::default()
            },
            Ok(CommandEnd::TimedOut(_)) => Execution {
                timed_out: true,
                ..Execution::default()
            },
            Err(e) => Execution::failed(e),
        };
        let mut printed = printed.into_inner();
        output.finish(&mut printed)?;
        execution.last_line = last_line(&printed);
        self.keep(command, &printed)?;
        Ok(execution)
    }

    /// Appends what a command printed to the log of commands.
    fn keep(&self, command: &str, printed: &[u8]) -> io::Result<()> {
        let dir = plimsoll_results::RunDir::at(&self.results);
        let mut log = dir.commands_log().map_err(io::Error::other)?;
        writeln!(log, "== event: {command}")?;
        log.write_all(printed)?;
        writeln!(log, "== end of the event\n")
    }
}

/// Last non-blank line of an output.
fn last_line(printed: &[u8]) -> Option<String> {
    let tail = &printed[printed.len().saturating_sub(TAIL_BYTES)..];
    let tail = String::from_utf8_lossy(tail);
    let line = tail.lines().map(str::trim).rfind(|line| !line.is_empty());
    line.map(|line| line.chars().take(MAX_LINE_CHARS).collect())
}

impl ShellExecutor {
    /// An executor with these environment variables for every command, and a results directory for the output.
    pub fn new(facts: Vec<(&'static str, OsString)>, results: &Path) -> Self {
        Self {
            facts,
            results: results.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execute(dir: &Path, command: &str, stopped: &dyn Fn() -> bool) -> Execution {
        let facts = vec![("PLIMSOLL_WORKLOAD", "w".into())];
        ShellExecutor::new(facts, dir).execute(&event(command), stopped)
    }

    fn event(command: &str) -> EventSpec {
        format!("0s sh {command}").parse().unwrap()
    }

    #[test]
    fn the_end_of_a_command_and_its_last_line_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let run = |command: &str| execute(dir.path(), command, &|| false);
        let said = run("echo $PLIMSOLL_WORKLOAD $PLIMSOLL_WHEN; echo last >&2; echo; exit 3");
        assert_eq!(said.last_line.as_deref(), Some("last"));
        assert_eq!((said.exit_status, said.succeeded()), (Some(3), false));
        let quiet = run("true");
        assert_eq!(
            (quiet.last_line.as_deref(), quiet.succeeded()),
            (None, true)
        );
        assert_eq!(run("kill -9 $$").signal, Some(9));
        let long = run("head -c 10000 /dev/zero | tr '\\0' x")
            .last_line
            .unwrap();
        assert_eq!(long, "x".repeat(MAX_LINE_CHARS));
        // A background process may print after the command has ended.
        let left = run("(sleep 0.2; echo later) & echo begun");
        assert_eq!(left.last_line.as_deref(), Some("begun"));
        let log = std::fs::read_to_string(dir.path().join("commands.log")).unwrap();
        assert!(log.contains("exit 3\nw event\nlast\n\n== end"), "{log}");
    }

    #[test]
    fn a_command_that_is_stopped_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let ended = execute(dir.path(), "echo begun; sleep 1000", &|| {
            std::fs::read_dir(dir.path()).is_ok()
        });
        assert!(ended.timed_out && !ended.succeeded(), "{ended:?}");
        assert_eq!((ended.exit_status, ended.error), (None, None));
        let limited = "0s timeout 50ms sh sleep 1000".parse().unwrap();
        let limited = ShellExecutor::new(vec![], dir.path()).execute(&limited, &|| false);
        assert!(limited.timed_out, "{limited:?}");
        let gone = execute(&dir.path().join("gone"), "true", &|| false);
        assert!(gone.error.is_some(), "{gone:?}");
    }
}
