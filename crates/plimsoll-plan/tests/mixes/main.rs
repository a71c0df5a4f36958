//! Operation mixes of a Plan: checks, printed form, and files of each load.

mod checks;
mod files;
mod text;

use plimsoll_plan::{
    Arrivals, BusinessMetric, Choice, Criteria, EntriesPerDir, Fadvise, Fileset, FilesetId, Mix,
    MixFiles, MixFlags, MixOp, MixRow, OpKind, OperationId, Pacing, Phase, Plan, Program, SizeSlot,
    SizeTable, Spots, Value, WorkerGroup, WorkingSet,
};
use std::time::Duration;

fn fileset(name: &str, entries: u64, size: u64, prealloc_percent: u8) -> Fileset {
    Fileset {
        leaf_dirs: 4,
        width: EntriesPerDir {
            mean: 20.0,
            gamma_shape: None,
        },
        prealloc_percent,
        ..Fileset::new(name, entries, Value::Const(size))
    }
}

/// Plan of a mix of four processes at 25 operations per second each, each process on its own part of the files.
fn plan() -> Plan {
    let mut plan = Plan::empty("bench");
    plan.filesets = vec![
        fileset("data", 100, 1 << 20, 100),
        fileset("turnover", 40, 4096, 50),
        fileset("empty", 20, 0, 50),
    ];
    let ops = [
        (MixOp::ReadRand, 50.0),
        (MixOp::WriteRand, 20.0),
        (MixOp::WriteFile, 10.0),
        (MixOp::Unlink2, 10.0),
        (MixOp::Create, 5.0),
        (MixOp::Mkdir, 5.0),
    ];
    let table = ops.map(|(op, percent)| MixRow {
        op,
        percent,
        row: plan.add_row(op.name(), op.kind(), None),
    });
    let slot = |min, max, percent| SizeSlot { min, max, percent };
    let mix = Mix {
        table: table.to_vec(),
        prepare: plan.add_row("prepare", OpKind::Prepare, None),
        pacing: Some(Pacing {
            rate: 25.0,
            arrivals: Arrivals::Constant,
            start: plan.add_row("start", OpKind::Start, None),
        }),
        delay: std::time::Duration::ZERO,
        reads: SizeTable(vec![slot(4096, 4096, 75.0), slot(8192, 65536, 25.0)]),
        writes: SizeTable::fixed(8192),
        files: MixFiles {
            data: FilesetId(0),
            turnover: Some(FilesetId(1)),
            empty: Some(FilesetId(2)),
            shared: false,
            parts: 4,
        },
        working_set: WorkingSet {
            millionths: 300_000,
            choice: Choice::Geometric { percent: 80.0 },
            spots: Some(Spots {
                percent: 5.0,
                accesses: 50,
                multiplier: 3,
                affinity: 60.0,
                geometric: true,
            }),
        },
        flags: MixFlags {
            direct_percent: 10.0,
            osync_percent: 20.0,
            commit_percent: 30.0,
            align: 4096,
            overwrite: false,
            keep_open: false,
            fadvise: Some(Fadvise {
                sequential: 20.0,
                dontneed: 100.0,
            }),
        },
    };
    plan.groups = vec![WorkerGroup {
        process: "table".into(),
        process_instances: 4,
        thread: "worker".into(),
        thread_instances: 1,
        memory: 65536,
        nice: 0,
        io_priority: None,
        program: Program::Mix(Box::new(mix)),
        location: None,
    }];
    plan.metric = Some(BusinessMetric {
        name: "databases".into(),
        load: 2,
        scale: 0.5,
        data: 100 << 20,
        rate: Some(100.0),
        criteria: Criteria {
            latency: Some(Duration::from_millis(20)),
            ..Criteria::default()
        },
    });
    plan.script = vec![Phase::Start];
    plan
}

fn mix(plan: &mut Plan) -> &mut Mix {
    match &mut plan.groups[0].program {
        Program::Mix(mix) => mix,
        other => panic!("{other:?}"),
    }
}

/// Error of the checks of the Plan after `change` has changed the Plan.
fn refusal(change: impl FnOnce(&mut Plan)) -> String {
    let mut plan = plan();
    change(&mut plan);
    match plan.check() {
        Err(e) => e.to_string(),
        Ok(()) => panic!("it is not refused"),
    }
}

/// Replaces the operations of the mix in a Plan by `ops`, with equal percentages.
fn set_ops(plan: &mut Plan, ops: &[MixOp]) {
    let table = ops.iter().map(|op| MixRow {
        op: *op,
        percent: 100.0 / ops.len() as f64,
        row: plan.add_row(op.name(), op.kind(), None),
    });
    let table = table.collect();
    let mix = mix(plan);
    mix.table = table;
    // Advice needs an operation on an open file.
    if !ops.iter().any(|op| op.uses_open_file()) {
        mix.flags.fadvise = None;
    }
}
