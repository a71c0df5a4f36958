//! HTML pages: one file each, with style sheet and script inside, without network access.

mod article;
mod disclosure;
mod figure;
mod table;

pub(crate) use article::UNDISCLOSED;
pub use article::tiles;

use crate::disclosure::{Disclosure, FormSection};
use crate::document::Document;
use crate::html::chart::{Chart, Theme, style};
use article::{ArticleStyle, article, badge};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use plimsoll_diagnostics::foreign;

/// Style rules of every page, except the colours.
const STYLE: &str = include_str!("page.css");

/// Script of charts and of tables with rows that unfold.
const SCRIPT: &str = include_str!("page.js");

/// A page of one or several reports.
#[must_use]
pub fn report(documents: &[Document]) -> String {
    let title = match documents {
        [one] => page_title(one),
        many => format!("{} reports – Plimsoll", many.len()),
    };
    document(&title, &body(documents))
}

/// Page of one run or load curve with its full disclosure; `sections` are the form sections of the disclosure.
#[must_use]
pub fn disclosed(report: &Document, disclosure: &Disclosure, sections: &[FormSection]) -> String {
    let disclosed = Some((disclosure, sections));
    let body = article(report, &ArticleStyle::of(0, 1), disclosed);
    document(&page_title(report), &body)
}

fn page_title(document: &Document) -> String {
    let name = match document.name.as_str() {
        "" => &document.title,
        name => name,
    };
    format!("{name} – Plimsoll")
}

/// Content of a page of one or several reports, to be embedded in another page.
#[must_use]
pub fn body(documents: &[Document]) -> Markup {
    let styles = (0..documents.len()).map(|i| ArticleStyle::of(i, documents.len()));
    let articles: Vec<(ArticleStyle, &Document)> = styles.zip(documents).collect();
    html! {
        @if documents.len() > 1 {
            h1 { (documents.len()) " reports" }
            nav aria-label="Reports" {
                ol {
                    @for (style, document) in &articles {
                        li { a href=(format!("#{}", style.own_id())) {
                            @if document.name.is_empty() { (document.title) } @else { (document.name) }
                        } (badge(document)) }
                    }
                }
            }
        }
        @for (style, document) in &articles { (article(document, style, None)) }
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

/// The script of all pages: charts and tables answer the pointer and the keyboard.
#[must_use]
pub fn script() -> &'static str {
    SCRIPT
}

/// A whole page around a body.
fn document(title: &str, body: &Markup) -> String {
    let head = html! {
        // A page fetches nothing, whatever the name or text of a workload contains.
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

/// An HTML document from the specific part of its head, and its body; characters that HTML does not permit are
/// replaced.
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
