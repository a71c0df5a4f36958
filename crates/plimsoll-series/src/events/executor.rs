//! Execution of the actions of timed events by a shell.

use super::{Action, EventSpec};
use crate::command_output::CommandOutput;
use plimsoll_engine::Limits;
use plimsoll_results::CommandResult;
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of bytes at the end of a command's output that are searched for the last line.
const TAIL_BYTES: usize = 4096;

/// Maximum length in characters of a command's last line in the results; the rest of a longer line is cut off.
const MAX_LINE_CHARS: usize = 200;

/// Result of an event's action, and the last line that the action's command printed (`None` if the end of the output is
/// blank).
pub type Execution = (CommandResult, Option<String>);

/// Executor of the actions of timed events: a shell, or a test. Each call of an executor blocks the event's thread
/// until the action ends.
pub trait EventExecutor: Send + Sync {
    /// Executes the action of an event; returns the result and the last line that a command printed. The action must
    /// end once `stopped` returns true, because the run has ended or was interrupted.
    fn execute(&self, event: &EventSpec, stopped: &dyn Fn() -> bool) -> Execution;
}

/// Executor that runs the commands of timed events in a shell, and appends the output of the commands to
/// `commands.log`.
pub struct ShellExecutor {
    /// Environment variables of every command: the facts that identify the run.
    pub facts: Vec<(&'static str, OsString)>,
    /// Results directory of the run, which contains `commands.log`.
    pub results: PathBuf,
}

impl EventExecutor for ShellExecutor {
    fn execute(&self, event: &EventSpec, stopped: &dyn Fn() -> bool) -> Execution {
        let Action::Command(command) = &event.action else {
            unreachable!("faults of real targets are refused before the run");
        };
        self.call(command, event.timeout(), stopped)
            .unwrap_or_else(|e| (CommandResult::failed(e), None))
    }
}

impl ShellExecutor {
    /// An executor that sets the environment variables `facts` for every command, and keeps output in the results
    /// directory `results`.
    pub fn new(facts: Vec<(&'static str, OsString)>, results: &Path) -> Self {
        Self {
            facts,
            results: results.to_owned(),
        }
    }

    fn call(
        &self,
        command: &str,
        timeout: Option<Duration>,
        stopped: &dyn Fn() -> bool,
    ) -> io::Result<Execution> {
        let output = CommandOutput::new(&self.results)?;
        let limits = Limits {
            time: timeout,
            time_once_stopped: Duration::ZERO,
        };
        let printed = RefCell::new(Vec::new());
        let stopped = || {
            // An error of `take` is ignored, because `CommandOutput::finish` reports a persistent error.
            let _ = output.take(&mut *printed.borrow_mut());
            stopped()
        };
        let when = [("PLIMSOLL_WHEN", "event".into())];
        let variables = self.facts.iter().cloned().chain(when);
        let end = output.of_shell(command, variables, &self.results, limits, &stopped)?;
        let mut printed = printed.into_inner();
        output.finish(&mut printed)?;
        self.keep(command, &printed)?;
        Ok((end, last_line(&printed)))
    }

    /// Appends the output of an event's command to `commands.log`.
    fn keep(&self, command: &str, printed: &[u8]) -> io::Result<()> {
        let dir = plimsoll_results::RunDir::at(&self.results);
        let mut log = dir.commands_log().map_err(io::Error::other)?;
        writeln!(log, "== event: {command}")?;
        log.write_all(printed)?;
        writeln!(log, "== end of the event\n")
    }
}

/// Last non-blank line of a command's output, without surrounding blanks; `None` if the end of the output is blank.
fn last_line(printed: &[u8]) -> Option<String> {
    let tail = &printed[printed.len().saturating_sub(TAIL_BYTES)..];
    let tail = String::from_utf8_lossy(tail);
    let line = tail.lines().map(str::trim).rfind(|line| !line.is_empty());
    line.map(|line| line.chars().take(MAX_LINE_CHARS).collect())
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
        assert_eq!(said.1.as_deref(), Some("last"));
        assert_eq!((said.0.exit_status, said.0.succeeded()), (Some(3), false));
        let quiet = run("true");
        assert_eq!((quiet.1.as_deref(), quiet.0.succeeded()), (None, true));
        assert_eq!(run("kill -9 $$").0.signal, Some(9));
        let long = run("head -c 10000 /dev/zero | tr '\\0' x").1.unwrap();
        assert_eq!(long, "x".repeat(MAX_LINE_CHARS));
        // A background process of the command may print after the command has ended; the last line is then the
        // command's.
        let left = run("(sleep 0.2; echo later) & echo begun");
        assert_eq!(left.1.as_deref(), Some("begun"));
        let log = std::fs::read_to_string(dir.path().join("commands.log")).unwrap();
        assert!(log.contains("exit 3\nw event\nlast\n\n== end"), "{log}");
    }

    #[test]
    fn a_command_that_is_stopped_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (ended, _) = execute(dir.path(), "echo begun; sleep 1000", &|| {
            std::fs::read_dir(dir.path()).is_ok()
        });
        assert!(ended.timed_out && !ended.succeeded(), "{ended:?}");
        assert_eq!((ended.exit_status, ended.error), (None, None));
        let limited = "0s timeout 50ms sh sleep 1000".parse().unwrap();
        let (limited, _) = ShellExecutor::new(vec![], dir.path()).execute(&limited, &|| false);
        assert!(limited.timed_out, "{limited:?}");
        let (gone, _) = execute(&dir.path().join("gone"), "true", &|| false);
        assert!(gone.error.is_some(), "{gone:?}");
    }
}
