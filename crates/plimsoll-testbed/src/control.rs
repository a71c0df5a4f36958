//! Requests to the keeper of a test bed, as lines of JSON over a socket in the bed's directory.

use crate::BedError;
use crate::node::NodeStatus;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// File name of the keeper's Unix socket in the bed's directory.
const SOCKET: &str = "control";

/// Maximum time in which the keeper replies to a request: the restart of a node waits until the daemon is ready.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(100);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Request for the whole status of the bed: nodes, processes, and whether the bed is in sync.
    Status,
    /// Request for the states of the nodes only, which the keeper knows without asking the bed's software.
    Nodes,
    /// Request to inject or end a fault, as the text of a [`Fault`](crate::Fault).
    Fault(String),
    /// Request to end the bed; the keeper replies before the shutdown.
    Down,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// Reply that the fault of the request was injected or ended, or that the shutdown of the bed begins.
    Done,
    /// Reply to `Request::Status` with the status of the bed.
    Status(BedStatus),
    /// Reply to `Request::Nodes` with the states of the bed's nodes.
    Nodes(Vec<NodeStatus>),
    /// Reply to a wrong request, such as a fault on an unknown node; the text is the reason.
    Usage(String),
    /// Reply to a request whose action has failed; the text is the reason.
    Failed(String),
}

/// Status of a running bed, as `plimsoll testbed status` shows it: nodes, processes, and lines of the bed's kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BedStatus {
    /// States of the bed's nodes, in the order of their start.
    pub nodes: Vec<NodeStatus>,
    /// All processes in the bed's PID namespace, with their numbers on the machine.
    pub processes: Vec<ProcessStatus>,
    /// Further lines of the kind, such as numbers of copies of files, or the failure of an inquiry.
    pub lines: Vec<String>,
    /// Whether all acknowledged data are in their final location: all copies are made, everything is written back. Null
    /// if the kind has no such state, or if the state is unknown now.
    #[serde(default)]
    pub is_in_sync: Option<bool>,
}

/// A process of a bed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// Process number on the machine, not in the bed's PID namespace.
    pub pid: i32,
    /// Name of the process's program, as in `/proc/PID/stat`.
    pub program: String,
    /// Resident memory of the process in bytes, including pages shared with other processes.
    pub memory_bytes: u64,
}

/// A short path of the socket in `dir`, however long the path of `dir` is: paths of sockets have at most 107 bytes. The
/// path is valid as long as the returned directory is open.
fn short_path(dir: &Path) -> Result<(File, PathBuf), BedError> {
    let open = File::open(dir).map_err(BedError::at(dir))?;
    let path = format!("/proc/self/fd/{}/{SOCKET}", open.as_raw_fd());
    Ok((open, path.into()))
}

/// Listens for requests.
pub(crate) fn listen(dir: &Path) -> Result<UnixListener, BedError> {
    let (_open, path) = short_path(dir)?;
    UnixListener::bind(path).map_err(BedError::at(dir))
}

/// Sends a request and waits for its reply.
pub(crate) fn request(dir: &Path, request: &Request, timeout: Duration) -> Result<Reply, BedError> {
    let what = "the process of the test bed";
    let failed = |e: std::io::Error| match e.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            BedError::failed(what, "it is busy with another request")
        }
        _ => BedError::failed(what, e),
    };
    let (_open, path) = short_path(dir)?;
    let mut stream = UnixStream::connect(path).map_err(failed)?;
    stream.set_read_timeout(Some(timeout)).map_err(failed)?;
    let mut line = serde_json::to_string(request).expect("it has only text keys");
    line.push('\n');
    stream.write_all(line.as_bytes()).map_err(failed)?;
    let mut reply = String::new();
    BufReader::new(stream)
        .read_line(&mut reply)
        .map_err(failed)?;
    match serde_json::from_str(&reply) {
        Ok(Reply::Usage(why)) => Err(BedError::Usage(why)),
        Ok(Reply::Failed(why)) => Err(BedError::failed(what, why)),
        Ok(reply) => Ok(reply),
        Err(_) if reply.is_empty() => Err(BedError::failed(what, "it ended")),
        Err(e) => Err(BedError::failed(what, e)),
    }
}

/// Reads a request and replies with what `serve` returns.
pub(crate) fn answer(stream: &UnixStream, serve: impl FnOnce(&Request) -> Reply) {
    // A client that sends nothing delays other clients by about one second.
    let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
    let _ = stream.set_nonblocking(false);
    let mut line = String::new();
    if BufReader::new(stream).read_line(&mut line).is_err() {
        return;
    }
    let reply = match serde_json::from_str(&line) {
        Ok(request) => serve(&request),
        Err(e) => Reply::Usage(e.to_string()),
    };
    let mut text = serde_json::to_string(&reply).expect("it has only text keys");
    text.push('\n');
    // The client may have disconnected.
    let _ = (&mut &*stream).write_all(text.as_bytes());
}
