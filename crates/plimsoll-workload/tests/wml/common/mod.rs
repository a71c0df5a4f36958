//! Shared functions of the tests: a constant context, and functions that parse and lower texts.

use plimsoll_plan::{Overrides, Plan, SourceKind};
use plimsoll_workload::NamedText;
use plimsoll_workload::wml::{BUILTINS, Context, Diagnostics, lower, parse};
use std::path::PathBuf;

/// Finds built-in workloads for `load`, as the program does.
pub fn load(name: &str) -> Option<NamedText> {
    BUILTINS.find(name).map(NamedText::from)
}

pub fn context(kind: SourceKind) -> Context<'static> {
    Context {
        kind,
        temp_dir: PathBuf::from("/tmp/plimsoll-test"),
        current_dir: PathBuf::from("/home/user"),
        load: &load,
        date: "2026-01-02".into(),
        hostname: "client1".into(),
    }
}

/// Lowers a workload file with changes.
pub fn lower_with(text: &str, overrides: &Overrides) -> Result<Plan, Diagnostics> {
    let workload = parse(text, "test.f")?;
    lower(&workload, overrides, &context(SourceKind::File))
}

/// The Plan of a workload file; panics with the diagnostics.
pub fn plan(text: &str) -> Plan {
    lower_with(text, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// The messages of a workload, which must be invalid.
pub fn messages(text: &str) -> Vec<String> {
    let Err(e) = lower_with(text, &Overrides::default()) else {
        panic!("accepted: {text}");
    };
    e.findings().into_iter().map(|f| f.message).collect()
}

/// An error as tests compare it: location, message, and help in parentheses.
pub fn shown(finding: plimsoll_workload::wml::Finding) -> String {
    let place = format!("{}:{}", finding.line, finding.column);
    match finding.help {
        Some(help) => format!("{place} {} ({help})", finding.message),
        None => format!("{place} {}", finding.message),
    }
}

/// The errors of a workload in their order; empty for a valid workload.
pub fn findings(text: &str) -> Vec<String> {
    match lower_with(text, &Overrides::default()) {
        Ok(_) => vec![],
        Err(e) => e.findings().into_iter().map(shown).collect(),
    }
}

/// The findings of a workload with this attribute list of a fileset.
pub fn fileset_findings(attributes: &str) -> Vec<String> {
    findings(&format!(
        "define fileset name=f,path=/d,entries=5,dirwidth=5,{attributes}\n\
         define process {{ thread {{ flowop hog value=1 }} }}"
    ))
}

/// Lines of the printed Plan with the steps of the first thread, without indentation.
pub fn steps_of(plan: &Plan) -> Vec<String> {
    let text = plan.to_string();
    let lines = text.lines().skip_while(|l| !l.starts_with("workers"));
    let steps = lines.skip(2).take_while(|l| l.starts_with("    "));
    steps.map(|l| l.trim_start().to_owned()).collect()
}
