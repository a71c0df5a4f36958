//! Every built-in workload parses, lowers, and makes a Plan that can be run.

use super::common;

use common::context;
use plimsoll_plan::{Overrides, Phase, SourceKind};
use plimsoll_workload::wml::{BUILTINS, lower, parameters, parse};
use std::path::PathBuf;

#[test]
fn every_builtin_lowers() {
    for b in BUILTINS.all() {
        let workload = parse(b.text, b.name).unwrap_or_else(|e| panic!("{e}"));
        let plan = lower(
            &workload,
            &Overrides::default(),
            &context(SourceKind::Builtin),
        )
        .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(plan.name, b.name);
        let first = b.text.lines().next().unwrap();
        assert_eq!(
            plan.title,
            first.trim_start_matches(['#', ' ']),
            "{}",
            b.name
        );
        assert!(plan.workers() > 0, "{}", b.name);
        let windows = plan.script.iter().filter(|p| **p == Phase::CloseWindow);
        assert_eq!(windows.count(), 1, "{}", b.name);
        assert_eq!(plan.work_dir.dir, PathBuf::from("/tmp/plimsoll-test"));
        assert!(plan.work_dir.temporary);
        assert_eq!(plan.source.kind, SourceKind::Builtin);
        assert!(plan.work_dir.guards.iter().all(|g| g.as_str().is_empty()));
    }
}

#[test]
fn every_parameter_of_a_builtin_has_a_meaning_and_can_be_set() {
    for b in BUILTINS.all() {
        let workload = parse(b.text, b.name).unwrap_or_else(|e| panic!("{e}"));
        for p in parameters(&workload) {
            assert!(
                !p.meaning.is_empty(),
                "{}: ${} has no comment",
                b.name,
                p.name
            );
            let overrides = Overrides {
                sets: vec![(p.name.clone(), p.default.clone())],
                ..Overrides::default()
            };
            let with = lower(&workload, &overrides, &context(SourceKind::Builtin))
                .unwrap_or_else(|e| panic!("{}: --set {}={}: {e}", b.name, p.name, p.default));
            let plain = lower(
                &workload,
                &Overrides::default(),
                &context(SourceKind::Builtin),
            );
            let plain = plain.unwrap_or_else(|e| panic!("{e}"));
            // Setting a parameter to its own default changes nothing.
            assert_eq!(with.groups, plain.groups, "{}: ${}", b.name, p.name);
            assert_eq!(with.filesets, plain.filesets, "{}: ${}", b.name, p.name);
        }
    }
}
