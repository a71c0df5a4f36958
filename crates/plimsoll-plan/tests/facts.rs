//! Facts about a run that follow from a Plan: workers, rows, times, changes of trees, supplies that end the run.

use plimsoll_plan::{
    COMPLETION_DELAY, FileRef, Fileset, FilesetId, Io, Op, OpKind, Operation, OperationId, Phase,
    Plan, Program, Snapshots, Step, Supply, Until, Value, WorkerGroup,
};
use std::collections::BTreeSet;
use std::time::Duration;

const A: FilesetId = FilesetId(0);
const B: FilesetId = FilesetId(1);

fn do_times(iters: u64, op: Op) -> Step {
    Step::Do {
        row: OperationId(0),
        iters: Value::Const(iters),
        op,
    }
}

fn block(iters: u64, steps: Vec<Step>) -> Step {
    Step::Block {
        name: "block".into(),
        iters: Value::Const(iters),
        steps,
    }
}

fn group(steps: Vec<Step>) -> WorkerGroup {
    WorkerGroup::new("process", 1, "thread", Program::Sequence(steps))
}

/// Plan of two filesets, with a group of workers for each sequence of operations.
fn plan(sequences: Vec<Vec<Op>>) -> Plan {
    let mut plan = Plan::empty("facts");
    plan.filesets = ["a", "b"].map(|n| Fileset::new(n, 10, 0.into())).into();
    plan.add_row("op", OpKind::Read, None);
    let steps = |ops: Vec<Op>| ops.into_iter().map(|op| do_times(1, op)).collect();
    plan.groups = sequences.into_iter().map(|ops| group(steps(ops))).collect();
    plan
}

fn file(fileset: impl Into<Option<FilesetId>>, slot: u8) -> FileRef {
    FileRef {
        fileset: fileset.into(),
        ..FileRef::in_slot(slot)
    }
}

fn transfer(random: bool) -> Io {
    Io {
        file: file(A, 1),
        size: 1.into(),
        random,
        working_set: 0,
    }
}

fn set_ops(fileset: FilesetId) -> [Op; 4] {
    let index = None;
    [
        Op::MakeDir { fileset, index },
        Op::RemoveDir { fileset, index },
        Op::ListDir { fileset, index },
        Op::FsyncSet { fileset },
    ]
}

fn finish() -> [Op; 2] {
    let (value, targets) = (Value::Const(9), None);
    [
        Op::FinishOnCount {
            value,
            targets: targets.clone(),
        },
        Op::FinishOnBytes { value, targets },
    ]
}

#[test]
fn workers_of_the_same_process_name_are_in_the_same_processes() {
    let mut plan = Plan::empty("processes");
    let group = |name: &str, instances, threads| WorkerGroup {
        thread_instances: threads,
        ..WorkerGroup::new(name, instances, "thread", Program::Sequence(vec![]))
    };
    plan.groups = vec![
        group("a", 2, 3),
        group("b", 1, 1),
        group("a", 2, 2),
        group("c", 2, 2),
        group("d", 1, 0),
    ];
    let each: Vec<u64> = plan.groups.iter().map(WorkerGroup::workers).collect();
    assert_eq!(each, [6, 1, 4, 4, 0]);
    assert_eq!(plan.workers(), 15);
    let of = |group, workers: u32| -> Vec<u64> {
        (0..workers).map(|w| plan.process_of(group, w)).collect()
    };
    assert_eq!(of(0, 6), [0, 0, 0, 1, 1, 1]);
    assert_eq!(of(1, 1), [2]);
    assert_eq!(of(2, 4), [0, 0, 1, 1]);
    assert_eq!(of(3, 4), [3, 3, 4, 4]);
    assert_eq!(of(4, 1), [5], "a group without workers has a process");
}

#[test]
fn rows_are_numbered_in_their_order() {
    let mut plan = Plan::empty("rows");
    assert_eq!(plan.add_row("first", OpKind::Read, None), OperationId(0));
    plan.add_procedures(&["READ", "WRITE"]);
    assert!(!plan.has_completion_delay());
    plan.add_completion_delay();
    assert!(plan.has_completion_delay());
    let row = |name: &str, kind| Operation {
        name: name.into(),
        kind,
        location: None,
    };
    let expected = [
        row("first", OpKind::Read),
        row("READ", OpKind::Rpc),
        row("WRITE", OpKind::Rpc),
        row(COMPLETION_DELAY, OpKind::CompletionDelay),
    ];
    assert_eq!(plan.operations, expected);
    assert_eq!(plan.operation(OperationId(2)), &expected[2]);
}

