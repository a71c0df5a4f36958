//! A relay of TCP connections that passes data on after a delay.

use crate::acceptor::Acceptor;
use crate::lock::{lock, wait};
use crate::wan::delay::{DeliveryOrder, LinkDirection, TCP_SEGMENT_BYTES};
use crate::wan::figures::{Counters, Direction, Summary};
use crate::wan::link::Link;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// The maximum number of bytes of one read.
const MAX_CHUNK_BYTES: usize = 64 << 10;

/// The maximum time that a chunk occupies a link of limited bandwidth, so that other connections
/// get a share.
const MAX_CHUNK_LINK_TIME: Duration = Duration::from_millis(2);

/// The maximum memory of delayed data in one direction of a connection, in bytes.
const MAX_IN_FLIGHT_BYTES: usize = 64 << 20;

/// The maximum memory of delayed data in one direction of all connections, in bytes; the
/// connections share the memory evenly.
const MAX_TOTAL_IN_FLIGHT_BYTES: usize = 512 << 20;

/// The minimum share of memory for one direction of a connection, in bytes, for any number of
/// connections.
const MIN_IN_FLIGHT_BYTES: usize = 256 << 10;

/// The maximum time that data waits for a link of limited bandwidth; beyond this limit the relay
/// stops reading.
const MAX_LINK_WAIT: Duration = Duration::from_millis(100);

/// The maximum time that the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A running relay. Dropping the value closes all connections.
pub struct Relay {
    shared: Arc<Shared>,
    accepting: Acceptor,
}

/// The state that the threads of a relay share.
struct Shared {
    upstream: Vec<SocketAddr>,
    link: Link,
    /// The current round-trip time, in nanoseconds; `link` has the initial round-trip time.
    rtt_ns: AtomicU64,
    counters: Counters,
    directions: [Mutex<LinkDirection>; 2],
    connections: Mutex<BTreeMap<u64, Arc<Connection>>>,
    /// The number of times that all connections were cut. A connection compares the number of cuts at its acceptance
    /// with the current number: if the numbers differ, the connection is cut, although the connection was not in the
    /// map at the time of the cut.
    cuts: AtomicU64,
    /// The number of open connections.
    count: AtomicUsize,
    /// Notified when a connection has ended.
    ended: Condvar,
}

impl Shared {
    fn rtt(&self) -> Duration {
        Duration::from_nanos(self.rtt_ns.load(Relaxed))
    }

    /// The current memory limit of one direction of a connection, in bytes.
    fn room(&self) -> usize {
        let share = MAX_TOTAL_IN_FLIGHT_BYTES / self.count.load(Relaxed).max(1);
        share.clamp(MIN_IN_FLIGHT_BYTES, MAX_IN_FLIGHT_BYTES)
    }
}

/// A connection of a client, and the connection to the server.
struct Connection {
    /// The client's end and the server's end.
    ends: [TcpStream; 2],
    /// The queues from the first end to the second, and back.
    pipes: [DirectionQueue; 2],
}

