//! Repeated runs as one result: a directory with `repeats.json` and a results directory a run.

use crate::collection::{Collection, CollectionWriter};
use crate::document::{Directory, Document};
use crate::{ClockKind, Percentiles, REPEATS_FILE, ResultsError, Run, RunDir, RunWriter};
use plimsoll_plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path};
use std::time::SystemTime;

/// The content of `repeats.json`: the runs that are one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repeats {
    /// Schema version of the document.
    pub schema_version: u32,
    /// Name of the workload.
    pub workload: String,
    /// Requested number of runs.
    pub requested_runs: u32,
    /// Results directories of the runs that ended, in their order, relative to this file's.
    pub runs: Vec<String>,
}

impl Repeats {
    /// The document of no runs yet.
    #[must_use]
    pub fn new(workload: &str, requested_runs: u32) -> Self {
        Self {
            schema_version: Self::SCHEMA,
            workload: workload.to_owned(),
            requested_runs,
            runs: vec![],
        }
    }
}

impl Document for Repeats {
    const FILE: &str = REPEATS_FILE;
    const SCHEMA: u32 = 1;
    const KIND_NAME: &str = "repeated runs";
}

/// A directory of repeated runs.
pub type RepeatsDir = Directory<Repeats>;

impl Directory<Repeats> {
    /// The results of each run, in their order, without names that lead out of the directory, which
    /// this program never writes.
    ///
    /// # Errors
    /// As [`RunDir::read`], of `repeats.json`.
    pub fn runs(&self) -> Result<Vec<RunDir>, ResultsError> {
        let within = |name: &&String| {
            let mut parts = Path::new(name).components();
            matches!(
                (parts.next(), parts.next()),
                (Some(Component::Normal(_)), None)
            )
        };
        let names = self.read()?.runs;
        let dirs = names.iter().filter(within);
        Ok(dirs.map(|n| self.listed(n)).collect())
    }
}

impl Collection for Repeats {
    fn directory_name(&self) -> String {
        format!("{}-repeats", self.workload)
    }
}

/// A directory of repeated runs that is being written.
pub type RepeatsWriter = CollectionWriter<Repeats>;

impl CollectionWriter<Repeats> {
    /// A writer of the results of the next run.
    ///
    /// # Errors
    /// As [`RunWriter::create`].
    pub fn next(
        &self,
        plan: &Plan,
        started: SystemTime,
        clock: ClockKind,
    ) -> Result<RunWriter, ResultsError> {
        let name = format!("run-{:02}", self.document().runs.len() + 1);
        self.run_writer(&name, plan, started, clock)
    }

    /// Lists a run that ended.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; the file is then as it was.
    pub fn add(&mut self, run: &RunDir) -> Result<(), ResultsError> {
        let name = run.name();
        self.change(|repeats| repeats.runs.push(name))
    }

    /// Removes the directory if no run is in it, for instance because the first was refused.
    pub fn discard_if_empty(self) {
        if self.document().runs.is_empty() {
            // A run that could not be listed stays, and with it the directory.
            let _ = self.withdraw();
        }
    }
}

/// The results directories of runs in one, be it of one run or of repeated ones.
///
/// # Errors
/// As [`RunDir::read`], of `repeats.json`.
pub fn run_dirs(path: &Path) -> Result<Vec<RunDir>, ResultsError> {
    let repeats = RepeatsDir::at(path);
    match repeats.exists() {
        true => repeats.runs(),
        false => Ok(vec![RunDir::at(path)]),
    }
}

/// Reads the runs of a results directory, be it of one run or of repeated ones, with the percentiles
/// requested.
///
/// # Errors
/// As [`RunDir::read_with`].
pub fn read_runs(path: &Path, percentiles: Option<&Percentiles>) -> Result<Vec<Run>, ResultsError> {
    let dirs = run_dirs(path)?;
    dirs.iter().map(|d| d.read_with(percentiles)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_listed_run_by_run_and_stay_within_their_directory() {
        let root = tempfile::tempdir().unwrap();
        let mut writer =
            RepeatsWriter::create(root.path(), Repeats::new("read", 3), SystemTime::UNIX_EPOCH)
                .unwrap();
        let dir = writer.dir().clone();
        assert!(dir.exists() && dir.runs().unwrap().is_empty());
        writer.add(&RunDir::at(Path::new("/x/run-01"))).unwrap();
        writer.add(&RunDir::at(Path::new("/x/run-02"))).unwrap();
        let read = dir.read().unwrap();
        assert_eq!((read.requested_runs, read.runs.len()), (3, 2));
        let foreign = Repeats {
            runs: vec!["../other".into(), "/etc".into(), "run-01".into()],
            ..read
        }
        .to_json();
        std::fs::write(dir.path().join(REPEATS_FILE), foreign).unwrap();
        assert_eq!(
            dir.runs().unwrap(),
            [RunDir::at(&dir.path().join("run-01"))]
        );
    }

    #[test]
    fn a_directory_without_runs_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let writer =
            RepeatsWriter::create(root.path(), Repeats::new("read", 3), SystemTime::UNIX_EPOCH)
                .unwrap();
        writer.discard_if_empty();
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
