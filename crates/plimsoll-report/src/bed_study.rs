//! A study on test beds: what its steps measured, a section for each group, for all reports.

use crate::compare::{self, Comparison, Metric, Results, distinct, side_by_side};
use crate::format::{inline_latency, rate};
use crate::study;
use crate::terminal::Layout;
use crate::text::{Paint, paragraph, reason_codes, results_location};
use crate::{events, verification};
use plimsoll_plan::{Count, counted, shell_words};
use plimsoll_results::{
    Kind, LoadCurve, Percentile, Run, RunDir, SeriesDir, SeriesOf, StepState, StudyAction,
    StudyBed, StudyDir, StudyResults, StudyStep,
};
use std::path::Path;

/// Figures of groups of runs.
const METRICS: [Metric; 5] = [
    Metric::OpsPerS,
    Metric::MeanMs,
    Metric::PercentileMs(Percentile::P50),
    Metric::PercentileMs(Percentile::P99),
    Metric::Errors,
];

/// A group of steps side by side.
#[derive(Debug, Clone)]
pub struct StudySection {
    /// What is compared.
    pub title: String,
    /// The figures; none if no step of the group measured anything, or if they cannot be compared.
    pub comparison: Option<Comparison>,
    /// Facts about single columns: the column, and a sentence without a full stop.
    pub facts: Vec<(String, String)>,
}

/// A section for each group, in the order of the steps. What cannot be read is a fact of its column.
#[must_use]
pub fn sections(study: &StudyResults, dir: &StudyDir) -> Vec<StudySection> {
    let groups = study.steps.iter().map(|s| s.group.as_str());
    distinct(groups.filter(|g| !g.is_empty()))
        .into_iter()
        .flat_map(|title| group(study, dir, title))
        .collect()
}

/// The sections of a group: one, or of profiles one for each configuration.
fn group(study: &StudyResults, dir: &StudyDir, title: &str) -> Vec<StudySection> {
    let mut measured = Vec::new();
    let mut facts = Vec::new();
    let mut sections = Vec::new();
    for step in study.steps.iter().filter(|s| s.group == title) {
        let fact = |text: String| (step.column.clone(), text);
        facts.extend(missing(study, step).map(fact));
        facts.extend(step.status.iter().cloned().map(fact));
        if step.results.is_none() {
            continue;
        }
        match step_results(dir, step) {
            Ok(StepResults::Profile(of_profile)) => sections.extend(of_profile),
            Ok(StepResults::Compared(results, said)) => {
                facts.extend(said.into_iter().map(fact));
                measured.extend(results);
            }
            Err(why) => facts.push(fact(format!("its results cannot be read: {why}"))),
        }
    }
    let mut comparison = None;
    if !measured.is_empty() {
        match side_by_side(measured, None) {
            Ok(compared) => comparison = Some(shown(compared)),
            Err(why) => facts.push((title.to_owned(), why)),
        }
    }
    if comparison.is_some() || !facts.is_empty() {
        let title = title.to_owned();
        let section = StudySection {
            title,
            comparison,
            facts,
        };
        sections.insert(0, section);
    }
    sections
}

/// The part of a comparison that is shown.
fn shown(mut comparison: Comparison) -> Comparison {
    // The facts say what is invalid, and why.
    comparison.warnings.retain(|w| !w.ends_with(" is invalid"));
    if comparison.load_axis.is_none() {
        let is_shown =
            |r: &compare::Row| r.operation == compare::ALL && METRICS.contains(&r.metric);
        comparison.retain_rows(is_shown);
    }
    comparison
}

/// What a step has measured.
enum StepResults {
    /// A column, if anything was measured, and facts about it.
    Compared(Option<Results>, Vec<String>),
    /// The sections of a profile.
    Profile(Vec<StudySection>),
}

