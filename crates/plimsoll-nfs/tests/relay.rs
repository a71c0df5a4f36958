//! Data that a relay passes on, and its minimum delay. Benchmarks measure the maximum delay, because a test shares its
//! machine with an unknown load.

use plimsoll_nfs::wan::{Link, Relay};
use plimsoll_testkit::ClosedPort;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const LOCAL: &str = "127.0.0.1:0";

/// The maximum time that a test waits for data.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that sends the received data back.
struct Echo {
    address: SocketAddr,
}

impl Echo {
    fn start() -> Self {
        let listener = TcpListener::bind(LOCAL).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    while let Ok(read @ 1..) = stream.read(&mut bytes) {
                        if stream.write_all(&bytes[..read]).is_err() {
                            return;
                        }
                    }
                    let _ = stream.shutdown(Shutdown::Write);
                });
            }
        });
        Self { address }
    }

    fn behind(&self, link: &Link) -> Relay {
        Relay::start(LOCAL.parse().unwrap(), &[self.address], link).unwrap()
    }
}

fn connect(relay: &Relay) -> TcpStream {
    let stream = TcpStream::connect(relay.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Sends data and waits for the echo; returns the elapsed time.
fn round_trip(stream: &mut TcpStream, bytes: &[u8]) -> Duration {
    let begun = Instant::now();
    stream.write_all(bytes).unwrap();
    let mut came = vec![0; bytes.len()];
    stream.read_exact(&mut came).unwrap();
    assert_eq!(came, bytes);
    begun.elapsed()
}

#[test]
fn a_round_trip_is_no_shorter() {
    let echo = Echo::start();
    let relay = echo.behind(&Link::of_rtt(ms(40)));
    let begun = Instant::now();
    let mut stream = connect(&relay);
    round_trip(&mut stream, b"first");
    // Establishing the connection takes a round trip, too.
    assert!(begun.elapsed() >= ms(80));
    for _ in 0..5 {
        assert!(round_trip(&mut stream, b"next") >= ms(40));
    }
    drop(stream);
    let summary = relay.stop();
    assert_eq!((summary.connections, summary.refused), (1, 0));
    assert_eq!((summary.up.bytes, summary.down.bytes), (25, 25));
    assert!(summary.up.delay(0.5).unwrap() >= ms(20));
    assert!(summary.down.delay(0.5).unwrap() >= ms(20));
    assert_eq!(summary.up.stalled, 0);
}

/// Messages do not wait for messages in flight: 256 messages take far less than 256 round trips, even on a slow
/// machine.
#[test]
fn many_are_on_their_way_at_once() {
    let echo = Echo::start();
    let relay = echo.behind(&Link::of_rtt(ms(500)));
    let mut stream = connect(&relay);
    let begun = Instant::now();
    for number in 0..256u32 {
        stream.write_all(&number.to_be_bytes()).unwrap();
    }
    for number in 0..256u32 {
        let mut came = [0; 4];
        stream.read_exact(&mut came).unwrap();
        assert_eq!(u32::from_be_bytes(came), number);
    }
    let took = begun.elapsed();
    assert!(took >= ms(1000) && took < ms(256 * 500), "{took:?}");
}

/// With jitter and loss, every byte arrives once and in order on each connection.
#[test]
fn bytes_stay_in_their_order() {
    let echo = Echo::start();
    let link = Link {
        jitter: ms(4),
        loss: 0.03,
        ..Link::of_rtt(ms(4))
    };
    let relay = echo.behind(&link);
    let clients: Vec<JoinHandle<()>> = (0..3u8)
        .map(|client| {
            let mut stream = connect(&relay);
            std::thread::spawn(move || {
                let bytes: Vec<u8> = (0..200_000u32).map(|i| (i / 251) as u8 ^ client).collect();
                let (sent, mut writing) = (bytes.clone(), stream.try_clone().unwrap());
                let writer = std::thread::spawn(move || {
                    for piece in sent.chunks(7001) {
                        writing.write_all(piece).unwrap();
                    }
                    writing.shutdown(Shutdown::Write).unwrap();
                });
                let mut came = Vec::new();
                stream.read_to_end(&mut came).unwrap();
                writer.join().unwrap();
                assert!(came == bytes, "{} of {} bytes", came.len(), bytes.len());
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    let summary = relay.stop();
    assert_eq!(summary.up.bytes, 600_000);
    assert_eq!(summary.down.bytes, 600_000);
    // With a loss of 3 %, some of the 400 packets in each direction are lost.
    assert!(summary.up.stalled + summary.down.stalled > 0);
}

/// At 1.6 Mbit/s, 100 000 bytes take half a second, and 100 000 bytes on each of two connections take a second.
#[test]
fn a_rate_is_shared() {
    let echo = Echo::start();
    let link = Link {
        bandwidth: "1.6mbit".parse().ok(),
        ..Link::default()
    };
    let relay = echo.behind(&link);
    let begun = Instant::now();
    let mut streams = [connect(&relay), connect(&relay)];
    for stream in &mut streams {
        stream.write_all(&[7; 100_000]).unwrap();
    }
    for stream in &mut streams {
        stream.read_exact(&mut [0; 100_000]).unwrap();
    }
    assert!(begun.elapsed() >= ms(990), "{:?}", begun.elapsed());
}

#[test]
fn a_server_that_is_not_there() {
    let closed = ClosedPort::reserve();
    let relay = Relay::start(
        LOCAL.parse().unwrap(),
        &[closed.address()],
        &Link::of_rtt(ms(20)),
    )
    .unwrap();
    let begun = Instant::now();
    let mut stream = connect(&relay);
    assert_eq!(
        stream.read(&mut [0; 10]).unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );
    assert!(begun.elapsed() >= ms(20));
    let summary = relay.stop();
    assert_eq!((summary.connections, summary.refused), (1, 1));
    assert_eq!(summary.up.delay(0.5), None);
}

/// A change of the round-trip time also affects existing connections.
#[test]
fn the_round_trip_time_changes() {
    let echo = Echo::start();
    let relay = echo.behind(&Link::of_rtt(ms(10)));
    let mut stream = connect(&relay);
    round_trip(&mut stream, b"short");
    relay.set_rtt(ms(300));
    assert!(round_trip(&mut stream, b"long") >= ms(300));
    relay.set_rtt(ms(0));
    let again = round_trip(&mut stream, b"none");
    assert!(again < ms(300), "{again:?}");
}

/// A relay that connected to itself would open connections without end.
#[test]
fn a_relay_to_itself_is_refused() {
    let listen = ClosedPort::reserve().address();
    let refused = Relay::start(listen, &[listen], &Link::default());
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::InvalidInput);
}

/// Cut connections end, and the relay accepts new connections. A stopped relay frees its port.
#[test]
fn cutting_and_stopping() {
    let echo = Echo::start();
    let relay = echo.behind(&Link::of_rtt(ms(10)));
    let mut stream = connect(&relay);
    round_trip(&mut stream, b"x");
    relay.cut();
    let read = stream.read(&mut [0; 10]);
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    let mut again = connect(&relay);
    round_trip(&mut again, b"y");
    let address = relay.address();
    let summary = relay.stop();
    assert_eq!(summary.connections, 2);
    let read = again.read(&mut [0; 10]);
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert!(TcpStream::connect(address).is_err());
}

/// Both ends of a connection through a relay.
fn ends(link: &Link) -> (Relay, TcpStream, TcpStream) {
    let listener = TcpListener::bind(LOCAL).unwrap();
    let to = [listener.local_addr().unwrap()];
    let relay = Relay::start(LOCAL.parse().unwrap(), &to, link).unwrap();
    let client = connect(&relay);
    let (server, _) = listener.accept().unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    (relay, client, server)
}

fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
}

/// A reset at one end resets the other end, after the data sent before the reset.
#[test]
fn resets_are_passed_on() {
    for by_server in [false, true] {
        let (relay, client, server) = ends(&Link::of_rtt(ms(20)));
        let (mut gone, mut stays) = match by_server {
            true => (server, client),
            false => (client, server),
        };
        gone.write_all(b"last").unwrap();
        // The data is read first, because a reset drops unread data.
        let mut last = [0; 4];
        stays.read_exact(&mut last).unwrap();
        assert_eq!(&last, b"last");
        reset(gone);
        let read = stays.read(&mut [0; 4]).unwrap_err();
        assert_eq!(read.kind(), ErrorKind::ConnectionReset);
        drop(relay);
    }
}

/// A sender gets an error if the receiver has closed its end, although the receiver sends no data.
#[test]
fn an_end_that_is_gone_is_told_to_who_sends() {
    let (relay, mut client, mut server) = ends(&Link::of_rtt(ms(10)));
    // The direction from the server to the client has ended in order before.
    server.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut [0; 4]).unwrap(), 0);
    client.write_all(b"more").unwrap();
    server.read_exact(&mut [0; 4]).unwrap();
    reset(server);
    let begun = Instant::now();
    while client.write_all(b"nobody").is_ok() {
        assert!(
            begun.elapsed() < PATIENCE,
            "nobody says that the server is gone"
        );
        std::thread::sleep(ms(5));
    }
    assert_eq!(relay.stop().connections, 1);
}

/// A relay buffers a bounded amount of data for a server that reads nothing.
#[test]
fn what_is_not_taken_is_not_kept() {
    let (relay, mut client, server) = ends(&Link::default());
    client.set_write_timeout(Some(ms(500))).unwrap();
    let piece = vec![1; 1 << 20];
    let mut sent = 0;
    while sent < 400 << 20 {
        match client.write(&piece) {
            Ok(n) => sent += n,
            Err(_) => break,
        }
    }
    // At most 64 MiB in the relay, and the socket buffers.
    assert!(sent < 200 << 20, "{sent} bytes were taken");
    drop(server);
    drop(relay);
}

/// A relay with a queue of many hours stops at once.
#[test]
fn a_slow_line_ends_at_once() {
    let echo = Echo::start();
    let link = Link {
        bandwidth: "9bit".parse().ok(),
        ..Link::default()
    };
    let relay = echo.behind(&link);
    let mut streams: Vec<TcpStream> = (0..3).map(|_| connect(&relay)).collect();
    for stream in &mut streams {
        stream.write_all(&[7; 100_000]).unwrap();
    }
    let begun = Instant::now();
    while relay.summary().connections < 3 {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(ms(5));
    }
    std::thread::sleep(ms(50));
    let (tell, ended) = channel();
    std::thread::spawn(move || {
        let _ = tell.send(relay.stop());
    });
    let summary = ended
        .recv_timeout(PATIENCE)
        .expect("the relay does not end");
    assert_eq!(summary.connections, 3);
}

/// A connection goes to the first of the server's addresses that accepts the connection.
#[test]
fn a_server_of_several_addresses() {
    let echo = Echo::start();
    let closed = ClosedPort::reserve();
    let to = [closed.address(), echo.address];
    let relay = Relay::start(LOCAL.parse().unwrap(), &to, &Link::default()).unwrap();
    round_trip(&mut connect(&relay), b"hello");
    assert_eq!(relay.stop().refused, 0);
}
