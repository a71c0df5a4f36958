//! Runs on real NFS servers, what is on them afterwards, and servers that fail.

use crate::common::{Bench, Ended, MARKER, Started, row, started, tree, wait_until};
use crate::full_disk::GROWS;
use crate::ranks::of_rank;
use plimsoll_nfs::wan::{Link, Relay, Summary};
use plimsoll_results::{Run, Verdict};
use plimsoll_testkit::{Ganesha, GaneshaOptions, Knfsd, MOUNT_PORT, NFS_PORT, needs_root};
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

/// Two processes' worth of MD-Workbench: 2 x 20 files of 3000 bytes that a phase leaves to the next.
fn md(bench: &Bench, url: &str, phase: &str) -> Run {
    let interface = format!("-i={url}");
    let args = ["md", &interface, phase, "-P=20", "-D=2", "-I=10", "-S=3000"];
    let mut command = bench.plimsoll(args);
    command.args([
        "--verify-read",
        "--dir=/md",
        "--results=results",
        "--format=json",
    ]);
    let run = Ended::of(command).result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    assert_eq!(run.summary.errors, 0);
    run
}

/// Each phase of MD-Workbench finds what the one before it left, and so does whoever looks at the
/// exported directory. The ports are those that the port mapper says.
#[test]
fn md_phase_by_phase() {
    needs_root!();
    let (bench, server) = (Bench::new(), ganesha());
    let url = server.nfs3_url("");
    md(&bench, &url, "-1");
    let (files, _) = tree(&server.seen());
    assert_eq!(files.len(), 40, "{files:?}");
    assert!(files.values().all(|size| *size == 3000), "{files:?}");
    let name = files.keys().next().unwrap();
    let bytes = std::fs::read(server.seen().join(name)).unwrap();
    assert!(bytes.iter().any(|b| *b != 0), "nothing but zeros came");
    let run = md(&bench, &url, "-2");
    assert!(calls(&run, "READ") >= 20 && calls(&run, "REMOVE") >= 20);
    let (after, _) = tree(&server.seen());
    assert_eq!(after.len(), 40);
    assert_ne!(after, files, "nothing came and went");
    md(&bench, &url, "-3");
    assert_eq!(
        tree(&server.seen()),
        (Default::default(), vec!["md".to_owned()])
    );
}

/// Each rank is a client of its own. They make the files together and measure together, and nothing
/// is left.
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

#[test]
fn a_fileserver_whose_files_are_kept_and_cleaned() {
    needs_root!();
    let (bench, server) = (Bench::new(), ganesha());
    let url = server.nfs3_url("nconnect=2&wsize=16k");
    let sets = ["--set=nfiles=60", "--set=nthreads=4", "--set=filesize=32k"];
    let mut more = vec!["--target", &url, "--dir=/w", "--time=1s", "--keep"];
    more.extend(sets);
    let run = bench.run("fileserver", &more).result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    assert_eq!(run.summary.errors, 0);
    assert!(row(&run, "deletefile1").ops > 0);
    // Stable in the end: what was written unstable is committed.
    assert!(calls(&run, "WRITE") > 0 && calls(&run, "COMMIT") > 0);
    let (files, dirs) = tree(&server.seen().join("w"));
    assert!(!dirs.is_empty() && !files.is_empty());
    assert!(files.values().sum::<u64>() > 0);
    assert!(server.seen().join("w").join(MARKER).exists());
    let cleaned = Ended::of(bench.plimsoll(["clean", "--target", &url, "/w"])).expect_code(0);
    assert_eq!(cleaned.stdout, "cleaned /w\n");
    assert_eq!(tree(&server.seen()), Default::default());
}

/// Four workers that only read.
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
    let url = server.nfs3_url(options);
    let mut command = bench.command(&workload, &["--target", &url, "--dir=/w"]);
    command.args(["--lanes=1"]);
    let run = started(command, "measuring");
    wait_for_answers(nfs_of(server));
    run
}

fn nfs_of(server: &Ganesha) -> SocketAddr {
    SocketAddr::new(server.address(), NFS_PORT)
}

/// Ends it, and checks that no operation failed.
pub(crate) fn interrupted(run: Started) -> Run {
    run.interrupt();
    let run = run.end().result(130);
    assert_eq!(run.summary.errors, 0, "{:?}", run.operations);
    for name in ["open", "read", "close", "look"] {
        assert!(row(&run, name).ops > 0, "{name}");
    }
    run
}

/// The same, and that nothing is left.
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

