//! Ranks on other machines, connected by `ssh`.
//!
//! Rank 0 has one `ssh` to each host, whatever the number of ranks on the host: the first rank of a host starts at most
//! [`FAN_OUT`] further ranks, which start the remaining ranks. A host therefore gets a single connection (an `ssh`
//! server refuses many concurrent connections), combines the values of its ranks, and needs no key for another host.

use crate::handshake::{Assignment, MAX_HELLO};
use crate::keepalive::{Keepalive, Loss, Wire};
use crate::link::Incoming;
use crate::local::exit_description;
use crate::member::{RANK_COMMAND, start_children};
use crate::socket::SocketLink;
use crate::ssh::{COPY_ID_DIGITS, Remote};
use crate::tree::TreePosition;
use crate::{ConnectError, FAILURE_DRAIN_TIMEOUT, Ranks, connect};
use std::cell::RefCell;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Maximum number of processes that a rank starts on its own machine.
pub const FAN_OUT: u32 = 16;

/// Ranks on this machine and on others.
#[derive(Debug, Clone)]
pub struct HostGroup {
    /// The `ssh` command with options, as shell text.
    pub ssh: String,
    /// The other machines, in rank order.
    pub hosts: Vec<Host>,
    /// Number of ranks on this machine, including rank 0.
    pub processes: u32,
    /// Whether rank 0 has workers.
    pub root_works: bool,
    /// Version of this program, required on all hosts.
    pub version: String,
    /// Start data for the other ranks of this machine.
    pub payload: Vec<u8>,
    /// The program to send to the hosts; `None` if installed programs are used.
    pub copy: Option<ProgramCopy>,
}

/// A machine on which `ssh` starts ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Name of the machine in messages and results.
    pub name: String,
    /// Destination of `ssh`: `host` or `user@host`.
    pub destination: String,
    /// TCP port of the machine's `ssh` server; `None` for the default port of `ssh`.
    pub port: Option<u16>,
    /// Number of ranks that run on the machine, at least 1.
    pub ranks: u32,
    /// Program that `ssh` starts on the machine: a path, or a name to be looked up in the machine's `PATH`,
    /// `~/.local/bin` and `~/.cargo/bin`.
    pub program: String,
    /// Opaque start data for the ranks of the machine.
    pub payload: Vec<u8>,
}

/// A program file to send to hosts.
#[derive(Debug, Clone)]
pub struct ProgramCopy {
    /// Content of the file.
    pub bytes: Arc<[u8]>,
    /// SHA-256 of the file, in hexadecimal digits.
    pub checksum: String,
}

impl ProgramCopy {
    /// Identifier in the name of the program's directory on a host: the first [`COPY_ID_DIGITS`] digits of the
    /// checksum.
    pub(crate) fn id(&self) -> &str {
        let end = self.checksum.len().min(COPY_ID_DIGITS);
        &self.checksum[..end]
    }
}

/// Starts this program on the hosts by `ssh`, and connects the started processes with this process as rank 0.
///
/// # Errors
/// A launcher has started this process; the group has too many ranks; the `ssh` command is not found; or the program
/// could not be started on some hosts, with a line for each host that failed. After an error no started process is left
/// on any host.
pub fn connect_hosts(group: &HostGroup) -> Result<Ranks, ConnectError> {
    connect::check_no_launcher("--hosts")?;
    let ranks: Vec<u32> = group.hosts.iter().map(|h| h.ranks).collect();
    let size = ranks
        .iter()
        .fold(group.processes, |sum, n| sum.saturating_add(*n));
    if size > connect::MAX_PROCESSES {
        return Err(ConnectError::usage(format!(
            "--hosts: {size} ranks are more than {}",
            connect::MAX_PROCESSES
        )));
    }
    crate::ssh::check_command(&group.ssh)?;
    let place = TreePosition::of_root(group.processes, &ranks, FAN_OUT);
    let own = place.children.len() - ranks.len();
    let mut remotes = greet_all(group)?;
    let failed = |e: io::Error| ConnectError::failed(format!("cannot use a socket: {e}"));
    let mut peers = Peers::default();
    let local = TreePosition {
        children: place.children[..own].to_vec(),
        ..place.clone()
    };
    let assignment = |ranks: Range<u32>, host: String, payload: Vec<u8>| Assignment {
        ranks,
        size,
        parent: 0,
        root_works: group.root_works,
        host,
        payload,
    };
    let mine = assignment(1..2, String::new(), group.payload.clone());
    let mut assign_all = || {
        start_children(&local, &mine, &mut peers)?;
        let each = remotes.iter_mut().zip(&group.hosts);
        each.zip(&place.children[own..])
            .try_for_each(|((remote, host), ranks)| {
                let payload = host.payload.clone();
                remote.assign(&assignment(ranks.clone(), host.name.clone(), payload))
            })
    };
    if let Err(error) = assign_all() {
        Remote::end_all(&mut remotes);
        return Err(ConnectError::failed(error));
    }
    for remote in remotes {
        let socket = remote.socket().map_err(failed)?;
        let wire = Wire {
            input: OwnedFd::from(socket.try_clone().map_err(failed)?),
            output: OwnedFd::from(socket),
        };
        peers
            .push(Peer::Remote(remote), wire, |_| ())
            .map_err(failed)?;
    }
    let ranks = Ranks::new(place, peers.into_link().map_err(failed)?);
    Ok(ranks.on_hosts(group.root_works, None))
}

