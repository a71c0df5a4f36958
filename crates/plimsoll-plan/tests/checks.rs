//! Checks of a Plan before it is run: the first violation is an error that names what is at fault.

use plimsoll_plan::{
    Distribution, FileRef, Fileset, FilesetId, Io, Letters, LimitKind, Op, OpKind, OperationId,
    Phase, Plan, PlanError, Program, RelPath, Step, Value, Variable, VariableId, WorkerGroup,
};

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

/// Operations with one reference that does not exist, and its kind.
fn dangling_ops() -> Vec<(Op, &'static str)> {
    let bad = NO_VARIABLE;
    let rows = || vec![ROW, NO_ROW];
    let (fileset, index) = (SET, Some(bad));
    vec![
        (Op::Read(io(bad)), "variable"),
        (Op::Write(io(bad)), "variable"),
        (
            Op::AioWrite {
                io: io(bad),
                completion: ROW,
            },
            "variable",
        ),
        (
            Op::AioWrite {
                io: io(N(1)),
                completion: NO_ROW,
            },
            "operation",
        ),
        (
            Op::ReadWhole {
                file: file(),
                size: bad,
            },
            "variable",
        ),
        (
            Op::WriteWhole {
                file: file(),
                source_slot: None,
                size: bad,
            },
            "variable",
        ),
        (
            Op::Append {
                file: file(),
                size: bad,
                random: false,
            },
            "variable",
        ),
        (Op::FsyncSet { fileset: NO_SET }, "fileset"),
        (
            Op::MakeDir {
                fileset: NO_SET,
                index: None,
            },
            "fileset",
        ),
        (Op::MakeDir { fileset, index }, "variable"),
        (
            Op::RemoveDir {
                fileset: NO_SET,
                index: None,
            },
            "fileset",
        ),
        (Op::RemoveDir { fileset, index }, "variable"),
        (
            Op::ListDir {
                fileset: NO_SET,
                index: None,
            },
            "fileset",
        ),
        (Op::ListDir { fileset, index }, "variable"),
        (
            Op::SemBlock {
                value: bad,
                high_water: N(1),
            },
            "variable",
        ),
        (
            Op::SemBlock {
                value: N(1),
                high_water: bad,
            },
            "variable",
        ),
        (
            Op::SemPost {
                targets: vec![ROW],
                value: bad,
                blocking: true,
            },
            "variable",
        ),
        (
            Op::SemPost {
                targets: rows(),
                value: N(1),
                blocking: true,
            },
            "operation",
        ),
        (Op::Wakeup { targets: rows() }, "operation"),
        (
            Op::Limit {
                kind: LimitKind::Ops,
                targets: Some(rows()),
            },
            "operation",
        ),
        (
            Op::FinishOnCount {
                value: bad,
                targets: None,
            },
            "variable",
        ),
        (
            Op::FinishOnCount {
                value: N(1),
                targets: Some(rows()),
            },
            "operation",
        ),
        (
            Op::FinishOnBytes {
                value: bad,
                targets: None,
            },
            "variable",
        ),
        (
            Op::FinishOnBytes {
                value: N(1),
                targets: Some(rows()),
            },
            "operation",
        ),
        (
            Op::Delay {
                seconds: bad,
                nanoseconds: 0,
            },
            "variable",
        ),
        (Op::Hog { value: bad }, "variable"),
        (Op::TestVariable { value: bad }, "variable"),
    ]
}

#[test]
fn every_reference_of_an_operation_must_exist() {
    for (op, what) in dangling_ops() {
        let expected = format!("the Plan refers to {what} 1, which does not exist");
        assert_eq!(check_steps(vec![step(op.clone())]), Err(expected), "{op:?}");
        // With another fileset, variable and row all of them exist.
        let outcome = check(|p| {
            p.filesets.push(Fileset::new("other", 1, N(0)));
            p.variables.push(p.variables[0].clone());
            p.add_row("other", OpKind::Read, None);
            p.groups[0].program = Program::Sequence(vec![step(op.clone())]);
        });
        assert_eq!(outcome, Ok(()), "{op:?}");
    }
}

#[test]
fn every_reference_of_a_file_must_exist() {
    let of_file = |change: fn(&mut FileRef)| {
        let mut file = file();
        change(&mut file);
        check_steps(vec![step(Op::Stat(file))])
    };
    let dangling = |what| Err(format!("the Plan refers to {what} 1, which does not exist"));
    assert_eq!(of_file(|_| ()), Ok(()));
    assert_eq!(of_file(|f| f.fileset = Some(NO_SET)), dangling("fileset"));
    assert_eq!(
        of_file(|f| f.implicit_open = Some(NO_ROW)),
        dangling("operation")
    );
    assert_eq!(
        of_file(|f| f.index = Some(NO_VARIABLE)),
        dangling("variable")
    );
    assert_eq!(
        of_file(|f| f.slot = 128),
        Err("fd must be 0 to 127, is 128".into())
    );
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

#[test]
fn what_does_not_exist_is_an_error_with_its_index() {
    let mut plan = plan();
    plan.script = vec![Phase::Populate {
        filesets: vec![FilesetId(7)],
    }];
    let (what, index) = ("fileset", 7);
    assert_eq!(plan.check(), Err(PlanError::Dangling { what, index }));
}
