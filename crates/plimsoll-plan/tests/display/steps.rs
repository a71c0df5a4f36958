//! Steps of programs in a printed Plan.

use super::*;

/// Lines of a printed Plan about steps: one step for each operation in `ops`.
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
    let rotating = FileRef {
        open_next: true,
        ..file(None)
    };
    let anywhere = Io {
        working_set: 0,
        ..io(true)
    };
    let numbered = FileRef {
        index: Some(Value::Const(5000)),
        ..file(Some(SET))
    };
    let whole = Op::ReadWhole {
        file: rotating,
        size: Value::Const(4096),
    };
    let others = r#"
        {"list_dir": {"fileset": 1, "index": {"const": 5000}}}
        {"sem_post": {"targets": [0, 7], "value": {"const": 1000}, "blocking": false}}
        {"sem_block": {"value": {"const": 1}, "high_water": {"draw": 0}}}
        {"hog": {"value": {"draw": 0}}}
        {"limit": {"kind": "io_ops", "targets": null}}
        {"limit": {"kind": "ops", "targets": null}}
        {"finish_on_count": {"value": {"const": 1}, "targets": [0]}}
        {"delay": {"seconds": {"draw": 0}, "nanoseconds": 5}}
        {"delay": {"seconds": {"const": 2}, "nanoseconds": 1}}
    "#;
    let others = others.lines().filter(|l| !l.trim().is_empty());
    let others = others.map(|l| serde_json::from_str(l).unwrap());
    let ops = [Op::Read(anywhere), whole, Op::Stat(numbered)].into_iter();
    let found: Vec<String> = ops.chain(others).flat_map(|op| steps(vec![op])).collect();
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
