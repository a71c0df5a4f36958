//! A node of a test bed: daemon, line and file system, and the effects of faults.

use crate::BedError;
use crate::bed::SETUP_TIMEOUT;
use crate::cgroup::IoLimit;
use crate::daemon::{CommandLine, Daemon, is_mount_point};
use crate::fault::Verb;
use crate::state::NodeState;
use plimsoll_nfs::wan::{Link, Relay};
use procfs::Current;
use rustix::process::Signal;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the file that fills a node's file system.
const FILL_FILE: &str = ".plimsoll-fill";

/// A node of a test bed.
pub struct Node {
    pub(crate) name: String,
    role: String,
    address: Option<IpAddr>,
    pub(crate) daemon: Option<Daemon>,
    pub(crate) line: Option<Line>,
    /// Mount point of the node's own file system, which can be filled.
    file_system: Option<PathBuf>,
    io_limit: Option<IoLimit>,
    /// Network device behind which the node is, such as the TAP device of a virtual machine; `None` if the node's
    /// address is one of the bed's own.
    device: Option<&'static str>,
    /// Whether the fault `cut` has removed the node's address or taken down its device.
    is_cut: bool,
    is_stopped: bool,
}

/// A line to a server: a relay of TCP connections with a round-trip time.
pub(crate) struct Line {
    listen: SocketAddr,
    upstream: SocketAddr,
    link: Link,
    relay: Option<Relay>,
}

impl Line {
    /// Starts a line with a round-trip time.
    pub(crate) fn new(
        listen: SocketAddr,
        upstream: SocketAddr,
        rtt: Duration,
    ) -> Result<Self, BedError> {
        let mut line = Self {
            listen,
            upstream,
            link: Link::of_rtt(rtt),
            relay: None,
        };
        line.start()?;
        Ok(line)
    }

    /// Properties of the emulated link.
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    fn start(&mut self) -> Result<(), BedError> {
        // The old relay frees the port first.
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

/// State of a node, as `plimsoll testbed status` shows it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct NodeStatus {
    /// Name of the node in faults and log files, such as `server.1`.
    pub name: String,
    /// Function of the node, such as `NFS server` or `line`.
    pub role: String,
    /// Address of the node in the bed's network; null if the node has no address, such as a FUSE client.
    pub address: Option<IpAddr>,
    /// State as text, such as `running`, `stopped`, `ended` with the last line of the log, `cut` or `full`; several
    /// states are separated by commas.
    pub state: String,
    /// Process number of the node's daemon in the bed's PID namespace; null if no daemon runs.
    pub pid: Option<u32>,
}

impl Node {
    /// A node without a daemon.
    pub(crate) fn new(name: &str, role: &str, address: Option<IpAddr>) -> Self {
        Self {
            name: name.into(),
            role: role.into(),
            address,
            daemon: None,
            line: None,
            file_system: None,
            io_limit: None,
            device: None,
            is_cut: false,
            is_stopped: false,
        }
    }

    /// The properties of the node that stay constant while the bed is up.
    pub(crate) fn state(&self) -> NodeState {
        NodeState {
            name: self.name.clone(),
            role: self.role.clone(),
            address: self.address,
        }
    }

    /// Undoes faults that prevent replies.
    pub(crate) fn reply_again(&mut self) -> Result<(), BedError> {
        self.heal()?;
        let Some(daemon) = &mut self.daemon else {
            return Ok(());
        };
        match (daemon.poll(), self.is_stopped) {
            (Some(_), _) => daemon.restart(|| false),
            (None, true) => daemon.signal(Signal::CONT),
            (None, false) => Ok(()),
        }
    }

    /// Kills the node's daemon, closes the node's line, and removes the I/O limit of the node's disk, at the end of the
    /// bed.
    pub(crate) fn end(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            daemon.kill();
        }
        if let Some(line) = &mut self.line {
            line.stop();
        }
        self.io_limit = None;
    }

    /// Records that the node's files are on a file system of their own, if `dir` is a mount point.
    pub fn note_file_system(&mut self, dir: &Path) {
        if is_mount_point(dir) {
            self.file_system = Some(dir.into());
        }
    }

    /// Records that the node is reached through a network device only.
    pub fn set_device(&mut self, device: &'static str) {
        self.device = Some(device);
    }

    /// Records that the operation rate of the node's disk can be limited.
    pub(crate) fn set_io_limit(&mut self, limit: IoLimit) {
        self.io_limit = Some(limit);
    }

