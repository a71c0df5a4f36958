//! `plimsoll clean`: which files of earlier runs the command removes and leaves, and which directories it refuses.

use crate::common::series::entries;
use crate::common::{Bench, CLAIM, Ended, MARKER, started, tree};
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const SMALL: [&str; 4] = [
    "--set=nfiles=60",
    "--set=filesize=1k",
    "--set=nthreads=2",
    "--time=1h",
];

/// Starts a command and kills its process with SIGKILL once a printed line begins with `line_begin`.
fn killed(command: Command, line_begin: &str) {
    let mut going = started(command, line_begin);
    going.child.kill().unwrap();
    assert_eq!(going.end().code, None);
}

/// Bench whose work directory has the marker and the files of a run that was killed in its measured window.
fn leavings() -> Bench {
    let bench = Bench::on_tmpfs();
    killed(bench.command_in_work("fileserver", &SMALL), "measuring");
    assert!(!tree(&bench.work()).0.is_empty());
    bench
}

fn clean(bench: &Bench, more: &[&str]) -> Ended {
    Ended::of(bench.plimsoll([&["clean"], more].concat()))
}

/// Moves a directory's claim to the same process id on another machine.
fn move_claim(dir: &Path, host: &str) {
    let claim = dir.join(CLAIM);
    let holder = entries(&claim).pop().unwrap();
    let process: Vec<&str> = holder.rsplitn(7, '.').take(6).collect();
    let [id, start, pid, namespace, boot, machine] = process[..] else {
        panic!("{holder}")
    };
    let moved = format!("{host}.{machine}.{boot}.{namespace}.{pid}.{start}.{id}");
    std::fs::rename(claim.join(&holder), claim.join(moved)).unwrap();
}

#[test]
fn what_plimsoll_did_not_make_is_left_and_named() {
    let bench = leavings();
    let root = bench.work().join("bigfileset");
    let (files, _) = tree(&root);
    let beside = root.join(files.keys().next().unwrap());
    let diary = beside.parent().unwrap().join("diary.txt");
    std::fs::write(&diary, "mine").unwrap();
    std::fs::write(bench.work().join("notes"), "mine").unwrap();
    let said = clean(&bench, &["work"]).expect_code(0).stdout;
    let first = said.lines().next().unwrap();
    assert_eq!(first, "cleaned work; Plimsoll did not make, and left:");
    let diary_below = diary.strip_prefix(bench.work()).unwrap();
    for left in [diary_below.to_str().unwrap(), "notes"] {
        let named = said.lines().filter(|l| l.trim() == left).count();
        assert_eq!(named, 1, "{left} in {said}");
    }
    let (files, _) = tree(&bench.work());
    assert_eq!(files.len(), 2, "{files:?}");
    assert_eq!(std::fs::read_to_string(diary).unwrap(), "mine");
}

