//! The calls of the operations of a mix. In virtual time on the null target every call takes 10 ms, so the service time
//! of an operation shows the number of the operation's calls.
#![allow(missing_docs)]

mod common;
#[path = "common/mixes.rs"]
mod mixes;

use common::{row, run_virtually};
use mixes::{lasting, plan};
use plimsoll_engine::Outcome;
use plimsoll_plan::{Mix, MixOp, Plan, SizeTable, Spots};
use std::path::Path;
use std::time::Duration;

const KIB: u64 = 1 << 10;

/// Runs a mix with one worker for 40 s of virtual time.
fn run(ops: &[(MixOp, f64)], change: impl FnOnce(&mut Mix)) -> (Plan, Outcome) {
    let plan = plan(Path::new("/unused"), 1, ops, change);
    let plan = lasting(plan, Duration::from_secs(40));
    let outcome = run_virtually(&plan, "10ms");
    (plan, outcome)
}

/// The minimum and maximum number of calls of the operations of a row.
fn calls(plan: &Plan, outcome: &Outcome, name: &str) -> (u64, u64) {
    let service = &row(plan, outcome, name).service;
    // Service times have the precision of a histogram, so call numbers are rounded.
    let of = |ns: u64| (ns as f64 / 1e7).round() as u64;
    (of(service.min()), of(service.max()))
}

/// For a mix of one kind of operation: calls and bytes per operation, and preparations per operation.
fn one(op: MixOp, change: impl FnOnce(&mut Mix)) -> ((u64, u64), f64, f64) {
    let (plan, outcome) = run(&[(op, 100.0)], change);
    let done = row(&plan, &outcome, op.name());
    assert!(done.ops > 100, "{op}: {}", done.ops);
    let per_op = |n: f64| n / done.ops as f64;
    let prepared = row(&plan, &outcome, "prepare").ops;
    (
        calls(&plan, &outcome, op.name()),
        per_op(done.bytes as f64),
        per_op(prepared as f64),
    )
}

#[test]
fn operations_consist_of_their_calls() {
    use MixOp as O;
    for (op, count, bytes) in [
        (O::Read, 1, 8 * KIB),
        (O::Write, 1, 4 * KIB),
        (O::ReadRand, 1, 8 * KIB),
        (O::WriteRand, 1, 4 * KIB),
        (O::Rmw, 1, 8 * KIB),
        (O::MmapRead, 1, 8 * KIB),
        (O::MmapWrite, 1, 4 * KIB),
        (O::Lock, 1, 0),
        // Reading a whole file takes an open, eight reads, a read at the end of the file, and a close.
        (O::ReadFile, 11, 64 * KIB),
        (O::Append, 1, 4 * KIB),
        (O::Truncate, 1, 0),
        (O::Fsync, 1, 0),
        // Writing a whole file takes an open, two writes and a close.
        (O::WriteFile, 4, 8 * KIB),
        // Copying a file takes two opens, eight copies of a piece, a read at the end of the file, and two closes.
        (O::Copyfile, 13, 128 * KIB),
        (O::Unlink2, 1, 0),
        (O::Unlink, 1, 0),
        // Creating an empty file takes an open and a close.
        (O::Create, 2, 0),
        (O::Rename, 1, 0),
        (O::Mkdir, 1, 0),
        (O::Rmdir, 1, 0),
        (O::Stat, 1, 0),
        (O::NegStat, 1, 0),
        (O::Access, 1, 0),
        (O::Chmod, 1, 0),
        (O::Lookup, 1, 0),
        (O::Readlink, 1, 0),
        (O::Readdir, 1, 0),
        (O::Readdirplus, 1, 0),
        (O::Statfs, 1, 0),
        (O::Pathconf, 1, 0),
    ] {
        let (calls, moved, _) = one(op, |m| m.flags.overwrite = true);
        assert_eq!((calls, moved), ((count, count), bytes as f64), "{op}");
    }
}

#[test]
fn a_flush_follows_writes_by_its_percentage() {
    use MixOp as O;
    // A read-modify-write becomes stable by a flush, because the operation has no stable form of its own.
    for (op, count, stable, committed) in [
        (O::Write, 1, 1, 2),
        (O::WriteRand, 1, 1, 2),
        (O::Rmw, 1, 2, 2),
        (O::MmapWrite, 1, 1, 2),
        (O::Append, 1, 1, 2),
        (O::WriteFile, 4, 4, 5),
        (O::ReadRand, 1, 1, 1),
        (O::MmapRead, 1, 1, 1),
        (O::Lock, 1, 1, 1),
        (O::Truncate, 1, 1, 1),
        (O::Create, 2, 2, 2),
    ] {
        let with = |osync: f64, commit: f64| {
            one(op, |m| {
                m.flags.osync_percent = osync;
                m.flags.commit_percent = commit;
            })
            .0
        };
        assert_eq!(with(0.0, 0.0), (count, count), "{op}");
        assert_eq!(with(100.0, 0.0), (stable, stable), "{op}");
        assert_eq!(with(0.0, 100.0), (committed, committed), "{op}");
        assert_eq!(with(100.0, 100.0), (committed, committed), "{op}");
    }
    let (plan, outcome) = run(&[(O::WriteRand, 100.0)], |m| m.flags.commit_percent = 25.0);
    let service = &row(&plan, &outcome, "write_rand").service;
    // A quarter of the writes takes a second call of 10 ms, for the commit; five standard deviations of the mean of
    // 3200 writes are 0.4 ms.
    let mean = service.mean() / 1e6;
    assert!((mean - 12.5).abs() < 0.4, "{mean} ms");
}

