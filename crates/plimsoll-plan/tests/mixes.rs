//! Operation mixes: what is checked, and how they are printed.

use plimsoll_plan::{
    Arrivals, BusinessMetric, Choice, Criteria, EntriesPerDir, Fileset, FilesetId, Mix, MixFiles,
    MixFlags, MixOp, MixRow, OpKind, OperationId, Pacing, Phase, Plan, Program, SizeSlot,
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

/// Four processes of 25 operations a second, on files of their own.
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
        (MixOp::Unlink, 10.0),
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

/// What is said of a Plan after a change.
fn refusal(change: impl FnOnce(&mut Plan)) -> String {
    let mut plan = plan();
    change(&mut plan);
    match plan.check() {
        Err(e) => e.to_string(),
        Ok(()) => panic!("it is not refused"),
    }
}

#[test]
fn a_mix_is_printed_with_everything_it_holds() {
    let plan = plan();
    plan.check().unwrap();
    insta::assert_snapshot!(plan);
}

#[test]
fn plans_with_mixes_survive_their_json_form() {
    let plan = plan();
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

#[test]
fn tables_must_be_whole() {
    let says = |change: fn(&mut Mix), what: &str| {
        let text = refusal(|p| change(mix(p)));
        assert!(
            text.starts_with("`table`: ") && text.contains(what),
            "{text}"
        );
    };
    says(|m| m.table[0].percent = 49.0, "must sum to 100, sum to 99");
    says(|m| m.table[0].percent = 0.0, "read_rand has 0 percent");
    says(
        |m| m.table[0].percent = f64::NAN,
        "read_rand has NaN percent",
    );
    says(
        |m| m.table[1].op = MixOp::ReadRand,
        "read_rand is in the mix twice",
    );
    says(|m| m.table[0].row = OperationId(99), "operation 99");
    says(
        |m| m.table[0].row = OperationId(1),
        "row `write_rand` is one of write, not of read",
    );
    says(
        |m| m.reads.0[0].percent = 70.0,
        "table of read sizes must sum to 100",
    );
    says(
        |m| m.writes.0.clear(),
        "table of write sizes must have 1 to 16 slots",
    );
}

#[test]
fn numbers_must_be_in_range() {
    let says = |change: fn(&mut Mix), what: &str| {
        let text = refusal(|p| change(mix(p)));
        assert!(text.contains(what), "{text}");
    };
    let pacing = |m: &mut Mix, rate| m.pacing.as_mut().unwrap().rate = rate;
    says(|m| m.working_set.millionths = 0, "1 to 1000000 millionths");
    says(
        |m| m.flags.direct_percent = 101.0,
        "direct must be 0 to 100",
    );
    says(|m| m.flags.align = 0, "alignment");
    says(
        |m| m.working_set.choice = Choice::Geometric { percent: 0.0 },
        "geometric choices must be above 0",
    );
    says(
        |m| m.working_set.spots.as_mut().unwrap().accesses = 0,
        "at least 1",
    );
    for rate in [0.0, -1.0, f64::INFINITY, 2e6] {
        let text = refusal(|p| pacing(mix(p), rate));
        assert!(text.contains("a rate must be above 0"), "{text}");
    }
    says(
        |m| m.delay = std::time::Duration::from_millis(1),
        "a delay must have no rate beside it",
    );
    for scale in [0.0, 1.5, f64::NAN] {
        let text = refusal(|p| p.metric.as_mut().unwrap().scale = scale);
        assert!(text.contains("a scale must be above 0"), "{text}");
    }
}

#[test]
fn every_process_needs_files_of_its_own() {
    let text = refusal(|p| p.filesets[0].entries = 13);
    assert!(
        text.contains("each of 4 processes needs a file in the working set of its own")
            && text.contains("are 3"),
        "{text}"
    );
    let text = refusal(|p| p.filesets[2].entries = 3);
    assert!(text.contains("an empty file"), "{text}");
    let text = refusal(|p| mix(p).files.turnover = None);
    assert!(text.contains("needs turnover files"), "{text}");
    let text = refusal(|p| mix(p).files.parts = 3);
    assert!(
        text.contains("3 parts, fewer than the 4 processes"),
        "{text}"
    );
    let text = refusal(|p| p.filesets[0].prealloc_percent = 99);
    assert!(text.contains("prealloc is 99"), "{text}");
    // Shared, three files in the working set are enough for four processes.
    let mut shared = plan();
    shared.filesets[0].entries = 13;
    mix(&mut shared).files.shared = true;
    shared.check().unwrap();
}

#[test]
fn what_would_break_a_mapping_is_refused() {
    let change = |p: &mut Plan, shared| {
        let m = mix(p);
        m.files.shared = shared;
        m.table[0].op = MixOp::MmapRead;
        m.table[1].op = MixOp::Truncate;
        let rows = [m.table[0].row, m.table[1].row];
        for (row, op) in rows.iter().zip([MixOp::MmapRead, MixOp::Truncate]) {
            p.operations[row.0 as usize].kind = op.kind();
        }
    };
    let text = refusal(|p| change(p, true));
    assert!(text.contains("lose its pages"), "{text}");
    let mut private = plan();
    change(&mut private, false);
    private.check().unwrap();
}

#[test]
fn a_zipf_choice_needs_shared_files() {
    let zipf = Choice::Zipf { exponent: 1.0 };
    let text = refusal(|p| mix(p).working_set.choice = zipf);
    assert!(text.contains("number of processes"), "{text}");
    let mut shared = plan();
    mix(&mut shared).working_set.choice = zipf;
    mix(&mut shared).files.shared = true;
    shared.check().unwrap();
}

#[test]
fn filesets_have_one_use() {
    let text = refusal(|p| {
        let again = WorkerGroup {
            process: "again".into(),
            ..p.groups[0].clone()
        };
        p.groups.push(again);
    });
    assert!(
        text.contains("`data` has two uses, in `table` and in `again`"),
        "{text}"
    );
    let text = refusal(|p| {
        let sequence = WorkerGroup {
            program: Program::Sequence(vec![]),
            ..p.groups[0].clone()
        };
        p.groups.push(sequence);
    });
    assert!(text.contains("cannot be in one Plan"), "{text}");
}

#[test]
fn workers_start_once() {
    let text = refusal(|p| p.script.push(Phase::Start));
    assert!(text.contains("only once"), "{text}");
}

#[test]
fn trees_change_by_what_is_done_to_them() {
    let mut plan = plan();
    assert!([0, 1, 2].iter().all(|i| plan.changes_tree(FilesetId(*i))));
    mix(&mut plan).table.retain(|r| r.op == MixOp::ReadRand);
    assert!(![0, 1, 2].iter().any(|i| plan.changes_tree(FilesetId(*i))));
}

#[test]
fn a_smaller_load_has_fewer_processes_on_the_first_parts_of_the_files() {
    let mut most = plan();
    most.metric.as_mut().unwrap().load = 4;
    for fileset in &mut most.filesets {
        fileset.grows = true;
    }
    for load in 1..=4 {
        let smaller = most.at_load(load).unwrap();
        assert_eq!(smaller.metric.as_ref().unwrap().load, load);
        assert_eq!(smaller.workers(), load);
        // 100, 40 and 20 files are those of four processes.
        let used = |id| smaller.files_used(FilesetId(id));
        assert_eq!(used(0), 0..25 * load);
        assert_eq!(used(1), 0..10 * load);
        assert_eq!(used(2), 0..5 * load);
    }
    assert_eq!(most.at_load(0), None);
    assert_eq!(most.at_load(5), None);
    let mut fixed = most.clone();
    fixed.filesets[0].grows = false;
    let smaller = fixed.at_load(1).unwrap();
    assert_eq!(smaller.files_used(FilesetId(0)), 0..100);
    fixed.metric = None;
    assert_eq!(fixed.at_load(1), None);
}
