//! Tests of the printed form of a Plan.

mod filesets;
mod sections;
mod steps;

use plimsoll_plan::{
    Access, Cold, Content, Distribution, EntriesPerDir, FileRef, Fileset, FilesetId, Io, Layout,
    Letters, Note, OnError, Op, OpKind, Operation, OperationId, OpsLimit, Parameter, Phase, Plan,
    PlanView, Program, QuitMode, RelPath, Row, RunOptions, Snapshots, SourceKind, SourcePosition,
    Step, Until, Value, Variable, VariableId, WorkerGroup,
};
use std::time::Duration;

const DRAW: Value = Value::Draw(VariableId(0));
const SET: FilesetId = FilesetId(0);

fn fileset(name: &str, entries: u64, size: Value) -> Fileset {
    Fileset {
        path: RelPath::new("data").unwrap(),
        width: EntriesPerDir {
            mean: 10.0,
            gamma_shape: Some(1.5),
        },
        prealloc_percent: 80,
        reuse: false,
        ..Fileset::new(name, entries, size)
    }
}

fn file(fileset: Option<FilesetId>) -> FileRef {
    FileRef {
        fileset,
        ..FileRef::in_slot(1)
    }
}

fn io(random: bool) -> Io {
    Io {
        file: file(Some(SET)),
        size: Value::Const(8192),
        random,
        working_set: if random { 1 << 20 } else { 0 },
    }
}

/// Operations as JSON, one of each kind; words in capitals are replaced by values that several operations share.
const OPS: &str = r#"
    {"read": IO(false)}
    {"write": IO(true)}
    {"aio_write": {"io": IO(true), "completion": 0}}
    "aio_wait"
    {"open": DIRECT}
    {"create": SET}
    {"close": {"slot": 1}}
    {"read_whole": {"file": OPEN, "size": {"const": 0}}}
    {"write_whole": {"file": OPEN, "source_slot": 2, "size": {"const": 1048576}}}
    {"append": {"file": OPEN, "size": {"draw": 0}, "random": true}}
    {"delete": SET}
    {"stat": SET}
    {"fsync": OPEN}
    {"fsync_set": {"fileset": 0}}
    {"make_dir": {"fileset": 0, "index": null}}
    {"remove_dir": {"fileset": 0, "index": {"const": 3}}}
    {"list_dir": {"fileset": 0, "index": null}}
    {"sem_block": {"value": {"const": 5}, "high_water": {"const": 9}}}
    {"sem_post": {"targets": [0], "value": {"const": 1}, "blocking": true}}
    "block"
    {"wakeup": {"targets": [0]}}
    {"hog": {"value": {"const": 2000}}}
    {"delay": {"seconds": {"const": 1}}}
    {"delay": {"seconds": {"const": 0}, "nanoseconds": 250000}}
    {"limit": {"kind": "bandwidth", "targets": [0]}}
    {"limit": {"kind": "calls", "targets": null}}
    {"finish_on_count": {"value": {"const": 10000}, "targets": null}}
    {"finish_on_bytes": {"value": {"const": 1073741824}, "targets": null}}
    {"print": {"text": "hello\n"}}
    {"test_variable": {"value": {"draw": 0}}}
"#;

