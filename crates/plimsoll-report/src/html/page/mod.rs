//! Pages: one file each, with its style and its script inside, that needs no network.

mod article;
mod client;
mod compare;
mod curve;
mod disclosure;
mod figure;
mod run;
mod search;
mod tables;

pub use article::tiles;
pub use compare::{comparison, comparison_body};
pub use run::{TileTimes, latency_tiles};

use crate::disclosure::Disclosure;
use crate::html::RunData;
use crate::html::chart::{Chart, Theme, style};
use article::ArticleStyle;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use plimsoll_diagnostics::foreign;
use plimsoll_results::{Annotations, Series};

/// Rules of every page, besides the colours.
const STYLE: &str = include_str!("page.css");

/// Shows values under the pointer.
const SCRIPT: &str = include_str!("page.js");

/// A page on one or several results.
#[must_use]
pub fn report(results: &[RunData]) -> String {
    let title = match results {
        [one] => format!("{} – Plimsoll", one.name()),
        many => format!("{} results – Plimsoll", many.len()),
    };
    document(&title, &body(results))
}

/// Content of a page on one or several results, to be embedded in another page.
#[must_use]
pub fn body(results: &[RunData]) -> Markup {
    let styles = (0..results.len()).map(|i| ArticleStyle::of(i, results.len()));
    let articles: Vec<(ArticleStyle, &RunData)> = styles.zip(results).collect();
    html! {
        @if results.len() > 1 {
            h1 { (results.len()) " results" }
            nav aria-label="Results" {
                ol {
                    @for (style, data) in &articles {
                        li { a href=(format!("#{}", style.own_id())) { (data.name()) } " " (badge(data)) }
                    }
                }
            }
        }
        @for (style, data) in &articles {
            @match data {
                RunData::Run(loaded) => { (run::article(loaded, style, None)) }
                RunData::Series { name, series, annotations } => {
                    (series_article(name, series, annotations, style, None))
                }
            }
        }
    }
}

/// Charts, to be embedded in another page.
#[must_use]
pub fn figures(charts: &[Chart]) -> Markup {
    html! { @for chart in charts { (figure::figure(chart, &chart.id)) } }
}

/// The style sheet of all pages, in both themes.
#[must_use]
pub fn stylesheet() -> String {
    let (light, dark) = (style(Theme::Light), style(Theme::Dark));
    format!(
        ":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n{STYLE}"
    )
}

/// The script of all pages, which shows values under the pointer.
#[must_use]
pub fn script() -> &'static str {
    SCRIPT
}

/// The page of one run or load curve with its full disclosure.
#[must_use]
pub fn disclosed(result: &RunData, disclosure: &Disclosure) -> String {
    let (style, disclosure) = (ArticleStyle::alone(), Some(disclosure));
    let body = match result {
        RunData::Run(loaded) => run::article(loaded, &style, disclosure),
        RunData::Series {
            name,
            series,
            annotations,
        } => series_article(name, series, annotations, &style, disclosure),
    };
    document(&format!("{} – Plimsoll", result.name()), &body)
}

/// Everything on one series.
fn series_article(
    name: &str,
    series: &Series,
    annotations: &Annotations,
    style: &ArticleStyle,
    disclosed: Option<&Disclosure>,
) -> Markup {
    if let Some(curve) = series.as_curve() {
        return curve::article(name, curve, annotations, style, disclosed);
    }
    match series.as_search() {
        Some(search) => search::article(name, search, annotations, style),
        // Pages show repeated runs and profiles run by run.
        None => html! {},
    }
}

fn badge(data: &RunData) -> Markup {
    match data {
        RunData::Run(loaded) => run::badge(&loaded.run),
        RunData::Series { series, .. } => match series.as_search() {
            Some(search) => search::badge(search),
            None => curve::badge(series),
        },
    }
}

/// A whole page around a body.
fn document(title: &str, body: &Markup) -> String {
    let head = html! {
        // Nothing is fetched, whatever a workload's name or text contains.
        meta http-equiv="Content-Security-Policy"
            content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
        title { (title) }
        style { (PreEscaped(stylesheet())) }
    };
    let body = html! {
        main { (body) }
        footer { "Made by Plimsoll " (env!("CARGO_PKG_VERSION")) "." }
        script { (PreEscaped(SCRIPT)) }
    };
    html_document(&head, &body)
}

/// A document of HTML from what is particular to its head, and its body; characters that HTML does
/// not have are replaced.
#[must_use]
pub fn html_document(head: &Markup, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                (head)
            }
            body { (body) }
        }
    };
    foreign::replaced(&markup.into_string()).into_owned()
}
