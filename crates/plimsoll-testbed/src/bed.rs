//! A test bed while its process runs: nodes, and what can happen to them.

use crate::BedError;
use crate::cgroup::IoLimit;
use crate::daemon::{CommandLine, Daemon, Ready, is_mount_point};
use crate::fault::{Fault, Verb};
use crate::options::BedOptions;
use crate::state::{BedTarget, NodeState, SoftwareVersion};
use plimsoll_wan::{Link, Relay};
use rustix::process::Signal;
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the file that fills a node's file system.
const FILL_FILE: &str = ".plimsoll-fill";

/// Maximum time of a command that configures something.
pub const SETUP_TIMEOUT: Duration = Duration::from_secs(30);

/// A test bed that its process starts and keeps.
pub struct Bed {
    /// Its options.
    pub options: BedOptions,
    dir: PathBuf,
    data_dir: PathBuf,
    nodes: Vec<Node>,
    pub(crate) software: Vec<SoftwareVersion>,
    pub(crate) notes: Vec<String>,
    pub(crate) targets: Vec<BedTarget>,
    pub(crate) control_group: Option<PathBuf>,
    progress: Box<dyn FnMut(&str)>,
    given_up: Box<dyn Fn() -> bool>,
}

/// A node of a test bed.
pub struct Node {
    name: String,
    role: String,
    address: Option<IpAddr>,
    daemon: Option<Daemon>,
    line: Option<Line>,
    /// A file system of its own, which can be filled.
    file_system: Option<PathBuf>,
    io_limit: Option<IoLimit>,
    /// Whether its address was taken away.
    is_cut: bool,
    is_stopped: bool,
}

/// A line to a server: a relay of TCP connections.
struct Line {
    listen: SocketAddr,
    upstream: SocketAddr,
    link: Link,
    relay: Option<Relay>,
}

impl Line {
    fn start(&mut self) -> Result<(), BedError> {
        // The old one frees the port first.
        self.stop();
        let relay = Relay::start(self.listen, &[self.upstream], &self.link);
        self.relay = Some(relay.map_err(|e| BedError::failed("a TCP relay", e))?);
        Ok(())
    }

    fn stop(&mut self) {
        if let Some(relay) = self.relay.take() {
            relay.cut();
            let _ = relay.stop();
        }
    }
}

/// The state of a node, for `status`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// What it does.
    pub role: String,
    /// Its address in the bed's network.
    pub address: Option<IpAddr>,
    /// `running`, `stopped`, `ended` with its last line, `cut`, or what else it is.
    pub state: String,
    /// Its process, in the numbers of the bed's processes.
    pub pid: Option<u32>,
}

