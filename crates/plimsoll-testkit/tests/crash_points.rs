//! Recordings of real programs: the files that crashes leave, compared with files computed by hand.

use plimsoll_testkit::crash_points::{Change, Crash, CrashState, Fault, Recorder, Recording};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn shell(dir: &Path, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(dir);
    command
}

fn record(dir: &Path, script: &str) -> Recording {
    let recording = Recorder::of(dir)
        .unwrap()
        .record(shell(dir, script))
        .unwrap();
    assert!(recording.status.success(), "{}", recording.stderr);
    recording
}

/// A crash state as text: each path, followed by `:` and the content for a file, or by `/` for a directory.
fn text(state: &CrashState) -> String {
    let entry = |(path, content): (&std::path::PathBuf, &Option<std::sync::Arc<Vec<u8>>>)| {
        let path = path.display();
        match content {
            Some(bytes) => format!("{path}:{}", String::from_utf8_lossy(bytes)),
            None => format!("{path}/"),
        }
    };
    let entries: Vec<String> = state.tree.iter().map(entry).collect();
    entries.join(" ")
}

fn all(recording: &Recording) -> BTreeSet<String> {
    recording.crash_states().iter().map(text).collect()
}

#[test]
fn every_call_of_a_program_and_its_children_is_recorded() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("old"), "old").unwrap();
    let script = "mkdir d && printf one > d/a && printf two >> d/a && sync d/a && \
                  mv d/a d/b && ln d/b d/c && rm old && truncate -s 2 d/b && rm d/c && true > e && rmdir nil || true";
    let recording = record(dir.path(), script);
    let summaries: Vec<String> = recording.changes.iter().map(Change::summary).collect();
    let expected = [
        "mkdir d",
        "create d/a",
        "write 6 bytes at 0 of d/a",
        "fsync d/a",
        "rename d/a to d/b",
        "link d/b to d/c",
        "remove old",
        "truncate d/b to 2",
        "remove d/c",
        "create e",
    ];
    assert_eq!(summaries, expected);
}

#[test]
fn what_was_not_synced_may_be_lost_and_what_was_stays() {
    let dir = TempDir::new().unwrap();
    let recording = record(dir.path(), "printf ab > f; sync f; sync .");
    let found = all(&recording);
    let expected = ["", "f:", "f:ab", "f:a", "f:\0\0"].map(String::from);
    assert_eq!(found, BTreeSet::from(expected));
    // After the last sync nothing is lost.
    let end = recording.changes.len();
    let last: Vec<_> = recording
        .crash_states()
        .into_iter()
        .filter(|s| s.changes == end)
        .collect();
    assert_eq!(last.iter().map(text).collect::<Vec<_>>(), ["f:ab"]);
    assert_eq!(last[0].crash, Crash::Kill);
}

#[test]
fn a_rename_without_a_sync_of_the_file_may_leave_an_empty_one() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("f"), "old").unwrap();
    let unsynced = all(&record(dir.path(), "printf new > t; mv t f"));
    assert!(unsynced.contains("f:"), "{unsynced:?}");
    std::fs::write(dir.path().join("f"), "old").unwrap();
    let synced = all(&record(dir.path(), "printf new > t; sync t; mv t f"));
    assert!(!synced.contains("f:"), "{synced:?}");
    for state in ["f:old", "f:new", "f:old t:new"] {
        assert!(synced.contains(state), "{state}: {synced:?}");
    }
}

#[test]
fn a_state_is_made_as_it_was() {
    let dir = TempDir::new().unwrap();
    let recording = record(dir.path(), "mkdir d; printf x > d/f");
    let states = recording.crash_states();
    let last = states.iter().find(|s| text(s) == "d/ d/f:x").unwrap();
    let place = TempDir::new().unwrap();
    last.make(place.path()).unwrap();
    assert_eq!(std::fs::read(place.path().join("d/f")).unwrap(), b"x");
}

#[test]
fn changes_fail_as_on_a_full_or_broken_disk() {
    let script = "env printf a > f; env printf b >> f; env printf c >> f; mv f g";
    let of = |fault| {
        let dir = TempDir::new().unwrap();
        let recorder = Recorder::of(dir.path()).unwrap();
        let recording = recorder
            .record_with(shell(dir.path(), script), fault)
            .unwrap();
        let left = std::fs::read_to_string(dir.path().join("g")).unwrap_or_default();
        (recording, left)
    };
    // The first change that needs space is the creation of the file.
    let (full, left) = of(Fault::FullFrom(2));
    assert_eq!((full.failed.len(), left.as_str()), (2, "a"));
    assert!(full.stderr.contains("No space left"), "{}", full.stderr);
    let (broken, left) = of(Fault::BrokenAt(1));
    assert_eq!((broken.failed.len(), left.as_str()), (1, "ac"));
    assert!(
        broken.stderr.contains("nput/output error"),
        "{}",
        broken.stderr
    );
}
