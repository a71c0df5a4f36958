//! Files with the time of every operation.

use super::common;

use common::{options, plan};
use plimsoll_workload::md::LatencyFiles;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

fn names(line: &str, dir: &Path) -> BTreeSet<String> {
    let line = format!("{line} -L={}/lat", dir.display());
    let (options, plan) = (options(&line).unwrap(), plan(&line, 2));
    let files = LatencyFiles::new(&options, &plan).unwrap().unwrap();
    let named = files
        .paths()
        .map(|p| p.file_name().unwrap().to_str().unwrap().to_owned());
    named.collect()
}

fn set(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|n| format!("lat-{n}.csv")).collect()
}

#[test]
fn names_are_those_of_md_workbench() {
    let dir = tempfile::tempdir().unwrap();
    let benchmark = |factor: &str, i: u32| {
        ["read", "stat", "create", "delete"].map(|op| format!("lat-{factor}-{i}-{op}.csv"))
    };
    let mut expected = set(&["0.00-0-precreate", "0.00-2-cleanup"]);
    expected.extend(benchmark("0.00", 0));
    expected.extend(benchmark("0.00", 1));
    assert_eq!(names("-R=2", dir.path()), expected);

    let all: BTreeSet<String> = expected
        .iter()
        .map(|n| n.replace(".csv", "-all.csv"))
        .collect();
    assert_eq!(names("-R=2 --latency-all", dir.path()), all);

    let expected = set(&[
        "0.25-0-precreate",
        "0.25-0-read",
        "0.25-0-stat",
        "0.25-1-cleanup",
    ]);
    assert_eq!(names("-R=1 --read-only -t=0.25", dir.path()), expected);

    let mut expected = set(&["0.00-0-precreate", "8.00-1-cleanup"]);
    for factor in [
        "0.00", "0.06", "0.12", "0.25", "0.50", "1.00", "2.00", "4.00",
    ] {
        expected.extend(benchmark(factor, 0));
    }
    assert_eq!(names("-R=1 -T", dir.path()), expected);
    assert_eq!(names("-3", dir.path()), set(&["0.00-0-cleanup"]));
    assert_eq!(
        names("--pattern=mdtest-easy", dir.path()),
        set(&[
            "0.00-0-make-directories-make-set",
            "0.00-0-mdtest-easy-write-create",
            "0.00-0-mdtest-easy-stat-stat",
            "0.00-0-mdtest-easy-delete-delete",
            "0.00-0-remove-directories-remove-set",
        ])
    );
}

#[test]
fn without_a_prefix_there_are_no_files() {
    assert!(
        LatencyFiles::new(&options("").unwrap(), &plan("", 1))
            .unwrap()
            .is_none()
    );
}

#[test]
fn files_of_others_are_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("lat-0.00-1-stat.csv");
    std::fs::write(&there, "mine").unwrap();
    let line = format!("-L={}/lat", dir.path().display());
    let refused = LatencyFiles::new(&options(&line).unwrap(), &plan(&line, 1)).unwrap_err();
    let exists = format!("{} exists and is not overwritten", there.display());
    assert!(refused.starts_with(&exists), "{refused}");
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "mine");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);

    let line = format!("-L={}/missing/lat", dir.path().display());
    let refused = LatencyFiles::new(&options(&line).unwrap(), &plan(&line, 1)).unwrap_err();
    assert!(refused.starts_with("cannot write "), "{refused}");
}

proptest! {
    #[test]
    fn every_operation_has_its_line(
        ranks in prop::collection::vec(
            prop::collection::vec((0u64..10_000_000_000, 1u64..10_000_000_000), 0..20), 1..4,
        ),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let line = format!("-2 -R=1 --latency-all -L={}/lat", dir.path().display());
        let (options, plan) = (options(&line).unwrap(), plan(&line, 4));
        let mut files = LatencyFiles::new(&options, &plan).unwrap().unwrap();
        let row = plan.operations.iter().position(|o| o.name == "stat").unwrap() as u32;
        for samples in &ranks {
            files.add(0, row, samples).unwrap();
        }
        files.end_stage(0).unwrap();
        let text = std::fs::read_to_string(dir.path().join("lat-0.00-0-stat-all.csv")).unwrap();
        let mut lines = text.lines();
        prop_assert_eq!(lines.next(), Some("time,runtime"));
        let all: Vec<&(u64, u64)> = ranks.iter().flatten().collect();
        prop_assert_eq!(lines.clone().count(), all.len());
        for (line, (start, took)) in lines.zip(all) {
            let (time, runtime) = line.split_once(',').unwrap();
            prop_assert_eq!(time.split_once('.').unwrap().1.len(), 7);
            let (time, runtime): (f64, f64) = (time.parse().unwrap(), runtime.parse().unwrap());
            prop_assert!((time - *start as f64 / 1e9).abs() <= 0.51e-7);
            let took = *took as f64 / 1e9;
            prop_assert!((runtime - took).abs() <= took * 0.51e-4);
        }
        // A kind of operation that was never executed has a file too.
        let read = std::fs::read_to_string(dir.path().join("lat-0.00-0-read-all.csv")).unwrap();
        prop_assert_eq!(read, "time,runtime\n");
    }
}
