//! Results are written before files are removed: interrupts at every stage, kills, and what is made of
//! what a killed run left.

mod killed;
mod silence;

use crate::common::served::Served;
use crate::common::{Bench, Ended, Started, series, started, wait_until};
use plimsoll_results::{Run, RunDir, SeriesState, Verdict};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Two signals of a kind are one to a program that has not yet seen the first.
fn wait_a_moment() {
    std::thread::sleep(Duration::from_millis(300));
}

/// Hidden directories in a directory of results, and results there.
fn found(root: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let entries = std::fs::read_dir(root).unwrap();
    let paths = entries.map(|e| e.unwrap().path()).filter(|p| p.is_dir());
    paths.partition(|p| {
        let name = p.file_name().unwrap().to_str().unwrap();
        name.starts_with(".plimsoll-")
    })
}

/// The only results there are.
#[track_caller]
fn only(bench: &Bench) -> (PathBuf, Run) {
    let (hidden, results) = found(&bench.path("results"));
    let counts = (hidden.len(), results.len());
    assert_eq!(counts, (0, 1), "{hidden:?} {results:?}");
    let run = RunDir::at(&results[0]).read().unwrap();
    (results[0].clone(), run)
}

fn report(bench: &Bench, more: &[&str], path: &Path) -> Ended {
    let args = [&["report"], more, &[path.to_str().unwrap()]].concat();
    Ended::of(bench.plimsoll(args))
}

/// Files are read for a second and then removed, which takes some more.
const SHORT: [&str; 5] = [
    "--set=nfiles=300",
    "--set=nthreads=2",
    "--interval=100ms",
    "--dir=/w",
    "--target",
];

/// Server option that delays the reply to every NFS call by 4 ms, in the measured window and during the removal of
/// files.
const SLOW: [&str; 1] = ["--reply-delay=4ms"];

fn reading(bench: &Bench, served: &Served, time: &str, more: &[&str], line: &str) -> Started {
    let args = [&SHORT[..], &[&served.url, "--time", time], more].concat();
    started(bench.command("webserver", &args), line)
}

#[track_caller]
fn says(ended: &Ended, texts: &[&str]) {
    for text in texts {
        assert!(
            ended.stderr.contains(text),
            "no {text:?} in {}",
            ended.stderr
        );
    }
}

/// A finished measurement is on the disk while its files are removed, whatever becomes of the process.
#[test]
fn a_kill_at_any_instant_after_the_window_leaves_results() {
    for wait_ms in [0, 50, 400] {
        let bench = Bench::new();
        let served = Served::with(&bench, &SLOW);
        let mut going = reading(&bench, &served, "1s", &[], "removing the files");
        std::thread::sleep(Duration::from_millis(wait_ms));
        going.child.kill().unwrap();
        going.end();
        let (path, run) = only(&bench);
        assert_eq!(run.validity.verdict, Verdict::Valid, "{wait_ms}");
        let told = report(&bench, &[], &path).expect_code(0);
        assert!(told.stdout.contains("webserver: valid"), "{}", told.stdout);
        let names: Vec<_> = std::fs::read_dir(&path).unwrap().collect();
        assert_eq!(names.len(), 3, "{names:?}");
        // The files are still there, and go.
        let args = ["clean", "--target", &served.url, "/w"];
        Ended::of(bench.plimsoll(args)).expect_code(0);
    }
}

