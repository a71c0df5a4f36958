//! A study's results: a directory with `study.json`, and the results of each of its steps below it.

use crate::collection::{Collection, CollectionWriter};
use crate::document::{Directory, Document};
use crate::whole_file::replace;
use crate::{Environment, Kind, Program, ResultsError, STUDY_FILE, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// The content of `study.json`: what a study does on which test beds, and what has been done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyResults {
    /// Schema version of the document.
    pub schema_version: u32,
    /// Name of the study.
    pub study: String,
    /// The question that it answers.
    pub question: String,
    /// When the first step was begun: RFC 3339, in UTC.
    pub started_at: String,
    /// Whether an interruption ended it; the steps that are left can still be done.
    pub interrupted: bool,
    /// The test beds, in the order in which they are used.
    pub beds: Vec<StudyBed>,
    /// The steps in their order; those on one bed follow each other.
    pub steps: Vec<StudyStep>,
    /// Program that did them.
    pub program: Program,
    /// Notes on the study, such as what its figures do not show.
    pub notes: Vec<String>,
    /// The machine.
    pub environment: Environment,
}

/// A test bed of a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StudyBed {
    /// Its name while it is up.
    pub name: String,
    /// What `testbed up` is given besides the name: the kind, and its options.
    pub arguments: Vec<String>,
    /// Why the bed could not be started, in one sentence; its steps are not done then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// A step of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyStep {
    /// Name of the bed.
    pub bed: String,
    /// What is compared: steps of one group are columns of one table. Empty for steps that only prepare.
    pub group: String,
    /// The column.
    pub column: String,
    /// What is done.
    pub action: StudyAction,
    /// How it ended; null until it has.
    pub state: Option<StepState>,
    /// Seconds that it took.
    pub seconds: f64,
    /// Its results directory, relative to this file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<String>,
    /// What the bed's status said, line by line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<String>,
    /// Why it failed: the last line that its command wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StudyAction {
    /// A command of this program that leaves no results: its arguments.
    Prepare(Vec<String>),
    /// A command of this program whose results belong to the study: its arguments, without `--results`.
    Measure(Vec<String>),
    /// The status of the bed, once it is settled.
    Status {
        /// Seconds to wait at most until the bed is settled.
        wait_s: u64,
    },
    /// Nothing, for this many seconds.
    Pause {
        /// Seconds.
        seconds: u64,
    },
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// It was done; its results are valid, if it has any.
    Valid,
    /// It was done, and its results say why they are not valid.
    Invalid,
    /// It failed.
    Failed,
    /// The user ended it.
    Interrupted,
}

impl StudyStep {
    /// Whether it remains to be done: it was not reached, or an error or the user ended it.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        !matches!(self.state, Some(StepState::Valid | StepState::Invalid))
    }

    /// Whether it belongs to what was done just before on the same bed, and means nothing without it.
    #[must_use]
    pub fn follows_another(&self) -> bool {
        matches!(self.action, StudyAction::Status { .. })
    }
}

impl StudyResults {
    /// Number of steps that remain to be done.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.steps.iter().filter(|s| s.is_missing()).count()
    }

    /// The steps to be done on a bed, by their numbers: from the first that is missing, or from the one
    /// that it follows. Steps that only prepare are done again, because the bed is a new one.
    #[must_use]
    pub fn due(&self, bed: &str) -> Vec<usize> {
        let steps = || (0..self.steps.len()).filter(|i| self.steps[*i].bed == bed);
        let Some(mut first) = steps().find(|i| self.steps[*i].is_missing()) else {
            return vec![];
        };
        while self.steps[first].follows_another() && first > 0 && self.steps[first - 1].bed == bed {
            first -= 1;
        }
        let is_due = |i: &usize| {
            let prepares = matches!(
                self.steps[*i].action,
                StudyAction::Prepare(_) | StudyAction::Pause { .. }
            );
            *i >= first || prepares
        };
        steps().filter(is_due).collect()
    }

    /// The status of its results in a list.
    #[must_use]
    pub fn status(&self) -> Status {
        let any = |state| self.steps.iter().any(|s| s.state == Some(state));
        if any(StepState::Failed) || self.beds.iter().all(|b| b.unavailable.is_some()) {
            Status::Failed
        } else if self.interrupted || any(StepState::Interrupted) {
            Status::Interrupted
        } else if self.is_unfinished() {
            Status::Unfinished
        } else {
            // A load that is hurt, or is more than a system can carry, is what studies are about: each
            // result says for itself whether it is valid.
            Status::Valid
        }
    }

    /// Whether steps are left on beds that could be started.
    fn is_unfinished(&self) -> bool {
        let unavailable = |name: &str| {
            let bed = self.beds.iter().find(|b| b.name == name);
            bed.is_some_and(|b| b.unavailable.is_some())
        };
        let mut missing = self.steps.iter().filter(|s| s.is_missing());
        missing.any(|s| !unavailable(&s.bed))
    }
}

