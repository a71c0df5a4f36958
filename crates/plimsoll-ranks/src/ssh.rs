//! The program on another machine, started through the user's `ssh`.

use crate::ConnectError;
use crate::handshake::{Assignment, GREETING, Hello, MAX_HELLO, PROTOCOL};
use crate::hosts::{Host, HostGroup, ProgramCopy};
use crate::keepalive::Loss;
use crate::link::Incoming;
use crate::local::{EXIT_STATUS_TIMEOUT, wait_for};
use crate::member::RANK_COMMAND;
use plimsoll_runtime::sync::lock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time for starting the program on a host, excluding the transfer of the program.
const START_TIMEOUT: Duration = Duration::from_secs(9);
/// `ConnectTimeout` of `ssh` in seconds; `ssh` gives up before the start timeout.
const CONNECT_TIMEOUT_S: u32 = 8;
/// Maximum time in seconds for receiving the program on a host, in case the connection is cut.
const RECEIVE_TIMEOUT_S: u32 = 900;
/// Maximum time without progress while the program is sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(9);
/// Maximum time from the last sent byte until the program has arrived over a slow connection, is checked and runs.
const COPY_START_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time for reading the rest of a login shell's banner.
const BANNER_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum time for reading the last lines of an `ssh` that has ended.
const LAST_LINES_TIMEOUT: Duration = Duration::from_millis(300);
/// Maximum time for `ssh` to end after the program has ended.
const SSH_END_TIMEOUT: Duration = Duration::from_secs(3);
/// Number of lines of standard error that are kept.
const KEPT_LINES: usize = 20;
/// Maximum length of a kept line of standard error; the rest counts as another line.
const MAX_LINE_BYTES: u64 = 4096;
/// Line by which the script on a host announces that the script now reads the bytes of the program.
const READY: &str = "plimsoll-copy ready";
/// Number of checksum digits in the directory name of a program that was sent.
pub const COPY_ID_DIGITS: usize = 16;
/// Number of lines of standard error in an error message.
const SHOWN_LINES: usize = 3;
/// Exit code of `ssh` for its own failures.
const SSH_FAILURE: i32 = 255;
/// Exit code of a shell that cannot find a program.
const NOT_FOUND: i32 = 127;
/// Offset that shells add to a signal number in an exit code.
const SIGNAL_BASE: i32 = 128;

/// Checks that the command that connects to hosts exists; `ssh` is shell text.
///
/// # Errors
/// The command is not found.
pub fn check_command(ssh: &str) -> Result<(), ConnectError> {
    let script = format!("first() {{ command -v -- \"$1\"; }}; first {ssh}");
    let found = Command::new("/bin/sh")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .output();
    match found {
        Ok(output) if output.status.success() => Ok(()),
        Ok(_) => Err(ConnectError::usage(format!(
            "`{ssh}`, the command that connects to hosts, was not found: install it (Debian: openssh-client), \
             or name another command in PLIMSOLL_SSH or with `ssh=` in a hosts file"
        ))),
        Err(e) => Err(ConnectError::failed(format!("cannot start /bin/sh: {e}"))),
    }
}

/// The program on a host, and the `ssh` process that connects to the host.
pub struct Remote {
    name: String,
    program: String,
    child: Child,
    /// Standard input and output of the program on the host.
    socket: UnixStream,
    stderr: StderrTail,
}

impl Remote {
    /// Starts `ssh` in a separate process group: a terminal interrupt must reach only this process, which ends the
    /// other processes in order.
    pub fn start(group: &HostGroup, host: &Host) -> Result<Self, String> {
        let failed = |e: io::Error| format!("host {}: cannot start ssh: {e}", host.name);
        let (socket, theirs) = UnixStream::pair().map_err(failed)?;
        let theirs = OwnedFd::from(theirs);
        let mut command = Command::new("/bin/sh");
        // The command may have options and quotes, like `--rsh` of rsync.
        command.args(["-c", &format!("exec {} \"$@\"", group.ssh), "ssh"]);
        command.args(["-T", "-o", "BatchMode=yes"]);
        command.args(["-o", &format!("ConnectTimeout={CONNECT_TIMEOUT_S}")]);
        command.args(["-o", "ServerAliveInterval=3", "-o", "ServerAliveCountMax=2"]);
        if let Some(port) = host.port {
            command.args(["-p", &port.to_string()]);
        }
        command.args(["--", &host.destination]);
        command.arg(remote_command(&host.program, group.copy.as_ref()));
        let mut child = command
            .stdin(theirs.try_clone().map_err(failed)?)
            .stdout(theirs)
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let stderr = child.stderr.take().expect("standard error is a pipe");
        Ok(Self {
            name: host.name.clone(),
            program: host.program.clone(),
            child,
            socket,
            stderr: StderrTail::read(stderr),
        })
    }

