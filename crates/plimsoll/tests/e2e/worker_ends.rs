//! When the first and the last worker come to the end of their work, and how far all are then.

use crate::common::{Bench, Ended};
use plimsoll_results::CompletedFigures;

/// One worker looks at a file in 1 ms, again and again; another rests a second after each look.
const TWO: &str = "\
define fileset name=s,path=files,entries=10,dirwidth=8,size=4k,prealloc
define process name=p {
  thread name=quick,memsize=1k { flowop statfile name=look,filesetname=s }
  thread name=slow,memsize=1k {
    flowop statfile name=glance,filesetname=s
    flowop delay name=rest,value=1
  }
}
";

const VIRTUAL: [&str; 1] = ["--target=null:?latency=1ms&clock=virtual"];

#[track_caller]
fn same(done: Option<CompletedFigures>, after_s: f64, ops: u64) {
    let done = done.expect("the workers ended by themselves");
    assert!((done.after_s - after_s).abs() < 1e-6, "{done:?}");
    assert_eq!((done.ops, done.bytes), (ops, 0), "{done:?}");
    let rate = ops as f64 / after_s;
    assert!((done.ops_per_s / rate - 1.0).abs() < 1e-5, "{done:?}");
    assert_eq!(done.bytes_per_s, 0.0);
}

#[test]
fn the_first_and_the_last_worker_end_as_arithmetic_says() {
    // The quick one is done after 50 looks; the slow one has looked once by then. Its fiftieth look
    // follows 49 rests and begins the last one.
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(TWO);
    let ended = bench.run(&workload, &[&VIRTUAL, &["--ops=50/worker"][..]].concat());
    let run = ended.result(0);
    same(run.first_done, 0.050, 51);
    same(run.last_done, 50.0 * 1.001, 100);
    assert_eq!(run.summary.ops, 100);
    let mut report = bench.plimsoll(["report"]);
    report.arg(bench.results()[0].path());
    let text = Ended::of(report).expect_code(0).stdout;
    let text = text.replace('\u{a0}', " ");
    for line in [
        "finish times: first worker after 50.0 ms: 51 ops, 1 020 ops/s, 0 MiB/s;",
        "last worker after 50.0 s: 100 ops, 2.00 ops/s",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

/// Each rank has one worker, so that all come to their first and last end with all of their work.
#[test]
fn ranks_end_together_as_the_rates_of_each_say() {
    let bench = Bench::on_tmpfs();
    let text = TWO.replace("value=1", "value=5ms");
    let workload = bench.workload(&text);
    let more = ["--processes=2", "--ops=40/worker", "--per-rank"];
    let run = bench.run_in_work(&workload, &more).result(0);
    let (first, last) = (run.first_done.unwrap(), run.last_done.unwrap());
    assert_eq!((run.ranks, last.ops, run.summary.ops), (2, 80, 80));
    assert!(first.after_s <= last.after_s && last.after_s <= run.window_s);
    assert!(last.after_s > 39.0 * 0.005, "{last:?}");
    // When the first worker has completed its 40 operations, the other worker has completed a share in proportion to
    // the elapsed time.
    let expected = 40.0 + 40.0 * first.after_s / last.after_s;
    let off = (first.ops as f64 - expected).abs();
    assert!(off <= 1.0, "{first:?}: {expected}");
    let rate = first.ops as f64 / first.after_s;
    assert!((first.ops_per_s / rate - 1.0).abs() < 1e-5, "{first:?}");
}
