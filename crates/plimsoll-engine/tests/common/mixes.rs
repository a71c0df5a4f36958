//! Plans of operation mixes.
#![allow(dead_code, missing_docs)]

use plimsoll_plan::{
    Access, Arrivals, EntriesPerDir, Fileset, FilesetId, Mix, MixFiles, MixFlags, MixOp, MixRow,
    OpKind, Operation, OperationId, Pacing, Phase, Plan, Program, RelPath, SizeTable, Until, Value,
    WorkerGroup, WorkingSet,
};
use std::path::Path;
use std::time::Duration;

pub const DATA: FilesetId = FilesetId(0);
pub const TURNOVER: FilesetId = FilesetId(1);
pub const EMPTY: FilesetId = FilesetId(2);

pub fn fileset(name: &str, entries: u64, size: u64, prealloc_percent: u8) -> Fileset {
    Fileset {
        name: name.into(),
        path: RelPath::default(),
        entries,
        leaf_dirs: 0,
        width: EntriesPerDir {
            mean: 10.0,
            gamma_shape: None,
        },
        depth: None,
        size: Value::Const(size),
        prealloc_percent,
        parallel_prealloc: true,
        reuse: true,
        trust_tree: false,
        grows: false,
        letters: None,
        access: Access::ReadWrite,
        cached: None,
        location: None,
    }
}

fn add(plan: &mut Plan, name: &str, kind: OpKind) -> OperationId {
    plan.operations.push(Operation {
        name: name.into(),
        kind,
        location: None,
    });
    OperationId(plan.operations.len() as u32 - 1)
}

/// A Plan of `workers` processes that do `ops` on files of their own: 100 data files of 64 KiB,
/// 40 turnover files of 8 KiB and 40 empty ones (half of them there), 40 spare directories.
pub fn plan(dir: &Path, workers: u32, ops: &[(MixOp, f64)], change: impl FnOnce(&mut Mix)) -> Plan {
    let mut plan = Plan::empty("mix");
    plan.work_dir.dir = dir.into();
    plan.filesets = vec![
        fileset("data", 100, 64 << 10, 100),
        fileset("turnover", 40, 8 << 10, 50),
        fileset("empty", 40, 0, 50),
    ];
    plan.filesets[0].leaf_dirs = 40;
    let table = ops.iter().map(|(op, percent)| MixRow {
        op: *op,
        percent: *percent,
        row: add(&mut plan, op.name(), op.kind()),
    });
    let table = table.collect();
    let mut mix = Mix {
        table,
        prepare: add(&mut plan, "prepare", OpKind::Prepare),
        pacing: None,
        delay: Duration::ZERO,
        reads: SizeTable::fixed(8 << 10),
        writes: SizeTable::fixed(4 << 10),
        files: MixFiles {
            data: DATA,
            turnover: Some(TURNOVER),
            empty: Some(EMPTY),
            shared: false,
            parts: u64::from(workers),
        },
        working_set: WorkingSet::default(),
        flags: MixFlags::default(),
    };
    change(&mut mix);
    plan.groups = vec![WorkerGroup {
        process: "user".into(),
        process_instances: workers,
        thread: "worker".into(),
        thread_instances: 1,
        memory: 64 << 10,
        nice: 0,
        io_priority: None,
        program: Program::Mix(Box::new(mix)),
        location: None,
    }];
    lasting(plan, Duration::from_millis(500))
}

/// Measures for this long, without a warm-up.
pub fn lasting(mut plan: Plan, time: Duration) -> Plan {
    plan.script = vec![
        Phase::Populate {
            filesets: (0..plan.filesets.len() as u32).map(FilesetId).collect(),
        },
        Phase::Start,
        Phase::OpenWindow,
        Phase::Wait {
            until: Until::Elapsed { time },
            snapshots: None,
        },
        Phase::CloseWindow,
        Phase::Stop,
    ];
    plan
}

/// Gives each process a schedule.
pub fn paced(mut plan: Plan, rate: f64, arrivals: Arrivals) -> Plan {
    let start = add(&mut plan, "start", OpKind::Start);
    let mix = mix(&mut plan);
    mix.pacing = Some(Pacing {
        rate,
        arrivals,
        start,
    });
    plan
}

pub fn mix(plan: &mut Plan) -> &mut Mix {
    match &mut plan.groups[0].program {
        Program::Mix(mix) => mix,
        other => panic!("{other:?}"),
    }
}