    /// Sends the program if required, and reads the first line of the running program.
    pub fn greet(&mut self, group: &HostGroup) -> Result<(), String> {
        if let Some(copy) = &group.copy {
            self.read_line(READY, START_TIMEOUT)?;
            self.send_program(copy)?;
        }
        let timeout = match group.copy {
            // The host still has to receive and check the program.
            Some(_) => COPY_START_TIMEOUT,
            None => START_TIMEOUT,
        };
        let hello = self.read_hello(timeout)?;
        let Self { name, .. } = self;
        if hello.version != group.version {
            return Err(format!(
                "host {name}: plimsoll there is version {}, and this one is {}: install the same \
                 version there, or write `copy-program=yes` into a hosts file, which sends this program",
                hello.version, group.version
            ));
        }
        if hello.protocol != PROTOCOL {
            return Err(format!(
                "host {name}: plimsoll there has version {} of the ranks' protocol, and this one has \
                 {PROTOCOL}: install the same version there, or write `copy-program=yes` into a hosts file, \
                 which sends this program",
                hello.protocol
            ));
        }
        match &group.copy {
            Some(copy) if hello.checksum.as_ref() != Some(&copy.checksum) => Err(format!(
                "host {name}: the program that arrived there is not the one that was sent: its SHA-256 is \
                 {} and not {}",
                hello.checksum.as_deref().unwrap_or("unknown"),
                copy.checksum
            )),
            _ => Ok(()),
        }
    }

    /// Sends the assignment to the program.
    pub fn assign(&mut self, assignment: &Assignment) -> Result<(), String> {
        let sent = crate::member::send_assignment(&self.socket, assignment);
        sent.map_err(|_| self.early_end())
    }

    /// Duplicates the descriptor of the program's standard input and output.
    pub fn socket(&self) -> io::Result<UnixStream> {
        self.socket.try_clone()
    }

