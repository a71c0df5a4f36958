//! Full disclosure on the page of a load curve or run: the content of the ASCII report, in its order.

use super::article::{ArticleStyle, facts};
use super::table::table;
use crate::disclosure::{Disclosure, FormSection, Part};
use crate::document::Table;
use maud::{Markup, html};

/// Disclosure at the end of a page: claim, load points, and each form section with an entry. One sentence names the form
/// sections without an entry.
pub(crate) fn section(d: &Disclosure, sections: &[FormSection], style: &ArticleStyle) -> Markup {
    let id = style.id("disclosure");
    let ort = d
        .ort_published_ms
        .map_or("n/a".into(), |ms| format!("{ms} msec"));
    let (stated, empty): (Vec<_>, Vec<_>) = sections.iter().partition(|s| !s.parts.is_empty());
    let empty: Vec<&str> = empty.iter().map(|s| s.name).collect();
    html! {
        section.disclosure aria-labelledby=(id) {
            h2 id=(id) { "Full disclosure: " (d.title) }
            p { (d.vendor) " : " (d.product) }
            p { (d.metric) " = " (d.peak) " " (d.unit) " (Overall Response Time = " (ort) ")" }
            @if !d.remark.is_empty() { p.doubtful { (d.remark) } }
            h3 { "Performance" }
            (table(&d.performance(), "Performance"))
            @for s in stated {
                h3 { (s.name) }
                @for part in &s.parts { (self::part(part, s.name)) }
            }
            @if !empty.is_empty() { p.about { "Sections without an entry: " (empty.join(", ")) "." } }
            p.about { (d.generated) }
        }
    }
}

fn part(part: &Part, section: &str) -> Markup {
    match part {
        Part::Title(title) => html! { h4 { (title) } },
        Part::Fields(fields) => facts(fields),
        Part::Table(head, rows) => {
            let head: Vec<String> = head.iter().map(|h| (*h).to_owned()).collect();
            table(
                &Table::new(section, head).with_rows(rows.iter().cloned()),
                section,
            )
        }
        Part::Prose(text) => {
            let paragraphs = text.split("\n\n").filter(|p| !p.trim().is_empty());
            html! { @for paragraph in paragraphs { p { (paragraph) } } }
        }
        Part::List(items) => html! { ul { @for item in items { li { (item) } } } },
    }
}
