//! Servers that fall silent.

use super::{Served, reading};
use crate::common::{Bench, Ended};
use rustix::process::Signal;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A server that is killed in the middle of the window: the run ends soon after it, and says when the
/// server fell silent.
#[test]
fn a_server_that_dies() {
    for signal in [Signal::KILL, Signal::STOP] {
        let bench = Bench::new();
        let served = Served::with(&bench, &["--reply-delay=1ms"]);
        let going = reading(&bench, &served, "5s", &["--set=nthreads=5"], "measuring");
        let begun = Instant::now();
        std::thread::sleep(Duration::from_millis(2400));
        served.signal(signal);
        let ended = going.end();
        let took = begun.elapsed();
        let run = ended.result(3);
        // Three seconds for calls, four for files, and a little.
        assert!(took < Duration::from_secs(20), "{signal:?}: {took:?}");
        let mut reasons = run.validity.reasons.iter();
        let silent = reasons.find(|r| r.code == "server_not_responding");
        let text = &silent.expect("the server is silent").text;
        let after = text
            .strip_prefix("the server did not answer from ")
            .unwrap();
        let after: f64 = after.split(' ').next().unwrap().parse().unwrap();
        assert!((1.5..4.5).contains(&after), "{text}");
        let summary = &run.summary;
        assert!(summary.abandoned >= 5, "{summary:?}");
        assert!(summary.in_flight >= summary.abandoned, "{summary:?}");
        assert!(run.summary.ops > 0 && run.failure.is_none());
        let note = "the clean-up is not complete";
        let is_noted = run.notes.iter().any(|n| n.text.contains(note));
        assert!(is_noted, "{:?}", run.notes);
    }
}

/// A server that is silent for 300 ms and then answers again is no reason for an invalid result.
#[test]
fn a_server_that_comes_back() {
    let bench = Bench::new();
    let served = Served::with(&bench, &["--reply-delay=1ms"]);
    let going = reading(&bench, &served, "4s", &[], "measuring");
    std::thread::sleep(Duration::from_millis(800));
    served.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(300));
    served.signal(Signal::CONT);
    let run = going.end().result(0);
    assert_eq!(run.summary.abandoned, 0);
}

/// A pattern has no end by time: it fails when its calls have waited as long as they may, and says when
/// the server fell silent.
#[test]
fn a_server_that_dies_under_a_pattern() {
    let bench = Bench::new();
    let served = Served::with(&bench, &["--reply-delay=1ms"]);
    let interface = format!("-i={}&timeo=500ms&retrans=1", served.url);
    let mut command = bench.plimsoll(["md", &interface, "-P=2000", "-D=2", "-I=2000", "-R=9"]);
    command.args(["--results=results", "--dir=/md", "--format=json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (child, begun) = (command.spawn().unwrap(), Instant::now());
    std::thread::sleep(Duration::from_secs(2));
    served.signal(Signal::KILL);
    let run = Ended::wait(child, begun).result(1);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    let failure = run.failure.as_ref().unwrap();
    assert!(failure.error.contains("ETIMEDOUT"), "{failure:?}");
    let codes: Vec<_> = run.validity.reasons.iter().map(|r| &*r.code).collect();
    // Only the first two reasons are compared, because a third reason `stalled` depends on the instant of the kill.
    assert_eq!(codes[..2], ["failed", "server_not_responding"], "{codes:?}");
}

/// Errors of a phase that counts them do not keep it alive on a server that is gone.
#[test]
fn a_server_that_dies_under_a_pattern_that_counts_errors() {
    let bench = Bench::new();
    let served = Served::with(&bench, &[]);
    let interface = format!("-i={}&timeo=500ms&retrans=1", served.url);
    let more = ["-P=50", "-D=2", "-I=1000000", "-R=1", "--dir=/md"];
    let mut command = bench.plimsoll(["md", &interface, "--results=results", "--format=json"]);
    command
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs(1));
    served.signal(Signal::KILL);
    let run = Ended::wait(child, begun).result(1);
    let codes: Vec<_> = run.validity.reasons.iter().map(|r| &*r.code).collect();
    assert!(codes.contains(&"server_not_responding"), "{codes:?}");
    assert!(run.summary.errors <= 1, "{:?}", run.summary);
}
