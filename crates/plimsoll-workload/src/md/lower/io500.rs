//! mdtest's and IOR's patterns as IO500 runs them.

use super::{
    LoweredPattern, RowTable, by, countable, object_step, parameter, pattern, row, squeeze, stage,
    template, worn_out,
};
use crate::md::options::{Io500, Options};
use plimsoll_plan::{
    ObjectLoop, ObjectOp, OnError, OpKind, Parameter, Pattern, RelPath, Rounds, Stage,
    StageProgress, StageWork, TransferLoop, TransferOrder, pattern_names,
};

/// Directory below the pattern's root that contains the directories and files of mdtest. The name `test-dir.0-0` is
/// also the name that mdtest uses.
pub(crate) const TEST_DIR: &str = "test-dir.0-0";

pub(super) fn mdtest(
    options: &Options,
    m: &Io500,
    ranks: u32,
    rows: &mut RowTable,
) -> Result<LoweredPattern, String> {
    let files = u128::from(m.number) * u128::from(ranks);
    countable("the number of files (-n · processes)", files)?;
    countable(
        "the bytes of all files",
        files.saturating_mul(u128::from(m.size)),
    )?;
    let (name, offset) = (options.arguments.pattern.as_str(), options.offset);
    let mut stages = vec![
        trees("make directories", true, rows),
        write(name, m, rows),
        visit(name, "stat", ObjectOp::Stat, offset, rows),
    ];
    if m.hard {
        stages.push(visit(name, "read", ObjectOp::Read, 2 * offset, rows));
    }
    stages.push(visit(name, "delete", ObjectOp::Delete, 3 * offset, rows));
    stages.push(trees("remove directories", false, rows));
    squeeze(&mut stages, options, false);
    let set_name = match m.hard {
        true => template(pattern_names::MDTEST_SHARED_SET),
        false => template(pattern_names::MDTEST_RANK_SET),
    };
    let below = RelPath::new(TEST_DIR).expect("a name without dots");
    Ok(LoweredPattern {
        title: match m.hard {
            true => "small files in one directory that all ranks share",
            false => "empty files in a directory for each rank",
        },
        notes: match m.number {
            0 => vec!["no file is made, looked at or removed (-n 0)"],
            _ => vec![],
        },
        pattern: Pattern {
            root: options.place.root.join(&below),
            set_name,
            object_name: template(pattern_names::MDTEST_OBJECT),
            set_shift: match m.hard {
                true => 0,
                false => offset.rem_euclid(i64::from(ranks)) as u32,
            },
            object_size: m.size,
            ..pattern(options, ranks, stages)
        },
        parameters: vec![
            parameter("files", m.number, 1_000_000, "files of a rank, at most"),
            stonewall(m),
            parameter("offset", offset, 1, "ranks from a phase to the next"),
        ],
    })
}

/// Work that only creates or only removes the directories of mdtest's trees, because mdtest does not count these
/// directories.
pub(crate) fn directories(make: bool, rows: &mut RowTable) -> ObjectLoop {
    ObjectLoop {
        make_sets: make.then(|| rows.id(row::MAKE_SET, OpKind::MakeDir)),
        remove_sets: (!make).then(|| rows.id(row::REMOVE_SET, OpKind::RemoveDir)),
        ..ObjectLoop::new(Rounds::Count(0), vec![])
    }
}

fn trees(name: &str, make: bool, rows: &mut RowTable) -> Stage {
    let work = StageWork::Objects(directories(make, rows));
    stage(name, work, OnError::Stop)
}

fn write(pattern: &str, m: &Io500, rows: &mut RowTable) -> Stage {
    let create = object_step(ObjectOp::Create { sync: false }, rows, by(0));
    let work = ObjectLoop {
        advances: StageProgress::Made,
        ..ObjectLoop::new(Rounds::Count(m.number), vec![create])
    };
    let name = format!("{pattern}-write");
    Stage {
        stonewall: worn_out(m.stonewall),
        ..stage(&name, StageWork::Objects(work), OnError::Stop)
    }
}