fn ops() -> Vec<Op> {
    let set = file(Some(SET));
    let direct = FileRef {
        direct: true,
        dsync: true,
        no_read_ahead: true,
        open_next: true,
        index: Some(DRAW),
        ..set.clone()
    };
    let files = [("DIRECT", direct), ("SET", set), ("OPEN", file(None))];
    let mut text = OPS.to_owned();
    for (name, file) in files {
        text = text.replace(name, &serde_json::to_string(&file).unwrap());
    }
    for random in [false, true] {
        let io = serde_json::to_string(&io(random)).unwrap();
        text = text.replace(&format!("IO({random})"), &io);
    }
    let lines = text.lines().filter(|l| !l.trim().is_empty());
    lines.map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn plan() -> Plan {
    let mut plan = Plan::empty("everything");
    plan.title = "one of each".into();
    plan.work_dir.dir = "/mnt/test".into();
    plan.work_dir.temporary = true;
    let parameter = |name: &str, value: &str, default: &str, meaning: &str| Parameter {
        name: name.into(),
        value: value.into(),
        default: default.into(),
        meaning: meaning.into(),
    };
    plan.parameters = vec![
        parameter("nfiles", "200", "10000", "files"),
        parameter("iosize", "8k", "8k", ""),
    ];
    plan.variables = vec![Variable {
        name: "filesize".into(),
        distribution: Distribution::Gamma {
            offset: 0.0,
            shape: 1.5,
            scale: 87_381.333,
        },
        min: None,
        max: Some(1e6),
        round: 512,
        seed: None,
    }];
    plan.filesets = vec![
        fileset("bigfileset", 200, DRAW),
        fileset("log", 3, 4096.into()),
    ];
    plan.filesets[1].leaf_dirs = 2;
    plan.operations = vec![Operation {
        name: "op".into(),
        kind: OpKind::Read,
        location: None,
    }];
    let step = |op| Step::Do {
        row: OperationId(0),
        iters: Value::Const(1),
        op,
    };
    let composite = Step::Block {
        name: "work".into(),
        iters: Value::Const(4),
        steps: vec![Step::Do {
            row: OperationId(0),
            iters: DRAW,
            op: Op::AioWait,
        }],
    };
    let steps = ops().into_iter().map(step).chain([composite]);
    plan.groups = vec![WorkerGroup {
        process: "reader".into(),
        process_instances: 2,
        thread: "user".into(),
        thread_instances: 50,
        memory: 10 << 20,
        nice: 5,
        io_priority: Some(2),
        program: Program::Sequence(steps.collect()),
        location: None,
    }];
    plan.event_rate = Some(100.0);
    plan.quit = QuitMode::FirstDone;
    plan.script = script();
    plan.options.ops = Some(OpsLimit::PerWorker(1000));
    plan.options.on_error = OnError::Count;
    plan.options.content = Content::Compressible { ratio: 2.5 };
    plan.options.drop_caches = Cold::Files;
    plan.options.cpus = vec![0, 2];
    plan.notes = vec![Note {
        text: "`useism` has no meaning any more".into(),
        location: Some(SourcePosition {
            file: "x.f".into(),
            line: 3,
            column: 9,
        }),
    }];
    plan
}

fn script() -> Vec<Phase> {
    let ten = Duration::from_secs(10);
    vec![
        Phase::Populate {
            filesets: vec![SET, FilesetId(1)],
        },
        Phase::Start,
        Phase::Wait {
            until: Until::Elapsed { time: ten },
            snapshots: None,
        },
        Phase::OpenWindow,
        Phase::Wait {
            until: Until::Done { at_most: Some(ten) },
            snapshots: Some(Snapshots {
                every: Duration::from_secs(2),
                cleared: true,
            }),
        },
        Phase::Wait {
            until: Until::Done { at_most: None },
            snapshots: None,
        },
        Phase::CloseWindow,
        Phase::Stop,
        Phase::Echo {
            text: "done".into(),
        },
        Phase::System {
            command: "sync".into(),
        },
    ]
}

#[test]
fn everything_a_plan_can_hold_is_printed() {
    let plan = plan();
    let layouts: Vec<Layout> = [0, 1]
        .map(|i| Layout::new(&plan, FilesetId(i)).unwrap())
        .into();
    let view = PlanView {
        plan: &plan,
        layouts: layouts.iter().collect(),
    };
    insta::assert_snapshot!(view);
}

#[test]
fn distributions_are_named_with_their_parameters() {
    let json = r#"[
        {"type": "uniform", "lower": 1.0, "upper": 2.5},
        {"type": "normal", "mean": 4.0, "sigma": 0.5},
        {"type": "lognormal", "mu": 1.0, "sigma": 2.0},
        {"type": "exponential", "mean": 3.0},
        {"type": "gamma", "offset": 10.0, "shape": 2.0, "scale": 5.0},
        {"type": "triangular", "lower": 0.0, "upper": 4.0, "mode": 1.0},
        {"type": "weibull", "shape": 1.0, "scale": 2.0},
        {"type": "table", "rows": [
            {"percent": 80.0, "min": 1024.0, "max": 4096.0},
            {"percent": 20.0, "min": 4096.0, "max": 8192.0}
        ]}
    ]"#;
    let distributions: Vec<Distribution> = serde_json::from_str(json).unwrap();
    let shown: Vec<String> = distributions.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(shown.join("\n"));
}