/// Connections that are cut with calls under way, again and again: each is made anew.
#[test]
fn connections_that_are_cut() {
    needs_root!();
    let (bench, server) = (Bench::new(), ganesha());
    let relay = |port| {
        let to = SocketAddr::new(server.address(), port);
        Relay::start("127.0.0.1:0".parse().unwrap(), &[to], &Link::default()).unwrap()
    };
    let (nfs, mount) = (relay(NFS_PORT), relay(MOUNT_PORT));
    let url = format!(
        "nfs3://{}{}?mountport={}&timeo=1s&retrans=60",
        nfs.address(),
        Ganesha::EXPORT,
        mount.address().port()
    );
    let workload = bench.workload(READS);
    let command = bench.command(&workload, &["--target", &url, "--dir=/w", "--lanes=1"]);
    let run = started(command, "measuring");
    let many_answers_since = |before: Summary, connections| {
        wait_until("nobody came again", || {
            let now = nfs.summary();
            now.connections >= before.connections + connections
                && now.down.bytes > before.down.bytes + MANY_ANSWERS
        });
    };
    many_answers_since(nfs.summary(), 0);
    for _ in 0..3 {
        let before = nfs.summary();
        nfs.cut();
        many_answers_since(before, 1);
    }
    let run = read_to_the_end(&server, run);
    assert!(calls(&run, "reconnects") >= 3);
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
    let (bench, server) = (
        Bench::new(),
        Ganesha::with(&options).unwrap_or_else(|e| panic!("{e}")),
    );
    let url = server.nfs3_url("");
    for dir in [&[][..], &["--dir=/w"]] {
        let more = [&["--target", &url, "--time=1s"], dir].concat();
        let refused = bench.run("fileserver", &more).refusal();
        let named = refused.contains("cannot be written to") || refused.contains("EROFS");
        assert!(named, "{refused}");
    }
    assert_eq!(tree(&server.seen()), Default::default());
}

/// An export with little room: too large a fileset is refused, and one that grows until there is
/// no room ends by name.
#[test]
fn a_full_export() {
    needs_root!();
    let options = GaneshaOptions {
        size: Some(4 << 20),
        ..GaneshaOptions::default()
    };
    let (bench, server) = (
        Bench::new(),
        Ganesha::with(&options).unwrap_or_else(|e| panic!("{e}")),
    );
    let url = server.nfs3_url("");
    let more = ["--target", &url, "--set=nfiles=100", "--set=filesize=64k"];
    let refused = bench.run("webserver", &more).refusal();
    assert!(refused.contains("has 4 MiB free"), "{refused}");
    let workload = bench.workload(GROWS);
    let ended = bench.run(&workload, &["--target", &url]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let run = ended.parsed().unwrap();
    assert_eq!(
        row(&run, "grow:append")
            .error_codes
            .keys()
            .collect::<Vec<_>>(),
        ["ENOSPC"]
    );
    assert_eq!(tree(&server.seen()), Default::default());
}

/// A user's quota that is used up: what was written until then fits it, and the run ends by name.
#[test]
fn a_quota_that_is_used_up() {
    needs_root!();
    let (bench, mut server) = (
        Bench::new(),
        Knfsd::start().unwrap_or_else(|e| panic!("{e}")),
    );
    let kib = 2048;
    server
        .add_quota(1234, kib)
        .unwrap_or_else(|e| panic!("{e}"));
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
        assert!(
            procedures.any(|p| p.error_codes.contains_key(status)),
            "{run:?}"
        );
        let used = "du -sk --apparent-size /mnt/export/limited/w | cut -f1";
        let used: u64 = server.sh(used).unwrap().trim().parse().unwrap();
        assert!((kib / 2..=kib).contains(&used), "{used} KiB");
        let mut clean = bench.plimsoll(["clean", "/w", "--target", &url]);
        clean.arg("--force");
        Ended::of(clean).expect_code(0);
        assert_eq!(server.sh("ls /mnt/export/limited").unwrap(), "lost+found\n");
    }
}

#[test]
fn wrong_exports_and_ports_are_said() {
    needs_root!();
    let (bench, server) = (Bench::new(), ganesha());
    let at = server.address();
    let says = |url: &str| {
        bench
            .run("fileserver", &["--target", url, "--time=1s"])
            .refusal()
    };
    let export = says(&format!("nfs3://{at}/elsewhere"));
    assert!(
        export.contains("export `/elsewhere` of") && export.contains("MNT3ERR_"),
        "{export}"
    );
    let nobody = says(&format!("nfs3://{at}:2050/mnt/export"));
    assert!(
        nobody.contains(":2050: Connection refused: nothing listens there"),
        "{nobody}"
    );
    // The port mapper is no NFS server, and MOUNT is none either.
    for other in [111, 20048] {
        let wrong = says(&format!("nfs3://{at}:{other}/mnt/export?mountport=20048"));
        assert!(wrong.contains(&format!("{at}:{other}")), "{wrong}");
    }
    let mount = says(&format!("nfs3://{at}/mnt/export?mountport=2049"));
    assert!(mount.contains("MOUNT version 3 at"), "{mount}");
    assert_eq!(tree(&server.seen()), Default::default());
}
