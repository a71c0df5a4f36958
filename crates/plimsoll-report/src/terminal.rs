//! The report at the end of a run, for a terminal or a text file.

use crate::filebench;
use crate::format::{latency, mib_per_s, percent, rate};
use crate::mix;
use crate::stages;
use crate::table::Table;
use crate::text::{Paint, paragraph, shorten, whole};
use plimsoll_plan::{Bytes, Count, counted, show_duration};
use plimsoll_results::{
    ClockKind, LatencyFigures, LatencyKind, OperationFigures, Run, Summary, Verdict,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Least columns a report is laid out for.
const LEAST_WIDTH: usize = 60;

/// Most columns the name of an operation takes.
const MOST_NAME: usize = 36;

/// How a report is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to use ANSI colours.
    pub color: bool,
}

impl Layout {
    pub(crate) fn columns(&self) -> usize {
        self.width.max(LEAST_WIDTH)
    }
}

/// The whole report; `results` is where the results directory lies.
#[must_use]
pub fn render(run: &Run, results: Option<&Path>, layout: Layout) -> String {
    let mut out = String::new();
    let paint = Paint(layout.color);
    headline(&mut out, run, layout);
    let stages = stages::operations(run);
    let operations = if stages.is_empty() {
        &run.operations
    } else {
        &stages
    };
    if !operations.is_empty() {
        out.push('\n');
        out.push_str(&table(operations, layout));
    }
    procedures(&mut out, run, layout);
    out.push('\n');
    if run.window_number > 0 {
        summary(&mut out, run, layout);
        if let Some(mix) = &run.mix {
            mix::carried(&mut out, mix, layout.columns());
        }
        out.push_str(&filebench::io_summary(&run.summary));
        out.push('\n');
    }
    machine(&mut out, run, layout);
    tail(&mut out, run, layout);
    if let Some(path) = results {
        out.push_str(&format!(
            "\nresults in {}\n",
            paint.bold(&path.display().to_string())
        ));
    }
    out
}

/// What the target called on a server, as the operations' table.
fn procedures(out: &mut String, run: &Run, layout: Layout) {
    if run.procedures.is_empty() {
        return;
    }
    out.push('\n');
    let table = calls(&run.procedures, layout);
    out.push_str(&table);
    for p in run.procedures.iter().filter(|p| p.errors > 0) {
        let codes = p.error_codes.iter();
        let codes: Vec<String> = codes
            .map(|(code, n)| format!("{code} {}", Count(*n)))
            .collect();
        let label = format!("errors of {}: ", p.name);
        paragraph(out, &label, &codes.join(", "), layout.columns());
    }
}

/// Per procedure: calls and their latency, from when they were made to when the answer came.
fn calls(procedures: &[OperationFigures], layout: Layout) -> String {
    let head = ["procedure", "calls", "calls/s", "errors"];
    let latencies = ["mean", "p50", "p99", "max"];
    let mut table = Table::new(&[&head[..], &latencies[..]].concat());
    for p in procedures {
        let f = &p.latency;
        let times = [f.mean_ms, f.p50_ms, f.p99_ms, f.max_ms];
        let times = times.map(|ms| match p.ops {
            0 => "-".into(),
            _ => latency(ms),
        });
        let head = [
            p.name.clone(),
            Count(p.ops).to_string(),
            rate(p.ops_per_s),
            Count(p.errors).to_string(),
        ];
        table.row([&head[..], &times[..]].concat());
    }
    let mut out = String::new();
    table.render(&mut out, layout.columns(), Paint(layout.color));
    out
}

fn headline(out: &mut String, run: &Run, layout: Layout) {
    let paint = Paint(layout.color);
    let verdict = run.validity.verdict.to_string();
    let verdict = match run.validity.verdict {
        Verdict::Valid => paint.good(&verdict),
        Verdict::Invalid | Verdict::Interrupted => paint.doubtful(&verdict),
        Verdict::Failed => paint.bad(&verdict),
    };
    out.push_str(&format!("{}: {verdict}\n", paint.bold(&run.workload)));
    for reason in &run.validity.reasons {
        paragraph(
            out,
            &format!("  {}: ", reason.code),
            &reason.text,
            layout.columns(),
        );
    }
    if let Some(mix) = &run.mix {
        mix::load(out, mix, layout.columns());
    }
    let clock = match run.clock {
        ClockKind::Real => "",
        ClockKind::Virtual => " of virtual time",
    };
    let measured = match run.window_number {
        0 => "nothing measured".to_owned(),
        _ => {
            let length = Duration::try_from_secs_f64(run.window_s).unwrap_or_default();
            format!("{}{clock} measured", show_duration(length))
        }
    };
    let mut facts = format!(
        "{measured}, {}, seed {}, target {}",
        counted(run.workers, "worker", "workers"),
        run.seed,
        run.target.url,
    );
    if let Some(dir) = &run.environment.work_dir {
        facts.push_str(&format!(", files in {}", dir.path.display()));
        if let (Some(fs), Some(device)) = (&dir.fs_type, &dir.device) {
            facts.push_str(&format!(" ({fs} on {device})"));
        }
    }
    paragraph(out, "  ", &facts, layout.columns());
}

