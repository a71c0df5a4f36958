//! Runs on other machines: real servers of ssh, each of which is as many hosts as it has names.

use crate::common::sshd::{Sshd, script};
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

/// A file server of twelve workers with small files.
const SERVER: [&str; 5] = [
    "--set=nfiles=400",
    "--set=filesize=4k",
    "--set=nthreads=12",
    "--interval=50ms",
    "--per-rank",
];

/// A run that lasts until something ends it.
const ENDLESS: &str = "define fileset name=s,path=files,entries=40,dirwidth=20,size=4k,prealloc
     define process name=p { thread name=t,memsize=1m,instances=8 {
       flowop statfile name=look,filesetname=s
     } }
     run 3600";

/// The option for hosts that are reached by this server, which are in a file.
fn to(bench: &Bench, ssh: &str, hosts: &str) -> String {
    with_program(bench, ssh, hosts, env!("CARGO_BIN_EXE_plimsoll"))
}

/// The same with the path of the program there.
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

/// The error of a run that could not begin on a host.
fn refused(bench: &Bench, ssh: &str) -> String {
    let workload = bench.workload(ENDLESS);
    let ended = Ended::of(run_on(bench, ssh, "a", &workload, &[])).expect_code(1);
    assert_eq!(ended.stdout, "");
    assert!(bench.results().is_empty());
    assert!(!bench.work().exists());
    ended.stderr
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
    // The first host is this machine, by its own name.
    let hosts: Vec<_> = run
        .hosts
        .iter()
        .map(|h| (h.ranks, h.workers, h.ops))
        .collect();
    assert_eq!(hosts, [(1, 3, 1501), (1, 3, 1500), (2, 6, 3000)]);
    let names: Vec<&str> = run.hosts.iter().map(|h| h.host.as_str()).collect();
    assert_eq!(names[1..], ["a", "b"]);
    let bytes: u128 = run.hosts.iter().map(|h| h.bytes).sum();
    assert_eq!(bytes, run.operations.iter().map(|o| o.bytes).sum());
    let slowest = run.hosts.iter().map(|h| h.max_ms).fold(0.0, f64::max);
    let of_rows = run
        .operations
        .iter()
        .map(|o| o.latency.max_ms)
        .fold(0.0, f64::max);
    assert!((slowest - of_rows).abs() < 1e-6);
    assert!(run.starts.is_some());
    assert_eq!(tree(&bench.work()).0.len(), 0);
    sshd.await_ranks(0);
}

#[test]
fn a_report_has_a_row_for_each_host() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let mut command = bench.plimsoll(["run", "fileserver", "--time=1s"]);
    command
        .args([
            "--results=results",
            "--target=null:?latency=1ms",
            "--set=nthreads=4",
        ])
        .arg(to(&bench, &sshd.ssh(), "left,right"));
    let report = Ended::of(command).expect_code(0).stdout;
    for host in ["left", "right"] {
        let rows = report.lines().filter(|l| l.starts_with(host)).count();
        assert_eq!(rows, 1, "{report}");
    }
    assert!(
        report.contains("starts: 3 ranks started within "),
        "{report}"
    );
    // The page has the same table.
    let dir = bench.results()[0].path().display().to_string();
    let args = ["report", &dir, "--format=html", "--output=page.html"];
    Ended::of(bench.plimsoll(args)).expect_code(0);
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    for host in ["left", "right"] {
        assert!(page.contains(&format!("<th scope=\"row\">{host}</th>")));
    }
    assert!(page.contains("3 ranks started within "));
}

