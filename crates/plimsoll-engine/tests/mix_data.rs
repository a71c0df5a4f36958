//! Effects of each kind of operation of a mix on files: sizes, bytes, preparations.
#![allow(missing_docs)]

mod common;
#[path = "common/mixes.rs"]
mod mixes;

use common::{row, run_ok, run_virtually};
use mixes::{lasting, paced, plan, tree};
use plimsoll_engine::Outcome;
use plimsoll_plan::{
    Arrivals, FilesetId, Layout, Mix, MixOp, OpsLimit, Plan, QuitMode, SizeSlot, SizeTable, Value,
};
use std::path::Path;
use std::time::Duration;

const KIB: u64 = 1 << 10;

fn tmpfs() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// The Plan of one worker that executes an operation `count` times; the files are kept.
fn doing(dir: &Path, op: MixOp, count: u64, change: impl FnOnce(&mut Mix)) -> Plan {
    let mut plan = plan(dir, 1, &[(op, 100.0)], change);
    plan.options.keep = true;
    plan.options.ops = Some(OpsLimit::PerWorker(count));
    plan.quit = QuitMode::AllDone;
    lasting(plan, Duration::from_secs(60))
}

/// The Plan of [`doing`], on a working set of one file of 64 KiB.
fn on_one_file(dir: &Path, op: MixOp, count: u64, change: impl FnOnce(&mut Mix)) -> Plan {
    doing(dir, op, count, |m| {
        m.working_set.millionths = 10_000;
        change(m);
    })
}

/// Operations and bytes of the row of an operation, and the number of preparations.
fn counts(plan: &Plan, outcome: &Outcome, op: MixOp) -> (u64, u64, u64) {
    let done = row(plan, outcome, op.name());
    assert_eq!(done.error_count(), 0, "{op}");
    (
        done.ops,
        done.bytes as u64,
        row(plan, outcome, "prepare").ops,
    )
}

fn run(plan: &Plan, op: MixOp) -> (u64, u64, u64) {
    counts(plan, &run_ok(plan).0, op)
}

/// The number of files of a fileset that exist when the run begins.
fn initially(plan: &Plan, set: FilesetId) -> u64 {
    let layout = Layout::new(plan, set).unwrap();
    let words = (0..layout.files().div_ceil(64)).map(|at| layout.initial_files(at));
    words.map(|w| u64::from(w.count_ones())).sum()
}

/// The number of leaf directories that exist when the run begins.
fn initial_dirs(plan: &Plan) -> u64 {
    let layout = Layout::new(plan, mixes::DATA).unwrap();
    let words = (0..layout.leaf_dirs().div_ceil(64)).map(|at| layout.initial_leaf_dirs(at));
    words.map(|w| u64::from(w.count_ones())).sum()
}

/// Sizes of the data files whose size is not 64 KiB.
fn changed(dir: &Path) -> Vec<u64> {
    let sizes = tree(&dir.join("data")).into_values();
    sizes.filter(|n| *n != 64 * KIB).collect()
}

#[test]
fn sequential_reads_end_with_the_file() {
    let dir = tmpfs();
    let plan = on_one_file(dir.path(), MixOp::Read, 7, |m| {
        m.reads = SizeTable::fixed(24 << 10)
    });
    // Each of two rounds reads the file of 64 KiB in pieces of 24, 24 and 16 KiB; the third round has one read of 24
    // KiB.
    assert_eq!(run(&plan, MixOp::Read), (7, (2 * 64 + 24) * KIB, 1));
}

#[test]
fn sequential_writes_end_with_the_file() {
    let dir = tmpfs();
    let writes = |m: &mut Mix| {
        m.writes = SizeTable::fixed(24 << 10);
        m.flags.overwrite = true;
    };
    let plan = on_one_file(dir.path(), MixOp::Write, 7, writes);
    assert_eq!(run(&plan, MixOp::Write), (7, (2 * 64 + 24) * KIB, 1));
    assert_eq!(changed(dir.path()), [0; 0]);
}

#[test]
fn files_that_are_not_overwritten_are_cut_first() {
    let dir = tmpfs();
    let plan = on_one_file(dir.path(), MixOp::Write, 7, |m| {
        m.writes = SizeTable::fixed(24 << 10);
        m.flags.overwrite = false;
    });
    // The four preparations are an open of the file, and a truncation before each of three rounds of writes.
    assert_eq!(run(&plan, MixOp::Write), (7, (2 * 64 + 24) * KIB, 4));
    assert_eq!(changed(dir.path()), [24 * KIB]);
}

