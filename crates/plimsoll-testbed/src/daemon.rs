//! Daemons of a test bed: started in the bed's namespaces, with a log each, and known to be ready or
//! to have failed.

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

/// Maximum time in which a daemon becomes ready. On a busy machine this takes ten times as long as on
/// an idle one.
const READY_TIMEOUT: Duration = Duration::from_secs(90);

/// Maximum time of a command that says whether a daemon is ready.
const SUCCEEDS_TIMEOUT: Duration = Duration::from_secs(5);

/// Time between two checks of what is waited for.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A command that can be started again.
#[derive(Debug, Clone)]
pub struct CommandLine {
    program: OsString,
    args: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    removed: Vec<OsString>,
    /// Directories in place of others, that only this command sees.
    private: Vec<(PathBuf, PathBuf)>,
    /// Whether `/proc` is that of the bed's processes.
    has_own_proc: bool,
}

/// Mounts pairs of directories over each other until `--`, and executes the rest.
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

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let pair = (name.as_ref().into(), value.as_ref().into());
        self.variables.push(pair);
        self
    }

    /// Removes a variable from its environment.
    #[must_use]
    pub fn without_env(mut self, name: impl AsRef<OsStr>) -> Self {
        self.removed.push(name.as_ref().into());
        self
    }

    /// Puts the directory `ours` in place of `theirs`, which only this command sees.
    #[must_use]
    pub fn private(mut self, ours: impl Into<PathBuf>, theirs: impl Into<PathBuf>) -> Self {
        self.private.push((ours.into(), theirs.into()));
        self
    }

    /// Shows this command the bed's processes in `/proc`, by the numbers that they have there.
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
            // Variables such as LD_PRELOAD are kept away from the programs before it.
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

    /// The command, without input, in the root directory.
    pub(crate) fn command(&self) -> Command {
        let words = self.words();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        prepare(&mut command);
        command
    }

    /// Its text, for errors.
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

    /// Runs it to its end, at most this long; returns its standard output.
    ///
    /// # Errors
    /// If it fails, with the last lines of its output.
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

/// Variables of the user that would send connections of daemons out of the bed.
const PROXIES: [&str; 4] = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

/// Gives a command the environment of all commands of a bed.
fn prepare(command: &mut Command) {
    for name in PROXIES {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command
        .env("PATH", crate::needs::path_of_root())
        .current_dir("/")
        .stdin(Stdio::null());
}

/// When a daemon is ready.
#[derive(Debug, Clone)]
pub enum Ready {
    /// It accepts connections at all of these.
    Listening(Vec<SocketAddr>),
    /// Its log has this text since it was started.
    Logged(&'static str),
    /// This command succeeds, each time within [`SUCCEEDS_TIMEOUT`].
    Succeeds(CommandLine),
    /// Something is mounted at this directory.
    Mounted(PathBuf),
}

/// A process that another daemon of the bed has started and left to the first process of the bed.
#[derive(Debug, Clone)]
pub struct ForeignProcess {
    /// The file with its number, also when the other daemon starts it once more.
    pub pid_file: PathBuf,
    /// What is added to its command line so that it stays in the foreground when it is started here.
    pub in_foreground: &'static str,
    /// A command that sees the same directories.
    pub like: CommandLine,
    /// When it is ready.
    pub ready: Ready,
}

/// A daemon, which is killed with its process group.
pub(crate) struct Daemon {
    line: CommandLine,
    ready: Ready,
    log: PathBuf,
    process: Option<Running>,
    /// The file with the number of its process when another daemon starts it.
    pid_file: Option<PathBuf>,
    /// How it ended.
    ended: Option<ExitStatus>,
    /// Length of the log when it was started.
    log_start: u64,
}

/// A process of a daemon.
enum Running {
    /// One that was started here.
    Child(Child),
    /// One that another daemon has started.
    Foreign(Pid),
}

impl Running {
    fn pid(&self) -> Pid {
        match self {
            Self::Child(child) => Pid::from_child(child),
            Self::Foreign(pid) => *pid,
        }
    }

    /// How it ended, if it has.
    fn poll(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Child(child) => child.try_wait().ok().flatten(),
            Self::Foreign(pid) => foreign_end(waitpid(Some(*pid), WaitOptions::NOHANG)),
        }
    }

    /// Waits for its end.
    fn wait(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Child(child) => child.wait().ok(),
            Self::Foreign(pid) => foreign_end(waitpid(Some(*pid), WaitOptions::empty())),
        }
    }

    fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        match self {
            Self::Child(child) => kill_process_group(Pid::from_child(child), signal),
            // Whose group it is in is not known.
            Self::Foreign(pid) => kill_process(*pid, signal),
        }
    }
}

