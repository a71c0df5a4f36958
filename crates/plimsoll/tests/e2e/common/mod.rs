//! A place to run the program in, and what the tests ask of its results.
#![allow(dead_code, missing_docs, unused_imports)]

pub mod loop_device;
pub mod pty;
pub mod python;
pub mod schema;
pub mod series;
pub mod served;
pub mod sshd;

use plimsoll_results::{Distribution, Run, RunDir, SparseInterval};
pub use plimsoll_testkit::bench::{
    Bench, CLAIM, Ended, MARKER, PATIENCE, Started, find_row, row, signal, started, started_series,
    tree, wait_until,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Codes of the reasons of a run's verdict.
pub fn codes(run: &Run) -> Vec<&str> {
    let reasons = run.validity.reasons.iter();
    reasons.map(|r| r.code.as_str()).collect()
}

/// Process id of rank `rank` among the descendants of the process `started`.
pub fn rank_of(started: u32, rank: u32) -> i32 {
    let found = family_of(started as i32);
    let names = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PLIMSOLL_LOCAL_RANK"];
    let is_it = |pid: &&i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        program
            == Path::new(env!("CARGO_BIN_EXE_plimsoll"))
                .canonicalize()
                .unwrap()
            && environ.split(|&b| b == 0).any(|variable| {
                let variable = String::from_utf8_lossy(variable);
                let (name, value) = variable.split_once('=').unwrap_or_default();
                names.contains(&name) && value.split('/').next() == Some(&rank.to_string())
            })
    };
    *found.iter().find(is_it).expect("the rank runs")
}

/// A process and all its descendants.
pub fn family_of(pid: i32) -> Vec<i32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(children_of(pid));
        next += 1;
    }
    found
}

/// The processes that a process has started.
pub fn children_of(pid: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return vec![];
    };
    threads
        .map(|thread| thread.unwrap().path().join("children"))
        .flat_map(|path| {
            std::fs::read_to_string(path)
                .unwrap_or_default()
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .flat_map(|pid| pid.parse())
        .collect()
}

/// All histograms in the log `histograms.hlog` of a run, one per line: window, interval and tag.
pub fn logged(dir: &RunDir) -> Vec<SparseInterval> {
    let mut lines = Vec::new();
    dir.each_histogram(&mut |line| lines.push(line)).unwrap();
    lines
}

/// Latency distributions of a measured window by tag (operation and kind), summed over the intervals of
/// `histograms.hlog`.
pub fn distributions(dir: &RunDir, window: u32) -> BTreeMap<String, Distribution> {
    let mut sums = BTreeMap::<String, Distribution>::new();
    for line in logged(dir).into_iter().filter(|l| l.window == window) {
        sums.entry(line.tag).or_default().add(&line.histogram);
    }
    sums
}
