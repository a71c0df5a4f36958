//! Sums beyond 64 bits and latencies beyond an hour, in virtual time: results are readable and figures are exact.

use crate::common::python::printed;
use crate::common::{Bench, Ended, row};
use plimsoll_results::Run;
use std::path::PathBuf;

/// Bytes of each read: 2^62.
const SIZE: u128 = 1 << 62;

/// Runs a workload in virtual time, and returns its figures and the directory of its results.
fn run(bench: &Bench, text: &str, more: &[&str]) -> (Run, PathBuf) {
    let workload = bench.workload(text);
    let run = bench
        .run(&workload, &[&["--clock=virtual"], more].concat())
        .result(0);
    let dir = bench.results()[0].path().to_owned();
    (run, dir)
}

/// The sums of bytes of an interval, of the window and of the fileset all exceed 2^64.
#[test]
fn bytes_beyond_64_bits_are_counted_and_results_can_be_read() {
    let bench = Bench::on_tmpfs();
    let text = "define fileset name=f,path=files,entries=10,dirwidth=20,size=4194304t,prealloc
        define process name=p { thread name=t,memsize=1m {
          flowop read name=rd,filesetname=f,iosize=4194304t,random } }
        run 3";
    let (run, dir) = run(&bench, text, &["--target=null:?latency=100ms"]);
    // The row of the same name opens the files.
    let mut rows = run.operations.iter();
    let read = rows.find(|row| row.name == "rd" && row.bytes > 0).unwrap();
    assert!(read.ops >= 20, "{read:?}");
    assert_eq!(read.bytes, u128::from(read.ops) * SIZE);
    assert_eq!(run.summary.bytes, read.bytes);
    let rate = read.bytes as f64 / run.window_s;
    assert!((run.summary.bytes_per_s / rate - 1.0).abs() < 1e-9);

    let stored: Run =
        serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
    assert_eq!(stored, run);
    let intervals = bench.results()[0].read_intervals().unwrap();
    let reads = intervals.iter().filter(|r| r.operation == "rd");
    assert_eq!(reads.map(|r| r.bytes).sum::<u128>(), read.bytes);
    for format in ["text", "json", "csv", "html", "parquet"] {
        let mut report = bench.plimsoll(["report", "--format", format, "--output"]);
        report
            .arg(bench.path(&format!("report.{format}")))
            .arg(&dir);
        Ended::of(report).expect_code(0);
    }
    let csv = std::fs::read_to_string(bench.path("report.csv")).unwrap();
    let cell = format!(",{},", read.bytes);
    assert!(csv.contains(&cell), "{cell}: {csv}");
    let mut compare = bench.plimsoll(["compare", "--fail-if=MiB/s < 0%"]);
    compare.args([&dir, &dir]);
    let said = printed(compare);
    assert!(said.contains("+0.0 %"), "{said}");
}

/// Reading a whole file takes nine calls of 50 minutes each. All latencies of a row are equal, so the operation in flight
/// at the end makes no percentile a lower bound.
#[test]
fn latencies_beyond_an_hour_are_exact() {
    let bench = Bench::on_tmpfs();
    let text = "define fileset name=f,path=files,entries=10,dirwidth=20,size=8k,prealloc
        define process name=p { thread name=t,memsize=1m {
          flowop openfile name=open,filesetname=f,fd=1
          flowop readwholefile name=whole,filesetname=f,fd=1,iosize=1k
          flowop closefile name=close,fd=1 } }
        run 3600000";
    let more = ["--target=null:?latency=50min", "--interval=10h"];
    let (run, dir) = run(&bench, text, &more);
    assert_eq!(run.summary.in_flight, 1);
    for (name, ms) in [("open", 3e6), ("whole", 27e6), ("close", 3e6)] {
        let o = row(&run, name);
        assert!(o.ops >= 100, "{o:?}");
        let figures = &o.latency;
        let all = [
            figures.mean_ms,
            figures.p50_ms,
            figures.p99_ms,
            figures.max_ms,
        ];
        assert_eq!(all, [ms; 4], "{name}");
        assert!(!figures.max_at_least, "{name}: {figures:?}");
        let bounds = o.percentiles.iter().filter(|p| p.at_least);
        assert_eq!(bounds.count(), 0, "{name}");
    }
    let mut report = bench.plimsoll(["report"]);
    report.arg(&dir);
    let said = printed(report);
    assert!(!said.contains('≥') && said.contains("27 000"), "{said}");
}
