//! A profile's results: a directory with `profile.json`, and the results of each run below it.

use crate::collection::{Collection, CollectionWriter};
use crate::document::{Directory, Document};
use crate::repeats::{Repeats, RepeatsWriter, read_runs};
use crate::{
    ClockKind, Environment, Hooks, PROFILE_FILE, Percentiles, Program, ResultsError, Run, RunDir,
    RunWriter, Verdict,
};
use plimsoll_plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// The content of `profile.json`: the runs of a profile and their state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileResults {
    /// Schema version of the document.
    pub schema_version: u32,
    /// Name of the profile: that of its file without the ending.
    pub profile: String,
    /// The file, as it was given.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The profile's own description; may be empty.
    pub description: String,
    /// When the first run was begun: RFC 3339, in UTC.
    pub started_at: String,
    /// Whether an interruption ended it; the runs that are left can still be made.
    pub interrupted: bool,
    /// Runs of each case, with seeds that follow each other.
    pub repeat: u32,
    /// The runs in their order.
    pub cases: Vec<ProfileCase>,
    /// Configurations that cannot be run, which the others are run without.
    pub not_run: Vec<ProfileNotRun>,
    /// Program that ran them.
    pub program: Program,
    /// Clock of the runs.
    pub clock: ClockKind,
    /// Requested number of threads that drive the workers; null if none was requested.
    pub lanes: Option<u64>,
    /// Seconds of an interval of the runs' series.
    pub interval_s: f64,
    /// Processes that make each run together.
    pub ranks: u32,
    /// The list of `--percentiles`, for tables; null without it.
    pub percentiles_shown: Option<Percentiles>,
    /// Commands of the user around the phases of each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
    /// Events of each run, as on the command line, such as `30s sh ./failover`. Those of simulated systems
    /// are also in the URLs of their targets, where the runs have them from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Notes on parts of the profile that were left out or reinterpreted.
    pub notes: Vec<String>,
    /// The machine.
    pub environment: Environment,
}

/// A configuration of a profile that cannot be run: its workload or its function is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileNotRun {
    /// The configuration, and the values that differ between its runs.
    pub name: String,
    /// The reason, in one sentence.
    pub reason: String,
}

/// A configuration of a profile with one value of each list, on one file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileCase {
    /// The configuration, and the values that differ between its runs: `read,nthreads=4`.
    pub name: String,
    /// The configuration.
    pub config: String,
    /// Name of the file system in the profile.
    pub filesystem: String,
    /// URL of the target.
    pub target: String,
    /// Fingerprint of the text of a simulated system; absent for other targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Directory of its results, relative to this file: one per file system, and in it one per case.
    pub directory: String,
    /// Everything the run does.
    pub plan: Plan,
    /// Its results directory, or that of its repeated runs, relative to this file's; null until
    /// it has ended.
    pub results: Option<String>,
    /// Its verdict, of repeated runs the worst; null until it has ended.
    pub verdict: Option<Verdict>,
}

impl ProfileCase {
    /// Whether it remains to be run: it was not reached, or an error or the user ended it.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        !matches!(self.verdict, Some(Verdict::Valid | Verdict::Invalid))
    }
}

impl ProfileResults {
    /// Names of the file systems, in the order of the first runs on them.
    #[must_use]
    pub fn filesystems(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for case in &self.cases {
            if !names.contains(&case.filesystem.as_str()) {
                names.push(&case.filesystem);
            }
        }
        names
    }

    /// Number of runs that remain to be made.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.cases.iter().filter(|c| c.is_missing()).count()
    }
}

impl Document for ProfileResults {
    const FILE: &str = PROFILE_FILE;
    const SCHEMA: u32 = 1;
    const KIND_NAME: &str = "profile";
}

/// The directory of a profile's results.
pub type ProfileDir = Directory<ProfileResults>;

impl Directory<ProfileResults> {
    /// The results directory of a case that has ended.
    #[must_use]
    pub fn results(&self, case: &ProfileCase) -> Option<PathBuf> {
        self.within(case.results.as_deref()?)
    }

    /// The runs of a case; none if it has not ended.
    ///
    /// # Errors
    /// As [`RunDir::read_with`].
    pub fn runs(
        &self,
        case: &ProfileCase,
        percentiles: Option<&Percentiles>,
    ) -> Result<Vec<Run>, ResultsError> {
        match self.results(case) {
            Some(path) => read_runs(&path, percentiles),
            None => Ok(vec![]),
        }
    }
}

impl Collection for ProfileResults {
    fn directory_name(&self) -> String {
        format!("{}-profile", self.profile)
    }

    fn list_unlisted_runs(writer: &mut ProfileWriter) -> Result<(), ResultsError> {
        let results = writer.document();
        let next = results.cases.iter().position(ProfileCase::is_missing);
        let Some(number) = next.filter(|_| results.repeat == 1) else {
            return Ok(());
        };
        let case = &results.cases[number];
        let (root, name) = writer.place_of(number);
        let path = root.join(name);
        let Ok(run) = RunDir::at(&path).read() else {
            return Ok(());
        };
        let ended = matches!(run.validity.verdict, Verdict::Valid | Verdict::Invalid);
        let is_it = run.plan.seed == case.plan.seed
            && run.plan.filesets == case.plan.filesets
            && run.target.system == case.system;
        match ended && is_it {
            true => writer.add(number, &path, run.validity.verdict),
            false => Ok(()),
        }
    }
}

