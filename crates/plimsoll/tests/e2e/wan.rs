//! Long lines between the program and a server.

use crate::common::{Bench, Ended, signal};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_results::Verdict;
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A line that runs, and what it said first.
pub struct Line {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    pub said: String,
    begun: Instant,
}

impl Line {
    pub fn start(bench: &Bench, args: &[&str]) -> Self {
        let begun = Instant::now();
        let mut command = bench.plimsoll([&["emulate", "wan"], args].concat());
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

    /// The process of the line.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Ends it by Ctrl-C; returns what it said then.
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
    let line = Line::start(
        &bench,
        &["--listen=127.0.0.1:0", "--upstream", &to, "--rtt=20ms"],
    );
    let words: Vec<&str> = line.said.split_whitespace().collect();
    let [_, _, _, at, _, target, ..] = words[..] else {
        panic!("{}", line.said);
    };
    assert_eq!(
        line.said,
        format!("TCP relay at {at} to {to}: round trip 20ms\n")
    );
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
    assert!(
        lines[1].ends_with(" passed on, 0 not accepted by the server"),
        "{said}"
    );
    for (line, way) in lines[2..]
        .iter()
        .zip(["to the server: ", "to the client: "])
    {
        let rest = line.strip_prefix(way).unwrap_or_else(|| panic!("{said}"));
        let bytes: u64 = rest.split(' ').next().unwrap().parse().unwrap();
        assert!(bytes > 1000 && rest.contains(", delayed 1"), "{said}");
    }
}

#[test]
fn wrong_lines_are_refused() {
    let bench = Bench::new();
    let relay = ["--listen=127.0.0.1:0", "--upstream=127.0.0.1:1"];
    for (args, said) in [
        (&["--rtt=11s"][..], "a round trip of 11s is too long"),
        (
            &["--rtt=5ms", "--jitter=6ms"],
            "a jitter of 6ms is more than the round trip of 5ms",
        ),
        (
            &["--rtt=5ms", "--loss=2"],
            "a loss of 2 is not a probability",
        ),
        (
            &["--rtt=5ms", "--loss=-0.5"],
            "a loss of -0.5 is not a probability",
        ),
        (
            &["--rtt=5ms", "--bandwidth=100mb"],
            "expected bits per second, as in 100mbit",
        ),
        (&["--rtt=-5ms"], "invalid value '-5ms' for '--rtt <TIME>'"),
        (&[], "--rtt <TIME>"),
    ] {
        let args = [&["emulate", "wan"], &relay[..], args].concat();
        let refused = Ended::of(bench.plimsoll(args)).refusal();
        assert!(refused.contains(said), "{refused}");
    }
    for (args, said) in [
        (&["--rtt=5ms"][..], "--listen <ADDRESS:PORT>"),
        (
            &["--rtt=5ms", "--listen=127.0.0.1:0"],
            "--upstream <HOST:PORT>",
        ),
        (&["--rtt=5ms", "--tun", "self"], "2 values required"),
        (
            &["--rtt=5ms", "--tun", "self", "self"],
            "both ends are in the same network namespace",
        ),
        (
            &["--rtt=5ms", "--tun", "self", "no-such"],
            "`/run/netns/no-such`",
        ),
        (
            &["--rtt=5ms", "--tun", "self", "a", "--listen=127.0.0.1:0"],
            "cannot be used with",
        ),
        (
            &["--rtt=5ms", "--listen=127.0.0.1:0", "--upstream=nowhere"],
            "expected HOST:PORT",
        ),
        (
            &[
                "--rtt=5ms",
                "--listen=192.0.2.1:1",
                "--upstream=127.0.0.1:1",
            ],
            "cannot listen on 192.0.2.1:1",
        ),
    ] {
        let refused = Ended::of(bench.plimsoll([&["emulate", "wan"], args].concat())).refusal();
        assert!(refused.contains(said), "{refused}");
    }
}