/// The end of a process that became a child of this one.
fn foreign_end(waited: rustix::io::Result<Option<(Pid, WaitStatus)>>) -> Option<ExitStatus> {
    match waited {
        Ok(ended) => ended.map(|(_, status)| ExitStatus::from_raw(status.as_raw())),
        // Its end has been waited for already.
        Err(rustix::io::Errno::CHILD) => Some(ExitStatus::from_raw(0)),
        Err(_) => None,
    }
}

/// The process that runs and whose number is in a file.
fn foreign_process(pid_file: &Path) -> Option<Pid> {
    let text = std::fs::read_to_string(pid_file).ok()?;
    let pid = text.trim().parse().ok().and_then(Pid::from_raw)?;
    foreign_end(waitpid(Some(pid), WaitOptions::NOHANG))
        .is_none()
        .then_some(pid)
}

impl Daemon {
    /// The process that another daemon has started, whose command line is that of restarts.
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

    /// Starts it, without waiting until it is ready.
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
            // That of a client that was killed stays, without one that replies.
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

    /// Its process, in the bed's numbers, if it runs.
    pub(crate) fn pid(&mut self) -> Option<u32> {
        match self.poll() {
            Some(_) => None,
            None => self.known_pid(),
        }
    }

    /// Its process, in the bed's numbers, if its end was not seen yet.
    pub(crate) fn known_pid(&self) -> Option<u32> {
        let pid = self.process.as_ref()?.pid();
        Some(pid.as_raw_nonzero().get().unsigned_abs())
    }

    /// How it ended, if it has.
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

    /// Another daemon may have started it once more.
    fn find_again(&mut self) {
        let Some(pid_file) = &self.pid_file else {
            return;
        };
        let name = pid_file.file_name().unwrap_or_default().to_string_lossy();
        if let Some(pid) = foreign_process(pid_file)
            // The number in an old file may be a stranger's.
            && command_line(pid).is_some_and(|words| words.iter().any(|w| w.contains(&*name)))
        {
            self.process = Some(Running::Foreign(pid));
            self.ended = None;
        }
    }

    /// Sends all of its processes a signal.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<(), BedError> {
        self.poll();
        let process = self.process.as_ref();
        let process = process.ok_or_else(|| BedError::Usage("it does not run".into()))?;
        let sent = process.signal(signal);
        sent.map_err(|e| BedError::failed(self.line.shown(), e))
    }

    /// Kills it, if it runs, and waits for its end.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended.
            let _ = process.signal(Signal::KILL);
            self.ended = process.wait();
        }
    }

    /// Starts it again, and waits until it is ready.
    pub(crate) fn restart(&mut self, given_up: impl Fn() -> bool) -> Result<(), BedError> {
        self.poll();
        self.kill();
        self.spawn()?;
        self.wait(given_up)
    }

    /// What it wrote since it was started.
    fn written(&self) -> String {
        self.log_text(false)
    }

    /// The first or the last MiB that it wrote since it was started.
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

    /// The last line that it wrote.
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

    /// Waits until it is ready.
    ///
    /// # Errors
    /// If it ends, with its last line; if it takes more than [`READY_TIMEOUT`]; if it is given up.
    pub(crate) fn wait(&mut self, given_up: impl Fn() -> bool) -> Result<(), BedError> {
        let begun = Instant::now();
        let what = format!("starting `{}`", self.line.shown());
        loop {
            // Before readiness is checked: something else may listen at its port.
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

/// Whether something is mounted at a directory.
pub(crate) fn is_mount_point(dir: &Path) -> bool {
    let mounts = procfs::process::Process::myself().and_then(|p| p.mountinfo());
    mounts.is_ok_and(|all| all.into_iter().any(|m| m.mount_point == dir))
}

/// Time between two checks of what is waited for.
pub(crate) fn pause() {
    std::thread::sleep(POLL_INTERVAL);
}
