//! A relay of TCP connections that passes on what comes, later.

use crate::delay::{Order, Wire};
use crate::figures::{Counters, Direction, Summary};
use crate::link::Link;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Most bytes that are taken at a time.
const CHUNK: usize = 64 << 10;

/// Time on a line of limited rate that a chunk may take: others have to get in between.
const CHUNK_TIME: Duration = Duration::from_millis(2);

/// Least bytes that are taken at a time, on the slowest line.
const LEAST_CHUNK: usize = crate::delay::PACKET;

/// Most bytes of one direction of a connection that are on their way.
const ON_THE_WAY: usize = 64 << 20;

/// Longest time that bytes wait for a line of limited rate; before that nothing more is taken.
const BACKLOG: Duration = Duration::from_millis(100);

/// Longest time that a server may take to take a connection.
const CONNECT: Duration = Duration::from_secs(10);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A relay that runs. Dropping it closes all its connections.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

/// What the threads of a relay share.
struct Shared {
    to: SocketAddr,
    link: Link,
    counters: Counters,
    wires: [Mutex<Wire>; 2],
    stop: AtomicBool,
    connections: Mutex<BTreeMap<u64, Arc<Connection>>>,
    /// One of the connections has ended.
    fewer: Condvar,
}

/// A connection of a client and the one to the server that is made for it.
struct Connection {
    client: TcpStream,
    server: TcpStream,
    up: Pipe,
    down: Pipe,
}

impl Connection {
    /// Ends it at once, in both directions.
    fn cut(&self) {
        for stream in [&self.client, &self.server] {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        for pipe in [&self.up, &self.down] {
            lock(&pipe.queue).cut = true;
            pipe.more.notify_all();
            pipe.less.notify_all();
        }
    }
}

impl Relay {
    /// Listens at `listen` (port 0 takes a free one) and passes connections on to `to`.
    ///
    /// # Errors
    /// What the system says to the address. A server that is not there is no error: each
    /// connection asks for it anew.
    pub fn start(listen: SocketAddr, to: SocketAddr, link: &Link) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            to,
            link: link.clone(),
            counters: Counters::default(),
            wires: [Mutex::new(Wire::new(link)), Mutex::new(Wire::new(link))],
            stop: AtomicBool::new(false),
            connections: Mutex::default(),
            fewer: Condvar::new(),
        });
        let of_thread = shared.clone();
        let accepting = Builder::new()
            .name("wan-accept".into())
            .spawn(move || accept(&listener, &of_thread))?;
        Ok(Self {
            address,
            shared,
            accepting: Some(accepting),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What went through it so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.shared.counters.summary()
    }

    /// Cuts all connections, without what is on its way; new ones are taken.
    pub fn cut(&self) {
        for connection in lock(&self.shared.connections).values() {
            connection.cut();
        }
    }

    /// Cuts all connections and gives the port back; returns what went through.
    #[must_use]
    pub fn stop(mut self) -> Summary {
        self.end();
        self.summary()
    }

    fn end(&mut self) {
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        self.shared.stop.store(true, Relaxed);
        // Wakes the thread that accepts. Where every address is listened at, the own one is meant.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            let local: IpAddr = match own.ip() {
                IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            };
            own.set_ip(local);
        }
        let _ = TcpStream::connect_timeout(&own, Duration::from_secs(1));
        let _ = accepting.join();
        let mut left = lock(&self.shared.connections);
        while !left.is_empty() {
            for connection in left.values() {
                connection.cut();
            }
            let waited = self
                .shared
                .fewer
                .wait_timeout(left, Duration::from_millis(100));
            left = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for (number, stream) in (0..).zip(listener.incoming()) {
        if shared.stop.load(Relaxed) {
            return;
        }
        let Ok(client) = stream else {
            // Out of descriptors, most likely: some will come back.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        shared.counters.connections.fetch_add(1, Relaxed);
        let of_thread = shared.clone();
        let relayed = Builder::new()
            .name("wan-relay".into())
            .spawn(move || relay(client, number, &of_thread));
        if relayed.is_err() {
            shared.counters.refused.fetch_add(1, Relaxed);
        }
    }
}

/// Makes the connection to the server, and passes on until both directions have ended.
fn relay(client: TcpStream, number: u64, shared: &Arc<Shared>) {
    // The client's connection was made by this machine's kernel, at once. The round trip that
    // making it takes on such a line is waited for before the first bytes.
    let opened = Instant::now() + shared.link.rtt;
    let server = TcpStream::connect_timeout(&shared.to, CONNECT);
    let ready = server.and_then(|server| {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        Ok(server)
    });
    let Ok(server) = ready else {
        shared.counters.refused.fetch_add(1, Relaxed);
        std::thread::sleep(opened.saturating_duration_since(Instant::now()));
        return;
    };
    let connection = Arc::new(Connection {
        client,
        server,
        up: Pipe::default(),
        down: Pipe::default(),
    });
    lock(&shared.connections).insert(number, connection.clone());
    if shared.stop.load(Relaxed) {
        connection.cut();
    }
    let done = std::thread::scope(|scope| {
        let thread = |name: &str| Builder::new().name(name.into());
        let Connection {
            client,
            server,
            up,
            down,
        } = &*connection;
        let counters = &shared.counters;
        let begun = (|| {
            let connection = &*connection;
            let put_up = || put(connection, server, up, &counters.up);
            thread("wan-up").spawn_scoped(scope, put_up)?;
            let put_down = || put(connection, client, down, &counters.down);
            thread("wan-down").spawn_scoped(scope, put_down)?;
            let from = From::new(shared, 1, number, opened);
            let take_down = || take(from, server, down, &counters.down);
            thread("wan-from").spawn_scoped(scope, take_down)?;
            io::Result::Ok(())
        })();
        match begun {
            Ok(()) => take(
                From::new(shared, 0, number, opened),
                client,
                up,
                &counters.up,
            ),
            // Without threads there is no relay.
            Err(_) => connection.cut(),
        }
        begun
    });
    if done.is_err() {
        shared.counters.refused.fetch_add(1, Relaxed);
    }
    lock(&shared.connections).remove(&number);
    shared.fewer.notify_all();
}

/// What is on its way in one direction of a connection.
#[derive(Default)]
struct Pipe {
    queue: Mutex<Queue>,
    /// Something came, or it was cut.
    more: Condvar,
    /// Something left, or it was cut.
    less: Condvar,
}

#[derive(Default)]
struct Queue {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    cut: bool,
}

/// Bytes, or the end of the stream if there are none.
struct Chunk {
    bytes: Vec<u8>,
    /// When it came, and not before the connection would have been made.
    came: Instant,
    due: Instant,
}

impl Pipe {
    /// Waits until there is room; returns whether the connection still is.
    fn wait_for_room(&self) -> bool {
        let mut queue = lock(&self.queue);
        while queue.bytes >= ON_THE_WAY && !queue.cut {
            queue = self
                .less
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        !queue.cut
    }

    fn push(&self, chunk: Chunk) {
        let mut queue = lock(&self.queue);
        queue.bytes += chunk.bytes.len();
        queue.chunks.push_back(chunk);
        self.more.notify_one();
    }

    /// Waits until the first chunk is due and takes it; none if the connection was cut.
    fn pop(&self) -> Option<Chunk> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.cut {
                return None;
            }
            let now = Instant::now();
            let due = queue.chunks.front().map(|c| c.due);
            queue = match due {
                None => self
                    .more
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(due) if due > now => {
                    let waited = self.more.wait_timeout(queue, due - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    let chunk = queue.chunks.pop_front()?;
                    queue.bytes -= chunk.bytes.len();
                    self.less.notify_one();
                    return Some(chunk);
                }
            };
        }
    }
}

/// What decides when bytes of one direction of a connection come out.
struct From<'a> {
    wire: &'a Mutex<Wire>,
    order: Order,
    link: &'a Link,
    opened: Instant,
}

