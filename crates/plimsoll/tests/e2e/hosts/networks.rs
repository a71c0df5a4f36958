//! `--hosts` with machines in network namespaces, behind relays with long round-trip times that are cut during the run.

use super::copy::copied_to;
use super::{ENDLESS, line_to, run_on};
use crate::common::sshd::Sshd;
use crate::common::{Bench, Ended, signal, tree, wait_until};
use crate::wan::Line;
use plimsoll_testkit::{Machine, needs_root};
use rustix::process::Signal;

/// A machine in a network namespace, its ssh server, and a relay with 50 ms to the server.
struct Host {
    _machine: Machine,
    sshd: Sshd,
    line: Line,
}

impl Host {
    fn start(bench: &Bench) -> Self {
        let machine = Machine::start().unwrap_or_else(|e| panic!("{e}"));
        let sshd = Sshd::on(bench, &machine);
        let line = line_to(bench, &sshd, &["--rtt=50ms"]);
        Self {
            _machine: machine,
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

/// Two machines, and an `ssh` command that connects the host name `a` to the first machine, and the host name `b` to
/// the second machine.
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
    let small = ["--set=nfiles=40", "--set=filesize=4k", "--set=nthreads=4"];
    let args = [&small[..], &["--ops=600"]].concat();
    let run = Ended::of(run_on(&bench, &ssh, "a,b", "fileserver", &args)).result(0);
    let summary = &run.summary;
    assert_eq!((run.ranks, summary.ops, summary.errors), (3, 600, 0));
    let names: Vec<&str> = run.hosts.iter().map(|h| h.host.as_str()).collect();
    assert_eq!(names[1..], ["a", "b"]);
    let starts = run.starts.unwrap();
    assert!(starts.round_trip_ms >= 50.0, "{starts:?}");
    assert_eq!(tree(&bench.work()).0.len(), 0);
    // A run of one second has, for each machine, figures of its processors and of its network.
    let timed = ["--time=1s", "--interval=100ms", "--set=nthreads=4"];
    let args = [&timed[..], &["--target=null:?latency=1ms"]].concat();
    let run = Ended::of(run_on(&bench, &ssh, "a,b", "fileserver", &args)).result(0);
    for host in &run.hosts[1..] {
        assert!(host.cpu_s > 0.0, "{host:?}");
        assert!(host.machine_busy.is_some_and(|busy| busy > 0.0), "{host:?}");
        assert!(host.sent_bytes.is_some_and(|n| n > 0), "{host:?}");
        assert!(host.received_bytes.is_some_and(|n| n > 0), "{host:?}");
    }
    hosts.iter().for_each(|host| drop(host.sshd.await_ranks(0)));
}

/// The link between relay and host is cut while rank 0 sends the program file (`copy-program=yes`). Once the link
/// between relay and host works again, the host removes the received part of the program file.
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
    let run = std::thread::spawn(move || Ended::of(command));
    let sent = || {
        let dirs = std::fs::read_dir(bench.path("remote-tmp")).unwrap();
        let programs = dirs.map(|dir| dir.unwrap().path().join("plimsoll"));
        let sizes = programs.filter_map(|p| Some(std::fs::metadata(p).ok()?.len()));
        sizes.sum::<u64>()
    };
    wait_until("a part of the program is sent", || sent() > 0);
    machine.cut().unwrap();
    let said = run.join().unwrap().expect_code(1).stderr;
    assert!(said.contains("host a: "), "{said}");
    assert!(bench.results().is_empty() && !bench.work().exists());
    machine.mend().unwrap();
    signal(line.pid(), Signal::KILL);
    let left = || std::fs::read_dir(bench.path("remote-tmp")).unwrap().count();
    wait_until("the program is removed there", || left() == 0);
    sshd.await_ranks(0);
}