impl Bed {
    /// One whose directories exist.
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
            progress,
            given_up,
        }
    }

    /// Says what is being done.
    pub fn progress(&mut self, text: &str) {
        (self.progress)(text);
    }

    /// A directory for the files of a node, which is created.
    pub fn data(&self, name: &str) -> Result<PathBuf, BedError> {
        let dir = self.data_dir.join(name);
        std::fs::create_dir_all(&dir).map_err(BedError::at(&dir))?;
        Ok(dir)
    }

    /// A directory for the files of a node on a file system in memory of this size in bytes, if the
    /// option `--size` gives one, else on that of all data.
    pub fn limited_data(&mut self, name: &str) -> Result<PathBuf, BedError> {
        let dir = self.data(name)?;
        if let Some(size) = self.options.size {
            self.run(
                &CommandLine::new("mount")
                    .args(["-t", "tmpfs", "-o"])
                    .arg(format!("mode=755,size={size}"))
                    .arg("plimsoll-testbed")
                    .arg(&dir),
            )?;
        }
        Ok(dir)
    }

    /// A file for a node, such as its configuration.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, BedError> {
        let path = self.data_dir.join(name);
        std::fs::write(&path, text).map_err(BedError::at(&path))?;
        Ok(path)
    }

    /// The directory at which file systems of the bed are mounted, which is created.
    pub fn mount_dir(&self) -> Result<PathBuf, BedError> {
        let dir = self.dir.join("mnt");
        std::fs::create_dir_all(&dir).map_err(BedError::at(&dir))?;
        Ok(dir)
    }

    /// The address of a number, from 1, which is added to the bed's network. Those of 198.18.0.0/15 are
    /// for benchmarks (RFC 2544, appendix C.2.2).
    pub fn address(&mut self, number: u8) -> Result<IpAddr, BedError> {
        let address = IpAddr::from(Ipv4Addr::new(198, 18, 0, number));
        change_address("replace", address)?;
        Ok(address)
    }

    /// Runs a command that configures something; returns its output.
    pub fn run(&self, line: &CommandLine) -> Result<String, BedError> {
        line.run(SETUP_TIMEOUT)
    }

    /// Waits until a command succeeds.
    ///
    /// # Errors
    /// If a daemon ends meanwhile, or it takes too long: with the last error of the command.
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

    /// Adds software that runs in the bed, whose version is in the output of a command.
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

    /// The bed's directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Name of the bed's control group.
    pub(crate) fn group_name(&self) -> String {
        let name = self.dir.file_name().unwrap_or_default();
        let own = crate::process_id::ProcessId::own();
        crate::cgroup::group_name(&name.to_string_lossy(), own.pid)
    }

    /// Sets the control group that processes which load the bed must be in.
    pub(crate) fn set_control_group(&mut self, group: PathBuf) {
        self.control_group = Some(group);
    }

    /// Says how the bed is put together.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Adds a target of this name: a URL in the bed's network. The first is what the bed's name stands for.
    pub fn add_url(&mut self, name: &str, url: String) {
        self.targets.push(BedTarget {
            name: name.into(),
            url,
            directory: None,
        });
    }

    /// Adds a target of this name: a directory of a mounted file system.
    pub fn add_directory(&mut self, name: &str, directory: PathBuf) {
        self.targets.push(BedTarget {
            name: name.into(),
            url: "posix".into(),
            directory: Some(directory),
        });
    }

    /// Adds a node.
    pub fn node(&mut self, name: &str, role: &str, address: Option<IpAddr>) -> &mut Node {
        assert!(
            self.find(name).is_none(),
            "names of nodes are unique: {name}"
        );
        self.nodes.push(Node {
            name: name.into(),
            role: role.into(),
            address,
            daemon: None,
            line: None,
            file_system: None,
            io_limit: None,
            is_cut: false,
            is_stopped: false,
        });
        self.nodes.last_mut().expect("it was just added")
    }

    /// Starts the daemon of a node without waiting for it.
    pub fn start(&mut self, name: &str, line: CommandLine, ready: Ready) -> Result<(), BedError> {
        self.progress(&format!("starting {name}"));
        let log = self.dir.join("logs").join(format!("{name}.log"));
        let daemon = Daemon::start(line, ready, log)?;
        self.named(name).daemon = Some(daemon);
        Ok(())
    }

    /// Waits until the daemon of a node is ready.
    pub fn wait(&mut self, name: &str) -> Result<(), BedError> {
        let at = self.find(name).expect("it was started");
        let Self {
            nodes, given_up, ..
        } = self;
        let daemon = nodes[at].daemon.as_mut().expect("it was started");
        daemon.wait(&**given_up)
    }

    /// Starts the daemon of a node and waits until it is ready.
    pub fn start_and_wait(
        &mut self,
        name: &str,
        line: CommandLine,
        ready: Ready,
    ) -> Result<(), BedError> {
        self.start(name, line, ready)?;
        self.wait(name)
    }

    /// Adds a line of a round-trip time before a server; its end has an address of this number, and this
    /// port.
    pub fn add_line(
        &mut self,
        name: &str,
        (number, port): (u8, u16),
        upstream: SocketAddr,
        rtt: Duration,
    ) -> Result<SocketAddr, BedError> {
        let address = self.address(number)?;
        let listen = SocketAddr::new(address, port);
        let mut line = Line {
            listen,
            upstream,
            link: Link::of_rtt(rtt),
            relay: None,
        };
        line.start()?;
        self.note(format!(
            "{name}: {}, a TCP relay: no slow start is seen",
            line.link
        ));
        self.node(name, "line", Some(address)).line = Some(line);
        Ok(listen)
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|n| n.name == name)
    }

    fn named(&mut self, name: &str) -> &mut Node {
        let at = self.find(name).expect("its kind added this node");
        &mut self.nodes[at]
    }

    /// The nodes, for the state of the bed.
    pub(crate) fn node_states(&self) -> Vec<NodeState> {
        let state = |n: &Node| NodeState {
            name: n.name.clone(),
            role: n.role.clone(),
            address: n.address,
        };
        self.nodes.iter().map(state).collect()
    }

    /// The states of all nodes.
    pub(crate) fn status(&mut self) -> Vec<NodeStatus> {
        self.nodes.iter_mut().map(Node::status).collect()
    }

    /// Inner numbers of the processes of all daemons, whose ends are theirs to see.
    pub(crate) fn daemon_pids(&self) -> Vec<u32> {
        let daemons = self.nodes.iter().filter_map(|n| n.daemon.as_ref());
        daemons.filter_map(Daemon::known_pid).collect()
    }

    /// Takes note of daemons that have ended.
    pub(crate) fn poll(&mut self) {
        for node in &mut self.nodes {
            if let Some(daemon) = &mut node.daemon {
                daemon.poll();
            }
        }
    }

    /// The node to which a fault happens: that of its name, or the only one it can happen to.
    pub(crate) fn node_of(&self, fault: &Fault) -> Result<usize, BedError> {
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

    /// Does what a fault says.
    pub(crate) fn apply(&mut self, fault: &Fault) -> Result<(), BedError> {
        let at = self.node_of(fault)?;
        let Self {
            nodes, given_up, ..
        } = self;
        nodes[at].apply(fault.verb, &**given_up)
    }

    /// Ends all lines and daemons.
    pub(crate) fn stop(&mut self) {
        // The last ones use the first ones.
        for node in self.nodes.iter_mut().rev() {
            if let Some(daemon) = &mut node.daemon {
                daemon.kill();
            }
            if let Some(line) = &mut node.line {
                line.stop();
            }
            node.io_limit = None;
        }
    }
}

