//! A run on a page.

use super::article::{ArticleStyle, annotations, facts, source_text, tiles};
use super::{client, disclosure, tables};
use crate::disclosure::Disclosure;
use crate::html::{LoadedResult, charts};
use crate::percentiles::PercentileKind;
use crate::{filebench, measured_text, mib_per_s, rate, standstill, verification};
use maud::{Markup, html};
use plimsoll_plan::{Count, counted};
use plimsoll_results::{LatencyKind, Percentile, Run, Verdict};

/// The verdict.
pub(crate) fn badge(run: &Run) -> Markup {
    let class = match run.validity.verdict {
        Verdict::Valid => "good",
        Verdict::Invalid | Verdict::Interrupted => "doubtful",
        Verdict::Failed => "bad",
    };
    html! { span.verdict.(class) { (run.validity.verdict) } }
}

/// The article on one run; `disclosed` is `None` for an article among others.
pub(crate) fn article(
    loaded: &LoadedResult,
    style: &ArticleStyle,
    disclosed: Option<&Disclosure>,
) -> Markup {
    let run = &loaded.run;
    let operations = html! {
        (tables::operations(run))
        (tables::procedures(run))
        (tables::completion_delay(run))
        (tables::errors(run))
    };
    html! {
        article id=(style.own_id()) {
            (headline(loaded, style))
            @if run.window_number > 0 {
                (style.section("achieved", "Achieved", &achieved(run)))
            }
            @if let Some(mix) = &run.mix {
                (style.section("load", "Load", &tables::mix(mix)))
            }
            @if let Some(schedule) = &run.schedule {
                (style.section("load", "Load", &tables::schedule(schedule)))
            }
            (style.charts("Throughput and latency", &charts::of_run(loaded)))
            @if !run.events.is_empty() {
                (style.section("events", "Events", &tables::events(run)))
            }
            @if !run.stages.is_empty() {
                (style.section("stages", "Stages", &tables::stages(run)))
            }
            @if !run.operations.is_empty() {
                (style.section("operations", "Operations", &operations))
            }
            @if !run.hosts.is_empty() {
                (style.section("hosts", "Hosts", &tables::hosts(run)))
            }
            @if let Some(simulation) = tables::simulation(run) {
                (style.section("system", "Simulated system", &simulation))
            }
            @if let Some(text) = verification::sentence(run) {
                (style.section("verification", "Verification", &verified(run, &text)))
            }
            (style.section("client", "Client", &client::machine(run)))
            (style.section("workload", "Workload", &workload(run)))
            (style.section("environment", "Environment", &client::environment(&run.environment)))
            @if let Some(d) = disclosed {
                (disclosure::section(d, style))
            }
        }
    }
}

fn headline(loaded: &LoadedResult, style: &ArticleStyle) -> Markup {
    let run = &loaded.run;
    html! {
        header {
            (style.title(&run.workload, &badge(run)))
            @if !run.plan.title.is_empty() { p.lead { (run.plan.title) } }
            @if !run.validity.reasons.is_empty() {
                ul.reasons {
                    @for r in &run.validity.reasons { li { strong { (r.code) } ": " (r.text) } }
                }
            }
            @for sentence in standstill::sentences(run) { p.about { (sentence) } }
            (annotations(&loaded.annotations))
            p { (requested(run)) }
            (facts(&[
                ("results", loaded.name.clone()),
                ("started", run.started_at.clone()),
                ("target", target(run)),
                ("seed", run.seed.to_string()),
                ("program", format!("{} {}", run.program.name, run.program.version)),
            ]))
        }
    }
}

/// Whether the run lost something.
fn verified(run: &Run, text: &str) -> Markup {
    let examples: Vec<String> = verification::shown_examples(run).collect();
    html! {
        p { "Verified: " (text) "." }
        @if !examples.is_empty() {
            ul.reasons {
                @for example in &examples { li { (example) } }
            }
        }
    }
}

fn target(run: &Run) -> String {
    match run.target.description.as_str() {
        "" => run.target.url.clone(),
        description => format!("{} ({description})", run.target.url),
    }
}

/// The requested load, in a sentence.
fn requested(run: &Run) -> String {
    let mut parts = vec![counted(run.workers, "worker", "workers")];
    if run.ranks > 1 {
        parts.push(format!("{} ranks", run.ranks));
    }
    if let Some(mix) = run.mix.as_ref().filter(|m| m.load > 0) {
        parts.push(format!("a load of {} {}", Count(mix.load), mix.metric));
        if mix.scale != 1.0 {
            parts.push(crate::markdown::scaled(mix.scale));
        }
    }
    if let Some(rate) = run.plan.event_rate {
        parts.push(format!("{rate} events per second for the limiters"));
    }
    parts.push(measured_text(run));
    format!("Requested: {}.", parts.join(", "))
}

/// Mean and 99th percentile of a latency in milliseconds, if they are known.
#[derive(Debug, Clone, Copy, Default)]
pub struct TileTimes {
    /// The mean.
    pub mean_ms: Option<f64>,
    /// The percentile.
    pub p99_ms: Option<f64>,
    /// Whether the percentile is known only as a lower bound.
    pub p99_at_least: bool,
}

/// Mean and 99th percentile of the latency, and of the service time if the load was paced.
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
    let mut figures = vec![
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
    figures.extend(latency_tiles(
        s.latency_kind(),
        times(s.mean_ms, PercentileKind::Latency),
        s.service.map(|s| times(s.mean_ms, PercentileKind::Service)),
    ));
    let cpu = s.cpu_us_per_op.map(|us| format!("{us:.1} µs"));
    figures.extend([
        ("operations".to_owned(), Count(s.ops).to_string()),
        ("failed".to_owned(), Count(s.errors).to_string()),
        (
            "CPU time per operation".to_owned(),
            cpu.unwrap_or("–".into()),
        ),
    ]);
    html! {
        (tiles(&figures))
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
    let parameters = run.plan.parameters.iter().map(|p| {
        let cells = [&p.name, &p.value, &p.default, &p.meaning];
        cells.map(String::clone).to_vec()
    });
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
    let variables = run.variables.iter().map(|v| {
        vec![
            v.name.clone(),
            Count(v.draws).to_string(),
            v.mean.to_string(),
            v.sigma.to_string(),
        ]
    });
    let parameters: Vec<Vec<String>> = parameters.collect();
    let filesets: Vec<Vec<String>> = filesets.collect();
    let variables: Vec<Vec<String>> = variables.collect();
    html! {
        @if !parameters.is_empty() {
            (tables::table("Parameters", &["name", "value", "default", "meaning"], &parameters))
        }
        @if !filesets.is_empty() {
            (tables::table("Filesets", &["fileset", "files", "directories", "bytes", ""], &filesets))
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
        (source_text(&run.plan.source))
    }
}
