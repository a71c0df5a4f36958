//! The report of a study, with a section for each group of steps; and the steps as commands for a shell.

use super::access_paths::{comparisons, delegation_counts};
use super::document::{
    StepState, StudyAction, StudyBed, StudyDir, StudyResults, StudyStep, results_of,
};
use plimsoll_plan::{Count, counted, shell_word, shell_words};
use plimsoll_report::compare::{
    self, Comparison, Metric, ProfileSet, Results, distinct, side_by_side,
};
use plimsoll_report::document::Tone;
use plimsoll_report::terminal::{self, Layout};
use plimsoll_report::{Paint, events, latency, paragraph, rate, reason_codes, verification};
use plimsoll_results::{Kind, LoadCurve, Percentile, Run, RunDir, SeriesDir, SeriesOf};
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
struct StudySection {
    /// Title of the group, and of the configuration in a profile.
    title: String,
    /// The figures; none if no step of the group measured anything, or if they cannot be compared.
    comparison: Option<Comparison>,
    /// Facts about single columns: the column, and a sentence without a full stop.
    facts: Vec<(String, String)>,
}

/// Sections of a study's report, one or more for each group of steps, in the order of the steps. If a step's results
/// cannot be read, the error becomes a fact about the step's column.
fn sections(study: &StudyResults, dir: &StudyDir) -> Vec<StudySection> {
    let groups = study.steps.iter().map(|s| s.group.as_str());
    distinct(groups.filter(|g| !g.is_empty()))
        .into_iter()
        .flat_map(|title| group(study, dir, title))
        .collect()
}

/// The sections of a group: one section, or a section for each configuration of a profile.
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

enum StepResults {
    /// Results of the step's column for the comparison, or `None` if the step measured nothing, and facts about the
    /// column.
    Compared(Option<Results>, Vec<String>),
    /// Sections of the report on the step's profile, one for each configuration.
    Profile(Vec<StudySection>),
}

fn step_results(dir: &StudyDir, step: &StudyStep) -> Result<StepResults, String> {
    let path = results_of(dir, step).ok_or("there are none")?;
    let facts = match Kind::of(&path).map_err(|e| e.to_string())? {
        Kind::Run => of_run(&RunDir::at(&path).read().map_err(|e| e.to_string())?),
        Kind::Curve => {
            let series = SeriesDir::at(&path).read().map_err(|e| e.to_string())?;
            series.as_curve().map_or_else(Vec::new, of_curve)
        }
        Kind::Profile => return of_profile(&path, &step.group).map(StepResults::Profile),
        Kind::Search | Kind::Repeats | Kind::Ab | Kind::Sweep | Kind::Suite => vec![],
    };
    // A step that failed before anything was measured has no figures.
    let results = match Results::read(&path, &step.column, None) {
        Err(_) if step.is_missing() => None,
        results => Some(results?),
    };
    Ok(StepResults::Compared(results, facts))
}

/// Sentence on why a step has no valid results, such as a failed bed; `None` if the step was done.
fn missing(study: &StudyResults, step: &StudyStep) -> Option<String> {
    let mut unit = study.steps.iter().filter(|s| s.unit == step.unit);
    let failed = unit.find(|s| s.group.is_empty() && s.state == Some(StepState::Failed));
    if let (None, Some(failed)) = (step.state, failed) {
        let why = failed.error.as_deref().unwrap_or("it failed");
        return Some(format!("not measured: {}: {why}", failed.column));
    }
    let bed = study
        .beds
        .iter()
        .find(|b| Some(&b.name) == step.bed.as_ref());
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
    let mut facts: Vec<String> = reasons(run).collect();
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
        Some(ms) => format!("overall response time {}", latency(ms)),
        None => "no overall response time".into(),
    };
    vec![format!("{line}, {ort}")]
}

/// The sections of a profile over access paths to a server: one section for each configuration. The profile is the only
/// step of its group.
fn of_profile(path: &Path, title: &str) -> Result<Vec<StudySection>, String> {
    let dir = SeriesDir::at(path);
    let series = dir.read().map_err(|e| e.to_string())?;
    let profile = series
        .as_profile()
        .ok_or("the results are not those of a profile")?;
    let sets = ProfileSet::read(profile, &dir, None).map_err(|e| e.to_string())?;
    let compared = comparisons(&sets);
    let is_one = compared.len() == 1;
    let section = |(name, comparison)| StudySection {
        title: match is_one {
            true => title.to_owned(),
            false => format!("{title}, {name}"),
        },
        comparison: Some(comparison),
        facts: vec![],
    };
    let mut sections: Vec<StudySection> = compared.into_iter().map(section).collect();
    if let Some(last) = sections.last_mut() {
        last.facts = invalid_runs(&sets);
        last.facts.extend(delegation_counts(&sets));
    }
    Ok(sections)
}

