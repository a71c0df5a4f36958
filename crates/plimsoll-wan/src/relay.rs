//! A relay of TCP connections that passes on what comes, later.

use crate::delay::{DeliveryOrder, LineDirection};
use crate::figures::{Counters, Direction, Summary};
use crate::link::Link;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Most bytes that are taken at a time.
const MAX_CHUNK_BYTES: usize = 64 << 10;

/// Time on a line of limited rate that a chunk may take: others have to get in between.
const MAX_CHUNK_LINE_TIME: Duration = Duration::from_millis(2);

/// Least bytes that are taken at a time, on the slowest line.
const MIN_CHUNK_BYTES: usize = crate::delay::TCP_SEGMENT_BYTES;

/// Most memory that what is on its way in one direction of a connection takes, in bytes.
const MAX_IN_FLIGHT_BYTES: usize = 64 << 20;

/// Most memory of one direction of all connections, which share it evenly.
const MAX_TOTAL_IN_FLIGHT_BYTES: usize = 512 << 20;

/// What each connection may have on its way, however many there are.
const MIN_IN_FLIGHT_BYTES: usize = 256 << 10;

/// Longest time that bytes wait for a line of limited rate; before that nothing more is taken.
const MAX_LINE_WAIT: Duration = Duration::from_millis(100);

/// Longest time that a server may take to take a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

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
    to: Vec<SocketAddr>,
    link: Link,
    counters: Counters,
    wires: [Mutex<LineDirection>; 2],
    stop: AtomicBool,
    connections: Mutex<BTreeMap<u64, Arc<Connection>>>,
    /// How often all connections were cut: one that was taken before the last time is not to be, and
    /// may not be among them yet.
    cuts: AtomicU64,
    /// How many these are.
    count: AtomicUsize,
    /// One of the connections has ended.
    fewer: Condvar,
}

impl Shared {
    /// Most memory that one direction of a connection may take now.
    fn room(&self) -> usize {
        let share = MAX_TOTAL_IN_FLIGHT_BYTES / self.count.load(Relaxed).max(1);
        share.clamp(MIN_IN_FLIGHT_BYTES, MAX_IN_FLIGHT_BYTES)
    }
}

/// A connection of a client and the one to the server that is made for it.
struct Connection {
    /// The client's, and the server's.
    ends: [TcpStream; 2],
    /// From the first end to the second, and back.
    pipes: [DirectionQueue; 2],
}

