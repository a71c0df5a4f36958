//! Daemons of a test bed: started in the bed's namespaces, each with a log, and checked for readiness and failure.

use crate::BedError;
use crate::failure::failure;
use crate::namespace::command_line;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, waitpid,
};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Maximum time from the start of a daemon until it is ready: on a busy machine, ten times the time on an idle machine.
const READY_TIMEOUT: Duration = Duration::from_secs(90);

/// Maximum duration of a command that checks whether a daemon is ready.
const SUCCEEDS_TIMEOUT: Duration = Duration::from_secs(5);

/// Time between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A command line that can be started repeatedly.
#[derive(Debug, Clone)]
pub struct CommandLine {
    program: OsString,
    args: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    removed: Vec<OsString>,
    /// Bind mounts in a mount namespace of the command alone: source and mount point.
    private: Vec<(PathBuf, PathBuf)>,
    /// Whether the command's `/proc` shows the processes of the bed's PID namespace.
    has_own_proc: bool,
}

/// Bind-mounts pairs of directories, up to the argument `--`, and executes the remaining arguments.
const PRIVATE_SCRIPT: &str = r#"
while [ "$1" != -- ]; do mount --bind "$1" "$2"; shift 2; done
shift
exec "$@""#;

impl CommandLine {
    /// A program without arguments.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().into(),
            args: Vec::new(),
            variables: Vec::new(),
            removed: Vec::new(),
            private: Vec::new(),
            has_own_proc: false,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args
            .extend(args.into_iter().map(|a| a.as_ref().into()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let pair = (name.as_ref().into(), value.as_ref().into());
        self.variables.push(pair);
        self
    }

    /// Removes an environment variable.
    #[must_use]
    pub fn without_env(mut self, name: impl AsRef<OsStr>) -> Self {
        self.removed.push(name.as_ref().into());
        self
    }

    /// Bind-mounts the directory `ours` over `theirs` in a mount namespace of the command alone.
    #[must_use]
    pub fn private(mut self, ours: impl Into<PathBuf>, theirs: impl Into<PathBuf>) -> Self {
        self.private.push((ours.into(), theirs.into()));
        self
    }

    /// Gives the command a `/proc` of the bed's PID namespace, whose process numbers are the numbers that the command
    /// itself sees.
    #[must_use]
    pub fn own_proc(mut self) -> Self {
        self.has_own_proc = true;
        self
    }

    fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        if self.has_own_proc {
            words.extend(["unshare", "--mount", "--mount-proc"].map(Into::into));
        }
        if !self.private.is_empty() {
            words.extend(
                ["unshare", "--mount", "sh", "-e", "-c", PRIVATE_SCRIPT, "sh"].map(Into::into),
            );
            for (ours, theirs) in &self.private {
                words.extend([ours.into(), theirs.into()]);
            }
            words.push("--".into());
        }
        if !(self.variables.is_empty() && self.removed.is_empty()) {
            // `env` sets variables such as LD_PRELOAD for the daemon only, not for `unshare` and `sh`, which start the
            // daemon.
            words.push("env".into());
            for name in &self.removed {
                words.extend(["--unset".into(), name.clone()]);
            }
            for (name, value) in &self.variables {
                let mut pair = name.clone();
                pair.push("=");
                pair.push(value);
                words.push(pair);
            }
        }
        words.push(self.program.clone());
        words.extend(self.args.iter().cloned());
        words
    }

    /// The command, with the root directory as current directory and without standard input.
    pub(crate) fn command(&self) -> Command {
        let words = self.words();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        prepare(&mut command);
        command
    }

