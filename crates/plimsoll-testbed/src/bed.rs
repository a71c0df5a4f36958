//! A test bed in its keeper: nodes, faults and targets.

use crate::BedError;
use crate::daemon::{CommandLine, Daemon, ForeignProcess, Ready};
use crate::fault::Fault;
use crate::node::{Line, Node, NodeStatus, change_address};
use crate::options::BedOptions;
use crate::state::{BedTarget, NodeState, SoftwareVersion};
use rustix::mount::{UnmountFlags, unmount};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum duration of a setup command.
pub const SETUP_TIMEOUT: Duration = Duration::from_secs(30);

/// Test bed in its keeper: the nodes and targets that the kind of the bed has started.
pub struct Bed {
    /// Options of `plimsoll testbed up`; the kind of the bed accepts every option that is set.
    pub options: BedOptions,
    dir: PathBuf,
    data_dir: PathBuf,
    nodes: Vec<Node>,
    pub(crate) software: Vec<SoftwareVersion>,
    pub(crate) notes: Vec<String>,
    pub(crate) targets: Vec<BedTarget>,
    pub(crate) control_group: Option<PathBuf>,
    /// Mount points of kernel mounts from the bed's own servers, such as SMB shares, which must be unmounted before the
    /// servers end.
    unmounted: Vec<PathBuf>,
    progress: Box<dyn FnMut(&str)>,
    given_up: Box<dyn Fn() -> bool>,
}

impl Bed {
    /// A bed without nodes in existing directories.
    pub(crate) fn new(
        options: BedOptions,
        dir: PathBuf,
        data_dir: PathBuf,
        progress: Box<dyn FnMut(&str)>,
        given_up: Box<dyn Fn() -> bool>,
    ) -> Self {
        Self {
            options,
            dir,
            data_dir,
            nodes: Vec::new(),
            software: Vec::new(),
            notes: Vec::new(),
            targets: Vec::new(),
            control_group: None,
            unmounted: Vec::new(),
            progress,
            given_up,
        }
    }

    /// Reports the current activity to the command that starts the bed.
    pub fn progress(&mut self, text: &str) {
        (self.progress)(text);
    }

    /// Creates a directory for the files of a node; returns the path.
    pub fn data(&self, name: &str) -> Result<PathBuf, BedError> {
        let dir = self.data_dir.join(name);
        std::fs::create_dir_all(&dir).map_err(BedError::at(&dir))?;
        Ok(dir)
    }

    /// Creates a directory for the files of a node: on a file system in memory of `--size` bytes if the option is
    /// given, else on the file system of the bed's data.
    pub fn limited_data(&mut self, name: &str) -> Result<PathBuf, BedError> {
        match self.options.size {
            Some(size) => self.memory(name, size),
            None => self.data(name),
        }
    }

    /// Creates a directory for the files of a node, on a file system in memory of `size` bytes.
    pub fn memory(&self, name: &str, size: u64) -> Result<PathBuf, BedError> {
        let dir = self.data(name)?;
        self.run(
            &CommandLine::new("mount")
                .args(["-t", "tmpfs", "-o"])
                .arg(format!("mode=755,size={size}"))
                .arg("plimsoll-testbed")
                .arg(&dir),
        )?;
        Ok(dir)
    }

