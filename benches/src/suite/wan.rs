//! The deviation of the round trips of an emulated WAN link from the configured round-trip time.

use crate::bench::Bench;
use crate::error::{BenchError, plausible};
use crate::rounds::Figures;
use crate::table::{Goal, Row, Unit};
use hdrhistogram::Histogram;
use plimsoll_nfs::wan::{Link, Namespace, Relay, Tunnel};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Size of a message in bytes: about that of a GETATTR.
const MESSAGE: usize = 100;

/// Maximum time until a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// Uncounted round trips per message in flight at the start.
const START_ROUNDS: u32 = 10;

/// Round trips of messages in nanoseconds.
type RoundTrips = Histogram<u64>;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let rtt = Duration::from_millis(bench.pick(100, 5));
    let mut rows = Vec::new();
    for in_flight in [1, 256] {
        let rounds = bench.pick(40, 2);
        let by_relay = || relay(rtt, in_flight, rounds).map_err(|e| failed("wan relay", &e));
        rows.extend(rows_of(bench, "relay", rtt, in_flight, by_relay)?);
        let by_tunnel = || tunnel(rtt, in_flight, rounds);
        rows.extend(rows_of(bench, "tunnel", rtt, in_flight, by_tunnel)?);
    }
    Ok(rows)
}

fn failed(program: &'static str, reason: &dyn std::fmt::Display) -> BenchError {
    BenchError::Program {
        program,
        reason: reason.to_string(),
    }
}

/// Rows of the median, which may deviate by 1 ms, and of the 99th percentile, which may deviate by 2 ms.
fn rows_of(
    bench: &Bench,
    what: &str,
    rtt: Duration,
    in_flight: u32,
    trips: impl Fn() -> Result<RoundTrips, BenchError>,
) -> Result<[Row; 2], BenchError> {
    let rtt = rtt.as_secs_f64() * 1e3;
    let (mut medians, mut p99s) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds() {
        let trips = trips()?;
        let at = |quantile| trips.value_at_quantile(quantile) as f64 / 1e6;
        let min = at(0.0);
        plausible("wan", min >= rtt, || {
            format!("a round trip of {min} ms on a link of {rtt} ms")
        })?;
        medians.push(at(0.5));
        p99s.push(at(0.99));
    }
    let row = |name, figures, deviation| {
        Row::median(
            format!("{what} of {rtt} ms, {in_flight} in flight: round trip, {name}"),
            Unit::Milliseconds,
            &Figures::new(figures),
            Goal::Within(rtt, deviation / rtt),
        )
    };
    Ok([
        row("median", medians, 1.0),
        row("99th percentile", p99s, 2.0),
    ])
}

/// Round trips through a relay of connections to a server on the loopback.
fn relay(rtt: Duration, in_flight: u32, rounds: u32) -> io::Result<RoundTrips> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let to = listener.local_addr()?;
    let local = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let relay = Relay::start(local, &[to], &Link::of_rtt(rtt))?;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            let mut bytes = [0; MESSAGE * 256];
            while let read @ 1.. = stream.read(&mut bytes)? {
                stream.write_all(&bytes[..read])?;
            }
            stream.shutdown(Shutdown::Write)
        });
        let mut stream = TcpStream::connect(relay.address())?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        let mut sending = stream.try_clone()?;
        trips(
            rtt,
            in_flight,
            rounds,
            move |message| sending.write_all(message),
            |message| stream.read_exact(message),
        )
        // Dropping the connection ends the server's thread.
    })
}

/// Round trips of datagrams through a tunnel, so that TCP's windows are not measured.
fn tunnel(rtt: Duration, in_flight: u32, rounds: u32) -> Result<RoundTrips, BenchError> {
    let of_tunnel = |e: &dyn std::fmt::Display| failed("wan tunnel", e);
    let remote = RemoteNamespace::new().map_err(|e| of_tunnel(&e))?;
    let own: Namespace = "self".parse().map_err(|e| of_tunnel(&e))?;
    let tunnel = Tunnel::start(&own, &remote.namespace()?, &Link::of_rtt(rtt));
    let tunnel = tunnel.map_err(|e| of_tunnel(&e))?;
    let [near, to] = tunnel.addresses();
    let work = || {
        let server = remote.socket(to)?;
        make_room(&server)?;
        let at = server.local_addr()?;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut bytes = [0; MESSAGE];
                loop {
                    let (read, from) = server.recv_from(&mut bytes)?;
                    // An empty datagram is the last message.
                    if read == 0 {
                        return io::Result::Ok(());
                    }
                    server.send_to(&bytes[..read], from)?;
                }
            });
            let client = UdpSocket::bind((near, 0))?;
            make_room(&client)?;
            client.set_read_timeout(Some(REPLY_TIMEOUT))?;
            client.connect(at)?;
            let trips = trips(
                rtt,
                in_flight,
                rounds,
                |message| client.send(message).map(drop),
                |message| client.recv(message).map(drop),
            );
            client.send(&[])?;
            trips
        })
    };
    work().map_err(|e: io::Error| of_tunnel(&e))
}

