//! Commands of the user that run beside a run, to their end or to a time limit.
//!
//! A command runs in a background process group, in which an access to the terminal would block for ever. The command
//! and its descendants are ended at the time limit, when the run is stopped, and when the command accesses the
//! terminal. The command and its descendants are killed when Plimsoll exits at once.

use super::EngineError;
use crate::sync::lock;
use plimsoll_measure::Outcome;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Interval of the checks of a running command.
const COMMAND_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum time that a command may take to end after SIGTERM.
const COMMAND_KILL_DELAY: Duration = Duration::from_secs(2);

/// Time limits of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum time since the command's start; `None` for no limit.
    pub time: Option<Duration>,
    /// Maximum time since the command's start once the run is to stop.
    pub time_once_stopped: Duration,
}

/// Result of a command that was started: its exit status, or the time limit at which the command was ended.
#[derive(Debug)]
pub enum CommandEnd {
    /// Exit status of a command that ended before the time limit.
    Ended(ExitStatus),
    /// Time limit at which a command that still ran was ended.
    TimedOut(Duration),
}

/// The error of a command that accesses the terminal, for example to ask for a password.
const WANTS_TERMINAL: &str = "it tried to use the terminal, which belongs to the run";

/// Process groups of the running commands.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// The process group of a command, in [`RUNNING`] while the command runs.
struct Running(i32);

impl Running {
    fn new(group: i32) -> Self {
        lock(&RUNNING).insert(group);
        Self(group)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&RUNNING).remove(&self.0);
    }
}

