//! Runs on real NFS servers, the files that runs leave there, and servers that fail.

use crate::common::{Bench, Ended, Started, row, started, tree, wait_until};
use crate::full_disk::GROWS;
use crate::ranks::of_rank;
use plimsoll_results::{Run, Verdict};
use plimsoll_testkit::{Ganesha, GaneshaOptions, Knfsd, NFS_PORT, needs_root};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

fn ganesha() -> Ganesha {
    Ganesha::start().unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn calls(run: &Run, procedure: &str) -> u64 {
    let found = run.procedures.iter().find(|p| p.name == procedure);
    found.map_or(0, |p| p.ops)
}

/// Two ranks, each an NFS client of its own, share a server: they create the files and measure together, and leave no
/// file.
#[test]
fn ranks_share_a_server() {
    needs_root!();
    let (bench, server) = (Bench::new(), ganesha());
    for (url, procedure) in [
        (server.nfs3_url(""), "CREATE"),
        (server.nfs4_url("minorversion=0"), "OPEN"),
        (server.nfs4_url("minorversion=1"), "OPEN"),
    ] {
        let mut more = vec!["--target", &url, "--processes=3", "--time=1s", "--per-rank"];
        more.extend(["--dir=/w", "--set=nfiles=60", "--set=nthreads=4"]);
        let run = bench.run("fileserver", &more).result(0);
        assert_eq!(run.validity.verdict, Verdict::Valid, "{url}");
        assert_eq!(run.summary.errors, 0, "{url}");
        let dir = bench.results().pop().unwrap();
        assert_eq!(dir.read().unwrap(), run, "the newest is the last");
        let each: Vec<_> = (0..3)
            .map(|rank| calls(&of_rank(&dir, rank), procedure))
            .collect();
        assert!(each.iter().all(|calls| *calls > 0), "{url}: {each:?}");
        assert_eq!(each.iter().sum::<u64>(), calls(&run, procedure), "{url}");
        assert!(
            calls(&run, procedure) >= row(&run, "createfile1").ops,
            "{url}"
        );
        assert_eq!(tree(&server.seen()), Default::default(), "{url}");
    }
}

/// Workload with four workers that open, read, close and stat files, and change nothing.
pub(crate) const READS: &str = "\
define fileset name=s,path=files,entries=20,dirwidth=20,size=8k,prealloc
define process name=p {
  thread name=t,memsize=1m,instances=4 {
    flowop openfile name=open,filesetname=s,fd=1
    flowop readwholefile name=read,fd=1,iosize=4k
    flowop closefile name=close,fd=1
    flowop statfile name=look,filesetname=s
  }
}
run 3600
";

/// A run of [`READS`] that goes on until it is interrupted.
fn reading(bench: &Bench, server: &Ganesha, options: &str) -> Started {
    let workload = bench.workload(READS);
    let url = server.nfs3_url(&format!("{options}&clients=1"));
    let command = bench.command(&workload, &["--target", &url, "--dir=/w"]);
    let run = started(command, "measuring");
    wait_for_answers(nfs_of(server));
    run
}

fn nfs_of(server: &Ganesha) -> SocketAddr {
    SocketAddr::new(server.address(), NFS_PORT)
}

/// Interrupts a run of [`READS`], and asserts that every operation completed and no operation failed.
pub(crate) fn interrupted(run: Started) -> Run {
    run.interrupt();
    let run = run.end().result(130);
    assert_eq!(run.summary.errors, 0, "{:?}", run.operations);
    for name in ["open", "read", "close", "look"] {
        assert!(row(&run, name).ops > 0, "{name}");
    }
    run
}

/// Ends a run as [`interrupted`] does, and asserts that the server has no file of the run.
fn read_to_the_end(server: &Ganesha, run: Started) -> Run {
    let run = interrupted(run);
    assert_eq!(tree(&server.seen()), Default::default());
    run
}

/// Bytes of answers that are those of many calls of the four workers, one after the other: what
/// came before the last of them was heard.
const MANY_ANSWERS: u64 = 256 << 10;

/// Waits until a server has answered many calls on one connection from here.
pub(crate) fn wait_for_answers(server: SocketAddr) {
    let filter = format!("dst {server}");
    wait_until("nobody was answered", || {
        let mut ss = Command::new("ss");
        let ss = ss.args(["-Htin", "state", "established", &filter]);
        let ss = ss.output().expect("`ss` of the package `iproute2`");
        let said = String::from_utf8_lossy(&ss.stdout).into_owned();
        let mut received = said
            .split_whitespace()
            .filter_map(|w| w.strip_prefix("bytes_received:"));
        received.any(|bytes| bytes.parse::<u64>().unwrap() > MANY_ANSWERS)
    });
}

/// A server that stands still for longer than `timeo`: calls are sent again, and are answered when
/// it goes on.
#[test]
fn a_server_that_does_not_answer_for_a_while() {
    needs_root!();
    let (bench, server) = (Bench::new(), ganesha());
    let run = reading(&bench, &server, "timeo=300ms&retrans=100");
    server.pause();
    std::thread::sleep(Duration::from_secs(2));
    server.go_on();
    wait_for_answers(nfs_of(&server));
    let run = read_to_the_end(&server, run);
    assert!(calls(&run, "retransmissions") >= 1);
}

/// A server that never comes again ends the run, with the reason.
#[test]
fn a_server_that_stays_away() {
    needs_root!();
    let (bench, mut server) = (Bench::new(), ganesha());
    let run = reading(&bench, &server, "timeo=200ms&retrans=1");
    server.kill().unwrap();
    let ended = run.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let failure = ended.parsed().unwrap().failure.unwrap();
    assert!(failure.error.contains("ETIMEDOUT"), "{failure:?}");
}

#[test]
fn a_read_only_export_is_refused() {
    needs_root!();
    let options = GaneshaOptions {
        read_only: true,
        ..GaneshaOptions::default()
    };
    let server = Ganesha::with(&options).unwrap_or_else(|e| panic!("{e}"));
    let (bench, url) = (Bench::new(), server.nfs3_url(""));
    let refused = bench.run("fileserver", &["--target", &url]).refusal();
    let is_named = refused.contains("cannot be written to") || refused.contains("EROFS");
    assert!(is_named, "{refused}");
    assert_eq!(tree(&server.seen()), Default::default());
}

/// A user's quota that is used up: what was written until then fits it, and the run ends by name.
#[test]
fn a_quota_that_is_used_up() {
    needs_root!();
    let bench = Bench::new();
    let mut server = Knfsd::start().unwrap_or_else(|e| panic!("{e}"));
    let kib = 2048;
    let made = server.add_quota(1234, kib);
    made.unwrap_or_else(|e| panic!("{e}"));
    let at = server.address();
    let workload = bench.workload(GROWS);
    for (url, status) in [
        (format!("nfs3://{at}{}", Knfsd::EXPORT), "NFS3ERR_DQUOT"),
        (format!("nfs4://{at}"), "NFS4ERR_DQUOT"),
    ] {
        let url = format!("{url}/limited?uid=1234&gid=1234");
        let ended = bench.run(&workload, &["--target", &url, "--keep", "--dir=/w"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let run = ended.parsed().unwrap();
        let codes = &row(&run, "grow:append").error_codes;
        assert_eq!(codes.keys().collect::<Vec<_>>(), ["EDQUOT"]);
        let mut procedures = run.procedures.iter();
        let is_counted = procedures.any(|p| p.error_codes.contains_key(status));
        assert!(is_counted, "{run:?}");
        let used = "du -sk --apparent-size /mnt/export/limited/w | cut -f1";
        let used: u64 = server.sh(used).unwrap().trim().parse().unwrap();
        assert!((kib / 2..=kib).contains(&used), "{used} KiB");
        let mut clean = bench.plimsoll(["clean", "/w", "--target", &url]);
        clean.arg("--force");
        Ended::of(clean).expect_code(0);
        assert_eq!(server.sh("ls /mnt/export/limited").unwrap(), "lost+found\n");
    }
}
