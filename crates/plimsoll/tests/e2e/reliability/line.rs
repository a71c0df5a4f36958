//! Lines to a server that fall silent: neither side hears of it.

use crate::common::served::Served;
use crate::common::{Bench, Started, row, started, wait_until};
use crate::nfs_servers::{READS, calls};
use plimsoll_results::Run;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A line that passes bytes on. While it is cut nothing passes, and no connection ends.
struct Line {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    is_cut: AtomicBool,
    is_over: AtomicBool,
    bytes: AtomicU64,
}

impl Line {
    fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if of_thread.is_over.load(Relaxed) {
                    return;
                }
                let server = TcpStream::connect(server).unwrap();
                let pairs = [(&client, &server), (&server, &client)];
                for (from, to) in
                    pairs.map(|(a, b)| (a.try_clone().unwrap(), b.try_clone().unwrap()))
                {
                    let shared = of_thread.clone();
                    std::thread::spawn(move || pass(from, to, &shared));
                }
            }
        });
        Self { address, shared }
    }

    fn cut(&self) {
        self.shared.is_cut.store(true, Relaxed);
    }

    fn mend(&self) {
        self.shared.is_cut.store(false, Relaxed);
    }

    /// Waits until much more has passed.
    #[track_caller]
    fn wait_for_traffic(&self) {
        let before = self.shared.bytes.load(Relaxed);
        wait_until("nothing passes", || {
            self.shared.bytes.load(Relaxed) > before + (256 << 10)
        });
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, shared: &Shared) {
    const POLL: Duration = Duration::from_millis(5);
    from.set_read_timeout(Some(POLL)).unwrap();
    let mut piece = vec![0; 64 << 10];
    while !shared.is_over.load(Relaxed) {
        if shared.is_cut.load(Relaxed) {
            sleep(POLL);
            continue;
        }
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => {
                // What was on its way when the line was cut waits.
                while shared.is_cut.load(Relaxed) && !shared.is_over.load(Relaxed) {
                    sleep(POLL);
                }
                if to.write_all(&piece[..n]).is_err() {
                    break;
                }
                shared.bytes.fetch_add(n as u64, Relaxed);
            }
            Err(e) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&e.kind()) => {}
            Err(_) => break,
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Write);
}

/// A run over a line that goes on for an hour.
struct OverLine {
    line: Line,
    run: Started,
    _served: Served,
    bench: Bench,
}

fn begun(options: &str, more: &[&str]) -> OverLine {
    let bench = Bench::on_tmpfs();
    let served = Served::with(&bench, &[]);
    let (_, rest) = served.url.split_once("://").unwrap();
    let server: SocketAddr = rest.split('/').next().unwrap().parse().unwrap();
    let line = Line::to(server);
    let at = line.address;
    let url = format!("nfs3://{at}/?mountport={}&{options}", at.port());
    let workload = bench.workload(READS);
    let place = ["--target", &url, "--dir=/w"];
    let command = bench.command(&workload, &[&place[..], more].concat());
    let run = started(command, "measuring");
    line.wait_for_traffic();
    OverLine {
        line,
        run,
        _served: served,
        bench,
    }
}

/// Cuts the line for a while; the run that goes on after it.
fn outlives(options: &str, cut: Duration) -> Run {
    let over = begun(options, &[]);
    over.line.cut();
    sleep(cut);
    over.line.mend();
    over.line.wait_for_traffic();
    over.run.interrupt();
    let run = over.run.end().result(130);
    assert_eq!(run.summary.errors, 0, "{:?}", run.operations);
    assert_eq!(over.bench.results().len(), 1);
    // The operations that waited are in the figures.
    let longest = ["open", "read", "look"].map(|name| row(&run, name).latency.max_ms);
    let longest = longest.into_iter().fold(0.0, f64::max);
    assert!(longest >= 900.0 * cut.as_secs_f64(), "{longest} ms");
    run
}

/// A second is less than `timeo`: nothing is sent again, and the wait is in the latencies.
#[test]
fn a_line_that_is_cut_for_a_second() {
    let run = outlives("", Duration::from_secs(1));
    assert_eq!(calls(&run, "retransmissions"), 0);
}

/// A minute is twice as long as calls have by default (`timeo` 10 s, `retrans` 2): a twentieth of both.
#[test]
fn a_line_that_is_cut_for_longer_than_calls_wait() {
    let over = begun("timeo=500ms&retrans=2", &[]);
    over.line.cut();
    let begun = Instant::now();
    let run = over.run.end().result(1);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    let failure = run.failure.as_ref().unwrap();
    assert!(failure.error.contains("ETIMEDOUT"), "{failure:?}");
    assert!(row(&run, "read").ops > 0);
    assert_eq!(super::written(&over.bench), run);
}

/// The same with more patience (`retrans` 20): calls are sent again, and the run goes on.
#[test]
fn a_line_that_is_cut_for_less_than_calls_wait() {
    let run = outlives("timeo=500ms&retrans=20", Duration::from_secs(3));
    assert!(calls(&run, "retransmissions") + calls(&run, "reconnects") > 0);
}

/// For ever, in a run that ends by its time: it ends then, says since when nothing was heard, and leaves its
/// files on the server.
#[test]
fn a_line_that_is_cut_for_ever() {
    let over = begun("", &["--time=2s"]);
    over.line.cut();
    let begun = Instant::now();
    let run = over.run.end().result(3);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    let codes: Vec<_> = run.validity.reasons.iter().map(|r| &*r.code).collect();
    assert!(codes.contains(&"server_not_responding"), "{codes:?}");
    assert!(run.summary.abandoned > 0 && run.failure.is_none());
    let note = "the clean-up is not complete";
    assert!(super::is_noted(&run, note), "{:?}", run.notes);
    assert_eq!(super::written(&over.bench), run);
}
