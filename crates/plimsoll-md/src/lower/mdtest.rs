//! mdtest's patterns as IO500 runs them.

use super::{
    RowTable, by, countable, memory, parameter, row, samples, squeeze, stage, template, text,
};
use crate::options::{Mdtest, Options};
use plimsoll_plan::{
    NamePiece, ObjectLoop, ObjectOp, ObjectStep, OnError, OpKind, Parameter, Pattern, RelPath,
    RootHandling, Rounds, Stage, StageProgress, StageWork, Stonewall,
};

/// Directory below the root that mdtest works in.
const TEST_DIR: &str = "test-dir.0-0";

pub(super) fn pattern(
    options: &Options,
    m: &Mdtest,
    ranks: u32,
    rows: &mut RowTable,
) -> Result<Pattern, String> {
    let files = u128::from(m.files) * u128::from(ranks);
    countable("the number of files (-n · processes)", files)?;
    countable(
        "the bytes of all files",
        files.saturating_mul(u128::from(m.size)),
    )?;
    let name = options.name().as_str();
    let mut stages = vec![
        directories("make directories", true, rows),
        write(name, m, rows),
        visit(name, "stat", ObjectOp::Stat, options.offset, rows),
    ];
    if m.hard {
        stages.push(visit(
            name,
            "read",
            ObjectOp::Read,
            2 * options.offset,
            rows,
        ));
    }
    stages.push(visit(
        name,
        "delete",
        ObjectOp::Delete,
        3 * options.offset,
        rows,
    ));
    stages.push(directories("remove directories", false, rows));
    squeeze(&mut stages, options, false);
    let set_name = if m.hard {
        template([text("mdtest_tree.0")])
    } else {
        template([text("mdtest_tree."), NamePiece::Rank(1), text(".0")])
    };
    let below = RelPath::new(TEST_DIR).map_err(|e| e.to_string())?;
    Ok(Pattern {
        root: options.place.root.join(&below),
        root_is: RootHandling::New,
        leaves_objects: false,
        set_name,
        object_name: template([
            text("file.mdtest."),
            NamePiece::Rank(1),
            text("."),
            NamePiece::Object,
        ]),
        ranks,
        sets: 1,
        objects: 0,
        object_size: m.size,
        position: 0,
        positions: vec![],
        verify: options.verify,
        content: options.content,
        direct: options.direct,
        samples: samples(options),
        hold_memory: memory(options.hold_memory_mib),
        stages,
    })
}

/// Directories are made and removed in stages of their own: mdtest does not count them as files.
fn directories(name: &str, make: bool, rows: &mut RowTable) -> Stage {
    let work = ObjectLoop {
        make_sets: make.then(|| rows.id(row::MAKE_SET, OpKind::MakeDir)),
        rounds: Rounds::Count(0),
        set_by_set: false,
        steps: vec![],
        advances: StageProgress::Nothing,
        remove_sets: (!make).then(|| rows.id(row::REMOVE_SET, OpKind::RemoveDir)),
    };
    stage(name, StageWork::Objects(work), OnError::Stop)
}

fn write(pattern: &str, m: &Mdtest, rows: &mut RowTable) -> Stage {
    let work = ObjectLoop {
        make_sets: None,
        rounds: Rounds::Count(m.files),
        set_by_set: false,
        steps: vec![ObjectStep {
            row: rows.id(row::CREATE, OpKind::ObjectCreate),
            op: ObjectOp::Create { sync: false },
            owner: by(0),
            offset: 0,
            gates: false,
        }],
        advances: StageProgress::Made,
        remove_sets: None,
    };
    let name = format!("{pattern}-write");
    Stage {
        stonewall: m.stonewall.map(|after| Stonewall {
            after,
            wear_out: true,
        }),
        ..stage(&name, StageWork::Objects(work), OnError::Stop)
    }
}

/// A visit to every file of the rank that lies so far ahead.
fn visit(pattern: &str, what: &str, op: ObjectOp, ahead: i64, rows: &mut RowTable) -> Stage {
    let row = match op {
        ObjectOp::Stat => rows.id(row::STAT, OpKind::Stat),
        ObjectOp::Read => rows.id(row::READ, OpKind::ObjectRead),
        _ => rows.id(row::DELETE, OpKind::Delete),
    };
    let work = ObjectLoop {
        make_sets: None,
        rounds: Rounds::Made,
        set_by_set: false,
        steps: vec![ObjectStep {
            row,
            op,
            owner: by(ahead),
            offset: 0,
            gates: false,
        }],
        advances: StageProgress::Nothing,
        remove_sets: None,
    };
    let name = format!("{pattern}-{what}");
    stage(&name, StageWork::Objects(work), OnError::Stop)
}

pub(super) fn parameters(options: &Options, m: &Mdtest) -> Vec<Parameter> {
    vec![
        parameter("files", m.files, 1_000_000, "files of a rank, at most"),
        super::stonewall_parameter(m.stonewall),
        parameter(
            "offset",
            options.offset,
            1,
            "ranks from a phase to the next",
        ),
    ]
}
