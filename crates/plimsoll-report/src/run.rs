//! Report on a run.

use crate::document::{Block, Document, Figure, Line, Table};
use crate::format::{clock_note, duration_text, latency, mib_per_s, rate};
use crate::html::chart::Chart;
use crate::operation_table::{call_table, latency_figures, operation_table, unfolding_table};
use crate::text::{error_counts, list};
use crate::{client, confidence, events, hosts, mix, simulation, stages, standstill, verification};
use plimsoll_measure::{RankStage, RuledPhase, RuledWait};
use plimsoll_plan::{ByteSum, Bytes, Count, Promise, Requirement, counted, scaled};
use plimsoll_results::{CompletedFigures, OperationFigures, Percentile, Run, Stage, Summary};

/// The report on a run, without charts.
#[must_use]
pub fn document(run: &Run) -> Document {
    with_charts(run, vec![])
}

/// The report on a run with its charts.
#[must_use]
pub fn with_charts(run: &Run, charts: Vec<Chart>) -> Document {
    let verdict = run.validity.verdict;
    let mut document = Document::new(&run.workload, verdict.to_string(), verdict.into());
    document.head = head(run);
    document
        .section("achieved", "Achieved", achieved(run))
        .section("load", "Load", mix::achieved(run))
        .section("events", "Events", events(run))
        .section("operations", "Operations", operations(run))
        .section("charts", "Throughput and latency", Block::charts(charts))
        .section("hosts", "Hosts", hosts(run))
        .section("system", "Simulated system", simulated(run))
        .section("verification", "Verification", verified(run))
        .section("client", "Client", client::lines(run))
        .section("workload", "Workload", workload(run))
        .append(
            "confidence",
            "Confidence",
            Block::table(confidence::table(run)).into_iter().collect(),
        )
        .append("resources", "Resources of the client", client::tables(run))
        .append("ranks", "Ranks", ranks(run))
        .append("parameters", "Parameters and files", parameters(run))
        .append(
            "environment",
            "Environment",
            vec![client::environment(&run.environment)],
        );
    document
}

/// Number and size of the files when the workers started, and the length of the warm-up.
fn data_and_warm_up(run: &Run) -> Vec<Figure> {
    let mut facts = vec![];
    if !run.filesets.is_empty() {
        let files = run.filesets.iter().map(|fileset| fileset.files).sum();
        let mut bytes = ByteSum::exact(0);
        run.filesets
            .iter()
            .for_each(|fileset| bytes += fileset.sum());
        let text = format!("{}, {bytes}", counted(files, "file", "files"));
        facts.push(Figure::new("data", text));
    }
    if run.window_number > 0 && run.stages.is_empty() {
        let is_warm_up = |wait: &&RuledWait| wait.phase == RuledPhase::WarmUp;
        let ruled = run.ruled_waits.iter().find(is_warm_up);
        let planned_s = run.plan.times().0.as_secs_f64();
        let text = match ruled.map_or(planned_s, |wait| wait.seconds) {
            0.0 => "none".to_owned(),
            seconds => duration_text(seconds) + clock_note(run.clock),
        };
        facts.push(Figure::new("warm-up", text));
    }
    facts
}

/// Fact about the NFS clients of a run: number, connections and server state; the number alone for a killed run.
fn nfs_clients(run: &Run) -> Option<Figure> {
    match &run.nfs_clients {
        Some(clients) => Some(Figure::unit(
            Count(clients.clients).to_string(),
            clients.noun(),
        )),
        None => run
            .nfs_client_count()
            .map(|n| Figure::count(n, "NFS client", "NFS clients")),
    }
}

