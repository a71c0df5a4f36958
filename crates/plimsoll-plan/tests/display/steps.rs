//! Steps of a printed Plan.

use super::*;

/// A Plan with a step for each operation, and its lines about them.
fn steps(ops: Vec<Op>) -> Vec<String> {
    let mut plan = plan();
    let iters = [Value::Const(1), Value::Const(3000), Value::Const(0)];
    let step = |(i, op): (usize, Op)| Step::Do {
        row: OperationId(0),
        iters: iters[i % 3],
        op,
    };
    let steps = ops.into_iter().enumerate().map(step).collect();
    plan.groups[0].program = Program::Sequence(steps);
    let text = plan.to_string();
    let lines = text.lines().filter_map(|l| l.strip_prefix("    op: "));
    lines.map(str::to_owned).collect()
}

#[test]
fn steps_are_printed_with_their_repetitions() {
    let found = steps(vec![Op::Block, Op::Block, Op::Block]);
    let expected = [
        "wait to be woken",
        "wait to be woken × 3 000",
        "wait to be woken × 0",
    ];
    assert_eq!(found, expected);
}

#[test]
fn transfers_and_files_are_printed_with_their_choices() {
    let whole = |file| Op::ReadWhole {
        file,
        size: Value::Const(4096),
    };
    let rotating = FileRef {
        open_next: true,
        ..file(None)
    };
    let anywhere = Io {
        working_set: 0,
        ..io(true)
    };
    let index = Some(Value::Const(5000));
    let numbered = FileRef {
        index,
        ..file(Some(SET))
    };
    let found = [
        steps(vec![Op::Read(anywhere)]),
        steps(vec![whole(rotating)]),
        steps(vec![Op::Stat(numbered)]),
        steps(vec![Op::ListDir {
            fileset: FilesetId(1),
            index,
        }]),
        steps(vec![Op::SemPost {
            targets: vec![OperationId(0), OperationId(7)],
            value: Value::Const(1000),
            blocking: false,
        }]),
        steps(vec![Op::SemBlock {
            value: Value::Const(1),
            high_water: DRAW,
        }]),
        steps(vec![Op::Hog { value: DRAW }]),
        steps(vec![Op::Limit {
            kind: LimitKind::IoOps,
            targets: None,
        }]),
        steps(vec![Op::Limit {
            kind: LimitKind::Ops,
            targets: None,
        }]),
        steps(vec![Op::FinishOnCount {
            value: Value::Const(1),
            targets: Some(vec![OperationId(0)]),
        }]),
        steps(vec![Op::Delay {
            seconds: DRAW,
            nanoseconds: 5,
        }]),
        steps(vec![Op::Delay {
            seconds: Value::Const(2),
            nanoseconds: 1,
        }]),
    ]
    .concat();
    assert_eq!(
        found,
        [
            "read 8 KiB at a random position of the next file of bigfileset, slot 1",
            "read all of the file, rotating slots, 4 KiB per call",
            "stat file 5 000 of bigfileset, slot 1",
            "list directory 5 000 of log",
            "post 1 000 to op, operation 7",
            "wait for 1 post; high water $filesize",
            "store $filesize times",
            "wait for one event per I/O",
            "wait for one event per operation",
            "end after 1 operation of op",
            "sleep $filesize s",
            "sleep 2.000000001s",
        ]
    );
}