#[test]
fn empty_files_take_writes_of_any_length() {
    let dir = tmpfs();
    let mut plan = on_one_file(dir.path(), MixOp::Write, 5, |m| m.flags.overwrite = true);
    plan.filesets[0].size = Value::Const(0);
    assert_eq!(run(&plan, MixOp::Write), (5, 5 * 4 * KIB, 1));
    let sizes: Vec<u64> = tree(&dir.path().join("data"))
        .into_values()
        .filter(|n| *n > 0)
        .collect();
    assert_eq!(sizes, [4 * KIB], "each is at offset 0");
}

#[test]
fn appends_double_a_file_at_most() {
    let dir = tmpfs();
    let plan = on_one_file(dir.path(), MixOp::Append, 10, |m| {
        m.writes = SizeTable::fixed(16 << 10)
    });
    // Four appends double the file; the fifth and the ninth append follow a truncation to 64 KiB.
    assert_eq!(run(&plan, MixOp::Append), (10, 160 * KIB, 3));
    assert_eq!(changed(dir.path()), [96 * KIB]);
    let dir = tmpfs();
    let mut plan = on_one_file(dir.path(), MixOp::Append, 7, |m| {
        m.writes = SizeTable::fixed(16 << 10)
    });
    plan.filesets[0].size = Value::Const(4 << 10);
    // For appends longer than the file the size limit is twice the append, so every append but the first follows a
    // truncation to 4 KiB; an operation that the limit of operations then stops is prepared too.
    assert_eq!(run(&plan, MixOp::Append), (7, 112 * KIB, 8));
    assert!(
        tree(&dir.path().join("data"))
            .into_values()
            .all(|n| n == 4 * KIB)
    );
}

#[test]
fn truncations_have_every_aligned_size() {
    let dir = tmpfs();
    let plan = doing(dir.path(), MixOp::Truncate, 3000, |m| {
        m.flags.align = 8 << 10
    });
    let (ops, bytes, prepared) = run(&plan, MixOp::Truncate);
    assert_eq!((ops, bytes), (3000, 0));
    assert!(prepared > 100, "an open of each file");
    let sizes: std::collections::BTreeSet<u64> =
        tree(&dir.path().join("data")).into_values().collect();
    assert_eq!(sizes, (0..=8).map(|n| n * 8 * KIB).collect());
}

#[test]
fn random_transfers_have_their_length_and_leave_the_size() {
    for (op, bytes) in [
        (MixOp::ReadRand, 8 * KIB),
        (MixOp::WriteRand, 4 * KIB),
        // A read-modify-write counts its bytes twice, because the bytes are read and written.
        (MixOp::Rmw, 2 * 4 * KIB),
        (MixOp::MmapRead, 8 * KIB),
        (MixOp::MmapWrite, 4 * KIB),
        (MixOp::Lock, 0),
    ] {
        let dir = tmpfs();
        let plan = on_one_file(dir.path(), op, 50, |m| {
            m.flags.osync_percent = 50.0;
            m.flags.commit_percent = 50.0;
        });
        assert_eq!(run(&plan, op), (50, 50 * bytes, 1), "{op}");
        assert_eq!(changed(dir.path()), [0; 0], "{op}");
    }
}

#[test]
fn an_empty_file_is_lengthened_before_it_is_mapped_and_by_random_writes() {
    for (op, bytes, prepared) in [
        (MixOp::MmapRead, 8 * KIB, 2),
        (MixOp::MmapWrite, 4 * KIB, 2),
        (MixOp::WriteRand, 4 * KIB, 1),
    ] {
        let dir = tmpfs();
        let mut plan = on_one_file(dir.path(), op, 5, |_| ());
        plan.filesets[0].size = Value::Const(0);
        assert_eq!(run(&plan, op), (5, 5 * bytes, prepared), "{op}");
        let sizes: Vec<u64> = tree(&dir.path().join("data"))
            .into_values()
            .filter(|n| *n > 0)
            .collect();
        assert_eq!(sizes, [bytes], "{op}");
    }
    // A random read or read-modify-write of an empty file moves no bytes.
    for op in [MixOp::ReadRand, MixOp::Rmw] {
        let dir = tmpfs();
        let mut plan = on_one_file(dir.path(), op, 5, |_| ());
        plan.filesets[0].size = Value::Const(0);
        assert_eq!(run(&plan, op), (5, 0, 1), "{op}");
    }
}

