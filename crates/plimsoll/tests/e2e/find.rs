//! The search for a load line through the command line.

use crate::common::load_tests::{self, FILES_PER_USER, USERS};
use crate::common::{Bench, Ended, MARKER, schema, started, tree};
use plimsoll_points::{Agreement, Purpose, SearchEnd as End};
use plimsoll_results::{Document, FindDir, LoadSearch, SearchState, Verdict};
use std::ffi::OsStr;
use std::process::Command;

/// Eight servers of 4 ms carry 2000 operations a second: 20 users of 100 each, and as many more as
/// the criteria let go short.
const EIGHT_SERVERS: &str = "--target=null:?latency=4ms&servers=8";

fn find(bench: &Bench, more: &[&str]) -> Command {
    load_tests::command(bench, "find", more)
}

/// The same in virtual time, 10 s a run.
fn virtual_find(bench: &Bench, target: &str, more: &[&str]) -> Ended {
    let mut command = find(bench, &["--time=10s", "--warmup=1s", "--clock=virtual"]);
    command.arg(target).args(more);
    Ended::of(command)
}

/// A search of short runs on files of [`Bench::work`].
fn quick_find(bench: &Bench, more: &[&str]) -> Command {
    let quick = ["--time=200ms", "--warmup=0s", "--interval=100ms"];
    load_tests::command_in_work(bench, "find", &quick, more)
}

#[track_caller]
fn parsed(ended: &Ended) -> LoadSearch {
    load_tests::parsed(ended)
}

#[track_caller]
fn directory(bench: &Bench) -> FindDir {
    FindDir::at(&load_tests::only_results(bench))
}

fn entries(dir: &FindDir) -> Vec<String> {
    load_tests::entries(dir.path())
}

fn loads(search: &LoadSearch) -> Vec<u64> {
    search.runs.iter().map(|r| r.point.load).collect()
}

fn support(load: u64, held: u32, runs: u32) -> Option<Agreement> {
    Some(Agreement {
        load,
        passed: held,
        runs,
    })
}

/// Whether so many users are carried by a system that does so many operations in 10 s, by the
/// criterion that 95 % be done; each of two processes a user may have one under way.
fn carried(users: u64, done: u64) -> bool {
    let due = users * 1000;
    (done.min(due) + 2 * users) as f64 >= 0.95 * due as f64
}

#[test]
fn the_load_line_of_a_known_system_is_found() {
    let bench = Bench::on_tmpfs();
    let ended = virtual_find(&bench, EIGHT_SERVERS, &["--max-load=50", "--resolution=1"]);
    let search = parsed(&ended.expect_code(0));
    // 20 000 operations in 10 s are 95 % of those of 21 users, and of no more.
    assert!(carried(21, 20_000) && !carried(22, 20_000));
    assert_eq!(search.selection.load_line.termination, End::Found);
    assert_eq!(search.selection.load_line.sustained, support(21, 3, 3));
    assert_eq!(search.selection.load_line.not_sustained, support(22, 0, 3));
    for run in &search.runs {
        let load = run.point.load;
        assert_eq!(run.passed, carried(load, 20_000), "load {load}");
        assert_eq!(run.passed, run.point.verdict == Verdict::Valid);
        let asked = 100.0 * load as f64;
        assert_eq!(run.point.offered_ops_per_s, Some(asked));
        let able = asked.min(2000.0);
        assert!(
            (run.point.achieved_ops_per_s - able).abs() <= 0.2 * load as f64,
            "{run:?}"
        );
        assert_eq!(run.margin.is_some_and(|m| m >= 0.0), run.passed, "{run:?}");
    }
    // Doubled from an eighth of the greatest; the others lie between.
    assert_eq!(loads(&search)[..4], [6, 12, 24, 18]);
    assert_eq!(search.runs[0].purpose, Purpose::Doubling);
    assert_eq!(search.runs[3].purpose, Purpose::Bisection);
    assert!(search.comparable && search.selection.failure.is_none());
}

