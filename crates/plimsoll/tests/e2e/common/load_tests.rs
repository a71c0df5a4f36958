//! Load points: a workload with users, and what tests of curves and searches share.

use super::{Bench, Ended};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Users of two processes, which look at 100 files of 4 KiB each, 50 times per second.
pub const USERS: &str = r#"title = "looks"

[metric]
name = "users"

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

/// Files of each user.
pub const FILES_PER_USER: u64 = 200;

/// A command for the users, with results in the bench and JSON on standard output.
pub fn command(bench: &Bench, command: &str, more: &[&str]) -> Command {
    std::fs::write(bench.path("users.toml"), USERS).unwrap();
    let mut command = bench.plimsoll([command, "users.toml", "--format=json", "--results"]);
    command.arg(bench.path("results")).args(more);
    command
}

/// A command for the users on files of [`Bench::work`].
pub fn command_in_work(bench: &Bench, name: &str, times: &[&str], more: &[&str]) -> Command {
    let mut command = command(bench, name, times);
    command.arg("--dir").arg(bench.work()).args(more);
    command
}

/// The printed document.
#[track_caller]
pub fn parsed<T: DeserializeOwned>(ended: &Ended) -> T {
    let document = serde_json::from_str(&ended.stdout);
    document.unwrap_or_else(|e| panic!("no document: {e}\n{}\n{}", ended.stdout, ended.stderr))
}

/// The only results directory.
#[track_caller]
pub fn only_results(bench: &Bench) -> PathBuf {
    let dirs = bench.results();
    assert_eq!(dirs.len(), 1, "{dirs:?}");
    dirs[0].path().to_owned()
}

/// Entries of a directory, hidden ones too, in order.
pub fn entries(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