/// While files are removed: once lets that come to its end, twice leaves them, three times ends.
#[test]
fn interrupts_while_files_are_removed() {
    for interrupts in [1, 2, 3] {
        let bench = Bench::new();
        let served = Served::with(&bench, &SLOW);
        let going = reading(&bench, &served, "1s", &[], "removing the files");
        let begun = Instant::now();
        for _ in 0..interrupts {
            going.interrupt();
            wait_a_moment();
        }
        let ended = going.end();
        let said = "the results are written, and the files are being removed";
        says(&ended, &[said]);
        assert!(!ended.stderr.contains("writing what there is"));
        let (path, run) = only(&bench);
        assert_eq!(run.validity.verdict, Verdict::Valid);
        let notes: Vec<_> = run.notes.iter().map(|n| n.text.as_str()).collect();
        let clean = format!("`plimsoll clean --target '{}' /w`", served.url);
        let is_noted = notes.iter().any(|n| n.contains(&clean));
        match interrupts {
            1 => assert!(ended.code == Some(0) && !is_noted, "{ended:?} {notes:?}"),
            2 => {
                assert!(ended.code == Some(0) && is_noted, "{ended:?} {notes:?}");
                says(
                    &ended,
                    &["the rest of the files is left where it is", &clean],
                );
                let took = begun.elapsed();
                assert!(took < Duration::from_secs(10), "{took:?}");
            }
            _ if ended.code == Some(130) => {
                let shown = format!("the results are in {}", path.display());
                says(&ended, &["ended; ", &shown, &clean]);
            }
            // Any other exit code means that the removal of the files ended before the third interrupt.
            _ => assert!(is_noted, "{ended:?} {notes:?}"),
        }
        let cleaned = Ended::of(bench.plimsoll(["clean", "--target", &served.url, "/w"]));
        cleaned.expect_code(if interrupts == 1 { 2 } else { 0 });
    }
}

/// Also in the middle of a directory of many files.
#[test]
fn the_removal_of_a_large_directory_is_skipped() {
    let bench = Bench::new();
    let served = Served::with(&bench, &["--reply-delay=5ms"]);
    let workload = bench.workload(
        "define fileset name=s,path=files,entries=3000,dirwidth=1000000,size=0,prealloc\n\
         define process name=p { thread name=t,memsize=1m {\n\
           flowop statfile name=stat1,filesetname=s\n} }\nrun 1\n",
    );
    let args = ["--dir=/w", "--target", &served.url];
    let going = started(bench.command(&workload, &args), "removing the files");
    let begun = Instant::now();
    for _ in 0..2 {
        wait_a_moment();
        going.interrupt();
    }
    let ended = going.end().expect_code(0);
    // Only an abandoned removal ends within 10 s, because the removal of all files would take 15 s.
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    says(&ended, &["the rest of the files is left where it is"]);
    assert_eq!(only(&bench).1.validity.verdict, Verdict::Valid);
}

/// Starts a run of an hour and interrupts the run `interrupts` times after the run has printed `line`. Returns the
/// results of the run, which are recovered if the third interrupt came before the results were written.
fn interrupted(interrupts: u32, more: &[&str], line: &str) -> Run {
    let bench = Bench::new();
    let served = Served::with(&bench, &SLOW);
    let going = reading(&bench, &served, "1h", more, line);
    std::thread::sleep(Duration::from_millis(600));
    for _ in 0..interrupts {
        going.interrupt();
        std::thread::sleep(Duration::from_millis(150));
    }
    let ended = going.end().expect_code(130);
    says(&ended, &["interrupted: the run ends"]);
    let (hidden, results) = found(&bench.path("results"));
    if let ([left], []) = (&hidden[..], &results[..]) {
        says(&ended, &["plimsoll report --recover"]);
        report(&bench, &["--recover"], left).expect_code(0);
    }
    let (_, run) = only(&bench);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    // After one interrupt the run removes its files, so `clean` finds nothing; after two or three interrupts files are
    // left.
    let cleaned = Ended::of(bench.plimsoll(["clean", "--target", &served.url, "/w"]));
    cleaned.expect_code(if interrupts == 1 { 2 } else { 0 });
    run
}

#[test]
fn interrupts_in_the_window() {
    for interrupts in [1, 2, 3] {
        let run = interrupted(interrupts, &[], "measuring");
        let has_measured = run.summary.ops > 0 && run.window_s > 0.2;
        assert!(has_measured, "{:?}", run.summary);
    }
}

#[test]
fn interrupts_while_files_are_made() {
    for interrupts in [1, 2, 3] {
        let run = interrupted(interrupts, &["--set=nfiles=20000"], "making");
        assert_eq!((run.window_number, run.summary.ops), (0, 0));
    }
}

