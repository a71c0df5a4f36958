//! Runs of WML texts on real directories and on the null target.
#![allow(dead_code, missing_docs)]

use plimsoll_engine::{EngineError, Event, Observer, Outcome, Settings, Stop, run};
use plimsoll_measure::OpTotals;
use plimsoll_plan::{Overrides, Plan};
use std::path::Path;
use std::time::Duration;

#[derive(Default)]
pub struct RecordingObserver {
    pub said: Vec<String>,
    pub intervals: u64,
    pub snapshots: Vec<Duration>,
}

impl Observer for RecordingObserver {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Echo(text) => self.said.push(text.into()),
            Event::Interval(_) => self.intervals += 1,
            Event::Snapshot { elapsed, .. } => self.snapshots.push(elapsed),
            _ => {}
        }
    }
}

pub fn plan(text: &str, dir: &Path, change: impl FnOnce(&mut Overrides)) -> Plan {
    let mut overrides = Overrides {
        dir: Some(dir.into()),
        ..Overrides::default()
    };
    change(&mut overrides);
    let workload = plimsoll_workload::wml::parse(text, "test.f").unwrap_or_else(|e| panic!("{e}"));
    let context = plimsoll_workload::wml::Context {
        kind: plimsoll_plan::SourceKind::File,
        temp_dir: dir.into(),
        current_dir: dir.into(),
        load: &|_| None,
        date: "today".into(),
        hostname: "here".into(),
    };
    plimsoll_workload::wml::lower(&workload, &overrides, &context).unwrap_or_else(|e| panic!("{e}"))
}

/// The Plan of a built-in workload with the parameters `sets`, such as `nfiles=50 filesize=8k`.
pub fn built_in(name: &str, sets: &str, change: impl FnOnce(&mut Overrides)) -> Plan {
    let builtin = plimsoll_workload::wml::BUILTINS.find(name).unwrap();
    let set = |set: &str| {
        let (name, value) = set.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    };
    plan(builtin.text, Path::new("/nowhere"), |overrides| {
        overrides.sets = sets.split_whitespace().map(set).collect();
        change(overrides);
    })
}

pub fn try_run(plan: &Plan, target: &str) -> Result<(Outcome, RecordingObserver), EngineError> {
    let settings = Settings {
        target: target.into(),
        ..Settings::default()
    };
    let mut heard = RecordingObserver::default();
    run(plan, &settings, &Stop::default(), &mut heard).map(|o| (o, heard))
}

/// Runs a Plan in virtual time on the null target; a call takes `latency`.
pub fn run_virtually(plan: &Plan, latency: &str) -> Outcome {
    let settings = Settings {
        target: format!("null:?latency={latency}&clock=virtual"),
        ..Settings::default()
    };
    let outcome = run(
        plan,
        &settings,
        &Stop::default(),
        &mut RecordingObserver::default(),
    )
    .unwrap();
    assert_eq!(outcome.failure, None);
    outcome
}

pub fn run_ok(plan: &Plan) -> (Outcome, RecordingObserver) {
    let (outcome, heard) = try_run(plan, "posix").unwrap();
    assert_eq!(outcome.failure, None);
    (outcome, heard)
}

/// The codes of the reasons why the result is invalid.
pub fn codes(outcome: &Outcome) -> Vec<&str> {
    outcome.reasons.iter().map(|r| r.code.as_str()).collect()
}

/// The totals of the row named `name` in the last window.
pub fn row<'a>(plan: &Plan, outcome: &'a Outcome, name: &str) -> &'a OpTotals {
    let at = plan
        .operations
        .iter()
        .position(|o| o.name == name && format!("{}", o.kind) != "open");
    let at = at.unwrap_or_else(|| plan.operations.iter().position(|o| o.name == name).unwrap());
    &outcome.windows.last().unwrap().totals.rows[at]
}