/// Starts the program on all hosts concurrently.
fn greet_all(group: &HostGroup) -> Result<Vec<Remote>, ConnectError> {
    let greeted: Vec<Result<Remote, String>> = thread::scope(|scope| {
        let start = |host| {
            scope.spawn(move || {
                let mut remote = Remote::start(group, host)?;
                remote.greet(group)?;
                Ok(remote)
            })
        };
        let threads: Vec<_> = group.hosts.iter().map(start).collect();
        let joined = threads.into_iter().map(|t| t.join());
        joined
            .map(|r| r.expect("greeting a host does not panic"))
            .collect()
    });
    let (mut remotes, mut errors) = (Vec::new(), Vec::new());
    for result in greeted {
        match result {
            Ok(remote) => remotes.push(remote),
            Err(error) => errors.push(error),
        }
    }
    match errors.is_empty() {
        true => Ok(remotes),
        false => {
            Remote::end_all(&mut remotes);
            Err(ConnectError::failed(errors.join("\n")))
        }
    }
}

/// The process at the other end of a connection.
pub enum Peer {
    /// The process that started this process.
    Parent,
    /// A process that this process started on the same machine.
    Local(LocalChild),
    /// The program on another machine.
    Remote(Remote),
}

/// A process that this process started on the same machine.
pub struct LocalChild {
    child: Child,
    /// Name of this machine; empty for the machine of rank 0.
    host: String,
}

impl LocalChild {
    /// Starts a copy of this program as another rank, with a socket as standard input and output.
    pub fn start(host: &str) -> io::Result<(Self, UnixStream)> {
        let (mine, theirs) = UnixStream::pair()?;
        let theirs = OwnedFd::from(theirs);
        // The link /proc/self/exe leads to the running program even after its file was replaced or removed.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("plimsoll").arg(RANK_COMMAND);
        command.stdin(theirs.try_clone()?).stdout(theirs);
        // A separate process group: a terminal interrupt must reach only rank 0, which ends the other ranks in order.
        let child = command.process_group(0).spawn()?;
        let host = host.to_owned();
        Ok((Self { child, host }, mine))
    }

    /// Reads the first line of the process. The line needs no check: the process is a copy of this program.
    pub fn expect_hello(&self, mut socket: &UnixStream) -> io::Result<()> {
        let mut byte = [0];
        for _ in 0..MAX_HELLO {
            socket.read_exact(&mut byte)?;
            if byte == *b"\n" {
                return Ok(());
            }
        }
        Err(io::Error::other("its first line is too long"))
    }

    fn close_reason(&mut self) -> Incoming {
        let reason = exit_description(&mut self.child);
        Incoming::Gone(match self.host.as_str() {
            "" => reason,
            host => format!("host {host}: {reason}"),
        })
    }

    /// Waits for the process to end until [`FAILURE_DRAIN_TIMEOUT`] after `begin`, then kills the process.
    fn end(&mut self, begin: Instant) {
        let left = FAILURE_DRAIN_TIMEOUT.saturating_sub(begin.elapsed());
        if crate::local::wait_for(&mut self.child, left).is_none() {
            // Killing fails if the process has just ended.
            let _ = self.child.kill();
        }
    }
}

impl Peer {
    fn close_reason(&mut self, loss: Option<Loss>) -> Incoming {
        match self {
            Self::Parent if loss == Some(Loss::Silent) => Incoming::Lost(
                "nothing was heard from it: the network is cut, or it is down".into(),
            ),
            Self::Parent => Incoming::Gone("died, or ended before the others".into()),
            Self::Local(child) => child.close_reason(),
            Self::Remote(remote) => remote.close_reason(loss),
        }
    }

