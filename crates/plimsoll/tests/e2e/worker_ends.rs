//! When the first and the last worker come to the end of their work, and how far all are then.

use crate::common::Bench;
use plimsoll_results::{CompletedFigures, Run};

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

const VIRTUAL: [&str; 2] = ["--target=null:?latency=1ms", "--clock=virtual"];

fn run(text: &str, more: &[&str]) -> Run {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(text);
    bench.run(&workload, &[&VIRTUAL, more].concat()).result(0)
}

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
    let run = run(TWO, &["--ops=50/worker"]);
    same(run.first_done, 0.050, 51);
    same(run.last_done, 50.0 * 1.001, 100);
    assert_eq!(run.summary.ops, 100);
}

#[test]
fn nothing_is_said_where_the_run_ends_its_workers() {
    for more in [
        ["--time=2s", "--seed=1"],
        // The quick one comes to its end, the slow one does not.
        ["--time=2s", "--ops=50/worker"],
    ] {
        let run = run(TWO, &more);
        assert_eq!((run.first_done, run.last_done), (None, None), "{more:?}");
    }
    // Nor of one worker alone.
    let (quick, _) = TWO.split_once("  thread name=slow").unwrap();
    let run = run(&format!("{quick}}}\n"), &["--ops=50/worker"]);
    assert_eq!((run.workers, run.summary.ops), (1, 50));
    assert_eq!(run.first_done, None);
}

#[test]
fn workers_whose_files_are_used_up_come_to_their_ends() {
    // Of 30 files each worker deletes one each 1 ms or 1.5 s: the slow one gets the first and one
    // of those that are left when the quick one has the rest.
    let text = TWO
        .replace("entries=10", "entries=30")
        .replace("statfile", "deletefile");
    let run = run(&text, &[]);
    let (first, last) = (run.first_done.unwrap(), run.last_done.unwrap());
    assert_eq!((first.ops, last.ops), (30, 30));
    assert!((first.after_s - 0.029).abs() < 1e-6, "{first:?}");
    assert!((last.after_s - 1.001).abs() < 1e-6, "{last:?}");
}

#[test]
fn the_report_and_the_page_say_both_ends() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(TWO);
    bench.run(&workload, &[&VIRTUAL, &["--ops=50/worker"][..]].concat());
    let results = bench.results()[0].path().to_owned();
    let report = |format: &str| {
        let args = ["report", results.to_str().unwrap(), "--format", format];
        let output = bench.plimsoll(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = report("text").replace('\u{a0}', " ");
    let line = "finish times: first worker after 50.0 ms: 51 ops, 1 020 ops/s, 0 MiB/s;";
    assert!(text.contains(line), "{text}");
    assert!(
        text.contains("last worker after 50.0 s: 100 ops, 2.00 ops/s"),
        "{text}"
    );
    let page = report("html");
    assert!(
        page.contains("last worker after 50.0 s: 100 ops, 2.00 ops/s"),
        "{page}"
    );
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
    // The one that ends first has done its work, the other its share of it by time.
    let expected = 40.0 + 40.0 * first.after_s / last.after_s;
    assert!(
        (first.ops as f64 - expected).abs() <= 1.0,
        "{first:?}: {expected}"
    );
    let rate = first.ops as f64 / first.after_s;
    assert!((first.ops_per_s / rate - 1.0).abs() < 1e-5, "{first:?}");
}