#[test]
fn rank_0_may_leave_the_work_to_hosts() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let args = [&SERVER[..], &["--ops=6000", "--processes=0"]].concat();
    let run = Ended::of(run_on(&bench, &sshd.ssh(), "a,b", "fileserver", &args)).result(0);
    assert_eq!(
        (run.ranks, run.summary.ops, run.summary.errors),
        (2, 6000, 0)
    );
    let hosts: Vec<_> = run
        .hosts
        .iter()
        .map(|h| (&*h.host, h.workers, h.ops))
        .collect();
    assert_eq!(hosts, [("a", 6, 3000), ("b", 6, 3000)]);
    let dir = &bench.results()[0];
    assert_eq!(
        [0, 1, 2].map(|rank| of_rank(dir, rank).summary.ops),
        [0, 3000, 3000]
    );
    assert_eq!(tree(&bench.work()).0.len(), 0);
    // Files are read again by those that have workers.
    let args = [
        &SERVER[..],
        &["--ops=600", "--processes=0", "--verify", "--keep"],
    ]
    .concat();
    let run = Ended::of(run_on(&bench, &sshd.ssh(), "a,b", "fileserver", &args)).result(0);
    let found = run.verification.clone().unwrap();
    assert!(found.is_good() && found.skipped.is_none(), "{found:?}");
    let files = tree(&bench.work()).0.len() as u64;
    let bounds = found.files..=found.files + found.uncertain;
    assert!(
        found.files > 0 && bounds.contains(&files),
        "{files} {found:?}"
    );
    std::fs::remove_dir_all(bench.work()).unwrap();
    // A run that ends by time, which rank 0 keeps.
    let args = [
        "--time=500ms",
        "--target=null:?latency=1ms",
        "--processes=0",
    ];
    let run = Ended::of(run_on(&bench, &sshd.ssh(), "a", "fileserver", &args)).result(0);
    assert_eq!((run.ranks, run.hosts.len()), (1, 0));
    assert!(
        run.summary.ops > 0 && run.window_s >= 0.5,
        "{}",
        run.window_s
    );
}

#[test]
fn what_prevents_a_start_is_said_with_the_host() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let workload = bench.workload(ENDLESS);
    let said = |ssh: &str, program: &str| {
        let hosts = with_program(&bench, ssh, "a", program);
        let command = bench.command_in_work(&workload, &[&hosts]);
        let ended = Ended::of(command).expect_code(1);
        assert_eq!(ended.stdout, "");
        assert!(bench.results().is_empty() && !bench.work().exists());
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        ended.stderr
    };
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let ours = env!("CARGO_PKG_VERSION");
    let older = script(
        &bench.path("older"),
        "echo 'plimsoll-rank 0.0.9 1 -'; cat >/dev/null",
    );
    let text = said(&sshd.ssh(), &older);
    assert!(
        text.contains("host a: plimsoll there is version 0.0.9, and this one is ")
            && text.contains(ours)
    );
    let text = said(&sshd.ssh(), "/nowhere/plimsoll");
    assert!(
        text.contains("host a: `/nowhere/plimsoll` was not found there"),
        "{text}"
    );
    let broken = script(&bench.path("broken"), "echo out of luck >&2; exit 3");
    let text = said(&sshd.ssh(), &broken);
    let expected = "host a: the program there ended with exit code 3: out of luck";
    assert!(text.contains(expected), "{text}");
    // No key, so that ssh would ask for a password.
    let text = said(&sshd.ssh_with("user_key", "other_key"), program);
    assert!(
        text.contains("host a: cannot be reached by ssh: "),
        "{text}"
    );
    assert!(text.contains("Permission denied"), "{text}");
    // A host key that is not known.
    let text = said(&sshd.ssh_with("known_hosts", "unknown_hosts"), program);
    assert!(
        text.contains("host a: cannot be reached by ssh: Host key verification failed"),
        "{text}"
    );
    // A port that refuses.
    let closed = sshd.trust(&(sshd.address, 9).into(), "closed");
    let text = said(&closed, program);
    assert!(
        text.contains("host a: cannot be reached by ssh: ") && text.contains("refused"),
        "{text}"
    );
    assert!(sshd.ranks().is_empty());
}

#[test]
fn a_login_shell_that_prints_is_named() {
    let bench = Bench::on_tmpfs();
    let shell = script(
        &bench.path("shell"),
        "echo Welcome to a; exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"",
    );
    let sshd = Sshd::with(&bench, &format!("ForceCommand {shell}"));
    let said = refused(&bench, &sshd.ssh());
    let expected = "host a: it printed `Welcome to a` before the program started";
    assert!(said.contains(expected), "{said}");
    sshd.await_ranks(0);
}

