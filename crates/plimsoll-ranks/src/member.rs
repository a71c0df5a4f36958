//! Rank side of a group on hosts: a rank started by `ssh` or by the first rank of its machine.
//!
//! Frames go over standard input and output. The rank ends when either stream is closed or silent, even while the rank
//! is busy: no rank must outlive rank 0.

use crate::handshake::{Assignment, Hello, MAX_ASSIGNMENT, PROTOCOL};
use crate::hosts::{FAN_OUT, LocalChild, Peer, Peers};
use crate::keepalive::Wire;
use crate::socket::LENGTH_PREFIX_BYTES;
use crate::tree::TreePosition;
use crate::{ConnectError, Ranks};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Subcommand of the program that runs a rank.
pub const RANK_COMMAND: &str = "rank";
/// Grace period for an orderly end after the connection is lost.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum time in which rank 0 starts the program on all other hosts.
const ASSIGNMENT_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time in which rank 0 sends and starts the program on all hosts.
const COPIED_ASSIGNMENT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// State of a process between its assignment and joining the other ranks.
struct Pending {
    assignment: Assignment,
    wire: Wire,
}

thread_local! {
    static PENDING: RefCell<Option<Pending>> = const { RefCell::new(None) };
}

/// Sends this process's version to the process that started it, and receives the assignment. Returns the start data for
/// the program. [`connect`](crate::connect) then joins the other ranks, on the same thread. Afterwards the standard
/// input is empty, and the standard output is discarded.
///
/// `checksum`: SHA-256 of the program file, if the program was sent.
///
/// # Errors
/// The standard input ends, or has no valid assignment; or no assignment arrives within a minute (within half an hour
/// if the program was sent).
pub fn accept_assignment(version: &str, checksum: Option<String>) -> Result<Vec<u8>, ConnectError> {
    let accepted = accept(version, checksum).map_err(|e| {
        ConnectError::usage(format!(
            "{RANK_COMMAND} is for plimsoll itself, which starts it with --hosts: {e}"
        ))
    })?;
    let payload = accepted.assignment.payload.clone();
    PENDING.set(Some(accepted));
    Ok(payload)
}

fn accept(version: &str, checksum: Option<String>) -> io::Result<Pending> {
    let wire = Wire {
        input: io::stdin().as_fd().try_clone_to_owned()?,
        output: io::stdout().as_fd().try_clone_to_owned()?,
    };
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    let hello = Hello {
        version: version.into(),
        protocol: PROTOCOL,
        checksum,
    };
    File::from(wire.output.try_clone()?).write_all(hello.encode().as_bytes())?;
    await_assignment(&wire.input, hello.checksum.is_some())?;
    let mut input = File::from(wire.input.try_clone()?);
    let mut prefix = [0; LENGTH_PREFIX_BYTES];
    input.read_exact(&mut prefix)?;
    let len = u32::from_le_bytes(prefix) as usize;
    let unreadable = || io::Error::other("what came is not an assignment");
    if len > MAX_ASSIGNMENT {
        return Err(unreadable());
    }
    let mut bytes = vec![0; len];
    input.read_exact(&mut bytes)?;
    let assignment = Assignment::decode(&bytes).ok_or_else(unreadable)?;
    Ok(Pending { assignment, wire })
}

/// Waits for the assignment, with a time limit: rank 0 may have died behind a network connection that was cut.
fn await_assignment(input: &OwnedFd, is_copied: bool) -> io::Result<()> {
    let limit = match is_copied {
        true => COPIED_ASSIGNMENT_TIMEOUT,
        false => ASSIGNMENT_TIMEOUT,
    };
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("the limit is short");
        match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&left)) {
            Ok(0) => return Err(io::Error::other("no assignment came")),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Sends an assignment to a process that waits for an assignment.
pub fn send_assignment(mut to: &UnixStream, assignment: &Assignment) -> io::Result<()> {
    let bytes = assignment.encode();
    let mut all = (bytes.len() as u32).to_le_bytes().to_vec();
    all.extend(bytes);
    to.write_all(&all)
}

/// Whether this process has an assignment and has not joined yet.
pub fn is_pending() -> bool {
    PENDING.with_borrow(Option::is_some)
}

/// Joins the other ranks if this process has an assignment.
pub fn join() -> Option<Result<Ranks, ConnectError>> {
    let pending = PENDING.take()?;
    let rank = pending.assignment.ranks.start;
    Some(join_as(pending).map_err(|e| ConnectError::failed(format!("rank {rank}: {e}"))))
}

fn join_as(Pending { assignment, wire }: Pending) -> io::Result<Ranks> {
    let Assignment {
        ranks,
        size,
        parent,
        ..
    } = assignment.clone();
    let place = TreePosition::of_subtree(ranks, size, parent, FAN_OUT);
    let mut peers = Peers::default();
    peers.push(Peer::Parent, wire, |_| {
        std::thread::sleep(ORPHAN_TIMEOUT);
        std::process::exit(1);
    })?;
    let trouble = start_children(&place, &assignment, &mut peers).err();
    let started = peers.len() - 1;
    let place = TreePosition {
        children: place.children[..started].to_vec(),
        ..place
    };
    let host = Some(assignment.host).filter(|h| !h.is_empty());
    if host.is_some() {
        crate::panic_message::keep();
    }
    let group = Ranks::new(place, peers.into_link()?);
    let group = group.on_hosts(assignment.root_works, host);
    match trouble {
        None => Ok(group),
        Some(trouble) => {
            group.fail(&trouble);
            Err(io::Error::other(trouble))
        }
    }
}

/// Starts the processes of the ranks below this rank in the tree, on the same machine.
///
/// # Errors
/// The reason why a process could not be started; the processes that were started before the error are in `peers`.
pub fn start_children(
    place: &TreePosition,
    own: &Assignment,
    peers: &mut Peers,
) -> Result<(), String> {
    for ranks in &place.children {
        let rank = ranks.start;
        let failed = |e| format!("cannot start process {rank} of {}: {e}", place.size);
        let assignment = Assignment {
            ranks: ranks.clone(),
            parent: place.rank,
            ..own.clone()
        };
        let (child, socket) = LocalChild::start(&own.host).map_err(failed)?;
        let sent = child.expect_hello(&socket);
        sent.and_then(|()| send_assignment(&socket, &assignment))
            .map_err(failed)?;
        let wire = Wire {
            input: OwnedFd::from(socket.try_clone().map_err(failed)?),
            output: OwnedFd::from(socket),
        };
        peers
            .push(Peer::Local(child), wire, |_| ())
            .map_err(failed)?;
    }
    Ok(())
}