#[test]
fn what_is_written_is_what_is_printed_and_every_run_is_there() {
    let bench = Bench::on_tmpfs();
    let more = [
        "--max-load=24",
        "--start-load=20",
        "--resolution=4",
        "--scale=0.5",
    ];
    let ended = virtual_find(&bench, EIGHT_SERVERS, &more).expect_code(0);
    let search = parsed(&ended);
    let dir = directory(&bench);
    assert_eq!(dir.read().unwrap(), search);
    assert!(!search.comparable && search.scale == 0.5);
    // Half of the rate: all 24 users are carried.
    assert_eq!(
        search.selection.load_line.termination,
        End::MaxLoadSustained
    );
    assert_eq!(search.selection.load_line.sustained, support(24, 3, 3));
    assert_eq!(loads(&search), [20, 24, 24, 24]);
    let names = [
        "find.json",
        "run-01-load-20",
        "run-02-load-24",
        "run-03-load-24",
    ];
    let expected = names.into_iter().chain(["run-04-load-24"]);
    assert_eq!(entries(&dir), expected.collect::<Vec<_>>());
    for run in &search.runs {
        let of_run = dir.run(run).read().unwrap();
        assert_eq!(of_run.plan.metric.map(|m| m.load), Some(run.point.load));
        assert_eq!(of_run.summary.ops_per_s, run.point.achieved_ops_per_s);
    }
    let printed = serde_json::from_str(&ended.stdout).unwrap();
    let schema = serde_json::from_str(&plimsoll_results::schema::<LoadSearch>()).unwrap();
    assert_eq!(schema::faults(&schema, &printed), [""; 0]);
}

#[test]
fn where_no_load_is_sustained_the_exit_code_says_it() {
    let bench = Bench::on_tmpfs();
    let more = ["--max-load=32", "--latency-limit=5ms"];
    let ended = virtual_find(&bench, "--target=null:?latency=10ms", &more);
    let search = parsed(&ended.expect_code(3));
    assert_eq!(search.selection.load_line.termination, End::NoneSustained);
    assert_eq!(
        (
            search.selection.load_line.sustained,
            search.selection.load_line.not_sustained
        ),
        (None, support(1, 0, 3))
    );
    assert_eq!(loads(&search), [4, 2, 1, 1, 1]);
    for run in &search.runs {
        assert_eq!(run.point.reasons[0].code, "latency");
        // The mean is 10 ms, the limit 5: as far beyond it as it is long.
        assert!(
            run.margin.is_some_and(|m| (m + 1.0).abs() < 0.01),
            "{run:?}"
        );
    }
}

#[test]
fn the_number_of_runs_and_confirmations_is_as_requested() {
    let bench = Bench::on_tmpfs();
    let more = ["--max-load=50", "--start-load=4", "--max-runs=3"];
    let search = parsed(&virtual_find(&bench, EIGHT_SERVERS, &more).expect_code(0));
    assert_eq!(search.selection.load_line.termination, End::MaxRunsReached);
    assert_eq!(loads(&search), [4, 8, 16]);
    assert_eq!(search.selection.load_line.sustained, support(16, 1, 1));
    let more = ["--max-load=10", "--start-load=10", "--confirm-runs=1"];
    let search = parsed(&virtual_find(&bench, EIGHT_SERVERS, &more).expect_code(0));
    assert_eq!(search.selection.load_line.sustained, support(10, 1, 1));
}

#[test]
fn a_report_reads_like_this() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("users.toml"), USERS).unwrap();
    let mut command = bench.plimsoll(["find", "users.toml", "--max-load=25", "--start-load=18"]);
    command
        .args([
            "--time=10s",
            "--warmup=1s",
            "--clock=virtual",
            EIGHT_SERVERS,
        ])
        .args(["--latency-limit=400ms", "--resolution=1"])
        .env("COLUMNS", "100");
    let ended = Ended::of(command).expect_code(0);
    let stamp = regex::Regex::new(r"users-find-\d{8}-\d{6}").unwrap();
    insta::assert_snapshot!(stamp.replace_all(&ended.stdout, "users-find-DATE-TIME"));
}

/// A search of one run. Whether the load is carried depends on the machine, and is not asked.
#[track_caller]
fn one_run(command: Command) -> LoadSearch {
    let ended = Ended::of(command);
    let search = parsed(&ended);
    let expected = match search.runs[0].passed {
        true => 0,
        false => 3,
    };
    ended.expect_code(expected);
    search
}

#[test]
fn files_are_made_as_far_as_they_are_needed_and_go_at_the_end() {
    let bench = Bench::on_tmpfs();
    let more = ["--max-load=4", "--start-load=2", "--max-runs=1"];
    let mut command = quick_find(&bench, &more);
    command.arg("--keep");
    assert_eq!(loads(&one_run(command)), [2]);
    // As many files as the load that was tried works on, not as the greatest of all.
    assert_eq!(tree(&bench.work()).0.len(), 2 * FILES_PER_USER as usize);
    let bytes: u64 = tree(&bench.work()).0.values().sum();
    assert_eq!(bytes, 2 * FILES_PER_USER * 4096);
    // The same files again, and now they go.
    assert_eq!(loads(&one_run(quick_find(&bench, &more))), [2]);
    assert_eq!(bench.left_but(&["results", "users.toml"]), [""; 0]);
}