/// Starts a run, kills the run in its measured window, and returns the hidden directory of the killed run.
fn killed(bench: &Bench) -> PathBuf {
    let small = ["--set=nfiles=50", "--set=nthreads=2"];
    let args = [&["--time=1h", "--interval=50ms"], &small[..]].concat();
    let mut going = started(bench.command_in_work("varmail", &args), "measuring");
    let root = bench.path("results");
    let rows = |dir: &Path| std::fs::read_to_string(dir.join("intervals.csv")).unwrap_or_default();
    wait_until("some intervals", || {
        let (hidden, _) = found(&root);
        hidden
            .first()
            .is_some_and(|dir| rows(dir).lines().count() > 100)
    });
    going.child.kill().unwrap();
    going.end();
    let (hidden, results) = found(&root);
    assert_eq!((hidden.len(), results.len()), (1, 0));
    hidden[0].clone()
}

#[test]
fn a_killed_run_is_finished_and_not_deleted() {
    let bench = Bench::on_tmpfs();
    let left = killed(&bench);
    // A kill may leave an incomplete last line in `intervals.csv` and in `histograms.hlog`.
    let append = |name: &str, text: &str| {
        let path = left.join(name);
        let all = std::fs::read_to_string(&path).unwrap() + text;
        std::fs::write(path, all).unwrap();
    };
    append("intervals.csv", "1,999999,5,0.05,fsyncfile2,fsync,7,");
    append("histograms.hlog", "Tag=fsyncfile2/fsync,1.0");
    // The next run leaves the hidden directory of the killed run unchanged.
    let next = bench.run_in_work("varmail", &["--time=100ms", "--set=nfiles=50"]);
    next.expect_code(0);
    let (hidden, results) = found(&bench.path("results"));
    assert_eq!((hidden.len(), results.len()), (1, 1));
    let hint = report(&bench, &[], &left).refusal();
    assert!(hint.contains("--recover recovers its results"), "{hint}");
    let told = report(&bench, &["--recover", "--format=json"], &left).expect_code(0);
    let run = told.parsed().unwrap();
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    let is_noted = run.notes.iter().any(|n| n.text.contains("was killed"));
    assert!(is_noted, "{:?}", run.notes);
    let has_measured = run.summary.ops > 0 && run.summary.p99_ms > 0.0;
    assert!(has_measured, "{:?}", run.summary);
    let (hidden, results) = found(&bench.path("results"));
    assert_eq!((hidden.len(), results.len()), (0, 2));
    let dir = results.iter().map(|p| RunDir::at(p));
    let dir = dir.into_iter().find(|d| d.read().unwrap() == run).unwrap();
    // The operations of `fsyncfile2` in the intervals and in the histograms sum to the count in `run.json`.
    let rows = dir.read_intervals().unwrap();
    let rows = rows.iter().filter(|r| r.operation == "fsyncfile2");
    let ops: u64 = rows.map(|r| r.ops).sum();
    assert_eq!(ops, crate::common::row(&run, "fsyncfile2").ops);
    let logged = crate::common::logged(&dir);
    let logged = logged.iter().filter(|h| h.tag.starts_with("fsyncfile2/"));
    let logged: u64 = logged.map(|h| h.histogram.count()).sum();
    assert!(logged == ops, "{logged} {ops}");
    let html = report(&bench, &["--format=html"], dir.path()).expect_code(0);
    assert!(html.stdout.contains("interrupted"));
    report(&bench, &["--percentiles=90,99.9"], dir.path()).expect_code(0);
    // There is nothing left to recover.
    let none = report(&bench, &["--recover"], &bench.path("results")).refusal();
    let expected = "contains no remains of a killed run";
    assert!(none.contains(expected), "{none}");
}

