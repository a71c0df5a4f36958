//! How near to what was asked a long line's round trips are.

use super::Bench;
use crate::error::{BenchError, plausible};
use crate::rounds::Figures;
use crate::table::{Goal, Row, Unit};
use hdrhistogram::Histogram;
use plimsoll_wan::{Link, Namespace, Relay, Tunnel};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bytes of a message: about those of a GETATTR.
const MESSAGE: usize = 100;

/// Longest that an answer is waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Round trips of each message under way that are made before those that are counted.
const START_ROUNDS: u32 = 10;

/// Round trips of messages.
type RoundTrips = Histogram<u64>;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let asked = Duration::from_millis(bench.pick(100, 5));
    let mut rows = Vec::new();
    for under_way in [1, 256] {
        let rounds = bench.pick(40, 2);
        let by_relay = || relay(asked, under_way, rounds).map_err(|e| failed("wan relay", &e));
        rows.extend(rows_of(bench, "relay", asked, under_way, by_relay)?);
        let by_tunnel = || tunnel(asked, under_way, rounds);
        rows.extend(rows_of(bench, "tunnel", asked, under_way, by_tunnel)?);
    }
    Ok(rows)
}

fn failed(program: &'static str, reason: &dyn std::fmt::Display) -> BenchError {
    BenchError::Program {
        program,
        reason: reason.to_string(),
    }
}

/// Half of the trips may be off by 1 ms, and the slowest hundredth by 2 ms.
fn rows_of(
    bench: &Bench,
    what: &str,
    asked: Duration,
    under_way: u32,
    trips: impl Fn() -> Result<RoundTrips, BenchError>,
) -> Result<[Row; 2], BenchError> {
    let asked = asked.as_secs_f64() * 1e3;
    let (mut half, mut nearly_all) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds() {
        let trips = trips()?;
        let at = |quantile| trips.value_at_quantile(quantile) as f64 / 1e6;
        let least = at(0.0);
        plausible("wan", least >= asked, || {
            format!("a round trip of {least} ms where the line has {asked} ms")
        })?;
        half.push(at(0.5));
        nearly_all.push(at(0.99));
    }
    let row = |name, figures, off| {
        Row::median(
            format!("{what} of {asked} ms, {under_way} under way: round trip, {name}"),
            Unit::Milliseconds,
            &Figures::new(figures),
            Goal::Within(asked, off / asked),
        )
    };
    Ok([
        row("median", half, 1.0),
        row("99th percentile", nearly_all, 2.0),
    ])
}

/// Trips by a relay of connections, to a server on the loopback.
fn relay(asked: Duration, under_way: u32, rounds: u32) -> io::Result<RoundTrips> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let to = listener.local_addr()?;
    let local = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let line = Relay::start(local, &[to], &Link::of_rtt(asked))?;
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
        let mut stream = TcpStream::connect(line.address())?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        let mut sending = stream.try_clone()?;
        trips(
            asked,
            under_way,
            rounds,
            move |message| sending.write_all(message),
            |message| stream.read_exact(message),
        )
        // The connection ends here, and with it the server's thread.
    })
}

/// Trips of datagrams through a tunnel: TCP's own windows are not what is measured.
fn tunnel(asked: Duration, under_way: u32, rounds: u32) -> Result<RoundTrips, BenchError> {
    let of_tunnel = |e: &dyn std::fmt::Display| failed("wan tunnel", e);
    let far = RemoteNamespace::new().map_err(|e| of_tunnel(&e))?;
    let own: Namespace = "self".parse().map_err(|e| of_tunnel(&e))?;
    let line = Tunnel::start(&own, &far.namespace()?, &Link::of_rtt(asked));
    let line = line.map_err(|e| of_tunnel(&e))?;
    let [near, to] = line.addresses();
    let work = || {
        let server = far.socket(to)?;
        make_room(&server)?;
        let at = server.local_addr()?;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut bytes = [0; MESSAGE];
                loop {
                    let (read, from) = server.recv_from(&mut bytes)?;
                    // A message without bytes is the last.
                    if read == 0 {
                        return io::Result::Ok(());
                    }
                    server.send_to(&bytes[..read], from)?;
                }
            });
            let client = UdpSocket::bind((near, 0))?;
            make_room(&client)?;
            client.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            client.connect(at)?;
            let trips = trips(
                asked,
                under_way,
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

/// Has a socket hold all messages that may be under way, however late they are taken.
fn make_room(socket: &UdpSocket) -> io::Result<()> {
    use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
    const RECEIVE_BUFFER_BYTES: usize = 4 << 20;
    // Root of a user namespace must keep to the machine's limit, which is enough for a quick run.
    match set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER_BYTES) {
        Err(rustix::io::Errno::PERM) => set_socket_recv_buffer_size(socket, RECEIVE_BUFFER_BYTES)?,
        done => done?,
    }
    Ok(())
}

/// Sends a message each so often that so many are under way, as clients do that know nothing of
/// each other, until so many have been sent for each of these; takes the answers on this thread.
/// Where a machine is late, no more than half as many again are: queues of datagrams end somewhere.
///
/// The first rounds are not counted: the time that making the connection takes is in none, nor that
/// of TCP's slow start, whose congestion window of 10 segments is twice as large after each delayed
/// acknowledgement of up to 40 ms, on any line.
fn trips(
    asked: Duration,
    under_way: u32,
    rounds: u32,
    mut send: impl FnMut(&[u8; MESSAGE]) -> io::Result<()> + Send,
    mut receive: impl FnMut(&mut [u8; MESSAGE]) -> io::Result<()>,
) -> io::Result<RoundTrips> {
    let mut trips = RoundTrips::new_with_bounds(1, 60_000_000_000, 4).map_err(io::Error::other)?;
    let begin = Instant::now();
    let now = || u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let (first, all) = (
        START_ROUNDS * under_way,
        (START_ROUNDS + rounds) * under_way,
    );
    let (most, taken) = (under_way + under_way / 2 + 1, &AtomicU32::new(0));
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || {
            for number in 0..all {
                let due = asked * number / under_way;
                std::thread::sleep(due.saturating_sub(begin.elapsed()));
                while number.saturating_sub(taken.load(Relaxed)) >= most {
                    std::thread::sleep(asked / under_way);
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
            let came = now();
            taken.store(number + 1, Relaxed);
            let sent = message
                .first_chunk()
                .map_or(came, |at| u64::from_be_bytes(*at));
            if number >= first {
                trips.saturating_record(came.saturating_sub(sent).max(1));
            }
            Ok(())
        });
        // Nobody is to wait for what does not come any more.
        taken.store(all, Relaxed);
        let sent = sender.join();
        sent.unwrap_or_else(|_| Err(io::Error::other("the thread that sends ended")))?;
        received.map(|()| trips)
    })
}

/// A network namespace, which is there as long as a process of its own.
struct RemoteNamespace(Child);

impl RemoteNamespace {
    fn new() -> io::Result<Self> {
        let own = std::fs::read_link("/proc/self/ns/net")?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "600"]);
        let mut far = Self(command.stdin(Stdio::null()).spawn()?);
        // The process is there before it has left this namespace.
        while std::fs::read_link(far.path())? == own {
            if let Some(status) = far.0.try_wait()? {
                let why = format!("no network namespace ({status}): run it as root");
                return Err(io::Error::other(why));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(far)
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }

    fn namespace(&self) -> Result<Namespace, BenchError> {
        self.path().parse().map_err(|e| failed("wan tunnel", &e))
    }

    /// A socket in it; a thread that has entered it makes the socket and ends.
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
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