#[test]
fn processes_search_together() {
    let bench = Bench::on_tmpfs();
    let more = [
        "--max-load=2",
        "--start-load=2",
        "--max-runs=1",
        "--processes=2",
    ];
    let search = one_run(quick_find(&bench, &more));
    assert_eq!((search.ranks, loads(&search)), (2, vec![2]));
    let run = directory(&bench).run(&search.runs[0]).read().unwrap();
    assert_eq!((run.ranks, run.workers), (2, 4));
    assert_eq!(bench.left_but(&["results", "users.toml"]), [""; 0]);
}

#[test]
fn an_interrupted_search_says_what_it_knows() {
    let bench = Bench::on_tmpfs();
    let mut command = find(&bench, &["--time=1h", "--warmup=0s", "--max-load=8"]);
    command.arg("--dir").arg(bench.work());
    let going = started(command, "measuring");
    going.interrupt();
    let search = parsed(&going.end().expect_code(130));
    assert_eq!(search.selection.load_line.termination, End::Interrupted);
    assert_eq!(
        (search.selection.load_line.sustained, search.runs.len()),
        (None, 0)
    );
    let dir = directory(&bench);
    assert_eq!(dir.read().unwrap(), search);
    assert_eq!(entries(&dir), ["find.json", "run-01-load-1-interrupted"]);
    // Its files wait for it to go on.
    assert_eq!(tree(&bench.work()).0.len(), FILES_PER_USER as usize);
    let mut command = bench.plimsoll(["find", "--resume"]);
    command.arg(dir.path());
    let again = started(command, "measuring");
    again.interrupt();
    let ended = again.end().expect_code(130);
    let hint = format!(
        "resume with plimsoll find --resume {}",
        dir.path().display()
    );
    assert!(ended.stdout.contains(&hint), "{}", ended.stdout);
    assert_eq!(entries(&dir).len(), 3);
    let work = bench.work();
    Ended::of(bench.plimsoll([OsStr::new("clean"), work.as_os_str()])).expect_code(0);
    assert_eq!(bench.left_but(&["results", "users.toml"]), [""; 0]);
}

#[test]
fn a_search_goes_on_from_another_directory() {
    let bench = Bench::on_tmpfs();
    let args = [
        "--dir=work",
        "--time=1h",
        "--warmup=0s",
        "--max-load=2",
        "--start-load=2",
    ];
    let going = started(find(&bench, &args), "measuring");
    going.interrupt();
    going.end().expect_code(130);
    assert_eq!(tree(&bench.work()).0.len(), 2 * FILES_PER_USER as usize);
    let elsewhere = bench.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut command = bench.plimsoll(["find", "--resume"]);
    command
        .arg(directory(&bench).path())
        .current_dir(&elsewhere);
    let again = started(command, "measuring");
    again.interrupt();
    again.end().expect_code(130);
    // The files that are there are worked on, and no others are made.
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    let dir = directory(&bench);
    let runs = entries(&dir);
    assert_eq!(runs.len(), 3, "{runs:?}");
    for run in runs.iter().filter(|name| name.starts_with("run-")) {
        let run = plimsoll_results::RunDir::at(&dir.path().join(run));
        assert_eq!(run.read().unwrap().plan.work_dir.dir, bench.work());
    }
}

/// Calls `plimsoll find --resume` on the only results there are.
fn resume(bench: &Bench, more: &[&str]) -> Ended {
    let mut command = bench.plimsoll(["find", "--format=json", "--resume"]);
    command.arg(directory(bench).path()).args(more);
    Ended::of(command)
}

#[test]
fn a_search_that_was_killed_goes_on_to_the_same_end() {
    let bench = Bench::on_tmpfs();
    let more = ["--max-load=25", "--start-load=18", "--resolution=1"];
    let whole = parsed(&virtual_find(&bench, EIGHT_SERVERS, &more).expect_code(0));
    assert!(whole.runs.len() > 4);
    let dir = directory(&bench);
    let refused = resume(&bench, &[]).refusal();
    assert!(refused.contains("is complete"), "{refused}");
    // As it was after the third run.
    let mut killed = whole.clone();
    killed.runs.truncate(3);
    killed.selection.load_line = killed.selection.search.load_line(&killed.trials());
    assert_eq!(killed.selection.load_line.termination, End::Unfinished);
    std::fs::write(dir.path().join("find.json"), killed.to_json()).unwrap();
    let resumed = parsed(&resume(&bench, &[]).expect_code(0));
    assert_eq!(resumed.selection.load_line, whole.selection.load_line);
    assert_eq!(resumed.runs[..3], whole.runs[..3]);
    assert_eq!(loads(&resumed), loads(&whole));
    for (again, before) in resumed.runs.iter().zip(&whole.runs) {
        // In virtual time a run of a seed is always the same.
        assert_eq!(
            again.point.achieved_ops_per_s,
            before.point.achieved_ops_per_s
        );
        assert_eq!(again.point.mean_ms, before.point.mean_ms);
        assert_eq!(
            (again.purpose, again.margin),
            (before.purpose, before.margin)
        );
    }
    assert_eq!(dir.read().unwrap(), resumed);
}

