//! Patterns of a Plan: names of objects, rows, needs on the file system, checks and printed form.

mod checks;
mod facts;
mod needs;
mod text;

use plimsoll_plan::{
    Cold, Content, Fileset, NameTemplate, ObjectLoop, ObjectOp, ObjectOrder, ObjectStep, OnError,
    OpKind, OperationId, Pattern, PatternNeeds, Phase, Plan, Program, RankOrder, RankShift,
    RelPath, RootHandling, Rounds, SetTree, Stage, StageProgress, StageWork, Stonewall,
    TransferLoop, TransferOrder, TreeSearch, Until, WorkerGroup,
};
use std::time::Duration;

const ROWS: [(&str, OpKind); 8] = [
    ("mkdir", OpKind::MakeDir),
    ("create", OpKind::ObjectCreate),
    ("stat", OpKind::Stat),
    ("read", OpKind::ObjectRead),
    ("delete", OpKind::Delete),
    ("rmdir", OpKind::RemoveDir),
    ("transfer", OpKind::Write),
    ("fsync", OpKind::Fsync),
];

fn row(name: &str) -> OperationId {
    let index = ROWS.iter().position(|(n, _)| *n == name);
    OperationId(index.expect("a row") as u32)
}

fn template(text: &str) -> NameTemplate {
    NameTemplate::parse(text).unwrap()
}

/// Pattern of four ranks with three data sets each, without stages.
fn pattern() -> Pattern {
    Pattern {
        set_name: template("{rank}_{set}"),
        object_name: template("file-{object}"),
        sets: 3,
        object_size: 3901,
        position: 100,
        ..Pattern::empty(RelPath::new("md").unwrap(), 4, vec![])
    }
}

fn stage(name: &str, work: StageWork) -> Stage {
    Stage {
        name: name.into(),
        iteration: 0,
        warm_up: false,
        work,
        on_error: OnError::Count,
        waiting_factor: 0.0,
        stonewall: None,
        squeeze_memory: None,
    }
}

fn step(op: ObjectOp) -> ObjectStep {
    let name = match op {
        ObjectOp::Create { .. } => "create",
        ObjectOp::Stat => "stat",
        ObjectOp::Read => "read",
        ObjectOp::Delete => "delete",
        ObjectOp::MakeDir => "mkdir",
        ObjectOp::StatDir | ObjectOp::RenameDir => "stat",
        ObjectOp::RemoveDir => "rmdir",
    };
    ObjectStep {
        row: row(name),
        op,
        owner: RankShift::default(),
        offset: 0,
        gates: false,
    }
}

const CREATE: ObjectOp = ObjectOp::Create { sync: false };

fn objects(rounds: Rounds, ops: &[ObjectOp]) -> Stage {
    let steps = ops.iter().map(|op| step(*op)).collect();
    stage(
        "objects",
        StageWork::Objects(ObjectLoop::new(rounds, steps)),
    )
}

/// Pattern of one rank with a tree of 7 data sets, each with files and directories, without stages.
fn tree_pattern() -> Pattern {
    Pattern {
        set_name: template("tree.{set}"),
        directory_name: template("dir.{rank}.{object}"),
        tree: Some(SetTree {
            branch: 2,
            first_set: 3,
        }),
        sets: 7,
        objects: 10,
        ..pattern()
    }
}

fn transfer_loop(rounds: Rounds, size: u64) -> TransferLoop {
    TransferLoop {
        owner: RankShift::default(),
        write: true,
        size,
        rounds,
        block: 1,
        strided: false,
        order: TransferOrder::Sequential,
        reorder: None,
        barriers: false,
        open: row("stat"),
        transfer: row("transfer"),
        sync: None,
        close: row("delete"),
    }
}

fn transfers(change: impl FnOnce(&mut TransferLoop)) -> Stage {
    let mut work = transfer_loop(Rounds::Count(5), 1000);
    change(&mut work);
    stage("transfers", StageWork::Transfers(work))
}

fn stonewall(after_ms: u64, wear_out: bool) -> Option<Stonewall> {
    let after = Duration::from_millis(after_ms);
    Some(Stonewall { after, wear_out })
}

/// Phases of the script that run and measure stage number `stage`.
fn phases(stage: u32) -> [Phase; 5] {
    [
        Phase::StartStage { stage },
        Phase::OpenWindow,
        Phase::wait(Until::Done { at_most: None }),
        Phase::CloseWindow,
        Phase::Stop,
    ]
}

fn plan(pattern: Pattern) -> Plan {
    let mut plan = Plan::empty("ranks");
    for (name, kind) in ROWS {
        plan.add_row(name, kind, None);
    }
    plan.script = (0..pattern.stages.len() as u32).flat_map(phases).collect();
    let (ranks, program) = (pattern.ranks, Program::Pattern(Box::new(pattern)));
    plan.groups = vec![WorkerGroup::new("rank", ranks, "worker", program)];
    plan
}

fn with_stages(stages: Vec<Stage>) -> Pattern {
    Pattern {
        stages,
        ..pattern()
    }
}
