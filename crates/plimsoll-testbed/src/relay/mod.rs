//! A relay between clients of NFS version 4 and their server, which brings about faults: it reads
//! the compounds that pass (RFC 7530, 15.2), and those that a [`Fault`] is of come to it.

mod faults;

use crate::BedError;
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

/// Longest message that is passed on, in bytes.
const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// Bytes that are read at a time.
const READ_CHUNK_BYTES: usize = 64 << 10;

/// Longest time until a connection that was closed has left its place.
const CONNECTION_CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A relay before a server of NFS version 4. Calls pass as they are until [`FaultRelay::inject`].
/// It ends when it is dropped, with all its connections.
pub struct FaultRelay {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    server: SocketAddr,
    faults: Mutex<Faults>,
    pairs: Mutex<Vec<Weak<ConnectionPair>>>,
    /// Where connections to the server begin, by where those of the clients do.
    places: Mutex<HashMap<SocketAddr, SocketAddr>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    over: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FaultRelay {
    /// A relay before this server, at an address of this machine that nobody else has.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(server: SocketAddr) -> Result<Self, BedError> {
        let failed = |e| BedError::failed("a relay", e);
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared {
            server,
            faults: Mutex::default(),
            pairs: Mutex::default(),
            places: Mutex::default(),
            threads: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let accepting = shared.clone();
        let thread = std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if accepting.over.load(Relaxed) {
                    return;
                }
                // What cannot be passed on is closed.
                let _ = accepting.carry(client);
            }
        });
        Ok(Self {
            address,
            shared,
            listener: Some(thread),
        })
    }

    /// URL of the target `nfs4` by way of the relay; `path` is the server's, `more` is options.
    #[must_use]
    pub fn nfs4_url(&self, path: &str, more: &str) -> String {
        let mark = if more.is_empty() { "" } else { "?" };
        format!("nfs4://{}{path}{mark}{more}", self.address)
    }

    /// Has calls come to a fault from now on. Of several the first that is meant falls.
    pub fn inject(&self, fault: Fault) {
        lock(&self.shared.faults).all.push(fault);
    }

    /// No call comes to a fault any more.
    pub fn clear(&self) {
        lock(&self.shared.faults).all.clear();
    }

    /// Calls that came to a fault.
    #[must_use]
    pub fn fallen(&self) -> u32 {
        lock(&self.shared.faults).fallen
    }

    /// Compounds with this operation that clients sent, each time that they did.
    #[must_use]
    pub fn seen(&self, op: Op) -> u32 {
        let faults = lock(&self.shared.faults);
        faults.seen.get(&(op as u32)).copied().unwrap_or(0)
    }
}

impl Drop for FaultRelay {
    fn drop(&mut self) {
        self.shared.over.store(true, Relaxed);
        // Wakes who waits for connections.
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

/// A connection of a client, and the one to the server that belongs to it.
struct ConnectionPair {
    client: TcpStream,
    server: TcpStream,
    /// What becomes of answers, by the numbers of their calls.
    then: Mutex<HashMap<u32, ReplyAction>>,
    /// Both sides of the relay send to the client.
    sending: Mutex<()>,
}

impl ConnectionPair {
    fn to_client(&self, record: &[u8]) -> std::io::Result<()> {
        let _sending = lock(&self.sending);
        (&self.client).write_all(record)
    }

    fn close(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        // That it ends is said when both threads have let it go, and at once.
        let _ = self.server.shutdown(Shutdown::Read);
    }

    /// A message of the client.
    fn call(&self, message: &[u8], shared: &Shared) -> std::io::Result<()> {
        let verdict = lock(&shared.faults).judge(message);
        match verdict {
            CallAction::Pass => (&self.server).write_all(&record(message)),
            CallAction::Answer(record) => self.to_client(&record),
            CallAction::Forward(record, then) => {
                if let Ok((xid, _)) = kind(message) {
                    lock(&self.then).insert(xid, then);
                }
                (&self.server).write_all(&record)
            }
        }
    }

    /// A message of the server.
    fn answer(&self, message: &[u8]) -> std::io::Result<()> {
        let then = match kind(message) {
            Ok((xid, Kind::Reply)) => lock(&self.then).remove(&xid).map(|then| (xid, then)),
            _ => None,
        };
        let Some((xid, then)) = then else {
            return self.to_client(&record(message));
        };
        if then == ReplyAction::Lose {
            self.close();
        }
        match altered(xid, message, then) {
            Some(record) => self.to_client(&record),
            None => Ok(()),
        }
    }
}

/// Hands the messages that come from `end` on, until it closes or one cannot be.
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

/// A connection to `to` that begins at `from`.
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
    /// A connection to the server for one of a client. One that a client makes from the same place
    /// as one before begins where that began: servers of 4.0 know calls that come again by that.
    fn connect(&self, client: SocketAddr) -> std::io::Result<TcpStream> {
        let before = lock(&self.places).get(&client).copied();
        let begun = Instant::now();
        let stream = loop {
            let Some(from) = before else {
                break TcpStream::connect(self.server)?;
            };
            match connect_from(from, self.server) {
                Ok(stream) => break stream,
                Err(e) if begun.elapsed() > CONNECTION_CLOSE_TIMEOUT => return Err(e),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        // One that is waited for in the end would keep its place.
        sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
        lock(&self.places).insert(client, stream.local_addr()?);
        Ok(stream)
    }

    /// Carries a connection, on two threads.
    fn carry(self: &Arc<Self>, client: TcpStream) -> std::io::Result<()> {
        let server = self.connect(client.peer_addr()?)?;
        for end in [&client, &server] {
            end.set_nodelay(true)?;
        }
        let pair = Arc::new(ConnectionPair {
            client,
            server,
            then: Mutex::default(),
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
            messages(&pair.server, |m| pair.answer(m));
            pair.close();
        }));
        Ok(())
    }
}