#[test]
fn a_search_that_is_refused_when_it_is_resumed_stays_with_its_runs() {
    let bench = Bench::on_tmpfs();
    let mut command = find(&bench, &["--max-load=8", "--time=1h", "--warmup=0s"]);
    command.arg("--dir").arg(bench.work());
    let going = started(command, "measuring");
    going.interrupt();
    going.end().expect_code(130);
    let dir = directory(&bench);
    let names = ["find.json", "run-01-load-1-interrupted"];
    assert_eq!(entries(&dir), names);
    // Another user has taken the directory over.
    std::fs::remove_file(bench.work().join(MARKER)).unwrap();
    std::fs::write(bench.work().join("thesis.tex"), "mine\n").unwrap();
    let search = parsed(&resume(&bench, &[]).expect_code(1));
    assert_eq!(search.selection.failure.as_ref().unwrap().code, "refused");
    assert_eq!(dir.read().unwrap(), search);
    assert_eq!(entries(&dir), names);
}

#[test]
fn what_cannot_go_on_is_refused() {
    let bench = Bench::on_tmpfs();
    let more = ["--max-load=10", "--start-load=10", "--confirm-runs=1"];
    let search = parsed(&virtual_find(&bench, EIGHT_SERVERS, &more).expect_code(0));
    let mut cut = search.clone();
    cut.runs = vec![];
    cut.selection = SearchState::new(search.selection.search);
    let json = cut.to_json();
    let dir = directory(&bench).path().to_owned();
    std::fs::write(dir.join("find.json"), &json).unwrap();
    // Runs that were written and not listed yet would be listed.
    for run in search.runs.iter().map(|run| dir.join(&run.point.run)) {
        std::fs::remove_dir_all(run).unwrap();
    }
    let two = resume(&bench, &["--processes=2"]).refusal();
    assert!(
        two.contains("started with 1 process and there are 2 now"),
        "{two}"
    );
    let seed = resume(&bench, &["--seed=3"]).refusal();
    assert!(
        seed.contains("cannot be used with") && seed.contains("--seed"),
        "{seed}"
    );
    let held = plimsoll_results::FindWriter::resume(directory(&bench).path()).unwrap();
    let busy = resume(&bench, &[]).refusal();
    assert!(
        busy.contains("is being written by another process"),
        "{busy}"
    );
    drop(held);
    let nowhere = Ended::of(bench.plimsoll(["find", "--resume", "nowhere"])).refusal();
    assert!(
        nowhere.contains("cannot read nowhere/find.json"),
        "{nowhere}"
    );
    assert_eq!(directory(&bench).read().unwrap(), cut);
    resume(&bench, &[]).expect_code(0);
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
    assert!(refused(&["--max-load=0"]).contains("at least 1"));
    assert!(refused(&["--max-load=-5"]).contains("at least 1"));
    let above = refused(&["--max-load=5", "--start-load=6"]);
    assert!(
        above.contains("--start-load 6 is above --max-load 5"),
        "{above}"
    );
    assert!(refused(&["--max-load=5", "--confirm-runs=0"]).contains("number of runs, at least 1"));
    assert!(refused(&["--max-load=5", "--max-runs=x"]).contains("number of runs, at least 1"));
    assert!(refused(&["--max-load=5", "--resolution=0"]).contains("at least 1"));
    assert!(refused(&["--max-load=5", "--target=nulll"]).contains("did you mean `null`?"));
    assert!(refused(&["--max-load=1000000000000"]).contains("processes"));
    std::fs::create_dir(bench.path("foreign")).unwrap();
    std::fs::write(bench.path("foreign/precious"), "mine").unwrap();
    let foreign = format!("--dir={}", bench.path("foreign").display());
    let text = Ended::of(find(&bench, &["--max-load=1", &foreign])).refusal();
    assert!(text.contains("foreign"), "{text}");
    assert_eq!(
        std::fs::read(bench.path("foreign/precious")).unwrap(),
        b"mine"
    );
    std::fs::remove_dir_all(bench.path("foreign")).unwrap();
    let within = format!("--dir={}", bench.root().join("results").display());
    assert!(refused(&["--max-load=1", &within]).contains("inside"));
    let wml = Ended::of(bench.plimsoll(["find", "varmail", "--max-load=1"])).refusal();
    assert!(wml.contains("`varmail` has no business metric"), "{wml}");
}
