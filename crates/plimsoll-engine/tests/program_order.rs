//! The order in which a worker executes its program, and the operations that belong to the measured window.

mod common;

use common::{plan, row, run_virtually, try_run};
use plimsoll_engine::Outcome;
use plimsoll_plan::{OpsLimit, Plan};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// A program of composites within composites; `file` operations only, so that each counts.
const NESTED: &str = "\
define fileset name=s,path=/tmp,entries=9,dirwidth=20,prealloc
define flowop name=inner,$n=1 {
  flowop statfile name=a,filesetname=s,iters=$n
  flowop listdir name=b,filesetname=s
}
define flowop name=outer {
  flowop inner name=i1,iters=2
  flowop openfile name=c,filesetname=s,fd=1
  flowop inner name=i2,$n=3
  flowop closefile name=d,fd=1
}
define process name=p { thread name=t,memsize=1m {
  flowop outer name=o,iters=2
  flowop statfile name=e,filesetname=s,iters=2
} }
run 100
";

/// Operations of one round of [`NESTED`], in order.
fn round() -> String {
    let outer = "ababc".to_owned() + "aaab" + "d";
    format!("{outer}{outer}ee")
}

fn ops(plan: &Plan, outcome: &Outcome) -> BTreeMap<String, u64> {
    let totals = &outcome.windows.last().unwrap().totals.rows;
    let rows = plan.operations.iter().zip(totals);
    let mut sum = BTreeMap::new();
    for (operation, row) in rows.filter(|(_, r)| r.ops > 0) {
        *sum.entry(operation.name.clone()).or_insert(0) += row.ops;
    }
    sum
}

#[test]
fn a_program_is_done_in_order_again_and_again() {
    let expected = round().repeat(2);
    let dir = Path::new("/nowhere");
    // The operations that were executed after n operations, for every n, show the order.
    for n in 1..=expected.len() {
        let plan = plan(NESTED, dir, |o| {
            o.options.ops = Some(OpsLimit::Total(n as u64));
        });
        let outcome = run_virtually(&plan, "1ms");
        let mut wanted = BTreeMap::new();
        for letter in expected[..n].chars() {
            *wanted.entry(letter.to_string()).or_insert(0) += 1;
        }
        assert_eq!(
            ops(&plan, &outcome),
            wanted,
            "after {n}: {}",
            &expected[..n]
        );
    }
}

/// One worker whose operations take 10 ms.
const STEADY: &str = "\
define fileset name=s,path=/tmp,entries=9,dirwidth=20,prealloc
define process name=p { thread name=t,memsize=1m {
  flowop statfile name=look,filesetname=s
} }
run 1
";

#[test]
fn an_operation_belongs_to_the_window_it_ends_in() {
    // An operation that begins in the warm-up ends in the window, and the last operation ends after the window.
    for (warmup, first, in_flight) in [(1005, 1010, 1), (1000, 1000, 1), (1, 10, 1)] {
        let plan = plan(STEADY, Path::new("/nowhere"), |o| {
            o.warmup = Some(plimsoll_plan::Warmup::Fixed(Duration::from_millis(warmup)));
        });
        let outcome = run_virtually(&plan, "10ms");
        let totals = &outcome.windows[0].totals;
        assert_eq!(totals.end - totals.start, 1_000_000_000);
        let end = warmup + 1000;
        // Operations end at 10 ms, 20 ms and so on.
        let wanted = (first..end).step_by(10).count() as u64;
        let look = row(&plan, &outcome, "look");
        assert_eq!(look.ops, wanted, "warm-up of {warmup} ms");
        assert_eq!(totals.in_flight(), in_flight, "warm-up of {warmup} ms");
        let service = &look.service;
        assert_eq!((service.min(), service.max()), (10_000_000, 10_000_000));
    }
}

#[test]
fn every_run_statement_is_a_window() {
    let dir = tempfile::tempdir().unwrap();
    let text = STEADY.replace("run 1\n", "run 1\nsleep 1\nrun 2\n");
    let plan = plan(&text, &dir.path().join("w"), |_| ());
    let (outcome, heard) = try_run(&plan, "null:?latency=10ms").unwrap();
    let windows: Vec<_> = outcome.windows.iter().map(|w| &w.totals).collect();
    assert_eq!(windows.len(), 2);
    for (window, seconds) in windows.iter().zip([1.0, 2.0]) {
        let length = (window.end - window.start) as f64 / 1e9;
        assert!((length - seconds).abs() < 0.3, "{length} of {seconds}");
        let ops: u64 = window.rows.iter().map(|r| r.ops).sum();
        assert!(ops > 0 && ops as f64 <= length * 100.0 + 1.0, "{ops}");
    }
    assert!(windows[1].start >= windows[0].end);
    assert!(heard.intervals >= 3, "{}", heard.intervals);
}

#[test]
fn an_open_loop_charges_the_queue_to_the_response() {
    let text = STEADY
        .replace(
            "flowop statfile",
            "flowop eventlimit name=pace\n  flowop statfile",
        )
        .replace("run 1", "eventgen rate=200\nrun 4");
    let plan = plan(&text, Path::new("/nowhere"), |_| ());
    let outcome = run_virtually(&plan, "10ms");
    let look = row(&plan, &outcome, "look");
    assert!((398..=400).contains(&look.ops), "{}", look.ops);
    let (service, response) = (&look.service, &look.response);
    assert_eq!((service.min(), service.max()), (10_000_000, 10_000_000));
    assert_eq!(response.count(), look.ops);
    // Operation n is due at 5n ms and ends at 10n ms, give or take the first event.
    let exact = |n: u64| n as f64 * 5e6;
    let p99 = response.quantile(0.99) as f64;
    assert!((p99 - exact(look.ops) * 0.99).abs() < 12e6, "{p99}");
    let mean = response.mean();
    assert!((mean - exact(look.ops) / 2.0).abs() < 12e6, "{mean}");
    let max = response.max() as f64;
    assert!((max - exact(look.ops)).abs() < 12e6, "{max}");
}

/// Two threads, only one of which has a limiter, share the row of a flowop by the flowop's name.
#[test]
fn every_operation_of_a_row_that_is_paced_in_part_has_a_latency() {
    let text = "\
define fileset name=s,path=/tmp,entries=9,dirwidth=20,prealloc
define process name=p {
  thread name=due,memsize=1m {
    flowop eventlimit name=pace
    flowop statfile name=look,filesetname=s
  }
  thread name=free,memsize=1m {
    flowop statfile name=look,filesetname=s
  }
}
eventgen rate=200
run 4
";
    let plan = plan(text, Path::new("/nowhere"), |_| ());
    let outcome = run_virtually(&plan, "10ms");
    let look = row(&plan, &outcome, "look");
    assert!((798..=800).contains(&look.ops), "{}", look.ops);
    assert!((399..=400).contains(&look.paced), "{}", look.paced);
    assert_eq!(look.latency().count(), look.ops);
    // Half of the operations wait for a queue that grows to 2 s, and the other operations take 10 ms.
    let mean = look.latency().mean() / 1e6;
    assert!((mean - (1000.0 + 10.0) / 2.0).abs() < 15.0, "{mean}");
    assert_eq!(look.latency().min(), 10_000_000);
}

#[test]
fn an_unpaced_operation_has_no_response_time() {
    let plan = plan(STEADY, Path::new("/nowhere"), |_| ());
    let outcome = run_virtually(&plan, "10ms");
    assert_eq!(row(&plan, &outcome, "look").response.count(), 0);
}
