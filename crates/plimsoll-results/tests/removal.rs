//! Deletion of results.

use crate::fixtures;
use plimsoll_results::{
    ANNOTATIONS_FILE, Annotations, Document, HISTOGRAMS_FILE, INTERVALS_FILE, LIVE_FILE, RUN_FILE,
    Removal, ResultsError, SERIES_FILE,
};
use std::fs::{create_dir, create_dir_all, write};
use std::path::{Path, PathBuf};

/// First line of `histograms.hlog`.
const LOG: &str = "#[Histogram log format version 1.3]\n";
/// First line of `intervals.csv`.
const INTERVALS: &str = "window,interval,start_s\n";

/// Content of the `run.json` of a valid run.
fn run_json() -> String {
    fixtures::run(fixtures::plan(), 4, 1, &[]).to_json()
}

/// Total size of the files of a run in bytes.
fn run_bytes() -> usize {
    run_json().len() + LOG.len() + INTERVALS.len()
}

fn run(dir: &Path) -> PathBuf {
    create_dir_all(dir).unwrap();
    for (name, text) in [
        (RUN_FILE, &*run_json()),
        (HISTOGRAMS_FILE, LOG),
        (INTERVALS_FILE, INTERVALS),
    ] {
        write(dir.join(name), text).unwrap();
    }
    dir.to_owned()
}

/// Creates a series of `requested` repeated runs, of which the results `runs` exist.
fn repeats(dir: &Path, requested: u32, runs: &[&str]) -> PathBuf {
    create_dir(dir).unwrap();
    for name in runs {
        run(&dir.join(name));
    }
    write(
        dir.join(SERIES_FILE),
        fixtures::repeats(requested).to_json(),
    )
    .unwrap();
    dir.to_owned()
}

/// Paths of a directory and of everything below the directory.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        if path.is_dir() && !path.is_symlink() {
            found.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        }
        next += 1;
    }
    found.sort();
    found
}

/// A file with the name of a time series or log may be the user's.
#[test]
fn a_text_of_the_users_in_the_place_of_a_series_stays() {
    let root = tempfile::tempdir().unwrap();
    for (n, file) in [
        INTERVALS_FILE,
        HISTOGRAMS_FILE,
        "commands.log",
        ANNOTATIONS_FILE,
    ]
    .into_iter()
    .enumerate()
    {
        let dir = run(&root.path().join(n.to_string()));
        write(dir.join(file), "dear diary").unwrap();
        let before = tree(&dir);
        assert!(Removal::of(&dir).is_err(), "{file}");
        assert_eq!(tree(&dir), before);
        // A full disk leaves an empty file.
        write(dir.join(file), "").unwrap();
        let may_go = file != ANNOTATIONS_FILE;
        assert_eq!(Removal::of(&dir).is_ok(), may_go, "{file}");
    }
}

#[test]
fn results_go_whole() {
    let root = tempfile::tempdir().unwrap();
    let one = run(&root.path().join("one"));
    let annotations = Annotations::default().to_json();
    write(one.join(ANNOTATIONS_FILE), &annotations).unwrap();
    create_dir(one.join("ranks")).unwrap();
    write(one.join("ranks/rank-10.json"), "12345").unwrap();
    let many = repeats(&root.path().join("many"), 2, &["run-01", "run-02"]);
    let removal = Removal::of(&one).unwrap();
    let bytes = run_bytes() + annotations.len() + "12345".len();
    assert_eq!((removal.files(), removal.bytes()), (5, bytes as u64));
    assert!(one.exists(), "looking changes nothing");
    removal.execute().unwrap();
    assert!(!one.exists());
    let removal = Removal::of(&many).unwrap();
    assert_eq!(removal.files(), 7);
    removal.execute().unwrap();
    assert_eq!(tree(root.path()), [root.path()]);
}