#[test]
fn a_rank_that_is_killed_ends_the_run_with_its_host() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let workload = bench.workload(ENDLESS);
    let here = &["--interval=50ms"][..];
    let coordinated = &["--interval=50ms", "--processes=0"][..];
    // The first rank of a host, and one that it has started; what is left has been measured by the others.
    let cases = [
        (true, here, &[1, 1][..]),
        (false, here, &[1, 1, 2]),
        // One host alone has no row.
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
        assert!(left.is_empty() || ops == run.summary.ops);
        assert!(run.hosts.iter().all(|h| h.ops > 0));
        let all = 4 + u32::from(more == here);
        let note = format!(
            "the results are those of {} of {all} ranks",
            ranks.iter().sum::<u32>().max(1)
        );
        assert!(
            run.notes.iter().any(|n| n.text.contains(&note)),
            "{:?}",
            run.notes
        );
        sshd.await_ranks(0);
    }
}

#[test]
fn nothing_goes_on_when_rank_0_is_killed() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let workload = bench.workload(ENDLESS);
    let mut run = started(
        run_on(&bench, &sshd.ssh(), "a*2,b", &workload, &[]),
        "measuring",
    );
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
    let run = started(
        run_on(&bench, &sshd.ssh(), "a*2,b", &workload, &more),
        "measuring",
    );
    sshd.await_ranks(3);
    let connections = ssh_of(run.child.id());
    assert_eq!(connections.len(), 2);
    signal(connections[0], Signal::KILL);
    let run = run.end().expect_code(1).parsed().unwrap();
    let failure = run.failure.unwrap().to_string();
    assert!(failure.contains("its ssh died (signal 9)"), "{failure}");
    // What the other host had measured.
    assert!(run.summary.ops > 0);
    sshd.await_ranks(0);
}

#[test]
fn an_interrupt_ends_all_ranks_in_order() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let workload = bench.workload(ENDLESS);
    for more in [&[][..], &["--processes=0"]] {
        let run = started(
            run_on(&bench, &sshd.ssh(), "a*2,b", &workload, more),
            "measuring",
        );
        sshd.await_ranks(3);
        run.interrupt();
        let run = run.end().expect_code(130).parsed().unwrap();
        assert_eq!(run.validity.verdict, Verdict::Interrupted);
        assert_eq!(tree(&bench.work()).0.len(), 0);
        sshd.await_ranks(0);
    }
}

/// A line to the server; `how`: its delay and more.
fn line_to(bench: &Bench, sshd: &Sshd, how: &[&str]) -> Line {
    let upstream = sshd.address().to_string();
    let ends = ["--listen=127.0.0.1:0", "--upstream", &upstream];
    Line::start(bench, &[&ends[..], how].concat())
}

/// A line of 50 ms to the server, which stops when its process is stopped: what is sent is neither
/// passed on nor refused.
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
    let run = started(
        run_on(&bench, &ssh, "a*2", &workload, &["--interval=50ms"]),
        "measuring",
    );
    sshd.await_ranks(2);
    signal(line.pid(), Signal::STOP);
    let ended = run.end().expect_code(1);
    let run = ended.parsed().unwrap();
    let failure = run.failure.unwrap().to_string();
    assert!(
        failure.contains("host a: nothing was heard from it for 6 s"),
        "{failure}"
    );
    assert!(run.summary.ops > 0);
    sshd.await_ranks(0);
    signal(line.pid(), Signal::KILL);
}

/// How far apart ranks may start at a round trip of 50 ms.
const MAX_SPREAD_MS: f64 = 5.0;

#[test]
fn ranks_start_together_over_a_long_line() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let (line, ssh) = long_line(&bench, &sshd);
    let args = [
        "--time=100ms",
        "--target=null:?latency=1ms",
        "--set=nthreads=4",
    ];
    // A rank that started when the message arrived would be 25 ms, half of a round trip, away from rank 0, in every
    // run. A machine that is busy with other tests delays some starts, but not those of all runs.
    let spread_ms = |_| {
        let run = Ended::of(run_on(&bench, &ssh, "a,b*2", "fileserver", &args)).result(0);
        let starts = run.starts.unwrap();
        assert!(starts.round_trip_ms >= 50.0, "{starts:?}");
        starts.spread_ms
    };
    let spreads: Vec<f64> = (0..9).map(spread_ms).collect();
    let least = spreads.iter().copied().fold(f64::MAX, f64::min);
    assert!(least < MAX_SPREAD_MS, "{spreads:?}");
    line.end();
}

