//! `plimsoll clean`: what it removes of what runs left, what it leaves, and what it refuses.

use crate::common::{Bench, CLAIM, Ended, MARKER, started, tree};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

const SMALL: [&str; 4] = [
    "--set=nfiles=60",
    "--set=filesize=1k",
    "--set=nthreads=2",
    "--time=1h",
];

/// Starts a command, and kills it once it has said a line that begins so.
fn killed(command: Command, line_begin: &str) {
    let mut going = started(command, line_begin);
    going.child.kill().unwrap();
    assert_eq!(going.end().code, None);
}

/// A work directory as a killed run left it, with files.
fn leavings() -> Bench {
    let bench = Bench::on_tmpfs();
    killed(bench.command_in_work("fileserver", &SMALL), "measuring");
    assert!(!tree(&bench.work()).0.is_empty());
    bench
}

fn clean(bench: &Bench, more: &[&str]) -> Ended {
    Ended::of(bench.plimsoll([&["clean"], more].concat()))
}

/// Changes what the marker of a directory says.
fn edit_marker(dir: &Path, edit: impl FnOnce(&mut serde_json::Value)) {
    let path = dir.join(MARKER);
    let mut marker = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    edit(&mut marker);
    std::fs::write(path, marker.to_string()).unwrap();
}

/// The holder of a directory's claim: the name of the only directory in the claim.
fn holder(dir: &Path) -> String {
    let names = std::fs::read_dir(dir.join(CLAIM)).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    assert_eq!(names.len(), 1, "{names:?}");
    names[0].clone()
}

/// Moves a directory's claim to the same process id on another machine.
fn move_claim(dir: &Path, host: &str) {
    let holder = holder(dir);
    let process: Vec<&str> = holder.rsplitn(7, '.').take(6).collect();
    let [id, start, pid, namespace, boot, machine] = process[..] else {
        panic!("{holder}")
    };
    let moved = format!("{host}.{machine}.{boot}.{namespace}.{pid}.{start}.{id}");
    let claim = dir.join(CLAIM);
    std::fs::rename(claim.join(&holder), claim.join(moved)).unwrap();
}

#[test]
fn files_of_a_run_that_was_killed_are_removed() {
    let bench = leavings();
    let ended = clean(&bench, &["work"]).expect_code(0);
    assert_eq!(ended.stdout, "cleaned work\n");
    assert_eq!(ended.stderr, "");
    assert!(!bench.work().exists(), "Plimsoll had made it");
    let ended = clean(&bench, &["work"]).expect_code(2);
    assert!(
        ended.stderr.contains("`work` is not a directory"),
        "{ended:?}"
    );
}

#[test]
fn files_of_a_run_that_was_killed_while_it_made_them_are_removed() {
    let bench = Bench::on_tmpfs();
    std::fs::create_dir(bench.work()).unwrap();
    let args = ["--set=nfiles=50000", "--set=filesize=0"];
    let mut going = started(bench.command_in_work("fileserver", &args), "making");
    let root = bench.work().join("bigfileset");
    while tree(&root).0.is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    going.child.kill().unwrap();
    assert_eq!(going.end().code, None);
    clean(&bench, &["work"]).expect_code(0);
    // It was there before.
    assert_eq!(std::fs::read_dir(bench.work()).unwrap().count(), 0);
}

#[test]
fn objects_of_a_pattern_are_removed() {
    let bench = Bench::on_tmpfs();
    let args = [
        "md",
        "--dir=work",
        "-D=3",
        "-P=40",
        "-I=100000000",
        "--results=results",
    ];
    let mut command = bench.plimsoll(args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut going = command.spawn().unwrap();
    while tree(&bench.work()).0.len() < 120 {
        assert!(going.try_wait().unwrap().is_none(), "it runs for long");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    going.kill().unwrap();
    going.wait().unwrap();
    let said = clean(&bench, &["."]).expect_code(0).stdout;
    assert!(said.starts_with("cleaned "), "{said}");
    assert!(tree(&bench.work()).0.is_empty());
    assert!(!tree(bench.root()).1.iter().any(|d| d.contains("out")));
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
    // Instead of the tree, and instead of a directory in another.
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
    // Nor does force help: this machine knows that the process lives.
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
    // Somebody's file that has the marker's name is none.
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
    // A run keeps out of it, too.
    let said = bench.run_in_work("fileserver", &SMALL).refusal();
    assert!(said.contains("of machine `far-away`"), "{said}");
    assert_eq!(tree(&bench.work()), before);
    clean(&bench, &["--force", "work"]).expect_code(0);
    assert!(!bench.work().exists());
}

/// A run that is killed before the run has written the marker leaves a claim, or a prepared claim.
#[test]
fn what_is_left_before_the_marker_is_removed() {
    let bench = leavings();
    let ended = holder(&bench.work());
    let prepared = format!("{CLAIM}.{ended}");
    for (made, left) in [
        (vec![format!("{CLAIM}/{ended}")], true),
        (vec![CLAIM.to_owned()], true),
        (vec![format!("{prepared}/{ended}")], true),
        (vec![prepared.clone(), format!("{CLAIM}/{ended}")], true),
        (vec![format!(".plimsoll.made0+{ended}")], false),
    ] {
        let by = |cleans: bool| {
            let dir = bench.path("unmarked");
            for path in &made {
                std::fs::create_dir_all(dir.join(path)).unwrap();
            }
            if cleans {
                let said = clean(&bench, &["unmarked"]).expect_code(0);
                assert_eq!(said.stdout, "cleaned unmarked\n", "{made:?}");
            } else {
                let args = [&SMALL[..3], &["--dir=unmarked", "--time=10ms"]].concat();
                bench.run("fileserver", &args).expect_code(0);
            }
            // Plimsoll removes the directory only if the entry `.plimsoll.made…` says that Plimsoll created the directory.
            assert_eq!(dir.exists(), left, "{made:?}");
            if left {
                let entries: Vec<_> = std::fs::read_dir(&dir).unwrap().collect();
                assert!(entries.is_empty(), "{made:?}: {entries:?}");
                std::fs::remove_dir(&dir).unwrap();
            }
        };
        by(true);
        by(false);
    }
    // Directories with similar names that Plimsoll did not create are no claims.
    let dir = bench.path("theirs");
    for path in [CLAIM, ".plimsoll.claim.notes", ".plimsoll.made0+"] {
        std::fs::create_dir_all(dir.join(path)).unwrap();
        std::fs::write(dir.join(path).join("mine"), "").unwrap();
        clean(&bench, &["theirs"]).expect_code(2);
        let args = [&SMALL[..], &["--dir=theirs"]].concat();
        let refused = bench.run("fileserver", &args).refusal();
        assert!(refused.contains("theirs"), "{refused}");
        assert!(dir.join(path).join("mine").exists());
        std::fs::remove_dir_all(&dir).unwrap();
    }
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
    // As if it had been `sub` of the run's work directory.
    edit_marker(&bench.work(), |m| m["guard"] = "sub".into());
    let before = tree(&bench.work());
    let said = clean(&bench, &["work"]).expect_code(2).stderr;
    assert!(said.contains("was moved since; move it back"), "{said}");
    assert_eq!(tree(&bench.work()), before);
}
