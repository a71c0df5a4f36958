//! Pages: one file each, with its style and its script inside, that needs no network.

mod client;
mod compare;
mod curve;
mod disclosure;
mod figure;
mod run;
mod search;
mod tables;

pub use compare::{comparison, comparison_body};
pub use run::{TileTimes, latency_tiles};

use crate::RunData;
use crate::chart::{Chart, Theme, style};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use plimsoll_diagnostics::foreign;
use plimsoll_disclosure::Disclosure;
use plimsoll_results::{Annotations, LoadCurve};

/// Rules of every page, besides the colours.
const STYLE: &str = include_str!("page.css");

/// Shows values under the pointer.
const SCRIPT: &str = include_str!("page.js");

/// A page on one or several results.
#[must_use]
pub fn report(subjects: &[RunData]) -> String {
    let title = match subjects {
        [one] => format!("{} – Plimsoll", one.name()),
        many => format!("{} results – Plimsoll", many.len()),
    };
    document(&title, &body(subjects))
}

/// What a page on one or several results holds, for a page that has more on it.
#[must_use]
pub fn body(subjects: &[RunData]) -> Markup {
    let several = subjects.len() > 1;
    html! {
        @if several {
            h1 { (subjects.len()) " results" }
            nav aria-label="Results" {
                ol {
                    @for (i, s) in subjects.iter().enumerate() {
                        li { a href=(format!("#run-{}", i + 1)) { (s.name()) } " " (badge(s)) }
                    }
                }
            }
        }
        @for (i, s) in subjects.iter().enumerate() {
            @let ids = UniqueIds { prefix: prefix(i, subjects.len()) };
            // Headings of a page on several results are one level lower.
            @match s {
                RunData::Run(loaded) => { (run::article(loaded, &ids, several)) }
                RunData::Curve { name, curve, annotations } => {
                    (curve::article(name, curve, annotations, &ids, several, None))
                }
                RunData::Search { name, search, annotations } => {
                    (search::article(name, search, annotations, &ids, several))
                }
            }
        }
    }
}

/// Charts, for a page of one's own.
#[must_use]
pub fn figures(charts: &[Chart]) -> Markup {
    let ids = UniqueIds {
        prefix: String::new(),
    };
    html! { @for chart in charts { (figure::figure(chart, &ids)) } }
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

/// A page on one load curve with its full disclosure; `name` is that of the results directory.
#[must_use]
pub fn disclosed(
    name: &str,
    curve: &LoadCurve,
    said: &Annotations,
    disclosure: &Disclosure,
) -> String {
    let ids = UniqueIds {
        prefix: String::new(),
    };
    let body = curve::article(name, curve, said, &ids, false, Some(disclosure));
    document(&format!("{name} – Plimsoll"), &body)
}

/// Tags and note.
pub(crate) fn annotations(said: &Annotations) -> Markup {
    html! {
        @if !said.tags.is_empty() {
            p { "Tags: " @for t in &said.tags { span.tag { (t) } } }
        }
        @if !said.note.is_empty() { p.note { (said.note) } }
    }
}

fn badge(subject: &RunData) -> Markup {
    match subject {
        RunData::Run(loaded) => run::badge(&loaded.run),
        RunData::Curve { curve, .. } => curve::badge(curve),
        RunData::Search { search, .. } => search::badge(search),
    }
}

fn prefix(i: usize, of: usize) -> String {
    if of > 1 {
        format!("run-{}", i + 1)
    } else {
        String::new()
    }
}

/// Makes names of elements that differ between the runs of a page.
pub(crate) struct UniqueIds {
    prefix: String,
}

impl UniqueIds {
    /// The name of the run itself.
    pub(crate) fn own(&self) -> &str {
        if self.prefix.is_empty() {
            "run-1"
        } else {
            &self.prefix
        }
    }

    /// The name of a part of it.
    pub(crate) fn of(&self, part: &str) -> String {
        if self.prefix.is_empty() {
            part.to_owned()
        } else {
            format!("{}-{part}", self.prefix)
        }
    }
}

/// A whole page around a body.
pub(crate) fn document(title: &str, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Nothing is fetched, whatever a workload's name or text may hold.
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
                title { (title) }
                style { (PreEscaped(stylesheet())) }
            }
            body {
                main { (body) }
                footer { "Made by Plimsoll " (env!("CARGO_PKG_VERSION")) "." }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    foreign::replaced(&markup.into_string()).into_owned()
}