#[test]
fn whole_files_are_read_written_and_copied_in_pieces_of_the_largest_length() {
    let slot = |min, max, percent| SizeSlot { min, max, percent };
    let table = SizeTable(vec![slot(512, 512, 99.0), slot(60_000, 60_000, 1.0)]);
    for (op, bytes) in [
        (MixOp::ReadFile, 64 * KIB),
        (MixOp::WriteFile, 8 * KIB),
        (MixOp::Copyfile, 2 * 64 * KIB),
    ] {
        let dir = tmpfs();
        let plan = doing(dir.path(), op, 30, |m| {
            m.reads = table.clone();
            m.writes = table.clone();
        });
        assert_eq!(run(&plan, op), (30, 30 * bytes, 0), "{op}");
        assert_eq!(changed(dir.path()), [0; 0], "{op}");
        let turnover = tree(&dir.path().join("turnover"));
        // Missing turnover files are used first, and are fewer than the operations.
        let there = match op {
            MixOp::ReadFile => initially(&plan, mixes::TURNOVER),
            _ => 40,
        };
        assert_eq!(turnover.len() as u64, there, "{op}");
        let copies = turnover.values().filter(|n| **n == 64 * KIB).count();
        let copied = if op == MixOp::Copyfile {
            20..=30
        } else {
            0..=0
        };
        assert!(copied.contains(&copies), "{op}: {copies}");
    }
}

#[test]
fn names_come_and_go() {
    use MixOp as O;
    let there = |dir: &Path, set: &str, size: u64| {
        let files = tree(&dir.join(set));
        assert!(files.values().all(|n| *n == size), "{files:?}");
        files.len() as u64
    };
    let leaf_dirs = |dir: &Path| {
        let mut found = 0;
        let mut left = vec![dir.join("data")];
        while let Some(dir) = left.pop() {
            let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
            let entries: Vec<_> = entries.collect();
            found += u64::from(entries.is_empty());
            left.extend(entries.into_iter().filter(|p| p.is_dir()));
        }
        found
    };
    for op in [
        O::Unlink2,
        O::Unlink,
        O::Create,
        O::Mkdir,
        O::Rmdir,
        O::Rename,
    ] {
        for ops in [12, 30] {
            let dir = tmpfs();
            let plan = doing(dir.path(), op, ops, |_| ());
            let names = [
                initially(&plan, mixes::TURNOVER),
                initially(&plan, mixes::EMPTY),
                initial_dirs(&plan),
            ];
            assert!(
                names[..2].iter().all(|n| (13..28).contains(n)),
                "about half of 40: {names:?}"
            );
            let changed = match op {
                O::Unlink2 => Some(0),
                O::Unlink | O::Create => Some(1),
                O::Mkdir | O::Rmdir => Some(2),
                _ => None,
            };
            let makes = matches!(op, O::Create | O::Mkdir);
            let (mut want, mut prepared) = (names, 0);
            if let Some(at) = changed {
                // Operations use up the existing or missing names; each further operation, and an operation that the
                // limit of operations stops, is prepared by creating or removing a name.
                let free = if makes { 40 - names[at] } else { names[at] };
                prepared = (ops + 1).saturating_sub(free);
                let left = if prepared > 0 { 1 } else { free - ops };
                want[at] = if makes { 40 - left } else { left };
            }
            assert_eq!(run(&plan, op), (ops, 0, prepared), "{op} {ops}");
            let found = [
                there(dir.path(), "turnover", 8 * KIB),
                there(dir.path(), "empty", 0),
                leaf_dirs(dir.path()),
            ];
            assert_eq!(found, want, "{op} {ops}");
        }
    }
}

#[test]
fn a_rename_needs_a_free_name_and_a_taken_one() {
    // If all files or no files exist, a file is removed or created before the first rename.
    for (percent, left) in [(100, 39), (0, 1)] {
        let dir = tmpfs();
        let mut plan = doing(dir.path(), MixOp::Rename, 10, |_| ());
        plan.filesets[1].prealloc_percent = percent;
        assert_eq!(run(&plan, MixOp::Rename), (10, 0, 1));
        let turnover = tree(&dir.path().join("turnover"));
        assert_eq!(turnover.len(), left);
        assert!(turnover.values().all(|n| *n == 8 * KIB));
    }
}

