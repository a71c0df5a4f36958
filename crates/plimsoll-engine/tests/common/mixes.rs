//! Plans of operation mixes.
#![allow(dead_code, missing_docs)]

use plimsoll_plan::{
    Arrivals, Fileset, FilesetId, Mix, MixFiles, MixFlags, MixOp, MixRow, OpKind, Pacing, Phase,
    Plan, Program, SizeTable, Value, WorkerGroup, WorkingSet,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const DATA: FilesetId = FilesetId(0);
pub const TURNOVER: FilesetId = FilesetId(1);
pub const EMPTY: FilesetId = FilesetId(2);

pub fn fileset(name: &str, entries: u64, size: u64, prealloc_percent: u8) -> Fileset {
    Fileset {
        prealloc_percent,
        ..Fileset::new(name, entries, Value::Const(size))
    }
}

/// A Plan of `workers` processes that execute `ops` on files of their own: 100 data files of 64 KiB, 40 turnover files
/// of 8 KiB and 40 empty files, half of which exist, and 40 spare directories.
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
        row: plan.add_row(op.name(), op.kind(), None),
    });
    let table = table.collect();
    let mut mix = Mix {
        table,
        prepare: plan.add_row("prepare", OpKind::Prepare, None),
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
    let program = Program::Mix(Box::new(mix));
    plan.groups = vec![WorkerGroup {
        memory: 64 << 10,
        ..WorkerGroup::new("user", workers, "worker", program)
    }];
    lasting(plan, Duration::from_millis(500))
}

/// Makes a Plan measure for `time`, without a warm-up.
pub fn lasting(mut plan: Plan, time: Duration) -> Plan {
    plan.script = vec![
        Phase::Populate {
            filesets: (0..plan.filesets.len() as u32).map(FilesetId).collect(),
        },
        Phase::Start,
        Phase::OpenWindow,
        Phase::wait_for(time),
        Phase::CloseWindow,
        Phase::Stop,
    ];
    plan
}

/// Gives each process a schedule.
pub fn paced(mut plan: Plan, rate: f64, arrivals: Arrivals) -> Plan {
    let start = plan.add_row("start", OpKind::Start, None);
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

/// Sizes in bytes of the files below a directory, by path.
pub fn tree(dir: &Path) -> BTreeMap<PathBuf, u64> {
    let mut all = BTreeMap::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => left.push(path),
                false => {
                    let len = path.metadata().unwrap().len();
                    all.insert(path, len);
                }
            }
        }
    }
    all
}
