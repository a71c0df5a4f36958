//! Disks that are full, or fail, at each write.

use super::*;
use plimsoll_crash_points::Fault;

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
