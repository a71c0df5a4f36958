//! Runs every fixture of `fixtures/flowops` and checks what it leaves behind against its JSON
//! file; see the README there.

use crate::common::{Bench, Ended, find_row, tree};
use plimsoll_results::Run;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Number of fixtures that run at the same time; more than one, because fixtures sleep more than they compute.
const AT_ONCE: usize = 4;

/// Expectations in the JSON file of a fixture: exit code, printed texts, operations and files. An unknown key is an
/// error in the fixture.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    args: Vec<String>,
    #[serde(default)]
    exit: Exit,
    #[serde(default = "once")]
    runs: u32,
    files: Option<BTreeMap<String, Option<u64>>>,
    #[serde(default)]
    absent: Vec<String>,
    #[serde(default)]
    dirs: Vec<String>,
    #[serde(default)]
    size_between: BTreeMap<String, [u64; 2]>,
    #[serde(default)]
    size_is_bytes_of: BTreeMap<String, String>,
    #[serde(default)]
    ops: BTreeMap<String, Bounds>,
    #[serde(default)]
    bytes: BTreeMap<String, Bounds>,
    window_s: Option<[f64; 2]>,
    #[serde(default)]
    output: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Exit {
    One(i32),
    Any(Vec<i32>),
}

impl Default for Exit {
    fn default() -> Self {
        Self::One(0)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Bounds {
    Exactly(u64),
    Between([u64; 2]),
}

impl Bounds {
    fn hold(&self, n: u64) -> Result<(), String> {
        let (least, most) = match *self {
            Self::Exactly(n) => (n, n),
            Self::Between([least, most]) => (least, most),
        };
        within(n, least, most)
    }
}

fn once() -> u32 {
    1
}

fn within<T: PartialOrd + std::fmt::Display>(n: T, least: T, most: T) -> Result<(), String> {
    if least <= n && n <= most {
        Ok(())
    } else {
        Err(format!("{n} is not from {least} to {most}"))
    }
}

/// Paths of the files in `fixtures/flowops` with the given extension, sorted.
fn fixtures(extension: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/flowops");
    let files = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let is_of = |path: &PathBuf| path.extension().is_some_and(|e| e == extension);
    let mut found: Vec<PathBuf> = files.filter(is_of).collect();
    found.sort();
    found
}

/// Runs the workload of a fixture in a bench below `root`, and returns a sentence for each expectation that the run
/// does not meet.
fn check(fixture: &Path, root: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(fixture.with_extension("json")).unwrap();
    let expected: Expected = match serde_json::from_str(&text) {
        Ok(expected) => expected,
        Err(e) => return vec![format!("its JSON file: {e}")],
    };
    let bench = Bench::below(root);
    let work = bench.work();
    std::fs::create_dir(&work).unwrap();
    let mut args: Vec<&str> = vec!["--keep"];
    args.extend(expected.args.iter().map(String::as_str));
    let mut wrong = Vec::new();
    for n in 1..=expected.runs {
        let ended = bench.run_in_work(fixture.to_str().unwrap(), &args);
        let found = [
            how_it_ended(&expected, &ended),
            on_disk(&expected, &work, &ended),
        ];
        wrong.extend(found.concat().iter().map(|w| format!("run {n}: {w}")));
        if !wrong.is_empty() {
            wrong.push(format!("standard error:\n{}", ended.stderr));
            break;
        }
    }
    wrong
}

fn how_it_ended(expected: &Expected, ended: &Ended) -> Vec<String> {
    let mut wrong = Vec::new();
    let codes = match &expected.exit {
        Exit::One(code) => vec![*code],
        Exit::Any(codes) => codes.clone(),
    };
    if !ended.code.is_some_and(|c| codes.contains(&c)) {
        wrong.push(format!("exit code {:?}, expected {codes:?}", ended.code));
    }
    for part in &expected.output {
        if !ended.stdout.contains(part) && !ended.stderr.contains(part) {
            wrong.push(format!("no `{part}` in the output"));
        }
    }
    match ended.parsed() {
        Some(run) => wrong.extend(in_results(expected, &run)),
        None if expected.ops.is_empty() && expected.window_s.is_none() => {}
        None => wrong.push("no run.json was printed".into()),
    }
    wrong
}

fn in_results(expected: &Expected, run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |what: &str, rows: &BTreeMap<String, Bounds>, bytes: bool| {
        for (name, bounds) in rows {
            let figure = find_row(run, name).map(|r| if bytes { r.bytes as u64 } else { r.ops });
            if let Err(e) = figure.and_then(|n| bounds.hold(n)) {
                wrong.push(format!("{what} of {name}: {e}"));
            }
        }
    };
    check("operations", &expected.ops, false);
    check("bytes", &expected.bytes, true);
    if let Some([least, most]) = expected.window_s
        && let Err(e) = within(run.window_s, least, most)
    {
        wrong.push(format!("window in seconds: {e}"));
    }
    wrong
}

fn on_disk(expected: &Expected, work: &Path, ended: &Ended) -> Vec<String> {
    let (files, dirs) = tree(work);
    let mut wrong = Vec::new();
    if let Some(expected) = &expected.files {
        let missing = expected.keys().filter(|p| !files.contains_key(*p));
        wrong.extend(missing.map(|p| format!("{p} is missing")));
        for (path, size) in &files {
            match expected.get(path) {
                None => wrong.push(format!("{path} should not be there")),
                Some(Some(n)) if n != size => {
                    wrong.push(format!("{path} has {size} bytes, expected {n}"));
                }
                Some(_) => {}
            }
        }
    }
    let there = |p: &String| files.contains_key(p) || dirs.contains(p);
    let absent = expected.absent.iter().filter(|p| there(p));
    wrong.extend(absent.map(|p| format!("{p} is still there")));
    let missing = expected.dirs.iter().filter(|p| !dirs.contains(p));
    wrong.extend(missing.map(|p| format!("directory {p} is missing")));
    for (prefix, [least, most]) in &expected.size_between {
        let sizes: Vec<_> = files
            .iter()
            .filter(|(p, _)| p.starts_with(prefix))
            .collect();
        if sizes.is_empty() {
            wrong.push(format!("no file below {prefix}"));
        }
        for (path, size) in sizes {
            if let Err(e) = within(*size, *least, *most) {
                wrong.push(format!("bytes of {path}: {e}"));
            }
        }
    }
    for (path, row) in &expected.size_is_bytes_of {
        let run = ended.parsed().ok_or("no run.json".to_owned());
        let bytes = run.and_then(|run| find_row(&run, row).map(|r| r.bytes as u64));
        if bytes.as_ref().ok() != files.get(path) {
            let size = files.get(path);
            wrong.push(format!("{path} has {size:?} bytes, {row} moved {bytes:?}"));
        }
    }
    wrong
}

/// Checks all given fixtures, [`AT_ONCE`] at the same time; panics with the names of the failed fixtures.
fn check_all(fixtures: &[PathBuf], root: &Path) {
    let left = Mutex::new(fixtures.iter());
    let wrong = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(fixture) = left.lock().unwrap().next() else {
                        return;
                    };
                    let found = check(fixture, root);
                    if !found.is_empty() {
                        let name = fixture.file_stem().unwrap().to_string_lossy();
                        wrong.lock().unwrap().insert(name.into_owned(), found);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    let text: Vec<String> = wrong
        .iter()
        .map(|(name, found)| format!("== {name}\n  {}", found.join("\n  ")))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} fixtures do not hold:\n{}",
        wrong.len(),
        fixtures.len(),
        text.join("\n")
    );
}

#[test]
fn every_fixture_holds_on_tmpfs() {
    let all = fixtures("f");
    assert!(all.len() >= 61, "only {} fixtures were found", all.len());
    let named = |paths: &[PathBuf]| {
        paths
            .iter()
            .map(|p| p.with_extension(""))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        named(&all),
        named(&fixtures("json")),
        "a fixture has two files"
    );
    check_all(&all, Path::new("/dev/shm"));
}
