//! Trees that grow from load point to load point.
#![allow(missing_docs)]

mod common;
#[path = "common/mixes.rs"]
mod mixes;

use common::{run_ok, try_run};
use mixes::{DATA, EMPTY, TURNOVER, lasting, plan};
use plimsoll_engine::{Settings, Stop};
use plimsoll_plan::{BusinessMetric, Criteria, FilesetId, Layout, MixOp, OpsLimit, Plan, QuitMode};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A Plan of four business metrics of one process each, whose trees grow and stay; each process executes `each`
/// operations.
fn greatest(dir: &Path, ops: &[(MixOp, f64)], each: u64) -> Plan {
    let mut plan = plan(dir, 4, ops, |_| ());
    for fileset in &mut plan.filesets {
        fileset.grows = true;
    }
    plan.metric = Some(BusinessMetric {
        name: "users".into(),
        load: 4,
        scale: 1.0,
        data: 25 * (64 << 10),
        rate: None,
        criteria: Criteria::default(),
    });
    plan.options.keep = true;
    plan.options.ops = Some(OpsLimit::PerWorker(each));
    plan.quit = QuitMode::AllDone;
    lasting(plan, Duration::from_secs(60))
}

/// Files that a Plan begins with and their sizes, computed from its layouts.
fn expected(plan: &Plan, share: (u64, u64)) -> BTreeMap<PathBuf, u64> {
    let mut all = BTreeMap::new();
    for id in [DATA, TURNOVER, EMPTY] {
        let layout = Layout::new(plan, id).unwrap();
        let part = u64::from(layout.files()) * share.0 / share.1;
        for file in (0..part as u32).map(plimsoll_plan::FileId) {
            if layout.starts_with(file) {
                let mut path = Vec::new();
                layout.push_file(file, &mut path);
                let path = plan.work_dir.dir.join(String::from_utf8(path).unwrap());
                all.insert(path, layout.size(file));
            }
        }
    }
    all
}

/// Spare directories that a Plan begins with.
fn expected_spare(plan: &Plan, share: (u64, u64)) -> BTreeSet<PathBuf> {
    let layout = Layout::new(plan, DATA).unwrap();
    let part = u64::from(layout.leaf_dirs()) * share.0 / share.1;
    let spare = (0..part as u32).filter(|d| layout.starts_with_leaf_dir(*d));
    let path = |d| {
        let mut path = Vec::new();
        layout.push_leaf_dir(d, &mut path);
        plan.work_dir.dir.join(String::from_utf8(path).unwrap())
    };
    spare.map(path).collect()
}

/// Size and inode of each file below a directory, without markers; the inode distinguishes a file that stayed from a
/// file that was created again.
fn files(dir: &Path) -> BTreeMap<PathBuf, (u64, u64)> {
    let mut all = BTreeMap::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let (path, meta) = entry.map(|e| (e.path(), e.metadata().unwrap())).unwrap();
            match meta.is_dir() {
                true => left.push(path),
                false if path.ends_with(".plimsoll") => {}
                false => drop(all.insert(path, (meta.len(), meta.ino()))),
            }
        }
    }
    all
}

fn sizes(found: &BTreeMap<PathBuf, (u64, u64)>) -> BTreeMap<PathBuf, u64> {
    found
        .iter()
        .map(|(p, (len, _))| (p.clone(), *len))
        .collect()
}

fn tmpfs() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

const STAT_ONLY: &[(MixOp, f64)] = &[(MixOp::Stat, 100.0)];