impl Connection {
    /// Closes both ends immediately.
    fn cut(&self) {
        for stream in &self.ends {
            // The stream may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.pipes.iter().for_each(DirectionQueue::cut);
    }

    /// Closes both ends immediately, `end` with a reset.
    fn reset(&self, end: usize) {
        reset_when_closed(&self.ends[end]);
        // Wakes the reading thread; closing the stream sends the reset.
        let _ = self.ends[end].shutdown(Shutdown::Read);
        let _ = self.ends[1 - end].shutdown(Shutdown::Both);
        self.pipes.iter().for_each(DirectionQueue::cut);
    }
}

fn nanos(rtt: Duration) -> u64 {
    u64::try_from(rtt.as_nanos()).expect("a round trip takes at most seconds")
}

/// Makes the close of a connection send a reset.
fn reset_when_closed(stream: &TcpStream) {
    // If `SO_LINGER` cannot be set, the connection ends without a reset.
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

impl Relay {
    /// Listens at `listen` (port 0 selects a free port) and passes connections on to `upstream`:
    /// addresses of one server, of which the first that accepts a connection is used.
    ///
    /// # Errors
    /// If the relay cannot listen at the address, or the address is also an address of the server. An unreachable
    /// server is not an error: each connection tries to reach the server.
    pub fn start(listen: SocketAddr, upstream: &[SocketAddr], link: &Link) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        if upstream.contains(&listener.local_addr()?) {
            let why = "it is also the server's address";
            return Err(io::Error::new(ErrorKind::InvalidInput, why));
        }
        Self::at(listener, upstream, link)
    }

    /// Starts a relay that passes the connections of `listener` on to `upstream`.
    pub(crate) fn at(
        listener: TcpListener,
        upstream: &[SocketAddr],
        link: &Link,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            upstream: upstream.to_vec(),
            link: link.clone(),
            rtt_ns: AtomicU64::new(nanos(link.rtt)),
            counters: Counters::default(),
            directions: [(), ()].map(|()| Mutex::new(LinkDirection::new(link))),
            connections: Mutex::default(),
            cuts: AtomicU64::new(0),
            count: AtomicUsize::new(0),
            ended: Condvar::new(),
        });
        let relaying = shared.clone();
        let accepting = Acceptor::start(listener, "wan-accept", move |number, stream| {
            relay_connection(number, stream, &relaying);
        })?;
        Ok(Self { shared, accepting })
    }

    /// The local address of the listening socket; its port is never 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.accepting.address()
    }

    /// The totals so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.shared.counters.summary()
    }

    /// Changes the round-trip time, also of existing connections. Data already in flight is not
    /// overtaken.
    ///
    /// # Panics
    /// If `rtt` is longer than [`MAX_RTT`](crate::wan::MAX_RTT).
    pub fn set_rtt(&self, rtt: Duration) {
        assert!(
            rtt <= crate::wan::MAX_RTT,
            "a round trip of {rtt:?} is too long"
        );
        self.shared.rtt_ns.store(nanos(rtt), Relaxed);
    }

    /// Cuts all connections and drops their delayed data; the relay continues to accept
    /// connections.
    pub fn cut(&self) {
        let connections = lock(&self.shared.connections);
        self.shared.cuts.fetch_add(1, Relaxed);
        connections.values().for_each(|c| c.cut());
    }

    /// Cuts all connections and frees the port; returns the totals.
    #[must_use]
    pub fn stop(mut self) -> Summary {
        self.end();
        self.summary()
    }

    fn end(&mut self) {
        self.accepting.stop();
        // A connection that is not in the map yet compares the number of cuts later, and is then cut too.
        self.cut();
        let mut left = lock(&self.shared.connections);
        while !left.is_empty() {
            left.values().for_each(|connection| connection.cut());
            let pause = Some(Duration::from_millis(100));
            left = wait(&self.shared.ended, left, pause);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a thread that relays the data of one client connection.
fn relay_connection(number: u64, client: TcpStream, shared: &Arc<Shared>) {
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

/// Connects to the first address that accepts the connection.
fn connect(upstream: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in upstream {
        match TcpStream::connect_timeout(address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Connects to the server, and passes data on until both directions have ended. `cuts` is the
/// number of cuts at the time when the client's connection was accepted.
fn relay(client: TcpStream, number: u64, cuts: u64, shared: &Arc<Shared>) {
    // The local kernel has accepted the client's connection at once. The handshake's round trip
    // over the emulated link delays the first bytes instead.
    let opened = Instant::now() + shared.rtt();
    let ready = connect(&shared.upstream).and_then(|server| {
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
    if shared.cuts.load(Relaxed) != cuts {
        connection.cut();
    }
    if pass(&connection, number, shared, opened).is_err() {
        shared.counters.refused.fetch_add(1, Relaxed);
    }
    let former = shared.count.fetch_sub(1, Relaxed);
    assert!(former > 0, "more connections end than have begun");
    lock(&shared.connections).remove(&number);
    shared.ended.notify_all();
}

/// Passes data on until both directions have ended.
///
/// # Errors
/// If threads cannot be started.
fn pass(connection: &Connection, number: u64, shared: &Shared, opened: Instant) -> io::Result<()> {
    let counters = [&shared.counters.up, &shared.counters.down];
    let from = |way| DirectionDelay::new(shared, way, number, opened);
    std::thread::scope(|scope| {
        let begun = (|| {
            for (way, name) in [(0, "wan-up"), (1, "wan-down")] {
                let put = move || put(connection, way, shared.rtt() / 2, counters[way]);
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
            Err(_) => connection.cut(),
        }
        begun
    })
}

/// The delayed data of one direction of a connection.
#[derive(Default)]
struct DirectionQueue {
    queue: Mutex<Queue>,
    /// Notified when a chunk is added or the connection is cut.
    more: Condvar,
    /// Notified when a chunk is removed or the connection is cut.
    less: Condvar,
}

#[derive(Default)]
struct Queue {
    chunks: VecDeque<Chunk>,
    /// The memory of the chunks, in bytes.
    memory: usize,
    /// Whether the connection is cut, so that nothing more is read or written.
    cut: bool,
    /// Whether the last chunk was removed, so that nothing more is written.
    over: bool,
}

/// The content of a chunk.
enum StreamItem {
    Bytes(Vec<u8>),
    /// The stream ends without a reset.
    End,
    /// The stream is reset.
    Reset,
}

/// A piece of a stream.
struct Chunk {
    what: StreamItem,
    /// The time at which the relay received the chunk, or the later time at which the emulated connection was
    /// established.
    came: Instant,
    /// The time at which the relay must write the chunk to the other end.
    due: Instant,
}

impl Chunk {
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

    /// Waits until the chunks use less than `room` bytes of memory; returns `false` if the
    /// connection is cut.
    fn wait_for_room(&self, room: impl Fn() -> usize) -> bool {
        let mut queue = lock(&self.queue);
        while queue.memory >= room() && !queue.cut {
            queue = wait(&self.less, queue, None);
        }
        !queue.cut
    }

    /// Waits for `time`, or until a chunk is removed; returns `false` if the connection is cut.
    fn pause(&self, time: Duration) -> bool {
        let queue = lock(&self.queue);
        !queue.cut && !wait(&self.less, queue, Some(time)).cut
    }

    /// Adds a chunk; returns `false` if the chunk will not be written.
    fn push(&self, chunk: Chunk) -> bool {
        let mut queue = lock(&self.queue);
        if queue.cut || queue.over {
            return false;
        }
        queue.memory += chunk.memory();
        queue.chunks.push_back(chunk);
        // The other thread waits only for the first chunk, since chunks stay in order.
        if queue.chunks.len() == 1 {
            self.more.notify_one();
        }
        true
    }

    /// Waits until the first chunk is due and removes it; `None` if the connection is cut.
    fn pop(&self) -> Option<Chunk> {
        let mut queue = lock(&self.queue);
        while !queue.cut {
            let now = Instant::now();
            let pause = match queue.chunks.front() {
                Some(chunk) if chunk.due <= now => break,
                Some(chunk) => Some(chunk.due - now),
                None => None,
            };
            queue = wait(&self.more, queue, pause);
        }
        if queue.cut {
            return None;
        }
        let chunk = queue.chunks.pop_front()?;
        assert!(queue.memory >= chunk.memory(), "a chunk was not counted");
        queue.memory -= chunk.memory();
        queue.over = !matches!(chunk.what, StreamItem::Bytes(_));
        self.less.notify_one();
        Some(chunk)
    }
}

/// The delay of one direction of a connection.
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

    /// The maximum number of bytes of one read.
    fn chunk_bytes(&self) -> usize {
        let Some(bandwidth) = self.shared.link.bandwidth else {
            return MAX_CHUNK_BYTES;
        };
        let bits = u128::from(bandwidth.bits()) * MAX_CHUNK_LINK_TIME.as_micros() / 1_000_000;
        usize::try_from(bits / 8)
            .unwrap_or(MAX_CHUNK_BYTES)
            .clamp(TCP_SEGMENT_BYTES, MAX_CHUNK_BYTES)
    }

    /// Waits while the backlog of the link exceeds the limit; returns `false` if the connection is
    /// cut.
    fn wait_for_link(&self, pipe: &DirectionQueue) -> bool {
        loop {
            let backlog = lock(&self.shared.directions[self.way]).backlog(Instant::now());
            let excess = backlog.saturating_sub(MAX_LINK_WAIT);
            if excess.is_zero() {
                return true;
            }
            if !pipe.pause(excess) {
                return false;
            }
        }
    }

    /// The time at which bytes that were read at `came` must be written.
    fn due(&mut self, came: Instant, bytes: usize, counters: &Direction) -> Instant {
        let sent = lock(&self.shared.directions[self.way]).sent_at(came, bytes);
        self.order.set_rtt(self.shared.rtt());
        let stall = self.order.stalls(bytes);
        if stall.is_some() {
            counters.stalled();
        }
        self.order.arrives_at(sent + stall.unwrap_or_default())
    }
}

/// Reads a stream until its end.
fn take(mut from: DirectionDelay<'_>, connection: &Connection, counters: &Direction) {
    let (mut stream, pipe) = (&connection.ends[from.way], &connection.pipes[from.way]);
    let mut bytes = vec![0; from.chunk_bytes()];
    loop {
        if !from.wait_for_link(pipe) || !pipe.wait_for_room(|| from.shared.room()) {
            return;
        }
        let what = match stream.read(&mut bytes) {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => StreamItem::Reset,
            Ok(0) => StreamItem::End,
            Ok(read) => StreamItem::Bytes(bytes[..read].to_vec()),
        };
        acknowledge(stream);
        let len = match &what {
            StreamItem::Bytes(bytes) => bytes.len(),
            StreamItem::End | StreamItem::Reset => 0,
        };
        let came = Instant::now().max(from.opened);
        let due = from.due(came, len, counters);
        if !pipe.push(Chunk { what, came, due }) || len == 0 {
            return;
        }
    }
}

/// Makes the kernel acknowledge read data at once, instead of up to 40 ms later with data of the other direction. A
/// sender with a small congestion window would wait for the acknowledgement, a delay that no property of the link
/// requests. The setting applies to a single acknowledgement.
fn acknowledge(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    let _ = rustix::net::sockopt::set_tcp_quickack(stream, true);
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

/// Writes the chunks of one direction of a connection at their due times. If the receiver has closed its end, the
/// sender's end is reset after `delay`, and after the data that is queued for the sender.
fn put(connection: &Connection, way: usize, delay: Duration, counters: &Direction) {
    // With the default timer slack the kernel may wake the thread 50 µs late; the lateness is small, so a failure to
    // set the timer slack is ignored.
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