#[test]
fn turnover_files_that_are_created_on_the_way_are_small() {
    let dir = tmpfs();
    let mut plan = doing(dir.path(), MixOp::Rename, 1, |_| ());
    plan.filesets[1].prealloc_percent = 0;
    plan.filesets[1].size = Value::Const(200 << 10);
    plan.groups[0].memory = 256 << 10;
    run(&plan, MixOp::Rename);
    let sizes: Vec<u64> = tree(&dir.path().join("turnover")).into_values().collect();
    assert_eq!(sizes, [64 * KIB]);
}

#[test]
fn queries_move_what_a_directory_has() {
    use std::os::unix::fs::PermissionsExt;
    for op in [
        MixOp::Stat,
        MixOp::NegStat,
        MixOp::Access,
        MixOp::Statfs,
        MixOp::Pathconf,
        MixOp::Chmod,
        MixOp::Readdir,
    ] {
        let dir = tmpfs();
        let plan = doing(dir.path(), op, 400, |_| ());
        let (ops, bytes, prepared) = run(&plan, op);
        assert_eq!((ops, prepared), (400, 0), "{op}");
        assert_eq!(bytes > 0, op == MixOp::Readdir, "{op}: {bytes}");
        let files = tree(&dir.path().join("data"));
        assert_eq!(files.len(), 100, "{op}");
        let modes = files
            .keys()
            .map(|p| p.metadata().unwrap().permissions().mode() & 0o777);
        let private = modes.filter(|m| *m == 0o600).count();
        // About half of the files had the mode 600 as the last of two modes.
        let range = if op == MixOp::Chmod { 25..75 } else { 0..1 };
        assert!(range.contains(&private), "{op}: {private}");
    }
}

#[test]
fn files_are_opened_once_or_at_each_use() {
    let prepared = |count: u64, keep_open: bool, files: u32| {
        let dir = tmpfs();
        let plan = doing(dir.path(), MixOp::ReadRand, count, |m| {
            m.working_set.millionths = files * 10_000;
            m.flags.keep_open = keep_open;
        });
        run(&plan, MixOp::ReadRand).2
    };
    assert_eq!(prepared(50, true, 1), 1);
    // An operation that the limit of operations stops is prepared too.
    assert_eq!(prepared(50, false, 1), 51 + 50, "opens and closes");
    assert_eq!(prepared(300, true, 10), 10);
    // With more files than slots, some files are closed so that other files can be opened.
    let some = prepared(300, true, 100);
    assert!((300..600).contains(&some), "{some}");
}

#[test]
fn a_delay_follows_each_operation() {
    let dir = tmpfs();
    let delayed = |m: &mut Mix| m.delay = Duration::from_millis(40);
    let free = plan(dir.path(), 3, &[(MixOp::Stat, 100.0)], delayed);
    let free = lasting(free, Duration::from_secs(10));
    let outcome = run_virtually(&free, "10ms");
    // Each of three workers executes an operation of 10 ms every 50 ms.
    let stat = row(&free, &outcome, "stat");
    assert_eq!(stat.ops, 3 * 200);
    assert!(outcome.processes.iter().all(|p| p.counts.completed == 200));
}

#[test]
fn operations_are_drawn_by_their_percentages() {
    let dir = tmpfs();
    let all = [
        (MixOp::Stat, 50.0),
        (MixOp::Statfs, 30.0),
        (MixOp::Pathconf, 19.0),
        (MixOp::NegStat, 1.0),
    ];
    let plan = lasting(plan(dir.path(), 1, &all, |_| ()), Duration::from_secs(100));
    let outcome = run_virtually(&plan, "5ms");
    let total = 20_000.0;
    for (op, percent) in all {
        let n = row(&plan, &outcome, op.name()).ops as f64;
        let mean = total * percent / 100.0;
        // The tolerance is five standard deviations of a count.
        assert!((n - mean).abs() <= 5.0 * mean.sqrt(), "{op}: {n} of {mean}");
    }
}

#[test]
fn operations_beyond_a_limit_are_not_scheduled() {
    let limited = plan(Path::new("/unused"), 2, &[(MixOp::Stat, 100.0)], |_| ());
    let mut limited = paced(limited, 10.0, Arrivals::Constant);
    limited.options.ops = Some(OpsLimit::PerWorker(50));
    limited.quit = QuitMode::AllDone;
    let limited = lasting(limited, Duration::from_secs(60));
    let outcome = run_virtually(&limited, "10ms");
    // Of the 600 operations that are due in 60 s, the limit of operations allows 50; one more operation is scheduled
    // and then not executed.
    for p in &outcome.processes {
        assert_eq!(
            (p.counts.completed, p.counts.scheduled, p.counts.dropped),
            (50, 51, 0),
            "{p:?}"
        );
    }
}
