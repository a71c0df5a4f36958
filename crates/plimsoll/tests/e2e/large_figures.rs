//! Sums of bytes beyond 64 bits, in virtual time: every command and the Python module read the results, and the sums
//! are exact.

use crate::common::python::printed;
use crate::common::{Bench, Ended};

/// Bytes of each read: 2^62.
const SIZE: u128 = 1 << 62;

/// The sums of bytes of an interval, of the window and of the fileset all exceed 2^64.
#[test]
fn bytes_beyond_64_bits_are_counted_and_results_can_be_read() {
    let bench = Bench::on_tmpfs();
    let text = "define fileset name=f,path=files,entries=10,dirwidth=20,size=4194304t,prealloc
        define process name=p { thread name=t,memsize=1m {
          flowop read name=rd,filesetname=f,iosize=4194304t,random } }
        run 3";
    let args = ["--target=null:?latency=100ms&clock=virtual"];
    let run = bench.run(&bench.workload(text), &args).result(0);
    let dir = bench.results()[0].path().to_owned();
    // The row of the same name opens the files.
    let mut rows = run.operations.iter();
    let read = rows.find(|row| row.name == "rd" && row.bytes > 0).unwrap();
    assert!(read.ops >= 20, "{read:?}");
    assert_eq!(read.bytes, u128::from(read.ops) * SIZE);
    assert_eq!(run.summary.bytes, read.bytes);
    let rate = read.bytes as f64 / run.window_s;
    assert!((run.summary.bytes_per_s / rate - 1.0).abs() < 1e-9);

    let stored = bench.results()[0].read().unwrap();
    assert_eq!(stored, run);
    let intervals = bench.results()[0].read_intervals().unwrap();
    let reads = intervals.iter().filter(|r| r.operation == "rd");
    assert_eq!(reads.map(|r| r.bytes).sum::<u128>(), read.bytes);
    for format in [
        "text",
        "json",
        "csv",
        "html",
        "parquet",
        "openmetrics",
        "influx",
        "otlp",
    ] {
        let mut report = bench.plimsoll(["report", "--format", format]);
        report.arg(format!("--output=report.{format}")).arg(&dir);
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
