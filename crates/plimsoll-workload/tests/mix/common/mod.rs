//! Lowering of workload texts.

use plimsoll_diagnostics::Diagnostics;
use plimsoll_plan::{Overrides, Plan, SourceKind};
use plimsoll_workload::mix::{Context, lower, parse};

/// A workload with one component, whose only operation is `stat`.
pub const SMALL: &str = r#"title = "looks"

[metric]
name = "users"

[run]
warmup = "10s"
time = "1m"

[[component]]
name = "looker"
processes = 2
rate = 50

[component.mix]
stat = 100

[component.files]
count = 100
size = "4k"
"#;

pub fn try_plan(text: &str, change: impl FnOnce(&mut Overrides)) -> Result<Plan, Diagnostics> {
    let mut overrides = Overrides {
        dir: Some("/work".into()),
        ..Overrides::default()
    };
    change(&mut overrides);
    let context = Context {
        kind: SourceKind::File,
        temp_dir: "/tmp/fresh".into(),
    };
    lower(&parse(text, "test.toml")?, &overrides, &context)
}

#[track_caller]
pub fn plan(text: &str, change: impl FnOnce(&mut Overrides)) -> Plan {
    try_plan(text, change).unwrap_or_else(|e| panic!("{e}"))
}

/// The diagnostics of a text, which must be invalid.
#[track_caller]
pub fn refusal(text: &str) -> Diagnostics {
    match try_plan(text, |_| ()) {
        Ok(_) => panic!("it is not refused"),
        Err(e) => e,
    }
}
