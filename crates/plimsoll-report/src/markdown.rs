//! A run as Markdown, for issues and wikis.

use crate::filebench;
use crate::format::{latency, mib_per_s, rate};
use plimsoll_plan::{Count, counted};
use plimsoll_results::{OperationFigures, Run, Summary};

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
        "{:.3} s measured, {}, seed {}, target {}; results `{}`, began {}.\n\n",
        run.window_s,
        counted(run.workers, "worker", "workers"),
        run.seed,
        escaped(&run.target.url),
        name.replace('`', "'"),
        run.started,
    ));
    if !run.operations.is_empty() {
        let head = [
            "operation",
            "kind",
            "ops",
            "ops/s",
            "MiB/s",
            "errors",
            "mean",
            "p50",
            "p95",
            "p99",
            "p99.9",
            "max",
            "CPU µs/op",
        ];
        let rows: Vec<Vec<String>> = run.operations.iter().flat_map(rows).collect();
        out.push_str(&table(&head, &rows));
        out.push('\n');
    }
    if let Some(text) = paced(&run.summary) {
        out.push_str(&format!("{text}\n\n"));
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
fn paced(s: &Summary) -> Option<String> {
    let service = s.service.as_ref()?;
    let three = |mean, p50, p99| {
        let shown = [mean, p50, p99].map(|ms| latency(ms).replace("  ", " "));
        format!("mean {}, p50 {}, p99 {}", shown[0], shown[1], shown[2])
    };
    Some(format!(
        "All operations: {} ({}); service time {}.",
        three(s.mean_ms, s.p50_ms, s.p99_ms),
        s.latency_kind().words(),
        three(service.mean_ms, service.p50_ms, service.p99_ms)
    ))
}

fn rows(o: &OperationFigures) -> Vec<Vec<String>> {
    let times = |f: &plimsoll_results::LatencyFigures| {
        [f.mean_ms, f.p50_ms, f.p95_ms, f.p99_ms, f.p999_ms, f.max_ms].map(|ms| match o.ops {
            0 => "–".to_owned(),
            _ => latency(ms).replace("  ", " "),
        })
    };
    let mut row = vec![
        escaped(&o.name),
        o.kind.to_string(),
        Count(o.ops).to_string(),
        rate(o.ops_per_s),
        mib_per_s(o.bytes_per_s),
        Count(o.errors).to_string(),
    ];
    row.extend(times(&o.latency));
    row.push(o.cpu_us_per_op.map_or("–".into(), |us| format!("{us:.1}")));
    let mut rows = vec![row];
    if let Some(service) = &o.service {
        let mut row = vec![format!("{}, service time", escaped(&o.name))];
        row.extend(std::iter::repeat_n(String::new(), 5));
        row.extend(times(service));
        row.push(String::new());
        rows.push(row);
    }
    rows
}

/// A table whose first column is aligned to the left and the others to the right. Cells are
/// Markdown already.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut out = format!("| {} |\n|:--", head.join(" | "));
    for _ in 1..head.len() {
        out.push_str("|--:");
    }
    out.push_str("|\n");
    for row in rows {
        out.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    out
}

/// A text that means nothing in Markdown and in the HTML that may be in it.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
