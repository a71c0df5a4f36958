//! A relay between clients of NFS version 4 and their server, which injects faults: the relay parses compounds (RFC
//! 7530, 15.2), and applies a [`Fault`] to matching compounds.

mod faults;

use crate::{TestServerError, with_options};
use faults::{CallAction, Faults, ReplyAction, altered, record};
pub use faults::{Fault, Garbage};
use plimsoll_nfs::rpc::{Kind, RecordReader, kind};
use plimsoll_nfs::v4::operations::Op;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum size of a message in bytes.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// Size of a read in bytes.
const READ_CHUNK_BYTES: usize = 64 << 10;

/// Maximum time until the address of a closed connection is free.
const CONNECTION_CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A relay in front of a server of NFS version 4. Calls pass unchanged until [`FaultRelay::inject`]. The relay and all
/// of its connections end when this value is dropped.
pub struct FaultRelay {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    server: SocketAddr,
    faults: Mutex<Faults>,
    pairs: Mutex<Vec<Weak<ConnectionPair>>>,
    /// Local addresses of the connections to the server, by client address.
    local_addresses: Mutex<HashMap<SocketAddr, SocketAddr>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    over: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FaultRelay {
    /// Starts a relay in front of this server, at a free port of the loopback.
    pub fn start(server: SocketAddr) -> Result<Self, TestServerError> {
        let failed = |e| TestServerError::failed("a relay", e);
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared {
            server,
            faults: Mutex::default(),
            pairs: Mutex::default(),
            local_addresses: Mutex::default(),
            threads: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let accepting = shared.clone();
        let thread = std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if accepting.over.load(Relaxed) {
                    return;
                }
                // A connection that cannot be relayed is closed.
                let _ = accepting.relay(client);
            }
        });
        Ok(Self {
            address,
            shared,
            listener: Some(thread),
        })
    }

    /// URL of the target `nfs4` through the relay, for a path of the server and options.
    pub fn nfs4_url(&self, path: &str, options: &str) -> String {
        with_options(&format!("nfs4://{}{path}", self.address), options)
    }

    /// Applies a fault to compounds that arrive from now on. If several faults would apply to a compound, the relay
    /// applies only the fault that was injected first.
    pub fn inject(&self, fault: Fault) {
        lock(&self.shared.faults).all.push(fault);
    }

    /// Removes all injected faults, so that further compounds pass unchanged.
    pub fn clear(&self) {
        lock(&self.shared.faults).all.clear();
    }

    /// Number of compounds to which a fault was applied.
    pub fn fallen(&self) -> u32 {
        lock(&self.shared.faults).fallen
    }

    /// Number of compounds with the operation `op` that the relay received from clients, retransmissions included.
    pub fn seen(&self, op: Op) -> u32 {
        let faults = lock(&self.shared.faults);
        faults.seen.get(&(op as u32)).copied().unwrap_or(0)
    }
}

impl Drop for FaultRelay {
    fn drop(&mut self) {
        self.shared.over.store(true, Relaxed);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        for pair in lock(&self.shared.pairs).iter().filter_map(Weak::upgrade) {
            pair.close();
        }
        let threads = std::mem::take(&mut *lock(&self.shared.threads));
        for thread in threads {
            let _ = thread.join();
        }
    }
}

/// A connection of a client, and the matching connection to the server.
struct ConnectionPair {
    client: TcpStream,
    server: TcpStream,
    /// Actions for expected replies, by their xid.
    actions: Mutex<HashMap<u32, ReplyAction>>,
    /// Held while a record is sent to the client, because both threads send records.
    sending: Mutex<()>,
}

impl ConnectionPair {
    fn to_client(&self, record: &[u8]) -> std::io::Result<()> {
        let _sending = lock(&self.sending);
        (&self.client).write_all(record)
    }

    fn close(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        // The server sees the end when both threads have dropped the connection.
        let _ = self.server.shutdown(Shutdown::Read);
    }

    /// Handles a message of the client.
    fn call(&self, message: &[u8], shared: &Shared) -> std::io::Result<()> {
        let action = lock(&shared.faults).judge(message);
        match action {
            CallAction::Pass => (&self.server).write_all(&record(message)),
            CallAction::Reply(record) => self.to_client(&record),
            CallAction::Forward(record, action) => {
                if let Ok((xid, _)) = kind(message) {
                    lock(&self.actions).insert(xid, action);
                }
                (&self.server).write_all(&record)
            }
        }
    }

    /// Handles a message of the server.
    fn reply(&self, message: &[u8]) -> std::io::Result<()> {
        let action = match kind(message) {
            Ok((xid, Kind::Reply)) => lock(&self.actions).remove(&xid).map(|action| (xid, action)),
            _ => None,
        };
        let Some((xid, action)) = action else {
            return self.to_client(&record(message));
        };
        if action == ReplyAction::Lose {
            self.close();
        }
        match altered(xid, message, action) {
            Some(record) => self.to_client(&record),
            None => Ok(()),
        }
    }
}

/// Delivers the messages received from `end`, until `end` closes or a delivery fails.
fn messages(mut end: &TcpStream, mut deliver: impl FnMut(&[u8]) -> std::io::Result<()>) {
    let mut records = RecordReader::new(MAX_MESSAGE_BYTES);
    let mut bytes = vec![0; READ_CHUNK_BYTES];
    loop {
        let read = match end.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(n) => n,
        };
        let mut done = Ok(());
        let split = records.push(&bytes[..read], |message| {
            if done.is_ok() {
                done = deliver(&message);
            }
        });
        if split.is_err() || done.is_err() {
            return;
        }
    }
}

/// Connects to `to` from the local address `from`.
fn connect_from(from: SocketAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &from)?;
    rustix::net::connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}

impl Shared {
    /// Connects to the server for a client. A client that reconnects from the same address gets the
    /// same local address, by which servers of 4.0 recognise retransmitted calls.
    fn connect(&self, client: SocketAddr) -> std::io::Result<TcpStream> {
        let earlier = lock(&self.local_addresses).get(&client).copied();
        let begun = Instant::now();
        let stream = loop {
            let Some(from) = earlier else {
                break TcpStream::connect(self.server)?;
            };
            match connect_from(from, self.server) {
                Ok(stream) => break stream,
                Err(e) if begun.elapsed() > CONNECTION_CLOSE_TIMEOUT => return Err(e),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        // A lingering connection would keep the address in use.
        sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
        lock(&self.local_addresses).insert(client, stream.local_addr()?);
        Ok(stream)
    }

    /// Relays a connection, on two threads.
    fn relay(self: &Arc<Self>, client: TcpStream) -> std::io::Result<()> {
        let server = self.connect(client.peer_addr()?)?;
        for end in [&client, &server] {
            end.set_nodelay(true)?;
        }
        let pair = Arc::new(ConnectionPair {
            client,
            server,
            actions: Mutex::default(),
            sending: Mutex::default(),
        });
        lock(&self.pairs).push(Arc::downgrade(&pair));
        let (calls, shared) = (pair.clone(), self.clone());
        let mut threads = lock(&self.threads);
        threads.push(std::thread::spawn(move || {
            messages(&calls.client, |m| calls.call(m, &shared));
            calls.close();
        }));
        threads.push(std::thread::spawn(move || {
            messages(&pair.server, |m| pair.reply(m));
            pair.close();
        }));
        Ok(())
    }
}