#[test]
fn times_are_those_before_and_after_measurement_begins() {
    let s = Duration::from_secs;
    let mut plan = Plan::empty("times");
    assert_eq!(plan.times(), (s(0), s(0)));
    let snapshots = Some(Snapshots {
        every: s(1),
        cleared: false,
    });
    let until = Until::Elapsed { time: s(30) };
    plan.script = vec![
        Phase::Start,
        Phase::wait_for(s(5)),
        Phase::wait_for(s(2)),
        Phase::wait(Until::Done {
            at_most: Some(s(100)),
        }),
        Phase::OpenWindow,
        Phase::Wait { until, snapshots },
        Phase::wait_for(s(10)),
        Phase::CloseWindow,
    ];
    assert_eq!(plan.times(), (s(7), s(40)));
}

#[test]
fn transfers_past_the_page_cache_are_found_in_any_block() {
    let direct = FileRef {
        direct: true,
        ..file(A, 1)
    };
    let mut plan = plan(vec![vec![Op::AioWait], vec![Op::Open(file(A, 1))]]);
    assert!(!plan.uses_direct_io());
    let steps = vec![
        block(1, vec![do_times(1, Op::Open(direct))]),
        do_times(1, Op::Close { slot: 1 }),
    ];
    plan.groups.push(group(steps));
    assert!(plan.uses_direct_io());
}

#[test]
fn operations_change_the_tree_of_their_own_fileset() {
    let changes = |op: &Op| [A, B].map(|id| plan(vec![vec![], vec![op.clone()]]).changes_tree(id));
    let whole = |fileset: Option<FilesetId>| Op::WriteWhole {
        file: file(fileset, 1),
        source_slot: None,
        size: 0.into(),
    };
    let append = Op::Append {
        file: file(A, 1),
        size: 1.into(),
        random: false,
    };
    let [make, remove, list, flush] = set_ops(B);
    for (op, expected) in [
        (Op::Create(file(A, 1)), [true, false]),
        (Op::Delete(file(B, 1)), [false, true]),
        (append, [true, false]),
        (whole(Some(B)), [false, true]),
        // An operation without a fileset works on the file in its slot, which may be of any fileset.
        (whole(None), [true, true]),
        (Op::Write(transfer(false)), [true, false]),
        (Op::Write(transfer(true)), [false, false]),
        (Op::Read(transfer(false)), [false, false]),
        (Op::Stat(file(A, 1)), [false, false]),
        (make, [false, true]),
        (remove, [false, true]),
        (list, [false, false]),
        (flush, [false, false]),
    ] {
        assert_eq!(changes(&op), expected, "{op:?}");
        assert_eq!(
            op.properties().changes_tree,
            expected != [false, false],
            "{op:?}"
        );
    }
    let mut later = plan(vec![vec![Op::Create(file(A, 1))], vec![Op::AioWait]]);
    assert!(later.changes_tree(A), "the last group does not decide");
    later.groups.clear();
    assert!(!later.changes_tree(A));
}

/// Supplies that the workload of a Plan uses up, as text, and whether the workload ends by itself.
fn used_up(plan: &Plan) -> (Vec<String>, bool) {
    let supplies: BTreeSet<Supply> = plan.supplies_used_up();
    let name = |s: &Supply| format!("{} of {}", s.kind, plan.fileset(s.fileset).name);
    (supplies.iter().map(name).collect(), plan.ends_by_itself())
}

