//! Parts that the articles on all kinds of results have.

use super::figure::figure;
use crate::html::chart::Chart;
use maud::{Markup, html};
use plimsoll_plan::Source;
use plimsoll_results::Annotations;

/// Ids and headings of an article.
pub(crate) struct ArticleStyle {
    /// Prefix of ids; empty if the article is alone on its page.
    prefix: String,
    /// Whether the article is among others, so that its headings are one level lower.
    nested: bool,
}

impl ArticleStyle {
    /// The style of an article that is alone on its page.
    pub(crate) fn alone() -> Self {
        Self {
            prefix: String::new(),
            nested: false,
        }
    }

    /// The style of an article by its position among all of the page.
    pub(crate) fn of(position: usize, articles: usize) -> Self {
        match articles > 1 {
            true => Self {
                prefix: format!("run-{}", position + 1),
                nested: true,
            },
            false => Self::alone(),
        }
    }

    pub(crate) fn is_nested(&self) -> bool {
        self.nested
    }

    /// Id of the article.
    pub(crate) fn own_id(&self) -> &str {
        match self.prefix.as_str() {
            "" => "run-1",
            prefix => prefix,
        }
    }

    /// Id of a part of the article.
    pub(crate) fn id(&self, part: &str) -> String {
        match self.prefix.as_str() {
            "" => part.to_owned(),
            prefix => format!("{prefix}-{part}"),
        }
    }

    /// The heading of the article, with its badge.
    pub(crate) fn title(&self, title: &str, badge: &Markup) -> Markup {
        html! { @if self.nested { h2 { (title) " " (badge) } } @else { h1 { (title) " " (badge) } } }
    }

    /// A section with its heading.
    pub(crate) fn section(&self, id: &str, title: &str, body: &Markup) -> Markup {
        let id = self.id(id);
        html! {
            section aria-labelledby=(id) {
                @if self.nested { h3 id=(id) { (title) } } @else { h2 id=(id) { (title) } }
                (body)
            }
        }
    }

    /// A section with charts, if there are any.
    pub(crate) fn charts(&self, title: &str, charts: &[Chart]) -> Markup {
        let body = html! { @for chart in charts { (figure(chart, &self.id(&chart.id))) } };
        html! { @if !charts.is_empty() { (self.section("charts", title, &body)) } }
    }
}

/// Tags and note.
pub(crate) fn annotations(annotations: &Annotations) -> Markup {
    html! {
        @if !annotations.tags.is_empty() {
            p { "Tags: " @for t in &annotations.tags { span.tag { (t) } } }
        }
        @if !annotations.note.is_empty() { p.note { (annotations.note) } }
    }
}

/// Figures in large type, by their names.
#[must_use]
pub fn tiles<N: AsRef<str>>(tiles: &[(N, String)]) -> Markup {
    html! {
        dl.tiles { @for (name, value) in tiles { div { dt { (name.as_ref()) } dd { (value) } } } }
    }
}

/// A list of names and values.
pub(crate) fn facts(rows: &[(&str, String)]) -> Markup {
    html! { dl.facts { @for (name, value) in rows { div { dt { (name) } dd { (value) } } } } }
}

/// The text of a workload, folded.
pub(crate) fn source_text(source: &Source) -> Markup {
    html! {
        @if !source.text.is_empty() {
            details {
                summary { "Text of " (source.name) }
                pre tabindex="0" { code { (source.text) } }
            }
        }
    }
}
