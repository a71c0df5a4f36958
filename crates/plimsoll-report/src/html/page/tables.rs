//! Tables of figures: load, operations, errors, stages and their ranks.

use crate::html::label;
use crate::operation_table::{OperationTable, latency_cells};
use crate::percentiles::{
    BRIEF_PERCENTILES, PercentileKind, UNCERTAIN_MARK, UNCERTAIN_NOTE, bounded,
};
use crate::{events, hosts as host_table, inline, mib_per_s, points, rate, simulation, stages};
use maud::{Markup, html};
use plimsoll_plan::{Bytes, Count};
use plimsoll_results::{
    CompletedFigures, EventSchedule, MixFigures, OperationFigures, Percentile, Run,
    ScheduledFigures, SimulationFigures, Stage,
};

/// A table of a heading row and rows whose first cell is their name.
pub(crate) fn table(caption: &str, head: &[impl AsRef<str>], rows: &[Vec<String>]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr { @for h in head { th scope="col" { (h.as_ref()) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (i, cell) in row.iter().enumerate() {
                                @if i == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The machines of a run of several, and how far apart their ranks started.
pub(super) fn hosts(run: &Run) -> Markup {
    html! {
        (table("Hosts", &host_table::COLUMNS, &host_table::rows(run)))
        @if let Some(starts) = host_table::starts(run) { p.about { (starts) "." } }
    }
}

/// A time in milliseconds.
pub(crate) fn time(ms: f64) -> String {
    points::time_cell(Some(ms))
}

/// A latency that may be a lower bound.
pub(crate) fn time_or_more(ms: f64, at_least: bool) -> String {
    inline(&bounded(ms, at_least))
}

/// The note below a table in which percentiles have too few operations.
pub(crate) fn doubt(rows: &[Vec<String>]) -> Markup {
    // A name may end with the mark too, but it is in the first column.
    let mut cells = rows.iter().flat_map(|row| row.iter().skip(1));
    html! {
        @if cells.any(|c| c.ends_with(UNCERTAIN_MARK)) { p.about { (UNCERTAIN_NOTE) } }
    }
}

/// A table of all operations, also of those that do not count in the summary.
pub(crate) fn operations(run: &Run) -> Markup {
    let caption = match run.operations.iter().any(|o| o.service.is_some()) {
        false => "Operations; latencies are service times",
        true => {
            "Operations; the latency of a paced operation is its response time, from its intended \
             start; its service time, from the call, stands below it"
        }
    };
    figures(run, caption, &run.operations)
}

/// A table of the calls that the target made to a server; nothing if it made none.
pub(crate) fn procedures(run: &Run) -> Markup {
    if run.procedures.is_empty() {
        return html! {};
    }
    figures(run, "Procedures called on the server", &run.procedures)
}

/// A table of the times until completions of a ring were seen; nothing without one.
pub(crate) fn completion_delay(run: &Run) -> Markup {
    let Some(delay) = &run.completion_delay else {
        return html! {};
    };
    let caption = "Time between the completion of an operation and its being seen (at most)";
    figures(run, caption, std::slice::from_ref(delay))
}

fn figures(run: &Run, caption: &str, operations: &[OperationFigures]) -> Markup {
    let shown = run.shown_percentiles(&Percentile::DEFAULT_TABLE);
    let OperationTable { head, rows } =
        OperationTable::new(operations, shown, true, |o| label(run, o));
    html! {
        (table(caption, &head, &rows))
        (doubt(&rows))
    }
}

/// Failed operations by their error; nothing if none failed.
pub(crate) fn errors(run: &Run) -> Markup {
    let rows: Vec<Vec<String>> = run
        .operations
        .iter()
        .chain(&run.procedures)
        .flat_map(|o| {
            o.error_codes
                .iter()
                .map(|(code, n)| vec![label(run, o), code.clone(), Count(*n).to_string()])
        })
        .collect();
    html! {
        @if !rows.is_empty() {
            (table("Failed operations", &["operation", "error", "times"], &rows))
        }
    }
}

/// The load of an operation mix, offered and achieved.
pub(crate) fn mix(mix: &MixFigures) -> Markup {
    let head = [
        "component",
        "processes",
        "offered ops/s",
        "achieved ops/s",
        "scheduled",
        "completed",
        "dropped",
        "slowest process",
        "response mean",
        "response p99",
        "start delay p99",
    ];
    let row = |name: &str, processes: String, c: &ScheduledFigures| {
        let start_delay = c.start_delay.map(|f| time(f.p99_ms));
        let mean = c.response.filter(|f| f.mean_ms > 0.0 || f.max_ms == 0.0);
        let p99 = c
            .response
            .map(|f| time_or_more(f.p99_ms, f.is_at_least(f.p99_ms)));
        let none = || "–".to_owned();
        vec![
            name.to_owned(),
            processes,
            c.offered_ops_per_s.map_or("–".into(), rate),
            rate(c.achieved_ops_per_s),
            Count(c.scheduled).to_string(),
            Count(c.completed).to_string(),
            Count(c.dropped).to_string(),
            c.slowest_process_percent
                .map_or("–".into(), |p| format!("{p:.1} %")),
            mean.map_or_else(none, |f| time(f.mean_ms)),
            p99.unwrap_or_else(none),
            start_delay.unwrap_or_else(none),
        ]
    };
    let mut rows: Vec<Vec<String>> = mix
        .components
        .iter()
        .map(|c| row(&c.name, Count(c.processes).to_string(), &c.carried))
        .collect();
    let all: u64 = mix
        .components
        .iter()
        .map(|c| c.processes)
        .fold(0, u64::saturating_add);
    rows.push(row("all", Count(all).to_string(), &mix.total));
    table("Offered and achieved load", &head, &rows)
}

/// Table of an event schedule: offered and achieved rate, and numbers of scheduled, used and dropped events.
pub(crate) fn schedule(schedule: &EventSchedule) -> Markup {
    let head = [
        "offered events/s",
        "achieved events/s",
        "scheduled",
        "used",
        "dropped",
    ];
    let row = vec![
        rate(schedule.offered_events_per_s),
        rate(schedule.achieved_events_per_s),
        Count(schedule.scheduled).to_string(),
        Count(schedule.completed).to_string(),
        Count(schedule.dropped).to_string(),
    ];
    table("Offered and achieved load", &head, &[row])
}

/// What the simulated system did, in the window or in each stage; `None` if the target is real.
pub(crate) fn simulation(run: &Run) -> Option<Markup> {
    let stages: Vec<(String, String)> = simulation::of_stages(run).collect();
    if stages.is_empty() && run.simulation.is_none() {
        return None;
    }
    Some(html! {
        @for (name, bottleneck) in &stages {
            p { "Bottleneck of " (name) ": " strong { (bottleneck) } "." }
        }
        @if let Some(figures) = &run.simulation { (system(run, figures)) }
    })
}

/// What happened while the run ran, and what that did.
pub(crate) fn events(run: &Run) -> Markup {
    let events = events::table(run);
    table(&events::caption(run), &events.head, &events.rows)
}

/// What the simulated system did in the window.
fn system(run: &Run, figures: &SimulationFigures) -> Markup {
    let stations = simulation::stations(run, figures);
    let times = simulation::times(run, figures);
    html! {
        @if let Some(bottleneck) = &figures.bottleneck {
            p { "Bottleneck: " strong { (simulation::bottleneck(bottleneck)) } "." }
        }
        (table("Stations; waiting and most are requests in a queue", &stations.head, &stations.rows))
        (table("Where the time of each operation went, on average", &times.head, &times.rows))
        @let stores = simulation::stores(figures);
        @if !stores.is_empty() { ul { @for s in &stores { li { (s) } } } }
    }
}

/// When the first and the last worker finished, and what all had completed by then; nothing if they
/// ended with the run.
pub(crate) fn ends(run: &Run) -> Markup {
    let row = |stage: &str, which: &str, completed: CompletedFigures| {
        vec![
            format!("{which}{stage}"),
            format!("{:.3}", completed.after_s),
            Count(completed.ops).to_string(),
            rate(completed.ops_per_s),
            mib_per_s(completed.bytes_per_s),
        ]
    };
    let of_run = [(String::new(), run.first_done, run.last_done)];
    let of_stages = stages::named(run).map(|(name, s)| {
        let window = &s.window;
        (
            format!(" rank of {name}"),
            window.first_done,
            window.last_done,
        )
    });
    let mut rows = Vec::new();
    for (stage, first, last) in of_run.into_iter().chain(of_stages) {
        rows.extend(first.map(|completed| row(&stage, "first", completed)));
        rows.extend(last.map(|completed| row(&stage, "last", completed)));
    }
    let head = ["worker", "after seconds", "ops", "ops/s", "MiB/s"];
    html! {
        @if !rows.is_empty() {
            (table("First and last worker to finish", &head, &rows))
        }
    }
}

/// Stages of a pattern, and the figures of each rank.
pub(crate) fn stages(run: &Run) -> Markup {
    let shown = run.shown_percentiles(&BRIEF_PERCENTILES);
    let head = "stage|iteration|seconds|operation|ops|ops/s|MiB/s|errors|mean";
    let mut head: Vec<String> = head.split('|').map(str::to_owned).collect();
    head.extend(shown.iter().map(Percentile::to_string));
    head.push("max".into());
    let rows: Vec<Vec<String>> = run.stages.iter().flat_map(|s| stage(s, shown)).collect();
    html! {
        (table("Stages; rates are over the time of the longest rank", &head, &rows))
        (doubt(&rows))
        details {
            summary { "Figures of each rank" }
            (ranks(run))
        }
    }
}

fn stage(stage: &Stage, shown: &[Percentile]) -> Vec<Vec<String>> {
    let seconds = stages::longest_ns(stage) as f64 / 1e9;
    let row = |o: OperationFigures| {
        let mut row = vec![
            stage.name.clone(),
            (stage.iteration + 1).to_string(),
            format!("{seconds:.3}"),
            o.name.clone(),
            Count(o.ops).to_string(),
            rate(o.ops_per_s),
            mib_per_s(o.bytes_per_s),
            Count(o.errors).to_string(),
        ];
        let latency = latency_cells(&o, shown, PercentileKind::Latency, "–");
        row.extend(latency.iter().map(|cell| inline(cell)));
        row
    };
    stages::over_longest_rank(stage).map(row).collect()
}

/// Maximum number of rows of the table of ranks: a page on thousands of ranks must still open.
const MAX_RANK_ROWS: usize = 4000;

fn ranks(run: &Run) -> Markup {
    let head = "stage|iteration|rank|seconds|seconds with barrier|rounds|rounds at the stonewall|\
                operation|ops|moved|errors|min|median|p99|max";
    let head: Vec<&str> = head.split('|').collect();
    let mut rows = Vec::new();
    let mut all = 0;
    for stage in &run.stages {
        for rank in &stage.ranks {
            let named = rank.rows.iter().zip(&run.plan.operations);
            for (r, op) in named.filter(|(r, _)| r.ops + r.errors > 0) {
                all += 1;
                if rows.len() >= MAX_RANK_ROWS {
                    continue;
                }
                let seconds = |ns: u64| format!("{:.3}", ns as f64 / 1e9);
                let stonewall = rank.stonewall_rounds;
                let mut row = vec![
                    stage.name.clone(),
                    (stage.iteration + 1).to_string(),
                    rank.rank.to_string(),
                    seconds(rank.time_ns),
                    seconds(rank.time_with_barrier_ns),
                    Count(rank.rounds).to_string(),
                    stonewall.map_or("–".into(), |n| Count(n).to_string()),
                    op.name.clone(),
                    Count(r.ops).to_string(),
                    Bytes(r.bytes).to_string(),
                    Count(r.errors).to_string(),
                ];
                let q = r.quantiles_ns;
                row.extend([q[0], q[2], q[5], q[6]].map(|ns| time(ns as f64 / 1e6)));
                rows.push(row);
            }
        }
    }
    html! {
        (table("Ranks", &head, &rows))
        @if all > rows.len() {
            p.about { "The first " (Count(rows.len() as u64)) " of " (Count(all as u64)) " rows; run.json has all of them." }
        }
    }
}
