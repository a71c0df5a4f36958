//! Requests to the process of a test bed, as lines of JSON over a socket in the bed's directory.

use crate::BedError;
use crate::node::NodeStatus;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the socket.
const SOCKET: &str = "control";

/// Maximum time of a request: a restart waits until the daemon is ready.
pub(crate) const REPLY_TIMEOUT: Duration = Duration::from_secs(100);

/// A request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// The state of the bed.
    Status,
    /// The states of its nodes.
    Nodes,
    /// Injects or ends a fault: the text of a [`Fault`](crate::Fault).
    Fault(String),
    /// Ends the bed. The reply comes when that begins.
    Down,
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// It was done.
    Done,
    /// The state of the bed.
    Status(BedStatus),
    /// The states of its nodes.
    Nodes(Vec<NodeStatus>),
    /// The request is wrong.
    Usage(String),
    /// It failed.
    Failed(String),
}

/// The state of a bed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BedStatus {
    /// Its nodes.
    pub nodes: Vec<NodeStatus>,
    /// Its processes, in the numbers of the machine.
    pub processes: Vec<ProcessStatus>,
    /// What else its kind reports, such as the copies of files; a failure is a line too.
    pub lines: Vec<String>,
    /// Whether everything that was acknowledged is where the system is to keep it: all copies are made,
    /// everything is written back. Null if the kind has no such state, or does not know it now.
    #[serde(default)]
    pub is_in_sync: Option<bool>,
}

/// A process of a bed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// Its number on the machine.
    pub pid: i32,
    /// Its program.
    pub program: String,
    /// Its memory in bytes (resident set).
    pub memory_bytes: u64,
}

/// The path of the socket, which is short however deep the directory is: paths of sockets have at most
/// 107 bytes. The directory stays open as long as the path is used.
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
    // A client that sends nothing holds the others up for a moment only.
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
    // Who asked may have gone.
    let _ = (&mut &*stream).write_all(text.as_bytes());
}
