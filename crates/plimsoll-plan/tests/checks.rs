//! Checks of a Plan before a run: the first violation is an error that names the part at fault.

use plimsoll_plan::{
    Distribution, FileRef, Fileset, FilesetId, Io, Letters, Op, OpKind, OperationId, Phase, Plan,
    Program, RelPath, Step, Value, Variable, VariableId, WorkerGroup,
};
use serde_json::{Value as Json, json};

const N: fn(u64) -> Value = Value::Const;
const NO_VARIABLE: Value = Value::Draw(VariableId(1));
const SET: FilesetId = FilesetId(0);
const NO_SET: FilesetId = FilesetId(1);
const ROW: OperationId = OperationId(0);
const NO_ROW: OperationId = OperationId(1);

/// A Plan with one fileset, variable, row and worker, whose program is empty.
fn plan() -> Plan {
    let mut plan = Plan::empty("small");
    plan.filesets = vec![Fileset::new("set", 10, N(4096))];
    let distribution = Distribution::Exponential { mean: 10.0 };
    plan.variables = vec![Variable::new("x", distribution)];
    plan.add_row("op", OpKind::Read, None);
    let program = Program::Sequence(vec![]);
    plan.groups = vec![WorkerGroup::new("process", 1, "thread", program)];
    plan
}

fn check(change: impl FnOnce(&mut Plan)) -> Result<(), String> {
    let mut plan = plan();
    assert_eq!(plan.check(), Ok(()));
    change(&mut plan);
    plan.check().map_err(|e| e.to_string())
}

fn error(change: impl FnOnce(&mut Plan)) -> String {
    check(change).expect_err("a Plan that is refused")
}

fn step(op: Op) -> Step {
    let (row, iters) = (ROW, N(1));
    Step::Do { row, iters, op }
}

fn check_steps(steps: Vec<Step>) -> Result<(), String> {
    check(|p| p.groups[0].program = Program::Sequence(steps))
}

fn file() -> FileRef {
    FileRef {
        fileset: Some(SET),
        index: Some(Value::Draw(VariableId(0))),
        implicit_open: Some(ROW),
        ..FileRef::in_slot(127)
    }
}

fn io(size: Value) -> Io {
    Io {
        file: file(),
        size,
        random: false,
        working_set: 0,
    }
}

/// Operations as JSON, one of each kind that can refer to an item of a list of the Plan; words in capitals are replaced
/// by values whose references exist.
const OPS: &str = r#"
    {"read": IO}
    {"write": IO}
    {"aio_write": {"io": IO, "completion": 0}}
    {"open": FILE}
    {"create": FILE}
    {"delete": FILE}
    {"stat": FILE}
    {"fsync": FILE}
    {"read_whole": {"file": FILE, "size": DRAW}}
    {"write_whole": {"file": FILE, "source_slot": null, "size": DRAW}}
    {"append": {"file": FILE, "size": DRAW, "random": false}}
    {"fsync_set": {"fileset": 0}}
    {"make_dir": {"fileset": 0, "index": DRAW}}
    {"remove_dir": {"fileset": 0, "index": DRAW}}
    {"list_dir": {"fileset": 0, "index": DRAW}}
    {"sem_block": {"value": DRAW, "high_water": DRAW}}
    {"sem_post": {"targets": [0], "value": DRAW, "blocking": true}}
    {"wakeup": {"targets": [0]}}
    {"limit": {"kind": "ops", "targets": [0]}}
    {"finish_on_count": {"value": DRAW, "targets": [0]}}
    {"finish_on_bytes": {"value": DRAW, "targets": [0]}}
    {"delay": {"seconds": DRAW}}
    {"hog": {"value": DRAW}}
    {"test_variable": {"value": DRAW}}
"#;

/// Copies of an operation, each with one index beyond its list, and the name of an item of the list.
fn dangling(op: &Json) -> Vec<(Json, &'static str)> {
    let mut copies = Vec::new();
    for (key, value) in op.as_object().into_iter().flatten() {
        let wrong = match key.as_str() {
            "draw" => vec![(json!(1), "variable")],
            "fileset" => vec![(json!(1), "fileset")],
            "completion" | "implicit_open" => vec![(json!(1), "operation")],
            "targets" => vec![(json!([0, 1]), "operation")],
            _ => dangling(value),
        };
        copies.extend(wrong.into_iter().map(|(value, what)| {
            let mut copy = op.clone();
            copy[key] = value;
            (copy, what)
        }));
    }
    copies
}