/// A process that is killed while renaming a hidden directory, or while replacing a file of results, leaves files that
/// belong to Plimsoll.
#[test]
fn what_is_left_of_an_end_that_was_cut_short_goes_too() {
    let root = tempfile::tempdir().unwrap();
    let one = run(&root.path().join("one"));
    for name in ["live.json", "draft.json", ".owner", ".plimsoll-aZ09xx"] {
        write(one.join(name), "{").unwrap();
    }
    Removal::of(&one).unwrap().execute().unwrap();
    assert!(!one.exists());
    let one = run(&root.path().join("one"));
    write(one.join(".plimsoll-notours"), "").unwrap();
    assert!(Removal::of(&one).is_err());
}

#[test]
fn what_plimsoll_did_not_write_keeps_everything() {
    let root = tempfile::tempdir().unwrap();
    let secret = root.path().join("secret");
    create_dir(&secret).unwrap();
    write(secret.join("x"), "").unwrap();
    type Spoil = fn(&Path);
    let spoils: [(&str, Spoil); 8] = [
        ("a file", |d| write(d.join("thesis.tex"), "").unwrap()),
        ("a directory", |d| create_dir(d.join("more")).unwrap()),
        ("a directory for a file", |d| {
            std::fs::remove_file(d.join(INTERVALS_FILE)).unwrap();
            create_dir(d.join(INTERVALS_FILE)).unwrap();
        }),
        ("a link for a file", |d| {
            std::fs::remove_file(d.join(INTERVALS_FILE)).unwrap();
            std::os::unix::fs::symlink("../secret/x", d.join(INTERVALS_FILE)).unwrap();
        }),
        ("a link for the ranks", |d| {
            std::os::unix::fs::symlink("../secret", d.join("ranks")).unwrap();
        }),
        ("a file among the ranks", |d| {
            create_dir(d.join("ranks")).unwrap();
            write(d.join("ranks/rank-x.json"), "").unwrap();
        }),
        ("something for a run", |d| {
            write(d.join(RUN_FILE), "{}").unwrap()
        }),
        ("another version", |d| {
            let other = run_json().replace("\"schema_version\": 1", "\"schema_version\": 2");
            write(d.join(RUN_FILE), other).unwrap();
        }),
    ];
    for (i, (what, spoil)) in spoils.into_iter().enumerate() {
        let dir = run(&root.path().join(format!("run-{i}")));
        spoil(&dir);
        let before = tree(root.path());
        assert!(Removal::of(&dir).is_err(), "{what}");
        // A series is refused if one of its runs has the fault, unless the fault is only in the `run.json` of the run.
        let many = root.path().join(format!("many-{i}"));
        repeats(&many, 2, &["run-01"]);
        spoil(&many.join("run-01"));
        if !["something for a run", "another version"].contains(&what) {
            assert!(Removal::of(&many).is_err(), "{what}");
        }
        std::fs::remove_dir_all(&many).unwrap();
        assert_eq!(tree(root.path()), before, "{what}");
    }
    let link = root.path().join("link");
    std::os::unix::fs::symlink(run(&root.path().join("real")), &link).unwrap();
    assert!(matches!(
        Removal::of(&link),
        Err(ResultsError::Foreign { .. })
    ));
    assert!(matches!(
        Removal::of(&secret),
        Err(ResultsError::None { .. })
    ));
}

