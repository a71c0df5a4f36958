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
    assert_eq!(
        (hidden.len(), results.len()),
        (0, 1),
        "{hidden:?} {results:?}"
    );
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

/// Every call takes its time, and so does the removal.
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
        says(
            &ended,
            &["the results are written, and the files are being removed"],
        );
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
            // It was over before the third.
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
        "define fileset name=s,path=files,entries=6000,dirwidth=1000000,size=0,prealloc\n\
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
    // All of them would take half a minute.
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    says(&ended, &["the rest of the files is left where it is"]);
    assert_eq!(only(&bench).1.validity.verdict, Verdict::Valid);
}

/// While a window is open.
#[test]
fn interrupts_in_the_window() {
    for interrupts in [1, 2, 3] {
        let bench = Bench::new();
        let served = Served::with(&bench, &SLOW);
        let going = reading(&bench, &served, "1h", &[], "measuring");
        std::thread::sleep(Duration::from_millis(600));
        for _ in 0..interrupts {
            going.interrupt();
            std::thread::sleep(Duration::from_millis(150));
        }
        let ended = going.end().expect_code(130);
        says(
            &ended,
            &["interrupted: the run ends with what it has measured"],
        );
        let (hidden, results) = found(&bench.path("results"));
        if let ([left], []) = (&hidden[..], &results[..]) {
            // The third came before the results were there.
            says(&ended, &["plimsoll report --recover"]);
            report(&bench, &["--recover"], left).expect_code(0);
        }
        let (_, run) = only(&bench);
        assert_eq!(run.validity.verdict, Verdict::Interrupted);
        assert!(
            run.summary.ops > 0 && run.window_s > 0.2,
            "{:?}",
            run.summary
        );
        let cleaned = Ended::of(bench.plimsoll(["clean", "--target", &served.url, "/w"]));
        match interrupts {
            1 => cleaned.expect_code(2),
            _ => cleaned.expect_code(0),
        };
    }
}

/// While files are made.
#[test]
fn interrupts_while_files_are_made() {
    for interrupts in [1, 2, 3] {
        let bench = Bench::new();
        let served = Served::with(&bench, &SLOW);
        let going = reading(&bench, &served, "1h", &["--set=nfiles=20000"], "making");
        std::thread::sleep(Duration::from_millis(500));
        for _ in 0..interrupts {
            going.interrupt();
            std::thread::sleep(Duration::from_millis(150));
        }
        let ended = going.end().expect_code(130);
        says(&ended, &["interrupted: the run ends"]);
        let (hidden, results) = found(&bench.path("results"));
        if let ([left], []) = (&hidden[..], &results[..]) {
            report(&bench, &["--recover"], left).expect_code(0);
        }
        let (_, run) = only(&bench);
        assert_eq!(run.validity.verdict, Verdict::Interrupted);
        assert_eq!((run.window_number, run.summary.ops), (0, 0));
        let cleaned = Ended::of(bench.plimsoll(["clean", "--target", &served.url, "/w"]));
        match interrupts {
            1 => cleaned.expect_code(2),
            _ => cleaned.expect_code(0),
        };
    }
}

/// A run that was killed while it measured, and how many intervals it had written.
fn killed(bench: &Bench) -> PathBuf {
    let args = [
        "--time=1h",
        "--interval=50ms",
        "--set=nfiles=50",
        "--set=nthreads=2",
    ];
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
    // What was being written when it was killed.
    let append = |name: &str, text: &str| {
        let path = left.join(name);
        let all = std::fs::read_to_string(&path).unwrap() + text;
        std::fs::write(path, all).unwrap();
    };
    append("intervals.csv", "1,999999,5,0.05,fsyncfile2,fsync,7,");
    append("histograms.hlog", "Tag=fsyncfile2/fsync,1.0");
    // The next run leaves it alone.
    let next = bench.run_in_work("varmail", &["--time=100ms", "--set=nfiles=50"]);
    next.expect_code(0);
    let (hidden, results) = found(&bench.path("results"));
    assert_eq!((hidden.len(), results.len()), (1, 1));
    let hint = report(&bench, &[], &left).refusal();
    assert!(hint.contains("--recover recovers its results"), "{hint}");
    let told = report(&bench, &["--recover", "--format=json"], &left).expect_code(0);
    let run = told.parsed().unwrap();
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert!(
        run.notes.iter().any(|n| n.text.contains("was killed")),
        "{:?}",
        run.notes
    );
    assert!(
        run.summary.ops > 0 && run.summary.p99_ms > 0.0,
        "{:?}",
        run.summary
    );
    let (hidden, results) = found(&bench.path("results"));
    assert_eq!((hidden.len(), results.len()), (0, 2));
    let dir = results.iter().map(|p| RunDir::at(p));
    let dir = dir.into_iter().find(|d| d.read().unwrap() == run).unwrap();
    // Both series say what the run says.
    let rows = dir.read_intervals().unwrap();
    let ops: u64 = rows
        .iter()
        .filter(|r| r.operation == "fsyncfile2")
        .map(|r| r.ops)
        .sum();
    assert_eq!(ops, crate::common::row(&run, "fsyncfile2").ops);
    let logged = dir.read_histograms().unwrap();
    let logged = logged.iter().filter(|h| h.tag.starts_with("fsyncfile2/"));
    let logged: u64 = logged.map(|h| h.histogram.len()).sum();
    assert!(logged == ops, "{logged} {ops}");
    let html = report(&bench, &["--format=html"], dir.path()).expect_code(0);
    assert!(html.stdout.contains("interrupted"));
    report(&bench, &["--percentiles=90,99.9"], dir.path()).expect_code(0);
    // There is nothing left to recover.
    let none = report(&bench, &["--recover"], &bench.path("results")).refusal();
    assert!(
        none.contains("contains no remains of a killed run"),
        "{none}"
    );
}

