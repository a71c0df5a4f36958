//! The report at the end of a run, for a terminal or a text file.

use crate::filebench;
use crate::format::{inline_latency, latency, measured_text, mib_per_s, percent, rate};
use crate::mix;
use crate::operation_table::latency_cells;
use crate::percentiles::{
    BRIEF_PERCENTILES, PercentileKind, UNCERTAIN_NOTE, align_marked, any_doubtful, shown_inline,
};
use crate::table::Table;
use crate::text::{Paint, list, paragraph, results_location, shorten};
use crate::{events, hosts, simulation, stages, standstill, verification};
use plimsoll_measure::control_groups::QuotaUse;
use plimsoll_plan::{Bytes, Count, counted};
use plimsoll_results::{LatencyKind, OperationFigures, Percentile, Run, Verdict};
use std::collections::BTreeMap;
use std::path::Path;

/// Minimum width of a report in columns.
const MIN_WIDTH: usize = 60;

/// Maximum width of an operation's name in columns.
const MAX_NAME_WIDTH: usize = 36;

/// Layout of a report.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to use ANSI colours.
    pub color: bool,
}

impl Layout {
    /// Columns of a report, at least 60.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.width.max(MIN_WIDTH)
    }
}

/// The whole report; `results` is the results directory.
#[must_use]
pub fn render(run: &Run, results: Option<&Path>, layout: Layout) -> String {
    let mut out = String::new();
    headline(&mut out, run, layout);
    let stages = stages::operations(run);
    let operations = if stages.is_empty() {
        &run.operations
    } else {
        &stages
    };
    if !operations.is_empty() {
        let shown = run.shown_percentiles(&Percentile::DEFAULT_TABLE);
        out.push('\n');
        out.push_str(&table(operations, shown, layout));
    }
    procedures(&mut out, run, layout);
    completion_delay(&mut out, run, layout);
    out.push('\n');
    if run.window_number > 0 {
        summary(&mut out, run, layout);
        ends(&mut out, run, layout);
        mix::achieved(&mut out, run, layout.columns());
        out.push_str(&filebench::io_summary(&run.summary));
        out.push('\n');
    }
    for (event, text) in events::sentences(run) {
        paragraph(&mut out, &format!("{event}: "), &text, layout.columns());
    }
    simulated(&mut out, run, layout);
    if let Some(cache) = &run.client_cache {
        paragraph(&mut out, "reads: ", &cache.to_string(), layout.columns());
    }
    if let Some(text) = verification::sentence(run) {
        paragraph(&mut out, "verified: ", &text, layout.columns());
    }
    for example in verification::shown_examples(run) {
        paragraph(&mut out, "  ", &example, layout.columns());
    }
    if let Some(table) = hosts::table(run) {
        table.render(&mut out, layout.columns(), Paint(layout.color));
    }
    if let Some(text) = hosts::starts(run) {
        paragraph(&mut out, "starts: ", &text, layout.columns());
    }
    client(&mut out, run, layout);
    tail(&mut out, run, layout);
    results_location(&mut out, results, Paint(layout.color));
    out
}

/// What the simulated system did.
fn simulated(out: &mut String, run: &Run, layout: Layout) {
    for (name, text) in simulation::of_stages(run) {
        let label = format!("bottleneck of {name}: ");
        paragraph(out, &label, &text, layout.columns());
    }
    let Some(figures) = &run.simulation else {
        return;
    };
    for table in [
        simulation::stations(run, figures),
        simulation::times(run, figures),
    ] {
        let mut lines = Table::new(&table.head);
        table.rows.into_iter().for_each(|row| lines.row(row));
        lines.render(out, layout.columns(), Paint(layout.color));
        out.push('\n');
    }
    for sentence in simulation::stores(figures) {
        paragraph(out, "", &sentence, layout.columns());
    }
    if let Some(bottleneck) = &figures.bottleneck {
        let text = simulation::bottleneck(bottleneck);
        paragraph(out, "bottleneck: ", &text, layout.columns());
    }
}

/// Failed operations by their error.
fn error_counts(o: &OperationFigures) -> String {
    let codes = o.error_codes.iter();
    let codes: Vec<String> = codes
        .map(|(code, n)| format!("{code} {}", Count(*n)))
        .collect();
    codes.join(", ")
}

/// The procedures called on a server: a table, and their errors.
fn procedures(out: &mut String, run: &Run, layout: Layout) {
    if run.procedures.is_empty() {
        return;
    }
    out.push('\n');
    out.push_str(&calls(run, layout));
    for p in run.procedures.iter().filter(|p| p.errors > 0) {
        let label = format!("errors of {}: ", p.name);
        paragraph(out, &label, &error_counts(p), layout.columns());
    }
}