    /// Name of the program and arguments, for error messages.
    fn shown(&self) -> String {
        let program = Path::new(&self.program).file_name();
        let words = program
            .into_iter()
            .chain(self.args.iter().map(OsString::as_os_str));
        words
            .map(|w| w.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Runs the command to its end, for at most `limit`; returns its standard output.
    ///
    /// # Errors
    /// If the command fails, with the last lines of its output.
    pub fn run(&self, limit: Duration) -> Result<String, BedError> {
        let mut command = Command::new("timeout");
        let seconds = limit.as_secs_f64().to_string();
        let words = self.words();
        command.args(["--kill-after=1", &seconds]).args(words);
        prepare(&mut command);
        let output = command.output();
        let output = output.map_err(|e| BedError::failed(self.shown(), e))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        if output.status.code() == Some(124) {
            let why = format!("it takes more than {} s", limit.as_secs_f64());
            return Err(BedError::failed(self.shown(), why));
        }
        let texts =
            [&output.stdout, &output.stderr].map(|t| String::from_utf8_lossy(t).into_owned());
        let why = failure(Some(output.status), &[&texts[1], &texts[0]]).unwrap_or_default();
        Err(BedError::failed(self.shown(), why))
    }
}

/// Proxy variables of the user, which would redirect connections of daemons out of the bed.
const PROXIES: [&str; 4] = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

/// Sets the environment that all commands of a bed have.
fn prepare(command: &mut Command) {
    for name in PROXIES {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command
        .env("PATH", crate::needs::path_of_root())
        .current_dir("/")
        .stdin(Stdio::null());
}

/// Condition under which a daemon counts as ready.
#[derive(Debug, Clone)]
pub enum Ready {
    /// A daemon is ready when the daemon accepts TCP connections at all addresses of the list.
    Listening(Vec<SocketAddr>),
    /// A daemon is ready when the daemon has written the text to its log since its last start.
    Logged(&'static str),
    /// A daemon is ready when the command, such as a query of the daemon, exits with 0 within `SUCCEEDS_TIMEOUT`.
    Succeeds(CommandLine),
    /// A daemon is ready when a file system is mounted at the directory, such as the daemon's FUSE file system.
    Mounted(PathBuf),
}

/// A process that another daemon of the bed has started, and whose parent is now the bed's first process.
#[derive(Debug, Clone)]
pub struct ForeignProcess {
    /// PID file of the process, which the other daemon rewrites whenever it starts the process.
    pub pid_file: PathBuf,
    /// Argument that keeps the process in the foreground; the bed adds the argument when the bed itself restarts the
    /// process.
    pub in_foreground: &'static str,
    /// Command line of another daemon with the same private mounts as the process.
    pub like: CommandLine,
    /// Condition under which the process counts as ready.
    pub ready: Ready,
}

/// Daemon of a node. A kill ends the whole process group of a daemon that the keeper has started, and only the process
/// of any other daemon.
pub(crate) struct Daemon {
    line: CommandLine,
    ready: Ready,
    log: PathBuf,
    process: Option<Running>,
    /// PID file of a process that another daemon starts; `None` if the keeper starts the process.
    pid_file: Option<PathBuf>,
    /// Exit status of the last process.
    ended: Option<ExitStatus>,
    /// Length of the log in bytes at the last start.
    log_start: u64,
}

enum Running {
    /// Daemon that the keeper has started as its child process.
    Child(Child),
    /// Daemon that another daemon has started, and whose process number is from a PID file.
    Foreign(Pid),
}

impl Running {
    fn pid(&self) -> Pid {
        match self {
            Self::Child(child) => Pid::from_child(child),
            Self::Foreign(pid) => *pid,
        }
    }

    /// Exit status, if the process has ended.
    fn poll(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Child(child) => child.try_wait().ok().flatten(),
            Self::Foreign(pid) => foreign_end(waitpid(Some(*pid), WaitOptions::NOHANG)),
        }
    }

    /// Waits for the end of the process.
    fn wait(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Child(child) => child.wait().ok(),
            Self::Foreign(pid) => foreign_end(waitpid(Some(*pid), WaitOptions::empty())),
        }
    }

    fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        match self {
            Self::Child(child) => kill_process_group(Pid::from_child(child), signal),
            // Only the process gets the signal: its process group may contain other daemons.
            Self::Foreign(pid) => kill_process(*pid, signal),
        }
    }
}

/// Exit status of a process that was reparented to this process.
fn foreign_end(waited: rustix::io::Result<Option<(Pid, WaitStatus)>>) -> Option<ExitStatus> {
    match waited {
        Ok(ended) => ended.map(|(_, status)| ExitStatus::from_raw(status.as_raw())),
        // Another call has already waited for the process.
        Err(rustix::io::Errno::CHILD) => Some(ExitStatus::from_raw(0)),
        Err(_) => None,
    }
}

/// The running process whose number is in a file.
fn foreign_process(pid_file: &Path) -> Option<Pid> {
    let text = std::fs::read_to_string(pid_file).ok()?;
    let pid = text.trim().parse().ok().and_then(Pid::from_raw)?;
    foreign_end(waitpid(Some(pid), WaitOptions::NOHANG))
        .is_none()
        .then_some(pid)
}

impl Daemon {
    /// A daemon that another daemon has started; a restart uses its present command line.
    pub(crate) fn adopt(process: ForeignProcess, log: PathBuf) -> Result<Self, BedError> {
        let ForeignProcess {
            pid_file,
            in_foreground,
            like,
            ready,
        } = process;
        let failed =
            || BedError::failed(pid_file.display().to_string(), "its process does not run");
        let pid = foreign_process(&pid_file).ok_or_else(failed)?;
        let words = command_line(pid).ok_or_else(failed)?;
        let line = CommandLine {
            program: (&words[0]).into(),
            args: Vec::new(),
            ..like
        };
        Ok(Self {
            line: line.args(&words[1..]).arg(in_foreground),
            ready,
            log,
            process: Some(Running::Foreign(pid)),
            pid_file: Some(pid_file),
            ended: None,
            log_start: 0,
        })
    }

