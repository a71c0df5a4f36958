//! Daemons of a test bed: started in the bed's namespaces, with a log each, and known to be ready or
//! to have failed.

use crate::BedError;
use crate::failure::failure;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Maximum time in which a daemon becomes ready. On a busy machine this takes ten times as long as on
/// an idle one.
const READY_TIMEOUT: Duration = Duration::from_secs(90);

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

    fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
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
        command
            .args(&words[1..])
            .env("PATH", crate::needs::path_of_root())
            .current_dir("/")
            .stdin(Stdio::null());
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
        let output = command
            .args(["--kill-after=1", &seconds])
            .args(words)
            .env("PATH", crate::needs::path_of_root())
            .current_dir("/")
            .stdin(Stdio::null())
            .output();
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

/// When a daemon is ready.
#[derive(Debug, Clone)]
pub enum Ready {
    /// It accepts connections at all of these.
    Listening(Vec<SocketAddr>),
    /// Its log has this text since it was started.
    Logged(&'static str),
    /// This command succeeds, each time within a second.
    Succeeds(CommandLine),
    /// Something is mounted at this directory.
    Mounted(PathBuf),
}

/// A daemon, which is killed with its process group.
pub(crate) struct Daemon {
    line: CommandLine,
    ready: Ready,
    log: PathBuf,
    child: Option<Child>,
    /// How it ended.
    ended: Option<ExitStatus>,
    /// Length of the log when it was started.
    log_start: u64,
}

impl Daemon {
    /// Starts it, without waiting until it is ready.
    pub(crate) fn start(line: CommandLine, ready: Ready, log: PathBuf) -> Result<Self, BedError> {
        let mut this = Self {
            line,
            ready,
            log,
            child: None,
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
        self.child = Some(child);
        self.ended = None;
        Ok(())
    }

    /// Its process, in the bed's numbers, if it runs.
    pub(crate) fn pid(&mut self) -> Option<u32> {
        match self.poll() {
            Some(_) => None,
            None => self.child.as_ref().map(Child::id),
        }
    }

    /// Its process, in the bed's numbers, if its end was not seen yet.
    pub(crate) fn known_pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// How it ended, if it has.
    pub(crate) fn poll(&mut self) -> Option<ExitStatus> {
        if let Some(child) = &mut self.child
            && let Ok(Some(status)) = child.try_wait()
        {
            self.ended = Some(status);
            self.child = None;
        }
        self.ended
    }

    /// Sends all of its processes a signal.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<(), BedError> {
        let pid = self.pid().and_then(|pid| Pid::from_raw(pid as i32));
        let pid = pid.ok_or_else(|| BedError::Usage("it does not run".into()))?;
        kill_process_group(pid, signal).map_err(|e| BedError::failed(self.line.shown(), e))
    }

    /// Kills it, if it runs, and waits for its end.
    pub(crate) fn kill(&mut self) {
        let Some(child) = &mut self.child else {
            return;
        };
        if let Some(pid) = Pid::from_raw(child.id() as i32) {
            // It may have ended.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        self.ended = child.wait().ok();
        self.child = None;
    }

    /// Starts it again, and waits until it is ready.
    pub(crate) fn restart(&mut self, given_up: impl Fn() -> bool) -> Result<(), BedError> {
        self.kill();
        self.spawn()?;
        self.wait(given_up)
    }

    /// What it wrote since it was started.
    fn written(&self) -> String {
        use std::os::unix::fs::FileExt;
        let Ok(file) = File::open(&self.log) else {
            return String::new();
        };
        let length = file
            .metadata()
            .map_or(0, |m| m.len())
            .saturating_sub(self.log_start);
        let mut bytes = vec![0; usize::try_from(length.min(1 << 20)).expect("a MiB fits")];
        let read = file.read_at(&mut bytes, self.log_start).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    /// The last line that it wrote.
    pub(crate) fn last_line(&self) -> Option<String> {
        let written = self.written();
        let last = written.lines().rev().find(|l| !l.trim().is_empty());
        last.map(|l| l.trim().to_owned())
    }

    fn is_ready(&self) -> bool {
        match &self.ready {
            Ready::Listening(all) => all
                .iter()
                .all(|at| TcpStream::connect_timeout(at, Duration::from_millis(200)).is_ok()),
            Ready::Logged(text) => self.written().contains(text),
            Ready::Succeeds(line) => line.run(Duration::from_secs(1)).is_ok(),
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
            // Before readiness is asked for: something else may listen at its port.
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
