//! One workload in the style of each dialect, and the Plan of the workload.

use super::common;

use common::lower_with;
use plimsoll_plan::{OpKind, Overrides, Phase, Plan, QuitMode, Until};
use std::time::Duration;

fn dialect(name: &str) -> Plan {
    let path = format!("{}/tests/wml/dialects/{name}.f", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    lower_with(&text, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn notes(plan: &Plan) -> Vec<&str> {
    plan.notes
        .iter()
        .map(|n| n.text.split(':').next().unwrap())
        .collect()
}

#[test]
fn the_slides() {
    let plan = dialect("slides");
    assert_eq!(
        plan.title,
        "A database's log: synchronous appends, in the style of the first releases."
    );
    assert_eq!(plan.work_dir.dir.to_str(), Some("/export/client1"));
    assert_eq!(plan.work_dir.guards[0].as_str(), "redo");
    let meanings: Vec<&str> = plan.parameters.iter().map(|p| p.meaning.as_str()).collect();
    assert_eq!(meanings, ["where the log lies", "log writers", ""]);
    let count = |phase: Phase| plan.script.iter().filter(|p| **p == phase).count();
    assert_eq!((count(Phase::CloseWindow), count(Phase::Start)), (2, 1));
    assert!(plan.script.contains(&Phase::Echo {
        text: "load heavy at 2026-01-02".into()
    }));
    assert_eq!(
        notes(&plan),
        [
            "`stats directory` has no effect here",
            "`useism` has no effect here",
            "`vars` has no effect here"
        ]
    );
}

#[test]
fn release_1_4() {
    let plan = dialect("v1_4");
    assert_eq!(
        plan.title,
        "Clients of a network file server at a fixed rate, in the style of release 1.4."
    );
    assert_eq!(plan.filesets[0].entries, 10_000);
    assert_eq!(
        (plan.filesets[0].prealloc_percent, plan.filesets[0].cached),
        (60, Some(false))
    );
    assert_eq!(plan.event_rate, Some(20.0));
    assert!(!plan.cpu_accounting);
    assert_eq!(plan.quit, QuitMode::Timeout);
    assert_eq!(plan.variables.len(), 2);
    let kinds: Vec<OpKind> = plan.operations.iter().map(|o| o.kind).collect();
    assert_eq!(kinds.len(), 9, "{kinds:?}");
    // The workload has no `run`, so lowering adds a run of the default length.
    let time = Duration::from_secs(60);
    assert!(plan.script.contains(&Phase::Wait {
        until: Until::Elapsed { time },
        snapshots: None
    }));
    assert_eq!(plan.notes, []);
}

#[test]
fn release_1_5() {
    let plan = dialect("v1_5");
    assert_eq!(plan.filesets[0].name, "data-8");
    assert_eq!(plan.filesets[0].width.gamma_shape, None);
    assert_eq!(plan.quit, QuitMode::AllDone);
    assert_eq!(plan.workers(), 16);
    let [populate, start, warm, open, wait, close, stop] = &plan.script[..] else {
        panic!("{:?}", plan.script);
    };
    assert!(matches!(populate, Phase::Populate { .. }) && *start == Phase::Start);
    assert!(
        matches!(warm, Phase::Wait { until: Until::Elapsed { time }, .. } if time.as_secs() == 10)
    );
    assert_eq!(
        (open, close, stop),
        (&Phase::OpenWindow, &Phase::CloseWindow, &Phase::Stop)
    );
    assert!(
        matches!(wait, Phase::Wait { snapshots: Some(s), .. } if s.cleared && s.every.as_secs() == 5)
    );
    let rows: Vec<(&str, OpKind)> = plan
        .operations
        .iter()
        .map(|o| (o.name.as_str(), o.kind))
        .collect();
    assert!(rows.contains(&("read", OpKind::Open)) && rows.contains(&("read", OpKind::ReadWhole)));
    assert_eq!(notes(&plan), ["`enable lathist` has no effect here"]);
}