    /// Starts a daemon and returns before the daemon is ready.
    pub(crate) fn start(line: CommandLine, ready: Ready, log: PathBuf) -> Result<Self, BedError> {
        let mut this = Self {
            line,
            ready,
            log,
            process: None,
            pid_file: None,
            ended: None,
            log_start: 0,
        };
        this.spawn()?;
        Ok(this)
    }

    fn spawn(&mut self) -> Result<(), BedError> {
        let at = BedError::at(&self.log);
        if let Ready::Mounted(dir) = &self.ready {
            // The mount of a killed client remains, and answers no calls.
            while is_mount_point(dir) {
                unmount(dir, UnmountFlags::DETACH).map_err(|e| at(e.into()))?;
            }
        }
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(&at)?;
        self.log_start = log.metadata().map_err(&at)?.len();
        let mut command = self.line.command();
        command
            .stdout(log.try_clone().map_err(&at)?)
            .stderr(log)
            .process_group(0);
        let child = command
            .spawn()
            .map_err(|e| BedError::failed(self.line.shown(), e))?;
        self.process = Some(Running::Child(child));
        self.ended = None;
        Ok(())
    }

    /// Process number in the bed's PID namespace, if the daemon runs.
    pub(crate) fn pid(&mut self) -> Option<u32> {
        match self.poll() {
            Some(_) => None,
            None => self.known_pid(),
        }
    }

    /// Process number in the bed's PID namespace, unless the end of the process has been seen.
    pub(crate) fn known_pid(&self) -> Option<u32> {
        let pid = self.process.as_ref()?.pid();
        Some(pid.as_raw_nonzero().get().unsigned_abs())
    }

    /// Exit status, if the daemon has ended.
    pub(crate) fn poll(&mut self) -> Option<ExitStatus> {
        match &mut self.process {
            Some(process) => {
                if let Some(status) = process.poll() {
                    self.ended = Some(status);
                    self.process = None;
                }
            }
            None => self.find_again(),
        }
        self.ended
    }

    /// Adopts the process that another daemon has started in place of an ended process, if the PID file names a running
    /// process.
    fn find_again(&mut self) {
        let Some(pid_file) = &self.pid_file else {
            return;
        };
        let name = pid_file.file_name().unwrap_or_default().to_string_lossy();
        if let Some(pid) = foreign_process(pid_file)
            // A stale process number may belong to an unrelated process.
            && command_line(pid).is_some_and(|words| words.iter().any(|w| w.contains(&*name)))
        {
            self.process = Some(Running::Foreign(pid));
            self.ended = None;
        }
    }