/// Reasons of the verdict, promises and qualifiers, and facts about the run.
fn head(run: &Run) -> Vec<Block> {
    // A broken promise has a line of its own.
    let mut reasons = run.validity.reasons.clone();
    reasons.retain(|reason| reason.code != Promise::BROKEN);
    let mut head: Vec<Block> = Block::reasons(&reasons).collect();
    head.extend(Block::promises(&run.promises));
    head.extend(Block::qualifiers(&run.qualifiers, &run.validity.reasons));
    // A qualifier or a reason states a rate that changed, and a reason an unknown rate that was required to be steady.
    let code = Requirement::Steady.reason_code();
    let is_stated = run.validity.reasons.iter().any(|r| r.code == code);
    let rate = run.stationarity.as_ref();
    let rate = rate.filter(|rate| !rate.has_changed() && !is_stated);
    head.extend(rate.map(|rate| Line::of("rate over time", rate.to_string())));
    let ruled = run.ruled_waits.iter().map(|wait| {
        let label = match wait.phase {
            RuledPhase::WarmUp => "warm-up",
            RuledPhase::Window => "window",
        };
        Line::of(label, wait.to_string())
    });
    head.extend(ruled);
    let mut facts = vec![match run.window_number {
        0 => Figure::unit("nothing", "measured"),
        _ => {
            let (length, clock) = (duration_text(run.window_s), clock_note(run.clock));
            Figure::unit(format!("{length}{clock}"), "measured")
        }
    }];
    if let Some(mix) = run.mix.as_ref().filter(|m| m.load > 0) {
        let load = format!("{} {}", Count(mix.load), mix.metric);
        facts.push(Figure::new("load", load));
    }
    if let Some(mix) = run.mix.as_ref().filter(|m| m.scale != 1.0) {
        head.push(Block::warning(scaled(mix.scale)));
    }
    if let Some(rate) = run.plan.event_rate {
        facts.push(Figure::unit(rate.to_string(), "events/s for the limiters"));
    }
    facts.push(Figure::count(run.workers, "worker", "workers"));
    facts.extend(nfs_clients(run));
    if run.ranks > 1 {
        facts.push(Figure::count(run.ranks.into(), "rank", "ranks"));
    }
    facts.push(Figure::new("seed", run.seed.to_string()));
    facts.push(Figure::new("target", &run.target.url));
    if let Some(dir) = &run.environment.work_dir {
        let mut files = dir.path.display().to_string();
        if let (Some(fs), Some(device)) = (&dir.fs_type, &dir.device) {
            files.push_str(&format!(" ({fs} on {device})"));
        }
        facts.push(Figure::new("files in", files));
    }
    facts.extend(data_and_warm_up(run));
    facts.push(Figure::time("started", &run.started_at));
    facts.push(Figure::new(&run.program.name, &run.program.version));
    head.push(Block::facts(facts));
    head
}

/// The figures of all operations together.
fn achieved(run: &Run) -> Vec<Block> {
    if run.window_number == 0 {
        return vec![];
    }
    let s = &run.summary;
    let mut figures = throughput(s);
    let mut latencies = Vec::new();
    for (of, times) in latency_figures(run) {
        if of.is_empty() {
            figures.extend(times);
        } else {
            latencies.push(Block::results(&of, times));
        }
    }
    let cpu = s.cpu_us_per_op;
    figures.extend(cpu.map(|us| Figure::new("CPU", format!("{us:.1} µs/op"))));
    figures.push(Figure::count(s.errors, "error", "errors"));
    if s.in_flight > 0 {
        let count = Count(s.in_flight).to_string();
        let words = standstill::in_flight(s);
        let unit = words.strip_prefix(&count).expect("the number comes first");
        figures.push(Figure::unit(count, unit.trim_start()));
    }
    if s.abandoned > 0 {
        figures.push(Figure::unit(Count(s.abandoned).to_string(), "abandoned"));
    }
    let mut blocks = vec![Block::results("summary", figures)];
    blocks.extend(latencies);
    let of_stage = |(name, stage): (String, &Stage)| Block::results(&name, stage_figures(stage));
    blocks.extend(stages::if_few(run).map(of_stage));
    blocks.extend(confidence::of_all(run));
    blocks.extend(standstill::sentences(run).into_iter().map(Block::sentence));
    let failed = run.operations.iter().filter(|o| o.errors > 0);
    blocks.extend(failed.map(|o| {
        let label = format!("errors of {} ({})", o.name, o.kind);
        Line::of(label, error_counts(&o.error_codes))
    }));
    blocks.extend(ends(run));
    blocks.extend(run.earlier_windows.iter().map(|window| {
        let mut figures = throughput(&window.summary);
        figures.push(Figure::new("mean", latency(window.summary.mean_ms)));
        Block::results(&format!("window {}", window.number), figures)
    }));
    blocks
}

/// Number and rates of the operations of a window.
fn throughput(s: &Summary) -> Vec<Figure> {
    vec![
        Figure::count(s.ops, "op", "ops"),
        Figure::unit(rate(s.ops_per_s), "ops/s"),
        Figure::unit(rate(s.reads_per_s), "reads/s"),
        Figure::unit(rate(s.writes_per_s), "writes/s"),
        Figure::unit(mib_per_s(s.bytes_per_s), "MiB/s"),
    ]
}

/// Figures of a stage: rates over the longest time of a rank, and this time in seconds.
fn stage_figures(stage: &Stage) -> Vec<Figure> {
    let operations: Vec<OperationFigures> = stages::over_longest_rank(stage).collect();
    let sum = |of: fn(&OperationFigures) -> f64| operations.iter().map(of).sum();
    let bytes_per_s: f64 = sum(|o| o.bytes_per_s);
    let mut figures = vec![Figure::unit(rate(sum(|o| o.ops_per_s)), "ops/s")];
    if bytes_per_s > 0.0 {
        figures.push(Figure::unit(mib_per_s(bytes_per_s), "MiB/s"));
    }
    let seconds = stages::longest_ns(stage) as f64 / 1e9;
    figures.push(Figure::unit(format!("{seconds:.3}"), "s"));
    figures
}