impl Node {
    /// Says that its files are on a file system of their own, mounted at a directory.
    pub fn has_file_system(&mut self, dir: &Path) {
        if is_mount_point(dir) {
            self.file_system = Some(dir.into());
        }
    }

    /// Says that the rate of its disk can be limited.
    pub(crate) fn has_io_limit(&mut self, limit: IoLimit) {
        self.io_limit = Some(limit);
    }

    fn takes(&self, verb: Verb) -> bool {
        match verb {
            Verb::Kill | Verb::Stop | Verb::Cont | Verb::Restart => self.daemon.is_some(),
            Verb::Cut => self.line.is_some() || self.address.is_some(),
            Verb::Heal => {
                self.takes(Verb::Cut) || self.file_system.is_some() || self.io_limit.is_some()
            }
            Verb::Delay(_) => self.line.is_some(),
            Verb::Fill => self.file_system.is_some(),
            Verb::Slow(_) => self.io_limit.is_some(),
        }
    }

    fn apply(&mut self, verb: Verb, given_up: impl Fn() -> bool) -> Result<(), BedError> {
        let name = self.name.clone();
        let said = |e: BedError| match e {
            BedError::Usage(why) => BedError::Usage(format!("{name}: {why}")),
            e => e,
        };
        match (verb, &mut self.daemon, &mut self.line) {
            (Verb::Kill, Some(daemon), _) => {
                daemon.signal(Signal::KILL).map_err(said)?;
                daemon.kill();
                self.is_stopped = false;
            }
            (Verb::Stop, Some(daemon), _) => {
                daemon.signal(Signal::STOP).map_err(said)?;
                self.is_stopped = true;
            }
            (Verb::Cont, Some(daemon), _) => {
                daemon.signal(Signal::CONT).map_err(said)?;
                self.is_stopped = false;
            }
            (Verb::Restart, Some(daemon), _) => {
                daemon.restart(given_up)?;
                self.is_stopped = false;
            }
            (Verb::Cut, _, Some(line)) => line.stop(),
            (Verb::Cut, _, None) => self.set_cut(true)?,
            (Verb::Heal, ..) => self.heal()?,
            (Verb::Delay(rtt), _, Some(line)) => {
                line.link.rtt = rtt;
                if let Some(relay) = &line.relay {
                    relay.set_rtt(rtt);
                }
            }
            (Verb::Fill, ..) => fill(self.file_system.as_deref().expect("it takes this fault"))?,
            (Verb::Slow(iops), ..) => {
                let limit = self.io_limit.as_mut().expect("it takes this fault");
                limit.set(Some(iops))?;
            }
            _ => unreachable!("it takes this fault"),
        }
        Ok(())
    }