#[test]
fn a_point_makes_the_files_it_needs_that_are_not_there() {
    let dir = tmpfs();
    let plan = greatest(dir.path(), STAT_ONLY, 10);
    let mut before = BTreeMap::new();
    for load in 1..=4 {
        let point = plan.at_load(load).unwrap();
        let (outcome, _) = run_ok(&point);
        let found = files(dir.path());
        assert_eq!(sizes(&found), expected(&plan, (load, 4)), "load {load}");
        for (path, was) in &before {
            assert_eq!(found.get(path), Some(was), "{path:?} was made again");
        }
        let made: u64 = outcome.populated.iter().map(|p| p.files).sum();
        assert_eq!(made, found.len() as u64);
        assert!(outcome.populated.iter().all(|p| !p.reused));
        before = found;
    }
    // A second run of the highest load creates no file.
    let (outcome, _) = run_ok(&plan);
    assert!(outcome.populated.iter().all(|p| p.reused));
    assert_eq!(files(dir.path()), before);
    // A run of a lower load reuses the files and removes none.
    run_ok(&plan.at_load(2).unwrap());
    assert_eq!(files(dir.path()), before);
    // A cleanup leaves an empty directory.
    plimsoll_engine::clean(dir.path(), &Settings::default(), false, &Stop::default()).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_claim_ends_with_the_files_or_without_them() {
    let root = tmpfs();
    let dir = root.path().join("work");
    let end = |keeps| {
        let ended = plimsoll_engine::end_claim(&dir, &Settings::default(), keeps, &Stop::default())
            .unwrap();
        assert_eq!(ended.unremoved, [""; 0]);
    };
    // No run of this process has claimed the directory yet, so `end_claim` has nothing to release or remove.
    end(true);
    end(false);
    let plan = greatest(&dir, STAT_ONLY, 10);
    run_ok(&plan);
    let before = files(&dir);
    assert!(!before.is_empty());
    end(true);
    assert_eq!(files(&dir), before);
    end(false);
    assert!(!dir.exists());
}

#[test]
fn changes_by_a_load_or_by_others_are_repaired_before_the_next() {
    let dir = tmpfs();
    let ops: &[(MixOp, f64)] = &[
        (MixOp::Append, 20.0),
        (MixOp::Unlink, 10.0),
        (MixOp::WriteFile, 10.0),
        (MixOp::Rename, 10.0),
        (MixOp::Create, 10.0),
        (MixOp::Unlink2, 10.0),
        (MixOp::Mkdir, 10.0),
        (MixOp::Rmdir, 10.0),
        (MixOp::Truncate, 10.0),
    ];
    let busy = greatest(dir.path(), ops, 200);
    run_ok(&busy.at_load(2).unwrap());
    let changed = files(dir.path());
    assert_ne!(sizes(&changed), expected(&busy, (2, 4)));
    // After the run, another program overwrites a data file with 5 bytes and removes a data file.
    let data: Vec<&PathBuf> = expected(&busy, (2, 4))
        .keys()
        .filter(|p| p.to_str().unwrap().contains("/data/"))
        .take(2)
        .map(|p| changed.get_key_value(p).unwrap().0)
        .collect();
    std::fs::write(data[0], b"short").unwrap();
    std::fs::remove_file(data[1]).unwrap();
    // The Plan `calm` has the trees of `busy`, and no operation that changes the trees.
    let calm = greatest(dir.path(), STAT_ONLY, 10);
    let (outcome, _) = run_ok(&calm.at_load(3).unwrap());
    assert_eq!(sizes(&files(dir.path())), expected(&busy, (3, 4)));
    assert!(outcome.populated.iter().all(|p| !p.reused));
    let spare: BTreeSet<PathBuf> = expected_spare(&calm, (1, 1));
    let there: BTreeSet<PathBuf> = spare.iter().filter(|p| p.is_dir()).cloned().collect();
    assert_eq!(there, expected_spare(&calm, (3, 4)));
}

#[test]
fn a_directory_that_is_gone_comes_back_and_a_stranger_is_refused() {
    let dir = tmpfs();
    let plan = greatest(dir.path(), STAT_ONLY, 10);
    run_ok(&plan.at_load(2).unwrap());
    let (first, _) = files(dir.path()).pop_first().unwrap();
    std::fs::remove_dir_all(first.parent().unwrap()).unwrap();
    run_ok(&plan.at_load(2).unwrap());
    assert_eq!(sizes(&files(dir.path())), expected(&plan, (2, 4)));
    std::fs::remove_file(&first).unwrap();
    std::fs::create_dir(&first).unwrap();
    let (outcome, _) = try_run(&plan.at_load(2).unwrap(), "posix").unwrap();
    let error = outcome.failure.expect("it could not be carried out").error;
    assert!(error.contains(first.to_str().unwrap()), "{error}");
    assert!(first.is_dir());
}

#[test]
fn a_tree_of_another_layout_is_recreated() {
    let dir = tmpfs();
    let plan = greatest(dir.path(), STAT_ONLY, 10);
    run_ok(&plan.at_load(2).unwrap());
    let before = files(dir.path());
    let mut other = plan.clone();
    other.seed += 1;
    other.filesets[0].entries = 80;
    run_ok(&other.at_load(1).unwrap());
    let after = files(dir.path());
    assert_eq!(sizes(&after), expected(&other, (1, 4)));
    let data = |all: &BTreeMap<PathBuf, (u64, u64)>| all.len();
    assert!(data(&after) < data(&before));
    // A run whose tree does not grow does not reuse a growing tree.
    let mut whole = other.clone();
    whole.filesets.iter_mut().for_each(|f| f.grows = false);
    let (outcome, _) = run_ok(&whole);
    assert!(outcome.populated.iter().all(|p| !p.reused));
    assert_eq!(sizes(&files(dir.path())), expected(&whole, (1, 1)));
}

#[test]
fn what_a_point_needs_is_what_is_not_there() {
    let dir = tmpfs();
    let plan = greatest(dir.path(), STAT_ONLY, 10);
    let need = |load: u64| {
        let point = plan.at_load(load).unwrap();
        let look = plimsoll_engine::preflight(&point, &Settings::default()).unwrap();
        assert_eq!(look.refusals, [] as [String; 0]);
        (look.bytes_needed.bytes, look.reusable)
    };
    let data = |load: u128| 25 * (64 << 10) * load;
    let (bytes, _) = need(4);
    assert!((data(4)..data(5)).contains(&bytes), "{bytes}");
    run_ok(&plan.at_load(3).unwrap());
    assert_eq!(need(3), (0, vec![true; 3]));
    let (bytes, reusable) = need(4);
    assert!((data(1)..data(2)).contains(&bytes), "{bytes}");
    assert_eq!(reusable, [false; 3]);
}

#[test]
fn a_load_is_a_part_of_the_greatest() {
    let plan = greatest(Path::new("/nowhere"), STAT_ONLY, 1);
    for load in [0, 5, u64::MAX] {
        assert_eq!(plan.at_load(load), None);
    }
    assert_eq!(plan.at_load(4).as_ref(), Some(&plan));
    let one = plan.at_load(1).unwrap();
    assert_eq!((one.workers(), one.metric.as_ref().unwrap().load), (1, 1));
    assert_eq!(one.files_used(DATA), 0..25);
    assert_eq!(one.leaf_dirs_used(DATA), 0..10);
    assert_eq!(one.leaf_dirs_used(FilesetId(1)), 0..0);
    one.check().unwrap();
    assert_eq!(Plan::empty("nothing").at_load(1), None);
}
