//! `--hosts` with real ssh servers on this machine; a server is several hosts, one for each of its names.

use crate::common::sshd::Sshd;
use crate::common::{Bench, Ended, row, signal, started, tree};
use crate::ranks::of_rank;
use crate::wan::Line;
use plimsoll_results::{Run, Verdict};
use rustix::process::Signal;
use std::process::Command;

mod check;
mod copy;
mod networks;
mod places;
mod profiles;

/// Parameters of `fileserver` for twelve workers and small files.
const SERVER: [&str; 5] = [
    "--set=nfiles=400",
    "--set=filesize=4k",
    "--set=nthreads=12",
    "--interval=50ms",
    "--per-rank",
];

/// Workload that runs until a signal or an error ends the run.
const ENDLESS: &str = "define fileset name=s,path=files,entries=40,dirwidth=20,size=4k,prealloc
     define process name=p { thread name=t,memsize=1m,instances=8 {
       flowop statfile name=look,filesetname=s
     } }
     run 3600";

/// Option `--hosts` with a hosts file in the bench: the hosts `hosts`, reached by the command `ssh`, with the tested
/// program.
fn to(bench: &Bench, ssh: &str, hosts: &str) -> String {
    with_program(bench, ssh, hosts, env!("CARGO_BIN_EXE_plimsoll"))
}

/// Option `--hosts` as from [`to`], but with the file `program` as the program that is started on the hosts.
fn with_program(bench: &Bench, ssh: &str, hosts: &str, program: &str) -> String {
    let text = format!("ssh=\"{ssh}\" program=\"{program}\"\n{hosts}\n");
    std::fs::write(bench.path("hosts"), text).unwrap();
    format!("--hosts=@{}", bench.path("hosts").display())
}

/// `plimsoll run WORKLOAD` with the files in the work directory, on hosts.
fn run_on(bench: &Bench, ssh: &str, hosts: &str, workload: &str, more: &[&str]) -> Command {
    let mut command = bench.command_in_work(workload, &[&to(bench, ssh, hosts)]);
    command.args(more);
    command
}

#[test]
fn ranks_of_hosts_count_every_operation_once() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let args = [&SERVER[..], &["--ops=6001", "--seed=7"]].concat();
    let run = Ended::of(run_on(&bench, &sshd.ssh(), "a,b*2", "fileserver", &args)).result(0);
    assert_eq!((run.ranks, run.workers, run.summary.ops), (4, 12, 6001));
    assert_eq!(run.summary.errors, 0);
    let dir = &bench.results()[0];
    let each: Vec<Run> = (0..4).map(|rank| of_rank(dir, rank)).collect();
    for (rank, own) in (0u64..).zip(&each) {
        assert_eq!(own.summary.ops, 1500 + u64::from(rank < 1), "rank {rank}");
    }
    for all in &run.operations {
        let sum: u64 = each.iter().map(|own| row(own, &all.name).ops).sum();
        assert_eq!(all.ops, sum, "{}", all.name);
    }
    // The results list this machine first, by its own host name.
    let hosts = run.hosts.iter().map(|h| (h.ranks, h.workers, h.ops));
    let expected = [(1, 3, 1501), (1, 3, 1500), (2, 6, 3000)];
    assert_eq!(hosts.collect::<Vec<_>>(), expected);
    let names: Vec<&str> = run.hosts.iter().map(|h| h.host.as_str()).collect();
    assert_eq!(names[1..], ["a", "b"]);
    let bytes: u128 = run.hosts.iter().map(|h| h.bytes).sum();
    assert_eq!(bytes, run.operations.iter().map(|o| o.bytes).sum());
    let slowest = run.hosts.iter().map(|h| h.max_ms).fold(0.0, f64::max);
    let of_rows = run.operations.iter().map(|o| o.latency.max_ms);
    assert!((slowest - of_rows.fold(0.0, f64::max)).abs() < 1e-6);
    assert!(run.starts.is_some());
    assert_eq!(tree(&bench.work()).0.len(), 0);
    sshd.await_ranks(0);
}

