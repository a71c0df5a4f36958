//! Full disclosure on the page of a load curve or run: the content of the ASCII report, in its order.

use super::article::ArticleStyle;
use super::table::table;
use crate::disclosure::Disclosure;
use maud::{Markup, html};

/// The claim, the load points, and a collapsed part for each section.
///
/// Sections are laid out for 80 columns of fixed width and shown unchanged: the page and the ASCII report have the same
/// content.
pub(crate) fn section(d: &Disclosure, style: &ArticleStyle) -> Markup {
    let id = style.id("disclosure");
    let ort = d
        .ort_published_ms
        .map_or("n/a".into(), |ms| format!("{ms} msec"));
    html! {
        section.disclosure aria-labelledby=(id) {
            h2 id=(id) { "Full disclosure: " (d.title) }
            p { (d.vendor) " : " (d.product) }
            p { (d.metric) " = " (d.peak) " " (d.unit) " (Overall Response Time = " (ort) ")" }
            @if !d.remark.is_empty() { p.doubtful { (d.remark) } }
            details open {
                summary { "Performance" }
                (table(&d.performance()))
            }
            @for s in &d.sections {
                details open {
                    summary { (s.name) }
                    pre tabindex="0" { (s.text) }
                }
            }
            p.about { (d.generated) }
        }
    }
}