#[test]
fn prune_takes_what_a_killed_run_left_as_any_other() {
    let bench = Bench::on_tmpfs();
    let left = killed(&bench);
    let root = bench.path("results");
    let prune = |more: &[&str]| {
        let args = ["results", "prune", "--results", root.to_str().unwrap()];
        Ended::of(bench.plimsoll([&args[..], more].concat())).expect_code(0)
    };
    let kept = prune(&["--older-than=1h", "--yes"]);
    assert_eq!(kept.stdout, "nothing to delete\n");
    let listed = prune(&["--older-than=0m", "--dry-run"]);
    let is_listed = listed.stdout.contains(".plimsoll-") && left.exists();
    assert!(is_listed, "{}", listed.stdout);
    let gone = prune(&["--older-than=0m", "--yes"]);
    assert!(gone.stdout.contains("deleted 1 result"), "{}", gone.stdout);
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);
}

/// The series of a pattern are recovered stage by stage.
#[test]
fn a_pattern_that_was_killed() {
    let bench = Bench::on_tmpfs();
    let mut command = bench.plimsoll(["md", "-P=2000", "-D=2", "-I=2000", "-R=1000"]);
    command.args(["--results=results", "--dir=md", "--format=json"]);
    let mut child = command
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let rows = |dir: &Path| std::fs::read_to_string(dir.join("intervals.csv")).unwrap_or_default();
    let root = bench.path("results");
    wait_until("a third stage", || {
        let hidden = if root.exists() {
            found(&root).0
        } else {
            vec![]
        };
        let mut texts = hidden.iter().map(|dir| rows(dir));
        texts.any(|text| text.lines().any(|l| l.starts_with("3,")))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    report(&bench, &["--recover"], &root).expect_code(0);
    let (path, run) = only(&bench);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert!(run.stages.len() >= 2, "{}", run.stages.len());
    assert_eq!(run.stages[0].name, "precreate");
    assert!(run.stages[0].window.summary.ops > 0);
    report(&bench, &["--format=html"], &path).expect_code(0);
    report(&bench, &["--format=csv"], &path).expect_code(0);
}

/// Users that look at their files.
const USERS: &str = "[metric]\nname = \"users\"\n[run]\nwarmup = \"0s\"\ntime = \"300ms\"\n\
    [[component]]\nname = \"user\"\nprocesses = 2\nrate = 50\nmix = { stat = 100 }\n\
    files = { count = 400, size = \"4k\" }\n";

/// The files of a curve or a search are removed when all its results are written, and may be left.
#[test]
fn curves_and_searches() {
    for (command, all_signals) in [
        ("curve users.toml --load=1,2 --stop-after-invalid=0", 0..4),
        ("find users.toml --max-load=1 --confirm-runs=1", 2..3),
    ] {
        for signals in all_signals {
            let bench = Bench::on_tmpfs();
            let served = Served::with(&bench, &["--reply-delay=3ms"]);
            std::fs::write(bench.path("users.toml"), USERS).unwrap();
            let place = ["--dir=/w", "--results=results", "--format=json", "--target"];
            let args = command.split(' ').chain(place).chain([&*served.url]);
            let mut going = started(bench.plimsoll(args), "removing the files");
            match signals {
                0 => going.child.kill().unwrap(),
                n => (0..n).for_each(|_| {
                    going.interrupt();
                    std::thread::sleep(Duration::from_millis(100));
                }),
            }
            let ended = going.end();
            let (hidden, results) = found(&bench.path("results"));
            assert_eq!((hidden.len(), results.len()), (0, 1), "{ended:?}");
            let told = report(&bench, &["--format=json"], &results[0]).expect_code(0);
            let series = series::parsed(&told);
            assert!(!series.runs.is_empty());
            assert_ne!(series.state, SeriesState::Unfinished);
            if signals > 0 {
                let said = "interrupted: the results are written, and the files are being";
                says(&ended, &[said]);
            }
            if signals == 2 && ended.code != Some(130) {
                let mut unremoved = series.unremoved.iter();
                let is_told = unremoved.any(|text| text.contains("plimsoll clean"));
                assert!(is_told, "{:?} {ended:?}", series.unremoved);
            }
        }
    }
}