fn step_results(dir: &StudyDir, step: &StudyStep) -> Result<StepResults, String> {
    let (path, kind) = dir.kind(step).ok_or("there are none")?;
    let facts = match kind {
        Kind::Run => of_run(&RunDir::at(&path).read().map_err(|e| e.to_string())?),
        Kind::Curve => {
            let series = SeriesDir::at(&path).read().map_err(|e| e.to_string())?;
            series.as_curve().map_or_else(Vec::new, of_curve)
        }
        Kind::Profile => return of_profile(&path).map(StepResults::Profile),
        Kind::Search | Kind::Repeats | Kind::Study => vec![],
    };
    // A step that failed before anything was measured has no figures.
    let results = match Results::read(&path, &step.column, None) {
        Err(_) if step.is_missing() => None,
        results => Some(results?),
    };
    Ok(StepResults::Compared(results, facts))
}

/// Why a step has no results, if it has none.
fn missing(study: &StudyResults, step: &StudyStep) -> Option<String> {
    let mut unit = study.steps.iter().filter(|s| s.unit == step.unit);
    let failed = unit.find(|s| s.group.is_empty() && s.state == Some(StepState::Failed));
    if let (None, Some(failed)) = (step.state, failed) {
        let why = failed.error.as_deref().unwrap_or("it failed");
        return Some(format!("not measured: {}: {why}", failed.column));
    }
    let bed = study.beds.iter().find(|b| b.name == step.bed);
    let why = bed.and_then(|b| b.unavailable.as_ref().or(b.failure.as_ref()));
    match (step.state, why, &step.error) {
        (None, Some(why), _) => Some(format!("not measured: {why}")),
        (Some(StepState::Failed), _, Some(why)) => Some(format!("failed: {why}")),
        (Some(StepState::Interrupted), ..) => Some("interrupted".into()),
        (None, None, _) => Some("not measured yet".into()),
        _ => None,
    }
}

/// The facts about a run that a table does not show.
fn of_run(run: &Run) -> Vec<String> {
    let mut facts: Vec<String> = run
        .validity
        .reasons
        .iter()
        .map(|reason| format!("{}: {}: {}", run.validity.verdict, reason.code, reason.text))
        .collect();
    let events = events::sentences(run).into_iter();
    facts.extend(events.map(|(label, text)| format!("{label}: {text}")));
    facts.extend(verification::sentence(run));
    facts
}

/// The figures of a curve in a sentence.
fn of_curve(curve: SeriesOf<'_, LoadCurve>) -> Vec<String> {
    let line = match curve.figures.load_line {
        Some(load) => format!("load line {} {}", Count(load), curve.metric_name()),
        None => "no load was sustained".into(),
    };
    let ort = match curve.figures.ort_ms {
        Some(ms) => format!("overall response time {}", inline_latency(ms)),
        None => "no overall response time".into(),
    };
    vec![format!("{line}, {ort}")]
}

/// The sections of a profile over access paths to a server.
fn of_profile(path: &Path) -> Result<Vec<StudySection>, String> {
    let dir = SeriesDir::at(path);
    let series = dir.read().map_err(|e| e.to_string())?;
    let profile = series
        .as_profile()
        .ok_or("the results are not those of a profile")?;
    let sets = compare::ProfileSet::read(profile, &dir, None).map_err(|e| e.to_string())?;
    let sections = study::comparisons(&sets, None).into_iter();
    let section = |(title, comparison)| StudySection {
        title,
        comparison: Some(comparison),
        facts: vec![],
    };
    let mut sections: Vec<StudySection> = sections.map(section).collect();
    if let Some(last) = sections.last_mut() {
        last.facts = study::delegation_counts(&sets);
    }
    Ok(sections)
}

/// A step that has just ended, in one line; `number` counts from 1.
#[must_use]
pub fn line(number: usize, of: usize, step: &StudyStep, run: Option<&Run>) -> String {
    let what = match step.group.is_empty() {
        true => step.column.clone(),
        false => format!("{}, {}", step.group, step.column),
    };
    let figures = match run.filter(|r| r.summary.ops > 0) {
        Some(run) => format!(
            " {} ops/s, mean {},",
            rate(run.summary.ops_per_s),
            inline_latency(run.summary.mean_ms)
        ),
        None => String::new(),
    };
    let state = match (&step.error, run) {
        (Some(error), _) => format!("failed: {error}"),
        (None, Some(run)) => {
            format!(
                "{}{}",
                run.validity.verdict,
                reason_codes(&run.validity.reasons)
            )
        }
        (None, None) => match step.state {
            Some(StepState::Invalid) => "invalid".into(),
            Some(StepState::Interrupted) => "interrupted".into(),
            _ => "done".into(),
        },
    };
    format!(
        "step {number} of {of}, {}: {what}:{figures} {state}",
        step.bed
    )
}

