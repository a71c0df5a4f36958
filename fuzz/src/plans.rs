//! Properties of Plans, and the contexts in which workloads are lowered.

use crate::refusals::check_refusal;
use plimsoll_plan::{Overrides, Plan, SourceKind};
use plimsoll_workload::NamedText;
use plimsoll_workload::mix::{Workload, lower};
use plimsoll_workload::wml::{BUILTINS, Context};
use std::hint::black_box;

/// Maximum length in bytes of a JSON form that is read again, because reading takes most of the time.
const MAX_READ_BYTES: usize = 64 << 10;

/// Checks that a Plan passes its own check, prints, and can be read from its JSON form.
pub(crate) fn check_plan(plan: &Plan) {
    assert_eq!(plan.check(), Ok(()));
    black_box(plan.to_string());
    let written = serde_json::to_string(plan).expect("a Plan has a JSON form");
    if written.len() <= MAX_READ_BYTES {
        let read: Plan = serde_json::from_str(&written).expect("a Plan is read as it is written");
        assert_eq!(&read, plan);
    }
}

/// Lowers an operation mix with `sets`, at its default load and scale and at another load and scale, and checks each
/// Plan or refusal.
pub(crate) fn check_mix(workload: &Workload, sets: Vec<(String, String)>) {
    black_box((workload.title(), workload.parameters()));
    let context = plimsoll_workload::mix::Context {
        kind: SourceKind::File,
        temp_dir: "/tmp/fuzz".into(),
    };
    let as_it_is = Overrides {
        sets,
        ..Overrides::default()
    };
    let changed = Overrides {
        load: Some(7),
        most: Some(100),
        scale: Some(0.01),
        ..as_it_is.clone()
    };
    for overrides in [as_it_is, changed] {
        match lower(workload, &overrides, &context) {
            Ok(plan) => check_plan(&plan),
            Err(errors) => check_refusal(&errors),
        }
    }
}

fn load(name: &str) -> Option<NamedText> {
    BUILTINS.find(name).map(NamedText::from)
}

/// Input of lowering for Filebench workloads: the `load` statement finds built-in workloads only.
pub(crate) struct WmlContext {
    load: fn(&str) -> Option<NamedText>,
}

impl Default for WmlContext {
    fn default() -> Self {
        Self { load }
    }
}

impl WmlContext {
    /// The context, in which `load` finds built-in workloads.
    pub(crate) fn get(&self) -> Context<'_> {
        Context {
            kind: SourceKind::File,
            temp_dir: "/tmp/fuzz".into(),
            current_dir: "/home/fuzz".into(),
            load: &self.load,
            date: "today".into(),
            hostname: "here".into(),
        }
    }
}