#[test]
fn pieces_have_the_largest_length_of_the_tables() {
    use MixOp as O;
    let table = SizeTable::fixed;
    // A file of 64 KiB takes three reads and a read at the end; a file of 8 KiB takes two writes.
    assert_eq!(one(O::ReadFile, |m| m.reads = table(24 * KIB)).0, (6, 6));
    assert_eq!(one(O::Copyfile, |m| m.reads = table(24 * KIB)).0, (8, 8));
    assert_eq!(one(O::WriteFile, |m| m.writes = table(5 * KIB)).0, (4, 4));
    assert_eq!(one(O::WriteFile, |m| m.writes = table(8 * KIB)).0, (3, 3));
    // Direct transfers have whole blocks.
    let direct = |op: MixOp, length: u64| {
        one(op, |m| {
            m.flags.direct_percent = 100.0;
            m.reads = table(length);
            m.writes = table(length);
        })
    };
    assert_eq!(direct(O::ReadFile, 24 * KIB - 1).0, (6, 6));
    assert_eq!(direct(O::WriteFile, 4 * KIB - 1).0, (4, 4));
    for op in [O::ReadRand, O::WriteRand, O::Write] {
        let (calls, bytes, _) = direct(op, 1);
        assert_eq!(
            (calls, bytes),
            ((1, 1), plimsoll_plan::DIRECT_BLOCK as f64),
            "{op}"
        );
    }
    // Locks and mappings do not use direct I/O.
    assert_eq!(direct(O::MmapRead, 1).1, 1.0);
}

#[test]
fn preparations_are_what_the_name_or_the_descriptor_lacks() {
    use MixOp as O;
    let prepared = |op: MixOp, change: fn(&mut Mix)| {
        let (plan, outcome) = run(&[(op, 100.0)], change);
        let done = row(&plan, &outcome, op.name()).ops;
        let prepared = row(&plan, &outcome, "prepare").ops;
        (done, prepared, calls(&plan, &outcome, "prepare"))
    };
    // When the first names are used up, every operation needs the preparation of a name: a call, or an open, a write
    // and a close.
    for (op, count) in [
        (O::Unlink2, 3),
        (O::Unlink, 2),
        (O::Create, 1),
        (O::Mkdir, 1),
        (O::Rmdir, 1),
    ] {
        let (done, made, calls) = prepared(op, |_| ());
        assert_eq!(calls, (count, count), "{op}");
        assert!(
            made + 41 >= done && made < done + 2,
            "{op}: {made} for {done}"
        );
    }
    for op in [O::Rename, O::Stat, O::ReadFile, O::WriteFile, O::Copyfile] {
        assert_eq!(prepared(op, |_| ()).1, 0, "{op}");
    }
    // Each file of the working set is opened once if the slots suffice and files stay open, or else for each use.
    let (_, made, calls) = prepared(O::ReadRand, |m| m.working_set.millionths = 100_000);
    assert_eq!((made, calls), (10, (1, 1)));
    let (done, made, _) = prepared(O::ReadRand, |m| m.flags.keep_open = false);
    assert!(made.abs_diff(2 * done) <= 2, "{made} for {done}");
    // A file that is transferred with and without direct I/O needs two descriptors.
    let both = |m: &mut Mix| {
        m.working_set.millionths = 100_000;
        m.flags.direct_percent = 50.0;
    };
    assert_eq!(prepared(O::ReadRand, both).1, 20);
    // Without `overwrite`, a file is truncated before each round of 16 writes of 4 KiB.
    let (done, made, _) = prepared(O::Write, |m| {
        m.working_set.millionths = 10_000;
        m.flags.overwrite = false;
    });
    assert_eq!(made, 1 + done.div_ceil(16));
}

#[test]
fn percentages_of_direct_transfers_are_drawn() {
    // Transfers have one byte, except that direct transfers move a block.
    let (_, bytes, _) = one(MixOp::ReadRand, |m| {
        m.reads = SizeTable::fixed(1);
        m.flags.direct_percent = 30.0;
    });
    let share = (bytes - 1.0) / (plimsoll_plan::DIRECT_BLOCK as f64 - 1.0);
    // Five standard deviations of the share of direct reads among 4000 reads are 0.036.
    assert!((share - 0.3).abs() < 0.036, "{share}");
}

#[test]
fn spots_stay_in_their_files() {
    // A spot of four accesses covers a quarter of a file, so a file has sixteen accesses before the next file.
    let (plan, outcome) = run(&[(MixOp::ReadRand, 100.0)], |m| {
        m.flags.keep_open = true;
        m.working_set.spots = Some(Spots {
            percent: 25.0,
            accesses: 4,
            multiplier: 1,
            affinity: 100.0,
            geometric: false,
        });
    });
    let done = row(&plan, &outcome, "read_rand").ops;
    let opened = row(&plan, &outcome, "prepare").ops;
    // Only 32 of 100 files stay open, so the use of another file opens this file and closes a file.
    let files = done.div_ceil(16);
    assert!(
        opened.abs_diff(2 * files - 32) <= 3,
        "{opened} for {files} files"
    );
}