#[test]
fn every_reference_of_an_operation_must_exist() {
    let draw = json!({"draw": 0});
    let io = json!(io(Value::Draw(VariableId(0))));
    let ops = OPS.replace("IO", &io.to_string());
    let ops = ops.replace("FILE", &json!(file()).to_string());
    let ops = ops.replace("DRAW", &draw.to_string());
    let read = |op: &Json| serde_json::from_value::<Op>(op.clone()).unwrap();
    for op in ops.lines().filter(|l| !l.trim().is_empty()) {
        let has_file = op.contains("implicit_open");
        let op: Json = serde_json::from_str(op).unwrap();
        assert_eq!(check_steps(vec![step(read(&op))]), Ok(()), "{op}");
        assert_eq!(read(&op).file(), has_file.then(file).as_ref(), "{op}");
        let copies = dangling(&op);
        assert!(!copies.is_empty(), "{op}");
        for (copy, what) in copies {
            let expected = format!("the Plan refers to {what} 1, which does not exist");
            assert_eq!(
                check_steps(vec![step(read(&copy))]),
                Err(expected),
                "{copy}"
            );
            // In a Plan with one more fileset, random variable and row, every reference of the operation exists.
            let outcome = check(|p| {
                p.filesets.push(Fileset::new("other", 1, N(0)));
                p.variables.push(p.variables[0].clone());
                p.add_row("other", OpKind::Read, None);
                p.groups[0].program = Program::Sequence(vec![step(read(&copy))]);
            });
            assert_eq!(outcome, Ok(()), "{copy}");
        }
    }
}

#[test]
fn steps_have_rows_and_repetitions_that_exist() {
    let of = |row, iters| {
        check_steps(vec![Step::Block {
            name: "block".into(),
            iters: N(1),
            steps: vec![Step::Do {
                row,
                iters,
                op: Op::AioWait,
            }],
        }])
    };
    assert_eq!(of(ROW, Value::Draw(VariableId(0))), Ok(()));
    let dangling = |what| Err(format!("the Plan refers to {what} 1, which does not exist"));
    assert_eq!(of(NO_ROW, N(1)), dangling("operation"));
    assert_eq!(of(ROW, NO_VARIABLE), dangling("variable"));
}

#[test]
fn slots_and_nanoseconds_have_a_range() {
    let slot = |slot| check_steps(vec![step(Op::Close { slot })]);
    assert_eq!((slot(0), slot(127)), (Ok(()), Ok(())));
    let refused = Err("fd must be 0 to 127, is 128".to_owned());
    assert_eq!(slot(128), refused);
    let beyond = FileRef {
        slot: 128,
        ..file()
    };
    assert_eq!(check_steps(vec![step(Op::Stat(beyond))]), refused);
    let source = |source_slot| {
        let (file, size) = (file(), N(0));
        check_steps(vec![step(Op::WriteWhole {
            file,
            source_slot,
            size,
        })])
    };
    assert_eq!((source(None), source(Some(127))), (Ok(()), Ok(())));
    assert_eq!(source(Some(128)), refused);
    let delay = |nanoseconds| {
        let seconds = N(0);
        check_steps(vec![step(Op::Delay {
            seconds,
            nanoseconds,
        })])
    };
    assert_eq!(delay(999_999_999), Ok(()));
    assert_eq!(
        delay(1_000_000_000),
        Err("the nanoseconds of a delay must be below 1 000 000 000, are 1000000000".into())
    );
}

#[test]
fn the_first_violation_of_all_groups_is_reported() {
    let bad = |slot| Program::Sequence(vec![step(Op::AioWait), step(Op::Close { slot })]);
    let text = error(|p| {
        let other = |slot| WorkerGroup::new("other", 1, "thread", bad(slot));
        p.groups.extend([other(1), other(200), other(201)]);
    });
    assert_eq!(text, "fd must be 0 to 127, is 200");
}

#[test]
fn another_schema_is_refused() {
    let text = error(|p| p.schema_version = 2);
    assert_eq!(text, "the Plan has schema 2; this program reads 1");
}

#[test]
fn a_variable_that_cannot_be_drawn_is_named() {
    let text = error(|p| {
        p.variables[0].distribution = Distribution::Uniform {
            lower: 2.0,
            upper: 1.0,
        };
    });
    assert_eq!(text, "variable `x`: lower (2) must not exceed upper (1)");
}

