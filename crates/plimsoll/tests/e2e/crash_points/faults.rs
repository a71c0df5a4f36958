//! Disks that are full, or fail, at each write.

use super::*;
use crate::common::series;
use plimsoll_testkit::crash_points::Fault;

/// Makes a run with the fault of each number `n`, until no write of a run fails any more. After each run with a fault,
/// published results must be whole, and the error message must name the file and contain `words`, the text of the
/// system's error.
#[track_caller]
fn check_faults(args: &[&str], fault: fn(usize) -> Fault, words: &str) {
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
            return;
        };
        let said = format!("{}{}", ended.stdout, ended.stderr);
        let place = format!("{n}, {}: {said}", failed.summary());
        let (hidden, published) = directories(&bench.path("results"));
        assert!(hidden.is_empty(), "{hidden:?} after {place}");
        for dir in &published {
            whole_run(dir).unwrap_or_else(|e| panic!("{e} after {place}"));
        }
        assert!(!said.contains("panicked"), "{place}");
        // After a fault that follows the publication of the results, the run succeeds, and a message says that later
        // data are missing in the results.
        let is_late = said.contains("what came after the measurement is missing in the results");
        // A fault before the run begins is a usage error, which tells the user to choose another results directory.
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
}

/// Path that an error about the file `path` must contain. Of a temporary file, an error names the final path, of which
/// the test knows only the directory.
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
fn a_full_or_broken_disk_ends_a_run_at_every_write_of_its_results() {
    let run = ["run", "w.f", "--results=results", "--interval=1s"];
    let args = [&run[..], &VIRTUAL].concat();
    check_faults(&args, Fault::FullFrom, "No space left on device");
    check_faults(&args, Fault::BrokenAt, "nput/output error");
}

/// Makes a series of load points whose results are on a disk that is full from the n-th change on, for every fourth n:
/// the series must leave no workload files, and `resume` must complete existing results on a disk with free space.
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
            // Without any results directory, the disk was full before the series began.
            assert!(matches!(ended.status.code(), Some(1 | 2)), "{place}");
            continue;
        };
        assert_eq!(ended.status.code(), Some(1), "{place}");
        let results = results.path().to_str().unwrap();
        let hint = format!("resume with plimsoll resume {results}");
        assert!(ended.stderr.contains(&hint), "{place}");
        let resumed = Ended::of(bench.plimsoll(["resume", results]));
        // On a busy machine, a load may not be sustained, which makes the exit code 3.
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