#[test]
fn every_command_that_runs_workloads_takes_hosts() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let to = to(&bench, &sshd.ssh(), "a*2");
    let on_hosts = |args: &[&str]| {
        let mut command = bench.plimsoll(args);
        command
            .args(["--format=json", "--results=results"])
            .arg(&to);
        let ended = Ended::of(command);
        // A busy machine may be too slow for every paced load, which is not what is tested.
        assert!(
            [Some(0), Some(1), Some(3)].contains(&ended.code),
            "{}",
            ended.stderr
        );
        assert!(!ended.stderr.contains("error:"), "{}", ended.stderr);
        serde_json::from_str::<serde_json::Value>(&ended.stdout).unwrap()
    };
    let md = on_hosts(&[
        "md",
        "-P=20",
        "-D=2",
        "-I=10",
        "-R=1",
        "-S=3000",
        "--dir=work",
    ]);
    assert_eq!(md["ranks"], 3);
    assert_eq!(md["hosts"].as_array().unwrap().len(), 2);
    let null = "--target=null:?latency=1ms";
    let curve = on_hosts(&[
        "curve",
        "vda",
        "--load=3,6",
        "--time=500ms",
        "--warmup=0s",
        null,
    ]);
    let runs = |series: &serde_json::Value| series["runs"].as_array().unwrap().len();
    assert_eq!((runs(&curve), &curve["ranks"]), (2, &3.into()));
    let find = [
        "find",
        "vda",
        "--max-load=4",
        "--time=500ms",
        "--warmup=0s",
        null,
    ];
    let find = on_hosts(&[&find[..], &["--start-load=3", "--resolution=1"]].concat());
    assert!(runs(&find) > 0);
    assert_eq!(find["ranks"], 3);
    let text = "CONFIG one { personality = randomread; function = generic; nthreads = 3; \
                filesize = 1m; }\n";
    std::fs::write(bench.path("one.prof"), text).unwrap();
    let profile = on_hosts(&["profile", "one.prof", "--time=500ms", null]);
    assert_eq!((runs(&profile), &profile["ranks"]), (1, &3.into()));
    sshd.await_ranks(0);
}

#[test]
fn sixty_four_ranks_are_a_tree() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let args = [
        "--ops=6400",
        "--target=null:",
        "--set=nthreads=64",
        "--per-rank",
    ];
    let run = Ended::of(run_on(
        &bench,
        &sshd.ssh(),
        "a*40,b*23",
        "fileserver",
        &args,
    ))
    .result(0);
    assert_eq!((run.ranks, run.workers, run.summary.ops), (64, 64, 6400));
    let dir = &bench.results()[0];
    assert!((0..64).all(|rank| of_rank(dir, rank).summary.ops == 100));
    let hosts: Vec<_> = run.hosts[1..].iter().map(|h| (h.ranks, h.ops)).collect();
    assert_eq!(hosts, [(40, 4000), (23, 2300)]);
    sshd.await_ranks(0);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let bench = Bench::on_tmpfs();
    for (args, reason) in [
        (&["--hosts=a,a"][..], "the host a is given twice"),
        (&["--hosts=c[5-2]"], "the range ends before it begins"),
        (&["--hosts=-oProxyCommand=x"], "is not a host"),
        (&["--processes=0"], "there are no other machines"),
        (&["--hosts=a*2000"], "more than 1024"),
        (&["--hosts=@missing"], "cannot read the hosts file missing"),
    ] {
        let args = [args, &["--time=1s"]].concat();
        let said = bench.run("fileserver", &args).refusal();
        assert!(said.contains(reason), "{args:?}: {said}");
    }
    let ended = Ended::of(bench.plimsoll(["rank"])).expect_code(2);
    assert!(
        ended.stderr.contains("rank is for plimsoll itself"),
        "{}",
        ended.stderr
    );
}