#[test]
fn a_run_that_goes_on_is_not_recovered() {
    let bench = Bench::on_tmpfs();
    let args = ["--time=1h", "--set=nfiles=50", "--set=nthreads=2"];
    let going = started(bench.command_in_work("varmail", &args), "measuring");
    let none = report(&bench, &["--recover"], &bench.path("results")).refusal();
    assert!(none.contains("or its run is still in progress"), "{none}");
    going.interrupt();
    going.end().result(130);
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
    assert!(
        listed.stdout.contains(".plimsoll-") && left.exists(),
        "{}",
        listed.stdout
    );
    report(&bench, &["--recover"], &left).expect_code(0);
    // Of another, no results were made.
    killed_again(&bench);
    let gone = prune(&["--older-than=0m", "--yes"]);
    assert!(gone.stdout.contains("deleted 2 results"), "{}", gone.stdout);
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);
}

/// Beside results, one more killed run.
fn killed_again(bench: &Bench) {
    let args = ["--time=1h", "--set=nfiles=50", "--set=nthreads=2"];
    let mut going = started(bench.command_in_work("varmail", &args), "measuring");
    going.child.kill().unwrap();
    going.end();
    assert_eq!(found(&bench.path("results")).0.len(), 1);
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
    wait_until("a third stage", || {
        let root = bench.path("results");
        let there = root.exists();
        let hidden = if there { found(&root).0 } else { vec![] };
        hidden
            .first()
            .is_some_and(|dir| rows(dir).lines().any(|l| l.starts_with("3,")))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let root = bench.path("results");
    report(&bench, &["--recover"], &root).expect_code(0);
    let (path, run) = only(&bench);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert!(
        run.stages.len() >= 2 && run.stages[0].name == "precreate",
        "{:?}",
        run.stages.len()
    );
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
    for command in [
        &[
            "curve",
            "users.toml",
            "--load=1,2",
            "--continue-past-peak",
            "--stop-after-invalid=0",
        ][..],
        &["find", "users.toml", "--max-load=1", "--confirm-runs=1"],
    ] {
        for signals in 0..4 {
            let (bench, served) = (Bench::on_tmpfs(), Vec::from(["--reply-delay=3ms"]));
            let served = Served::with(&bench, &served);
            std::fs::write(bench.path("users.toml"), USERS).unwrap();
            let place = ["--dir=/w", "--results=results", "--format=json", "--target"];
            let args = [command, &place, &[&served.url]].concat();
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
                says(
                    &ended,
                    &["interrupted: the results are written, and the files are being"],
                );
            }
            if signals == 2 && ended.code != Some(130) {
                let mut notes = series.notes.iter();
                let is_told = notes.any(|note| note.text.contains("plimsoll clean"));
                assert!(is_told, "{:?} {ended:?}", series.notes);
            }
        }
    }
}

/// Rank 0 writes before it removes, too, also what each rank did.
#[test]
fn ranks() {
    let bench = Bench::new();
    let served = Served::with(&bench, &SLOW);
    let more = ["--processes=2", "--per-rank"];
    let mut going = reading(&bench, &served, "1s", &more, "removing the files");
    going.child.kill().unwrap();
    going.end();
    let (path, run) = only(&bench);
    assert_eq!((run.validity.verdict, run.ranks), (Verdict::Valid, 2));
    for rank in ["rank-0.json", "rank-1.json"] {
        assert!(path.join("ranks").join(rank).exists(), "{rank}");
    }
    report(&bench, &[], &path).expect_code(0);
}

/// A profile lists what was measured although the process was killed while files were removed.
#[test]
fn profiles() {
    let profile = "DEFAULTS {\n  runtime = 0.3;\n  dir = /tmp;\n  stats = stats;\n}\n\
        CONFIG looking {\n  function = generic;\n  personality = mine;\n  nfiles = 300;\n}\n";
    let mine = "set $dir=/tmp\nset $nfiles=3\n\
        define fileset name=s,path=$dir,entries=$nfiles,size=4k,dirwidth=8,prealloc\n\
        define process name=p { thread name=t,memsize=1m {\n\
          flowop statfile name=stat1,filesetname=s\n} }\n";
    let bench = Bench::on_tmpfs();
    let served = Served::with(&bench, &SLOW);
    std::fs::write(bench.path("study.prof"), profile).unwrap();
    std::fs::write(bench.path("mine.f"), mine).unwrap();
    let on = format!("--filesystem=far={}", served.url);
    let args = [
        "profile",
        "study.prof",
        &on,
        "--results=results",
        "--format=json",
    ];
    let mut going = started(bench.plimsoll(args), "removing the files");
    going.child.kill().unwrap();
    going.end();
    let mut todo = vec![bench.path("results")];
    let mut runs = Vec::new();
    while let Some(dir) = todo.pop() {
        let (hidden, visible) = found(&dir);
        assert!(hidden.is_empty(), "{hidden:?}");
        runs.extend(
            visible
                .iter()
                .filter(|d| d.join("run.json").exists())
                .cloned(),
        );
        todo.extend(visible);
    }
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!(
        RunDir::at(run).read().unwrap().validity.verdict,
        Verdict::Valid
    );
    report(&bench, &[], run).expect_code(0);
}