#[test]
fn rank_0_may_leave_the_work_to_hosts() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let args = [&SERVER[..], &["--ops=6000", "--processes=0"]].concat();
    let run = Ended::of(run_on(&bench, &sshd.ssh(), "a,b", "fileserver", &args)).result(0);
    let summary = &run.summary;
    assert_eq!((run.ranks, summary.ops, summary.errors), (2, 6000, 0));
    let hosts = run.hosts.iter().map(|h| (&*h.host, h.workers, h.ops));
    let expected = [("a", 6, 3000), ("b", 6, 3000)];
    assert_eq!(hosts.collect::<Vec<_>>(), expected);
    let dir = &bench.results()[0];
    let ops = [0, 1, 2].map(|rank| of_rank(dir, rank).summary.ops);
    assert_eq!(ops, [0, 3000, 3000]);
    assert_eq!(tree(&bench.work()).0.len(), 0);
    // With `--processes 0 --verify`, the hosts read the files again, because rank 0 has no workers.
    let verified = ["--ops=600", "--processes=0", "--verify", "--keep"];
    let args = [&SERVER[..], &verified].concat();
    let run = Ended::of(run_on(&bench, &sshd.ssh(), "a,b", "fileserver", &args)).result(0);
    let found = run.verification.clone().unwrap();
    assert!(found.is_good() && found.skipped.is_none(), "{found:?}");
    let files = tree(&bench.work()).0.len() as u64;
    let bounds = found.files..=found.files + found.uncertain;
    let is_whole = found.files > 0 && bounds.contains(&files);
    assert!(is_whole, "{files} {found:?}");
}

#[test]
fn what_prevents_a_start_is_said_with_the_host() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let workload = bench.workload(ENDLESS);
    let program = env!("CARGO_BIN_EXE_plimsoll");
    // ssh with a wrong key would ask for a password, and with an unknown host key for a confirmation.
    let no_key = sshd.ssh_with("user_key", "other_key");
    let unknown_host = sshd.ssh_with("known_hosts", "unknown_hosts");
    let closed = sshd.trust(&(sshd.address, 9).into(), "closed");
    for (ssh, program, reason) in [
        (
            sshd.ssh(),
            "/nowhere/plimsoll",
            "`/nowhere/plimsoll` was not found there",
        ),
        (no_key, program, "Permission denied"),
        (unknown_host, program, "Host key verification failed"),
        (closed, program, "refused"),
    ] {
        let hosts = with_program(&bench, &ssh, "a", program);
        let ended = Ended::of(bench.command_in_work(&workload, &[&hosts])).expect_code(1);
        assert_eq!(ended.stdout, "");
        assert!(bench.results().is_empty() && !bench.work().exists());
        let said = ended.stderr;
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("host a: ") && said.contains(reason), "{said}");
    }
    assert!(sshd.ranks().is_empty());
}

#[test]
fn a_rank_that_is_killed_ends_the_run_with_its_host() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let workload = bench.workload(ENDLESS);
    let here = &["--interval=50ms"][..];
    let coordinated = &["--interval=50ms", "--processes=0"][..];
    // Cases of a killed rank: the first rank of a host (`leader`), and a rank that the first rank started. The list
    // `left` has the number of ranks of each host in the results; a single remaining host has no row in the results.
    let cases = [
        (true, here, &[1, 1][..]),
        (false, here, &[1, 1, 2]),
        (true, coordinated, &[]),
        (false, coordinated, &[1, 2]),
    ];
    for (leader, more, left) in cases {
        let command = run_on(&bench, &sshd.ssh(), "a,b*3", &workload, more);
        let run = started(command, "measuring");
        let ranks = sshd.await_ranks(4);
        let is_child = |(_, parent): &&(i32, i32)| ranks.iter().any(|(pid, _)| pid == parent);
        let (child, parent) = *ranks.iter().find(is_child).unwrap();
        signal(if leader { parent } else { child }, Signal::KILL);
        let ended = run.end().expect_code(1);
        let run = ended.parsed().unwrap();
        assert_eq!(run.validity.verdict, Verdict::Failed);
        let failure = run.failure.unwrap().to_string();
        assert!(failure.contains("host b: died (signal 9)"), "{failure}");
        assert!(run.summary.ops > 0);
        let ranks: Vec<u32> = run.hosts.iter().map(|h| h.ranks).collect();
        assert_eq!(ranks, left, "leader: {leader}, {more:?}");
        let ops: u64 = run.hosts.iter().map(|h| h.ops).sum();
        assert!(left.is_empty() || ops == run.summary.ops, "{ops}");
        assert!(run.hosts.iter().all(|h| h.ops > 0));
        let all = 4 + u32::from(more == here);
        let left = ranks.iter().sum::<u32>().max(1);
        let note = format!("the results are those of {left} of {all} ranks");
        let is_noted = run.notes.iter().any(|n| n.text.contains(&note));
        assert!(is_noted, "{:?}", run.notes);
        sshd.await_ranks(0);
    }
}

