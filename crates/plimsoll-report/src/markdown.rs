//! A run as Markdown, for issues and wikis.

use crate::events;
use crate::filebench;
use crate::format::inline_latency;
use crate::mix;
use crate::operation_table::OperationTable;
use crate::percentiles::{
    BRIEF_PERCENTILES, PercentileKind, UNCERTAIN_NOTE, any_doubtful, shown_inline,
};
use crate::simulation::{self, CellTable};
use crate::standstill;
use crate::verification;
use plimsoll_diagnostics::foreign;
use plimsoll_measure::control_groups::QuotaUse;
use plimsoll_plan::{Bytes, counted};
use plimsoll_results::{Percentile, Run};

pub use plimsoll_plan::{SCALED, scaled};

/// Heading, verdict and reasons, the table of operations, and the notes. `name` is that of the
/// results directory.
#[must_use]
pub fn render(name: &str, run: &Run) -> String {
    let mut out = headline(name, run);
    operations(&mut out, run);
    if let Some(text) = paced(run) {
        out.push_str(&format!("{text}\n\n"));
    }
    for (component, text) in mix::offered_and_achieved(run) {
        let component = component.map_or_else(String::new, |c| format!(" by {}", escaped(&c)));
        out.push_str(&format!("Achieved{component}: {text}.\n\n"));
    }
    simulated(&mut out, run);
    for sentence in standstill::sentences(run) {
        out.push_str(&format!("{}\n\n", escaped(&sentence)));
    }
    for (event, text) in events::sentences(run) {
        out.push_str(&format!("- {event}: {}\n", escaped(&text)));
    }
    if !run.events.is_empty() {
        out.push('\n');
    }
    if run.window_number > 0 {
        let summary = filebench::io_summary(&run.summary);
        out.push_str(&format!("`{}`\n", summary.trim()));
    }
    if let Some(text) = verification::sentence(run) {
        out.push_str(&format!("\n- verified: {}\n", escaped(&text)));
    }
    for example in verification::shown_examples(run) {
        out.push_str(&format!("- {}\n", escaped(&example)));
    }
    let limits = limits(run);
    if !run.notes.is_empty() || !limits.is_empty() {
        out.push('\n');
    }
    for limit in limits {
        out.push_str(&format!("- client: {}\n", escaped(&limit)));
    }
    for note in &run.notes {
        out.push_str(&format!("- note: {}\n", escaped(&note.text)));
    }
    out
}

/// CPU quota and memory limit of the client's control groups, as texts.
fn limits(run: &Run) -> Vec<String> {
    let quota = run.system.quota.as_ref().map(QuotaUse::text);
    let memory = run.environment.memory_limit();
    let memory = memory.map(|limit| format!("memory limited to {}", Bytes(limit)));
    quota.into_iter().chain(memory).collect()
}

fn headline(name: &str, run: &Run) -> String {
    let mut out = format!(
        "## {}: {}\n\n",
        escaped(&run.workload),
        run.validity.verdict
    );
    for reason in &run.validity.reasons {
        out.push_str(&format!(
            "- **{}**: {}\n",
            escaped(&reason.code),
            escaped(&reason.text)
        ));
    }
    if !run.validity.reasons.is_empty() {
        out.push('\n');
    }
    if let Some(mix) = run.mix.as_ref().filter(|m| m.scale != 1.0) {
        out.push_str(&format!("**{}**\n\n", scaled(mix.scale)));
    }
    out.push_str(&format!(
        "{:.3} s measured, {}, seed {}, target {}; results {}, started {}.\n\n",
        run.window_s,
        counted(run.workers, "worker", "workers"),
        run.seed,
        escaped(&run.target.url),
        code(name),
        run.started_at,
    ));
    out
}

/// The table of operations, if there are any.
fn operations(out: &mut String, run: &Run) {
    if run.operations.is_empty() {
        return;
    }
    let shown = run.shown_percentiles(&Percentile::DEFAULT_TABLE);
    let OperationTable { head, rows } =
        OperationTable::new(&run.operations, shown, false, |o| escaped(&o.name));
    out.push_str(&table(&head, &rows));
    out.push('\n');
    let operations = run.operations.iter();
    if any_doubtful(operations.flat_map(|o| shown.iter().map(|p| o.percentile(*p)))) {
        out.push_str(&format!("{UNCERTAIN_NOTE}\n\n"));
    }
}

/// What the simulated system did.
fn simulated(out: &mut String, run: &Run) {
    for (name, text) in simulation::of_stages(run) {
        let (name, text) = (escaped(&name), escaped(&text));
        out.push_str(&format!("Bottleneck of {name}: {text}.\n\n"));
    }
    let Some(figures) = &run.simulation else {
        return;
    };
    for CellTable { head, rows } in [
        simulation::stations(run, figures),
        simulation::times(run, figures),
    ] {
        let cells = |row: &Vec<String>| row.iter().map(|cell| escaped(cell)).collect();
        let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
        out.push_str(&table(&cells(&head), &rows));
        out.push('\n');
    }
    for sentence in simulation::stores(figures) {
        out.push_str(&format!("- {}\n", escaped(&sentence)));
    }
    if let Some(bottleneck) = &figures.bottleneck {
        let text = simulation::bottleneck(bottleneck);
        out.push_str(&format!("- bottleneck: {}\n", escaped(&text)));
    }
    out.push('\n');
}

/// Latency and service time of all operations of a paced run.
fn paced(run: &Run) -> Option<String> {
    let s = &run.summary;
    let service = s.service.as_ref()?;
    let times = |mean: f64, of: PercentileKind| {
        let mean = format!("mean {}", inline_latency(mean));
        let percentile =
            |p: &Percentile| format!("{p} {}", shown_inline(s.percentile(*p), of, "–"));
        let percentiles = run
            .shown_percentiles(&BRIEF_PERCENTILES)
            .iter()
            .map(percentile);
        let parts: Vec<String> = std::iter::once(mean).chain(percentiles).collect();
        parts.join(", ")
    };
    Some(format!(
        "All operations: {} ({}); service time {}.",
        times(s.mean_ms, PercentileKind::Latency),
        s.latency_kind().words(),
        times(service.mean_ms, PercentileKind::Service)
    ))
}

/// A table of cells of Markdown, whose first column is left-aligned and the others right-aligned.
pub(crate) fn table(head: &[impl AsRef<str>], rows: &[Vec<String>]) -> String {
    let heads: Vec<&str> = head.iter().map(AsRef::as_ref).collect();
    let mut out = format!("| {} |\n|:--", heads.join(" | "));
    for _ in 1..head.len() {
        out.push_str("|--:");
    }
    out.push_str("|\n");
    for row in rows {
        out.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    out
}

/// A name in backquotes, between which there are no escapes.
pub(crate) fn code(name: &str) -> String {
    let plain = |c: char| match c {
        '`' => '\'',
        c if foreign::is_unprintable(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    format!("`{}`", name.chars().map(plain).collect::<String>())
}

/// Escapes a text for Markdown, and for the HTML that Markdown may contain.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' | '\r' | '\t' => out.push(' '),
            c if foreign::is_unprintable(c) => out.push(char::REPLACEMENT_CHARACTER),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