impl<'a> From<'a> {
    fn new(shared: &'a Shared, direction: usize, number: u64, opened: Instant) -> Self {
        Self {
            wire: &shared.wires[direction],
            order: Order::new(&shared.link, number * 2 + direction as u64),
            link: &shared.link,
            opened,
        }
    }

    fn chunk(&self) -> usize {
        let Some(rate) = self.link.rate else {
            return CHUNK;
        };
        let bits = u128::from(rate.bits()) * CHUNK_TIME.as_micros() / 1_000_000;
        usize::try_from(bits / 8)
            .unwrap_or(CHUNK)
            .clamp(LEAST_CHUNK, CHUNK)
    }

    /// Waits while too much waits for the line.
    fn wait_for_wire(&self) {
        loop {
            let backlog = lock(self.wire).backlog(Instant::now());
            match backlog.checked_sub(BACKLOG) {
                Some(wait) if !wait.is_zero() => std::thread::sleep(wait),
                _ => return,
            }
        }
    }

    /// When bytes come out that came at `came`.
    fn due(&mut self, came: Instant, bytes: usize, counters: &Direction) -> Instant {
        let left = lock(self.wire).leaves(came, bytes);
        let stall = self.order.stalls(bytes);
        if stall.is_some() {
            counters.stalled();
        }
        self.order.comes(left + stall.unwrap_or_default())
    }
}

/// Takes bytes from a stream until it ends.
fn take(mut from: From<'_>, mut stream: &TcpStream, pipe: &Pipe, counters: &Direction) {
    let mut bytes = vec![0; from.chunk()];
    loop {
        from.wait_for_wire();
        if !pipe.wait_for_room() {
            return;
        }
        let read = match stream.read(&mut bytes) {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            // A connection that was reset ends like one that was closed.
            Err(_) => 0,
            Ok(read) => read,
        };
        let came = Instant::now().max(from.opened);
        pipe.push(Chunk {
            due: from.due(came, read, counters),
            bytes: bytes[..read].to_vec(),
            came,
        });
        if read == 0 {
            return;
        }
    }
}

/// Puts bytes into a stream when they are due.
fn put(connection: &Connection, mut stream: &TcpStream, pipe: &Pipe, counters: &Direction) {
    // A kernel that cannot do it wakes the thread up to 50 µs later, which is little here.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    while let Some(chunk) = pipe.pop() {
        if chunk.bytes.is_empty() {
            let _ = stream.shutdown(Shutdown::Write);
            return;
        }
        if stream.write_all(&chunk.bytes).is_err() {
            connection.cut();
            return;
        }
        counters.passed(chunk.bytes.len(), chunk.came.elapsed());
    }
}