impl Connection {
    /// Ends it at once, in both directions.
    fn cut(&self) {
        for stream in &self.ends {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.pipes.iter().for_each(DirectionQueue::cut);
    }

    /// Ends it at once, so that this end is told of a reset and not of an end in order.
    fn reset(&self, end: usize) {
        reset_when_closed(&self.ends[end]);
        // Wakes who reads, and sends nothing: what is sent is left to closing.
        let _ = self.ends[end].shutdown(Shutdown::Read);
        let _ = self.ends[1 - end].shutdown(Shutdown::Both);
        self.pipes.iter().for_each(DirectionQueue::cut);
    }
}

/// Has closing a connection reset it.
fn reset_when_closed(stream: &TcpStream) {
    // Where that cannot be, it ends in order, which is an end too.
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

impl Relay {
    /// Listens at `listen` (port 0 takes a free one) and passes connections on to `to`: addresses
    /// of one server, of which the first that takes a connection gets it.
    ///
    /// # Errors
    /// What the system says to the address. A server that is not there is no error: each
    /// connection asks for it anew.
    pub fn start(listen: SocketAddr, to: &[SocketAddr], link: &Link) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            to: to.to_vec(),
            link: link.clone(),
            counters: Counters::default(),
            wires: [
                Mutex::new(LineDirection::new(link)),
                Mutex::new(LineDirection::new(link)),
            ],
            stop: AtomicBool::new(false),
            connections: Mutex::default(),
            cuts: AtomicU64::new(0),
            count: AtomicUsize::new(0),
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
        let connections = lock(&self.shared.connections);
        self.shared.cuts.fetch_add(1, Relaxed);
        connections.values().for_each(|c| c.cut());
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
        let cuts = shared.cuts.load(Relaxed);
        shared.counters.connections.fetch_add(1, Relaxed);
        let of_thread = shared.clone();
        let relayed = Builder::new()
            .name("wan-relay".into())
            .spawn(move || relay(client, number, cuts, &of_thread));
        if relayed.is_err() {
            shared.counters.refused.fetch_add(1, Relaxed);
        }
    }
}

/// Connects to the first of these addresses that takes it.
fn connect(to: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in to {
        match TcpStream::connect_timeout(address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Makes the connection to the server, and passes on until both directions have ended. There had
/// been so many `cuts` when the client's was taken.
fn relay(client: TcpStream, number: u64, cuts: u64, shared: &Arc<Shared>) {
    // The client's connection was made by this machine's kernel, at once. The round trip that
    // making it takes on such a line is waited for before the first bytes.
    let opened = Instant::now() + shared.link.rtt;
    let ready = connect(&shared.to).and_then(|server| {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        Ok(server)
    });
    let Ok(server) = ready else {
        shared.counters.refused.fetch_add(1, Relaxed);
        std::thread::sleep(opened.saturating_duration_since(Instant::now()));
        reset_when_closed(&client);
        return;
    };
    let connection = Arc::new(Connection {
        ends: [client, server],
        pipes: Default::default(),
    });
    lock(&shared.connections).insert(number, connection.clone());
    shared.count.fetch_add(1, Relaxed);
    if shared.stop.load(Relaxed) || shared.cuts.load(Relaxed) != cuts {
        connection.cut();
    }
    if pass(&connection, number, shared, opened).is_err() {
        shared.counters.refused.fetch_add(1, Relaxed);
    }
    shared.count.fetch_sub(1, Relaxed);
    lock(&shared.connections).remove(&number);
    shared.fewer.notify_all();
}

/// Passes on until both directions have ended.
///
/// # Errors
/// If there are no threads for it.
fn pass(connection: &Connection, number: u64, shared: &Shared, opened: Instant) -> io::Result<()> {
    let counters = [&shared.counters.up, &shared.counters.down];
    let from = |way| DirectionDelay::new(shared, way, number, opened);
    std::thread::scope(|scope| {
        let begun = (|| {
            for (way, name) in [(0, "wan-up"), (1, "wan-down")] {
                let put = move || put(connection, way, shared.link.rtt / 2, counters[way]);
                Builder::new().name(name.into()).spawn_scoped(scope, put)?;
            }
            let back = from(1);
            let take = move || take(back, connection, counters[1]);
            Builder::new()
                .name("wan-from".into())
                .spawn_scoped(scope, take)?;
            Ok(())
        })();
        match begun {
            Ok(()) => take(from(0), connection, counters[0]),
            // Without threads there is no relay.
            Err(_) => connection.cut(),
        }
        begun
    })
}

/// What is on its way in one direction of a connection.
#[derive(Default)]
struct DirectionQueue {
    queue: Mutex<Queue>,
    /// Something came, or it was cut.
    more: Condvar,
    /// Something left, or it was cut.
    less: Condvar,
}

#[derive(Default)]
struct Queue {
    chunks: VecDeque<Chunk>,
    /// Memory that they take, in bytes.
    memory: usize,
    /// Nothing more is taken, and nothing put.
    cut: bool,
    /// Nothing more is put.
    over: bool,
}

/// What comes out of a stream.
enum StreamItem {
    Bytes(Vec<u8>),
    /// It ends in order.
    End,
    /// It is reset.
    Reset,
}

/// A piece of a stream.
struct Chunk {
    what: StreamItem,
    /// When it came, and not before the connection would have been made.
    came: Instant,
    due: Instant,
}

impl Chunk {
    /// Memory that it takes, in bytes.
    fn memory(&self) -> usize {
        let bytes = match &self.what {
            StreamItem::Bytes(bytes) => bytes.capacity(),
            StreamItem::End | StreamItem::Reset => 0,
        };
        bytes + size_of::<Self>()
    }
}

impl DirectionQueue {
    fn cut(&self) {
        lock(&self.queue).cut = true;
        self.more.notify_all();
        self.less.notify_all();
    }

    /// Waits until less than `room` bytes of memory are taken; returns whether the connection
    /// still is.
    fn wait_for_room(&self, room: impl Fn() -> usize) -> bool {
        let mut queue = lock(&self.queue);
        while queue.memory >= room() && !queue.cut {
            queue = self
                .less
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        !queue.cut
    }

    /// Waits so long, or until something left; returns whether the connection still is.
    fn pause(&self, time: Duration) -> bool {
        let queue = lock(&self.queue);
        if queue.cut {
            return false;
        }
        let waited = self.less.wait_timeout(queue, time);
        !waited.unwrap_or_else(PoisonError::into_inner).0.cut
    }

    /// Returns whether it will come out.
    fn push(&self, chunk: Chunk) -> bool {
        let mut queue = lock(&self.queue);
        if queue.cut || queue.over {
            return false;
        }
        queue.memory += chunk.memory();
        queue.chunks.push_back(chunk);
        // Only the first is waited for: nothing overtakes.
        if queue.chunks.len() == 1 {
            self.more.notify_one();
        }
        true
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
                    queue.memory -= chunk.memory();
                    queue.over = !matches!(chunk.what, StreamItem::Bytes(_));
                    self.less.notify_one();
                    return Some(chunk);
                }
            };
        }
    }
}

/// What decides when bytes of one direction of a connection come out.
struct DirectionDelay<'a> {
    way: usize,
    shared: &'a Shared,
    order: DeliveryOrder,
    opened: Instant,
}

impl<'a> DirectionDelay<'a> {
    fn new(shared: &'a Shared, way: usize, number: u64, opened: Instant) -> Self {
        Self {
            way,
            shared,
            order: DeliveryOrder::new(&shared.link, number * 2 + way as u64),
            opened,
        }
    }

