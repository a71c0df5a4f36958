//! Tests of `plimsoll systems wan`, which puts an emulated WAN link between `plimsoll` and a server.

use crate::common::{Bench, Ended, signal};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_results::Verdict;
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A running `plimsoll systems wan`, and the first line that the program printed.
pub struct Line {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    pub said: String,
    begun: Instant,
}

impl Line {
    pub fn start(bench: &Bench, args: &[&str]) -> Self {
        let begun = Instant::now();
        let mut command = bench.plimsoll([&["systems", "wan"], args].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        out.read_line(&mut said).unwrap();
        Self {
            child,
            out,
            said,
            begun,
        }
    }

    /// Where the line begins.
    pub fn address(&self) -> SocketAddr {
        let word = self.said.split_whitespace().nth(3).unwrap();
        word.parse().unwrap()
    }

    /// Process id of the running `plimsoll systems wan`, for signals of the test.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Ends the emulated WAN link by SIGINT; returns all text that the program printed after its first line.
    pub fn end(mut self) -> String {
        signal(self.child.id() as i32, Signal::INT);
        let mut rest = String::new();
        while self.out.read_line(&mut rest).unwrap() > 0 {}
        Ended::wait(self.child, self.begun).expect_code(0);
        rest
    }
}

fn server() -> Server {
    let tree = Arc::new(Mutex::new(Tree::new(64 << 20)));
    Server::start(
        "127.0.0.1:0".parse().unwrap(),
        tree,
        ServerOptions::default(),
    )
    .unwrap()
}

/// Every operation of a run by way of a relay takes the round trips of its procedures.
#[test]
fn a_run_over_a_relay() {
    let (bench, server) = (Bench::new(), server());
    let to = server.address().to_string();
    let args = ["--listen=127.0.0.1:0", "--upstream", &to, "--rtt=20ms"];
    let line = Line::start(&bench, &args);
    let words: Vec<&str> = line.said.split_whitespace().collect();
    let [_, _, _, at, _, target, ..] = words[..] else {
        panic!("{}", line.said);
    };
    let said = format!("TCP relay at {at} to {to}: round trip 20ms\n");
    assert_eq!(line.said, said);
    assert_eq!(target, format!("{to}:"));
    let port = server.address().port();
    let url = format!("nfs3://{at}/?mountport={port}");
    let sets = ["--set=nthreads=8", "--set=filesize=64k"];
    let more = [&["--target", &url, "--time=1s"], &sets[..]].concat();
    let run = bench.run("randomread", &more).result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    let read = run.procedures.iter().find(|p| p.name == "READ").unwrap();
    assert!(read.ops > 0 && read.latency.min_ms >= 20.0, "{read:?}");
    let said = line.end();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "TCP relay: no slow start seen");
    let passed = " passed on, 0 not accepted by the server";
    assert!(lines[1].ends_with(passed), "{said}");
    let ways = ["to the server: ", "to the client: "];
    for (line, way) in lines[2..].iter().zip(ways) {
        let rest = line.strip_prefix(way).expect(way);
        let bytes: u64 = rest.split(' ').next().unwrap().parse().unwrap();
        assert!(bytes > 1000 && rest.contains(", delayed 1"), "{said}");
    }
}

#[test]
fn wrong_lines_are_refused() {
    let bench = Bench::new();
    for row in [
        "--rtt=11s RELAY => a round trip of 11s is too long",
        "--rtt=5ms --jitter=6ms RELAY => a jitter of 6ms is more than the round trip of 5ms",
        "--rtt=5ms --loss=2 RELAY => a loss of 2 is not a probability",
        "--rtt=5ms --loss=-0.5 RELAY => a loss of -0.5 is not a probability",
        "--rtt=5ms --bandwidth=100mb RELAY => expected bits per second, as in 100mbit",
        "--rtt=-5ms RELAY => invalid value '-5ms' for '--rtt <TIME>'",
        "RELAY => --rtt <TIME>",
        "--rtt=5ms => --listen <ADDRESS:PORT>",
        "--rtt=5ms --listen=127.0.0.1:0 => --upstream <HOST:PORT>",
        "--rtt=5ms --listen=127.0.0.1:0 --upstream=nowhere => expected HOST:PORT",
        "--rtt=5ms --listen=192.0.2.1:1 --upstream=127.0.0.1:1 => cannot listen on 192.0.2.1:1",
    ] {
        let (args, said) = row.split_once(" => ").unwrap();
        let args = args.replace("RELAY", "--listen=127.0.0.1:0 --upstream=127.0.0.1:1");
        let command = bench.plimsoll(["systems", "wan"].into_iter().chain(args.split(' ')));
        let refused = Ended::of(command).refusal();
        assert!(refused.contains(said), "{row}: {refused}");
    }
}
