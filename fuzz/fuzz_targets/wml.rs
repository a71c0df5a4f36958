//! Parses and lowers any text as a workload. A Plan must pass its own check, and an error must have a
//! source location and a rendered form.
//!
//! From the root of the repository, with the texts of the tests as further corpora:
//! `cargo +nightly fuzz run wml fuzz/corpus/wml crates/plimsoll-wml/tests/{diagnostics,dialects}`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_plan::{Overrides, SourceKind};
use plimsoll_wml::{Context, Diagnostics, Loaded, library, lower, parameters, parse, title, usage};

fn load(name: &str) -> Option<Loaded> {
    library::find(name).map(|b| Loaded {
        name: b.name.into(),
        text: b.text.into(),
    })
}

fn check(errors: &Diagnostics) {
    assert!(!errors.findings().is_empty());
    assert!(!errors.to_string().is_empty());
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let workload = match parse(text, "fuzz.f") {
        Ok(workload) => workload,
        Err(errors) => return check(&errors),
    };
    let summary = (title(&workload), parameters(&workload), usage(&workload));
    std::hint::black_box(summary);
    let context = Context {
        kind: SourceKind::File,
        temp_dir: "/tmp/fuzz".into(),
        current_dir: "/home/fuzz".into(),
        load: &load,
        date: "today".into(),
        hostname: "here".into(),
    };
    match lower(&workload, &Overrides::default(), &context) {
        Ok(plan) => assert_eq!(plan.check(), Ok(())),
        Err(errors) => check(&errors),
    }
});
