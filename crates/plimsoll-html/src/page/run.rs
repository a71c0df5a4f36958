//! A run on a page.

use super::figure::figure;
use super::{UniqueIds, client, tables};
use crate::{LoadedResult, charts};
use maud::{Markup, html};
use plimsoll_plan::{Bytes, Count, counted, show_duration};
use plimsoll_report::percentiles::PercentileKind;
use plimsoll_report::{filebench, mib_per_s, rate, standstill};
use plimsoll_results::{ClockKind, LatencyKind, Percentile, Run, Verdict};
use std::time::Duration;

/// The verdict in a word.
pub(crate) fn badge(run: &Run) -> Markup {
    let class = match run.validity.verdict {
        Verdict::Valid => "good",
        Verdict::Invalid | Verdict::Interrupted => "doubtful",
        Verdict::Failed => "bad",
    };
    html! { span.verdict.(class) { (run.validity.verdict) } }
}

/// Everything on one run.
pub(crate) fn article(loaded: &LoadedResult, ids: &UniqueIds, nested: bool) -> Markup {
    let run = &loaded.run;
    let charts = charts::of_run(loaded);
    let section = |id: &str, title: &str, body: Markup| {
        html! {
            section aria-labelledby=(ids.of(id)) {
                @if nested { h3 id=(ids.of(id)) { (title) } } @else { h2 id=(ids.of(id)) { (title) } }
                (body)
            }
        }
    };
    html! {
        article id=(ids.own()) {
            (headline(loaded, nested))
            @if run.window_number > 0 {
                (section("achieved", "Achieved", achieved(run)))
            }
            @if let Some(mix) = &run.mix {
                (section("load", "Load", tables::mix(mix)))
            }
            @if !charts.is_empty() {
                (section("charts", "Throughput and latency", html! {
                    @for chart in &charts { (figure(chart, ids)) }
                }))
            }
            @if !run.stages.is_empty() {
                (section("stages", "Stages", tables::stages(run)))
            }
            @if !run.operations.is_empty() {
                (section("operations", "Operations", html! {
                    (tables::operations(run))
                    (tables::procedures(run))
                    (tables::errors(run))
                }))
            }
            (section("client", "Client", client::machine(run)))
            (section("workload", "Workload", workload(run)))
            (section("environment", "Environment", client::environment(&run.environment)))
        }
    }
}

fn headline(loaded: &LoadedResult, nested: bool) -> Markup {
    let run = &loaded.run;
    html! {
        header {
            @if nested { h2 { (run.workload) " " (badge(run)) } }
            @else { h1 { (run.workload) " " (badge(run)) } }
            @if !run.plan.title.is_empty() { p.lead { (run.plan.title) } }
            @if !run.validity.reasons.is_empty() {
                ul.reasons {
                    @for r in &run.validity.reasons { li { strong { (r.code) } ": " (r.text) } }
                }
            }
            @for sentence in standstill::sentences(run) { p.about { (sentence) } }
            (super::annotations(&loaded.annotations))
            p { (requested(run)) }
            (client::facts(&[
                ("results", loaded.name.clone()),
                ("started", run.started_at.clone()),
                ("target", target(run)),
                ("seed", run.seed.to_string()),
                ("program", format!("{} {}", run.program.name, run.program.version)),
            ]))
        }
    }
}

fn target(run: &Run) -> String {
    match run.target.description.as_str() {
        "" => run.target.url.clone(),
        description => format!("{} ({description})", run.target.url),
    }
}

/// What was asked for, in a sentence.
fn requested(run: &Run) -> String {
    let mut parts = vec![counted(run.workers, "worker", "workers")];
    if run.ranks > 1 {
        parts.push(format!("{} ranks", run.ranks));
    }
    if let Some(mix) = run.mix.as_ref().filter(|m| m.load > 0) {
        parts.push(format!("a load of {} {}", Count(mix.load), mix.metric));
        if mix.scale != 1.0 {
            parts.push(plimsoll_report::markdown::scaled(mix.scale));
        }
    }
    if let Some(rate) = run.plan.event_rate {
        parts.push(format!("{rate} events per second for the limiters"));
    }
    let clock = match run.clock {
        ClockKind::Real => "",
        ClockKind::Virtual => " of virtual time",
    };
    let length = Duration::try_from_secs_f64(run.window_s).unwrap_or_default();
    parts.push(match run.window_number {
        0 => "nothing measured".into(),
        _ => format!("{}{clock} measured", show_duration(length)),
    });
    format!("Requested: {}.", parts.join(", "))
}

/// Mean and 99th percentile of a latency in milliseconds, as far as they are known.
#[derive(Debug, Clone, Copy, Default)]
pub struct TileTimes {
    /// The mean.
    pub mean_ms: Option<f64>,
    /// The percentile.
    pub p99_ms: Option<f64>,
    /// Whether the percentile is known only as a lower bound.
    pub p99_at_least: bool,
}

