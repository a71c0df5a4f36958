//! `find`: the search for the load line, in virtual time on the target `null` and on real files.

use crate::common::series::{self, FILES_PER_USER, loads, only, parsed, run_of};
use crate::common::{Bench, Ended, schema, tree};
use plimsoll_results::{Agreement, LoadLine, Purpose, SearchEnd as End, Series, SeriesState};
use std::process::Command;

/// The target `null` with eight servers of 4 ms, which complete 2000 operations per second: 20 users of 100 operations
/// per second each. More users make the queue grow.
const EIGHT_SERVERS: &str = "--target=null:?latency=4ms&servers=8&clock=virtual";

fn find(bench: &Bench, more: &[&str]) -> Command {
    series::command(bench, "find", more)
}

/// Executes a search in virtual time on `target`, with a measured window of 10 s per run.
fn virtual_find(bench: &Bench, target: &str, more: &[&str]) -> Ended {
    let mut command = find(bench, &["--time=10s", "--warmup=1s"]);
    command.arg(target).args(more);
    Ended::of(command)
}

/// A search of short runs on files of [`Bench::work`].
fn quick_find(bench: &Bench, more: &[&str]) -> Command {
    let quick = ["--time=200ms", "--warmup=0s", "--interval=100ms"];
    series::command_in_work(bench, "find", &quick, more)
}

fn load_line(search: &Series) -> LoadLine {
    search.as_search().unwrap().figures.load_line
}

fn support(load: u64, held: u32, runs: u32) -> Option<Agreement> {
    Some(Agreement {
        load,
        passed: held,
        runs,
    })
}

/// Whether a system that completes `done` operations in 10 s sustains `users` users: 95 % of the scheduled operations
/// must complete, and each of the two processes of a user may have one operation in flight.
fn carried(users: u64, done: u64) -> bool {
    let due = users * 1000;
    (done.min(due) + 2 * users) as f64 >= 0.95 * due as f64
}

#[test]
fn the_load_line_of_a_known_system_is_found() {
    let bench = Bench::on_tmpfs();
    let ended = virtual_find(&bench, EIGHT_SERVERS, &["--max-load=50", "--resolution=1"]);
    let search = parsed(&ended.expect_code(0));
    // 20 000 operations in 10 s are at least 95 % of the scheduled operations of 21 users, but the queue of 21 users
    // grows.
    assert!(carried(21, 20_000) && !carried(22, 20_000));
    let line = load_line(&search);
    assert_eq!(line.termination, End::Found);
    assert_eq!(line.sustained, support(20, 3, 3));
    assert_eq!(line.not_sustained, support(21, 0, 3));
    for run in &search.runs {
        let load = run.load.unwrap();
        assert_eq!(run.is_valid(), load <= 20, "load {load}");
        let missed = |code| run.reasons.iter().any(|r| r.code == code);
        assert_eq!(missed("total_rate"), !carried(load, 20_000), "load {load}");
        assert_eq!(missed("queue_growth"), load > 20, "load {load}");
        let asked = 100.0 * load as f64;
        assert_eq!(run.offered_ops_per_s, Some(asked));
        let off = (run.achieved_ops_per_s - asked.min(2000.0)).abs();
        assert!(off <= 0.2 * load as f64, "{run:?}");
        let has_margin = run.margin.is_some_and(|m| m > 0.0);
        assert_eq!(has_margin, run.is_valid(), "{run:?}");
    }
    // A search doubles the load from an eighth of `--max-load`, and then bisects.
    assert_eq!(loads(&search)[..4], [6, 12, 24, 18]);
    assert_eq!(search.runs[0].purpose, Some(Purpose::Doubling));
    assert_eq!(search.runs[3].purpose, Some(Purpose::Bisection));
    assert!(search.is_comparable());
    assert_eq!(search.state, SeriesState::Complete);
    assert_eq!(search.stop_reason, None);
}

#[test]
fn what_is_written_is_what_is_printed_and_every_run_is_there() {
    let bench = Bench::on_tmpfs();
    let loads_to_try = ["--max-load=24", "--start-load=20", "--resolution=4"];
    let more = [&loads_to_try[..], &["--scale=0.5"]].concat();
    let ended = virtual_find(&bench, EIGHT_SERVERS, &more).expect_code(0);
    let search = parsed(&ended);
    let dir = only(&bench);
    assert_eq!(dir.read().unwrap(), search);
    assert!(!search.is_comparable() && search.scale() == 0.5);
    // With half of the rate per user, the system sustains all 24 users of `--max-load`.
    let line = load_line(&search);
    assert_eq!(line.termination, End::MaxLoadSustained);
    assert_eq!(line.sustained, support(24, 3, 3));
    assert_eq!(loads(&search), [20, 24, 24, 24]);
    let names = [
        "run-01-load-20",
        "run-02-load-24",
        "run-03-load-24",
        "run-04-load-24",
        "series.json",
    ];
    assert_eq!(series::entries(dir.path()), names);
    for run in &search.runs {
        let of_run = run_of(&dir, run);
        assert_eq!(of_run.plan.metric.map(|m| m.load), run.load);
        assert_eq!(of_run.summary.ops_per_s, run.achieved_ops_per_s);
    }
    let printed = serde_json::from_str(&ended.stdout).unwrap();
    let schema = serde_json::from_str(&plimsoll_results::schema::<Series>()).unwrap();
    assert_eq!(schema::faults(&schema, &printed), [""; 0]);
}

