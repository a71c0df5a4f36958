//! Runs that are killed before their end.

use super::{found, only, report};
use crate::common::{Bench, row, started, wait_until};
use plimsoll_results::{Run, Verdict};
use std::time::Duration;

/// Definitions of a workload with two workers that stat files; each test appends the script.
const WORKER: &str = "\
define fileset name=s,path=files,entries=5,dirwidth=20,prealloc
define process name=p { thread name=t,memsize=1m,instances=2 {
  flowop statfile name=look,filesetname=s } }
";

/// Recovered results do not contain a window that `stats clear` dropped before the kill.
#[test]
fn after_a_window_was_dropped() {
    let bench = Bench::on_tmpfs();
    let script =
        "create processes\nsleep 1\nstats clear\nsleep 3600\nstats snap\nshutdown processes\n";
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

/// Part of the note in results that were written before the run ended.
const EARLY: &str = "before the run ended";

fn says(run: &Run, text: &str) -> bool {
    run.notes.iter().any(|n| n.text.contains(text))
}

/// The run is killed while a command runs after the measured window: a command of the user, or a command of the
/// workload.
#[test]
fn while_a_command_runs_after_the_window() {
    let after = "--event=after load sh echo $PLIMSOLL_RESULTS > place; mv place running; sleep 30";
    let own = "system \"touch running; sleep 30\"\n";
    for (script, more, ranks) in [("", &[after][..], 1), (own, &[], 2)] {
        let bench = Bench::on_tmpfs();
        let workload = bench.workload(&format!("{WORKER}run 1\n{script}"));
        let ranks = format!("--processes={ranks}");
        let args = [&["--allow-commands", "--per-rank", &ranks], more].concat();
        let mut going = started(bench.command_in_work(&workload, &args), "measuring");
        wait_until("the command has begun", || bench.path("running").exists());
        going.child.kill().unwrap();
        going.end();
        let (path, run) = only(&bench);
        assert_eq!(run.validity.verdict, Verdict::Valid);
        assert!(row(&run, "look").ops > 0 && says(&run, EARLY));
        let told = report(&bench, &[], &path).expect_code(0);
        assert!(told.stdout.contains(EARLY), "{}", told.stdout);
        if script.is_empty() {
            let place = std::fs::read_to_string(bench.path("running")).unwrap();
            assert_eq!(place.trim(), path.to_str().unwrap());
            assert!(path.join("commands.log").exists());
            let done: Vec<_> = run.commands.iter().map(|c| c.phase.as_str()).collect();
            assert_eq!(done, [""; 0]);
        }
    }
}

/// Results that were written early are completed.
#[test]
fn not_and_its_last_command_is_in_the_results() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(&format!("{WORKER}run 1\n"));
    let ranks = ["--processes=2", "--per-rank"];
    let more = ["--allow-commands", "--event=after sh exit 3"];
    let run = bench.run_in_work(&workload, &[ranks, more].concat());
    let run = run.result(0);
    let (path, written) = only(&bench);
    assert_eq!(written, run);
    let done: Vec<_> = run.commands.iter().map(|c| c.phase.as_str()).collect();
    assert_eq!(done, ["populate", "load"]);
    let failed = run.notes.iter().filter(|n| n.text.contains("`exit 3`"));
    assert_eq!((failed.count(), says(&run, EARLY)), (2, false));
    let each = std::fs::read_dir(path.join("ranks")).unwrap();
    assert_eq!(each.count(), 2);
}

/// Results recovered from a run of several processes state that the figures of the processes were not gathered.
#[test]
fn in_the_window_of_several_processes() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(&format!("{WORKER}run 3600\n"));
    let args = ["--processes=2", "--interval=50ms"];
    let mut going = started(bench.command_in_work(&workload, &args), "measuring");
    std::thread::sleep(Duration::from_millis(500));
    let root = bench.path("results");
    let none = report(&bench, &[], &root).refusal();
    assert!(!none.contains("--recover"), "{none}");
    going.child.kill().unwrap();
    going.end();
    let hint = report(&bench, &[], &root).refusal();
    let said = "holds no results, but the remains of 1 killed run: --recover recovers the results";
    assert!(hint.contains(said), "{hint}");
    let told = report(&bench, &["--recover"], &root).expect_code(0);
    let said = "the figures of its 2 processes were not gathered";
    assert!(told.stdout.contains(said), "{}", told.stdout);
    assert_eq!(only(&bench).1.window_number, 0);
}