#[test]
fn numbers_of_filesets_have_a_range() {
    let of = |change: fn(&mut Fileset)| check(|p| change(&mut p.filesets[0]));
    let dangling = Err("the Plan refers to variable 1, which does not exist".to_owned());
    assert_eq!(of(|f| f.size = NO_VARIABLE), dangling);
    assert_eq!(of(|f| f.depth = Some(NO_VARIABLE)), dangling);
    assert_eq!(of(|f| f.depth = Some(f.size)), Ok(()));
    assert_eq!(of(|f| f.prealloc_percent = 100), Ok(()));
    let percent = "fileset `set`: prealloc must be 0 to 100 percent, is 101";
    assert_eq!(of(|f| f.prealloc_percent = 101), Err(percent.into()));
    assert_eq!(of(|f| f.width.mean = 2.0), Ok(()));
    let width = |found| {
        Err(format!(
            "fileset `set`: dirwidth must be at least 2, is {found}"
        ))
    };
    assert_eq!(of(|f| f.width.mean = 1.5), width("1.5"));
    assert_eq!(of(|f| f.width.mean = f64::NAN), width("NaN"));
}

#[test]
fn letters_of_names_have_a_range() {
    let of = |before, after| {
        let letters = Letters { before, after };
        check(|p| p.filesets[0].letters = Some(letters))
    };
    let refused = |min: u8, max: u8| {
        Err(format!(
            "fileset `set`: names have 0 to 120 letters before and after their number, not {min} to \
             {max}"
        ))
    };
    assert_eq!(of([0, 120], [120, 120]), Ok(()));
    assert_eq!(of([3, 2], [0, 0]), refused(3, 2));
    assert_eq!(of([0, 0], [1, 0]), refused(1, 0));
    assert_eq!(of([0, 121], [0, 0]), refused(0, 121));
    assert_eq!(of([0, 0], [5, 121]), refused(5, 121));
}

#[test]
fn trees_of_filesets_are_disjoint() {
    let of = |path: &str, name: &str, other_path: &str, other: &str| {
        check(|p| {
            let set = |path: &str, name: &str| Fileset {
                path: RelPath::new(path).expect("a path"),
                ..Fileset::new(name, 1, N(0))
            };
            p.filesets = vec![
                set("elsewhere", "first"),
                set(path, name),
                set(other_path, other),
            ];
        })
    };
    let overlap = |a: &str, b: &str| {
        Err(format!(
            "filesets `{a}` and `{b}` lie in the same directory tree"
        ))
    };
    assert_eq!(of("a", "b", "a", "c"), Ok(()));
    assert_eq!(of("a", "b", "a", "bb"), Ok(()), "a name is not a directory");
    assert_eq!(of("a", "bb", "a", "b"), Ok(()));
    assert_eq!(of("a", "b", "a", "b"), overlap("b", "b"));
    assert_eq!(of("", "a", "a", "b"), overlap("a", "b"));
    assert_eq!(of("a/b", "c", "", "a"), overlap("c", "a"));
    assert_eq!(
        of("a", "..", "b", "c"),
        Err("`..` would leave the work directory: `..` and `.` are not allowed in names".into())
    );
}

#[test]
fn roots_lie_below_the_path_of_their_fileset() {
    let mut plan = plan();
    let root = |p: &Plan| p.root_of(SET).as_str().to_owned();
    assert_eq!(root(&plan), "set");
    plan.filesets[0].path = RelPath::new("/a//b/").unwrap();
    assert_eq!(root(&plan), "a/b/set");
    plan.filesets[0].name = "//".into();
    assert_eq!(root(&plan), "a/b");
    assert_eq!(plan.filesets[0].root().unwrap().to_string(), "a/b");
    let nul = RelPath::new("a\0b").unwrap_err();
    assert_eq!(nul.to_string(), "a name must not contain a NUL byte");
}

#[test]
fn commands_need_permission() {
    let command = || Phase::System {
        command: "sync".into(),
    };
    assert_eq!(
        error(|p| p.script = vec![Phase::Start, command()]),
        "the workload runs a shell command (`sync`); allow it with --allow-commands"
    );
    let allowed = check(|p| {
        p.script = vec![command()];
        p.options.allow_commands = true;
    });
    assert_eq!(allowed, Ok(()));
}

#[test]
fn populated_filesets_exist() {
    let of = |filesets| check(|p| p.script = vec![Phase::Populate { filesets }]);
    assert_eq!(of(vec![SET]), Ok(()));
    assert_eq!(
        of(vec![SET, NO_SET]),
        Err("the Plan refers to fileset 1, which does not exist".into())
    );
}

#[test]
fn an_event_rate_is_a_number_above_0() {
    assert_eq!(check(|p| p.event_rate = Some(0.5)), Ok(()));
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            error(|p| p.event_rate = Some(rate)),
            format!("the event rate must be above 0, is {rate}")
        );
    }
}
