//! A study's results: a directory with `study.json`, and the results of each of its steps below it.

use crate::document::{Directory, Document};
use crate::document_writer::DocumentWriter;
use crate::{Environment, Kind, Program, STUDY_FILE, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
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
    /// What this machine lacks for it, in one sentence; its steps are left out then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// Why it could not be started, in one sentence; its steps remain to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Commands that steps are made of.
const STEP_COMMANDS: [&str; 4] = ["populate", "run", "curve", "profile"];

/// Beginnings of options that run other programs or choose where files are written.
const FOREIGN_OPTIONS: [&str; 6] = [
    "--allow",
    "--before",
    "--after",
    "--monitor",
    "--results",
    "--resume",
];

/// A step of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyStep {
    /// Name of the bed.
    pub bed: String,
    /// Number of the unit that it is a part of: steps on one bed that are done in one go, or all of them again
    /// when the study is resumed.
    pub unit: u32,
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
    /// The status of the bed, once it is in sync.
    Status {
        /// Seconds to wait at most until the bed is in sync.
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
}

impl StudyResults {
    /// Checks a document whose commands are to be executed: it may be another user's.
    ///
    /// # Errors
    /// A sentence on the first step that no program of ours would have written.
    pub fn check(&self) -> Result<(), String> {
        let is_name = |name: &str| {
            let mut parts = Path::new(name).components();
            matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
        };
        let mut names = BTreeSet::new();
        for bed in &self.beds {
            if !is_name(&bed.name) || !names.insert(&bed.name) {
                return Err(format!("`{}` cannot be the name of a test bed", bed.name));
            }
        }
        for (number, step) in (1..).zip(&self.steps) {
            if !names.contains(&step.bed) {
                return Err(format!(
                    "step {number} is on `{}`, which is not a test bed of the study",
                    step.bed
                ));
            }
            let (StudyAction::Prepare(words) | StudyAction::Measure(words)) = &step.action else {
                continue;
            };
            let is_command = |w: &String| STEP_COMMANDS.contains(&w.as_str());
            let is_foreign = |w: &&String| FOREIGN_OPTIONS.iter().any(|o| w.starts_with(o));
            if !words.first().is_some_and(is_command) {
                return Err(format!(
                    "step {number} is not one of {}",
                    STEP_COMMANDS.join(", ")
                ));
            }
            if let Some(word) = words.iter().find(is_foreign) {
                return Err(format!(
                    "step {number} has the option {word}, which no study has"
                ));
            }
        }
        Ok(())
    }

    /// Number of steps that remain to be done.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.steps.iter().filter(|s| s.is_missing()).count()
    }

    /// The steps to be done on a bed, by their numbers: those of units of which a step is missing, and
    /// pauses, because the bed is a new one.
    #[must_use]
    pub fn due(&self, bed: &str) -> Vec<usize> {
        let steps = || self.steps.iter().enumerate().filter(|(_, s)| s.bed == bed);
        let missing = steps().filter(|(_, s)| s.is_missing());
        let units: BTreeSet<u32> = missing.map(|(_, s)| s.unit).collect();
        if units.is_empty() {
            return vec![];
        }
        let is_due = |step: &StudyStep| {
            units.contains(&step.unit) || matches!(step.action, StudyAction::Pause { .. })
        };
        steps().filter(|(_, s)| is_due(s)).map(|(i, _)| i).collect()
    }

    /// The status of its results in a list.
    #[must_use]
    pub fn status(&self) -> Status {
        let any = |state| self.steps.iter().any(|s| s.state == Some(state));
        let is_failed = self.beds.iter().any(|b| b.failure.is_some());
        if any(StepState::Failed) || is_failed || self.beds.iter().all(|b| b.unavailable.is_some())
        {
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

/// The directory of a study's results.
pub type StudyDir = Directory<StudyResults>;

/// A directory of a study's results that is being written.
pub type StudyWriter = DocumentWriter<StudyResults>;

impl Directory<StudyResults> {
    /// The results directory of a step.
    #[must_use]
    pub fn results(&self, step: &StudyStep) -> Option<PathBuf> {
        self.within(step.results.as_deref()?)
    }

    /// The kind of a step's results.
    #[must_use]
    pub fn kind(&self, step: &StudyStep) -> Option<(PathBuf, Kind)> {
        let path = self.results(step)?;
        let kind = Kind::of(&path).ok()?;
        Some((path, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(bed: &str, action: StudyAction, state: Option<StepState>) -> StudyStep {
        StudyStep {
            bed: bed.into(),
            unit: 0,
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
            failure: None,
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
    fn a_unit_is_done_again_as_a_whole_and_a_pause_for_every_bed() {
        let pause = || StudyAction::Pause { seconds: 1 };
        let measure = || StudyAction::Measure(vec![]);
        let status = || StudyAction::Status { wait_s: 1 };
        let done = Some(StepState::Valid);
        let of_unit = |unit, step: StudyStep| StudyStep { unit, ..step };
        let study = study(vec![
            step("a", pause(), done),
            of_unit(1, step("a", measure(), done)),
            of_unit(2, step("a", status(), done)),
            of_unit(2, step("a", measure(), Some(StepState::Invalid))),
            of_unit(2, step("a", status(), None)),
            of_unit(3, step("a", measure(), Some(StepState::Failed))),
            step("b", pause(), done),
            step("b", measure(), done),
        ]);
        assert_eq!(study.due("a"), [0, 2, 3, 4, 5]);
        assert!(study.due("b").is_empty(), "a bed without missing steps");
        assert_eq!(study.missing(), 2);
        assert_eq!(study.status(), Status::Failed);
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
        assert_eq!(study.status(), Status::Valid);
        study.beds[1].failure = Some("its name is taken".into());
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

    #[test]
    fn only_what_a_study_consists_of_is_executed() {
        let good = || {
            let words = vec![STEP_COMMANDS[0].to_owned(), "x".into()];
            study(vec![
                step("a", StudyAction::Prepare(words.clone()), None),
                step("b", StudyAction::Measure(words), None),
                step("b", StudyAction::Pause { seconds: 1 }, None),
            ])
        };
        assert_eq!(good().check(), Ok(()));
        let message_of = |change: fn(&mut StudyResults)| {
            let mut study = good();
            change(&mut study);
            study.check().unwrap_err()
        };
        for name in ["", "..", "a/b", "/a", "./a", "a/"] {
            let mut study = good();
            study.beds[1].name = name.into();
            let error = study.check().unwrap_err();
            assert_eq!(error, format!("`{name}` cannot be the name of a test bed"));
        }
        assert_eq!(
            message_of(|s| s.beds[1].name = "a".into()),
            "`a` cannot be the name of a test bed"
        );
        assert_eq!(
            message_of(|s| s.steps[2].bed = "c".into()),
            "step 3 is on `c`, which is not a test bed of the study"
        );
        let commands = |s: &mut StudyResults, words: &[&str]| {
            let words = words.iter().map(|w| (*w).to_owned()).collect();
            s.steps[1].action = StudyAction::Measure(words);
        };
        for words in [&[][..], &["sh"], &["x", STEP_COMMANDS[0]]] {
            let mut study = good();
            commands(&mut study, words);
            assert!(
                study
                    .check()
                    .unwrap_err()
                    .starts_with("step 2 is not one of "),
                "{words:?}"
            );
        }
        let option = format!("{}=x", FOREIGN_OPTIONS[0]);
        let mut study = good();
        commands(&mut study, &[STEP_COMMANDS[0], "--fine", &option]);
        let error = format!("step 2 has the option {option}, which no study has");
        assert_eq!(study.check(), Err(error));
    }

    #[test]
    fn a_study_has_the_status_of_its_steps() {
        let of = |states: &[Option<StepState>], interrupted| {
            let steps = states
                .iter()
                .map(|state| step("a", StudyAction::Measure(vec![]), *state));
            let mut study = study(steps.collect());
            study.interrupted = interrupted;
            study.status()
        };
        let (valid, invalid) = (Some(StepState::Valid), Some(StepState::Invalid));
        let (failed, interrupted) = (Some(StepState::Failed), Some(StepState::Interrupted));
        assert_eq!(of(&[valid, invalid], false), Status::Valid);
        assert_eq!(of(&[valid, None], false), Status::Unfinished);
        assert_eq!(of(&[valid, valid], true), Status::Interrupted);
        assert_eq!(of(&[valid, interrupted], false), Status::Interrupted);
        assert_eq!(of(&[failed, interrupted], true), Status::Failed);
    }
}
