//! mdtest's patterns as IO500 runs them.

use super::{
    LoweredPattern, RowTable, by, countable, object_step, parameter, pattern, row, squeeze, stage,
    stonewall_parameter, template, worn_out,
};
use crate::md::options::{Mdtest, Options};
use plimsoll_plan::{
    ObjectLoop, ObjectOp, OnError, OpKind, Parameter, Pattern, RelPath, Rounds, Stage,
    StageProgress, StageWork, pattern_names,
};

/// The directory below the root in which mdtest works.
const TEST_DIR: &str = "test-dir.0-0";

pub(super) fn lower(
    options: &Options,
    m: &Mdtest,
    ranks: u32,
    rows: &mut RowTable,
) -> Result<LoweredPattern, String> {
    let files = u128::from(m.files) * u128::from(ranks);
    countable("the number of files (-n · processes)", files)?;
    countable(
        "the bytes of all files",
        files.saturating_mul(u128::from(m.size)),
    )?;
    let (name, offset) = (options.name().as_str(), options.offset);
    let mut stages = vec![
        directories("make directories", true, rows),
        write(name, m, rows),
        visit(name, "stat", ObjectOp::Stat, offset, rows),
    ];
    if m.hard {
        stages.push(visit(name, "read", ObjectOp::Read, 2 * offset, rows));
    }
    stages.push(visit(name, "delete", ObjectOp::Delete, 3 * offset, rows));
    stages.push(directories("remove directories", false, rows));
    squeeze(&mut stages, options, false);
    let set_name = match m.hard {
        true => template(pattern_names::MDTEST_HARD_SET),
        false => template(pattern_names::MDTEST_EASY_SET),
    };
    let below = RelPath::new(TEST_DIR).expect("a name without dots");
    Ok(LoweredPattern {
        title: match m.hard {
            true => "small files in one directory that all ranks share",
            false => "empty files in a directory for each rank",
        },
        notes: match m.files {
            0 => vec!["no file is made, looked at or removed (-n 0)"],
            _ => vec![],
        },
        pattern: Pattern {
            root: options.place.root.join(&below),
            set_name,
            object_name: template(pattern_names::MDTEST_OBJECT),
            object_size: m.size,
            ..pattern(options, ranks, stages)
        },
        parameters: parameters(options, m),
    })
}

/// A stage that only creates or removes the directories; mdtest does not count directories as files.
fn directories(name: &str, make: bool, rows: &mut RowTable) -> Stage {
    let work = ObjectLoop {
        make_sets: make.then(|| rows.id(row::MAKE_SET, OpKind::MakeDir)),
        remove_sets: (!make).then(|| rows.id(row::REMOVE_SET, OpKind::RemoveDir)),
        ..ObjectLoop::new(Rounds::Count(0), vec![])
    };
    stage(name, StageWork::Objects(work), OnError::Stop)
}

fn write(pattern: &str, m: &Mdtest, rows: &mut RowTable) -> Stage {
    let create = object_step(ObjectOp::Create { sync: false }, rows, by(0));
    let work = ObjectLoop {
        advances: StageProgress::Made,
        ..ObjectLoop::new(Rounds::Count(m.files), vec![create])
    };
    let name = format!("{pattern}-write");
    Stage {
        stonewall: worn_out(m.stonewall),
        ..stage(&name, StageWork::Objects(work), OnError::Stop)
    }
}

/// An operation on every file of the rank at distance `ahead`.
fn visit(pattern: &str, what: &str, op: ObjectOp, ahead: i64, rows: &mut RowTable) -> Stage {
    let step = object_step(op, rows, by(ahead));
    let work = ObjectLoop::new(Rounds::Made, vec![step]);
    let name = format!("{pattern}-{what}");
    stage(&name, StageWork::Objects(work), OnError::Stop)
}

fn parameters(options: &Options, m: &Mdtest) -> Vec<Parameter> {
    let meaning = "ranks from a phase to the next";
    vec![
        parameter("files", m.files, 1_000_000, "files of a rank, at most"),
        stonewall_parameter(m.stonewall),
        parameter("offset", options.offset, 1, meaning),
    ]
}
