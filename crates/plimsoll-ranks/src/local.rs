//! Ranks on this machine, as copies of this program.
//!
//! Each copy gets a socket as its standard input, and its rank in the environment variable [`LOCAL_RANK_VARIABLE`].
//! Rank 0, the parent, is the centre of a star. A copy whose parent has died finds its socket closed and ends; the
//! parent learns from the system how a copy ended.

use crate::link::Incoming;
use crate::socket::SocketLink;
use crate::tree::TreePosition;
use crate::{ConnectError, FAILURE_DRAIN_TIMEOUT, Ranks};
use rustix::fs::FileType;
use std::cell::RefCell;
use std::env;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Rank of a copy and number of ranks, as `3/8`.
const LOCAL_RANK_VARIABLE: &str = "PLIMSOLL_LOCAL_RANK";
/// Maximum delay between the closing of a process's socket and the exit status of the process.
pub const EXIT_STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts `size - 1` copies of this program with the same arguments, connected with this process by Unix sockets; this
/// process is rank 0.
///
/// # Errors
/// The system cannot start a copy. All copies that were started before the error have ended when the error is returned.
pub fn start(size: u32) -> Result<Ranks, ConnectError> {
    let mut sockets = Vec::new();
    let mut children = Vec::new();
    let mut trouble = None;
    for rank in 1..size {
        match start_one(rank, size) {
            Ok((socket, child)) => {
                sockets.push(socket);
                children.push(child);
            }
            Err(error) => {
                trouble = Some(format!("cannot start process {rank} of {size}: {error}"));
                break;
            }
        }
    }
    let started = 1 + children.len() as u32;
    let children = Rc::new(RefCell::new(children));
    let dying = children.clone();
    let link = SocketLink::new(
        sockets,
        Box::new(move |child| Incoming::Gone(exit_description(&mut dying.borrow_mut()[child]))),
        Box::new(move |in_order| reap(&mut children.borrow_mut(), in_order)),
    );
    let link = link.map_err(|e| ConnectError::failed(format!("cannot use a socket: {e}")))?;
    let group = Ranks::new(TreePosition::new(0, started, started.max(2) - 1), link);
    match trouble {
        None => Ok(group),
        Some(trouble) => {
            group.fail(&trouble);
            Err(ConnectError::failed(trouble))
        }
    }
}

fn start_one(rank: u32, size: u32) -> io::Result<(UnixStream, Child)> {
    let (mine, theirs) = UnixStream::pair()?;
    let mut arguments = env::args_os();
    let mut command = Command::new(env::current_exe()?);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    let child = command
        .args(arguments)
        .env(LOCAL_RANK_VARIABLE, format!("{rank}/{size}"))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .spawn()?;
    Ok((mine, child))
}

/// Joins the parent if [`start`] started this process; an error if the socket cannot be used. Afterwards the standard
/// input is empty.
pub fn join() -> Option<Result<Ranks, ConnectError>> {
    let (rank, size) = spawned_rank()?;
    Some(join_as(rank, size).map_err(|e| ConnectError::failed(format!("rank {rank}: {e}"))))
}

/// Whether [`start`] started this process and the process has not joined yet.
pub fn is_spawned_rank() -> bool {
    spawned_rank().is_some()
}

/// Rank and number of ranks of a copy; `None` if this process is not a copy.
///
/// Programs started by a copy inherit the variable, but only a copy also has a socket as its standard input.
fn spawned_rank() -> Option<(u32, u32)> {
    let ranks = parse(&env::var(LOCAL_RANK_VARIABLE).ok()?)?;
    let stat = rustix::fs::fstat(io::stdin().as_fd()).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::Socket).then_some(ranks)
}

fn join_as(rank: u32, size: u32) -> io::Result<Ranks> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let link = SocketLink::new(
        vec![socket],
        Box::new(|_| Incoming::Gone("died, or ended before the others".into())),
        Box::new(|_| {}),
    )?;
    Ok(Ranks::new(TreePosition::new(rank, size, size), link))
}

/// Parses `rank/size` with 0 < rank < size.
fn parse(text: &str) -> Option<(u32, u32)> {
    let (rank, size) = text.split_once('/')?;
    let (rank, size) = (rank.parse().ok()?, size.parse().ok()?);
    (0 < rank && rank < size).then_some((rank, size))
}

/// Waits for the end of a process that has closed its socket; returns the end of a sentence.
pub fn exit_description(child: &mut Child) -> String {
    let status = wait_for(child, EXIT_STATUS_TIMEOUT);
    match status {
        Some(status) => describe(status),
        None => "closed its connection".into(),
    }
}

/// End of a sentence about a process that exited.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code} before the others"),
        (None, Some(signal)) => format!("died (signal {signal})"),
        (None, None) => format!("ended ({status})"),
    }
}

/// Waits at most `limit` for the child process to end, and reaps the process; `None` if the process is still running or
/// cannot be waited for.
pub fn wait_for(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begin.elapsed() < limit => std::thread::sleep(Duration::from_millis(1)),
            _ => return None,
        }
    }
}

/// Waits for all children. After a failure, kills the children that have not ended within [`EXIT_STATUS_TIMEOUT`].
fn reap(children: &mut [Child], in_order: bool) {
    let begin = Instant::now();
    for (index, child) in children.iter_mut().enumerate() {
        let limit = if in_order {
            Duration::MAX
        } else {
            EXIT_STATUS_TIMEOUT
        };
        if wait_for(child, limit.saturating_sub(begin.elapsed())).is_none() {
            eprintln!(
                "rank {}: killed, since it did not end within {} s",
                index + 1,
                FAILURE_DRAIN_TIMEOUT.as_secs()
            );
            // Killing fails if the process has just ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Child {
        let mut command = Command::new("/bin/sh");
        let started = command.args(["-c", script]).spawn();
        started.unwrap()
    }

    #[test]
    fn the_end_of_a_process_is_described() {
        for (script, expected) in [
            ("exit 0", "ended with exit code 0 before the others"),
            ("exit 7", "ended with exit code 7 before the others"),
            ("kill -9 $$", "died (signal 9)"),
        ] {
            assert_eq!(exit_description(&mut shell(script)), expected);
        }
    }

    #[test]
    fn a_process_is_waited_for_until_the_limit() {
        let mut child = shell("exec sleep 1000");
        assert_eq!(wait_for(&mut child, Duration::ZERO), None);
        assert_eq!(wait_for(&mut child, Duration::from_millis(3)), None);
        child.kill().unwrap();
        let status = wait_for(&mut child, Duration::from_secs(60)).unwrap();
        assert_eq!(describe(status), "died (signal 9)");
        assert_eq!(wait_for(&mut child, Duration::ZERO), Some(status));
    }

    #[test]
    fn only_ranks_that_exist_are_parsed() {
        assert_eq!(parse("3/8"), Some((3, 8)));
        for text in [
            "", "3", "0/8", "8/8", "9/8", "-1/8", "3/", "/8", "3/8/9", "a/8",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
