//! A load curve on a page.

use super::article::{ArticleStyle, annotations, facts, source_text, tiles};
use super::{client, disclosure, tables};
use crate::disclosure::Disclosure;
use crate::html::charts;
use crate::{markdown, points, rate, simulation};
use maud::{Markup, html};
use plimsoll_plan::Count;
use plimsoll_results::{Annotations, LoadCurve, Series, SeriesOf, SeriesRun, SeriesState};

/// State of the curve.
pub(crate) fn badge(curve: &Series) -> Markup {
    let (class, word) = match curve.state {
        SeriesState::Complete => ("good", "complete"),
        SeriesState::Stopped => ("good", "stopped by its rules"),
        SeriesState::Unfinished => ("doubtful", "unfinished"),
        SeriesState::Interrupted => ("doubtful", "interrupted"),
        SeriesState::Failed => ("bad", "failed"),
    };
    html! { span.verdict.(class) { (word) } }
}

/// Everything on one curve. An article among others has no disclosure.
pub(crate) fn article(
    name: &str,
    curve: SeriesOf<'_, LoadCurve>,
    notes: &Annotations,
    style: &ArticleStyle,
    disclosed: Option<&Disclosure>,
) -> Markup {
    html! {
        article id=(style.own_id()) {
            (headline(name, curve, notes, style))
            (style.section("achieved", "Achieved", &achieved(curve)))
            (style.charts("Load curve", &charts::of_series(&curve)))
            (style.section("points", "Load points", &points(curve)))
            (style.section("environment", "Environment", &client::environment(&curve.environment)))
            @match disclosed {
                Some(d) => { (disclosure::section(d, style)) }
                None if !style.is_nested() => { (disclosure::missing()) }
                None => {}
            }
            (source_text(&curve.first_plan().source))
        }
    }
}

fn headline(
    name: &str,
    curve: SeriesOf<'_, LoadCurve>,
    notes: &Annotations,
    style: &ArticleStyle,
) -> Markup {
    let loads: Vec<String> = curve
        .figures
        .loads
        .iter()
        .map(|l| Count(*l).to_string())
        .collect();
    let many = loads.len();
    let requested = match (curve.figures.loads.first(), curve.figures.loads.last()) {
        (Some(first), Some(last)) if many > 1 => format!(
            "{many} load points from {} to {} {}",
            Count(*first),
            Count(*last),
            curve.metric_name()
        ),
        _ => format!("{} {}", loads.join(", "), curve.metric_name()),
    };
    let (warmup_s, window_s) = curve.times_s();
    html! {
        header {
            (style.title(&format!("{}, load curve", curve.name), &badge(&curve)))
            @if let Some(reason) = &curve.stop_reason {
                p { strong { (reason.code) } ": " (reason.text) }
            }
            @if !curve.is_comparable() {
                p.doubtful { (markdown::scaled(curve.scale())) }
            }
            (annotations(notes))
            p { "Requested: " (requested) ", each warmed up for " (warmup_s) " s and measured for " (window_s) " s." }
            (facts(&[
                ("results", name.to_owned()),
                ("started", curve.started_at.clone()),
                ("target", curve.first_target().url.clone()),
                ("seed", curve.seed().to_string()),
                ("program", format!("{} {}", curve.program.name, curve.program.version)),
            ]))
            @if !curve.notes.is_empty() {
                ul { @for n in &curve.notes { li { (n.text) } } }
            }
        }
    }
}

fn achieved(curve: SeriesOf<'_, LoadCurve>) -> Markup {
    let load = |l: Option<u64>| {
        l.map_or("none".into(), |l| {
            format!("{} {}", Count(l), curve.metric_name())
        })
    };
    let time = points::time_cell;
    let figures = [
        ("load line", load(curve.figures.load_line)),
        ("highest valid load", load(curve.figures.highest_valid_load)),
        ("overall response time", time(curve.figures.ort_ms)),
        (
            "overall response time (2008 rule)",
            time(curve.figures.ort_2008_ms),
        ),
        ("knee", curve.figures.knee.map_or("none".into(), rate)),
    ];
    html! {
        (tiles(&figures))
        @if let Some((load, bottleneck)) = curve.saturated_from() {
            p {
                "Bottleneck: " strong { (bottleneck.station) } " of the simulated system, "
                (simulation::share(bottleneck.utilisation)) " busy from " (Count(load)) " " (curve.metric_name()) " on."
            }
        }
        p.about {
            "The load line is the highest load that was valid with all measured loads below it. The overall "
            "response time is the area under mean response time over load, divided by the range of loads "
            "(2008 rule: over throughput, from the origin); only valid points count."
        }
    }
}

fn points(curve: SeriesOf<'_, LoadCurve>) -> Markup {
    let mut head = points::point_head(&curve);
    let more = "max|service mean|slowest process|errors|results";
    head.extend(more.split('|').map(str::to_owned));
    let row = |p: &SeriesRun| {
        let mut cells = points::point_cells(&curve, p);
        let slowest = p.slowest_process_percent.map(|s| format!("{s:.1} %"));
        cells.extend([
            p.max_ms
                .map_or("–".into(), |ms| tables::time_or_more(ms, p.max_at_least)),
            points::time_cell(p.service_mean_ms),
            slowest.unwrap_or("–".into()),
            Count(p.errors).to_string(),
            p.directory.clone(),
        ]);
        cells
    };
    let rows: Vec<Vec<String>> = curve.measured().map(row).collect();
    let failed = || curve.measured().filter(|p| !p.is_valid());
    html! {
        (tables::table("Load points", &head, &rows))
        (tables::doubt(&rows))
        @if failed().next().is_some() {
            ul { @for p in failed() { @for r in &p.reasons {
                li { "load " (Count(p.load.unwrap_or_default())) ", " (p.verdict) ": " strong { (r.code) } ": " (r.text) }
            } } }
        }
    }
}
