//! Lowering of IOR's options to a Plan.

use super::Options;
use crate::md::lower::{
    LoweredPattern, PlanFacts, RowTable, countable, object_step, parameter, plan_of, row, stage,
    template,
};
use plimsoll_plan::{
    Cold, ObjectLoop, ObjectOp, OnError, OpKind, Parameter, Pattern, Plan, RankShift, RootHandling,
    Rounds, Stage, StageWork, TransferLoop, pattern_names,
};

/// Names of the stages, which are also IOR's names of the phases.
pub(super) const WRITE: &str = "write";
pub(super) const READ: &str = "read";
const REMOVE: &str = "remove";

/// Makes the Plan of a test for `ranks` tasks. The returned Plan has passed [`Plan::check`].
///
/// # Errors
/// One sentence that states why the Plan is impossible.
pub fn lower(options: &Options, ranks: u32) -> Result<Plan, String> {
    if ranks == 0 {
        return Err("a test needs at least one task".into());
    }
    let bytes = u128::from(options.block_size) * u128::from(options.segments) * u128::from(ranks);
    countable("the bytes of a phase (-b · -s · tasks)", bytes)?;
    let mut rows = RowTable::default();
    let lowered = LoweredPattern {
        title: match options.file_per_proc {
            true => "transfers in a file of each task",
            false => "transfers in one file that all tasks share",
        },
        notes: vec![],
        pattern: pattern(options, ranks, &mut rows),
        parameters: parameters(options),
    };
    let facts = PlanFacts {
        name: "ior",
        place: &options.place,
        seed: options.seed,
        content: None,
        cold: Cold::No,
    };
    plan_of(&facts, lowered, rows, ranks)
}

fn pattern(options: &Options, ranks: u32, rows: &mut RowTable) -> Pattern {
    let mut stages = Vec::new();
    for repetition in 0..options.repetitions {
        if options.writes && repetition > 0 {
            stages.push(remove(repetition - 1, rows));
        }
        if options.writes {
            stages.push(transfers(options, true, repetition, rows));
        }
        if options.reads {
            stages.push(transfers(options, false, repetition, rows));
        }
    }
    Pattern {
        root_is: match options.writes {
            true => RootHandling::New,
            false => RootHandling::Kept,
        },
        leaves_objects: options.arguments.keep,
        object_name: match options.file_per_proc {
            true => template(pattern_names::IOR_EASY_OBJECT),
            false => template(pattern_names::IOR_HARD_OBJECT),
        },
        direct: options.arguments.direct,
        ..Pattern::empty(options.place.root.clone(), ranks, stages)
    }
}

/// A stage in which each task writes its blocks, or reads the blocks of the task that the options choose.
///
/// A read after a write in the same run does as many transfers as the writer did, since a stonewall may have ended the
/// write.
fn transfers(options: &Options, write: bool, repetition: u32, rows: &mut RowTable) -> Stage {
    let (name, kind) = match write {
        true => (WRITE, OpKind::Write),
        false => (READ, OpKind::Read),
    };
    let follows_write = options.writes && !write && options.most_transfers.is_none();
    let work = TransferLoop {
        owner: if write {
            RankShift::default()
        } else {
            options.owner
        },
        write,
        size: options.transfer_size,
        rounds: match follows_write {
            true => Rounds::Made,
            false => Rounds::Count(options.transfers()),
        },
        block: options.block_size / options.transfer_size,
        strided: !options.file_per_proc,
        order: options.order,
        reorder: options
            .reorder
            .filter(|_| !write)
            .map(|reorder| reorder.in_repetition(repetition)),
        barriers: options.arguments.barriers,
        open: rows.id(row::OPEN, OpKind::Open),
        transfer: rows.id(name, kind),
        sync: (write && options.arguments.fsync).then(|| rows.id(row::SYNC, OpKind::Fsync)),
        close: rows.id(row::CLOSE, OpKind::Close),
    };
    Stage {
        iteration: repetition,
        stonewall: options.stonewall,
        ..stage(name, StageWork::Transfers(work), OnError::Stop)
    }
}

/// An unmeasured stage that removes the files of a repetition before the next.
fn remove(repetition: u32, rows: &mut RowTable) -> Stage {
    let delete = object_step(ObjectOp::Delete, rows, RankShift::default());
    let work = ObjectLoop::new(Rounds::Count(1), vec![delete]);
    Stage {
        iteration: repetition,
        warm_up: true,
        ..stage(REMOVE, StageWork::Objects(work), OnError::Stop)
    }
}

fn parameters(options: &Options) -> Vec<Parameter> {
    let stonewall = options
        .stonewall
        .map_or(0.0, |wall| wall.after.as_secs_f64());
    vec![
        parameter("b", options.block_size, 1 << 20, "bytes of a block"),
        parameter("t", options.transfer_size, 256 << 10, "bytes of a transfer"),
        parameter("s", options.segments, 1, "blocks of a task"),
        parameter("i", options.repetitions, 1, "repetitions"),
        parameter(
            "D",
            stonewall,
            0,
            "time limit of a phase in seconds; 0 for none",
        ),
    ]
}
