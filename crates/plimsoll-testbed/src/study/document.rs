//! `study.json`, the document of a study: its test beds, its steps, and the results of each step that has ended.

use plimsoll_results::{Directory, Document, DocumentWriter, Environment, Program};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The content of `study.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyResults {
    /// Schema version of the document.
    pub schema_version: u32,
    /// Name of the study.
    pub study: String,
    /// Arguments of the `plimsoll testbed study` that began the study: name of the study, and options.
    pub arguments: Vec<String>,
    /// The question that the study answers.
    pub question: String,
    /// When the study was begun: RFC 3339, in UTC.
    pub started_at: String,
    /// Whether the user interrupted the study.
    pub interrupted: bool,
    /// The test beds, in the order in which they are used.
    pub beds: Vec<StudyBed>,
    /// The steps in the order of execution; the steps on a bed are contiguous.
    pub steps: Vec<StudyStep>,
    /// Program that did the steps.
    pub program: Program,
    /// Notes on the study, such as what its figures do not show.
    pub notes: Vec<String>,
    /// The machine.
    pub environment: Environment,
}

/// A test bed of a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StudyBed {
    /// Name of the bed while it is up.
    pub name: String,
    /// Arguments of `plimsoll testbed up` without the name: kind of the bed, and options.
    pub arguments: Vec<String>,
    /// What this machine lacks for the bed, in one sentence; the steps on the bed are left out then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// Why the bed could not be started, in one sentence; the steps on the bed remain to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A step of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StudyStep {
    /// Name of the test bed; null for a step on a server of the user.
    pub bed: Option<String>,
    /// Number of the unit that the step is a part of. A resumed study repeats all steps of a unit if one step of the unit
    /// remains to be done.
    pub unit: u32,
    /// Name of the step. The number of the step, the name of the bed and the name of the step make the name of the results.
    pub name: String,
    /// Title of the comparison: steps of one group are columns of one table. Empty for a step that only prepares.
    pub group: String,
    /// The column.
    pub column: String,
    /// The action of the step.
    pub action: StudyAction,
    /// How the step ended; null until the step has ended.
    pub state: Option<StepState>,
    /// Duration of the step in seconds.
    pub seconds: f64,
    /// Results directory of the step, relative to the directory of the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<String>,
    /// Status of the bed, line by line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<String>,
    /// Why the step failed: the last line that its command wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StudyAction {
    /// Runs a command of plimsoll without results: the arguments of the command.
    Prepare(Vec<String>),
    /// Runs a command of plimsoll with results for the study: the arguments of the command, without `--results`.
    Measure(Vec<String>),
    /// Waits until the bed is in sync, and notes the status of the bed.
    Status {
        /// Maximum time to wait until the bed is in sync, in seconds.
        wait_s: u64,
    },
    /// Waits.
    Pause {
        /// Duration in seconds.
        seconds: u64,
    },
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// The step was done; its results, if any, are valid.
    Valid,
    /// The step was done, and its results say why they are not valid.
    Invalid,
    /// The step failed.
    Failed,
    /// The user ended the step.
    Interrupted,
}

/// Prefix of the names of the beds of studies; names of results omit the prefix.
const BED_PREFIX: &str = "study-";

/// State of a study: complete, or the reason why steps are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StudyState {
    /// Every step was done, except steps on beds that this machine cannot have.
    Complete,
    /// A step or the start of a bed failed, or the machine cannot have any of the beds.
    Failed,
    /// The user ended the study.
    Interrupted,
    /// Steps remain to be done.
    Unfinished,
}

impl StudyStep {
    /// Whether the step remains to be done: the study has not reached the step, or an error or the user ended the step.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        !matches!(self.state, Some(StepState::Valid | StepState::Invalid))
    }
}

impl StudyResults {
    /// Name of the results of step `number`, counted from 0: the number counted from 1, the name of the bed and the name of
    /// the step, such as `04-edge-fileserver-150ms-half-cold`. Names sort in the order of the steps.
    ///
    /// # Panics
    /// If the study has no step `number`.
    #[must_use]
    pub fn results_name(&self, number: usize) -> String {
        let digits = self.steps.len().to_string().len();
        let step = &self.steps[number];
        let bed = step.bed.as_deref().unwrap_or_default();
        let bed = bed.strip_prefix(BED_PREFIX).unwrap_or(bed);
        let separator = if bed.is_empty() { "" } else { "-" };
        format!("{:0digits$}-{bed}{separator}{}", number + 1, step.name)
    }

    /// Number of steps that remain to be done.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.steps.iter().filter(|s| s.is_missing()).count()
    }

    /// Numbers of the steps to be done on a bed, or without a bed: all steps of units with a missing step, and pauses, because
    /// the bed is a new bed.
    #[must_use]
    pub fn due(&self, bed: Option<&str>) -> Vec<usize> {
        let on_bed = |step: &StudyStep| step.bed.as_deref() == bed;
        let steps = || self.steps.iter().enumerate().filter(|(_, s)| on_bed(s));
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

    /// The state of the study. Invalid results do not make a study fail: studies inject faults and overload systems on
    /// purpose, and the results themselves say that they are invalid.
    #[must_use]
    pub fn state(&self) -> StudyState {
        let any = |state| self.steps.iter().any(|s| s.state == Some(state));
        let is_failed = self.beds.iter().any(|b| b.failure.is_some());
        let lacks_all = self.beds.iter().all(|b| b.unavailable.is_some());
        if any(StepState::Failed) || is_failed || (lacks_all && !self.beds.is_empty()) {
            StudyState::Failed
        } else if self.interrupted || any(StepState::Interrupted) {
            StudyState::Interrupted
        } else if self.is_unfinished() {
            StudyState::Unfinished
        } else {
            StudyState::Complete
        }
    }

    /// Whether steps are missing, except steps on beds that this machine cannot have.
    fn is_unfinished(&self) -> bool {
        let is_unavailable = |step: &StudyStep| {
            let mut beds = self.beds.iter();
            let bed = beds.find(|b| Some(&b.name) == step.bed.as_ref());
            bed.is_some_and(|b| b.unavailable.is_some())
        };
        let mut missing = self.steps.iter().filter(|s| s.is_missing());
        missing.any(|s| !is_unavailable(s))
    }
}

impl Document for StudyResults {
    const FILE: &str = "study.json";
    const SCHEMA: u32 = 1;
    const KIND_NAME: &str = "study";
}

/// Directory with `study.json` and the results of the study's steps.
pub type StudyDir = Directory<StudyResults>;

/// Writer of `study.json`, in whose directory the steps write their results.
pub type StudyWriter = DocumentWriter<StudyResults>;

/// The results directory of a step of the study in `dir`. `None` if the step has no results, or if their path leads out of
/// `dir`.
#[must_use]
pub fn results_of(dir: &StudyDir, step: &StudyStep) -> Option<PathBuf> {
    dir.within(step.results.as_deref()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn step(bed: &str, action: StudyAction, state: Option<StepState>) -> StudyStep {
        StudyStep {
            bed: Some(bed.into()),
            unit: 0,
            name: "s".into(),
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
            arguments: vec!["edge".into()],
            question: String::new(),
            started_at: String::new(),
            interrupted: false,
            beds: vec![bed("a"), bed("b")],
            steps,
            program: Program::plimsoll(),
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
        let without_bed = StudyStep {
            bed: None,
            ..step("", measure(), None)
        };
        let study = study(vec![
            step("a", pause(), done),
            of_unit(1, step("a", measure(), done)),
            of_unit(2, step("a", status(), done)),
            of_unit(2, step("a", measure(), Some(StepState::Invalid))),
            of_unit(2, step("a", status(), None)),
            of_unit(3, step("a", measure(), Some(StepState::Failed))),
            step("b", pause(), done),
            step("b", measure(), done),
            without_bed,
        ]);
        assert_eq!(study.due(Some("a")), [0, 2, 3, 4, 5]);
        assert!(
            study.due(Some("b")).is_empty(),
            "a bed without missing steps"
        );
        assert_eq!(study.due(None), [8]);
        assert_eq!(study.missing(), 3);
        assert_eq!(study.state(), StudyState::Failed);
    }

    #[test]
    fn a_bed_that_is_not_there_leaves_the_study_of_the_others() {
        let measured = |bed, state| step(bed, StudyAction::Measure(vec![]), state);
        let valid = Some(StepState::Valid);
        let mut study = study(vec![measured("a", valid), measured("b", None)]);
        study.beds[1].unavailable = Some("it is not installed".into());
        assert_eq!(study.state(), StudyState::Complete);
        study.beds[0].unavailable = Some("it is not installed either".into());
        assert_eq!(study.state(), StudyState::Failed);
        study.beds[0].unavailable = None;
        study.beds[1].failure = Some("its name is taken".into());
        assert_eq!(study.state(), StudyState::Failed);
    }

    #[test]
    fn a_study_has_the_state_of_its_steps() {
        let of = |states: &[Option<StepState>], interrupted| {
            let steps = states
                .iter()
                .map(|state| step("a", StudyAction::Measure(vec![]), *state));
            let mut study = study(steps.collect());
            study.interrupted = interrupted;
            study.state()
        };
        let (valid, invalid) = (Some(StepState::Valid), Some(StepState::Invalid));
        let (failed, interrupted) = (Some(StepState::Failed), Some(StepState::Interrupted));
        assert_eq!(of(&[valid, invalid], false), StudyState::Complete);
        assert_eq!(of(&[valid, None], false), StudyState::Unfinished);
        assert_eq!(of(&[valid, valid], true), StudyState::Interrupted);
        assert_eq!(of(&[valid, interrupted], false), StudyState::Interrupted);
        assert_eq!(of(&[failed, interrupted], true), StudyState::Failed);
        let mut without_beds = study(vec![]);
        without_beds.beds.clear();
        assert_eq!(without_beds.state(), StudyState::Complete);
    }

    #[test]
    fn names_of_results_sort_and_say_bed_and_step() {
        let mut study = study(vec![]);
        let measure = || StudyAction::Measure(vec![]);
        study.steps = vec![step("study-edge-1", measure(), None); 9];
        study.steps.push(step("b", measure(), None));
        assert_eq!(study.results_name(0), "01-edge-1-s");
        assert_eq!(study.results_name(9), "10-b-s");
        study.steps[1].bed = None;
        assert_eq!(study.results_name(1), "02-s");
    }

    #[test]
    fn names_that_lead_out_of_the_directory_are_not_followed() {
        let dir = StudyDir::at(Path::new("/r"));
        for name in ["../x", "/etc", "a/../../b", ""] {
            let step = StudyStep {
                results: Some(name.into()),
                ..step("a", StudyAction::Pause { seconds: 1 }, None)
            };
            assert_eq!(results_of(&dir, &step), None, "{name}");
        }
    }
}
