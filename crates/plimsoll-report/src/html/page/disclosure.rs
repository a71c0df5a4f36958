//! Full disclosure on the page of a load curve or run: the content of the ASCII report, in its order.

use super::article::ArticleStyle;
use super::table::table;
use crate::disclosure::{Disclosure, LoadPoint};
use crate::document::Table;
use maud::{Markup, html};
use plimsoll_measure::curve::PointVerdict;

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
                (performance(d))
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

fn performance(d: &Disclosure) -> Markup {
    let head = [
        format!("load ({})", d.unit),
        "latency (msec)".into(),
        "Ops/Sec".into(),
        "MB/Sec".into(),
        "verdict".into(),
    ];
    let known = |v: Option<f64>| v.map_or("–".into(), |v| v.to_string());
    let row = |p: &LoadPoint| {
        let verdict = match p.verdict {
            PointVerdict::Valid => "valid",
            PointVerdict::Invalid => "INVALID_RUN",
        };
        vec![
            p.load.to_string(),
            known(p.latency_ms),
            known(p.ops_per_s),
            known(p.mb_per_s),
            verdict.into(),
        ]
    };
    table(&Table::new("Performance", head).with_rows(d.points.iter().map(row)))
}