/// Enlarges a socket's buffer to hold all messages that may be in flight.
fn make_room(socket: &UdpSocket) -> io::Result<()> {
    use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
    const RECEIVE_BUFFER_BYTES: usize = 4 << 20;
    // Root of a user namespace is bound by the machine's limit, which is sufficient for a quick run.
    match set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER_BYTES) {
        Err(rustix::io::Errno::PERM) => set_socket_recv_buffer_size(socket, RECEIVE_BUFFER_BYTES)?,
        done => done?,
    }
    Ok(())
}

/// Sends messages at equal distances, so that `in_flight` messages are in flight, as with independent clients, until
/// `rounds` messages have been sent for each message in flight; receives the replies on this thread. If the machine is
/// late, at most half as many more messages are in flight: queues of datagrams are limited.
///
/// The first rounds are not counted: they include the time to connect and TCP's slow start, whose congestion window of
/// 10 segments doubles after each delayed acknowledgement of up to 40 ms, on any link.
fn trips(
    rtt: Duration,
    in_flight: u32,
    rounds: u32,
    mut send: impl FnMut(&[u8; MESSAGE]) -> io::Result<()> + Send,
    mut receive: impl FnMut(&mut [u8; MESSAGE]) -> io::Result<()>,
) -> io::Result<RoundTrips> {
    let mut trips = RoundTrips::new_with_bounds(1, 60_000_000_000, 4).map_err(io::Error::other)?;
    let begin = Instant::now();
    let now = || u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let first = START_ROUNDS * in_flight;
    let all = first + rounds * in_flight;
    let (max_in_flight, replies) = (in_flight + in_flight / 2 + 1, &AtomicU32::new(0));
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || {
            for number in 0..all {
                let scheduled = rtt * number / in_flight;
                std::thread::sleep(scheduled.saturating_sub(begin.elapsed()));
                while number.saturating_sub(replies.load(Relaxed)) >= max_in_flight {
                    std::thread::sleep(rtt / in_flight);
                }
                let mut message = [0; MESSAGE];
                message[..8].copy_from_slice(&now().to_be_bytes());
                send(&message)?;
            }
            io::Result::Ok(())
        });
        let received = (0..all).try_for_each(|number| {
            let mut message = [0; MESSAGE];
            receive(&mut message)?;
            let received = now();
            replies.store(number + 1, Relaxed);
            let sent = message.first_chunk().expect("a message has 100 bytes");
            let sent = u64::from_be_bytes(*sent);
            if number >= first {
                trips.saturating_record(received.saturating_sub(sent).max(1));
            }
            Ok(())
        });
        // The sender does not wait for replies that will not be received.
        replies.store(all, Relaxed);
        let sent = sender.join();
        sent.unwrap_or_else(|_| Err(io::Error::other("the thread that sends ended")))?;
        received.map(|()| trips)
    })
}

/// A network namespace, held by a process that exists as long as this value.
struct RemoteNamespace(Child);

impl RemoteNamespace {
    fn new() -> io::Result<Self> {
        let own = std::fs::read_link("/proc/self/ns/net")?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "600"]);
        let mut remote = Self(command.stdin(Stdio::null()).spawn()?);
        // The process exists before it has left this process's namespace.
        while std::fs::read_link(remote.path())? == own {
            if let Some(status) = remote.0.try_wait()? {
                let why = format!("no network namespace ({status}): run it as root");
                return Err(io::Error::other(why));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(remote)
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }

    fn namespace(&self) -> Result<Namespace, BenchError> {
        self.path().parse().map_err(|e| failed("wan tunnel", &e))
    }

    /// Creates a socket in the namespace, on a thread that enters the namespace and ends.
    fn socket(&self, at: Ipv4Addr) -> io::Result<UdpSocket> {
        let path = File::open(self.path())?;
        let made = std::thread::spawn(move || {
            move_into_link_name_space(path.as_fd(), Some(LinkNameSpaceType::Network))?;
            UdpSocket::bind((at, 0))
        });
        made.join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace ended")))
    }
}

impl Drop for RemoteNamespace {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
