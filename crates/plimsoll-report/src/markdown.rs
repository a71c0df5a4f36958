//! A run as Markdown, for issues and wikis.

use crate::filebench;
use crate::format::{latency, mib_per_s, rate};
use crate::percentiles::{
    BRIEF_PERCENTILES, PercentileKind, UNCERTAIN_NOTE, any_doubtful, greatest, of_done,
    shown_inline,
};
use crate::standstill;
use plimsoll_diagnostics::foreign;
use plimsoll_plan::{Count, counted};
use plimsoll_results::{LatencyFigures, OperationFigures, Percentile, Run};

pub use plimsoll_plan::{SCALED, scaled};

/// Heading, verdict and reasons, the table of operations, and the notes. `name` is that of the
/// results directory.
#[must_use]
pub fn render(name: &str, run: &Run) -> String {
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
    if !run.operations.is_empty() {
        let shown = run.shown_percentiles(&Percentile::DEFAULT_TABLE);
        let head = [
            "operation",
            "kind",
            "ops",
            "ops/s",
            "MiB/s",
            "errors",
            "mean",
        ];
        let mut head = head.map(str::to_owned).to_vec();
        head.extend(shown.iter().map(Percentile::to_string));
        head.extend(["max", "CPU µs/op"].map(str::to_owned));
        let rows = run.operations.iter().flat_map(|o| rows(o, shown));
        let rows: Vec<Vec<String>> = rows.collect();
        out.push_str(&table(&head, &rows));
        out.push('\n');
    }
    let operations = run.operations.iter();
    let shown = run.shown_percentiles(&Percentile::DEFAULT_TABLE);
    if any_doubtful(operations.flat_map(|o| shown.iter().map(|p| o.percentile(*p)))) {
        out.push_str(&format!("{UNCERTAIN_NOTE}\n\n"));
    }
    if let Some(text) = paced(run) {
        out.push_str(&format!("{text}\n\n"));
    }
    for sentence in standstill::sentences(run) {
        out.push_str(&format!("{}\n\n", escaped(&sentence)));
    }
    if run.window_number > 0 {
        out.push_str(&format!(
            "`{}`\n",
            filebench::io_summary(&run.summary).trim()
        ));
    }
    if !run.notes.is_empty() {
        out.push('\n');
    }
    for note in &run.notes {
        out.push_str(&format!("- note: {}\n", escaped(&note.text)));
    }
    out
}

/// The latency of all operations of a run that was paced, and its service time.
fn paced(run: &Run) -> Option<String> {
    let s = &run.summary;
    let service = s.service.as_ref()?;
    let times = |mean: f64, of: PercentileKind| {
        let mean = format!("mean {}", latency(mean).replace("  ", " "));
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

fn rows(o: &OperationFigures, shown: &[Percentile]) -> Vec<Vec<String>> {
    let times = |f: &LatencyFigures, of: PercentileKind| {
        let mut cells = vec![of_done(o, f.mean_ms, "–").replace("  ", " ")];
        cells.extend(
            shown
                .iter()
                .map(|p| shown_inline(o.percentile(*p), of, "–")),
        );
        cells.push(greatest(o, of, "–").replace("  ", " "));
        cells
    };
    let mut row = vec![
        escaped(&o.name),
        o.kind.to_string(),
        Count(o.ops).to_string(),
        rate(o.ops_per_s),
        mib_per_s(o.bytes_per_s),
        Count(o.errors).to_string(),
    ];
    row.extend(times(&o.latency, PercentileKind::Latency));
    row.push(o.cpu_us_per_op.map_or("–".into(), |us| format!("{us:.1}")));
    let mut rows = vec![row];
    if let Some(service) = &o.service {
        let mut row = vec![format!("{}, service time", escaped(&o.name))];
        row.extend(std::iter::repeat_n(String::new(), 5));
        row.extend(times(service, PercentileKind::Service));
        row.push(String::new());
        rows.push(row);
    }
    rows
}

/// A table whose first column is aligned to the left and the others to the right. Cells are
/// Markdown already.
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

/// A name between backquotes, which has no escapes.
pub(crate) fn code(name: &str) -> String {
    let plain = |c: char| match c {
        '`' => '\'',
        c if foreign::is_unprintable(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    format!("`{}`", name.chars().map(plain).collect::<String>())
}

/// A text that means nothing in Markdown and in the HTML that may be in it.
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
