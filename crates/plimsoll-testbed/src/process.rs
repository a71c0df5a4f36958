//! Processes that end with this one.

use crate::{BedError, PATIENCE, program};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks whether a process has ended.
const LOOK: Duration = Duration::from_millis(5);

/// A command that is killed when this process dies.
///
/// The system sends that signal when the *thread* dies that started the process; [`Process`] starts
/// it on a thread that lives as long. A program that changes its user loses it.
pub(crate) fn bound_command(program_path: impl AsRef<OsStr>) -> Result<Command, BedError> {
    let mut command = Command::new(program("setpriv", "util-linux")?);
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program_path);
    Ok(command)
}

/// Runs a command to its end; returns what it printed.
pub(crate) fn run(command: &mut Command) -> Result<String, BedError> {
    let what = format!("{command:?}");
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(|e| BedError::failed(&what, e))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&done.stderr);
            Err(BedError::failed(what, format!("{}, {said}", done.status)))
        }
    }
}

/// A process; it is killed when this is dropped.
pub(crate) struct Process {
    signals: Option<Sender<Signal>>,
    // Servers are shared by tests.
    ended: Mutex<Receiver<ExitStatus>>,
    keeper: Option<JoinHandle<()>>,
    /// Its standard input, if that was piped.
    pub(crate) input: Option<ChildStdin>,
    /// The first line of its standard output, if that was piped.
    pub(crate) said: Option<String>,
}

impl Process {
    /// Starts a process. Of a standard output that is piped one line is waited for.
    pub(crate) fn start(mut command: Command) -> Result<Self, BedError> {
        let what = format!("{command:?}");
        let (signals, of_signals) = channel();
        let (tell_started, started) = channel();
        let (tell_ended, ended) = channel();
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
        let keeper = keeper.map_err(|e| BedError::failed("a thread", e))?;
        let started = started.recv().map_err(|e| BedError::failed(&what, e))?;
        let (input, said) = started.map_err(|e| BedError::failed(&what, e))?;
        Ok(Self {
            signals: Some(signals),
            ended: Mutex::new(ended),
            keeper: Some(keeper),
            input,
            said,
        })
    }

    /// Sends it a signal; one that has ended by itself does not mind.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(signals) = &self.signals {
            let _ = signals.send(signal);
        }
    }

    /// Sends it a signal and waits for its end.
    pub(crate) fn end(self, signal: Signal) -> Result<ExitStatus, BedError> {
        self.signal(signal);
        // One that stands still takes no signal but SIGKILL before it goes on.
        self.signal(Signal::CONT);
        let ended = self.lock().recv_timeout(PATIENCE);
        ended.map_err(|_| BedError::failed("stopping a server", "it does not end"))
    }

    /// How it has ended, if it has.
    pub(crate) fn has_ended(&self) -> Option<ExitStatus> {
        self.lock().try_recv().ok()
    }

    fn lock(&self) -> MutexGuard<'_, Receiver<ExitStatus>> {
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

/// Passes signals on until the process has ended. The process is collected only here, so that its
/// number is its own as long as a signal may be sent to it.
fn keep(child: &mut Child, signals: &Receiver<Signal>) -> ExitStatus {
    let send = |child: &Child, signal| {
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // What has ended and is not collected takes signals too.
            let _ = kill_process(pid, signal);
        }
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status,
            Ok(None) => {}
            Err(_) => return ExitStatus::default(),
        }
        match signals.recv_timeout(LOOK) {
            Ok(signal) => send(child, signal),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                send(child, Signal::KILL);
                return child.wait().unwrap_or_default();
            }
        }
    }
}
