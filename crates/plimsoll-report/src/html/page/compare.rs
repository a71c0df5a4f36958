//! A comparison on a page.

use super::{document, figures};
use crate::compare::{Comparison, FigureBlock, blocks};
use crate::html::chart::Chart;
use crate::html::charts;
use maud::{Markup, html};

/// A page on results side by side.
#[must_use]
pub fn comparison(comparison: &Comparison) -> String {
    let title = format!("{} results side by side – Plimsoll", comparison.sets.len());
    document(&title, &comparison_body(comparison))
}

/// Content of that page, to be embedded in another page.
#[must_use]
pub fn comparison_body(comparison: &Comparison) -> Markup {
    html! {
        h1 { (comparison.sets.len()) " results side by side" }
        (tables(comparison, "curves"))
    }
}

/// What is compared, and its figures; `chart` is the id of the chart.
pub(super) fn tables(comparison: &Comparison, chart: &str) -> Markup {
    let drawn = charts::of_comparison(comparison).map(|of_curves| Chart {
        id: chart.into(),
        ..of_curves
    });
    html! {
        div.scroll tabindex="0" role="region" aria-label="What is compared" {
            table {
                thead { tr {
                    th scope="col" { "" } th scope="col" { "results" } th scope="col" { "workload" }
                    th scope="col" { "runs" } th scope="col" { "verdict" }
                } }
                tbody { @for (i, s) in comparison.sets.iter().enumerate() {
                    tr {
                        th scope="row" { (crate::compare::letter(i)) }
                        td.word { (s.name) } td.word { (s.workload) } td { (s.runs) } td { (s.verdict) }
                    }
                } }
            }
        }
        @if !comparison.warnings.is_empty() {
            ul.reasons { @for w in &comparison.warnings { li { (w) } } }
        }
        @if let Some(chart) = drawn { (figures(&[chart])) }
        @for b in &blocks(comparison) { (block(b)) }
        @for r in comparison.remarks() { p.about { (r) } }
    }
}

fn block(block: &FigureBlock) -> Markup {
    let title = block.metric.title();
    html! {
        section {
            h2 { (title) }
            div.scroll tabindex="0" role="region" aria-label=(title) {
                table {
                    thead { tr {
                        th scope="col" { "operation" }
                        @for h in &block.head { th scope="col" { (h) } }
                    } }
                    tbody { @for (operation, cells) in &block.rows {
                        tr {
                            th scope="row" { (operation) }
                            @for c in cells {
                                td.more[c.better == Some(true)].less[c.better == Some(false)] { (c.text) }
                            }
                        }
                    } }
                }
            }
        }
    }
}