/// How long completions of a ring waited until their workers saw them.
fn completion_delay(out: &mut String, run: &Run, layout: Layout) {
    if let Some(delay) = &run.completion_delay {
        out.push('\n');
        let head = ["until seen", "completions", "completions/s"];
        out.push_str(&counts_and_times(
            run,
            head,
            std::slice::from_ref(delay),
            layout,
        ));
    }
}

/// Per procedure: calls and their latency, from the call to the reply.
fn calls(run: &Run, layout: Layout) -> String {
    let head = ["procedure", "calls", "calls/s"];
    counts_and_times(run, head, &run.procedures, layout)
}

/// Counts, errors and latencies of what the target did for operations.
fn counts_and_times(
    run: &Run,
    head: [&str; 3],
    rows: &[OperationFigures],
    layout: Layout,
) -> String {
    let shown = run.shown_percentiles(&BRIEF_PERCENTILES);
    let mut head: Vec<String> = head
        .into_iter()
        .chain(["errors", "mean"])
        .map(str::to_owned)
        .collect();
    head.extend(shown.iter().map(Percentile::to_string));
    head.push("max".into());
    let mut table = Table::new(&head);
    let mut times: Vec<Vec<String>> = rows
        .iter()
        .map(|p| latency_cells(p, shown, PercentileKind::Latency, "-"))
        .collect();
    align_marked(&mut times.iter_mut().collect::<Vec<_>>());
    for (p, times) in rows.iter().zip(times) {
        let mut row = vec![
            p.name.clone(),
            Count(p.ops).to_string(),
            rate(p.ops_per_s),
            Count(p.errors).to_string(),
        ];
        row.extend(times);
        table.row(row);
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
        let label = format!("  {}: ", reason.code);
        paragraph(out, &label, &reason.text, layout.columns());
    }
    if let Some(mix) = &run.mix {
        mix::load(out, mix, layout.columns());
    }
    let mut facts = format!(
        "{}, {}, seed {}, target {}",
        measured_text(run),
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

/// Explanation of a table that has rows of service times.
const PACED: &str = "the latency of a paced operation is its response time, from its intended start; \
                     its service time, from the call, stands below it";

/// Per operation: counts, throughput and latency, with these percentiles. One table if the terminal is
/// wide enough, otherwise two, one below the other.
#[must_use]
pub fn table(operations: &[OperationFigures], shown: &[Percentile], layout: Layout) -> String {
    let errors = operations.iter().any(|o| o.errors > 0);
    let mut counts = vec!["operation", "ops", "ops/s", "MiB/s"];
    if errors {
        counts.push("errors");
    }
    let percentiles: Vec<String> = shown.iter().map(Percentile::to_string).collect();
    let mut latencies = vec!["mean"];
    latencies.extend(percentiles.iter().map(String::as_str));
    latencies.push("max");
    let mut whole = Table::new(&[&counts[..], &latencies[..], &["CPU µs/op"]].concat());
    let mut upper = Table::new(&[&counts[..], &["CPU µs/op"]].concat());
    let mut lower = Table::new(&[&["latency"][..], &latencies[..]].concat());
    let mut rows: Vec<Row> = operations.iter().map(|o| Row::of(o, shown)).collect();
    let times = rows
        .iter_mut()
        .flat_map(|r| [Some(&mut r.latency), r.service.as_mut()]);
    align_marked(&mut times.flatten().collect::<Vec<_>>());
    let names = names(operations);
    for ((op, name), row) in operations.iter().zip(&names).zip(rows) {
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
        whole.row([count_cells.clone(), row.latency.clone(), cpu.clone()].concat());
        upper.row([count_cells.clone(), cpu].concat());
        lower.row([vec![name.clone()], row.latency].concat());
        if let Some(service) = row.service {
            let label = vec!["  service time".to_owned()];
            let blank = vec![String::new(); count_cells.len() - 1];
            whole.row([label.clone(), blank, service.clone()].concat());
            lower.row([label, service].concat());
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
    let figures = operations
        .iter()
        .flat_map(|o| shown.iter().map(|p| o.percentile(*p)));
    if any_doubtful(figures) {
        paragraph(&mut out, "  ", UNCERTAIN_NOTE, layout.columns());
    }
    out
}

/// Latencies of an operation, as cells.
struct Row {
    latency: Vec<String>,
    service: Option<Vec<String>>,
}

impl Row {
    fn of(o: &OperationFigures, shown: &[Percentile]) -> Self {
        let cells = |of| latency_cells(o, shown, of, "-");
        Self {
            latency: cells(PercentileKind::Latency),
            service: o.service.map(|_| cells(PercentileKind::Service)),
        }
    }
}

/// Names of the rows, with their kind if several share the name.
fn names(operations: &[OperationFigures]) -> Vec<String> {
    let mut uses = BTreeMap::new();
    for op in operations {
        *uses.entry(&op.name).or_insert(0) += 1;
    }
    operations
        .iter()
        .map(|op| match uses[&op.name] {
            1 => shorten(&op.name, MAX_NAME_WIDTH),
            _ => shorten(&format!("{} ({})", op.name, op.kind), MAX_NAME_WIDTH),
        })
        .collect()
}

/// When the first and the last worker finished, and what all had completed by then; of a pattern, for
/// each stage.
fn ends(out: &mut String, run: &Run, layout: Layout) {
    let of_run = run.first_done.zip(run.last_done);
    let of_run = of_run.map(|(first, last)| ("worker", String::new(), first, last));
    let of_stages = stages::if_few(run).filter_map(|(name, stage)| {
        let (first, last) = stage.window.first_done.zip(stage.window.last_done)?;
        Some(("rank", format!(" of {name}"), first, last))
    });
    for (who, stage, first, last) in of_run.into_iter().chain(of_stages) {
        let parts = [("first", first), ("last", last)].map(|(which, completed)| {
            format!(
                "{which} {who} after {}: {}, {} ops/s, {} MiB/s",
                inline_latency(completed.after_s * 1e3),
                counted(completed.ops, "op", "ops"),
                rate(completed.ops_per_s),
                mib_per_s(completed.bytes_per_s)
            )
        });
        let label = format!("finish times{stage}: ");
        paragraph(out, &label, &list(&parts, "; "), layout.columns());
    }
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
    if s.has_latencies() {
        parts.extend(times(run));
    }
    if let Some(us) = s.cpu_us_per_op {
        parts.push(format!("CPU {us:.1} µs/op"));
    }
    parts.push(counted(s.errors, "error", "errors"));
    if s.in_flight > 0 {
        parts.push(standstill::in_flight(s));
    }
    if s.abandoned > 0 {
        parts.push(format!("{} abandoned", Count(s.abandoned)));
    }
    paragraph(out, "summary: ", &list(&parts, ", "), layout.columns());
    for sentence in standstill::sentences(run) {
        paragraph(out, "", &sentence, layout.columns());
    }
    for op in run.operations.iter().filter(|o| o.errors > 0) {
        let text = format!("{} ({}): {}", op.name, op.kind, error_counts(op));
        paragraph(out, "errors of ", &text, layout.columns());
    }
}

/// Latency of all operations; if some were paced, with its kind and the service time.
fn times(run: &Run) -> Vec<String> {
    let s = &run.summary;
    let shown = run.shown_percentiles(&BRIEF_PERCENTILES);
    let times = |prefix: &str, mean: f64, of: PercentileKind| {
        let mean = match s.ops {
            0 => "-".to_owned(),
            _ => inline_latency(mean),
        };
        let mut parts = vec![format!("{prefix}mean {mean}")];
        let percentile =
            |p: &Percentile| format!("{p} {}", shown_inline(s.percentile(*p), of, "-"));
        parts.extend(shown.iter().map(percentile));
        parts
    };
    let prefix = match (s.latency_kind(), s.service) {
        (LatencyKind::Service, _) | (_, None) => {
            return times("", s.mean_ms, PercentileKind::Latency);
        }
        (LatencyKind::Mixed, _) => format!("latency ({} of the ops paced) ", Count(s.paced_ops)),
        (kind, _) => format!("{} ", kind.name()),
    };
    let mut parts = times(&prefix, s.mean_ms, PercentileKind::Latency);
    let service = s.service().mean_ms;
    parts.extend(times("service time ", service, PercentileKind::Service));
    parts
}

/// Resources that the run used on the client: processors, page cache, disks and networks.
fn client(out: &mut String, run: &Run, layout: Layout) {
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
    parts.extend(system.quota.as_ref().map(QuotaUse::text));
    if let Some(limit) = run.environment.memory_limit() {
        parts.push(format!("memory limited to {}", Bytes(limit)));
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
        // The device's own time, to compare with the latencies above, which include everything.
        if d.reads + d.writes > 0 {
            let mean_ms = d.io_s * 1e3 / (d.reads + d.writes) as f64;
            part.push_str(&format!(", {} per I/O", latency(mean_ms)));
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
        paragraph(out, "client: ", &list(&parts, "; "), layout.columns());
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
        let label = format!("variable of {}: ", v.name);
        paragraph(out, &label, &text, layout.columns());
    }
    for note in &run.notes {
        let text = match &note.location {
            Some(place) => format!("{} ({place})", note.text),
            None => note.text.clone(),
        };
        paragraph(out, "note: ", &text, layout.columns());
    }
}
