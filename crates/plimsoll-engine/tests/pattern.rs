//! Patterns on real directories: MD-Workbench's, with one rank.

mod common;

use common::RecordingObserver;
use plimsoll_engine::{EngineError, Event, Observer, Outcome, Settings, Stop, clean, run};
use plimsoll_plan::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

const PRECREATE: u64 = 7;
const SETS: u32 = 3;
const ROUNDS: u64 = 5;

fn step(row: u32, op: ObjectOp, per_set: i64, offset: u64) -> ObjectStep {
    let constant = 0;
    ObjectStep {
        row: OperationId(row),
        op,
        owner: RankShift { constant, per_set },
        offset,
        gates: op == ObjectOp::Stat,
    }
}

fn stage(name: &str, iteration: u32, work: ObjectLoop) -> Stage {
    Stage {
        name: name.into(),
        iteration,
        work: StageWork::Objects(work),
        on_error: OnError::Stop,
        warm_up: false,
        waiting_factor: 0.0,
        stonewall: None,
        squeeze_memory: None,
    }
}

/// MD-Workbench with the stages in `stages`: `p`recreate, `b`enchmark, `c`leanup.
fn plan(dir: &Path, stages: &str) -> Plan {
    let (create, stat, read, delete) = (0, 1, 2, 3);
    let whole = ObjectLoop {
        make_sets: None,
        rounds: Rounds::Count(PRECREATE),
        order: ObjectOrder::Rounds,
        steps: vec![],
        advances: StageProgress::Nothing,
        remove_sets: None,
    };
    let make = ObjectOp::Create { sync: false };
    let mut made = Vec::new();
    for (i, letter) in stages.chars().enumerate() {
        made.push(match letter {
            'p' => stage(
                "precreate",
                0,
                ObjectLoop {
                    make_sets: Some(OperationId(4)),
                    steps: vec![step(create, make, 0, 0)],
                    ..whole.clone()
                },
            ),
            'b' => stage(
                "benchmark",
                i as u32,
                ObjectLoop {
                    rounds: Rounds::Count(ROUNDS),
                    steps: vec![
                        step(stat, ObjectOp::Stat, -1, 0),
                        step(read, ObjectOp::Read, -1, 0),
                        step(delete, ObjectOp::Delete, -1, 0),
                        step(create, make, 1, PRECREATE),
                    ],
                    advances: StageProgress::Position,
                    ..whole.clone()
                },
            ),
            'c' => stage(
                "cleanup",
                0,
                ObjectLoop {
                    rounds: Rounds::Left {
                        window: PRECREATE,
                        deleted_by: RankShift {
                            constant: 0,
                            per_set: 1,
                        },
                        made_by: RankShift {
                            constant: 0,
                            per_set: -1,
                        },
                    },
                    order: ObjectOrder::Sets,
                    steps: vec![step(delete, ObjectOp::Delete, 0, 0)],
                    remove_sets: Some(OperationId(5)),
                    ..whole.clone()
                },
            ),
            other => panic!("{other}"),
        });
    }
    let root = RelPath::new("out").unwrap();
    let pattern = Pattern {
        root_is: if stages.starts_with('p') {
            RootHandling::New
        } else {
            RootHandling::Kept
        },
        leaves_objects: !stages.ends_with('c'),
        set_name: NameTemplate::parse("{rank}_{set}").unwrap(),
        object_name: NameTemplate::parse("file-{object}").unwrap(),
        sets: SETS,
        object_size: 3901,
        verify: true,
        samples: Samples::First,
        ..Pattern::empty(root.clone(), 1, made)
    };
    let row = |name: &str, kind| Operation {
        name: name.into(),
        kind,
        location: None,
    };
    let mut plan = Plan::empty("md");
    plan.work_dir.dir = dir.into();
    plan.work_dir.guards = vec![root];
    plan.quit = QuitMode::AllDone;
    plan.operations = vec![
        row("create", OpKind::ObjectCreate),
        row("stat", OpKind::Stat),
        row("read", OpKind::ObjectRead),
        row("delete", OpKind::Delete),
        row("make set", OpKind::MakeDir),
        row("remove set", OpKind::RemoveDir),
    ];
    for stage in 0..pattern.stages.len() as u32 {
        plan.script.extend([
            Phase::StartStage { stage },
            Phase::OpenWindow,
            Phase::Wait {
                until: Until::Done { at_most: None },
                snapshots: None,
            },
            Phase::CloseWindow,
            Phase::Stop,
        ]);
    }
    plan.groups = vec![WorkerGroup {
        process: "rank".into(),
        process_instances: pattern.ranks,
        thread: "worker".into(),
        thread_instances: 1,
        memory: 4096,
        nice: 0,
        io_priority: None,
        program: Program::Pattern(Box::new(pattern)),
        location: None,
    }];
    plan
}