#[test]
fn where_no_load_is_sustained_the_exit_code_says_it() {
    let bench = Bench::on_tmpfs();
    let more = ["--max-load=32", "--latency-limit=5ms", "--confirm-runs=2"];
    let ended = virtual_find(&bench, "--target=null:?latency=10ms&clock=virtual", &more);
    let search = parsed(&ended.expect_code(3));
    let line = load_line(&search);
    assert_eq!(line.termination, End::NoneSustained);
    assert_eq!(line.sustained, None);
    assert_eq!(line.not_sustained, support(1, 0, 2));
    assert_eq!(loads(&search), [4, 2, 1, 1]);
    for run in &search.runs {
        assert_eq!(run.reasons[0].code, "latency");
        // A mean response time of 10 ms exceeds the limit of 5 ms by 100 %, which is a margin of -1.
        let margin = run.margin.expect("a latency has a margin");
        assert!((margin + 1.0).abs() < 0.01, "{run:?}");
    }
}

/// Executes a search that reaches `--max-runs` before the load line is known.
#[track_caller]
fn ended_early(command: Command) -> Series {
    let search = parsed(&Ended::of(command).expect_code(3));
    assert_eq!(load_line(&search).termination, End::MaxRunsReached);
    search
}

#[test]
fn files_are_made_as_far_as_they_are_needed_and_go_at_the_end() {
    let bench = Bench::on_tmpfs();
    let more = ["--max-load=4", "--start-load=2", "--max-runs=1"];
    let mut command = quick_find(&bench, &more);
    command.arg("--keep");
    assert_eq!(loads(&ended_early(command)), [2]);
    // The search creates the files of the highest load that was tried (2), not of `--max-load`.
    assert_eq!(tree(&bench.work()).0.len(), 2 * FILES_PER_USER as usize);
    let bytes: u64 = tree(&bench.work()).0.values().sum();
    assert_eq!(bytes, 2 * FILES_PER_USER * 4096);
    // A second search in the same work directory reuses the kept files, and removes them.
    assert_eq!(loads(&ended_early(quick_find(&bench, &more))), [2]);
    assert_eq!(bench.left_but(&["results", "users.toml"]), [""; 0]);
}

#[test]
fn what_cannot_be_searched_is_refused_and_leaves_nothing() {
    let bench = Bench::on_tmpfs();
    let refused = |args: &[&str]| {
        let text = Ended::of(find(&bench, args)).refusal();
        assert_eq!(bench.left_but(&["users.toml"]), [""; 0], "{args:?}");
        text
    };
    assert!(refused(&[]).contains("--max-load <LOAD>"));
    for row in [
        "--max-load=-5 => at least 1",
        "--max-load=5 --start-load=6 => --start-load 6 is above --max-load 5",
        "--max-load=5 --confirm-runs=0 => number of runs, at least 1",
        "--max-load=5 --max-runs=x => number of runs, at least 1",
        "--max-load=5 --resolution=0 => at least 1",
        "--max-load=1000000000000 => processes",
    ] {
        let (args, said) = row.split_once(" => ").unwrap();
        let refused = refused(&args.split(' ').collect::<Vec<_>>());
        assert!(refused.contains(said), "{row}: {refused}");
    }
    std::fs::create_dir(bench.path("foreign")).unwrap();
    std::fs::write(bench.path("foreign/precious"), "mine").unwrap();
    let foreign = format!("--dir={}", bench.path("foreign").display());
    let text = Ended::of(find(&bench, &["--max-load=1", &foreign])).refusal();
    assert!(text.contains("foreign"), "{text}");
    let precious = std::fs::read(bench.path("foreign/precious"));
    assert_eq!(precious.unwrap(), b"mine");
    std::fs::remove_dir_all(bench.path("foreign")).unwrap();
    let within = format!("--dir={}", bench.root().join("results").display());
    assert!(refused(&["--max-load=1", &within]).contains("inside"));
    let wml = Ended::of(bench.plimsoll(["find", "varmail", "--max-load=1"])).refusal();
    assert!(wml.contains("`varmail` has no business metric"), "{wml}");
}
