//! A search for a load line on a page.

use super::figure::figure;
use super::{UniqueIds, client, tables};
use crate::charts;
use maud::{Markup, html};
use plimsoll_plan::{Count, counted};
use plimsoll_points::{Agreement, SearchEnd};
use plimsoll_report::{find, markdown, points};
use plimsoll_results::{Annotations, LoadSearch, SearchRun};

/// How far the search is, in a word.
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

/// Everything on one search. A `nested` one is among others on its page.
pub(crate) fn article(
    name: &str,
    search: &LoadSearch,
    said: &Annotations,
    ids: &UniqueIds,
    nested: bool,
) -> Markup {
    let heading = |id: &str, title: &str| {
        html! { @if nested { h3 id=(ids.of(id)) { (title) } } @else { h2 id=(ids.of(id)) { (title) } } }
    };
    let charts = charts::of_search(search);
    html! {
        article id=(ids.own()) {
            (headline(name, search, said, nested))
            section aria-labelledby=(ids.of("achieved")) {
                (heading("achieved", "Load line"))
                (achieved(search))
            }
            @if !charts.is_empty() {
                section aria-labelledby=(ids.of("charts")) {
                    (heading("charts", "Loads"))
                    @for chart in &charts { (figure(chart, ids)) }
                }
            }
            section aria-labelledby=(ids.of("runs")) {
                (heading("runs", "Runs"))
                (runs(search))
            }
            section aria-labelledby=(ids.of("environment")) {
                (heading("environment", "Environment"))
                (client::environment(&search.environment))
            }
            @if !search.plan.source.text.is_empty() {
                details {
                    summary { "Text of " (search.plan.source.name) }
                    pre tabindex="0" { code { (search.plan.source.text) } }
                }
            }
        }
    }
}

fn headline(name: &str, search: &LoadSearch, said: &Annotations, nested: bool) -> Markup {
    html! {
        header {
            @let title = format!("{}, search for the load line", search.workload);
            @if nested { h2 { (title) " " (badge(search)) } } @else { h1 { (title) " " (badge(search)) } }
            @if let Some(reason) = &search.selection.failure {
                p { strong { (reason.code) } ": " (reason.text) }
            }
            @if !search.comparable {
                p.doubtful { (markdown::scaled(search.scale)) }
            }
            (super::annotations(said))
            p {
                "Requested: the highest load up to " (Count(search.selection.search.max_load)) " " (search.metric)
                " that meets the criteria, each run warmed up for " (search.warmup_s)
                " s and measured for " (search.measure_s) " s."
            }
            (client::facts(&[
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
    let held = |s: Option<Agreement>| {
        s.map_or("none".into(), |s| {
            let runs = counted(u64::from(s.runs), "run", "runs");
            format!(
                "{} {} (passed {} of {runs})",
                Count(s.load),
                search.metric,
                s.passed
            )
        })
    };
    let tiles = [
        ("sustained", held(search.selection.load_line.sustained)),
        (
            "not sustained",
            held(search.selection.load_line.not_sustained),
        ),
        ("runs", Count(search.runs.len() as u64).to_string()),
    ];
    html! {
        @if let Some(text) = find::interval(search) { p.doubtful { "Not found: " (text) "." } }
        dl.tiles { @for (name, value) in &tiles { div { dt { (name) } dd { (value) } } } }
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
