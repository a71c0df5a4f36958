//! Runs that want one directory at once: one of them has it, the others are refused, and nothing of a claim is left.

use crate::common::{Bench, CLAIM, Ended, started, tree, wait_until};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_nfs::v3::Proc;
use plimsoll_results::Verdict;
use plimsoll_testkit::{Fault, FaultRelay, Ganesha, NFS_PORT, needs_root};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A few files in one directory.
const FILES: &str = "\
define fileset name=s,path=files,entries=20,size=1k,dirwidth=100,prealloc
define process name=p {
  thread name=t,memsize=1k {
    flowop statfile name=stat,filesetname=s
  }
}
run 1
";

/// Runs that want a directory at once.
const RIVALS: usize = 5;

/// Starts the same command several times at once; returns how each ended.
fn rivals(command: impl Fn(usize) -> Command) -> Vec<Ended> {
    let start = |number| {
        let mut command = command(number);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<Child> = (0..RIVALS).map(start).collect();
    let begun = Instant::now();
    let ends = children.into_iter().map(|child| Ended::wait(child, begun));
    ends.collect()
}

/// One at least has the directory, and the others are refused for that reason.
#[track_caller]
fn check(ends: &[Ended]) {
    for ended in ends {
        match ended.code {
            Some(0) => {}
            Some(2) => assert!(
                ended.stderr.contains("is in use by another run (process "),
                "{ended:?}"
            ),
            _ => panic!("{ended:?}"),
        }
    }
    assert!(ends.iter().any(|ended| ended.code == Some(0)), "{ends:?}");
}

#[test]
fn of_runs_that_begin_at_once_one_has_the_directory() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(FILES);
    let command = |number: usize| {
        let mut command = bench.plimsoll(["run", &workload, "--dir=work", "--quiet"]);
        command
            .arg("--results")
            .arg(bench.path(&format!("{number}")));
        command
    };
    for _ in 0..3 {
        // Each time it is made anew.
        check(&rivals(command));
        assert!(!bench.work().exists(), "{:?}", tree(&bench.work()));
    }
    std::fs::create_dir(bench.work()).unwrap();
    check(&rivals(command));
    assert_eq!(std::fs::read_dir(bench.work()).unwrap().count(), 0);
}

/// What a killed run left is taken over by one of them.
#[test]
fn of_runs_that_take_over_what_was_left_one_has_the_directory() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(FILES);
    let command = |number: usize| {
        let mut command = bench.plimsoll(["run", &workload, "--dir=work"]);
        command
            .arg("--results")
            .arg(bench.path(&format!("{number}")));
        command
    };
    for _ in 0..3 {
        let mut going = started(command(0), "measuring");
        going.child.kill().unwrap();
        assert_eq!(going.end().code, None);
        assert!(bench.work().join(CLAIM).exists());
        check(&rivals(command));
        assert!(!bench.work().exists(), "{:?}", tree(&bench.work()));
    }
}

/// On a server that executes a call, loses its reply and executes the repetition too, the run that has claimed the
/// directory knows that it has.
#[test]
fn a_lost_reply_of_version_3_makes_nobody_a_loser() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(FILES);
    // Every second call, and each of two in a row.
    for faults in [
        &["rename=drop-reply:0.5"][..],
        &["rename=drop-reply:0.7", "rmdir=drop-reply:0.5"],
        &["rename=drop-reply:0.6", "remove=drop-reply:0.6"],
    ] {
        let options = ServerOptions {
            faults: faults.iter().map(|fault| fault.parse().unwrap()).collect(),
            ..ServerOptions::default()
        };
        let tree = Arc::new(Mutex::new(Tree::new(64 << 20)));
        let listen = "127.0.0.1:0".parse().unwrap();
        let server = Server::start(listen, tree, options).unwrap();
        let at = server.address();
        let url = format!(
            "nfs3://{at}/?mountport={}&timeo=300ms&retrans=20",
            at.port()
        );
        let command = |number: usize| {
            let mut command = bench.plimsoll(["run", &workload, "--dir=/w", "--target", &url]);
            command
                .arg("--results")
                .arg(bench.path(&format!("{number}")));
            command.arg("--format=json");
            command
        };
        let run = Ended::of(command(0)).result(0);
        assert_eq!(run.validity.verdict, Verdict::Valid, "{faults:?}");
        assert_eq!(run.notes, [], "{faults:?}");
        assert!(server.calls(Proc::Rename) > 1, "{faults:?}");
        check(&rivals(command));
        let cleaned = Ended::of(bench.plimsoll(["clean", "--target", &url, "/w"]));
        assert!(cleaned.stderr.contains("nothing to clean"), "{cleaned:?}");
    }
}

/// The same by version 4.
#[test]
fn a_lost_reply_of_version_4_makes_nobody_a_loser() {
    use plimsoll_nfs::v4::operations::Op;
    needs_root!();
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(FILES);
    let server = Ganesha::start().unwrap_or_else(|e| panic!("{e}"));
    let relay = FaultRelay::start(SocketAddr::new(server.address(), NFS_PORT)).unwrap();
    for minor in [0, 1] {
        let options = format!("minorversion={minor}&timeo=1s&retrans=20");
        let url = relay.nfs4_url(Ganesha::PSEUDO, &options);
        let command = |number: usize| {
            let mut command = bench.plimsoll(["run", &workload, "--dir=/w", "--target", &url]);
            command
                .arg("--results")
                .arg(bench.path(&format!("{number}")));
            command.arg("--format=json");
            command
        };
        for op in [Op::Rename, Op::Remove] {
            let before = relay.fallen();
            relay.inject(Fault::lose(op).every(2).times(u32::MAX));
            let run = Ended::of(command(0)).result(0);
            assert_eq!(run.validity.verdict, Verdict::Valid, "{minor} {op:?}");
            assert_eq!(run.notes, [], "{minor} {op:?}");
            assert!(relay.fallen() > before, "{minor} {op:?}");
            check(&rivals(command));
            relay.clear();
            // A removal behind a lost reply may take a moment to be seen.
            wait_until("nothing is left", || {
                tree(&server.seen()) == Default::default()
            });
        }
    }
}