    /// Writes a file for a node, such as a configuration; returns the path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, BedError> {
        let path = self.data_dir.join(name);
        std::fs::write(&path, text).map_err(BedError::at(&path))?;
        Ok(path)
    }

    /// Creates the directory for the mount points of the bed; returns the path.
    pub fn mount_dir(&self) -> Result<PathBuf, BedError> {
        let dir = self.dir.join("mnt");
        std::fs::create_dir_all(&dir).map_err(BedError::at(&dir))?;
        Ok(dir)
    }

    /// Registers a mount point whose file system the kernel mounts from a server of the bed. The bed unmounts the file
    /// system before it ends the server; the system would unmount only after the server has ended, and wait for the
    /// server.
    pub fn unmounted_at_the_end(&mut self, dir: &Path) {
        self.unmounted.push(dir.into());
    }

    /// Adds the address 198.18.0.`number` to the bed's network unless it exists; returns the address. 198.18.0.0/15 is
    /// reserved for benchmarks (RFC 2544, appendix C.2.2).
    pub fn address(&mut self, number: u8) -> Result<IpAddr, BedError> {
        let address = IpAddr::from(Ipv4Addr::new(198, 18, 0, number));
        change_address("replace", address)?;
        Ok(address)
    }

    /// Runs a setup command; returns its standard output.
    pub fn run(&self, line: &CommandLine) -> Result<String, BedError> {
        line.run(SETUP_TIMEOUT)
    }

    /// Waits until a command succeeds and `is_done` returns true for the standard output of the command, at most
    /// [`SETUP_TIMEOUT`].
    ///
    /// # Errors
    /// If a daemon ends before, if the start of the bed is interrupted, or if the time limit passes: with the last
    /// output or error of the command.
    pub fn wait_until(
        &mut self,
        what: &str,
        line: &CommandLine,
        is_done: impl Fn(&str) -> bool,
    ) -> Result<(), BedError> {
        let begun = std::time::Instant::now();
        let mut last;
        loop {
            match line.run(Duration::from_secs(5)) {
                Ok(text) if is_done(&text) => return Ok(()),
                Ok(text) => last = text.trim().to_owned(),
                Err(e) => last = e.to_string(),
            }
            for node in &mut self.nodes {
                if let Some(daemon) = &mut node.daemon
                    && let Some(status) = daemon.poll()
                {
                    let said = daemon.last_line().unwrap_or_default();
                    let why = format!("{} ended ({status}): {said}", node.name);
                    return Err(BedError::failed(what, why));
                }
            }
            if (self.given_up)() {
                return Err(BedError::failed(what, "interrupted"));
            }
            if begun.elapsed() > SETUP_TIMEOUT {
                let why = format!("it takes more than {} s: {last}", SETUP_TIMEOUT.as_secs());
                return Err(BedError::failed(what, why));
            }
            crate::daemon::pause();
        }
    }

    /// Adds software that runs in the bed; the output of the command `version` contains its version.
    pub fn software(&mut self, name: &str, role: &str, version: &CommandLine) {
        let output = version.run(Duration::from_secs(5)).unwrap_or_default();
        let line = output
            .lines()
            .find(|l| l.chars().any(|c| c.is_ascii_digit()));
        self.software.push(SoftwareVersion {
            name: name.into(),
            version: line.unwrap_or("unknown").trim().into(),
            role: role.into(),
        });
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Name of the bed's control group.
    pub(crate) fn group_name(&self) -> String {
        let name = self.dir.file_name().unwrap_or_default();
        let own = crate::process_id::ProcessId::own();
        crate::cgroup::group_name(&name.to_string_lossy(), own.pid)
    }

    /// Sets the control group for processes that load the bed.
    pub(crate) fn set_control_group(&mut self, group: PathBuf) {
        self.control_group = Some(group);
    }

    /// Adds a sentence about the bed's configuration.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Adds a named target: a URL in the bed's network. The first target is the default target of loads.
    pub fn add_url(&mut self, name: &str, url: String) {
        self.targets.push(BedTarget {
            name: name.into(),
            url,
            directory: None,
        });
    }

    /// Adds a named target: a directory of a mounted file system.
    pub fn add_directory(&mut self, name: &str, directory: PathBuf) {
        self.targets.push(BedTarget {
            name: name.into(),
            url: "posix".into(),
            directory: Some(directory),
        });
    }

    /// Adds a node without a daemon to the bed; `role` is the node's function, such as `NFS server`.
    ///
    /// # Panics
    /// If the bed has a node named `name`.
    pub fn node(&mut self, name: &str, role: &str, address: Option<IpAddr>) -> &mut Node {
        assert!(
            self.find(name).is_none(),
            "names of nodes are unique: {name}"
        );
        self.nodes.push(Node::new(name, role, address));
        self.nodes.last_mut().expect("it was just added")
    }

    /// Path of a node's log.
    pub fn log(&self, name: &str) -> PathBuf {
        self.dir.join("logs").join(format!("{name}.log"))
    }

    /// Starts the daemon of the node `name`, and returns before the daemon is ready.
    pub fn start(&mut self, name: &str, line: CommandLine, ready: Ready) -> Result<(), BedError> {
        self.progress(&format!("starting {name}"));
        let log = self.log(name);
        let daemon = Daemon::start(line, ready, log)?;
        self.named(name).daemon = Some(daemon);
        Ok(())
    }

    /// Makes a ready process, which another daemon of the bed has started and whose number is in a file, the daemon of
    /// a node.
    pub fn adopt(&mut self, name: &str, process: ForeignProcess) -> Result<(), BedError> {
        let log = self.log(name);
        let daemon = Daemon::adopt(process, log)?;
        self.named(name).daemon = Some(daemon);
        Ok(())
    }

    /// Waits until the daemon of the node `name` is ready, for which [`Bed::start`] was called.
    pub fn wait(&mut self, name: &str) -> Result<(), BedError> {
        let at = self.find(name).expect("it was started");
        let Self {
            nodes, given_up, ..
        } = self;
        let daemon = nodes[at].daemon.as_mut().expect("it was started");
        daemon.wait(&**given_up)
    }

    /// Starts the daemon of the node `name`, and returns when the daemon is ready.
    pub fn start_and_wait(
        &mut self,
        name: &str,
        line: CommandLine,
        ready: Ready,
    ) -> Result<(), BedError> {
        self.start(name, line, ready)?;
        self.wait(name)
    }

    /// Starts a line, a TCP relay with a round-trip time, before a server, and adds the line as a node.
    pub fn add_line(
        &mut self,
        name: &str,
        listen: SocketAddr,
        upstream: SocketAddr,
        rtt: Duration,
    ) -> Result<(), BedError> {
        let line = Line::new(listen, upstream, rtt)?;
        self.note(format!(
            "{name}: {}, a TCP relay: no slow start is seen",
            line.link()
        ));
        self.node(name, "line", Some(listen.ip())).line = Some(line);
        Ok(())
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|n| n.name == name)
    }

    fn named(&mut self, name: &str) -> &mut Node {
        let at = self.find(name).expect("its kind added this node");
        &mut self.nodes[at]
    }

    /// The nodes as recorded in the state of the bed.
    pub(crate) fn node_states(&self) -> Vec<NodeState> {
        self.nodes.iter().map(Node::state).collect()
    }

    pub(crate) fn status(&mut self) -> Vec<NodeStatus> {
        self.nodes.iter_mut().map(Node::status).collect()
    }

    /// Process numbers of the nodes' daemons in the bed's PID namespace. The keeper reaps only ended processes that are
    /// no daemons, because the exit status of a daemon is for the daemon's node.
    pub(crate) fn daemon_pids(&self) -> Vec<u32> {
        let daemons = self.nodes.iter().filter_map(|n| n.daemon.as_ref());
        daemons.filter_map(Daemon::known_pid).collect()
    }

    /// Records the exit status of daemons that have ended.
    pub(crate) fn poll(&mut self) {
        for node in &mut self.nodes {
            if let Some(daemon) = &mut node.daemon {
                daemon.poll();
            }
        }
    }

    /// Index of the node that a fault names, or of the only node to which the fault applies.
    fn node_of(&self, fault: &Fault) -> Result<usize, BedError> {
        let able: Vec<&Node> = self.nodes.iter().filter(|n| n.takes(fault.verb)).collect();
        let list = |nodes: &[&Node]| {
            let names: Vec<&str> = nodes.iter().map(|n| n.name.as_str()).collect();
            names.join(", ")
        };
        let verb = fault.verb.name();
        let none = || BedError::Usage(format!("`{verb}` applies to no node of this test bed"));
        match &fault.node {
            None => match able.as_slice() {
                [] => Err(none()),
                [one] => Ok(self.find(&one.name).expect("it is one of them")),
                several => Err(BedError::Usage(format!(
                    "`{verb}`: expected a node: {}",
                    list(several)
                ))),
            },
            Some(name) => {
                let at = self.find(name).ok_or_else(|| {
                    let all: Vec<&Node> = self.nodes.iter().collect();
                    BedError::Usage(format!(
                        "`{name}` is not a node of this test bed: expected {}",
                        list(&all)
                    ))
                })?;
                match (self.nodes[at].takes(fault.verb), able.is_empty()) {
                    (true, _) => Ok(at),
                    (false, true) => Err(none()),
                    (false, false) => Err(BedError::Usage(format!(
                        "`{verb}` does not apply to {name}, but to {}",
                        list(&able)
                    ))),
                }
            }
        }
    }

    /// Injects or ends a fault.
    pub(crate) fn apply(&mut self, fault: &Fault) -> Result<(), BedError> {
        let at = self.node_of(fault)?;
        let Self {
            nodes, given_up, ..
        } = self;
        nodes[at].apply(fault.verb, &**given_up)
    }

    /// Unmounts the kernel's mounts. The servers must reply: a client with unwritten data waits for its server, and a
    /// client with files to close may crash Linux 6.1 ("Dentry still in use", seen with CIFS).
    fn unmount(&mut self) {
        if self.unmounted.is_empty() {
            return;
        }
        for node in &mut self.nodes {
            // The system cleans up after a node that cannot be repaired.
            let _ = node.reply_again();
        }
        for dir in self.unmounted.drain(..) {
            // A process with open files keeps the mount until the bed ends.
            let _ = unmount(&dir, UnmountFlags::DETACH);
        }
    }

    /// Unmounts file systems, and ends all lines and daemons.
    pub(crate) fn stop(&mut self) {
        self.unmount();
        // Reverse order: later nodes depend on earlier nodes.
        for node in self.nodes.iter_mut().rev() {
            node.end();
        }
    }
}

/// A new random UUID from the kernel.
pub(crate) fn random_uuid() -> Result<String, BedError> {
    let path = Path::new("/proc/sys/kernel/random/uuid");
    let text = std::fs::read_to_string(path).map_err(BedError::at(path))?;
    Ok(text.trim().to_owned())
}