    fn send_program(&mut self, copy: &ProgramCopy) -> Result<(), String> {
        let timeout = self.socket.set_write_timeout(Some(SEND_TIMEOUT));
        timeout.map_err(|e| format!("host {}: {e}", self.name))?;
        match self.socket.write_all(&copy.bytes) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.kill();
                Err(format!(
                    "host {}: no part of the program could be sent for {} s",
                    self.name,
                    SEND_TIMEOUT.as_secs()
                ))
            }
            Err(_) => Err(self.early_end()),
        }
    }

    fn read_hello(&mut self, timeout: Duration) -> Result<Hello, String> {
        let line = self.read_line(GREETING, timeout)?;
        Hello::decode(&line).ok_or_else(|| self.banner(line.into_bytes()))
    }

    /// Reads a line that starts with `begin`.
    ///
    /// # Errors
    /// The line starts differently, or does not arrive in time.
    fn read_line(&mut self, begin: &str, timeout: Duration) -> Result<String, String> {
        let deadline = Instant::now() + timeout;
        let mut bytes = Vec::new();
        loop {
            let len = bytes.len().min(begin.len());
            if bytes[..len] != begin.as_bytes()[..len] {
                return Err(self.banner(bytes));
            }
            if let Some(end) = bytes.iter().position(|b| *b == b'\n') {
                return Ok(String::from_utf8_lossy(&bytes[..end]).into_owned());
            }
            if bytes.len() > MAX_HELLO {
                return Err(self.banner(bytes));
            }
            match self.read_until(deadline, &mut bytes) {
                Ok(true) => {}
                Ok(false) => return Err(self.early_end()),
                Err(()) => return Err(self.too_slow(timeout)),
            }
        }
    }

    /// Appends available data to `bytes`; returns `false` at the end of the stream.
    ///
    /// # Errors
    /// No data arrived before the deadline.
    fn read_until(&self, deadline: Instant, bytes: &mut Vec<u8>) -> Result<bool, ()> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).expect("the limit is short");
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Err(()),
            Ok(_) => {}
            // An error of poll(2), such as an interruption by a signal, is no end of the stream: the caller waits for
            // the remaining time.
            Err(_) => return Ok(true),
        }
        let mut chunk = [0; MAX_HELLO];
        match (&self.socket).read(&mut chunk) {
            Ok(0) | Err(_) => Ok(false),
            Ok(n) => {
                bytes.extend(&chunk[..n]);
                Ok(true)
            }
        }
    }

    /// Error for unexpected text before the program's first line.
    fn banner(&self, mut bytes: Vec<u8>) -> String {
        let deadline = Instant::now() + BANNER_TIMEOUT;
        while bytes.len() < MAX_HELLO && !bytes.contains(&b'\n') {
            if !matches!(self.read_until(deadline, &mut bytes), Ok(true)) {
                break;
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
        format!(
            "host {}: it printed `{}` before the program started: a login shell must print nothing to \
             standard output unless it is interactive",
            self.name,
            lines.next().unwrap_or_default()
        )
    }

    fn too_slow(&mut self, timeout: Duration) -> String {
        self.kill();
        format!(
            "host {}: plimsoll did not start there within {} s{}",
            self.name,
            timeout.as_secs(),
            self.stderr.suffix(SHOWN_LINES)
        )
    }

    /// Error for an `ssh` that ended before the program's first line.
    fn early_end(&mut self) -> String {
        let status = wait_for(&mut self.child, EXIT_STATUS_TIMEOUT);
        self.stderr.await_end();
        let (name, last) = (&self.name, self.stderr.suffix(SHOWN_LINES));
        match status.and_then(|s| s.code()) {
            Some(SSH_FAILURE) => {
                let last = self.stderr.suffix(1);
                format!("host {name}: cannot be reached by ssh{last}")
            }
            Some(NOT_FOUND) => format!(
                "host {name}: `{}` was not found there: install plimsoll there, name the program with \
                 `program=` in a hosts file, or write `copy-program=yes` into a hosts file, which sends this program",
                self.program
            ),
            Some(0) => format!(
                "host {name}: the login shell there ended without starting the program{last}"
            ),
            code => {
                let how = code.map_or("ended".into(), end_of);
                format!("host {name}: the program there {how}{last}")
            }
        }
    }

    /// Reason for the loss of the connection: end of the program, or of the connection.
    pub fn close_reason(&mut self, loss: Option<Loss>) -> Incoming {
        let name = self.name.clone();
        if loss == Some(Loss::Silent) {
            // `ssh` itself notices a dead connection much later than the timeout for silence.
            self.kill();
            let seconds = crate::keepalive::SILENCE_TIMEOUT.as_secs();
            return Incoming::Lost(format!(
                "host {name}: nothing was heard from it for {seconds} s: the network is cut, or the \
                 machine is down"
            ));
        }
        let status = wait_for(&mut self.child, EXIT_STATUS_TIMEOUT);
        self.stderr.await_end();
        let last = self.stderr.suffix(SHOWN_LINES);
        match status.and_then(|s| s.code()) {
            Some(SSH_FAILURE) => {
                let last = self.stderr.suffix(1);
                Incoming::Lost(format!("host {name}: the connection was lost{last}"))
            }
            Some(code) => {
                let how = end_of(code);
                Incoming::Gone(format!("host {name}: {how} before the others{last}"))
            }
            None => {
                let signal = status.and_then(|s| s.signal());
                let how = match signal {
                    Some(signal) => format!("its ssh died (signal {signal})"),
                    None => "closed its connection".into(),
                };
                Incoming::Lost(format!("host {name}: {how}{last}"))
            }
        }
    }

    /// Closes standard input and output, which tells `ssh` to end.
    pub fn close(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Waits until [`SSH_END_TIMEOUT`] after `begin` for the `ssh` process to end, then kills the process.
    pub fn end(&mut self, begin: Instant) {
        let left = SSH_END_TIMEOUT.saturating_sub(begin.elapsed());
        if wait_for(&mut self.child, left).is_none() {
            self.kill();
        }
    }

    /// Reaps `ssh`, which has ended or was killed.
    pub fn reap(&mut self) {
        let _ = self.child.wait();
    }

    /// Ends all `ssh` processes within a common [`SSH_END_TIMEOUT`].
    pub fn end_all(remotes: &mut [Self]) {
        remotes.iter().for_each(Self::close);
        let begin = Instant::now();
        remotes.iter_mut().for_each(|remote| remote.end(begin));
        remotes.iter_mut().for_each(Self::reap);
    }

    /// Kills the process group of the `ssh` process, with all processes that `ssh` started on this machine, such as a
    /// proxy command.
    fn kill(&self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let group = group.expect("a process has an identifier");
        // Killing fails if the group has just ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            Self::end_all(std::slice::from_mut(self));
        }
    }
}

/// Verb phrase for the end of a program, from the exit code of its shell.
fn end_of(code: i32) -> String {
    match code - SIGNAL_BASE {
        signal @ 1..=64 => format!("died (signal {signal})"),
        _ => format!("ended with exit code {code}"),
    }
}

/// Command for the login shell of a host: one word for `sh`, which works in every login shell. The `sh` stays alive, so
/// that its exit code distinguishes a killed program from a lost connection.
fn remote_command(program: &str, copy: Option<&ProgramCopy>) -> String {
    let script = match copy {
        None => format!(
            "PATH=\"$PATH:$HOME/.local/bin:$HOME/.cargo/bin\"; {} {RANK_COMMAND}; exit $?",
            quoted(program)
        ),
        // The running program removes itself; the trap covers a program that never runs. The program is sent only to
        // hosts that reach the `echo`.
        Some(copy) => format!(
            "d=$(mktemp -d \"${{TMPDIR:-/tmp}}/plimsoll-{id}-XXXXXXXX\") || exit 1; \
             trap 'rm -rf \"$d\"' EXIT; trap 'exit 1' HUP INT TERM; echo '{READY}'; \
             timeout {RECEIVE_TIMEOUT_S} head -c {length} >\"$d/plimsoll\" && \
             [ \"$(wc -c <\"$d/plimsoll\")\" -eq {length} ] && chmod 700 \"$d/plimsoll\" && \
             \"$d/plimsoll\" {RANK_COMMAND} --copied {id}; exit $?",
            id = copy.id(),
            length = copy.bytes.len()
        ),
    };
    format!("exec /bin/sh -c {}", quoted(&script))
}

/// Quotes a word for any login shell. In single quotes, a backslash before an apostrophe is literal in POSIX shells and
/// an escape in fish, so the result has no backslash before an apostrophe.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r#"'"'"'"#))
}