    /// Closes the connection, which tells the process to end.
    fn close(&self) {
        match self {
            // The link has already closed the socket to the process, and thereby tells the process to end.
            Self::Parent | Self::Local(_) => {}
            Self::Remote(remote) => remote.close(),
        }
    }

    /// Waits for the process to end, with a time limit from `begin`, then kills the process.
    fn end(&mut self, begin: Instant) {
        match self {
            Self::Parent => {}
            Self::Local(child) => child.end(begin),
            Self::Remote(remote) => remote.end(begin),
        }
    }

    /// Reaps the process, which has ended or was killed.
    fn reap(&mut self) {
        match self {
            Self::Parent => {}
            Self::Local(child) => drop(child.child.wait()),
            Self::Remote(remote) => remote.reap(),
        }
    }
}

/// The processes at the other ends of this process's connections, in the order of the neighbours.
#[derive(Default)]
pub struct Peers {
    peers: Vec<(Peer, Keepalive)>,
    sockets: Vec<UnixStream>,
}

impl Peers {
    /// Adds a process; `on_loss` is called on another thread when the connection is lost.
    pub fn push(
        &mut self,
        peer: Peer,
        wire: Wire,
        on_loss: impl FnOnce(Loss) + Send + 'static,
    ) -> io::Result<()> {
        let (keepalive, socket) = Keepalive::start(wire, on_loss)?;
        self.peers.push((peer, keepalive));
        self.sockets.push(socket);
        Ok(())
    }

    /// Number of processes.
    pub fn len(&self) -> usize {
        self.peers.len()
    }

    /// Converts the peers into a link. Closing the link ends the processes.
    pub fn into_link(self) -> io::Result<SocketLink> {
        let peers = Rc::new(RefCell::new(self.peers));
        let closing = peers.clone();
        SocketLink::new(
            self.sockets,
            Box::new(move |at| {
                let (peer, keepalive) = &mut closing.borrow_mut()[at];
                peer.close_reason(keepalive.loss())
            }),
            Box::new(move |_| {
                end_all(&mut peers.borrow_mut());
            }),
        )
    }
}

/// Ends all processes. Each timeout applies to all processes together, whatever their number.
fn end_all(peers: &mut [(Peer, Keepalive)]) {
    peers.iter().for_each(|(_, k)| k.begin_end());
    let begin = Instant::now();
    peers.iter().for_each(|(_, k)| k.finish(begin));
    peers.iter().for_each(|(peer, _)| peer.close());
    let begin = Instant::now();
    // Remote processes, with the shorter timeout, before local processes.
    let is_local = |peer: &Peer| matches!(peer, Peer::Local(_));
    for locals in [false, true] {
        let these = peers
            .iter_mut()
            .filter(|(peer, _)| is_local(peer) == locals);
        these.for_each(|(peer, _)| peer.end(begin));
    }
    peers.iter_mut().for_each(|(peer, _)| peer.reap());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fake `ssh` whose program never ends by itself; the program of the host `old` has another version.
    const SSH: &str = r#"sh -c 'while [ "$1" != -- ]; do shift; done
        case $2 in old) version=0.9;; *) version=1.0;; esac
        echo "plimsoll-rank $version PROTOCOL -"; exec sleep SECONDS' ssh"#;

    fn host(name: &str) -> Host {
        Host {
            name: name.into(),
            destination: name.into(),
            port: None,
            ranks: 1,
            program: "plimsoll".into(),
            payload: vec![],
        }
    }

    #[test]
    fn no_host_goes_on_when_one_is_refused() {
        let names = (0..30).map(|n| format!("host{n}"));
        // A unique argument, which no other process has.
        let seconds = format!("1000.{}", std::process::id());
        let group = HostGroup {
            ssh: SSH
                .replace("SECONDS", &seconds)
                .replace("PROTOCOL", &crate::handshake::PROTOCOL.to_string()),
            hosts: names.chain(["old".into()]).map(|n| host(&n)).collect(),
            processes: 1,
            root_works: true,
            version: "1.0".into(),
            payload: vec![],
            copy: None,
        };
        let error = connect_hosts(&group).err().unwrap().to_string();
        assert!(
            error.starts_with("host old: plimsoll there is version 0.9, and this one is 1.0"),
            "{error}"
        );
        // All processes must have ended before the error is returned.
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let command = format!("sleep\0{seconds}\0");
        let goes_on = |dir: &std::path::Path| {
            let found = std::fs::read(dir.join("cmdline")).unwrap_or_default();
            found == command.as_bytes()
        };
        let left = processes.filter(|process| goes_on(&process.path())).count();
        assert_eq!(left, 0);
    }
}