/// Kills the running commands and their descendants, for a program that is about to exit.
pub fn kill_commands() {
    for group in lock(&RUNNING).iter().filter_map(|g| Pid::from_raw(*g)) {
        // The command may have ended already.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}

/// Runs a command to its end or to a limit. At the limit, the command and its descendants receive SIGTERM, and at most
/// 2 s later SIGKILL.
///
/// # Errors
/// If the command cannot be started or waited for, or if the command accesses the terminal, in which case the command
/// is ended.
pub fn run_command(
    command: &mut Command,
    limits: Limits,
    stopped: &dyn Fn() -> bool,
) -> io::Result<CommandEnd> {
    // A separate process group: Ctrl-C on the terminal stops the run, which then ends the command.
    let mut child = command.process_group(0).spawn()?;
    let _running = Running::new(child.id() as i32);
    let begun = Instant::now();
    loop {
        if wants_terminal(&child) {
            end(&mut child)?;
            return Err(io::Error::other(WANTS_TERMINAL));
        }
        if let Some(status) = child.try_wait()? {
            return Ok(CommandEnd::Ended(status));
        }
        let limit = match stopped() {
            true => {
                let least = limits.time.unwrap_or(Duration::MAX);
                Some(limits.time_once_stopped.min(least))
            }
            false => limits.time,
        };
        if limit.is_some_and(|limit| begun.elapsed() >= limit) {
            end(&mut child)?;
            return Ok(CommandEnd::TimedOut(limit.unwrap_or_default()));
        }
        std::thread::sleep(COMMAND_POLL_INTERVAL);
    }
}

/// Whether the system has stopped a command because the command reads from the terminal or sets the terminal, which
/// background processes may not do.
fn wants_terminal(child: &Child) -> bool {
    let Some(pid) = Pid::from_raw(child.id() as i32) else {
        return false;
    };
    let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(pid), look).ok().flatten();
    let signal = status.and_then(|s| s.stopping_signal());
    let of_terminal = [Signal::TTIN, Signal::TTOU].map(Signal::as_raw);
    signal.is_some_and(|s| of_terminal.contains(&s))
}

/// Ends a command and its descendants by SIGTERM, and by SIGKILL once the command has ended, at the latest after
/// [`COMMAND_KILL_DELAY`].
fn end(child: &mut Child) -> io::Result<()> {
    let group = Pid::from_raw(child.id() as i32);
    let signal = |signal| {
        if let Some(group) = group {
            // The command may have ended already.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    };
    signal(Signal::TERM);
    // A stopped process receives SIGTERM when the process continues.
    signal(Signal::CONT);
    let begun = Instant::now();
    while begun.elapsed() < COMMAND_KILL_DELAY && child.try_wait()?.is_none() {
        std::thread::sleep(COMMAND_POLL_INTERVAL);
    }
    // Descendants may outlive the command.
    signal(Signal::KILL);
    child.wait().map(drop)
}

/// Runs a shell command of the workload; the front end has allowed shell commands. When the run is stopped, the command
/// and its descendants are ended too. A command that fails or is ended becomes a note of the outcome.
pub(super) fn run_shell(
    command: &str,
    stopped: &dyn Fn() -> bool,
    outcome: &mut Outcome,
) -> Result<(), EngineError> {
    let limits = Limits {
        time: None,
        time_once_stopped: Duration::ZERO,
    };
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(command);
    let ended = run_command(&mut shell, limits, stopped)
        .map_err(|e| EngineError::Failed(format!("cannot run `{command}`: {e}")))?;
    match ended {
        CommandEnd::Ended(status) if status.success() => {}
        CommandEnd::Ended(status) => {
            let note = format!("`{command}` ended with {status}");
            outcome.notes.push(note);
        }
        CommandEnd::TimedOut(_) => {
            let note = format!("`{command}` was ended with the run");
            outcome.notes.push(note);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_wants_the_terminal_is_ended() {
        let script = "kill -TTIN $$; exit 0";
        let ended = run_command(&mut shell(script), limits(None, 0), &|| false);
        assert_eq!(ended.unwrap_err().to_string(), WANTS_TERMINAL);
    }

    /// A stopped process receives a signal to end when the process continues.
    #[test]
    fn a_command_that_wants_the_terminal_can_tidy_up() {
        let dir = tempfile::tempdir().unwrap();
        let tidy = dir.path().join("tidy");
        let script = format!("trap 'echo > {}; exit' TERM; kill -TTIN $$", tidy.display());
        assert!(run_command(&mut shell(&script), limits(None, 0), &|| false).is_err());
        assert!(tidy.exists());
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn limits(time: Option<u64>, once_stopped_ms: u64) -> Limits {
        Limits {
            time: time.map(Duration::from_millis),
            time_once_stopped: Duration::from_millis(once_stopped_ms),
        }
    }

    #[test]
    fn a_command_ends_by_itself() {
        let ended = run_command(&mut shell("exit 3"), limits(None, 0), &|| false).unwrap();
        assert!(matches!(ended, CommandEnd::Ended(s) if s.code() == Some(3)));
        assert!(run_command(&mut Command::new("/nowhere/x"), limits(None, 0), &|| false).is_err());
    }

    /// Whether a process is gone, or is a zombie.
    fn is_gone(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.map_or(true, |s| s.contains(") Z "))
    }

    #[test]
    fn a_command_is_ended_with_what_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let named = dir.path().join("named");
        // The command and its descendant both ignore SIGTERM.
        let script = format!(
            "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > {0}; mv {0} {1}; sleep 1000' & \
             while true; do sleep 1; done",
            named.display(),
            pid.display(),
        );
        let begun = || pid.exists();
        let ended = run_command(&mut shell(&script), limits(None, 0), &begun).unwrap();
        assert!(matches!(ended, CommandEnd::TimedOut(t) if t == Duration::ZERO));
        let pid = std::fs::read_to_string(pid).unwrap();
        while !is_gone(&pid) {
            std::thread::sleep(COMMAND_POLL_INTERVAL);
        }
    }

    #[test]
    fn time_that_is_up_ends_a_command() {
        let ended = run_command(&mut shell("sleep 1000"), limits(Some(50), 0), &|| false).unwrap();
        assert!(matches!(ended, CommandEnd::TimedOut(t) if t == Duration::from_millis(50)));
        // A stop never lengthens the time limit.
        let ended = run_command(&mut shell("sleep 1000"), limits(Some(50), 60_000), &|| true);
        assert!(
            matches!(ended.unwrap(), CommandEnd::TimedOut(t) if t == Duration::from_millis(50))
        );
    }
}
