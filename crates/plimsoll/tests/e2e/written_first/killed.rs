//! Runs that are killed before their end.

use super::{found, only, report};
use crate::common::{Bench, row, started, wait_until};
use plimsoll_results::Verdict;

/// A worker that looks at files; what follows says when it works.
const WORKER: &str = "\
define fileset name=s,path=files,entries=5,dirwidth=20,prealloc
define process name=p { thread name=t,memsize=1m { flowop statfile name=look,filesetname=s } }
";

/// What `stats clear` dropped does not come back.
#[test]
fn after_a_window_was_dropped() {
    let bench = Bench::on_tmpfs();
    let script = "create processes\nsleep 1\nstats clear\nsleep 3600\nstats snap\nshutdown processes\n";
    let workload = bench.workload(&format!("{WORKER}{script}"));
    let args = ["--interval=50ms"];
    let mut going = started(bench.command_in_work(&workload, &args), "measuring");
    let root = bench.path("results");
    let rows = || {
        let series = found(&root).0[0].join("intervals.csv");
        let text = std::fs::read_to_string(series).unwrap();
        let of = |window: &str| text.lines().filter(|l| l.starts_with(window)).count();
        (of("1,"), of("2,"))
    };
    wait_until("both windows have intervals", || {
        let (first, second) = rows();
        first > 0 && second > 5
    });
    going.child.kill().unwrap();
    going.end();
    report(&bench, &["--recover"], &root).expect_code(0);
    let (_, run) = only(&bench);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert_eq!((run.window_number, run.earlier_windows.len()), (2, 0));
    assert!(row(&run, "look").ops > 0);
}

/// Every window has a number of its own in the series, also after one that was dropped.
#[test]
fn numbers_of_windows_after_one_was_dropped() {
    let bench = Bench::on_tmpfs();
    let script = "create processes\nsleep 1\nstats clear\nsleep 1\nstats snap\nshutdown processes\nrun 1\n";
    let workload = bench.workload(&format!("{WORKER}{script}"));
    let run = bench.run_in_work(&workload, &[]).result(0);
    let earlier: Vec<_> = run.earlier_windows.iter().map(|w| w.number).collect();
    assert_eq!((earlier, run.window_number), (vec![2], 3));
    let intervals = bench.results()[0].read_intervals().unwrap();
    let of = |window| {
        let of = intervals.iter().filter(|r| r.window == window);
        of.filter(|r| r.operation == "look")
            .map(|r| r.ops)
            .sum::<u64>()
    };
    assert_eq!(of(3), row(&run, "look").ops);
}
