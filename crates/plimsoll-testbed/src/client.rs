//! Commands on test beds: start, query, fault, enter and end.

use crate::control::{self, BedStatus, REPLY_TIMEOUT, Reply, Request};
use crate::fault::Fault;
use crate::keeper;
use crate::kinds::{self, Kind, Rights};
use crate::network::Network;
use crate::node::NodeStatus;
use crate::options::BedOptions;
use crate::process_id::ProcessId;
use crate::state::{BedState, BedTarget};
use crate::store::Store;
use crate::{BedError, needs::Need};
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Maximum time of the orderly shutdown of a bed, which may write back a client's data at an unmount; then the bed is
/// killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(40);

/// Maximum time in which the system ends the processes of a killed bed.
const KILL_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time in which a bed acknowledges the request to end.
const DOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between two checks of a process that ends.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Time between two checks of a bed that is not in sync.
const SYNC_INTERVAL: Duration = Duration::from_millis(250);

/// Time between two checks for an interrupt by the user.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

/// Test bed that is up, as seen by commands outside of the keeper.
pub struct TestBed {
    store: Store,
    state: BedState,
    /// Child process that is the keeper of the bed, if dropping the `TestBed` ends the bed; `None` for a bed that
    /// outlives the command.
    bound: Option<Child>,
}

/// Parameters for starting a bed; a new process becomes the keeper of the bed.
#[derive(Debug, Clone)]
pub struct Start<'a> {
    /// Name of the bed; `None` to name the bed after the kind, with a number if another bed has the name of the kind.
    pub name: Option<&'a str>,
    /// Options of `plimsoll testbed up`; options that the kind does not accept are errors.
    pub options: BedOptions,
    /// Path of the program that a new process executes as keeper, normally `plimsoll-testbed` itself.
    pub program: &'a Path,
    /// Arguments of the keeper's command line before the bed's directory.
    pub arguments: &'a [&'a str],
    /// Whether the bed ends when this process ends or drops the [`TestBed`].
    pub is_bound: bool,
}

/// Checks that a kind takes the options, and that the needed programs and rights are available.
///
/// # Errors
/// The wrong option, or the missing programs or rights with a remedy.
pub fn check(kind: &Kind, options: &BedOptions) -> Result<(), BedError> {
    options.check(kind.name, kind.options)?;
    let mut needs = (kind.needs)(options)?;
    needs.push(Need::debian("unshare", "util-linux"));
    let mut missing: Vec<Need> = needs.into_iter().filter(|n| n.find().is_none()).collect();
    missing.dedup();
    if !missing.is_empty() {
        return Err(BedError::Missing(missing));
    }
    let is_root = rustix::process::geteuid().is_root();
    let rights = (kind.rights)(options);
    if rights == Rights::Fuse {
        probe_fuse()?;
    }
    match rights {
        Rights::Root(why) if !is_root || is_namespace_root() => Err(BedError::Rights(format!(
            "a test bed of the kind {} needs the rights of root on the machine: {why}",
            kind.name
        ))),
        Rights::UserNamespace | Rights::Fuse if !is_root => probe_namespaces(),
        _ => Ok(()),
    }
}

/// Whether this process is root in a user namespace only, not on the machine.
fn is_namespace_root() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let whole = ["0", "0", "4294967295"];
    !map.lines().any(|l| l.split_whitespace().eq(whole))
}

/// Options of `unshare` for the namespaces of a bed.
fn namespaces() -> Vec<&'static str> {
    let mut options = match rustix::process::geteuid().is_root() {
        true => vec![],
        false => vec!["--user", "--map-root-user", "--map-auto"],
    };
    options.extend(["--net", "--mount", "--pid", "--fork", "--kill-child=KILL"]);
    options
}

/// Checks access to `/dev/fuse`: namespaces give no right to a device.
fn probe_fuse() -> Result<(), BedError> {
    const DEVICE: &str = "/dev/fuse";
    let opened = std::fs::File::options().read(true).write(true).open(DEVICE);
    opened.map(drop).map_err(|e| {
        BedError::Rights(format!(
            "file systems are mounted by FUSE, and {DEVICE} cannot be opened: {e}"
        ))
    })
}

/// Checks that this user can create and use namespaces: some systems forbid users to create namespaces, or to mount and
/// configure networks in their namespaces.
fn probe_namespaces() -> Result<(), BedError> {
    let mut command = Command::new("unshare");
    command.args(namespaces()).args(["--", "sh", "-c"]);
    let output = command
        .arg("ip link set lo up && mount -t tmpfs probe /mnt")
        .stdin(Stdio::null());
    let output = output.env("PATH", crate::needs::path_of_root()).output();
    let why = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(e) => e.to_string(),
    };
    Err(BedError::Rights(format!(
        "test beds need user namespaces, or the rights of root: {why}; `newuidmap` is in the package \
         uidmap, and /etc/subuid must name this user"
    )))
}