    /// Whether a fault applies to the node.
    pub(crate) fn takes(&self, verb: Verb) -> bool {
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

    /// Injects or ends a fault.
    pub(crate) fn apply(
        &mut self,
        verb: Verb,
        given_up: impl Fn() -> bool,
    ) -> Result<(), BedError> {
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
            (Verb::Fill, ..) => {
                let dir = self.file_system.as_deref().expect("it takes this fault");
                fill(dir, given_up)?;
            }
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
            match (self.device, is_cut) {
                (Some(device), _) => set_device(device, !is_cut)?,
                (None, true) => change_address("del", address)?,
                (None, false) => change_address("add", address)?,
            }
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

    /// The state of the node now.
    pub(crate) fn status(&mut self) -> NodeStatus {
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

/// Runs `ip addr CHANGE ADDRESS` on the loopback device of the bed's network; `change` is `add`, `replace` or `del`.
pub(crate) fn change_address(change: &str, address: IpAddr) -> Result<(), BedError> {
    let prefix = format!("{address}/32");
    let line = CommandLine::new("ip").args(["addr", change, &prefix, "dev", "lo"]);
    line.run(SETUP_TIMEOUT).map(drop)
}

/// Sets a network device up or down.
fn set_device(device: &str, is_up: bool) -> Result<(), BedError> {
    let line = CommandLine::new("ip").args(["link", "set", device]);
    let line = line.arg(if is_up { "up" } else { "down" });
    line.run(SETUP_TIMEOUT).map(drop)
}

/// Maximum number of passes that fill a disk again after data have reached the disk and freed room.
const MAX_FILL_PASSES: u32 = 10;

/// Bytes that are written between two syncs.
const FILL_SYNC_BYTES: u64 = 16 << 20;

/// Writes a file until its file system is full.
fn fill(dir: &Path, given_up: impl Fn() -> bool) -> Result<(), BedError> {
    check_memory(dir)?;
    let path = dir.join(FILL_FILE);
    let mut file = File::create(&path).map_err(BedError::at(&path))?;
    // Space that a file system reserves for unwritten data becomes free once the data are on the disk.
    for _ in 0..MAX_FILL_PASSES {
        if write_until_full(&mut file, &given_up).map_err(BedError::at(&path))? == 0 {
            break;
        }
    }
    Ok(())
}

/// Writes until not one more byte fits or `given_up` returns true, and syncs the file; returns the number of bytes
/// written.
fn write_until_full(file: &mut File, given_up: impl Fn() -> bool) -> std::io::Result<u64> {
    let mut chunk = vec![0xA5; 1 << 20];
    let mut written = 0;
    while !chunk.is_empty() && !given_up() {
        match file.write(&chunk) {
            Ok(bytes @ 1..) => {
                written += bytes as u64;
                // A sync every 16 MiB bounds the time for which a slow disk blocks the keeper.
                if written % FILL_SYNC_BYTES < bytes as u64 {
                    sync(file)?;
                }
            }
            // Smaller chunks may still fit.
            Ok(0) => chunk.truncate(chunk.len() / 2),
            Err(e) if e.kind() == ErrorKind::StorageFull => chunk.truncate(chunk.len() / 2),
            Err(e) => return Err(e),
        }
    }
    sync(file)?;
    Ok(written)
}

/// Waits until the data of a file are on the disk; a full disk is not an error.
fn sync(file: &File) -> std::io::Result<()> {
    match file.sync_all() {
        Err(e) if e.kind() != ErrorKind::StorageFull => Err(e),
        _ => Ok(()),
    }
}

/// Checks that filling a file system in memory leaves memory for the machine.
fn check_memory(dir: &Path) -> Result<(), BedError> {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    let system = rustix::fs::statfs(dir).map_err(|e| BedError::at(dir)(e.into()))?;
    if system.f_type != TMPFS_MAGIC {
        return Ok(());
    }
    let needed = system
        .f_bavail
        .saturating_mul(system.f_bsize.unsigned_abs());
    let memory = procfs::Meminfo::current().map_err(|e| BedError::failed("/proc/meminfo", e))?;
    let available = memory.mem_available.unwrap_or(memory.mem_free);
    match needed < available {
        true => Ok(()),
        false => Err(BedError::Usage(format!(
            "filling it takes {needed} bytes of memory, and {available} are available"
        ))),
    }
}