impl Document for StudyResults {
    const FILE: &str = STUDY_FILE;
    const SCHEMA: u32 = 1;
    const KIND_NAME: &str = "study";
}

impl Collection for StudyResults {
    fn directory_name(&self) -> String {
        format!("{}-study", self.study)
    }
}

/// The directory of a study's results.
pub type StudyDir = Directory<StudyResults>;

/// A directory of a study's results that is being written.
pub type StudyWriter = CollectionWriter<StudyResults>;

impl Directory<StudyResults> {
    /// The results directory of a step. A name that leads out of the directory is left out: no program of
    /// ours wrote it.
    #[must_use]
    pub fn results(&self, step: &StudyStep) -> Option<PathBuf> {
        let name = Path::new(step.results.as_deref()?);
        let within = name.components().all(|c| matches!(c, Component::Normal(_)));
        (within && name != Path::new("")).then(|| self.path().join(name))
    }

    /// The kind of a step's results.
    #[must_use]
    pub fn kind(&self, step: &StudyStep) -> Option<(PathBuf, Kind)> {
        let path = self.results(step)?;
        let kind = Kind::of(&path).ok()?;
        Some((path, kind))
    }
}

impl CollectionWriter<StudyResults> {
    /// Writes another file of the results, such as a page, over the one there is.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn write_page(&self, name: &str, text: &str) -> Result<(), ResultsError> {
        replace(&self.dir().path().join(name), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(bed: &str, action: StudyAction, state: Option<StepState>) -> StudyStep {
        StudyStep {
            bed: bed.into(),
            group: "g".into(),
            column: "c".into(),
            action,
            state,
            seconds: 0.0,
            results: None,
            status: vec![],
            error: None,
        }
    }

    fn study(steps: Vec<StudyStep>) -> StudyResults {
        let bed = |name: &str| StudyBed {
            name: name.into(),
            arguments: vec!["nfs".into()],
            unavailable: None,
        };
        StudyResults {
            schema_version: StudyResults::SCHEMA,
            study: "edge".into(),
            question: String::new(),
            started_at: String::new(),
            interrupted: false,
            beds: vec![bed("a"), bed("b")],
            steps,
            program: Program {
                name: "plimsoll".into(),
                version: "0".into(),
            },
            notes: vec![],
            environment: Environment::default(),
        }
    }

    #[test]
    fn a_status_is_taken_again_with_what_it_is_the_status_of() {
        let (prepare, measure) = (
            || StudyAction::Prepare(vec![]),
            || StudyAction::Measure(vec![]),
        );
        let status = || StudyAction::Status { wait_s: 1 };
        let done = Some(StepState::Valid);
        let study = study(vec![
            step("a", prepare(), done),
            step("a", measure(), done),
            step("a", measure(), Some(StepState::Invalid)),
            step("a", status(), None),
            step("a", measure(), None),
            step("b", prepare(), done),
            step("b", measure(), done),
        ]);
        assert_eq!(study.due("a"), [0, 2, 3, 4]);
        assert!(study.due("b").is_empty(), "a bed without missing steps");
        assert_eq!(study.missing(), 2);
        assert_eq!(study.status(), Status::Unfinished);
    }

    #[test]
    fn a_bed_that_is_not_there_leaves_the_study_of_the_others() {
        let measured = |bed, state| step(bed, StudyAction::Measure(vec![]), state);
        let valid = Some(StepState::Valid);
        let mut study = study(vec![measured("a", valid), measured("b", None)]);
        study.beds[1].unavailable = Some("it is not installed".into());
        assert_eq!(study.status(), Status::Valid);
        study.beds[0].unavailable = Some("it is not installed either".into());
        assert_eq!(study.status(), Status::Failed);
        study.beds[0].unavailable = None;
        study.steps[0].state = Some(StepState::Failed);
        assert_eq!(study.status(), Status::Failed);
    }

    #[test]
    fn names_that_lead_out_of_the_directory_are_not_followed() {
        let dir = StudyDir::at(Path::new("/r"));
        for name in ["../x", "/etc", "a/../../b", ""] {
            let step = StudyStep {
                results: Some(name.into()),
                ..step("a", StudyAction::Pause { seconds: 1 }, None)
            };
            assert_eq!(dir.results(&step), None, "{name}");
        }
    }
}
