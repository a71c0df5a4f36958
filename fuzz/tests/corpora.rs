//! Every target accepts the inputs of its corpus within the limits of time and memory, so that findings of a fuzzer
//! stay fixed without a fuzzer.

use plimsoll_fuzz::limits::within;
use plimsoll_fuzz::targets::ALL;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut entries: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    entries.sort();
    entries
}

/// The files below a directory. A corpus has links to directories of the source tree.
fn files(dir: &Path) -> Vec<PathBuf> {
    let (dirs, mut files): (Vec<_>, Vec<_>) = entries(dir).into_iter().partition(|e| e.is_dir());
    files.extend(dirs.iter().flat_map(|d| self::files(d)));
    files
}

#[test]
fn every_target_takes_its_corpus() {
    let mut failed = Vec::new();
    for (name, target) in ALL {
        for path in files(&corpora().join(name)) {
            let input = std::fs::read(&path).unwrap();
            let taken = catch_unwind(AssertUnwindSafe(|| within(|| target(&input))));
            if taken.is_err() {
                failed.push(path);
            }
        }
    }
    assert!(failed.is_empty(), "not taken: {failed:#?}");
}

#[test]
fn every_target_has_a_corpus() {
    let targets: Vec<PathBuf> = ALL.iter().map(|(name, _)| corpora().join(name)).collect();
    assert_eq!(
        entries(&corpora()),
        targets,
        "targets are in the order of their names"
    );
    for dir in targets {
        assert!(!files(&dir).is_empty(), "{} is empty", dir.display());
    }
}
