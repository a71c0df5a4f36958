//! Sections that describe the measurement.

use super::page::{Part, line, paragraphs, stated};
use super::solution::{notes, section};
use super::{DisclosureInput, FormSection, MeasuredPoint};
use crate::disclosure::import::NO_FIGURE;
use crate::suite_rules::RuleCheck;
use plimsoll_results::Environment;

/// Load points in detail, the measuring machine, and the notes at the end of the form.
pub(super) fn sections(input: &DisclosureInput) -> Vec<FormSection> {
    let mut sections = vec![
        section("Load Points", load_points(input)),
        section("Criteria", list(&input.criteria)),
    ];
    if !input.rules.is_empty() {
        let rules: Vec<String> = input.rules.iter().map(RuleCheck::to_string).collect();
        sections.push(section("Rules of the Published Suite", list(&rules)));
    }
    sections.extend([
        section("Measuring Machine", machine(&input.environment)),
        notes("Other Notes", &input.sut.notes.other),
        section("Other Report Notes", report_notes(input)),
    ]);
    sections
}

/// Offered and achieved rate of each point, and the criteria that the point failed.
fn load_points(input: &DisclosureInput) -> Vec<Part> {
    let head = vec![
        "Load",
        "Ops/Sec asked",
        "Ops/Sec achieved",
        "Share",
        "Latency msec",
        "Verdict",
    ];
    let rows: Vec<Vec<String>> = input.points.iter().map(row).collect();
    let mut parts = vec![Part::Table(head, rows)];
    for p in &input.points {
        let reasons = p.reasons.iter().map(|r| line(r));
        let reasons: Vec<String> = reasons.filter(|r| !r.is_empty()).collect();
        if !reasons.is_empty() {
            let reasons = format!("Load {}: {}.", p.load, reasons.join("; "));
            parts.push(Part::Prose(reasons));
        }
    }
    parts
}

fn row(p: &MeasuredPoint) -> Vec<String> {
    let asked = p.asked_ops_per_s.filter(|a| *a > 0.0);
    vec![
        p.load.to_string(),
        asked.map_or("not paced".into(), |a| format!("{a:.1}")),
        format!("{:.1}", p.ops_per_s),
        asked.map_or("-".into(), |a| format!("{:.1} %", 100.0 * p.ops_per_s / a)),
        p.latency_ms
            .map_or(NO_FIGURE.into(), |ms| format!("{ms:.3}")),
        match p.counts() {
            true => "valid".into(),
            false => "INVALID".into(),
        },
    ]
}

fn list(items: &[String]) -> Vec<Part> {
    let items = items.iter().map(|item| line(item));
    let items: Vec<String> = items.filter(|item| !item.is_empty()).collect();
    match items.is_empty() {
        true => vec![],
        false => vec![Part::List(items)],
    }
}

fn machine(e: &Environment) -> Vec<Part> {
    let dir = e.work_dir.clone().unwrap_or_default();
    let path = |p: Option<&std::path::Path>| p.map(|p| p.display().to_string()).unwrap_or_default();
    let memory = e.usable_memory().map(|b| match e.memory_limit() {
        Some(_) => format!("{b} bytes (limit of the control group)"),
        None => format!("{b} bytes"),
    });
    let text = |t: Option<&String>| stated(t.map_or("", String::as_str));
    vec![Part::Fields(vec![
        ("Host", stated(&e.host)),
        ("Operating System", stated(&e.kernel)),
        ("Processor", text(e.cpu_model.as_ref())),
        ("Processors Used", e.processors_text()),
        ("Memory", text(memory.as_ref())),
        ("Directory", stated(&path(Some(&dir.path)))),
        ("Filesystem Type", text(dir.fs_type.as_ref())),
        ("Device", text(dir.device.as_ref())),
        ("Mount Point", stated(&path(dir.mount_point.as_deref()))),
        ("Mount Options", stated(&dir.mount_options.join(", "))),
    ])]
}

/// Remark above all figures of a report.
pub(super) fn remark(input: &DisclosureInput) -> String {
    let version = line(&input.version);
    let scaled = match input.scale == 1.0 {
        true => String::new(),
        false => format!("; {}", plimsoll_plan::scaled(input.scale)),
    };
    format!("Measured with Plimsoll {version}: an open equivalent, not a SPEC result{scaled}.")
}

fn report_notes(input: &DisclosureInput) -> Vec<Part> {
    let mut all = vec![format!(
        "This report was made by Plimsoll {} of its workload {}. It is not a SPEC result and \
         cannot be compared with one. SPEC is a registered trademark of the Standard Performance \
         Evaluation Corporation.",
        line(&input.version),
        stated(&input.workload)
    )];
    all.extend(input.notes.iter().cloned());
    all.push(input.sut.notes.report.clone());
    paragraphs(&all.join("\n\n"))
}
