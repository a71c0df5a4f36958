//! Processes that end with this process.

use crate::{SERVER_TIMEOUT, TestServerError, program};
use plimsoll_testbed::failure::failure;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A command that is killed when this process dies.
///
/// The system sends the signal when the *thread* that started the process ends; [`Process`] starts the command on a
/// thread that lives as long as the process. A program that changes its user does not get the signal.
pub(crate) fn bound_command(program_path: impl AsRef<OsStr>) -> Result<Command, TestServerError> {
    let mut command = Command::new(program("setpriv", "util-linux")?);
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program_path);
    Ok(command)
}

/// Runs a command to its end; returns its standard output.
pub(crate) fn run(command: &mut Command) -> Result<String, TestServerError> {
    let what = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| TestServerError::failed(&what, e))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(TestServerError::failed(
        what,
        format!("{}, {errors}", output.status),
    ))
}

/// Waits until `ready` returns a value. Fails when `failure` returns a reason, or after [`SERVER_TIMEOUT`].
pub(crate) fn wait_until<T>(
    what: &str,
    mut ready: impl FnMut() -> Option<T>,
    failure: impl Fn() -> Option<String>,
) -> Result<T, TestServerError> {
    let begun = Instant::now();
    loop {
        if let Some(ready) = ready() {
            return Ok(ready);
        }
        if let Some(why) = failure() {
            return Err(TestServerError::failed(what, why));
        }
        if begun.elapsed() > SERVER_TIMEOUT {
            let why = format!("it takes more than {} s", SERVER_TIMEOUT.as_secs());
            return Err(TestServerError::failed(what, why));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// A process, which is killed when this value is dropped.
pub(crate) struct Process {
    signals: Option<Sender<Signal>>,
    // A mutex, because tests share servers.
    ended: Mutex<ExitState>,
    keeper: Option<JoinHandle<()>>,
    /// Standard error of the process, in memory.
    errors: File,
    /// Standard input of the process; `None` unless standard input is piped.
    pub(crate) input: Option<ChildStdin>,
    /// First line of the process's standard output; `None` unless standard output is piped.
    pub(crate) said: Option<String>,
}

/// Exit status of a server's process, which the keeper thread sends when the process has ended.
struct ExitState {
    incoming: Receiver<ExitStatus>,
    known: Option<ExitStatus>,
}

impl Process {
    /// Starts a process, and waits for the first line of its standard output if piped.
    pub(crate) fn start(mut command: Command) -> Result<Self, TestServerError> {
        let what = format!("{command:?}");
        let errors = memfd_create("errors", MemfdFlags::CLOEXEC).map(File::from);
        let errors = errors.map_err(|e| TestServerError::failed("a file in memory", e))?;
        let writer = errors.try_clone();
        command.stderr(writer.map_err(|e| TestServerError::failed("a file in memory", e))?);
        let (signals, of_signals) = channel();
        let (tell_started, started) = channel();
        let (tell_ended, incoming) = channel();
        let keeper = std::thread::Builder::new().name("test server".into());
        let keeper = keeper.spawn(move || {
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(e) => {
                    let _ = tell_started.send(Err(e));
                    return;
                }
            };
            let input = child.stdin.take();
            let said = child.stdout.take().map(|out| {
                let mut line = String::new();
                let _ = BufReader::new(out).read_line(&mut line);
                line
            });
            let _ = tell_started.send(Ok((input, said)));
            let status = keep(&mut child, &of_signals);
            let _ = tell_ended.send(status);
        });
        let keeper = keeper.map_err(|e| TestServerError::failed("a thread", e))?;
        let started = started
            .recv()
            .map_err(|e| TestServerError::failed(&what, e))?;
        let (input, said) = started.map_err(|e| TestServerError::failed(&what, e))?;
        Ok(Self {
            signals: Some(signals),
            ended: Mutex::new(ExitState {
                incoming,
                known: None,
            }),
            keeper: Some(keeper),
            errors,
            input,
            said,
        })
    }

    /// Sends a signal to the process, unless it has ended.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(signals) = &self.signals {
            let _ = signals.send(signal);
        }
    }

    /// Sends a signal to the process and waits for its end.
    pub(crate) fn end(self, signal: Signal) -> Result<ExitStatus, TestServerError> {
        self.signal(signal);
        // A process stopped by SIGSTOP handles no signal but SIGKILL until SIGCONT.
        self.signal(Signal::CONT);
        let mut ended = self.lock();
        if let Some(how) = ended.known {
            return Ok(how);
        }
        let status = ended.incoming.recv_timeout(SERVER_TIMEOUT);
        ended.known = status.ok();
        status.map_err(|_| TestServerError::failed("stopping a server", "it does not end"))
    }

    /// Exit status, if the process has ended.
    pub(crate) fn has_ended(&self) -> Option<ExitStatus> {
        let mut ended = self.lock();
        if ended.known.is_none() {
            ended.known = ended.incoming.try_recv().ok();
        }
        ended.known
    }

    /// The reason why the process will never be ready, if known: from its exit status, from its `log` since the start,
    /// or from its standard error.
    pub(crate) fn failure(&self, log: impl FnOnce() -> String) -> Option<String> {
        // The exit status is read before the log: if the process has ended, the log is complete.
        let ended = self.has_ended();
        failure(ended, &[&log(), &self.errors()])
    }

    /// Standard error of the process so far.
    pub(crate) fn errors(&self) -> String {
        // The process writes at the file's position, which must not change.
        let size = self.errors.metadata().map_or(0, |m| m.len());
        let mut bytes = vec![0; size as usize];
        let read = self.errors.read_exact_at(&mut bytes, 0);
        read.map_or_else(
            |e| e.to_string(),
            |()| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    fn lock(&self) -> MutexGuard<'_, ExitState> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signals = None;
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

/// Passes signals on until the process has ended. The exit status is collected only here, so the process number is not
/// reused while a signal may be sent.
fn keep(child: &mut Child, signals: &Receiver<Signal>) -> ExitStatus {
    let send = |child: &Child, signal| {
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // A process whose exit status is not yet collected takes signals too.
            let _ = kill_process(pid, signal);
        }
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status,
            Ok(None) => {}
            Err(_) => return ExitStatus::default(),
        }
        match signals.recv_timeout(POLL_INTERVAL) {
            Ok(signal) => send(child, signal),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                send(child, Signal::KILL);
                return child.wait().unwrap_or_default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::wait_for;
    use std::net::{Ipv4Addr, SocketAddr};

    /// The reason why no server listens at a port, for a script that ends or logs.
    fn why(script: &str, log: &str) -> String {
        let mut command = bound_command("sh").unwrap();
        command.args(["-c", script]).stdin(Stdio::null());
        let server = Process::start(command).unwrap();
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let waited = wait_for(nowhere, "a server", || server.failure(|| log.to_owned()));
        waited.unwrap_err().to_string()
    }

    #[test]
    fn one_that_ends_says_how_and_why() {
        let begin = "starting a server: it ended (exit status: 7)";
        assert_eq!(why("exit 7", ""), format!("{begin} and wrote nothing"));
        assert_eq!(why("exit 7", "one\n"), format!("{begin}: one"));
        let said = why("echo two >&2; exit 7", "one\n");
        assert_eq!(said, format!("{begin}: one\nIts log:\none\ntwo"));
        assert_eq!(why("echo two >&2; exit 7", ""), format!("{begin}: two"));
        let killed = why("kill -KILL $$", "");
        assert!(killed.contains("(signal: 9 (SIGKILL))"), "{killed}");
    }

    #[test]
    fn an_end_is_told_more_than_once() {
        let mut command = bound_command("sh").unwrap();
        command.args(["-c", "exit 7"]).stdin(Stdio::null());
        let server = Process::start(command).unwrap();
        while server.has_ended().is_none() {
            std::thread::sleep(POLL_INTERVAL);
        }
        assert_eq!(server.has_ended().unwrap().code(), Some(7));
        assert_eq!(server.end(Signal::TERM).unwrap().code(), Some(7));
    }
}