/// Times at which the first and the last worker finished, with the completed operations; for a pattern, in each stage.
fn ends(run: &Run) -> Vec<Block> {
    let of_run = run.first_done.zip(run.last_done);
    let of_run = of_run.map(|(first, last)| ("worker", String::new(), first, last));
    let of_stages = stages::if_few(run).filter_map(|(name, stage)| {
        let (first, last) = stage.window.first_done.zip(stage.window.last_done)?;
        Some(("rank", format!(" of {name}"), first, last))
    });
    let line = |(who, stage, first, last): (_, _, CompletedFigures, _)| {
        let parts = [("first", first), ("last", last)].map(|(which, completed)| {
            format!(
                "{which} {who} after {}: {}, {} ops/s, {} MiB/s",
                latency(completed.after_s * 1e3),
                counted(completed.ops, "op", "ops"),
                rate(completed.ops_per_s),
                mib_per_s(completed.bytes_per_s)
            )
        });
        Line::of(format!("finish times{stage}"), list(&parts, "; "))
    };
    of_run.into_iter().chain(of_stages).map(line).collect()
}

fn events(run: &Run) -> Vec<Block> {
    let events = events::sentences(run).into_iter();
    events.map(|(event, text)| Line::of(event, text)).collect()
}

/// Note on a table with groups of rows.
const GROUPED: &str = "×N: N rows of the workload whose names differ only in a final number; `plimsoll report --details` \
                       shows each row";

/// Entries of the table of operations: each operation alone, or a group of similar operations in the place of the group's
/// first operation. An entry has its figures and, for a group, the operations of the group.
pub(crate) fn grouped(run: &Run) -> Vec<(OperationFigures, Vec<&OperationFigures>)> {
    let mut entries: Vec<(OperationFigures, Vec<&OperationFigures>)> = vec![];
    for row in &run.operations {
        let mut groups = run.groups.iter();
        let Some(group) = groups.find(|group| group.contains(row.kind, &row.name)) else {
            entries.push((row.clone(), vec![]));
            continue;
        };
        let together = OperationFigures {
            name: group.label(),
            ..group.figures.clone()
        };
        match entries.iter_mut().find(|(known, _)| *known == together) {
            Some((_, rows)) => rows.push(row),
            None => entries.push((together, vec![row])),
        }
    }
    entries
}

fn operations(run: &Run) -> Vec<Block> {
    let percentiles = run.shown_percentiles(&Percentile::DEFAULT_TABLE);
    let of_stages = stages::operations(run);
    let mut table = if of_stages.is_empty() {
        let entries = grouped(run);
        let entries = entries.iter().map(|(o, rows)| (o, rows.clone()));
        unfolding_table("Operations", entries.collect(), percentiles)
    } else {
        let caption = "Operations of each stage; rates are over the time of the longest rank";
        operation_table(caption, &of_stages, percentiles)
    };
    if !run.groups.is_empty() {
        table.notes.push(GROUPED.to_owned());
    }
    let procedures = call_table(
        "Procedures called on the server",
        ["procedure", "calls", "calls/s"],
        &run.procedures,
        percentiles,
    );
    let delay = call_table(
        "Time between the completion of an operation and its being seen (at most)",
        ["until seen", "completions", "completions/s"],
        run.completion_delay.as_slice(),
        percentiles,
    );
    let tables = [table, procedures, delay];
    let tables = tables.into_iter().filter_map(Block::table);
    let failed = run.procedures.iter().filter(|p| p.errors > 0);
    let errors = failed.map(|p| {
        Line::of(
            format!("errors of {}", p.name),
            error_counts(&p.error_codes),
        )
    });
    tables.chain(errors).collect()
}

/// Hosts of a run with several, and the spread of the starts of ranks.
fn hosts(run: &Run) -> Vec<Block> {
    let starts = hosts::starts(run).map(|text| Line::of("starts", text));
    let table = Block::table(hosts::table(run));
    table.into_iter().chain(starts).collect()
}

/// Figures of the simulated system, in the window or in each stage.
fn simulated(run: &Run) -> Vec<Block> {
    let of_stages = simulation::of_stages(run);
    let mut blocks: Vec<Block> = of_stages
        .map(|(name, text)| Line::of(format!("bottleneck of {name}"), text))
        .collect();
    let Some(figures) = &run.simulation else {
        return blocks;
    };
    let tables = [
        simulation::stations(run, figures),
        simulation::times(run, figures),
    ];
    blocks.extend(tables.into_iter().filter_map(Block::table));
    blocks.extend(simulation::stores(figures));
    let bottleneck = figures.bottleneck.as_ref().map(simulation::bottleneck);
    blocks.extend(bottleneck.map(|text| Line::of("bottleneck", text)));
    blocks
}