/// Closes the descriptors above standard error that the command would inherit: a lock of the shell, or the end of a
/// pipe, would stay open as long as the bed is up.
fn close_inherited(command: &mut Command) {
    const FIRST: libc::c_uint = 3;
    let close = || {
        // SAFETY: close_range(2) takes no pointers, and marks descriptors of the new process only. The kernel closes
        // the marked descriptors at exec; until then they work, including the descriptors of `Command`.
        let _ = unsafe {
            libc::syscall(
                libc::SYS_close_range,
                FIRST,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
        // `CLOSE_RANGE_CLOEXEC` exists since Linux 5.11; on older kernels, a bed keeps inherited descriptors open.
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes one system call.
    unsafe { command.pre_exec(close) };
}

impl TestBed {
    /// Starts a bed of `kind` in a new keeper process, and returns when the bed is up.
    ///
    /// # Errors
    /// A wrong option, missing programs or rights, or the reason why the bed did not start. Nothing of the bed remains
    /// after an error.
    pub fn start(
        store: &Store,
        kind: &Kind,
        start: &Start<'_>,
        mut progress: impl FnMut(&str),
        is_interrupted: impl Fn() -> bool,
    ) -> Result<Self, BedError> {
        check(kind, &start.options)?;
        store.sweep()?;
        let name = match start.name {
            Some(name) => name.to_owned(),
            None => free_name(store, kind.name),
        };
        let state = store.create(&name, kind.name, &start.options)?;
        let started =
            Self::spawn(store, &state, start).and_then(|mut child| {
                match wait_for_ready(&mut child, &mut progress, &is_interrupted) {
                    Ok(()) => Ok(child),
                    Err(e) => {
                        end(store, &name, &mut Some(child));
                        Err(e)
                    }
                }
            });
        match started {
            Ok(child) => Ok(Self {
                store: store.clone(),
                state: BedState::read(&store.dir(&name))?,
                bound: start.is_bound.then_some(child),
            }),
            Err(e) => {
                store.remove(&state)?;
                Err(e)
            }
        }
    }

    fn spawn(store: &Store, state: &BedState, start: &Start<'_>) -> Result<Child, BedError> {
        let mut command = Command::new("unshare");
        command
            .args(namespaces())
            .arg("--")
            .arg(start.program)
            .args(start.arguments)
            .arg(store.dir(&state.name))
            .env("PATH", crate::needs::path_of_root())
            .envs(kinds::environment()?)
            .current_dir("/")
            .stdin(if start.is_bound {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // In its own process group, the keeper gets no SIGINT from the terminal: only the command that waits for
            // the bed does.
            .process_group(0);
        close_inherited(&mut command);
        command
            .spawn()
            .map_err(|e| BedError::failed("starting a test bed", e))
    }

    /// Finds the bed named `name`, which must be up.
    ///
    /// # Errors
    /// If no bed has the name `name`, or if the bed is still being started.
    pub fn find(store: &Store, name: &str) -> Result<Self, BedError> {
        let state = store.bed(name)?;
        if state.phase == crate::state::Phase::Starting {
            return Err(BedError::Usage(format!(
                "test bed `{name}` is being started"
            )));
        }
        Ok(Self {
            store: store.clone(),
            state,
            bound: None,
        })
    }

    /// The bed of a name, up or being started: for commands that end beds.
    ///
    /// # Errors
    /// If no bed has the name.
    pub fn of_any_phase(store: &Store, name: &str) -> Result<Self, BedError> {
        Ok(Self {
            store: store.clone(),
            state: store.bed(name)?,
            bound: None,
        })
    }

    /// Moves this process into the bed's control group, which limits the I/O of loads; no effect on a bed without a
    /// control group.
    ///
    /// # Errors
    /// If the kernel refuses the write to the group's `cgroup.procs`.
    pub fn join_control_group(&self) -> Result<(), BedError> {
        let Some(group) = &self.state.control_group else {
            return Ok(());
        };
        let path = group.join("cgroup.procs");
        std::fs::write(&path, std::process::id().to_string()).map_err(BedError::at(&path))
    }

    /// The content of the bed's `state.json`, as read when this value was made.
    #[must_use]
    pub fn state(&self) -> &BedState {
        &self.state
    }

    /// The default target of loads: the first target.
    ///
    /// # Panics
    /// If the bed is still being started: only a bed that is up has a target.
    #[must_use]
    pub fn target(&self) -> &BedTarget {
        self.state
            .targets
            .first()
            .expect("a bed that is up has a target")
    }

    /// The directory of the bed's state. The end of the bed removes the directory.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.store.dir(&self.state.name)
    }

    /// Nodes, processes and synchronisation of the bed now.
    ///
    /// # Errors
    /// If the bed's process does not reply.
    pub fn status(&self) -> Result<BedStatus, BedError> {
        match control::request(&self.dir(), &Request::Status, REPLY_TIMEOUT)? {
            Reply::Status(status) => Ok(status),
            other => unreachable!("a status is replied to with one: {other:?}"),
        }
    }

    /// Waits until the bed is in sync, until `limit` has passed, or until `is_interrupted` returns true; returns the
    /// status. Does not wait for a bed whose synchronisation is unknown.
    ///
    /// # Errors
    /// If the bed's process does not reply.
    pub fn status_when_in_sync(
        &self,
        limit: Duration,
        is_interrupted: impl Fn() -> bool,
    ) -> Result<BedStatus, BedError> {
        let begun = Instant::now();
        loop {
            let status = self.status()?;
            let waits = status.is_in_sync == Some(false) && begun.elapsed() < limit;
            if !waits || is_interrupted() {
                return Ok(status);
            }
            std::thread::sleep(SYNC_INTERVAL);
        }
    }

    /// The states of the bed's nodes now.
    ///
    /// # Errors
    /// If the bed's process does not reply.
    pub fn nodes(&self) -> Result<Vec<NodeStatus>, BedError> {
        match control::request(&self.dir(), &Request::Nodes, REPLY_TIMEOUT)? {
            Reply::Nodes(nodes) => Ok(nodes),
            other => unreachable!("nodes are replied to with nodes: {other:?}"),
        }
    }

    /// Injects or ends a fault.
    ///
    /// # Errors
    /// If the fault does not apply to the bed, or fails.
    pub fn fault(&self, fault: &Fault) -> Result<(), BedError> {
        let request = Request::Fault(fault.to_string());
        control::request(&self.dir(), &request, REPLY_TIMEOUT).map(drop)
    }

    /// The logs of the nodes, sorted by name: name and path.
    ///
    /// # Errors
    /// If the directory of the logs cannot be read.
    pub fn logs(&self) -> Result<Vec<(String, PathBuf)>, BedError> {
        let dir = self.dir().join("logs");
        let mut logs = Vec::new();
        for entry in std::fs::read_dir(&dir).map_err(BedError::at(&dir))? {
            let path = entry.map_err(BedError::at(&dir))?.path();
            if let Some(name) = path.file_stem() {
                logs.push((name.to_string_lossy().into_owned(), path.clone()));
            }
        }
        logs.sort();
        Ok(logs)
    }

    /// Whether this process is in the bed's network.
    #[must_use]
    pub fn is_entered(&self) -> bool {
        let of = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let own = of("self");
        own.is_some() && own == of(&self.state.owner.pid.to_string())
    }

    /// Command that runs `program` in the bed's network, mount and user namespaces, with the current directory of this
    /// process.
    ///
    /// # Errors
    /// If this process has no current directory, or `nsenter` is missing.
    pub fn command(&self, program: &OsStr) -> Result<Command, BedError> {
        let nsenter = Need::debian("nsenter", "util-linux");
        let path = nsenter.find().ok_or(BedError::Missing(vec![nsenter]))?;
        let here =
            std::env::current_dir().map_err(|e| BedError::failed("the current directory", e))?;
        let owner = self.state.owner.pid;
        let mut command = Command::new(path);
        command
            .arg(format!("--target={owner}"))
            .args(["--net", "--mount"]);
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.args(["--", "env"]);
        let mut chdir = OsString::from("--chdir=");
        chdir.push(here);
        command.arg(chdir).arg(program);
        Ok(command)
    }

    /// Ends the bed and removes its files.
    ///
    /// # Errors
    /// If processes of the bed do not end, or if its files cannot be removed.
    pub fn end(mut self) -> Result<(), BedError> {
        self.end_now()
    }

    fn end_now(&mut self) -> Result<(), BedError> {
        let name = self.state.name.clone();
        end(&self.store, &name, &mut self.bound);
        let owner = BedState::read(&self.dir()).map_or(self.state.owner, |state| state.owner);
        if owner.is_running() {
            let pid = owner.pid;
            return Err(BedError::failed(
                format!("test bed `{name}`"),
                format!("process {pid} does not end"),
            ));
        }
        self.store.remove(&self.state)
    }
}

impl Drop for TestBed {
    fn drop(&mut self) {
        if self.bound.is_some() {
            // `TestBed::end` returns the error of the shutdown; `drop` can only ignore the error.
            let _ = self.end_now();
        }
    }
}

/// Ends the processes of a bed: by request first, by SIGKILL after `STOP_TIMEOUT`.
fn end(store: &Store, name: &str, child: &mut Option<Child>) {
    let dir = store.dir(name);
    // While a bed is being started, its owner changes from the command to the keeper.
    let owner_now = || {
        let owner = BedState::read(&dir).ok().map(|state| state.owner);
        owner.filter(|owner| *owner != ProcessId::own())
    };
    let ask = |owner: Option<ProcessId>| {
        // A keeper that is busy or still starting reacts to signals only.
        if control::request(&dir, &Request::Down, DOWN_TIMEOUT).is_err()
            && let Some(owner) = owner
        {
            owner.terminate();
        }
    };
    let mut owner = owner_now();
    // Loads end before the bed, so that they can still remove their files.
    let network = BedState::read(&dir).ok();
    let network = network.and_then(|state| Network::of(&state));
    if let Some(network) = &network {
        network.clear();
    }
    ask(owner);
    if let Some(child) = child {
        drop(child.stdin.take());
    }
    let mut has_ended = |limit: Duration, owner: &mut Option<ProcessId>| {
        let begun = Instant::now();
        loop {
            let is_gone = child
                .as_mut()
                .is_none_or(|c| !matches!(c.try_wait(), Ok(None)));
            let next = owner_now().filter(|next| owner.is_none_or(|o| o != *next));
            if let Some(next) = next {
                *owner = Some(next);
                ask(*owner);
            }
            if is_gone && owner.is_none_or(|o| !o.is_running()) {
                return true;
            }
            if begun.elapsed() > limit {
                return false;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    };
    if !has_ended(STOP_TIMEOUT, &mut owner) {
        if let Some(owner) = owner {
            owner.kill();
        }
        has_ended(KILL_TIMEOUT, &mut owner);
    }
    // Further processes may have entered the bed's network since the first call of `clear`.
    if let Some(network) = &network {
        network.clear();
    }
    if let Some(child) = child.as_mut() {
        let _ = child.kill();
        let _ = child.wait();
    }
    *child = None;
}

/// The name of a kind, with a number if the name is taken.
fn free_name(store: &Store, kind: &str) -> String {
    let numbered = (2..).map(|n| format!("{kind}-{n}"));
    std::iter::once(kind.to_owned())
        .chain(numbered)
        .find(|name| !store.dir(name).exists())
        .expect("there are more numbers than beds")
}

/// Reads the lines of the keeper until the keeper reports that the bed is up, or the reason of a failure.
fn wait_for_ready(
    child: &mut Child,
    progress: &mut impl FnMut(&str),
    is_interrupted: &impl Fn() -> bool,
) -> Result<(), BedError> {
    let what = "the process of the test bed";
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let (sender, lines) = channel();
    // The thread ends with the keeper, whose output the thread reads.
    std::thread::spawn(move || {
        out.lines()
            .map_while(Result::ok)
            .all(|line| sender.send(line).is_ok())
    });
    loop {
        let line = match lines.recv_timeout(INTERRUPT_INTERVAL) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) if is_interrupted() => {
                return Err(BedError::failed(what, "interrupted"));
            }
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => {
                let mut errors = String::new();
                if let Some(mut err) = child.stderr.take() {
                    let _ = std::io::Read::read_to_string(&mut err, &mut errors);
                }
                return Err(BedError::failed(what, last_words(&errors)));
            }
        };
        let (word, text) = line.split_once(' ').unwrap_or((&line, ""));
        let text: String = serde_json::from_str(text).unwrap_or_else(|_| text.to_owned());
        match word {
            keeper::PROGRESS => progress(&text),
            keeper::READY => return Ok(()),
            keeper::REFUSED => return Err(BedError::Usage(text)),
            keeper::FAILED => {
                let (what, why) = text.split_once(": ").unwrap_or((what, &text));
                return Err(BedError::failed(what, why));
            }
            _ => return Err(BedError::failed(what, line)),
        }
    }
}

/// Last line that an ended keeper wrote to standard error, which says why it ended.
fn last_words(errors: &str) -> &str {
    // A line with `sigprocmask` is from `unshare`, whose child was killed by a signal that `unshare` cannot pass on,
    // and says nothing about the keeper.
    let is_said = |l: &&str| !l.trim().is_empty() && !l.contains("sigprocmask unblock failed");
    let last = errors.lines().rev().find(is_said);
    last.unwrap_or("it was killed, or ended and wrote nothing")
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn a_process_that_was_killed_has_no_words() {
        let killed = "it was killed, or ended and wrote nothing";
        assert_eq!(last_words(""), killed);
        assert_eq!(
            last_words("unshare: sigprocmask unblock failed: Invalid argument\n"),
            killed
        );
        assert_eq!(last_words("one\ntwo\n\n"), "two");
    }
}
