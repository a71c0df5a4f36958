//! A quick run of the whole suite: every benchmark runs, and its counts are plausible. Times are not asserted.

use plimsoll_testkit::needs_root;
use std::process::Command;

fn suite(arguments: &[&str]) -> (bool, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_plimsoll-benches"))
        .args(arguments)
        .output()
        .unwrap();
    let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
    (out.status.success(), text(out.stdout), text(out.stderr))
}

#[test]
fn every_benchmark_runs_and_writes_its_rows() {
    needs_root!();
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("performance.md");
    let (ok, table, said) = suite(&["--quick", "--output", page.to_str().unwrap()]);
    assert!(ok, "{said}");
    for row in [
        "statfile of 100 k files, null target",
        "4 KiB reads of one file, null target",
        "minimal loop: ",
        "fio, psync: ",
        "stat of 100 k files",
        "open and close",
        "create, write 4 KiB, close, delete",
        "time to plan",
        "files of random sizes: memory",
        "null target: memory of a run",
        "choosing one of 1 M files",
        "2 threads at once",
        "NFSv3 GETATTR, 64 workers on one connection, null server: calls per second of processor time",
        "one call at a time: ",
        "NFSv3 server in memory: memory per worker and its file",
        "workers on 2 lanes, null target of 10 ms latency: operations per second",
        "memory per worker",
        "time to simulate",
        "1000 workers wait for one file: processor time per operation",
        "relay of 5 ms, 256 in flight: round trip, median",
        "constant arrivals, 1 000 per second on 1 worker: completed/scheduled",
        "poisson arrivals, 50 000 per second on 64 workers: start delay, 99th percentile",
        "page on 10⁹ operations and 1 h of intervals: processor time",
        "page on 10⁹ operations and 1 h of intervals: size",
        "screen of a run (`--live`)",
        "recording an operation",
        "reading the clock",
        "parsing and lowering `fileserver`",
    ] {
        assert!(table.contains(row), "no row `{row}` in\n{table}");
    }
    // Some machines have no io_uring.
    if plimsoll_target::uring_unavailable().is_none() {
        for row in [
            "direct reads on a disk, depth 16, 1 lane: processor time per operation",
            "direct reads on a disk, 100 workers, 1 lane: operations per second",
            "reads of a cached file on tmpfs through io_uring, depth 16, 1 lane: operations per second",
        ] {
            assert!(table.contains(row), "no row `{row}` in\n{table}");
        }
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Processor") && page.contains("are meaningless"));
    // Criterion prints its measurements before the table.
    let table = &table[table.find("| what").unwrap()..];
    assert!(page.contains(table.trim()), "{page}");
}

#[test]
fn a_filter_chooses_and_one_that_fits_nothing_is_an_error() {
    let (ok, table, said) = suite(&["--quick", "choosing"]);
    assert!(ok, "{said}");
    assert!(table.contains("choosing") && !table.contains("fio"));
    let (ok, _, said) = suite(&["--quick", "nothing-of-the-kind"]);
    assert!(!ok && said.contains("open-close"), "{said}");
}

#[test]
fn too_little_space_is_said_at_once() {
    let (ok, _, said) = suite(&["--quick", "--dir", "/proc"]);
    assert!(
        !ok && said.contains("/proc") && said.contains("--dir"),
        "{said}"
    );
}