#[test]
fn nothing_goes_on_when_rank_0_is_killed() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let workload = bench.workload(ENDLESS);
    let command = run_on(&bench, &sshd.ssh(), "a*2,b", &workload, &[]);
    let mut run = started(command, "measuring");
    sshd.await_ranks(3);
    run.child.kill().unwrap();
    let _ = run.end();
    sshd.await_ranks(0);
}

/// The `ssh` processes of rank 0.
fn ssh_of(root: u32) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().map(Result::unwrap);
    let pids = processes.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let is_ssh = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.split_once(" (ssh) ").map(|(_, rest)| rest);
        rest.and_then(|r| r.split(' ').nth(1)) == Some(&root.to_string())
    };
    pids.filter(is_ssh).collect()
}

#[test]
fn an_ssh_that_is_killed_ends_the_run_and_the_ranks_behind_it() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let workload = bench.workload(ENDLESS);
    let more = ["--interval=50ms", "--processes=0"];
    let command = run_on(&bench, &sshd.ssh(), "a*2,b", &workload, &more);
    let run = started(command, "measuring");
    sshd.await_ranks(3);
    let connections = ssh_of(run.child.id());
    assert_eq!(connections.len(), 2);
    signal(connections[0], Signal::KILL);
    let run = run.end().expect_code(1).parsed().unwrap();
    let failure = run.failure.unwrap().to_string();
    assert!(failure.contains("its ssh died (signal 9)"), "{failure}");
    // After the death of one host's ssh, the results still have the operations of the other host.
    assert!(run.summary.ops > 0);
    sshd.await_ranks(0);
}

#[test]
fn an_interrupt_ends_all_ranks_in_order() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let workload = bench.workload(ENDLESS);
    for more in [&[][..], &["--processes=0"]] {
        let command = run_on(&bench, &sshd.ssh(), "a*2,b", &workload, more);
        let run = started(command, "measuring");
        sshd.await_ranks(3);
        run.interrupt();
        let run = run.end().expect_code(130).parsed().unwrap();
        assert_eq!(run.validity.verdict, Verdict::Interrupted);
        assert_eq!(tree(&bench.work()).0.len(), 0);
        sshd.await_ranks(0);
    }
}

/// Starts a relay (`systems wan`) to the ssh server; `how` has the relay's delay and further options.
fn line_to(bench: &Bench, sshd: &Sshd, how: &[&str]) -> Line {
    let upstream = sshd.address().to_string();
    let ends = ["--listen=127.0.0.1:0", "--upstream", &upstream];
    Line::start(bench, &[&ends[..], how].concat())
}

/// A relay with 50 ms to the ssh server, and the `ssh` command through the relay. While the relay's process is stopped,
/// sent bytes are neither passed on nor refused.
fn long_line(bench: &Bench, sshd: &Sshd) -> (Line, String) {
    let line = line_to(bench, sshd, &["--rtt=50ms"]);
    let ssh = sshd.trust(&line.address(), "long_line");
    (line, ssh)
}

#[test]
fn a_cut_line_ends_both_sides() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let (line, ssh) = long_line(&bench, &sshd);
    let workload = bench.workload(ENDLESS);
    let command = run_on(&bench, &ssh, "a*2", &workload, &["--interval=50ms"]);
    let run = started(command, "measuring");
    sshd.await_ranks(2);
    signal(line.pid(), Signal::STOP);
    let ended = run.end().expect_code(1);
    let run = ended.parsed().unwrap();
    let failure = run.failure.unwrap().to_string();
    let expected = "host a: nothing was heard from it for 6 s";
    assert!(failure.contains(expected), "{failure}");
    assert!(run.summary.ops > 0);
    sshd.await_ranks(0);
    signal(line.pid(), Signal::KILL);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let bench = Bench::on_tmpfs();
    for (option, reason) in [
        ("--hosts=a,a", "the host a is given twice"),
        ("--processes=0", "there are no other machines"),
        ("--hosts=a*2000", "more than 1024"),
        ("--hosts=@missing", "cannot read the hosts file missing"),
    ] {
        let said = bench.run("fileserver", &[option, "--time=1s"]).refusal();
        assert!(said.contains(reason), "{option}: {said}");
    }
    let ended = Ended::of(bench.plimsoll(["rank"])).expect_code(2);
    assert!(
        ended.stderr.contains("rank is for plimsoll itself"),
        "{}",
        ended.stderr
    );
}
