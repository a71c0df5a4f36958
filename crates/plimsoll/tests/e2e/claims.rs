//! Runs that start at once in one work directory: one run gets the directory, the other runs are refused, and no claim
//! is left.

use crate::common::{Bench, CLAIM, Ended, started, tree, wait_until};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_nfs::v3::{Proc, Setting};
use plimsoll_results::Verdict;
use plimsoll_testkit::{Fault, FaultRelay, Ganesha, NFS_PORT, needs_root};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A workload on a few files in several directories, and on leaf directories.
const FILES: &str = "\
define fileset name=s,path=files,entries=4,size=1k,dirwidth=2,leafdirs=2,prealloc
define process name=p {
  thread name=t,memsize=1k {
    flowop statfile name=stat,filesetname=s
  }
}
run 1
";

/// Number of runs that start at once in one work directory.
const RIVALS: usize = 5;

/// A run with results in the directory of the given number in the bench.
fn numbered_run(bench: &Bench, args: &[&str], number: usize) -> Command {
    let mut command = bench.plimsoll(["run"]);
    command.args(args).arg("--results");
    command.arg(bench.path(&number.to_string()));
    command
}

/// Starts the same command [`RIVALS`] times at once; returns how each process ended.
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

/// At least one run got the directory and removed its files, and every other run was refused because the directory was
/// in use.
#[track_caller]
fn check(ends: &[Ended]) {
    for ended in ends {
        match ended.code {
            Some(0) => {
                if let Some(run) = ended.parsed() {
                    assert_eq!(run.notes, [], "{}", ended.stderr);
                }
            }
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
    let command = |number| numbered_run(&bench, &[&workload, "--dir=work"], number);
    // A race can end in several ways: three trials of each case in which a run creates the directory.
    for _ in 0..3 {
        // Case 1: the work directory does not exist, and the run that gets the directory creates and removes it.
        check(&rivals(command));
        assert!(!bench.work().exists(), "{:?}", tree(&bench.work()));
        // Case 2: the work directory has the claim and the files of a killed run.
        let mut going = started(command(0), "measuring");
        going.child.kill().unwrap();
        assert_eq!(going.end().code, None);
        assert!(bench.work().join(CLAIM).exists());
        check(&rivals(command));
        assert!(!bench.work().exists(), "{:?}", tree(&bench.work()));
    }
    // Case 3: the work directory exists and is empty before the runs, which must not remove the directory.
    std::fs::create_dir(bench.work()).unwrap();
    check(&rivals(command));
    assert_eq!(std::fs::read_dir(bench.work()).unwrap().count(), 0);
}

/// A server executes a call, loses the reply and executes the retransmission too; the run that has claimed the
/// directory still knows that it holds the claim, and makes all directories of its files.
#[test]
fn a_lost_reply_of_version_3_makes_nobody_a_loser() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(FILES);
    // Faults on more than half of the calls of a procedure also drop replies to retransmissions.
    for faults in [
        ["rename=drop-reply:0.7", "rmdir=drop-reply:0.5"],
        ["rename=drop-reply:0.6", "remove=drop-reply:0.6"],
        ["mkdir=drop-reply:0.6", "rename=drop-reply:0.6"],
    ] {
        let options = ServerOptions {
            faults: faults.iter().map(|fault| fault.parse().unwrap()).collect(),
            ..ServerOptions::default()
        };
        let mut tree = Tree::new(64 << 20);
        if faults[0].starts_with("mkdir") {
            // A lost reply leaves unknown whether this run or another run has made the work directory.
            tree.make_dir(&tree.root(), b"w", &Setting::NOTHING)
                .unwrap();
        }
        let tree = Arc::new(Mutex::new(tree));
        let listen = "127.0.0.1:0".parse().unwrap();
        let server = Server::start(listen, tree, options).unwrap();
        let at = server.address();
        let url = format!(
            "nfs3://{at}/?mountport={}&timeo=200ms&retrans=100",
            at.port()
        );
        let args = [&*workload, "--dir=/w", "--target", &url, "--format=json"];
        let command = |number| numbered_run(&bench, &args, number);
        let run = Ended::of(command(0)).result(0);
        assert_eq!(run.validity.verdict, Verdict::Valid, "{faults:?}");
        assert_eq!(run.notes, [], "{faults:?}");
        assert!(server.calls(Proc::Rename) > 1, "{faults:?}");
        check(&rivals(command));
        let cleaned = Ended::of(bench.plimsoll(["clean", "--target", &url, "/w"]));
        assert!(cleaned.stderr.contains("nothing to clean"), "{cleaned:?}");
    }
}

/// Lost replies of NFSv4 CREATE, RENAME and REMOVE calls cost the run neither its claim nor its directories.
#[test]
fn a_lost_reply_of_version_4_makes_nobody_a_loser() {
    use plimsoll_nfs::v4::operations::Op;
    needs_root!();
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(FILES);
    let server = Ganesha::start().unwrap_or_else(|e| panic!("{e}"));
    let relay = FaultRelay::start(SocketAddr::new(server.address(), NFS_PORT)).unwrap();
    for minor in [0, 1] {
        // A lost reply cuts the connection, and every call in flight on the connection is sent again.
        let options = format!("minorversion={minor}&timeo=1s&retrans=100");
        let url = relay.nfs4_url(Ganesha::PSEUDO, &options);
        let args = [&*workload, "--dir=/w", "--target", &url, "--format=json"];
        let command = |number| numbered_run(&bench, &args, number);
        for op in [Op::Create, Op::Rename, Op::Remove] {
            let work = server.seen().join("w");
            if op == Op::Create {
                // A lost reply leaves unknown whether this run or another run has made the work directory.
                std::fs::create_dir(&work).unwrap();
            }
            let before = relay.fallen();
            // If all faults meet retransmissions of one call, the server is silent for 3 times `timeo`, which is less
            // than the 4 s after which the removal gives up.
            let fault = Fault::lose(op).every(2).times(3);
            relay.inject(fault.clone());
            let run = Ended::of(command(0)).result(0);
            assert_eq!(run.validity.verdict, Verdict::Valid, "{minor} {op:?}");
            assert_eq!(run.notes, [], "{minor} {op:?}");
            assert!(relay.fallen() > before, "{minor} {op:?}");
            relay.clear();
            relay.inject(fault);
            let ends = rivals(command);
            // A failed test prints the course of the stage.
            let ways: Vec<_> = ends.iter().map(|e| (e.code, e.took, &e.stderr)).collect();
            println!("{minor} {op:?}: {ways:?}, left: {:?}", tree(&server.seen()));
            check(&ends);
            relay.clear();
            // After a lost reply, a removal may become visible with a delay.
            let mut shown = None;
            wait_until("nothing is left", || {
                if op == Op::Create {
                    let _ = std::fs::remove_dir(&work);
                }
                let left = tree(&server.seen());
                let is_empty = left == Default::default();
                // A failed test prints the course of the removal.
                if shown.as_ref() != Some(&left) {
                    println!("{minor} {op:?}: {left:?}");
                    shown = Some(left);
                }
                is_empty
            });
        }
    }
}
