//! `plimsoll study`: versions of NFS on a real server, side by side.

use crate::common::{Bench, Ended, started};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_results::{ProfileDir, ProfileResults, Run, Verdict};
use plimsoll_testkit::{Ganesha, needs_root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Round trip that is added, in milliseconds.
const TRIP_MS: f64 = 30.0;

/// The only results there are, and the runs by what they were made on.
fn results(root: &Path) -> (ProfileResults, BTreeMap<String, Run>) {
    let mut entries = std::fs::read_dir(root).unwrap();
    let path = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    let dir = ProfileDir::at(&path);
    let results = dir.read().unwrap();
    let runs = results.cases.iter().map(|case| {
        let mut runs = dir.runs(case, None).unwrap();
        assert_eq!(runs.len(), 1);
        (case.filesystem.clone(), runs.remove(0))
    });
    let runs = runs.collect();
    (results, runs)
}

fn opens(run: &Run) -> (u64, f64) {
    let opens = run
        .operations
        .iter()
        .filter(|o| o.kind.to_string() == "open");
    let opens: Vec<_> = opens.filter(|o| o.ops > 0).collect();
    let ops: u64 = opens.iter().map(|o| o.ops).sum();
    let least = opens.iter().map(|o| o.latency.min_ms);
    (ops, least.fold(f64::INFINITY, f64::min))
}

/// Every way is taken at both distances; what a round trip and a serial open owner must cost is
/// seen, whatever the machine.
#[test]
fn opens_by_all_versions_near_and_far() {
    needs_root!();
    let bench = Bench::new();
    let server = Ganesha::start().unwrap_or_else(|e| panic!("{e}"));
    let (nfs3, nfs4) = (server.nfs3_url(""), server.nfs4_url(""));
    let mut command = bench.plimsoll([
        "study",
        "nfs4-opens",
        "--only=webserver",
        "--added-rtt=0ms,30ms",
    ]);
    command
        .args(["--nfs3", &nfs3, "--nfs4", &nfs4, "--results=results"])
        .args(["--set=nfiles=8", "--set=nthreads=6", "--set=filesize=1k"])
        .args(["--time=600ms", "--set=meanappendsize=1k"]);
    let ended = Ended::of(command).expect_code(0);
    let (results, runs) = results(&bench.path("results"));
    assert_eq!(results.cases.len(), 12);
    assert!(
        results
            .cases
            .iter()
            .all(|c| c.verdict == Some(Verdict::Valid))
    );
    for (system, run) in &runs {
        let (ops, least_ms) = opens(run);
        assert!(ops > 0, "{system}");
        let far = system.ends_with("round trip 30ms");
        assert_eq!(far, run.target.url.contains("added_rtt=30ms"), "{system}");
        assert_eq!(far, least_ms >= TRIP_MS, "{system}: {least_ms} ms");
        let is_4 = system.starts_with("v4");
        let lookups = run.procedures.iter().find(|p| p.name == "ACCESS");
        assert_eq!(is_4, lookups.is_none_or(|p| p.ops == 0), "{system}");
    }
    // One open of an owner is under way at a time: as many as there are round trips.
    let serial = &runs["v4.0 one owner, round trip 30ms"];
    let (ops, _) = opens(serial);
    let most = serial.window_s * 1e3 / TRIP_MS + 1.0;
    assert!(ops as f64 <= most, "{ops} opens, {most} round trips");
    // The report has a table of each figure at each distance, and is printed again from the results.
    let printed = &ended.stdout;
    for trip in ["0ms", "30ms"] {
        let head = format!("\nwebserver, round trip {trip}\n");
        assert_eq!(printed.matches(&head).count(), 1, "{printed}");
    }
    for figure in ["\nops/s ", "\nmean latency ", "\nCPU µs/op "] {
        assert_eq!(printed.matches(figure).count(), 2, "{figure}: {printed}");
    }
    assert!(
        printed.contains("v4.1 delegations, round trip 30ms: delegations"),
        "{printed}"
    );
    let dir = std::fs::read_dir(bench.path("results")).unwrap().next();
    let dir = dir.unwrap().unwrap().path();
    let report = |format: &str| {
        let mut report = bench.plimsoll(["report", format]);
        report.arg(&dir);
        Ended::of(report).expect_code(0).stdout
    };
    assert!(report("--format=text").contains("\nwebserver, round trip 30ms\n"));
    // As a table of runs, each has a name of its own.
    let csv = report("--format=csv");
    let names: BTreeSet<&str> = csv
        .lines()
        .skip(1)
        .map(|l| &l[..l.find("webserver").unwrap()])
        .collect();
    assert_eq!(names.len(), 12, "{names:?}");
}

#[test]
fn what_cannot_be_studied_is_refused() {
    let bench = Bench::on_tmpfs();
    let refusal = |args: &[&str]| {
        let args = ["study", "nfs4-opens"].iter().chain(args);
        Ended::of(bench.plimsoll(args)).refusal()
    };
    assert!(refusal(&[]).contains("--nfs3"));
    let wrong = refusal(&["--nfs4", "nfs3://h/x"]);
    assert!(wrong.contains("begins with nfs4://"), "{wrong}");
    let other = refusal(&["--nfs3", "nfs3://h/x", "--target", "null"]);
    assert!(other.contains("its own targets"), "{other}");
    let far = refusal(&[
        "--nfs3",
        "nfs3://127.0.0.1:1/x?mountport=1",
        "--added-rtt=11s",
    ]);
    assert!(far.contains("expected 0ms to 10s"), "{far}");
    let only = refusal(&[
        "--nfs3",
        "nfs3://127.0.0.1:1/x?mountport=1",
        "--only=webservr",
    ]);
    assert!(only.contains("did you mean `webserver`?"), "{only}");
    let minor = refusal(&["--nfs4", "nfs4://h/x?minorversion=0"]);
    assert!(minor.contains("`minorversion` cannot be given"), "{minor}");
    let trip = refusal(&["--nfs3", "nfs3://h/x?uid=1&added_rtt=5ms"]);
    assert!(trip.contains("round-trip times with --added-rtt"), "{trip}");
    let version = refusal(&["--nfs4", "nfs4://h/x", "--versions=3,4.1"]);
    assert!(version.contains("--versions 3 needs --nfs3"), "{version}");
    assert!(!bench.path("plimsoll-results").exists());
}

/// A server that goes away in the middle: what was measured is shown as a part, and the rest can be
/// made when it is back.
#[test]
fn a_server_that_goes_away() {
    let bench = Bench::on_tmpfs();
    let tree = Arc::new(Mutex::new(Tree::new(64 << 20)));
    let start = |at: &str| {
        Server::start(at.parse().unwrap(), tree.clone(), ServerOptions::default()).unwrap()
    };
    let server = start("127.0.0.1:0");
    let at = server.address();
    let url = format!("nfs3://{at}/?mountport={}&timeo=200ms&retrans=0", at.port());
    let mut command = bench.plimsoll([
        "study",
        "nfs4-opens",
        "--added-rtt=0ms,1ms",
        "--results=results",
    ]);
    command.args(["--nfs3", &url, "--set=nfiles=80", "--set=nthreads=2"]);
    command.args(["--set=filesize=1k", "--time=300ms"]);
    // In the third run, after both of the file server.
    let study = started(command, "making logfiles");
    server.stop();
    let ended = study.end().expect_code(1);
    let refused = "error: target `nfs3`: MOUNT version 3 at ";
    assert!(ended.stderr.contains(refused), "{}", ended.stderr);
    assert!(ended.stdout.contains("not complete"), "{}", ended.stdout);
    let dir = std::fs::read_dir(bench.path("results")).unwrap().next();
    let dir = dir.unwrap().unwrap().path();
    let resume = format!(
        "profile --resume results/{}",
        dir.file_name().unwrap().display()
    );
    assert!(ended.stdout.contains(&resume), "{}", ended.stdout);
    let _server = start(&at.to_string());
    let mut command = bench.plimsoll(["profile", "--resume"]);
    command.arg(&dir);
    let whole = Ended::of(command).expect_code(0).stdout;
    assert!(whole.contains("complete, 4 of 4 runs"), "{whole}");
    assert_eq!(results(&bench.path("results")).0.missing(), 0);
}

/// Versions that a server does not speak can be left out.
#[test]
fn some_versions() {
    let bench = Bench::on_tmpfs();
    let runs = |versions: &str| {
        let mut command = bench.plimsoll(["study", "nfs4-opens", "--dry-run", "--added-rtt=0ms"]);
        command.args(["--format=json", "--only=webserver", "--versions", versions]);
        command.args([
            "--nfs3=nfs3://127.0.0.1:1/x?mountport=1",
            "--nfs4=nfs4://127.0.0.1:1/",
        ]);
        // Nothing listens there, which is said after the list.
        let listed = Ended::of(command).expect_code(2).stdout;
        let listed: ProfileResults = serde_json::from_str(&listed).unwrap();
        let targets = listed.cases.iter().map(|c| c.target.clone());
        targets.collect::<Vec<_>>()
    };
    assert_eq!(runs("3"), ["nfs3://127.0.0.1:1/x?mountport=1"]);
    assert_eq!(
        runs("4.1"),
        [
            "nfs4://127.0.0.1:1/?minorversion=1&open_owner=worker",
            "nfs4://127.0.0.1:1/?minorversion=1&open_owner=worker&delegations=on"
        ]
    );
    assert_eq!(runs("3,4.0").len(), 4);
}