    fn set_cut(&mut self, is_cut: bool) -> Result<(), BedError> {
        if let (Some(address), true) = (self.address, self.is_cut != is_cut) {
            change_address(if is_cut { "del" } else { "replace" }, address)?;
            self.is_cut = is_cut;
        }
        Ok(())
    }

    fn heal(&mut self) -> Result<(), BedError> {
        match &mut self.line {
            Some(line) if line.relay.is_none() => line.start()?,
            Some(_) => {}
            None => self.set_cut(false)?,
        }
        if let Some(dir) = &self.file_system {
            let file = dir.join(FILL_FILE);
            match std::fs::remove_file(&file) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(BedError::at(&file)(e));
                }
                _ => {}
            }
        }
        match &mut self.io_limit {
            Some(limit) => limit.set(None),
            None => Ok(()),
        }
    }

    fn status(&mut self) -> NodeStatus {
        let mut pid = None;
        let mut states: Vec<String> = Vec::new();
        if let Some(daemon) = &mut self.daemon {
            match daemon.poll() {
                Some(status) => {
                    let said = daemon
                        .last_line()
                        .map(|l| format!(": {l}"))
                        .unwrap_or_default();
                    states.push(format!("ended ({status}){said}"));
                }
                None if self.is_stopped => states.push("stopped".into()),
                None => states.push("running".into()),
            }
            pid = daemon.pid();
        }
        if let Some(line) = &self.line {
            states.push(match line.relay {
                Some(_) => line.link.to_string(),
                None => "cut".into(),
            });
        }
        if self.is_cut {
            states.push("cut".into());
        }
        if let Some(dir) = &self.file_system
            && dir.join(FILL_FILE).exists()
        {
            states.push("full".into());
        }
        if let Some(iops) = self.io_limit.as_ref().and_then(IoLimit::iops) {
            states.push(format!("{iops} iops"));
        }
        NodeStatus {
            name: self.name.clone(),
            role: self.role.clone(),
            address: self.address,
            state: states.join(", "),
            pid,
        }
    }
}

/// Adds an address to the bed's network, or takes it away.
fn change_address(change: &str, address: IpAddr) -> Result<(), BedError> {
    let prefix = format!("{address}/32");
    let line = CommandLine::new("ip").args(["addr", change, &prefix, "dev", "lo"]);
    line.run(SETUP_TIMEOUT).map(drop)
}

/// Writes a file until its file system is full.
fn fill(dir: &Path) -> Result<(), BedError> {
    let path = dir.join(FILL_FILE);
    let mut file = File::create(&path).map_err(BedError::at(&path))?;
    let mut chunk = vec![0xA5; 1 << 20];
    while !chunk.is_empty() {
        match file.write(&chunk) {
            Ok(1..) => {}
            // Smaller ones may still fit.
            Ok(0) => chunk.truncate(chunk.len() / 2),
            Err(e) if e.kind() == std::io::ErrorKind::StorageFull => {
                chunk.truncate(chunk.len() / 2)
            }
            Err(e) => return Err(BedError::at(&path)(e)),
        }
    }
    Ok(())
}
