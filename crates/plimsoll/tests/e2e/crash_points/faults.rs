//! Disks that are full, or fail, at each write.

use super::*;
use crate::common::series;
use plimsoll_testkit::crash_points::Fault;

/// Runs with each fault of a kind until there are no more, on results and files of the run; checks
/// that the run says which file it is, and that what is left is whole.
#[track_caller]
fn check_faults(args: &[&str], fault: fn(usize) -> Fault, words: &str) -> usize {
    for n in 0.. {
        let bench = Bench::on_tmpfs();
        bench.workload(LOOKERS);
        let recorder = Recorder::of(bench.root()).unwrap();
        let ended = recorder
            .record_with(bench.plimsoll(args), fault(n))
            .unwrap();
        let Some(failed) = ended.failed.first() else {
            assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
            assert!(n > 10, "{n}");
            return n;
        };
        let said = format!("{}{}", ended.stdout, ended.stderr);
        let place = format!("{n}, {}: {said}", failed.summary());
        let (hidden, published) = directories(&bench.path("results"));
        assert!(hidden.is_empty(), "{hidden:?} after {place}");
        for dir in &published {
            whole_run(dir).unwrap_or_else(|e| panic!("{e} after {place}"));
        }
        assert!(!said.contains("panicked"), "{place}");
        // What comes after the results are published is missing in them, and that is said.
        let is_late = said.contains("what came after the measurement is missing in the results");
        // Before anything is done, another place can be chosen.
        let is_refused = said.contains("--results chooses another place");
        let (expected, is_there) = match (is_late, is_refused) {
            (true, _) => (0, true),
            (false, true) => (2, false),
            (false, false) => (1, !published.is_empty()),
        };
        assert_eq!(ended.status.code(), Some(expected), "{place}");
        assert_eq!(is_there, !published.is_empty(), "{place}");
        assert!(said.contains(words), "{place}");
        assert!(said.contains(&named(failed.path())), "{place}");
    }
    unreachable!("there is an end");
}

/// What an error calls a file that could not be written: one that gets its name when it is whole is called
/// by that name, of which only the directory is known here.
fn named(path: &Path) -> String {
    let shown = path.to_str().unwrap();
    match path.file_name().map(|name| name.to_str().unwrap()) {
        None => "results".into(),
        Some(".owner-unlocked") => shown.replace("-unlocked", ""),
        Some(name) if name.starts_with(".plimsoll-") => {
            path.parent().unwrap().to_str().unwrap().into()
        }
        Some(_) => shown.into(),
    }
}

#[test]
fn a_full_disk_ends_a_run_at_every_write_of_its_results() {
    let args = [
        &["run", "w.f", "--results=results", "--interval=1s"][..],
        &VIRTUAL,
    ]
    .concat();
    check_faults(&args, Fault::FullFrom, "No space left on device");
}

#[test]
fn a_broken_disk_ends_a_run_at_every_write_of_its_results() {
    let args = [
        &["run", "w.f", "--results=results", "--interval=1s"][..],
        &VIRTUAL,
    ]
    .concat();
    check_faults(&args, Fault::BrokenAt, "nput/output error");
}

/// Measures loads on temporary files with results on a disk that is full from some change on, for every fourth change:
/// no files are left, and what is there of the results is resumed on a disk with room.
#[track_caller]
fn check_loads_on_full_disk(command: &str, more: &[&str]) {
    let times = ["--time=200ms", "--warmup=0s"];
    for n in (0..).step_by(4) {
        let bench = Bench::on_tmpfs();
        std::fs::create_dir(bench.path("results")).unwrap();
        let measuring = series::command(&bench, command, &[&times[..], more].concat());
        let recorder = Recorder::of(&bench.path("results")).unwrap();
        let ended = recorder.record_with(measuring, Fault::FullFrom(n)).unwrap();
        let place = format!("change {n}: {}{}", ended.stdout, ended.stderr);
        let left = bench.left_but(&["results", "users.toml"]);
        assert!(left.is_empty(), "{left:?} after {place}");
        if ended.failed.is_empty() {
            assert!(n > 20, "{place}");
            return;
        }
        assert!(ended.stderr.contains("No space left on device"), "{place}");
        let Some(results) = bench.results().into_iter().next() else {
            // The place of the results can be chosen before there is anything.
            assert!(matches!(ended.status.code(), Some(1 | 2)), "{place}");
            continue;
        };
        assert_eq!(ended.status.code(), Some(1), "{place}");
        let results = results.path().to_str().unwrap();
        let hint = format!("resume with plimsoll resume {results}");
        assert!(ended.stderr.contains(&hint), "{place}");
        let resumed = Ended::of(bench.plimsoll(["resume", results]));
        // Where the machine is busy, a load may not be sustained.
        assert!(matches!(resumed.code, Some(0 | 3)), "{}", resumed.stderr);
        let left = bench.left_but(&["results", "users.toml"]);
        assert!(left.is_empty(), "{left:?} after it was resumed: {place}");
    }
}

#[test]
fn a_curve_on_a_full_disk_leaves_no_files_and_is_resumed() {
    check_loads_on_full_disk("curve", &["--load=1,2"]);
}

#[test]
fn a_search_on_a_full_disk_leaves_no_files_and_is_resumed() {
    let search = ["--max-load=2", "--start-load=2", "--confirm-runs=1"];
    check_loads_on_full_disk("find", &search);
}