/// The last lines of a program's standard error.
struct StderrTail {
    lines: Arc<Mutex<VecDeque<String>>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl StderrTail {
    fn read(stderr: ChildStderr) -> Self {
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let kept = lines.clone();
        let read = move || {
            let mut stderr = BufReader::new(stderr);
            let mut line = Vec::new();
            while (&mut stderr)
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line)
                .is_ok_and(|n| n > 0)
            {
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                line.clear();
                if !text.is_empty() {
                    let mut kept = lock(&kept);
                    kept.push_back(text);
                    if kept.len() > KEPT_LINES {
                        kept.pop_front();
                    }
                }
            }
        };
        let reader = thread::Builder::new().name("stderr".into()).spawn(read);
        Self {
            lines,
            reader: reader.ok(),
        }
    }

    /// Waits for the end of the program's standard error, at most for [`LAST_LINES_TIMEOUT`]: a process that `ssh`
    /// leaves behind (ControlPersist) keeps the standard error open.
    fn await_end(&self) {
        let begin = Instant::now();
        let reader = self.reader.as_ref();
        while reader.is_some_and(|r| !r.is_finished()) && begin.elapsed() < LAST_LINES_TIMEOUT {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The last `count` lines of the program's standard error as the end of a message, after `: `; empty if the program
    /// wrote no lines.
    fn suffix(&self, count: usize) -> String {
        let lines = lock(&self.lines);
        let from = lines.len().saturating_sub(count);
        let last: Vec<&str> = lines.iter().skip(from).map(String::as_str).collect();
        match last.as_slice() {
            [] => String::new(),
            last => format!(": {}", last.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests;