    fn chunk(&self) -> usize {
        let Some(rate) = self.shared.link.rate else {
            return MAX_CHUNK_BYTES;
        };
        let bits = u128::from(rate.bits()) * MAX_CHUNK_LINE_TIME.as_micros() / 1_000_000;
        usize::try_from(bits / 8)
            .unwrap_or(MAX_CHUNK_BYTES)
            .clamp(MIN_CHUNK_BYTES, MAX_CHUNK_BYTES)
    }

    /// Waits while too much waits for the line; returns whether the connection still is.
    fn wait_for_wire(&self, pipe: &DirectionQueue) -> bool {
        loop {
            let backlog = lock(&self.shared.wires[self.way]).backlog(Instant::now());
            match backlog.checked_sub(MAX_LINE_WAIT) {
                Some(wait) if !wait.is_zero() => {
                    if !pipe.pause(wait) {
                        return false;
                    }
                }
                _ => return true,
            }
        }
    }

    /// When bytes come out that came at `came`.
    fn due(&mut self, came: Instant, bytes: usize, counters: &Direction) -> Instant {
        let left = lock(&self.shared.wires[self.way]).leaves(came, bytes);
        let stall = self.order.stalls(bytes);
        if stall.is_some() {
            counters.stalled();
        }
        self.order.comes(left + stall.unwrap_or_default())
    }
}

/// Takes bytes from a stream until it ends.
fn take(mut from: DirectionDelay<'_>, connection: &Connection, counters: &Direction) {
    let (mut stream, pipe) = (&connection.ends[from.way], &connection.pipes[from.way]);
    let mut bytes = vec![0; from.chunk()];
    loop {
        if !from.wait_for_wire(pipe) || !pipe.wait_for_room(|| from.shared.room()) {
            return;
        }
        let what = match stream.read(&mut bytes) {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => StreamItem::Reset,
            Ok(0) => StreamItem::End,
            Ok(read) => StreamItem::Bytes(bytes[..read].to_vec()),
        };
        acknowledge(stream);
        let (len, ends) = match &what {
            StreamItem::Bytes(bytes) => (bytes.len(), false),
            StreamItem::End | StreamItem::Reset => (0, true),
        };
        let came = Instant::now().max(from.opened);
        let due = from.due(came, len, counters);
        if !pipe.push(Chunk { what, came, due }) || ends {
            return;
        }
    }
}

/// Has the kernel acknowledge what has just been read, instead of up to 40 ms later with bytes of the
/// other direction: until then a sender whose congestion window is still small waits, a delay
/// that no option of the line requests. The kernel forgets it again by itself.
fn acknowledge(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_quickack(stream, true);
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

/// Puts bytes into a stream when they are due. One that takes no more is reset: so is the other
/// end then, `delay` later and after what is on its way to it.
fn put(connection: &Connection, way: usize, delay: Duration, counters: &Direction) {
    // A kernel that cannot do it wakes the thread up to 50 µs later, which is little here.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let (mut stream, pipe) = (&connection.ends[1 - way], &connection.pipes[way]);
    while let Some(chunk) = pipe.pop() {
        let bytes = match chunk.what {
            StreamItem::Bytes(bytes) => bytes,
            StreamItem::End => {
                let _ = stream.shutdown(Shutdown::Write);
                return;
            }
            StreamItem::Reset => return connection.reset(1 - way),
        };
        if stream.write_all(&bytes).is_err() {
            pipe.cut();
            let came = Instant::now();
            let back = Chunk {
                what: StreamItem::Reset,
                came,
                due: came + delay,
            };
            if !connection.pipes[1 - way].push(back) {
                connection.reset(way);
            }
            return;
        }
        counters.passed(bytes.len(), chunk.came.elapsed());
    }
}