/// A directory of a profile's results that is being written.
pub type ProfileWriter = CollectionWriter<ProfileResults>;

impl CollectionWriter<ProfileResults> {
    /// Parent directory and name of the results of a case.
    fn place_of(&self, number: usize) -> (PathBuf, String) {
        let directory = Path::new(&self.document().cases[number].directory);
        let normal = directory.components().filter_map(|c| match c {
            Component::Normal(name) => Some(name),
            // No program of ours wrote what leads out of the directory.
            _ => None,
        });
        let mut place = self.dir().path().to_owned();
        place.extend(normal);
        let name = place
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match place.parent() {
            Some(parent) if place != self.dir().path() => (parent.to_owned(), name),
            _ => (self.dir().path().to_owned(), "run".into()),
        }
    }

    /// A writer of the results of the case of this number.
    ///
    /// # Errors
    /// As [`RunWriter::create`].
    pub fn run(
        &self,
        number: usize,
        plan: &Plan,
        started: SystemTime,
        clock: ClockKind,
    ) -> Result<RunWriter, ResultsError> {
        let (root, name) = self.place_of(number);
        RunWriter::create_as(&name, &root, plan, started, clock)
    }

    /// A writer of the repeated runs of the case of this number.
    ///
    /// # Errors
    /// As [`RepeatsWriter::create`].
    pub fn repeats(&self, number: usize) -> Result<RepeatsWriter, ResultsError> {
        let case = &self.document().cases[number];
        let requested = self.document().repeat;
        let (root, name) = self.place_of(number);
        RepeatsWriter::create_as(&name, &root, Repeats::new(&case.plan.name, requested))
    }

    /// Notes the results directory and the verdict of a case.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; the file is then as it was.
    pub fn add(
        &mut self,
        number: usize,
        results: &Path,
        verdict: Verdict,
    ) -> Result<(), ResultsError> {
        let name = results.strip_prefix(self.dir().path()).unwrap_or(results);
        let name = name.to_string_lossy().into_owned();
        self.change(|p| {
            p.cases[number].results = Some(name);
            p.cases[number].verdict = Some(verdict);
        })
    }

    /// Removes the directory if no run is in it, for instance because the first was refused. One that
    /// was resumed stays as it is.
    pub fn remove_if_empty(self) {
        if self.is_new() && self.document().cases.iter().all(|c| c.results.is_none()) {
            for number in 0..self.document().cases.len() {
                let _ = std::fs::remove_dir(self.place_of(number).0);
            }
            // A run that could not be listed stays, and with it the directory.
            let _ = self.withdraw();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, filesystem: &str) -> ProfileCase {
        ProfileCase {
            name: name.into(),
            config: name.into(),
            filesystem: filesystem.into(),
            target: "posix".into(),
            system: None,
            directory: format!("{}/{name}", filesystem.replace('/', "-")),
            plan: Plan::empty("w"),
            results: None,
            verdict: None,
        }
    }

    fn profile() -> ProfileResults {
        ProfileResults {
            schema_version: ProfileResults::SCHEMA,
            profile: "study".into(),
            file: "study.prof".into(),
            text: String::new(),
            description: String::new(),
            started_at: String::new(),
            interrupted: false,
            repeat: 1,
            cases: vec![case("a", "ext4"), case("a", "x/fs"), case("b", "ext4")],
            not_run: vec![],
            program: Program {
                name: "plimsoll".into(),
                version: "0".into(),
            },
            clock: ClockKind::Real,
            lanes: None,
            interval_s: 1.0,
            ranks: 1,
            hooks: None,
            events: vec![],
            percentiles_shown: None,
            notes: vec![],
            environment: Environment::default(),
        }
    }

    #[test]
    fn what_ended_is_listed_and_the_rest_is_missing() {
        let root = tempfile::tempdir().unwrap();
        let mut writer =
            ProfileWriter::create(root.path(), profile(), SystemTime::UNIX_EPOCH).unwrap();
        let path = writer.dir().path().to_owned();
        writer.add(0, &path.join("ext4/a"), Verdict::Valid).unwrap();
        writer
            .add(1, &path.join("x-fs/a"), Verdict::Failed)
            .unwrap();
        assert!(matches!(
            ProfileWriter::resume(&path),
            Err(ResultsError::InUse { .. })
        ));
        drop(writer);
        let resumed = ProfileWriter::resume(&path).unwrap();
        let results = resumed.document();
        assert_eq!(results.filesystems(), ["ext4", "x/fs"]);
        assert_eq!(results.missing(), 2);
        let dir = resumed.dir();
        assert_eq!(dir.results(&results.cases[0]), Some(path.join("ext4/a")));
        assert_eq!(dir.results(&results.cases[2]), None);
    }

    #[test]
    fn names_that_lead_out_of_the_directory_are_not_followed() {
        let dir = ProfileDir::at(Path::new("/r"));
        for name in ["../x", "/etc", "a/../../b", ""] {
            let case = ProfileCase {
                results: Some(name.into()),
                ..case("a", "ext4")
            };
            assert_eq!(dir.results(&case), None, "{name}");
        }
    }

    #[test]
    fn a_profile_without_runs_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let writer = ProfileWriter::create(root.path(), profile(), SystemTime::UNIX_EPOCH).unwrap();
        writer.remove_if_empty();
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