/// What a study does, for people who have not begun it: the beds, and the commands on each, as they could
/// be typed.
#[must_use]
pub fn plan(study: &StudyResults) -> String {
    let mut out = format!(
        "study {}: {} on {}\n  {}\n",
        study.study,
        counted(study.steps.len() as u64, "step", "steps"),
        counted(study.beds.len() as u64, "test bed", "test beds"),
        study.question,
    );
    for bed in &study.beds {
        out.push_str(&bed_lines(study, bed));
    }
    out
}

fn bed_lines(study: &StudyResults, bed: &StudyBed) -> String {
    let up = shell_words(&bed.arguments);
    let mut out = format!("\nplimsoll testbed up {up} --name {}\n", bed.name);
    if let Some(why) = &bed.unavailable {
        out.push_str(&format!("  not available: {why}\n"));
    }
    let steps = (1..).zip(&study.steps);
    for (number, step) in steps.filter(|(_, s)| s.bed == bed.name) {
        // Each in a directory of its own, as in the results of the study.
        let results = format!("plimsoll-results/{}/step-{number}", bed.name);
        let command = match &step.action {
            StudyAction::Prepare(words) => format!("plimsoll {}", shell_words(words)),
            StudyAction::Measure(words) => {
                format!("plimsoll {} --results {results}", shell_words(words))
            }
            StudyAction::Status { wait_s: 0 } => format!("plimsoll testbed status {}", bed.name),
            StudyAction::Status { wait_s } => {
                format!("plimsoll testbed status {} --wait {wait_s}s", bed.name)
            }
            StudyAction::Pause { seconds } => format!("sleep {seconds}"),
        };
        out.push_str(&format!("  {command}\n"));
        if let StudyAction::Measure(words) = &step.action
            && let [command, ..] = &words[..]
            && ["curve", "run"].contains(&command.as_str())
        {
            out.push_str(&format!(
                "  plimsoll report {results}/* --format disclosure\n"
            ));
        }
    }
    out.push_str(&format!("plimsoll testbed down {}\n", bed.name));
    out
}

/// The whole report.
#[must_use]
pub fn render(
    study: &StudyResults,
    sections: &[StudySection],
    dir: Option<&Path>,
    layout: Layout,
) -> String {
    let paint = Paint(layout.color);
    let mut out = headline(study, paint);
    for note in &study.notes {
        paragraph(&mut out, "  note: ", note, layout.columns());
    }
    for section in sections {
        out.push_str(&format!("\n{}\n", paint.bold(&section.title)));
        if let Some(comparison) = &section.comparison {
            out.push_str(&compare::text(comparison, layout));
        }
        for (column, fact) in &section.facts {
            paragraph(&mut out, &format!("{column}: "), fact, layout.columns());
        }
    }
    results_location(&mut out, dir, paint);
    if let Some(dir) = dir.filter(|_| study.missing() > 0) {
        let dir = dir.display();
        out.push_str(&format!(
            "resume with plimsoll study {} --resume {dir}\n",
            study.study
        ));
    }
    out
}

fn headline(study: &StudyResults, paint: Paint) -> String {
    let (all, missing) = (study.steps.len(), study.missing());
    let state = match (missing, study.interrupted) {
        (0, _) => paint.good("complete"),
        (_, true) => paint.doubtful("interrupted"),
        (_, false) => paint.bad("not complete"),
    };
    format!(
        "study {}: {state}, {} of {} on {}\n  {}\n",
        paint.bold(&study.study),
        all - missing,
        counted(all as u64, "step", "steps"),
        counted(study.beds.len() as u64, "test bed", "test beds"),
        study.question,
    )
}