#[test]
fn what_is_being_written_stays_and_what_a_killed_process_left_goes() {
    let root = tempfile::tempdir().unwrap();
    let dir = repeats(&root.path().join("many"), 3, &["run-01"]);
    let lock = std::fs::File::open(&dir).unwrap();
    lock.lock().unwrap();
    let held = Removal::of(&dir).unwrap_err();
    assert!(matches!(held, ResultsError::InUse { .. }), "{held}");
    drop(lock);
    let hidden = dir.join(".plimsoll-abcDEF");
    create_dir(&hidden).unwrap();
    write(hidden.join(LIVE_FILE), "{}").unwrap();
    let unowned = Removal::of(&dir).unwrap_err();
    assert!(matches!(unowned, ResultsError::InUse { .. }), "{unowned}");
    let uname = rustix::system::uname();
    let host = uname.nodename().to_string_lossy();
    let owner = format!("plimsoll results being written by process 7 on {host}\n");
    write(hidden.join(".owner"), owner).unwrap();
    let owner = std::fs::File::open(hidden.join(".owner")).unwrap();
    owner.lock().unwrap();
    let held = Removal::of(&dir).unwrap_err();
    assert!(matches!(held, ResultsError::InUse { .. }), "{held}");
    drop(owner);
    write(hidden.join("thesis.tex"), "").unwrap();
    assert!(matches!(
        Removal::of(&dir),
        Err(ResultsError::Foreign { .. })
    ));
    std::fs::remove_file(hidden.join("thesis.tex")).unwrap();
    Removal::of(&dir).unwrap().execute().unwrap();
    assert!(!dir.exists());
}

#[test]
fn an_interrupted_removal_can_be_finished() {
    let root = tempfile::tempdir().unwrap();
    let dir = repeats(&root.path().join("many"), 2, &["run-01", "run-02"]);
    std::fs::remove_dir_all(dir.join("run-01")).unwrap();
    std::fs::remove_file(dir.join("run-02").join(INTERVALS_FILE)).unwrap();
    Removal::of(&dir).unwrap().execute().unwrap();
    assert!(!dir.exists());
}

/// The runs of a profile are in the directories of their configurations.
#[test]
fn the_runs_of_a_profile_go_with_the_directories_of_its_configurations() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("profile");
    for name in ["ext4/a/run-01", "ext4/a/run-02", "xfs/a/run-01-failed"] {
        run(&dir.join(name));
    }
    let profile = fixtures::profile(2, &[("a", "ext4"), ("a", "xfs")]);
    write(dir.join(SERIES_FILE), profile.to_json()).unwrap();
    for foreign in ["ext4/thesis.tex", "xfs/a/thesis.tex"] {
        write(dir.join(foreign), "").unwrap();
        assert!(matches!(
            Removal::of(&dir),
            Err(ResultsError::Foreign { path }) if path == dir.join(foreign)
        ));
        std::fs::remove_file(dir.join(foreign)).unwrap();
    }
    create_dir(dir.join("other")).unwrap();
    assert!(matches!(
        Removal::of(&dir),
        Err(ResultsError::Foreign { .. })
    ));
    std::fs::remove_dir(dir.join("other")).unwrap();
    let removal = Removal::of(&dir).unwrap();
    assert_eq!(removal.files(), 10);
    removal.execute().unwrap();
    assert_eq!(tree(root.path()), [root.path()]);
}

#[test]
fn results_of_ranks_have_numbers() {
    let root = tempfile::tempdir().unwrap();
    for (name, is_ours) in [
        ("rank-0.json", true),
        ("rank-17.json", true),
        ("rank-.json", false),
        ("rank-x.json", false),
        ("rank-1.txt", false),
        ("1.json", false),
    ] {
        let dir = run(&root.path().join(name.replace('.', "-")));
        create_dir(dir.join("ranks")).unwrap();
        let before = Removal::of(&dir).unwrap();
        let (files, bytes) = (before.files(), before.bytes());
        assert_eq!((files, bytes), (3, run_bytes() as u64));
        drop(before);
        write(dir.join("ranks").join(name), "12345").unwrap();
        match Removal::of(&dir) {
            Ok(removal) => {
                assert!(is_ours, "{name}");
                assert_eq!((removal.files(), removal.bytes()), (files + 1, bytes + 5));
                assert_eq!(removal.dir(), dir);
                removal.execute().unwrap();
                assert!(!dir.exists());
            }
            Err(e) => assert!(
                !is_ours && matches!(e, ResultsError::Foreign { .. }),
                "{name}: {e}"
            ),
        }
    }
}
