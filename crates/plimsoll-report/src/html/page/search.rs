//! A search for a load line on a page.

use super::article::{ArticleStyle, annotations, facts, source_text, tiles};
use super::{client, tables};
use crate::html::charts;
use crate::{find, markdown, points};
use maud::{Markup, html};
use plimsoll_plan::Count;
use plimsoll_results::{Annotations, LoadSearch, SearchEnd, SeriesOf, SeriesRun, SeriesState};

/// State of the search.
pub(crate) fn badge(search: SeriesOf<'_, LoadSearch>) -> Markup {
    let class = match (search.state, search.figures.load_line.termination) {
        (SeriesState::Failed, _) | (_, SearchEnd::NoneSustained) => "bad",
        (SeriesState::Complete, SearchEnd::Found) => "good",
        _ => "doubtful",
    };
    let word = find::state(search);
    html! { span.verdict.(class) { (word) } }
}

/// Everything on one search.
pub(crate) fn article(
    name: &str,
    search: SeriesOf<'_, LoadSearch>,
    notes: &Annotations,
    style: &ArticleStyle,
) -> Markup {
    html! {
        article id=(style.own_id()) {
            (headline(name, search, notes, style))
            (style.section("achieved", "Load line", &achieved(search)))
            (style.charts("Loads", &charts::of_series(&search)))
            (style.section("runs", "Runs", &runs(search)))
            (style.section("environment", "Environment", &client::environment(&search.environment)))
            (source_text(&search.first_plan().source))
        }
    }
}

fn headline(
    name: &str,
    search: SeriesOf<'_, LoadSearch>,
    notes: &Annotations,
    style: &ArticleStyle,
) -> Markup {
    let (warmup_s, window_s) = search.times_s();
    html! {
        header {
            (style.title(&format!("{}, search for the load line", search.name), &badge(search)))
            @if let Some(reason) = &search.stop_reason {
                p { strong { (reason.code) } ": " (reason.text) }
            }
            @if !search.is_comparable() {
                p.doubtful { (markdown::scaled(search.scale())) }
            }
            (annotations(notes))
            p {
                "Requested: the highest load up to " (Count(search.figures.rules.max_load)) " " (search.metric_name())
                " that meets the criteria, each run warmed up for " (warmup_s)
                " s and measured for " (window_s) " s."
            }
            (facts(&[
                ("results", name.to_owned()),
                ("started", search.started_at.clone()),
                ("target", search.first_target().url.clone()),
                ("seed", search.seed().to_string()),
                ("program", format!("{} {}", search.program.name, search.program.version)),
            ]))
            @if !search.notes.is_empty() {
                ul { @for n in &search.notes { li { (n.text) } } }
            }
        }
    }
}

fn achieved(search: SeriesOf<'_, LoadSearch>) -> Markup {
    let load = |s| points::agreement_text(s, search.metric_name());
    let figures = [
        ("sustained", load(search.figures.load_line.sustained)),
        (
            "not sustained",
            load(search.figures.load_line.not_sustained),
        ),
        ("runs", Count(search.measured().count() as u64).to_string()),
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

fn runs(search: SeriesOf<'_, LoadSearch>) -> Markup {
    let mut head = points::run_head(&search);
    head.push("results".into());
    let row = |(number, r): (usize, &SeriesRun)| {
        let mut cells = points::run_cells(&search, number, r);
        cells.push(r.directory.clone());
        cells
    };
    let rows: Vec<Vec<String>> = (1..).zip(search.measured()).map(row).collect();
    let failed = || search.measured().enumerate().filter(|(_, r)| !r.is_valid());
    html! {
        (tables::table("Runs, in their order", &head, &rows))
        (tables::doubt(&rows))
        @if failed().next().is_some() {
            ul { @for (i, r) in failed() { @for reason in &r.reasons {
                li { "run " (i + 1) ", load " (Count(r.load.unwrap_or_default())) ": " strong { (reason.code) } ": " (reason.text) }
            } } }
        }
    }
}
