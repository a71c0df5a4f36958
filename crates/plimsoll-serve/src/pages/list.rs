//! Page with the list of results and its filter.

use super::{status, tag};
use crate::address::address;
use crate::column::{Column, Direction};
use crate::filter::Listing;
use crate::index::{FilterChoices, ListPage};
use crate::layout::document;
use crate::problem::Problem;
use crate::state::{Shared, run_blocking};
use axum::extract::{RawQuery, State};
use axum::response::Html;
use maud::{Markup, html};
use plimsoll_plan::Count;
use plimsoll_report::html::charts::of_history;
use plimsoll_report::html::page::figures;
use plimsoll_report::{latency, local_time, mib_per_s, rate};
use plimsoll_results::{Entry, QualifierKind, Status};

/// Maximum number of columns of settings in the table of results.
const MAX_COLUMNS: usize = 6;

/// Maximum number of further columns that the list names below the table's heading.
const MAX_NAMED: usize = 12;

/// Maximum length of a setting's value in the table of results, in characters.
const MAX_VALUE_CHARS: usize = 40;

/// Maximum length of a setting's value that stays on one line, in characters.
const MAX_ONE_LINE_CHARS: usize = 14;

pub(crate) async fn show(
    State(app): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Html<String>, Problem> {
    let listing = Listing::parse(&query.unwrap_or_default()).map_err(Problem::bad)?;
    run_blocking(move || {
        let index = app.index()?;
        let found = index.list(&listing).map_err(Problem::bad)?;
        let charts = of_history(&index.history(&listing.filter), address);
        let choices = index.choices();
        let damaged = index.damaged();
        drop(index);
        let body = html! {
            h1 { "Results" }
            p.about { "below " span.mono { (app.root.display()) } }
            (filter(&listing, &choices))
            @if !charts.is_empty() {
                section.history aria-label="Figures over time" { (figures(&charts)) }
            }
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
fn filter(listing: &Listing, choices: &FilterChoices) -> Markup {
    let now = &listing.filter;
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
            div {
                label for="q" { "Search" }
                input id="q" name="q" type="search" value=(now.search.as_ref().map_or("", |s| &*s.text));
            }
            (select("workload", "Workload", &choices.workloads, now.workload.as_deref()))
            (select("target", "Target", &choices.targets, now.target.as_deref()))
            (select("status", "Status", &states, state))
            (select("tag", "Tag", &choices.tags, first_tag))
            @for t in now.tags.iter().skip(1) { input type="hidden" name="tag" value=(t); }
            @for (name, value) in listing.order_pairs() { input type="hidden" name=(name) value=(value); }
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
    let (columns, others) = columns(found, listing);
    let has_loads = found.results.iter().any(|e| e.load_line.is_some());
    let figures = [
        Column::OpsPerS,
        Column::BytesPerS,
        Column::MeanMs,
        Column::P99Ms,
    ];
    // A target that all results have is named above the table, which has no column of targets then.
    let target = &found.results[0].target;
    let is_same = found.results.iter().all(|e| e.target == *target);
    let names_target = is_same && !target.is_empty() && !columns.contains(&&Column::Target);
    html! {
        p id="total" {
            (Count(first)) " to " (Count(last)) " of " (Count(found.total))
            @if names_target { ", target " span.mono { (target) } }
        }
        @if !others.is_empty() {
            p.about id="others" {
                (others.len()) " more " @if others.len() == 1 { "setting differs" } @else { "settings differ" } ": "
                @for (i, column) in others.iter().take(MAX_NAMED).enumerate() {
                    @if i > 0 { ", " }
                    a href=(sorted(column, listing)) { (column.heading()) }
                }
                @if others.len() > MAX_NAMED { ", …" }
            }
        }
        form method="get" action="/compare" {
            div.actions { button id="compare" type="submit" { "Compare selected" } }
            div.scroll tabindex="0" role="region" aria-label="Results" {
                table.results {
                    thead { tr {
                        th scope="col" { span.about { "select" } }
                        (heading(&Column::Name, listing))
                        (heading(&Column::Started, listing))
                        (heading(&Column::Status, listing))
                        @for column in &figures { (heading(column, listing)) }
                        @if has_loads { (heading(&Column::LoadLine, listing)) }
                        @for column in &columns { (heading(column, listing)) }
                    } }
                    tbody { @for entry in &found.results { (row(entry, has_loads, &columns, listing)) } }
                }
            }
        }
        (pages(found, listing))
    }
}

/// Columns of settings that the table shows, and the other columns in which results differ. The table always shows the
/// column by which the list is sorted.
fn columns<'a>(found: &'a ListPage, listing: &'a Listing) -> (Vec<&'a Column>, Vec<&'a Column>) {
    let by = &listing.order.by;
    let mut shown: Vec<&Column> = found.differences.iter().take(MAX_COLUMNS).collect();
    if by.is_optional() && !shown.contains(&by) {
        shown.truncate(MAX_COLUMNS - 1);
        shown.push(by);
    }
    let others = found.differences.iter().filter(|c| !shown.contains(c));
    let others = others.collect();
    (shown, others)
}

/// Address of the list after a click on the heading of a column.
fn sorted(column: &Column, listing: &Listing) -> String {
    let order = listing.order.after_click(column);
    format!("/?{}", listing.ordered(order).query(1))
}

/// Heading of a column, which leads to the list in the order of the column.
fn heading(column: &Column, listing: &Listing) -> Markup {
    let direction = Some(listing.order.direction).filter(|_| listing.order.by == *column);
    let arrow = match direction {
        Some(Direction::Ascending) => " ↑",
        Some(Direction::Descending) => " ↓",
        None => "",
    };
    html! {
        th.setting[column.is_optional()] scope="col" aria-sort=[direction.map(Direction::aria)] {
            a href=(sorted(column, listing)) { (cut(&column.heading(), MAX_VALUE_CHARS)) }
            span aria-hidden="true" { (arrow) }
        }
    }
}

/// Cell of a setting: the values of all configurations, shortened, with the whole text as the title.
fn setting(e: &Entry, column: &Column, listing: &Listing) -> Markup {
    let whole = column.values(e).join(", ");
    let short = cut(&whole, MAX_VALUE_CHARS);
    let title = (short != whole).then_some(&whole);
    let is_long = short.chars().count() > MAX_ONE_LINE_CHARS;
    html! {
        td.setting.wrapped[is_long] data-head=(column.heading()) title=[title] {
            @if *column == Column::Workload {
                a href=(format!("/?{}", listing.of_workload(&e.workload).query(1))) { (short) }
            } @else {
                (short)
            }
        }
    }
}

fn row(e: &Entry, has_loads: bool, columns: &[&Column], listing: &Listing) -> Markup {
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
            @if has_loads { td data-head="load line" { (load.unwrap_or_default()) } }
            @for column in columns { (setting(e, column, listing)) }
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
    cut(note.lines().next().unwrap_or_default(), MAX_NOTE_CHARS)
}

/// A text of at most `max` characters, or its first `max` characters and an ellipsis.
fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn pages(found: &ListPage, listing: &Listing) -> Markup {
    let link = |page: u64| format!("/?{}", listing.query(page));
    html! {
        @if found.pages > 1 {
            nav.pages aria-label="Pages" {
                @if found.page > 1 { a rel="prev" href=(link(found.page.min(found.pages + 1) - 1)) { "Previous" } }
                span { "page " (found.page) " of " (found.pages) }
                @if found.page < found.pages { a rel="next" href=(link(found.page + 1)) { "Next" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::differences;

    /// The list of results with different values of parameters, as a page shows the list for a query.
    fn list(entries: &[Entry], query: &str) -> String {
        let found = ListPage {
            total: entries.len() as u64,
            page: 1,
            pages: 1,
            differences: differences(entries.iter()),
            results: entries.to_vec(),
        };
        results(&found, &Listing::parse(query).unwrap()).into_string()
    }

    /// Two results of one workload with different values of `count` parameters.
    fn entries(count: usize) -> [Entry; 2] {
        ["a", "b"].map(|name| Entry {
            name: name.into(),
            workload: "w".into(),
            target: "posix".into(),
            parameters: (0..count)
                .map(|i| (format!("p{i}"), vec![format!("<{name}{i}>")]))
                .collect(),
            ..Entry::default()
        })
    }

    #[test]
    fn at_most_six_settings_have_a_column_and_the_others_are_links() {
        let all = entries(9);
        let headings = |query: &str| {
            let page = list(&all, query);
            let heads = page.split("<th class=\"setting\"").skip(1);
            let head = |h: &str| {
                h.split("</a>")
                    .next()
                    .unwrap()
                    .rsplit('>')
                    .next()
                    .unwrap()
                    .to_owned()
            };
            (heads.map(head).collect::<Vec<_>>().join(" "), page)
        };
        let (shown, page) = headings("");
        assert_eq!(shown, "p0 p1 p2 p3 p4 p5");
        assert!(page.contains("3 more settings differ: "), "{page}");
        assert!(
            page.contains("href=\"/?sort=parameter%3Ap8&amp;order=asc\">p8</a>"),
            "{page}"
        );
        assert!(
            page.contains("&lt;a0&gt;") && !page.contains("<a0>"),
            "{page}"
        );
        assert!(
            page.contains(", target <span class=\"mono\">posix</span>"),
            "{page}"
        );
        // The column by which the list is sorted is always shown.
        assert_eq!(headings("sort=parameter:p8").0, "p0 p1 p2 p3 p4 p8");
        assert_eq!(headings("sort=target").0, "p0 p1 p2 p3 p4 target");
    }

    #[test]
    fn the_heading_of_the_sorted_column_reverses_the_order() {
        let page = list(&entries(1), "q=x&sort=p99_ms&page=1");
        let expected = "aria-sort=\"ascending\"><a href=\"/?q=x&amp;sort=p99_ms&amp;order=desc\">p99</a>\
                        <span aria-hidden=\"true\"> ↑</span>";
        assert!(page.contains(expected), "{page}");
        assert_eq!(page.matches("aria-sort").count(), 1);
        // The default order has no parameters.
        assert!(page.contains("<a href=\"/?q=x\">started</a>"), "{page}");
    }

    #[test]
    fn a_long_value_is_cut_and_a_workload_leads_to_its_results() {
        let mut all = entries(0);
        let long = "é".repeat(MAX_VALUE_CHARS + 1);
        (all[0].workload, all[1].workload) = ("v & w".into(), long.clone());
        let page = list(&all, "status=valid");
        let short = format!("{}…", "é".repeat(MAX_VALUE_CHARS));
        assert!(
            page.contains(&format!("title=\"{long}\"")) && page.contains(&format!(">{short}</a>"))
        );
        let link = "href=\"/?workload=v+%26+w&amp;status=valid\">v &amp; w</a>";
        assert!(page.contains(link), "{page}");
    }
}
