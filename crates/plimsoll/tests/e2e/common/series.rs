//! Series of runs: a workload with users, and helpers for tests of curves, searches and other series.

use super::{Bench, Ended};
use plimsoll_results::{Document, Run, Series, SeriesDir, SeriesRun, SeriesState};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mix whose users have two processes each; a process stats its 100 files of 4 KiB, 50 times per second.
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

/// Number of files that the workload [`USERS`] has per user.
pub const FILES_PER_USER: u64 = 200;

/// Option with which a curve measures every load, even if the test machine is too slow for the criteria.
pub const TO_THE_END: [&str; 1] = ["--stop-after-invalid=0"];

/// A `plimsoll` command on the workload [`USERS`], with results in the bench and JSON on standard output.
pub fn command(bench: &Bench, command: &str, more: &[&str]) -> Command {
    std::fs::write(bench.path("users.toml"), USERS).unwrap();
    let mut command = bench.plimsoll([command, "users.toml", "--format=json", "--results"]);
    command.arg(bench.path("results")).args(more);
    command
}

/// A `plimsoll` command on the workload [`USERS`] with files in [`Bench::work`].
pub fn command_in_work(bench: &Bench, name: &str, times: &[&str], more: &[&str]) -> Command {
    let mut command = command(bench, name, times);
    command.arg("--dir").arg(bench.work()).args(more);
    command
}

/// `plimsoll resume` of a series, with JSON on standard output.
pub fn resume(bench: &Bench, dir: &SeriesDir, more: &[&str]) -> Ended {
    let mut command = bench.plimsoll(["resume", "--format=json"]);
    command.arg(dir.path()).args(more);
    Ended::of(command)
}

/// The series that a command printed as JSON.
#[track_caller]
pub fn parsed(ended: &Ended) -> Series {
    let series = serde_json::from_str(&ended.stdout);
    series.unwrap_or_else(|e| panic!("no series: {e}\n{}\n{}", ended.stdout, ended.stderr))
}

/// Path of the only results directory in the bench.
#[track_caller]
pub fn only_results(bench: &Bench) -> PathBuf {
    only_in(&bench.path("results")).path().to_owned()
}

/// The only series in the bench's results.
#[track_caller]
pub fn only(bench: &Bench) -> SeriesDir {
    only_in(&bench.path("results"))
}

/// The only series in a directory of results.
#[track_caller]
pub fn only_in(results: &Path) -> SeriesDir {
    let names = entries(results);
    assert_eq!(names.len(), 1, "{names:?}");
    SeriesDir::at(&results.join(&names[0]))
}

/// Parsed `run.json` of one run of a series.
#[track_caller]
pub fn run_of(dir: &SeriesDir, run: &SeriesRun) -> Run {
    dir.run(run).unwrap().read().unwrap()
}

/// Parsed `run.json` of each run of a series, in series order.
#[track_caller]
pub fn runs_of(dir: &SeriesDir) -> Vec<Run> {
    let series = dir.read().unwrap();
    series.runs.iter().map(|run| run_of(dir, run)).collect()
}

/// Loads of the listed runs, in list order.
pub fn loads(series: &Series) -> Vec<u64> {
    series.runs.iter().filter_map(|run| run.load).collect()
}

/// Loads of the runs that were measured to the end, in list order.
pub fn measured_loads(series: &Series) -> Vec<u64> {
    series.measured().filter_map(|run| run.load).collect()
}

/// Changes the document of a series; returns the changed series.
pub fn edit(dir: &SeriesDir, change: impl FnOnce(&mut Series)) -> Series {
    let mut series = dir.read().unwrap();
    change(&mut series);
    std::fs::write(dir.path().join("series.json"), series.to_json()).unwrap();
    series
}

/// Keeps the first `runs` runs of a series, as if the process had been killed afterwards; returns the original series.
pub fn cut(dir: &SeriesDir, runs: usize) -> Series {
    let whole = dir.read().unwrap();
    edit(dir, |series| {
        series.runs.truncate(runs);
        (series.state, series.stop_reason) = (SeriesState::Unfinished, None);
    });
    for run in &whole.runs[runs..] {
        std::fs::remove_dir_all(dir.run(run).unwrap().path()).unwrap();
    }
    whole
}

/// Names of a directory's entries, including hidden entries, sorted.
pub fn entries(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
