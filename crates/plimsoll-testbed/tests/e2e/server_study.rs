//! `study nfs4-opens` on a server of the user: comparison of NFS versions without a test bed.

use crate::common::{Beds, only_study};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_results::{Run, Series, SeriesDir, Verdict};
use plimsoll_testbed::study::{StudyDir, StudyResults, results_of};
use plimsoll_testkit::bench::{Bench, Ended, started};
use plimsoll_testkit::{Ganesha, needs_root};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Added round trip of the far access paths, in milliseconds.
const TRIP_MS: f64 = 30.0;

/// The profiles of a study, each with its runs by access path.
fn profiles(dir: &StudyDir, study: &StudyResults) -> Vec<(Series, BTreeMap<String, Run>)> {
    let results = study.steps.iter().filter_map(|step| results_of(dir, step));
    let read = |path: std::path::PathBuf| {
        let dir = SeriesDir::at(&path);
        let series = dir.read().unwrap();
        let runs = series.runs.iter().map(|run| {
            let configuration = series.configuration(run.configuration);
            let path = configuration.filesystem.clone().unwrap();
            (path, dir.run(run).unwrap().read().unwrap())
        });
        let runs = runs.collect();
        (series, runs)
    };
    results.map(read).collect()
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

/// Every access path is measured at both distances; latencies and counts of opens show the cost of a round trip and of
/// a serial open owner on any machine.
#[test]
fn opens_by_all_versions_near_and_far() {
    needs_root!();
    let beds = Beds::new();
    let server = Ganesha::start().unwrap_or_else(|e| panic!("{e}"));
    let (nfs3, nfs4) = (server.nfs3_url(""), server.nfs4_url(""));
    let words = ["testbed", "study", "nfs4-opens", "--only=webserver"];
    let mut command = beds.command(&words);
    command
        .args(["--nfs3", &nfs3, "--nfs4", &nfs4, "--added-rtt=0ms,30ms"])
        .args(["--set=nfiles=8", "--set=nthreads=6", "--set=filesize=1k"])
        .args([
            "--set=meanappendsize=1k",
            "--time=600ms",
            "--results=results",
        ]);
    let ended = Ended::of(command).expect_code(0);
    let dir = only_study(&beds.bench);
    let study = dir.read().unwrap();
    assert!(study.beds.is_empty() && study.steps.iter().all(|s| s.bed.is_none()));
    let profiles = profiles(&dir, &study);
    assert_eq!(profiles.len(), 2);
    for (far, (series, runs)) in [false, true].into_iter().zip(&profiles) {
        assert_eq!(series.configurations.len(), 6);
        assert_eq!(runs.len(), 6);
        for (path, run) in runs {
            assert_eq!(run.validity.verdict, Verdict::Valid, "{path}");
            let (ops, least_ms) = opens(run);
            assert!(ops > 0, "{path}");
            assert_eq!(far, run.target.url.contains("added_rtt=30ms"), "{path}");
            assert_eq!(far, least_ms >= TRIP_MS, "{path}: {least_ms} ms");
            let is_4 = path.starts_with("v4");
            let lookups = run.procedures.iter().find(|p| p.name == "ACCESS");
            assert_eq!(is_4, lookups.is_none_or(|p| p.ops == 0), "{path}");
        }
    }
    // An open owner executes one open at a time: at most one open for each round trip.
    let serial = &profiles[1].1["v4.0 one owner"];
    let (ops, _) = opens(serial);
    let most = serial.window_s * 1e3 / TRIP_MS + 1.0;
    assert!(ops as f64 <= most, "{ops} opens, {most} round trips");
    // The report has a table of each figure at each distance; `study report` prints the same report from the results.
    let printed = &ended.stdout;
    for trip in ["0ms", "30ms"] {
        let head = format!("\nwebserver, round trip {trip}\n");
        assert_eq!(printed.matches(&head).count(), 1, "{printed}");
    }
    for figure in ["\nops/s ", "\nmean latency ", "\nCPU µs/op "] {
        assert_eq!(printed.matches(figure).count(), 2, "{figure}: {printed}");
    }
    let counts = "webserver, v4.1 delegations: delegations";
    assert_eq!(printed.matches(counts).count(), 2, "{printed}");
    let mut report = beds.command(&["testbed", "study", "report"]);
    report.arg(dir.path().strip_prefix(beds.bench.path("")).unwrap());
    let again = Ended::of(report).expect_code(0).stdout;
    assert!(printed.ends_with(&again), "{again}");
}

/// A server stops during a study: the report shows the measured part, and `resume` does the rest after the restart.
#[test]
fn a_server_that_goes_away() {
    let bench = Bench::on_tmpfs();
    let tree = Arc::new(Mutex::new(Tree::new(64 << 20)));
    let start = |at: &str| {
        Server::start(at.parse().unwrap(), tree.clone(), ServerOptions::default()).unwrap()
    };
    let server = start("127.0.0.1:0");
    let at = server.address();
    let url = format!("nfs3://{at}/?mountport={}&timeo=3s&retrans=0", at.port());
    let words = [
        "testbed",
        "study",
        "nfs4-opens",
        "--added-rtt=0ms",
        "--results=results",
    ];
    let mut command = bench.plimsoll(words);
    command.args(["--nfs3", &url, "--set=nfiles=80", "--set=nthreads=2"]);
    command.args(["--set=filesize=1k", "--time=300ms"]);
    command.arg("--format=json");
    let study = started(command, "step 1 of 2");
    drop(server);
    let ended = study.end().expect_code(1);
    let refused = "failed: fileserver on v3: target `nfs3`: MOUNT version 3 at ";
    assert!(ended.stderr.contains(refused), "{}", ended.stderr);
    let dir = only_study(&bench);
    let study = dir.read().unwrap();
    assert_eq!((study.steps.len(), study.missing()), (2, 1));
    let _server = start(&at.to_string());
    let mut command = bench.plimsoll(["testbed", "study", "resume"]);
    command.arg(dir.path());
    let whole = Ended::of(command).expect_code(0).stdout;
    assert!(whole.contains("complete, 2 of 2 steps\n"), "{whole}");
    let profiles = profiles(&dir, &dir.read().unwrap());
    let lengths: Vec<usize> = profiles.iter().map(|(_, runs)| runs.len()).collect();
    assert_eq!(lengths, [1, 1]);
}