/// Mean and 99th percentile of the latency, and of the service time where the load was paced and that
/// is something else.
#[must_use]
pub fn latency_tiles(
    kind: LatencyKind,
    latency: TileTimes,
    service: Option<TileTimes>,
) -> Vec<(String, String)> {
    let both = |mean: String, p99: String, of: TileTimes| {
        let p99_ms = of
            .p99_ms
            .map(|ms| tables::time_or_more(ms, of.p99_at_least));
        [
            (mean, of.mean_ms.map_or("–".into(), tables::time)),
            (p99, p99_ms.unwrap_or("–".into())),
        ]
    };
    let named = |name: &str| {
        (
            format!("mean {name}"),
            format!("99th percentile of the {name}"),
        )
    };
    let (mean, p99) = match kind {
        LatencyKind::Service => ("mean".to_owned(), "99th percentile".to_owned()),
        kind => named(kind.name()),
    };
    let mut tiles = Vec::from(both(mean, p99, latency));
    if let Some(service) = service {
        let (mean, p99) = named(LatencyKind::Service.name());
        tiles.extend(both(mean, p99, service));
    }
    tiles
}

/// The figures of all operations together.
fn achieved(run: &Run) -> Markup {
    let s = &run.summary;
    let mut tiles = vec![
        ("operations per second".to_owned(), rate(s.ops_per_s)),
        ("MiB per second".to_owned(), mib_per_s(s.bytes_per_s)),
    ];
    let times = |mean_ms: f64, of: PercentileKind| {
        let p99 = s.percentile(Percentile::P99);
        TileTimes {
            mean_ms: (s.ops > 0).then_some(mean_ms),
            p99_ms: p99.map(|f| of.ms(&f)),
            p99_at_least: p99.is_some_and(|f| of.at_least(&f)),
        }
    };
    tiles.extend(latency_tiles(
        s.latency_kind(),
        times(s.mean_ms, PercentileKind::Latency),
        s.service.map(|s| times(s.mean_ms, PercentileKind::Service)),
    ));
    let cpu = s.cpu_us_per_op.map(|us| format!("{us:.1} µs"));
    tiles.extend([
        ("operations".to_owned(), Count(s.ops).to_string()),
        ("failed".to_owned(), Count(s.errors).to_string()),
        (
            "CPU time per operation".to_owned(),
            cpu.unwrap_or("–".into()),
        ),
    ]);
    html! {
        dl.tiles {
            @for (name, value) in &tiles { div { dt { (name) } dd { (value) } } }
        }
        p.mono { (filebench::io_summary(s).trim_end()) }
        (tables::ends(run))
        @if !run.earlier_windows.is_empty() {
            h3 { "Earlier windows" }
            ul { @for w in &run.earlier_windows {
                li { "window " (w.number) ": " span.mono { (filebench::io_summary(&w.summary).trim_end()) } }
            } }
        }
    }
}

fn workload(run: &Run) -> Markup {
    let plan = &run.plan;
    let parameters: Vec<Vec<String>> = plan
        .parameters
        .iter()
        .map(|p| {
            vec![
                p.name.clone(),
                p.value.clone(),
                p.default.clone(),
                p.meaning.clone(),
            ]
        })
        .collect();
    let trees: Vec<Vec<String>> = run
        .filesets
        .iter()
        .map(|p| {
            let how = if p.reused { "found" } else { "made" };
            vec![
                p.fileset.clone(),
                Count(p.files).to_string(),
                Count(p.dirs).to_string(),
                Bytes(p.bytes).to_string(),
                format!("{how} in {:.2} s", p.seconds),
            ]
        })
        .collect();
    let variables: Vec<Vec<String>> = run
        .variables
        .iter()
        .map(|v| {
            let cells = [v.mean, v.sigma].map(|n| format!("{n}"));
            [v.name.clone(), Count(v.draws).to_string()]
                .into_iter()
                .chain(cells)
                .collect()
        })
        .collect();
    html! {
        @if !parameters.is_empty() {
            (tables::table("Parameters", &["name", "value", "default", "meaning"], &parameters))
        }
        @if !trees.is_empty() {
            (tables::table("Filesets", &["fileset", "files", "directories", "bytes", ""], &trees))
        }
        @if !variables.is_empty() {
            (tables::table("Variables", &["flowop", "draws", "mean", "deviation"], &variables))
        }
        @if !run.notes.is_empty() {
            h3 { "Notes" }
            ul { @for n in &run.notes {
                li { (n.text) @if let Some(place) = &n.location { " (" (place) ")" } }
            } }
        }
        @if !plan.source.text.is_empty() {
            details {
                summary { "Text of " (plan.source.name) }
                pre tabindex="0" { code { (plan.source.text) } }
            }
        }
    }
}
