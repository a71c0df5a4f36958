//! Taking results away, and what a catalogue says of them.

use plimsoll_results::{
    ANNOTATIONS_FILE, Entry, HISTOGRAMS_FILE, INTERVALS_FILE, Kind, LIVE_FILE, RUN_FILE, Removal,
    ResultsError, Status, directories,
};
use std::fs::{create_dir, write};
use std::path::{Path, PathBuf};

/// As much of a run as a catalogue reads.
const RUN: &str = r#"{"schema":1,"workload":"w","started":"2026-03-01T12:00:00Z",
  "validity":{"verdict":"valid","reasons":[]},"window_number":1,"target":{"url":"posix","description":""},
  "summary":{"ops":4,"ops_per_s":2.0,"bytes":8,"bytes_per_s":4.0,"mean_ms":1.5,"p50_ms":1.0,"p99_ms":3.0,
  "errors":0,"reads_per_s":2.0,"writes_per_s":0.0,"cpu_us_per_op":null,"in_flight":0}}"#;

/// How the series of a run begin.
const LOG: &str = "#[Histogram log format version 1.3]\n";
const SERIES: &str = "window,interval,start_s\n";

fn run(dir: &Path) -> PathBuf {
    create_dir(dir).unwrap();
    for (name, text) in [
        (RUN_FILE, RUN),
        (HISTOGRAMS_FILE, LOG),
        (INTERVALS_FILE, SERIES),
    ] {
        write(dir.join(name), text).unwrap();
    }
    dir.to_owned()
}

/// Repeated runs, of which these are there.
fn repeats(dir: &Path, asked: u32, runs: &[&str]) -> PathBuf {
    create_dir(dir).unwrap();
    for name in runs {
        run(&dir.join(name));
    }
    let list = runs.iter().map(|r| format!("{r:?}")).collect::<Vec<_>>();
    let json = format!(
        r#"{{"schema":1,"workload":"w","asked":{asked},"runs":[{}]}}"#,
        list.join(",")
    );
    write(dir.join("repeats.json"), json).unwrap();
    dir.to_owned()
}

/// Everything below a directory.
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

/// A file of the name of one of ours may be the user's.
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
        // An empty one is what a full disk leaves.
        write(dir.join(file), "").unwrap();
        let may_go = file != ANNOTATIONS_FILE;
        assert_eq!(Removal::of(&dir).is_ok(), may_go, "{file}");
    }
}

#[test]
fn results_go_whole() {
    let root = tempfile::tempdir().unwrap();
    let one = run(&root.path().join("one"));
    write(one.join(ANNOTATIONS_FILE), "{\"schema\":1}").unwrap();
    create_dir(one.join("ranks")).unwrap();
    write(one.join("ranks/rank-10.json"), "12345").unwrap();
    let many = repeats(&root.path().join("many"), 2, &["run-01", "run-02"]);
    let removal = Removal::of(&one).unwrap();
    let bytes = RUN.len() + LOG.len() + SERIES.len() + "{\"schema\":1}12345".len();
    assert_eq!((removal.files(), removal.bytes()), (5, bytes as u64));
    assert!(one.exists(), "looking changes nothing");
    removal.execute().unwrap();
    assert!(!one.exists());
    let removal = Removal::of(&many).unwrap();
    assert_eq!(removal.files(), 7);
    removal.execute().unwrap();
    assert_eq!(tree(root.path()), [root.path()]);
}

/// A process that is killed while it gives results their name, or replaces a file of theirs, leaves files
/// that are Plimsoll's as well.
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
            write(d.join(RUN_FILE), RUN.replace(":1,", ":2,")).unwrap();
        }),
    ];
    for (i, (what, spoil)) in spoils.into_iter().enumerate() {
        let dir = run(&root.path().join(format!("run-{i}")));
        spoil(&dir);
        let before = tree(root.path());
        assert!(Removal::of(&dir).is_err(), "{what}");
        // The same in one of several runs.
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

#[test]
fn an_entry_says_what_the_files_say() {
    let root = tempfile::tempdir().unwrap();
    let dir = run(&root.path().join("one"));
    let entry = Entry::read(&dir).unwrap();
    assert_eq!((entry.name.as_str(), entry.kind), ("one", Kind::Run));
    assert_eq!((entry.status, entry.runs), (Status::Valid, 1));
    assert_eq!((entry.ops_per_s, entry.p99_ms), (Some(2.0), Some(3.0)));
    let many = repeats(&root.path().join("many"), 3, &["run-01", "run-02"]);
    let other = RUN.replace("\"ops_per_s\":2.0", "\"ops_per_s\":5.0");
    write(many.join("run-02").join(RUN_FILE), &other).unwrap();
    let entry = Entry::read(&many).unwrap();
    assert_eq!(
        (entry.kind, entry.runs, entry.ops_per_s),
        (Kind::Repeats, 2, Some(3.5))
    );
    assert_eq!(entry.status, Status::Unfinished, "two of three");
    assert_eq!(entry.started_at, "2026-03-01T12:00:00Z");
    write(
        many.join("run-02").join(RUN_FILE),
        other.replace("valid\"", "failed\""),
    )
    .unwrap();
    assert_eq!(Entry::read(&many).unwrap().status, Status::Failed);
    // Nothing measured is no figure.
    write(
        dir.join(RUN_FILE),
        RUN.replace("window_number\":1", "window_number\":0"),
    )
    .unwrap();
    assert_eq!(Entry::read(&dir).unwrap().ops_per_s, None);
    write(dir.join(RUN_FILE), RUN.replace("\"schema\":1,", "")).unwrap();
    let error = Entry::read(&dir).unwrap_err().to_string();
    assert!(
        error.ends_with("has no schema version; this program reads version 3"),
        "{error}"
    );
}

#[test]
fn links_and_hidden_names_are_no_results() {
    let root = tempfile::tempdir().unwrap();
    let dir = run(&root.path().join("b"));
    create_dir(root.path().join("a")).unwrap();
    create_dir(root.path().join(".plimsoll-abcDEF")).unwrap();
    write(root.path().join("file"), "").unwrap();
    std::os::unix::fs::symlink(&dir, root.path().join("link")).unwrap();
    let found = directories(root.path()).unwrap();
    assert_eq!(found, [root.path().join("a"), dir]);
    assert!(directories(&root.path().join("missing")).is_err());
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
        assert_eq!(
            (files, bytes),
            (3, (RUN.len() + LOG.len() + SERIES.len()) as u64)
        );
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