/// The reasons why runs of a profile are not valid, each with a label of configuration and file system.
fn invalid_runs(sets: &[ProfileSet]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for set in sets {
        for (name, runs) in &set.cases {
            let reasons = runs.iter().flat_map(reasons);
            all.extend(reasons.map(|reason| (format!("{name}, {}", set.name), reason)));
        }
    }
    all
}

/// The reasons why a run is not valid, each a sentence.
fn reasons(run: &Run) -> impl Iterator<Item = String> {
    let verdict = run.validity.verdict;
    let reasons = run.validity.reasons.iter();
    reasons.map(move |reason| format!("{verdict}: {}: {}", reason.code, reason.text))
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
            latency(run.summary.mean_ms)
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
    let bed = step
        .bed
        .as_ref()
        .map_or(String::new(), |bed| format!(", {bed}"));
    format!("step {number} of {of}{bed}: {what}:{figures} {state}")
}

/// A study that has not begun, as text: the beds, and the commands on each bed in the form of shell commands.
#[must_use]
pub fn plan(study: &StudyResults) -> String {
    let mut out = format!(
        "study {}: {}\n  {}\n",
        study.study,
        extent(study),
        study.question
    );
    for bed in &study.beds {
        let up = shell_words(&bed.arguments);
        out.push_str(&format!("\nplimsoll testbed up {up} --name {}\n", bed.name));
        if let Some(why) = &bed.unavailable {
            out.push_str(&format!("  not available: {why}\n"));
        }
        out.push_str(&step_lines(study, Some(bed)));
        out.push_str(&format!("plimsoll testbed down {}\n", bed.name));
    }
    let without_bed = step_lines(study, None);
    if !without_bed.is_empty() {
        out.push_str(&format!("\n{without_bed}"));
    }
    out
}

/// Numbers of steps and beds, as text.
fn extent(study: &StudyResults) -> String {
    let steps = counted(study.steps.len() as u64, "step", "steps");
    match study.beds.len() as u64 {
        0 => steps,
        beds => format!("{steps} on {}", counted(beds, "test bed", "test beds")),
    }
}

/// The commands of the steps on a bed, or of the steps without a bed: one line for each step.
fn step_lines(study: &StudyResults, bed: Option<&StudyBed>) -> String {
    let name = bed.map(|bed| &bed.name);
    let steps = study.steps.iter().enumerate();
    let mut out = String::new();
    for (number, step) in steps.filter(|(_, s)| s.bed.as_ref() == name) {
        let plimsoll = |words: &[String]| match name {
            Some(name) => format!("plimsoll testbed on {name} -- {}", shell_words(words)),
            None => format!("plimsoll {}", shell_words(words)),
        };
        let status = |wait: &str| {
            format!(
                "plimsoll testbed status {}{wait}",
                name.map_or("", |name| name)
            )
        };
        let command = match &step.action {
            StudyAction::Prepare(words) => plimsoll(words),
            StudyAction::Measure(words) => {
                // Each command gets a results directory of its own, with the name that the study gives to the results.
                let results = format!("plimsoll-results/{}", study.results_name(number));
                format!("{} --results {}", plimsoll(words), shell_word(&results))
            }
            StudyAction::Status { wait_s: 0 } => status(""),
            StudyAction::Status { wait_s } => status(&format!(" --wait {wait_s}s")),
            StudyAction::Pause { seconds } => format!("sleep {seconds}"),
        };
        out.push_str(&format!("  {command}\n"));
    }
    out
}

/// The whole report on the study in `dir`, for a terminal.
#[must_use]
pub fn render(study: &StudyResults, dir: &StudyDir, layout: Layout) -> String {
    let paint = Paint(layout.color);
    let mut out = headline(study, paint);
    for note in &study.notes {
        paragraph(&mut out, "  note: ", note, layout.columns());
    }
    for section in sections(study, dir) {
        out.push_str(&format!("\n{}\n", paint.bold(&section.title)));
        if let Some(comparison) = &section.comparison {
            out.push_str(&terminal::blocks(&compare::blocks(comparison), layout));
        }
        for (column, fact) in &section.facts {
            paragraph(&mut out, &format!("{column}: "), fact, layout.columns());
        }
    }
    let path = dir.path().display().to_string();
    out.push_str(&format!("\nresults in {}\n", paint.bold(&path)));
    if study.missing() > 0 {
        let dir = shell_word(&path);
        out.push_str(&format!(
            "resume with plimsoll testbed study resume {dir}\n"
        ));
    }
    out
}

fn headline(study: &StudyResults, paint: Paint) -> String {
    let (all, missing) = (study.steps.len(), study.missing());
    let state = match (missing, study.interrupted) {
        (0, _) => paint.tone(Tone::Good, "complete"),
        (_, true) => paint.tone(Tone::Doubtful, "interrupted"),
        (_, false) => paint.tone(Tone::Bad, "not complete"),
    };
    format!(
        "study {}: {state}, {} of {}\n  {}\n",
        paint.bold(&study.study),
        all - missing,
        extent(study),
        study.question,
    )
}