#[test]
fn supplies_that_no_operation_adds_to_are_used_up() {
    let [make, remove, list, flush] = set_ops(B);
    let others = vec![
        Op::Stat(file(A, 1)),
        Op::Open(file(A, 1)),
        list.clone(),
        flush,
    ];
    for (op, supply) in [
        (Op::Create(file(A, 1)), "file to create of a"),
        (Op::Delete(file(A, 0)), "existing file of a"),
        (make.clone(), "leaf directory to make of b"),
        (remove.clone(), "leaf directory of b"),
    ] {
        let ops = [others.clone(), vec![op]].concat();
        assert_eq!(used_up(&plan(vec![ops])), (vec![supply.into()], true));
    }
    // One worker takes entries of a supply, and another worker adds entries to the same supply.
    for [takes, gives] in [
        [Op::Create(file(A, 1)), Op::Delete(file(A, 0))],
        [make.clone(), remove],
    ] {
        let none = (vec![], false);
        assert_eq!(used_up(&plan(vec![vec![takes], vec![gives]])), none);
    }
    // A supply is used up even if operations add entries of another fileset or of another kind.
    let apart = plan(vec![vec![
        Op::Create(file(A, 1)),
        Op::Delete(file(B, 0)),
        make,
    ]]);
    let expected = [
        "file to create of a",
        "existing file of b",
        "leaf directory to make of b",
    ];
    assert_eq!(used_up(&apart), (expected.map(Into::into).into(), true));
    assert_eq!(used_up(&plan(vec![others])), (vec![], false));
}

#[test]
fn operations_that_are_never_executed_use_up_nothing() {
    let create = || Op::Create(file(A, 1));
    let of = |steps| {
        let mut plan = plan(vec![]);
        plan.groups = vec![group(steps)];
        used_up(&plan)
    };
    let used = (vec!["file to create of a".to_owned()], true);
    assert_eq!(of(vec![do_times(0, create())]), (vec![], false));
    assert_eq!(
        of(vec![block(0, vec![do_times(1, create())])]),
        (vec![], false)
    );
    assert_eq!(
        of(vec![block(
            2,
            vec![do_times(0, Op::Delete(file(A, 0))), do_times(3, create())]
        )]),
        used
    );
}

#[test]
fn a_delete_takes_from_every_fileset_whose_files_its_slot_may_hold() {
    let open = |fileset, slot| Op::Open(file(fileset, slot));
    let rotating = Op::Open(FileRef {
        open_next: true,
        ..file(B, 1)
    });
    let of = |ops| used_up(&plan(vec![ops]));
    let (a, b) = ("existing file of a", "existing file of b");
    let used = |supplies: &[&str]| {
        let texts = supplies.iter().map(|s| (*s).to_owned()).collect();
        (texts, !supplies.is_empty())
    };
    assert_eq!(of(vec![open(B, 1), Op::Delete(file(A, 1))]), used(&[a, b]));
    assert_eq!(of(vec![open(B, 1), Op::Delete(file(None, 1))]), used(&[b]));
    assert_eq!(of(vec![open(B, 2), Op::Delete(file(A, 1))]), used(&[a]));
    assert_eq!(of(vec![rotating, Op::Delete(file(A, 1))]), used(&[a]));
    // A delete with slot 0 takes a file of its own fileset, not the file that is open in slot 0.
    assert_eq!(of(vec![open(B, 0), Op::Delete(file(A, 0))]), used(&[a]));
    assert_eq!(of(vec![open(B, 0), Op::Delete(file(None, 0))]), used(&[]));
    // The delete takes files from two supplies, and a create refills one of the supplies, so the delete always finds a
    // file.
    let refilled = plan(vec![
        vec![open(B, 1), Op::Delete(file(A, 1))],
        vec![Op::Create(file(B, 3))],
    ]);
    assert_eq!(used_up(&refilled), (vec![a.into()], false));
}

#[test]
fn a_workload_ends_by_itself_if_every_group_does() {
    let delete = || vec![Op::Delete(file(A, 0))];
    let ends = |groups| plan(groups).ends_by_itself();
    assert!(ends(vec![delete(), delete()]));
    assert!(!ends(vec![delete(), vec![Op::Stat(file(A, 1))]]));
    assert!(!ends(vec![delete(), vec![Op::Delete(file(None, 0))]]));
    for op in finish() {
        assert!(ends(vec![delete(), vec![op.clone()]]));
        assert!(!ends(vec![vec![op]]), "nothing is used up");
    }
    assert!(!ends(vec![]));
}