/// Result of the verification.
fn verified(run: &Run) -> Vec<Block> {
    let verified = verification::sentence(run).map(|text| Line::of("verified", text));
    let examples = verification::shown_examples(run).map(|text| Line::nested("", text));
    verified.into_iter().chain(examples).collect()
}

/// Random variables under test, and notes.
fn workload(run: &Run) -> Vec<Block> {
    let variables = run.variables.iter().map(|v| {
        let draws = counted(v.draws, "draw", "draws");
        let text = format!("{draws}, mean {}, deviation {}", v.mean, v.sigma);
        Line::of(format!("variable of {}", v.name), text)
    });
    variables.chain(Block::notes(&run.notes)).collect()
}

/// Circumstances of the workload: parameters, files found or created, and text.
fn parameters(run: &Run) -> Vec<Block> {
    let parameters = run.plan.parameters.iter().map(|p| {
        let cells = [&p.name, &p.value, &p.default, &p.meaning];
        cells.map(String::clone).to_vec()
    });
    let head = ["name", "value", "default", "meaning"];
    let parameters = Table::new("Parameters", head).with_rows(parameters);
    let filesets = run.filesets.iter().map(|p| {
        let how = if p.reused { "found" } else { "created" };
        vec![
            p.fileset.clone(),
            Count(p.files).to_string(),
            Count(p.dirs).to_string(),
            p.sum().to_string(),
            format!("{how} in {:.2} s", p.seconds),
        ]
    });
    let head = ["fileset", "files", "directories", "bytes", "population"];
    let filesets = Table::new("Filesets", head).with_rows(filesets);
    let title = (!run.plan.title.is_empty()).then(|| Block::sentence(&run.plan.title));
    let target = Line::of("target", &run.target.description);
    let target = (!run.target.description.is_empty()).then_some(target);
    let tables = [parameters, filesets].into_iter().filter_map(Block::table);
    let text = (!run.plan.source.text.is_empty()).then(|| Block::Source(run.plan.source.clone()));
    let first = title.into_iter().chain(target);
    first.chain(tables).chain(text).collect()
}

/// Maximum number of rows in the table of ranks, to keep pages on thousands of ranks usable.
const MAX_RANK_ROWS: usize = 4000;

/// Table of the figures of each rank in each stage of a pattern.
fn ranks(run: &Run) -> Vec<Block> {
    let head = "stage|iteration|rank|seconds|seconds with barrier|rounds|rounds at the stonewall|\
                operation|ops|moved|errors|min|median|p99|max";
    let mut table = Table::new("Ranks", head.split('|'));
    let mut all = 0;
    for stage in &run.stages {
        for rank in &stage.ranks {
            let named = rank.rows.iter().zip(&run.plan.operations);
            for (r, op) in named.filter(|(r, _)| r.ops + r.errors > 0) {
                all += 1;
                if table.rows.len() >= MAX_RANK_ROWS {
                    continue;
                }
                let mut row = rank_cells(stage, rank);
                row.extend([
                    op.name.clone(),
                    Count(r.ops).to_string(),
                    Bytes(r.bytes).to_string(),
                    Count(r.errors).to_string(),
                ]);
                let q = r.quantiles_ns;
                row.extend([q[0], q[2], q[5], q[6]].map(|ns| latency(ns as f64 / 1e6)));
                table.row(row);
            }
        }
    }
    if all > table.rows.len() {
        let shown = Count(table.rows.len() as u64);
        let text = format!(
            "the first {shown} of {} rows; run.json has all of them",
            Count(all as u64)
        );
        table.notes.push(text);
    }
    [stages(run), table]
        .into_iter()
        .filter_map(Block::table)
        .collect()
}

/// Table of the longest time of a rank in each stage of a pattern.
fn stages(run: &Run) -> Table {
    let rows = stages::named(run).map(|(name, stage)| {
        let seconds = stages::longest_ns(stage) as f64 / 1e9;
        vec![name, format!("{seconds:.3}")]
    });
    Table::new("Stages", ["stage", "seconds of the longest rank"]).with_rows(rows)
}

fn rank_cells(stage: &Stage, rank: &RankStage) -> Vec<String> {
    let seconds = |ns: u64| format!("{:.3}", ns as f64 / 1e9);
    let stonewall = rank.stonewall_rounds;
    vec![
        stage.name.clone(),
        (stage.iteration + 1).to_string(),
        rank.rank.to_string(),
        seconds(rank.time_ns),
        seconds(rank.time_with_barrier_ns),
        Count(rank.rounds).to_string(),
        stonewall.map_or("-".into(), |n| Count(n).to_string()),
    ]
}