fn pattern(plan: &mut Plan) -> &mut Pattern {
    match &mut plan.groups[0].program {
        Program::Pattern(pattern) => pattern,
        _ => unreachable!(),
    }
}

fn try_run(plan: &Plan, target: &str) -> Result<(Outcome, Stages), EngineError> {
    let settings = Settings {
        target: target.into(),
        ..Settings::default()
    };
    let mut heard = Stages::default();
    run(plan, &settings, &Stop::default(), &mut heard).map(|o| (o, heard))
}

/// An observer that keeps the numbers of ended stages and of samples, and passes other events to a `RecordingObserver`.
#[derive(Default)]
struct Stages {
    ended: Vec<u32>,
    /// Number of the stage, number of the row, and count of samples, for each `Event::Samples`.
    samples: Vec<(u32, u32, usize)>,
    heard: RecordingObserver,
}

impl Observer for Stages {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::StageEnd { stage, ranks, .. } => {
                assert_eq!(ranks.len(), 1);
                self.ended.push(stage);
            }
            Event::Samples {
                stage,
                row,
                samples,
                ..
            } => {
                assert!(samples.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0));
                self.samples.push((stage, row, samples.len()));
            }
            other => self.heard.event(other),
        }
    }
}

/// Codes and texts of the reasons why the result is invalid.
fn reasons(outcome: &Outcome) -> Vec<String> {
    let text = |r: &Reason| format!("{}: {}", r.code, r.text);
    outcome.reasons.iter().map(text).collect()
}

fn objects(dir: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for set in std::fs::read_dir(dir.join("out")).unwrap() {
        let set = set.unwrap();
        if set.file_type().unwrap().is_dir() {
            for object in std::fs::read_dir(set.path()).unwrap() {
                let object = object.unwrap();
                assert_eq!(object.metadata().unwrap().len(), 3901);
                let name = object.file_name().into_string().unwrap();
                found.insert(format!("{}/{name}", set.file_name().into_string().unwrap()));
            }
        }
    }
    found
}

fn expected(from: u64, to: u64) -> BTreeSet<String> {
    (0..SETS)
        .flat_map(|s| (from..to).map(move |i| format!("0_{s}/file-{i}")))
        .collect()
}

#[test]
fn phases_apart_leave_what_the_rules_say() {
    let dir = tempfile::tempdir().unwrap();
    let (outcome, heard) = try_run(&plan(dir.path(), "p"), "posix").unwrap();
    assert_eq!((outcome.failure, outcome.reasons.len()), (None, 0));
    assert_eq!(objects(dir.path()), expected(0, PRECREATE));
    let all = (PRECREATE * u64::from(SETS)) as usize;
    assert_eq!(heard.samples, [(0, 0, all), (0, 4, SETS as usize)]);

    let again = try_run(&plan(dir.path(), "p"), "posix").map(|_| ());
    let Err(EngineError::Refused(why)) = again else {
        panic!("{again:?}");
    };
    assert!(why.contains("plimsoll clean"), "{why}");

    let (outcome, _) = try_run(&plan(dir.path(), "bb"), "posix").unwrap();
    assert_eq!((outcome.failure, outcome.reasons.len()), (None, 0));
    assert_eq!(
        objects(dir.path()),
        expected(2 * ROUNDS, 2 * ROUNDS + PRECREATE)
    );
    for window in &outcome.windows {
        let ops: Vec<u64> = window.totals.rows.iter().map(|r| r.ops).collect();
        let n = ROUNDS * u64::from(SETS);
        assert_eq!(ops, [n, n, n, n, 0, 0]);
    }

    let mut last = plan(dir.path(), "c");
    pattern(&mut last).position = 2 * ROUNDS;
    let (outcome, heard) = try_run(&last, "posix").unwrap();
    assert_eq!((outcome.failure, outcome.reasons.len()), (None, 0));
    assert_eq!(heard.ended, [0]);
    assert!(!dir.path().join("out").exists());
}

