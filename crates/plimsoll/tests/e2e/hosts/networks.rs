//! Hosts in networks of their own, behind long lines that are cut.

use super::copy::copied_to;
use super::{ENDLESS, line_to, run_on};
use crate::common::sshd::Sshd;
use crate::common::{Bench, Ended, signal, started, tree};
use crate::wan::Line;
use plimsoll_testkit::{Machine, needs_root};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// Waits of a test that would otherwise hang for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// A machine, its server of ssh, and a line of 50 ms to that.
struct Host {
    machine: Machine,
    sshd: Sshd,
    line: Line,
}

impl Host {
    fn start(bench: &Bench) -> Self {
        let machine = Machine::start().unwrap_or_else(|e| panic!("{e}"));
        let sshd = Sshd::on(bench, &machine);
        let line = line_to(bench, &sshd, &["--rtt=50ms"]);
        Self {
            machine,
            sshd,
            line,
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        signal(self.line.pid(), Signal::KILL);
    }
}

/// Two machines, and the command `ssh` with which the names `a` and `b` lead to them.
fn two(bench: &Bench) -> ([Host; 2], String) {
    let hosts = [Host::start(bench), Host::start(bench)];
    let mut config = String::new();
    for (name, host) in ["a", "b"].into_iter().zip(&hosts) {
        host.sshd.trust(&host.line.address(), "ssh_config");
        let text = std::fs::read_to_string(host.sshd.config()).unwrap();
        config += &text.replace("Host *", &format!("Host {name}"));
    }
    let path = bench.path("ssh_config");
    std::fs::write(&path, config).unwrap();
    (hosts, format!("ssh -F '{}'", path.display()))
}

#[test]
fn machines_of_two_networks_run_together() {
    needs_root!();
    let bench = Bench::on_tmpfs();
    let (hosts, ssh) = two(&bench);
    let args = [
        "--ops=600",
        "--set=nfiles=40",
        "--set=filesize=4k",
        "--set=nthreads=4",
    ];
    let run = Ended::of(run_on(&bench, &ssh, "a,b", "fileserver", &args)).result(0);
    let summary = &run.summary;
    assert_eq!((run.ranks, summary.ops, summary.errors), (3, 600, 0));
    let names: Vec<&str> = run.hosts.iter().map(|h| h.host.as_str()).collect();
    assert_eq!(names[1..], ["a", "b"]);
    let starts = run.starts.unwrap();
    assert!(starts.round_trip_ms >= 50.0, "{starts:?}");
    assert_eq!(tree(&bench.work()).0.len(), 0);
    // The ranks of a machine use its processors, and what they say passes its network, while they run for a second.
    let args = [
        "--time=1s",
        "--interval=100ms",
        "--target=null:?latency=1ms",
        "--set=nthreads=4",
    ];
    let run = Ended::of(run_on(&bench, &ssh, "a,b", "fileserver", &args)).result(0);
    for host in &run.hosts[1..] {
        assert!(host.cpu_s > 0.0, "{host:?}");
        assert!(host.machine_busy.is_some_and(|busy| busy > 0.0), "{host:?}");
        assert!(host.sent_bytes.is_some_and(|n| n > 0), "{host:?}");
        assert!(host.received_bytes.is_some_and(|n| n > 0), "{host:?}");
    }
    hosts.iter().for_each(|host| drop(host.sshd.await_ranks(0)));
}

#[test]
fn a_machine_whose_network_is_cut_ends_the_run_and_its_ranks() {
    needs_root!();
    let bench = Bench::on_tmpfs();
    let (hosts, ssh) = two(&bench);
    let workload = bench.workload(ENDLESS);
    let command = run_on(&bench, &ssh, "a*2,b", &workload, &["--interval=50ms"]);
    let run = started(command, "measuring");
    hosts[0].sshd.await_ranks(2);
    hosts[1].sshd.await_ranks(1);
    hosts[1].machine.cut().unwrap();
    let run = run.end().expect_code(1).parsed().unwrap();
    let failure = run.failure.unwrap().to_string();
    let expected = "host b: nothing was heard from it for 6 s";
    assert!(failure.contains(expected), "{failure}");
    // What the others had measured.
    assert!(run.summary.ops > 0);
    let names: Vec<&str> = run.hosts.iter().map(|h| h.host.as_str()).collect();
    assert!(names.contains(&"a") && !names.contains(&"b"), "{names:?}");
    // The rank behind the cut ends by itself.
    hosts.iter().for_each(|host| drop(host.sshd.await_ranks(0)));
}

#[test]
fn ranks_behind_a_cut_end_when_rank_0_is_killed() {
    needs_root!();
    let bench = Bench::on_tmpfs();
    let (hosts, ssh) = two(&bench);
    let workload = bench.workload(ENDLESS);
    let mut run = started(run_on(&bench, &ssh, "a,b*2", &workload, &[]), "measuring");
    hosts[0].sshd.await_ranks(1);
    hosts[1].sshd.await_ranks(2);
    hosts.iter().for_each(|host| host.machine.cut().unwrap());
    run.child.kill().unwrap();
    let _ = run.end();
    hosts.iter().for_each(|host| drop(host.sshd.await_ranks(0)));
}

/// The program is sent over a line that is cut meanwhile. Once it is mended, nothing of it is left.
#[test]
fn a_cut_while_the_program_is_sent_ends_the_run() {
    needs_root!();
    let bench = Bench::on_tmpfs();
    let machine = Machine::start().unwrap_or_else(|e| panic!("{e}"));
    let sshd = Sshd::on(&bench, &machine);
    // A megabyte per second, of which the program has many.
    let line = line_to(&bench, &sshd, &["--bandwidth=8mbit", "--rtt=1ms"]);
    let ssh = sshd.trust(&line.address(), "slow_line");
    let workload = bench.workload(ENDLESS);
    let hosts = copied_to(&bench, &ssh, "a");
    let command = bench.command_in_work(&workload, &[&hosts]);
    let begin = Instant::now();
    let run = std::thread::spawn(move || Ended::of(command));
    let sent = || {
        let dirs = std::fs::read_dir(bench.path("remote-tmp")).unwrap();
        let programs = dirs.map(|dir| dir.unwrap().path().join("plimsoll"));
        let sizes = programs.filter_map(|p| Some(std::fs::metadata(p).ok()?.len()));
        sizes.sum::<u64>()
    };
    while sent() == 0 {
        assert!(begin.elapsed() < PATIENCE, "nothing is sent");
        std::thread::sleep(Duration::from_millis(10));
    }
    machine.cut().unwrap();
    let said = run.join().unwrap().expect_code(1).stderr;
    assert!(said.contains("host a: "), "{said}");
    assert!(bench.results().is_empty() && !bench.work().exists());
    machine.mend().unwrap();
    signal(line.pid(), Signal::KILL);
    let begin = Instant::now();
    let left = || std::fs::read_dir(bench.path("remote-tmp")).unwrap().count();
    while left() > 0 {
        assert!(begin.elapsed() < 2 * PATIENCE, "the program is left there");
        std::thread::sleep(Duration::from_millis(50));
    }
    sshd.await_ranks(0);
}
