//! A chart on a page: the drawing in two widths, its key, and its values as a table.

use super::UniqueIds;
use crate::chart::{Chart, ChartOverlay, Drawing, NARROW, SeriesStyle, WIDE, draw};
use maud::{Markup, PreEscaped, html};

/// A chart with all that belongs to it.
pub(crate) fn figure(chart: &Chart, ids: &UniqueIds) -> Markup {
    let id = ids.of(&chart.id);
    html! {
        figure.chart id=(id) {
            figcaption {
                strong { (chart.title) }
                @if !chart.about.is_empty() { " " span.about { (chart.about) } }
            }
            @if matches!(chart.extra, ChartOverlay::Heat(_)) || chart.lines().count() == 1 {
            } @else {
                (key(chart))
            }
            div.drawings {
                (drawing(&draw(chart, WIDE), "wide"))
                (drawing(&draw(chart, NARROW), "narrow"))
                div.cross hidden {}
                div.values hidden {}
            }
            (values(chart))
        }
    }
}

/// Colours and names of the series. It is for eyes alone: the table has the names too.
fn key(chart: &Chart) -> Markup {
    html! {
        ul.key aria-hidden="true" {
            @for (column, ink) in chart.lines() {
                li { span.swatch style=(format!("background:var({})", variable(ink))) {} (column.name) }
            }
        }
    }
}

fn variable(ink: SeriesStyle) -> &'static str {
    crate::chart::variable(ink)
}

fn drawing(drawing: &Drawing, class: &str) -> Markup {
    let area = drawing.area.map(|share| format!("{share:.5}")).join(" ");
    html! {
        div.drawing.(class) data-area=(area) { (PreEscaped(&drawing.svg)) }
    }
}

/// The values, which the pointer shows too.
fn values(chart: &Chart) -> Markup {
    let (x, _) = chart.bounds();
    let (least, end) = (chart.x.scale.position(x.0), chart.x.scale.position(x.1));
    let place = |at: f64| (chart.x.scale.position(at) - least) / (end - least);
    html! {
        details.data {
            summary { "Values of “" (chart.title) "”" }
            div.scroll tabindex="0" role="region" aria-label=(format!("Values of {}", chart.title)) {
                table {
                    thead { tr {
                        th scope="col" { (chart.x.label) }
                        @for c in &chart.columns { th scope="col" { (c.name) } }
                    } }
                    tbody {
                        @for (i, at) in chart.at.iter().enumerate() {
                            tr data-at=(format!("{:.5}", place(*at))) {
                                th scope="row" { (chart.x.unit.show(*at)) }
                                @for c in &chart.columns {
                                    td { @if let Some(v) = c.values[i] { (c.unit.show(v)) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
