//! `profile --dry-run`: lists the planned runs of a profile, with files and parameters, without making any run.

use super::setup::PreparedProfile;
use crate::cli::Format;
use crate::commands::print;
use crate::exit::{CommandError, Exit};
use crate::series_text::missing_length;
use crate::workload;
use plimsoll_plan::{counted, show_duration};
use plimsoll_results::{Configuration, Document};

/// Prints the planned runs of a profile, with their files and parameters.
///
/// # Errors
/// A usage error with the reasons of preflight, after the list is printed, if a run would be refused.
pub(super) fn run(ready: &PreparedProfile<'_>) -> Result<Exit, CommandError> {
    match ready.args.manner.format {
        Format::Json => print(&ready.series.to_json())?,
        Format::Text => print(&text(ready)?)?,
    };
    match ready.refusals()?.as_slice() {
        [] => Ok(Exit::Valid),
        reasons => Err(CommandError::usage(format!(
            "refused: {}",
            reasons.join("\n  ")
        ))),
    }
}

fn text(ready: &PreparedProfile<'_>) -> Result<String, CommandError> {
    let series = &ready.series;
    let profile = series
        .as_profile()
        .expect("the series is a profile")
        .figures;
    let each = match profile.repeat {
        1 => String::new(),
        n => format!(", each {n} times"),
    };
    let mut out = format!(
        "profile {}: {}{each}, about {} plus the time to create the files\n",
        series.name,
        counted(series.configurations.len() as u64, "run", "runs"),
        show_duration(missing_length(series))
    );
    if !profile.description.is_empty() {
        out.push_str(&format!("  {}\n", profile.description));
    }
    for event in &series.events {
        out.push_str(&format!("  event in each run: {event}\n"));
    }
    for note in &series.notes {
        out.push_str(&format!("  note: {}\n", note.text));
    }
    for left in &profile.not_run {
        out.push_str(&format!("  not run: {}: {}\n", left.name, left.reason));
    }
    for (number, case) in (1..).zip(&series.configurations) {
        let number: u64 = number;
        out.push_str(&entry(number, case, &ready.look(case)?));
    }
    Ok(out)
}

/// Text about one run: configuration, location of its files, and parameters.
fn entry(number: u64, case: &Configuration, look: &plimsoll_engine::Preflight) -> String {
    let plan = &case.plan;
    let (warmup, time) = plan.times();
    let warmup = match warmup.is_zero() {
        true => String::new(),
        false => format!(" after {} of warm-up", show_duration(warmup)),
    };
    let time = match time.is_zero() {
        true => "until its workers are done".to_owned(),
        false => show_duration(time),
    };
    let files = match plimsoll_target::keeps_files(&case.target.url) {
        true => format!("{} to make in {}", look.bytes_needed, workload::place(plan)),
        false => "no files".into(),
    };
    let changed = plan.parameters.iter().filter(|p| p.value != p.default);
    let changed: Vec<String> = changed.map(|p| format!("{}={}", p.name, p.value)).collect();
    let changed = match changed.is_empty() {
        true => String::new(),
        false => format!("     {}\n", changed.join(" ")),
    };
    format!(
        "\n{number:>3}  {} on {}\n     {}, {time}{warmup}, {}, {files}, target {}\n{changed}",
        case.name,
        case.filesystem.as_deref().unwrap_or_default(),
        plan.name,
        counted(plan.workers(), "worker", "workers"),
        case.target.url
    )
}