#[test]
fn a_link_in_place_of_a_tree_leads_nowhere() {
    let bench = leavings();
    let outside = bench.path("outside");
    std::fs::create_dir(&outside).unwrap();
    for name in ["00000001", "00000002"] {
        std::fs::write(outside.join(name), "mine").unwrap();
    }
    // A symbolic link to the user's files replaces the root of the file tree that the marker lists.
    let root = bench.work().join("bigfileset");
    std::fs::rename(&root, bench.path("aside")).unwrap();
    symlink(&outside, &root).unwrap();
    let ended = clean(&bench, &["work"]);
    assert_eq!(tree(&outside).0.len(), 2, "{ended:?}");
    assert!(ended.code.is_some_and(|c| c != 0) || ended.stdout.contains("bigfileset"));
    assert!(root.is_symlink(), "nobody's to remove: {ended:?}");

    let bench = leavings();
    let outside = bench.path("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("00000001"), "mine").unwrap();
    symlink(&outside, bench.work().join("bigfileset/99999999")).unwrap();
    let said = clean(&bench, &["work"]).expect_code(0).stdout;
    assert!(said.contains("bigfileset/99999999"), "{said}");
    assert_eq!(tree(&outside).0.len(), 1);
}

#[test]
fn a_directory_in_use_is_refused() {
    let bench = Bench::on_tmpfs();
    let going = started(bench.command_in_work("fileserver", &SMALL), "measuring");
    let ended = clean(&bench, &["work"]).expect_code(2);
    let process = format!("(process {})", going.child.id());
    assert!(
        ended.stderr.contains("is in use by another run"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains(&process), "{ended:?}");
    // `clean --force` refuses the directory of a run on this machine, where the run's process is known to be alive.
    clean(&bench, &["--force", "work"]).expect_code(2);
    going.interrupt();
    let run = going.end().result(130);
    assert_eq!(run.failure, None, "nobody took its files away");
}

#[test]
fn a_directory_without_a_marker_is_refused() {
    let bench = Bench::on_tmpfs();
    std::fs::create_dir_all(bench.path("a/b")).unwrap();
    std::fs::write(bench.path("a/b/00000001"), "mine").unwrap();
    let ended = clean(&bench, &["a"]).expect_code(2);
    assert!(ended.stderr.contains("nothing to clean"), "{ended:?}");
    assert!(bench.path("a/b/00000001").exists());
    // A file of the user that has the marker's name, but not its contents, makes `clean` refuse the directory.
    std::fs::write(bench.path("a/b").join(MARKER), "{}").unwrap();
    let ended = clean(&bench, &["a/b"]).expect_code(2);
    assert!(
        ended.stderr.contains("cannot be read as a marker"),
        "{ended:?}"
    );
    assert!(bench.path("a/b/00000001").exists());
}

#[test]
fn a_directory_in_use_by_another_machine_is_left_unless_forced() {
    let bench = leavings();
    move_claim(&bench.work(), "far-away");
    let before = tree(&bench.work());
    let said = clean(&bench, &["work"]).expect_code(2).stderr;
    assert!(said.contains("of machine `far-away`"), "{said}");
    assert!(said.contains("--force"), "{said}");
    // A new run also refuses the work directory that a run on another machine claims.
    let said = bench.run_in_work("fileserver", &SMALL).refusal();
    assert!(said.contains("of machine `far-away`"), "{said}");
    assert_eq!(tree(&bench.work()), before);
    let ended = clean(&bench, &["--force", "work"]).expect_code(0);
    assert_eq!((&*ended.stdout, &*ended.stderr), ("cleaned work\n", ""));
    assert!(!bench.work().exists(), "the run had made the directory");
    let said = clean(&bench, &["work"]).expect_code(2).stderr;
    assert!(said.contains("`work` is not a directory"), "{said}");
}

#[test]
fn several_directories_are_cleaned_one_by_one() {
    let bench = Bench::on_tmpfs();
    for name in ["x/one", "x/two"] {
        std::fs::create_dir_all(bench.path("x")).unwrap();
        let dir = format!("--dir={name}");
        let args = [&SMALL[..], &[&dir]].concat();
        killed(bench.command("fileserver", &args), "measuring");
    }
    let args = [&SMALL[..], &["--dir=x/live"]].concat();
    let going = started(bench.command("fileserver", &args), "measuring");
    let ended = clean(&bench, &["x"]).expect_code(2);
    let said: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(said.len(), 2, "{said:?}");
    for name in ["cleaned x/one", "cleaned x/two"] {
        assert!(said.contains(&name), "{said:?}");
    }
    assert!(
        ended.stderr.contains("is in use by another run"),
        "{ended:?}"
    );
    assert!(!bench.path("x/one").exists() && !bench.path("x/two").exists());
    assert!(!tree(&bench.path("x/live")).0.is_empty());
    going.interrupt();
    going.end().expect_code(130);
}

#[test]
fn a_directory_that_was_moved_is_refused() {
    let bench = leavings();
    // The marker's field `guard` says where the marker was made: `sub` stands for the directory `sub` of a work
    // directory.
    let path = bench.work().join(MARKER);
    let mut marker: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    marker["guard"] = "sub".into();
    std::fs::write(path, marker.to_string()).unwrap();
    let before = tree(&bench.work());
    let said = clean(&bench, &["work"]).expect_code(2).stderr;
    assert!(said.contains("was moved since; move it back"), "{said}");
    assert_eq!(tree(&bench.work()), before);
}
