//! A chart on a page: the drawing in two widths, its key, and its values as a table.

use crate::html::chart::{
    CROSS, Chart, ChartOverlay, Column, Drawing, NARROW, WIDE, draw, variable,
};
use maud::{Markup, PreEscaped, html};

/// A chart with key and table; `id` is the id of the element.
pub(crate) fn figure(chart: &Chart, id: &str) -> Markup {
    let has_lines = !matches!(
        chart.extra,
        ChartOverlay::Heat(_) | ChartOverlay::Intervals(_)
    );
    let has_crosses = chart.word_of_crosses().is_some();
    let needs_key = has_lines && (chart.lines().count() != 1 || has_crosses);
    html! {
        figure.chart id=(id) {
            figcaption {
                strong { (chart.title) }
                @if !chart.about.is_empty() { " " span.about { (chart.about) } }
            }
            @if needs_key { (key(chart)) }
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

/// Colours and names of the series, hidden from screen readers, which find the names in the table.
fn key(chart: &Chart) -> Markup {
    html! {
        ul.key aria-hidden="true" {
            @for (column, style) in chart.lines() {
                li { span.swatch style=(format!("background:var({})", variable(style))) {} (column.name) }
            }
            @if let Some(word) = chart.word_of_crosses() { li { (CROSS) " " (word) } }
        }
    }
}

fn drawing(drawing: &Drawing, class: &str) -> Markup {
    let area = drawing.area.map(|edge| format!("{edge:.5}")).join(" ");
    html! {
        div.drawing.(class) data-area=(area) { (PreEscaped(&drawing.svg)) }
    }
}

/// A value of a series; empty without a value. The value of a crossed point is followed by the word for such points.
fn value(column: &Column, i: usize) -> String {
    let shown = column.values[i].map(|v| column.unit.show(v));
    match shown {
        Some(shown) if column.crossed.at.contains(&i) => {
            format!("{shown} ({})", column.crossed.word)
        }
        shown => shown.unwrap_or_default(),
    }
}

/// The table of values, from which the script shows values under the pointer.
fn values(chart: &Chart) -> Markup {
    let (x, _) = chart.bounds();
    let (start, end) = (chart.x.scale.position(x.0), chart.x.scale.position(x.1));
    let names = match &chart.extra {
        ChartOverlay::Intervals(rows) => Some(rows),
        _ => None,
    };
    let head = names.map_or(chart.x.label.as_str(), |_| "operation");
    let fraction = |at: f64| (chart.x.scale.position(at) - start) / (end - start);
    html! {
        details.data {
            summary { "Values of “" (chart.title) "”" }
            div.scroll tabindex="0" role="region" aria-label=(format!("Values of {}", chart.title)) {
                table {
                    thead { tr {
                        th scope="col" { (head) }
                        @for c in &chart.columns { th scope="col" { (c.name) } }
                    } }
                    tbody {
                        @for (i, at) in chart.at.iter().enumerate() {
                            tr data-at=(format!("{:.5}", fraction(*at))) {
                                th scope="row" {
                                    @match names {
                                        Some(rows) => (rows[i].name),
                                        None => (chart.x.unit.show(*at)),
                                    }
                                }
                                @for c in &chart.columns {
                                    td { (value(c, i)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