/// A stage in which each rank executes `op` once on every file of the rank that is `ahead` ranks further.
fn visit(pattern: &str, what: &str, op: ObjectOp, ahead: i64, rows: &mut RowTable) -> Stage {
    let step = object_step(op, rows, by(ahead));
    let work = ObjectLoop::new(Rounds::Made, vec![step]);
    let name = format!("{pattern}-{what}");
    stage(&name, StageWork::Objects(work), OnError::Stop)
}

pub(super) fn ior(
    options: &Options,
    i: &Io500,
    ranks: u32,
    rows: &mut RowTable,
) -> Result<LoweredPattern, String> {
    let bytes = u128::from(i.number) * u128::from(i.size) * u128::from(ranks);
    countable("the bytes of all transfers", bytes)?;
    let name = options.arguments.pattern.as_str();
    let mut parameters = vec![parameter(
        "transfers",
        i.number,
        if i.hard { 10_000_000 } else { 4_960_000 },
        "transfers of a rank, at most",
    )];
    if !i.hard {
        parameters.push(parameter(
            "transfer-size",
            i.size,
            2 << 20,
            "bytes of a transfer",
        ));
    }
    parameters.push(stonewall(i));
    parameters.push(parameter(
        "offset",
        options.offset,
        1,
        "ranks from writer to reader",
    ));
    let mut stages = vec![
        Stage {
            stonewall: worn_out(i.stonewall),
            ..transfers(&format!("{name}-write"), i, None, rows)
        },
        transfers(&format!("{name}-read"), i, Some(options.offset), rows),
    ];
    squeeze(&mut stages, options, false);
    let object_name = match i.hard {
        true => template(pattern_names::IOR_HARD_OBJECT),
        false => template(pattern_names::IOR_EASY_OBJECT),
    };
    Ok(LoweredPattern {
        title: match i.hard {
            true => "transfers of an odd size, strided over one file that all ranks share",
            false => "large sequential transfers, a file for each rank",
        },
        notes: match i.number {
            0 => vec!["nothing is written or read (--transfers 0)"],
            _ => vec![],
        },
        pattern: Pattern {
            object_name,
            ..pattern(options, ranks, stages)
        },
        parameters,
    })
}

/// A stage in which each rank writes its own file or part of the shared file, or reads the part of the rank that is
/// `read_ahead` ranks further.
///
/// No stage removes the files of IOR: another rank may still read the files, and IOR does not measure the removal. The
/// files are removed with the root of the pattern.
fn transfers(name: &str, i: &Io500, read_ahead: Option<i64>, rows: &mut RowTable) -> Stage {
    let write = read_ahead.is_none();
    let (transfer, kind, rounds) = match write {
        true => (row::WRITE, OpKind::Write, Rounds::Count(i.number)),
        false => (row::READ, OpKind::Read, Rounds::Made),
    };
    let work = TransferLoop {
        owner: by(read_ahead.unwrap_or(0)),
        write,
        size: i.size,
        rounds,
        block: 1,
        strided: i.hard,
        order: TransferOrder::Sequential,
        reorder: None,
        barriers: false,
        open: rows.id(row::OPEN, OpKind::Open),
        transfer: rows.id(transfer, kind),
        sync: write.then(|| rows.id(row::SYNC, OpKind::Fsync)),
        close: rows.id(row::CLOSE, OpKind::Close),
    };
    stage(name, StageWork::Transfers(work), OnError::Stop)
}

/// The parameter `stonewall-timer` of an mdtest or IOR pattern, in seconds; 0 without a stonewall.
fn stonewall(pattern: &Io500) -> Parameter {
    let seconds = pattern.stonewall.unwrap_or_default().as_secs_f64();
    let meaning = "time limit of writing in seconds; 0 for none";
    parameter("stonewall-timer", seconds, 300, meaning)
}