/// What the latencies of a table are that has rows of service times.
const PACED: &str = "the latency of a paced operation is its response time, from its intended start; \
                     its service time, from the call, stands below it";

/// Per operation: counts, throughput and latency. Laid side by side where the terminal is wide
/// enough, else as two tables, one below the other; no column is left out.
#[must_use]
pub fn table(operations: &[OperationFigures], layout: Layout) -> String {
    let errors = operations.iter().any(|o| o.errors > 0);
    let mut counts = vec!["operation", "ops", "ops/s", "MiB/s"];
    if errors {
        counts.push("errors");
    }
    let latencies = ["mean", "p50", "p95", "p99", "p99.9", "max"];
    let mut whole = Table::new(&[&counts[..], &latencies[..], &["CPU µs/op"]].concat());
    let mut upper = Table::new(&[&counts[..], &["CPU µs/op"]].concat());
    let mut lower = Table::new(&[&["latency"][..], &latencies[..]].concat());
    let names = names(operations);
    for (op, name) in operations.iter().zip(&names) {
        let mut count_cells = vec![
            name.clone(),
            Count(op.ops).to_string(),
            rate(op.ops_per_s),
            mib_per_s(op.bytes_per_s),
        ];
        if errors {
            count_cells.push(Count(op.errors).to_string());
        }
        let cpu = vec![op.cpu_us_per_op.map_or("-".into(), |us| format!("{us:.1}"))];
        let times = latency_cells(op.ops, &op.latency);
        whole.row([count_cells.clone(), times.clone(), cpu.clone()].concat());
        upper.row([count_cells.clone(), cpu].concat());
        lower.row([vec![name.clone()], times].concat());
        if let Some(service) = &op.service {
            let label = vec!["  service time".to_owned()];
            let blank = vec![String::new(); count_cells.len() - 1];
            let cells = latency_cells(op.ops, service);
            whole.row([label.clone(), blank, cells.clone()].concat());
            lower.row([label, cells].concat());
        }
    }
    let mut out = String::new();
    let paint = Paint(layout.color);
    if whole.width() <= layout.columns() {
        whole.render(&mut out, layout.columns(), paint);
    } else {
        upper.render(&mut out, layout.columns(), paint);
        out.push('\n');
        lower.render(&mut out, layout.columns(), paint);
    }
    if operations.iter().any(|o| o.service.is_some()) {
        paragraph(&mut out, "  ", PACED, layout.columns());
    }
    out
}

fn latency_cells(ops: u64, f: &LatencyFigures) -> Vec<String> {
    if ops == 0 {
        return vec!["-".into(); 6];
    }
    [f.mean_ms, f.p50_ms, f.p95_ms, f.p99_ms, f.p999_ms, f.max_ms]
        .map(latency)
        .into()
}

/// Names of the rows; one that several kinds share is told apart by its kind.
fn names(operations: &[OperationFigures]) -> Vec<String> {
    let mut uses = BTreeMap::new();
    for op in operations {
        *uses.entry(&op.name).or_insert(0) += 1;
    }
    operations
        .iter()
        .map(|op| match uses[&op.name] {
            1 => shorten(&op.name, MOST_NAME),
            _ => shorten(&format!("{} ({})", op.name, op.kind), MOST_NAME),
        })
        .collect()
}