#[test]
fn a_whole_run_counts_its_rounds_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (outcome, heard) = try_run(&plan(dir.path(), "pbbbc"), "posix").unwrap();
    assert_eq!((outcome.failure, outcome.reasons.len()), (None, 0));
    assert_eq!(heard.ended, [0, 1, 2, 3, 4]);
    let rounds: Vec<u64> = outcome.stages.iter().map(|s| s.ranks[0].rounds).collect();
    assert_eq!(rounds, [PRECREATE, ROUNDS, ROUNDS, ROUNDS, PRECREATE]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let mut on_nothing = plan(dir.path(), "pbbbc");
    let refused = try_run(&on_nothing, "null").map(|_| ());
    assert!(
        matches!(refused, Err(EngineError::Refused(_))),
        "{refused:?}"
    );
    pattern(&mut on_nothing).verify = false;
    let (outcome, _) = try_run(&on_nothing, "null").unwrap();
    assert_eq!((outcome.failure, outcome.stages.len()), (None, 5));
}

/// A stage without a round makes the result invalid, even if the stage has made directories.
#[test]
fn a_stage_without_a_round_makes_the_result_invalid() {
    let with = |stages: &str, change: &dyn Fn(usize, &mut ObjectLoop)| {
        let dir = tempfile::tempdir().unwrap();
        let mut plan = plan(dir.path(), stages);
        for (at, stage) in pattern(&mut plan).stages.iter_mut().enumerate() {
            match &mut stage.work {
                StageWork::Objects(l) => change(at, l),
                StageWork::Transfers(_) | StageWork::Search(_) => unreachable!(),
            }
        }
        let (outcome, _) = try_run(&plan, "posix").unwrap();
        assert_eq!(outcome.failure, None);
        reasons(&outcome)
    };
    let idle = |l: &mut ObjectLoop| l.rounds = Rounds::Count(0);
    let none = |stage: &str| [format!("no_operations: no round was completed in: {stage}")];
    assert_eq!(
        with("pbc", &|at, l| if at == 1 {
            idle(l)
        }),
        none("benchmark")
    );
    assert_eq!(with("p", &|_, l| idle(l)), none("precreate"));
    let made_before = with("pp", &|at, l| match at {
        // The stage only makes directories.
        0 => {
            idle(l);
            l.steps.clear();
        }
        _ => l.make_sets = None,
    });
    assert_eq!(made_before, [""; 0]);
}

#[test]
fn what_was_not_written_is_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    try_run(&plan(dir.path(), "p"), "posix").unwrap();
    let out = dir.path().join("out");
    let copied = std::fs::read(out.join("0_1/file-3")).unwrap();
    std::fs::write(out.join("0_0/file-2"), copied).unwrap();
    std::fs::write(out.join("0_2/file-4"), b"short").unwrap();
    let mut bench = plan(dir.path(), "b");
    pattern(&mut bench).stages[0].on_error = OnError::Count;
    let (outcome, _) = try_run(&bench, "posix").unwrap();
    let codes: Vec<_> = outcome.windows[0].totals.rows[2]
        .errors
        .clone()
        .into_iter()
        .collect();
    assert_eq!(
        codes,
        [("EBADMSG".to_string(), 1), ("ENODATA".to_string(), 1)]
    );
    assert_eq!(outcome.reasons[0].code, "errors");
    let note = &outcome.notes[0];
    assert!(note.contains("out/0_0/file-2"), "{note}");
    assert!(note.contains("of byte 0 of `out/0_1/file-3`"), "{note}");
    // After a failed stat the remaining steps are left out; after a failed read the object is removed all the same.
    assert_eq!(objects_named(dir.path(), "0_2/file-4"), 0);
}

