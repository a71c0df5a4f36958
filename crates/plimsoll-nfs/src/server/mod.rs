//! A file server in memory, for demonstrations and tests: NFS version 3, MOUNT and the port
//! mapper on one port, with optional delays and faults.

mod directory;
mod faults;
mod service;
mod tree;

pub use faults::{Fault, FaultRule};
pub use service::{MAX_TRANSFER_BYTES, MemoryService, Service};
pub use tree::{ListedEntry, MAX_NAME_BYTES, Tree};

use crate::acceptor::Acceptor;
use crate::lock::lock;
use crate::rpc::{Accepted, RecordReader, called, reply, seal};
use crate::v3;
use crate::wan::{Link, Relay};
use crate::xdr::Decoder;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The maximum number of bytes of a call.
const MAX_CALL_BYTES: usize = MAX_TRANSFER_BYTES as usize + (64 << 10);

/// The maximum number of bytes read at a time.
const READ_CHUNK_BYTES: usize = 256 << 10;

/// The size in bytes at which collected replies are sent before all received calls are executed.
const FLUSH_THRESHOLD_BYTES: usize = 1 << 20;

/// Options of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// The delay between a call and its reply. Calls do not wait for the replies of other calls.
    pub delay: Duration,
    /// The injected faults; the first rule that applies to a call counts.
    pub faults: Vec<FaultRule>,
}

/// The state that the threads of a server share.
struct ServerShared {
    service: Box<dyn Service>,
    faults: Vec<FaultRule>,
    streams: Mutex<BTreeMap<u64, TcpStream>>,
    calls: [AtomicU64; v3::Proc::ALL.len()],
}

/// A running server. Dropping the value stops the server.
pub struct Server {
    address: SocketAddr,
    shared: Arc<ServerShared>,
    accepting: Acceptor,
    /// The relay that delays calls and replies; `None` without delay.
    _relay: Option<Relay>,
}

impl Server {
    /// Starts a server of files in memory.
    ///
    /// # Errors
    /// If the server cannot listen at the address.
    pub fn start(
        listen: SocketAddr,
        tree: Arc<Mutex<Tree>>,
        behaviour: ServerOptions,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        let port = listener.local_addr()?.port();
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        // The fallback for a clock before 1970 is as good as any other value.
        let life = since.unwrap_or_default().as_nanos() as u64;
        let memory = MemoryService::new(tree, port, life);
        Self::serve(listener, memory, behaviour)
    }

    /// Serves the connections that a socket accepts.
    ///
    /// # Errors
    /// If the operating system provides no local address, no thread, or no socket for the delayed connections.
    pub fn serve(
        listener: TcpListener,
        service: impl Service,
        behaviour: ServerOptions,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (listener, relay) = match behaviour.delay.is_zero() {
            true => (listener, None),
            false => {
                let behind = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                let link = Link::of_rtt(behaviour.delay);
                let relay = Relay::at(listener, &[behind.local_addr()?], &link)?;
                (behind, Some(relay))
            }
        };
        let shared = Arc::new(ServerShared {
            service: Box::new(service),
            faults: behaviour.faults,
            streams: Mutex::default(),
            calls: std::array::from_fn(|_| AtomicU64::new(0)),
        });
        let serving = shared.clone();
        let accepting = Acceptor::start(listener, "nfs-accept", move |number, stream| {
            serve_connection(number, stream, &serving);
        })?;
        Ok(Self {
            address,
            shared,
            accepting,
            _relay: relay,
        })
    }

    /// The local address of the listening socket; its port is never 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of received calls of an NFS procedure since the start, including calls with an injected fault.
    #[must_use]
    pub fn calls(&self, procedure: v3::Proc) -> u64 {
        self.shared.calls[procedure as usize].load(Relaxed)
    }

    /// Closes all connections; the server continues to accept connections.
    pub fn cut(&self) {
        for stream in lock(&self.shared.streams).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.stop();
        self.cut();
    }
}

/// Starts a thread that executes the calls of a TCP connection.
fn serve_connection(number: u64, stream: TcpStream, shared: &Arc<ServerShared>) {
    let Ok(second) = stream.try_clone() else {
        return;
    };
    lock(&shared.streams).insert(number, second);
    let of_thread = shared.clone();
    let spawned = Builder::new().name("nfs-serve".into()).spawn(move || {
        // The connection of a client that disconnects or sends invalid calls ends; all other connections continue.
        let _ = serve(&stream, &of_thread);
        let _ = stream.shutdown(Shutdown::Both);
        lock(&of_thread.streams).remove(&number);
    });
    if spawned.is_err() {
        lock(&shared.streams).remove(&number);
    }
}

/// Replies to the calls of one connection.
fn serve(mut stream: &TcpStream, shared: &ServerShared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writing = stream;
    let mut send = |out: &mut Vec<u8>| {
        let sent = writing.write_all(out);
        out.clear();
        sent
    };
    let mut records = RecordReader::new(MAX_CALL_BYTES);
    let mut bytes = vec![0; READ_CHUNK_BYTES];
    let mut out = Vec::new();
    loop {
        let read = match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let mut close = false;
        let mut sent = Ok(());
        let split = records.push(&bytes[..read], |record| {
            close |= !shared.answer(&record, &mut out);
            // Short calls may have long replies: a client that reads no replies gets no further
            // replies.
            if out.len() >= FLUSH_THRESHOLD_BYTES && sent.is_ok() {
                sent = send(&mut out);
            }
        });
        sent.and_then(|()| send(&mut out))?;
        if close || split.is_err() {
            return Ok(());
        }
    }
}

impl ServerShared {
    /// Appends the reply to a call. Returns whether to keep the connection.
    fn answer(&self, record: &[u8], out: &mut Vec<u8>) -> bool {
        let mut args = Decoder::new(record);
        let Ok(call) = called(&mut args) else {
            return false;
        };
        let is_nfs = call.target.program == v3::PROGRAM && call.target.version == v3::VERSION;
        let proc = v3::Proc::of(call.target.procedure).filter(|_| is_nfs);
        let mut fault = None;
        if let Some(proc) = proc {
            self.calls[proc as usize].fetch_add(1, Relaxed);
            let mut rules = self.faults.iter();
            fault = rules.find_map(|rule| rule.next(proc));
        }
        match fault {
            Some(Fault::Close) => return false,
            Some(Fault::Garbage) => {
                out.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\n\r\n");
                return true;
            }
            _ => {}
        }
        let mut answer = reply(call.xid, Accepted::Success);
        let head = answer.len();
        let accepted = match (fault, proc) {
            (Some(Fault::Status(status)), Some(proc)) => {
                proc.encode_failure(status, &mut answer);
                Accepted::Success
            }
            _ => self.service.answer(call.target, args, &mut answer),
        };
        match fault {
            Some(Fault::Surplus) => answer.extend_from_slice(&[0; 4]),
            Some(Fault::Short) => answer.truncate((answer.len() - 4).max(head)),
            _ => {}
        }
        answer[head - 4..head].copy_from_slice(&(accepted as u32).to_be_bytes());
        seal(&mut answer);
        if fault != Some(Fault::DropReply) {
            out.extend_from_slice(&answer);
        }
        true
    }
}