    /// Sends a signal to the daemon's process group, or to the process that another daemon has started.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<(), BedError> {
        self.poll();
        let process = self.process.as_ref();
        let process = process.ok_or_else(|| BedError::Usage("it does not run".into()))?;
        let sent = process.signal(signal);
        sent.map_err(|e| BedError::failed(self.line.shown(), e))
    }

    /// Kills the daemon as [`signal`](Self::signal) does, with SIGKILL, and waits for the daemon's end; no effect on an
    /// ended daemon.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // The process may have ended already.
            let _ = process.signal(Signal::KILL);
            self.ended = process.wait();
        }
    }

    /// Kills and starts the daemon again, and waits until the daemon is ready.
    pub(crate) fn restart(&mut self, given_up: impl Fn() -> bool) -> Result<(), BedError> {
        self.poll();
        self.kill();
        self.spawn()?;
        self.wait(given_up)
    }

    /// The first MiB of the output since the last start.
    fn written(&self) -> String {
        self.log_text(false)
    }

    /// The first or the last MiB of the output since the last start.
    fn log_text(&self, is_end: bool) -> String {
        use std::os::unix::fs::FileExt;
        let Ok(file) = File::open(&self.log) else {
            return String::new();
        };
        let length = file
            .metadata()
            .map_or(0, |m| m.len())
            .saturating_sub(self.log_start);
        let shown = length.min(1 << 20);
        let begin = self.log_start + if is_end { length - shown } else { 0 };
        let mut bytes = vec![0; usize::try_from(shown).expect("a MiB fits")];
        let read = file.read_at(&mut bytes, begin).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    /// The last line of the output since the last start.
    pub(crate) fn last_line(&self) -> Option<String> {
        let written = self.log_text(true);
        let last = written.lines().rev().find(|l| !l.trim().is_empty());
        last.map(|l| l.trim().to_owned())
    }

    fn is_ready(&self) -> bool {
        match &self.ready {
            Ready::Listening(all) => all
                .iter()
                .all(|at| TcpStream::connect_timeout(at, Duration::from_millis(200)).is_ok()),
            Ready::Logged(text) => self.written().contains(text),
            Ready::Succeeds(line) => line.run(SUCCEEDS_TIMEOUT).is_ok(),
            Ready::Mounted(dir) => is_mount_point(dir),
        }
    }

    /// Waits until the daemon meets its condition of readiness.
    ///
    /// # Errors
    /// If the daemon ends before it is ready, with the end of its log; if [`READY_TIMEOUT`] passes; if `given_up`
    /// returns true.
    pub(crate) fn wait(&mut self, given_up: impl Fn() -> bool) -> Result<(), BedError> {
        let begun = Instant::now();
        let what = format!("starting `{}`", self.line.shown());
        loop {
            // The daemon's end is checked before the daemon's readiness, because another process may listen at the
            // daemon's port.
            let ended = self.poll();
            if let Some(why) = failure(ended, &[&self.written()]) {
                return Err(BedError::failed(what, why));
            }
            if self.is_ready() {
                return Ok(());
            }
            if given_up() {
                return Err(BedError::failed(what, "interrupted"));
            }
            if begun.elapsed() > READY_TIMEOUT {
                let last = self.last_line().unwrap_or_default();
                let why = format!("it takes more than {} s: {last}", READY_TIMEOUT.as_secs());
                return Err(BedError::failed(what, why));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Whether a directory is a mount point.
pub(crate) fn is_mount_point(dir: &Path) -> bool {
    let mounts = procfs::process::Process::myself().and_then(|p| p.mountinfo());
    mounts.is_ok_and(|all| all.into_iter().any(|m| m.mount_point == dir))
}

/// Sleeps between two checks of a condition.
pub(crate) fn pause() {
    std::thread::sleep(POLL_INTERVAL);
}
