//! The deviation of the round trips of an emulated WAN link from the configured round-trip time.

use crate::bench::Bench;
use crate::error::{BenchError, plausible};
use crate::rounds::Figures;
use crate::table::{Goal, Row, Unit};
use hdrhistogram::Histogram;
use plimsoll_nfs::wan::{Link, Relay};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
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
        let trips = || relay(rtt, in_flight, rounds);
        rows.extend(rows_of(bench, rtt, in_flight, trips)?);
    }
    Ok(rows)
}

/// Rows of the median, which may deviate by 1 ms, and of the 99th percentile, which may deviate by 2 ms.
fn rows_of(
    bench: &Bench,
    rtt: Duration,
    in_flight: u32,
    trips: impl Fn() -> io::Result<RoundTrips>,
) -> Result<[Row; 2], BenchError> {
    let rtt = rtt.as_secs_f64() * 1e3;
    let (mut medians, mut p99s) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds() {
        let trips = trips().map_err(|e| BenchError::Program {
            program: "wan relay",
            reason: e.to_string(),
        })?;
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
            format!("relay of {rtt} ms, {in_flight} in flight: round trip, {name}"),
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

/// Sends messages at equal distances, so that `in_flight` messages are in flight, as with independent clients, until
/// `rounds` messages have been sent for each message in flight; receives the replies on this thread. If the machine is
/// late, at most half as many more messages, and one, are in flight.
///
/// The first rounds are not counted, because the first rounds include the time to connect and TCP's slow start, whose
/// congestion window of 10 segments doubles after each delayed acknowledgement of up to 40 ms, on any link.
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
