//! `plimsoll study`: versions of NFS on a real server, side by side.

use crate::common::{Bench, Ended};
use plimsoll_results::{ProfileDir, ProfileResults, Run, Verdict};
use plimsoll_testbed::Ganesha;
use std::collections::BTreeMap;
use std::path::Path;

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
        let mut runs = dir.runs(case).unwrap();
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
    let least = opens.iter().map(|o| o.service.min_ms);
    (ops, least.fold(f64::INFINITY, f64::min))
}

/// Every way is taken at both distances; what a round trip and a serial open owner must cost is
/// seen, whatever the machine.
#[test]
fn opens_by_all_versions_near_and_far() {
    let bench = Bench::new();
    let server = Ganesha::start().unwrap_or_else(|e| panic!("{e}"));
    let (nfs3, nfs4) = (server.nfs3_url(""), server.nfs4_url(""));
    let mut command = bench.plimsoll(["study", "nfs4-opens", "--only=webserver", "--rtt=0ms,30ms"]);
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
        assert_eq!(far, run.target.url.contains("rtt=30ms"), "{system}");
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
    let mut report = bench.plimsoll(["report"]);
    report.arg(dir.unwrap().unwrap().path());
    let again = Ended::of(report).expect_code(0);
    assert!(again.stdout.contains("\nwebserver, round trip 30ms\n"));
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
    assert!(other.contains("targets of its own"), "{other}");
    let far = refusal(&["--nfs3", "nfs3://127.0.0.1:1/x?mountport=1", "--rtt=11s"]);
    assert!(far.contains("expected 0ms to 10s"), "{far}");
    let only = refusal(&[
        "--nfs3",
        "nfs3://127.0.0.1:1/x?mountport=1",
        "--only=webservr",
    ]);
    assert!(only.contains("did you mean `webserver`?"), "{only}");
    assert!(!bench.path("plimsoll-results").exists());
}
