//! Page with the list of results and its filter.

use super::{status, tag};
use crate::address::address;
use crate::filter::{Filter, Listing};
use crate::index::{FilterChoices, ListPage};
use crate::layout::document;
use crate::problem::Problem;
use crate::state::{Shared, run_blocking};
use axum::extract::{RawQuery, State};
use axum::response::Html;
use maud::{Markup, html};
use plimsoll_plan::Count;
use plimsoll_report::{latency, local_time, mib_per_s, rate};
use plimsoll_results::{Entry, QualifierKind, Status};

pub(crate) async fn show(
    State(app): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Html<String>, Problem> {
    let listing = Listing::parse(&query.unwrap_or_default()).map_err(Problem::bad)?;
    run_blocking(move || {
        let index = app.index()?;
        let found = index.list(&listing);
        let choices = index.choices();
        let damaged = index.damaged();
        drop(index);
        let body = html! {
            h1 { "Results" }
            p.about { "below " span.mono { (app.root.display()) } }
            (filter(&listing.filter, &choices))
            (results(&found, &listing))
            @if !damaged.is_empty() {
                details.damaged {
                    summary { (damaged.len()) " cannot be read" }
                    ul { @for (name, error) in &damaged { li { strong { (name) } ": " (error) } } }
                }
            }
        };
        Ok(document("Results", &body))
    })
    .await
}

/// Form of the list's filter, with the current values selected.
fn filter(now: &Filter, choices: &FilterChoices) -> Markup {
    let select = |id: &str, label: &str, all: &[String], chosen: Option<&str>| {
        html! {
            div {
                label for=(id) { (label) }
                select id=(id) name=(id) {
                    option value="" { "all" }
                    // The chosen value of a filter stays selectable even if no results have the value any more.
                    @if let Some(gone) = chosen.filter(|c| !all.iter().any(|a| a == c)) {
                        option value=(gone) selected { (gone) }
                    }
                    @for a in all { option value=(a) selected[chosen == Some(a)] { (a) } }
                }
            }
        }
    };
    let states: Vec<String> = Status::ALL.iter().map(Status::to_string).collect();
    let state = now.status.map(Status::word);
    let day = |d: Option<jiff::civil::Date>| d.map_or(String::new(), |d| d.to_string());
    let first_tag = now.tags.first().map(String::as_str);
    html! {
        form.filter method="get" action="/" aria-label="Filter" {
            (select("workload", "Workload", &choices.workloads, now.workload.as_deref()))
            (select("target", "Target", &choices.targets, now.target.as_deref()))
            (select("status", "Status", &states, state))
            (select("tag", "Tag", &choices.tags, first_tag))
            @for t in now.tags.iter().skip(1) { input type="hidden" name="tag" value=(t); }
            div { label for="from" { "From" } input id="from" name="from" type="date" value=(day(now.from)); }
            div { label for="to" { "To" } input id="to" name="to" type="date" value=(day(now.to)); }
            div.actions { button type="submit" { "Filter" } a href="/" { "All" } }
        }
    }
}

fn results(found: &ListPage, listing: &Listing) -> Markup {
    if found.results.is_empty() {
        return html! {
            p id="total" { "No results." }
            @if found.total > 0 { (pages(found, listing)) }
        };
    }
    let first = (found.page - 1) * listing.per_page + 1;
    let last = first + found.results.len() as u64 - 1;
    html! {
        p id="total" { (Count(first)) " to " (Count(last)) " of " (Count(found.total)) }
        form method="get" action="/compare" {
            div.actions { button id="compare" type="submit" { "Compare selected" } }
            div.scroll tabindex="0" role="region" aria-label="Results" {
                table.results {
                    thead { tr {
                        th scope="col" { span.about { "select" } } th scope="col" { "results" }
                        th scope="col" { "started" } th scope="col" { "status" }
                        th scope="col" { "ops/s" } th scope="col" { "MiB/s" }
                        th scope="col" { "mean" } th scope="col" { "p99" }
                        th scope="col" { "load line" } th scope="col" { "target" }
                    } }
                    tbody { @for entry in &found.results { (row(entry)) } }
                }
            }
        }
        (pages(found, listing))
    }
}

fn row(e: &Entry) -> Markup {
    let time_of = |ms: Option<f64>| ms.map_or(String::new(), latency);
    let kind = match e.runs {
        _ if e.metric.is_some() => format!("{}, {} loads", e.kind, e.runs),
        1 => String::new(),
        n => format!("{n} runs"),
    };
    let load = e
        .load_line
        .map(|l| format!("{} {}", Count(l), e.metric.as_deref().unwrap_or_default()));
    // The list shows the number of runs.
    let qualifiers = e
        .qualifiers
        .iter()
        .filter(|kind| **kind != QualifierKind::OneRun);
    let qualifiers = Vec::from_iter(qualifiers.map(QualifierKind::to_string)).join(", ");
    html! {
        tr {
            td.tick { input type="checkbox" name="with" value=(e.name) aria-label=(format!("Compare {}", e.name)); }
            th.name scope="row" {
                a href=(address(&e.name)) { (e.name) }
                @if !kind.is_empty() { " " span.about { "(" (kind) ")" } }
                @if !e.tags.is_empty() { div { @for t in &e.tags { (tag(t)) } } }
                @if !e.note.is_empty() { div.about { (shortened(&e.note)) } }
            }
            td data-head="started" { (local_time(&e.started_at)) }
            td data-head="status" {
                (status(e.status))
                @if !qualifiers.is_empty() { div.about { (qualifiers) } }
            }
            td data-head="ops/s" { (e.ops_per_s.map_or(String::new(), rate)) }
            td data-head="MiB/s" { (e.bytes_per_s.map_or(String::new(), mib_per_s)) }
            td data-head="mean" { (time_of(e.mean_ms)) (service(e.service_mean_ms)) }
            td data-head="p99" { (time_of(e.p99_ms)) (service(e.service_p99_ms)) }
            td data-head="load line" { (load.unwrap_or_default()) }
            td.word data-head="target" { (e.target) }
        }
    }
}

/// Service time of a paced load, shown below the latency.
fn service(ms: Option<f64>) -> Markup {
    html! { @if let Some(ms) = ms { div.about { "service " (latency(ms)) } } }
}

/// First line of a note on results, shortened to 80 characters.
fn shortened(note: &str) -> String {
    const MAX_NOTE_CHARS: usize = 80;
    let line = note.lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_NOTE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

fn pages(found: &ListPage, listing: &Listing) -> Markup {
    let link = |page: u64| format!("/?{}", listing.query(page));
    html! {
        @if found.pages > 1 {
            nav.pages aria-label="Pages" {
                @if found.page > 1 { a rel="prev" href=(link(found.page.min(found.pages + 1) - 1)) { "Newer" } }
                span { "page " (found.page) " of " (found.pages) }
                @if found.page < found.pages { a rel="next" href=(link(found.page + 1)) { "Older" } }
            }
        }
    }
}
