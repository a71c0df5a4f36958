//! A search for a load line on a page.

use super::article::{ArticleStyle, annotations, facts, source_text, tiles};
use super::{client, tables};
use crate::charts;
use maud::{Markup, html};
use plimsoll_plan::Count;
use plimsoll_points::SearchEnd;
use plimsoll_report::{find, markdown, points};
use plimsoll_results::{Annotations, LoadSearch, SearchRun};

/// State of the search.
pub(crate) fn badge(search: &LoadSearch) -> Markup {
    let (class, word) = match (
        search.selection.load_line.termination,
        &search.selection.failure,
    ) {
        (_, Some(_)) => ("bad", "failed".to_owned()),
        (SearchEnd::Found, None) => ("good", "found".to_owned()),
        (SearchEnd::NoneSustained, None) => {
            ("bad", search.selection.load_line.termination.to_string())
        }
        (ended, None) => ("doubtful", ended.to_string()),
    };
    html! { span.verdict.(class) { (word) } }
}

/// Everything on one search.
pub(crate) fn article(
    name: &str,
    search: &LoadSearch,
    notes: &Annotations,
    style: &ArticleStyle,
) -> Markup {
    html! {
        article id=(style.own_id()) {
            (headline(name, search, notes, style))
            (style.section("achieved", "Load line", &achieved(search)))
            (style.charts("Loads", &charts::of_search(search)))
            (style.section("runs", "Runs", &runs(search)))
            (style.section("environment", "Environment", &client::environment(&search.environment)))
            (source_text(&search.plan.source))
        }
    }
}

fn headline(name: &str, search: &LoadSearch, notes: &Annotations, style: &ArticleStyle) -> Markup {
    html! {
        header {
            (style.title(&format!("{}, search for the load line", search.workload), &badge(search)))
            @if let Some(reason) = &search.selection.failure {
                p { strong { (reason.code) } ": " (reason.text) }
            }
            @if !search.comparable {
                p.doubtful { (markdown::scaled(search.scale)) }
            }
            (annotations(notes))
            p {
                "Requested: the highest load up to " (Count(search.selection.search.max_load)) " " (search.metric)
                " that meets the criteria, each run warmed up for " (search.warmup_s)
                " s and measured for " (search.measure_s) " s."
            }
            (facts(&[
                ("results", name.to_owned()),
                ("started", search.started_at.clone()),
                ("target", search.target.url.clone()),
                ("seed", search.seed.to_string()),
                ("program", format!("{} {}", search.program.name, search.program.version)),
            ]))
            @if !search.notes.is_empty() {
                ul { @for n in &search.notes { li { (n.text) } } }
            }
        }
    }
}

fn achieved(search: &LoadSearch) -> Markup {
    let load = |s| points::agreement_text(s, &search.metric);
    let figures = [
        ("sustained", load(search.selection.load_line.sustained)),
        (
            "not sustained",
            load(search.selection.load_line.not_sustained),
        ),
        ("runs", Count(search.runs.len() as u64).to_string()),
    ];
    html! {
        @if let Some(text) = find::interval(search) { p.doubtful { "Not found: " (text) "." } }
        (tiles(&figures))
        @if let Some(text) = find::bottleneck(search) {
            p { "Bottleneck where it is not sustained: " strong { (text) } "." }
        }
        p.about {
            "A load is sustained if it passed every criterion in more than half of its runs. The load line lies "
            "between the highest sustained load and the lowest that is not."
        }
    }
}

fn runs(search: &LoadSearch) -> Markup {
    let mut head = points::run_head(search);
    head.push("results".into());
    let row = |(number, r): (usize, &SearchRun)| {
        let mut cells = points::run_cells(search, number, r);
        cells.push(r.point.run.clone());
        cells
    };
    let rows: Vec<Vec<String>> = (1..).zip(&search.runs).map(row).collect();
    let failed = || search.runs.iter().enumerate().filter(|(_, r)| !r.passed);
    html! {
        (tables::table("Runs, in their order", &head, &rows))
        (tables::doubt(&rows))
        @if failed().next().is_some() {
            ul { @for (i, r) in failed() { @for reason in &r.point.reasons {
                li { "run " (i + 1) ", load " (Count(r.point.load)) ": " strong { (reason.code) } ": " (reason.text) }
            } } }
        }
    }
}