fn summary(out: &mut String, run: &Run, layout: Layout) {
    let s = &run.summary;
    let mut parts = vec![
        counted(s.ops, "op", "ops"),
        format!("{} ops/s", rate(s.ops_per_s)),
        format!("{} reads/s", rate(s.reads_per_s)),
        format!("{} writes/s", rate(s.writes_per_s)),
        format!("{} MiB/s", mib_per_s(s.bytes_per_s)),
    ];
    if s.ops > 0 {
        parts.extend(times(s));
    }
    if let Some(us) = s.cpu_us_per_op {
        parts.push(format!("CPU {us:.1} µs/op"));
    }
    parts.push(counted(s.errors, "error", "errors"));
    if s.in_flight > 0 {
        parts.push(format!("{} in flight at the end", Count(s.in_flight)));
    }
    let parts: Vec<String> = parts.iter().map(|p| whole(p)).collect();
    paragraph(out, "summary: ", &parts.join(", "), layout.columns());
    for op in run.operations.iter().filter(|o| o.errors > 0) {
        let codes = op.error_codes.iter();
        let codes: Vec<String> = codes
            .map(|(code, n)| format!("{code} {}", Count(*n)))
            .collect();
        let text = format!("{} ({}): {}", op.name, op.kind, codes.join(", "));
        paragraph(out, "errors of ", &text, layout.columns());
    }
}

/// Latency of all operations: where some were paced by what it is, with the service time beside it.
fn times(s: &Summary) -> Vec<String> {
    let three = |what: &str, figures: [f64; 3]| {
        // In a table the unit has two columns.
        let [mean, p50, p99] = figures.map(|ms| latency(ms).replace("  ", " "));
        vec![
            format!("{what}mean {mean}"),
            format!("p50 {p50}"),
            format!("p99 {p99}"),
        ]
    };
    let figures = [s.mean_ms, s.p50_ms, s.p99_ms];
    let Some(service) = &s.service else {
        return three("", figures);
    };
    let what = match s.latency_kind() {
        LatencyKind::Mixed => format!("latency ({} of the ops paced) ", Count(s.paced_ops)),
        kind => format!("{} ", kind.name()),
    };
    let mut parts = three(&what, figures);
    let figures = [service.mean_ms, service.p50_ms, service.p99_ms];
    parts.extend(three("service time ", figures));
    parts
}

/// What the run cost the client, its page cache, disks and networks.
fn machine(out: &mut String, run: &Run, layout: Layout) {
    let mut parts = Vec::new();
    let system = &run.system;
    if let Some(p) = &system.process {
        parts.push(format!(
            "{:.1} s CPU ({:.1} user, {:.1} system)",
            p.cpu_s(),
            p.user_s,
            p.system_s,
        ));
        parts.push(format!("{} memory", Bytes(p.max_rss_bytes)));
    }
    if let Some(m) = &system.machine {
        parts.push(format!(
            "machine {} busy, {} iowait, {} steal of {}",
            percent(m.busy_share),
            percent(m.iowait_share),
            percent(m.steal_share),
            counted(m.cpus.into(), "processor", "processors")
        ));
    }
    if let Some(c) = &system.page_cache {
        parts.push(format!(
            "page cache {} in, {} out, {} dirty",
            Bytes(c.read_in_bytes),
            Bytes(c.written_out_bytes),
            Bytes(c.dirty_bytes)
        ));
    }
    for (name, d) in system.disks.iter().flatten() {
        let busy = if system.seconds > 0.0 {
            (d.busy_s / system.seconds).min(1.0)
        } else {
            0.0
        };
        let mut part = format!(
            "disk {name} {} read, {} written, {} busy",
            Bytes(d.read_bytes),
            Bytes(d.written_bytes),
            percent(busy)
        );
        // What the device itself took, beside which the latencies above are those of everything.
        if d.reads + d.writes > 0 {
            let mean_ms = d.io_s * 1e3 / (d.reads + d.writes) as f64;
            part.push_str(&format!(", {} an I/O", latency(mean_ms)));
        }
        parts.push(part);
    }
    for (name, n) in system.networks.iter().flatten() {
        parts.push(format!(
            "network {name} {} received, {} sent",
            Bytes(n.received_bytes),
            Bytes(n.sent_bytes)
        ));
    }
    if !parts.is_empty() {
        let parts: Vec<String> = parts.iter().map(|p| whole(p)).collect();
        paragraph(out, "client: ", &parts.join("; "), layout.columns());
    }
}

fn tail(out: &mut String, run: &Run, layout: Layout) {
    for w in &run.earlier_windows {
        out.push_str(&format!(
            "window {}: {}\n",
            w.number,
            filebench::io_summary(&w.summary)
        ));
    }
    for v in &run.variables {
        let text = format!(
            "{}, mean {}, deviation {}",
            counted(v.draws, "draw", "draws"),
            v.mean,
            v.sigma
        );
        paragraph(
            out,
            &format!("variable of {}: ", v.name),
            &text,
            layout.columns(),
        );
    }
    for note in &run.notes {
        let text = match &note.place {
            Some(place) => format!("{} ({place})", note.text),
            None => note.text.clone(),
        };
        paragraph(out, "note: ", &text, layout.columns());
    }
}