fn objects_named(dir: &Path, name: &str) -> usize {
    usize::from(dir.join("out").join(name).exists())
}

#[test]
fn a_stonewall_ends_a_stage_after_a_whole_round() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = plan(dir.path(), "pbbc");
    for stage in &mut pattern(&mut plan).stages[1..3] {
        stage.stonewall = Some(Stonewall {
            after: Duration::ZERO,
            wear_out: stage.iteration == 2,
        });
        // However fast the machine is, a round takes some time.
        stage.waiting_factor = 1.0;
    }
    let (outcome, _) = try_run(&plan, "posix").unwrap();
    assert_eq!(outcome.failure, None);
    assert_eq!(
        reasons(&outcome),
        ["no_operations: no round was completed in: benchmark"]
    );
    let ranks: Vec<_> = outcome.stages.iter().map(|s| &s.ranks[0]).collect();
    for rank in &ranks[1..3] {
        assert_eq!(rank.stonewall_rounds, Some(0));
        assert_eq!(rank.rounds, 0);
    }
    assert!(!dir.path().join("out").exists());
}

#[test]
fn an_error_names_the_object() {
    let dir = tempfile::tempdir().unwrap();
    try_run(&plan(dir.path(), "p"), "posix").unwrap();
    std::fs::remove_file(dir.path().join("out/0_1/file-0")).unwrap();
    let (outcome, _) = try_run(&plan(dir.path(), "b"), "posix").unwrap();
    let failure = outcome.failure.unwrap();
    assert_eq!(failure.operation, "stat");
    let path = failure.path.as_deref().unwrap();
    assert!(path.ends_with("out/0_1/file-0"), "{path}");
    assert!(failure.error.contains("ENOENT"), "{failure:?}");
}

#[test]
fn phases_that_do_not_belong_together_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |plan: &Plan| match try_run(plan, "posix") {
        Err(EngineError::Refused(why)) => why,
        other => panic!("{:?}", other.map(|_| ())),
    };
    assert!(refused(&plan(dir.path(), "b")).contains("the phase that makes them comes first"));
    try_run(&plan(dir.path(), "p"), "posix").unwrap();
    let mut other = plan(dir.path(), "b");
    pattern(&mut other).object_size = 10;
    assert!(refused(&other).contains("another pattern"));
    let mut two = plan(dir.path(), "b");
    two.groups[0].process_instances = 2;
    pattern(&mut two).ranks = 2;
    assert!(refused(&two).contains("one of 2 ranks and there are 1"));
}

#[test]
fn what_a_run_left_is_cleaned_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::default();
    let out = dir.path().join("out");
    try_run(&plan(dir.path(), "p"), "posix").unwrap();
    std::fs::write(out.join("0_1/notes"), b"mine").unwrap();
    assert!(matches!(
        clean(dir.path(), &settings, false, &Stop::default()),
        Err(EngineError::Refused(_))
    ));
    let left = clean(&out, &settings, false, &Stop::default()).unwrap();
    assert_eq!(left.foreign, ["out/0_1/notes", "out/0_1"]);
    assert_eq!(left.unremoved, [""; 0]);
    assert_eq!(objects_named(dir.path(), "0_1/notes"), 1);
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), 1);
    assert!(matches!(
        clean(&out, &settings, false, &Stop::default()),
        Err(EngineError::Refused(_))
    ));
    std::fs::remove_dir_all(&out).unwrap();
    try_run(&plan(dir.path(), "p"), "posix").unwrap();
    let left = clean(&out, &settings, false, &Stop::default()).unwrap();
    assert_eq!(left, plimsoll_measure::Cleanup::default());
    assert!(!out.exists());
}
