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

/// File name of the socket.
const SOCKET: &str = "control";

/// Maximum duration of a request: a restart waits until the daemon is ready.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(100);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Returns the status of the bed.
    Status,
    /// Returns the states of the nodes.
    Nodes,
    /// Injects or ends a fault: the text of a [`Fault`](crate::Fault).
    Fault(String),
    /// Ends the bed. The reply precedes the shutdown.
    Down,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The request has succeeded.
    Done,
    /// Reply to `Request::Status`.
    Status(BedStatus),
    /// Reply to `Request::Nodes`.
    Nodes(Vec<NodeStatus>),
    /// The request is wrong, with the reason.
    Usage(String),
    /// The request has failed, with the reason.
    Failed(String),
}

/// The status of a bed, from its keeper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BedStatus {
    /// The nodes of the bed, in the order in which the kind added them.
    pub nodes: Vec<NodeStatus>,
    /// The processes of the bed, with their process numbers on the machine.
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
    /// Process number on the machine.
    pub pid: i32,
    /// Name of the program.
    pub program: String,
    /// Resident memory in bytes.
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
