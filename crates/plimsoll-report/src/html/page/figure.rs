//! A chart on a page: the drawing in two widths, its key, and its values as a table.

use crate::html::chart::{
    CROSS, Chart, ChartOverlay, Column, Drawing, HALF, KeyEntry, NARROW, Room, SMALL, WIDE, draw,
    variable,
};
use maud::{Markup, PreEscaped, html};

/// A chart with key and table; `id` is the id of the element.
pub(crate) fn figure(chart: &Chart, id: &str) -> Markup {
    let has_lines = !matches!(
        chart.extra,
        ChartOverlay::Heat(_) | ChartOverlay::Intervals(_)
    );
    let key = chart.key();
    let is_joined = key.iter().any(|line| line.names.len() > 1);
    let crosses = chart.word_of_crosses();
    let needs_key = has_lines && (key.len() != 1 || is_joined || crosses.is_some());
    let (_, end) = chart.bounds().0;
    let time = chart.is_over_time().then(|| format!("{end}"));
    html! {
        figure.chart id=(id) data-time=[time] {
            figcaption {
                strong { (chart.title) }
                @if chart.room != Room::Small && !chart.about.is_empty() { " " span.about { (chart.about) } }
                @if chart.is_over_time() { " " button.whole type="button" hidden { "Whole run" } }
            }
            @if needs_key { (self::key(&key, crosses)) }
            div.drawings {
                @match chart.room {
                    Room::Small => (drawing(&draw(chart, SMALL), "small")),
                    room => {
                        (drawing(&draw(chart, if room == Room::Half { HALF } else { WIDE }), "wide"))
                        (drawing(&draw(chart, NARROW), "narrow"))
                    }
                }
                div.cross hidden {}
                div.brush hidden {}
                div.values hidden {}
            }
            (values(chart))
        }
    }
}

/// Small charts beside each other, below the explanation and the legend of the first chart; `id` makes the id of an
/// element from the id of its chart.
pub(crate) fn multiples(charts: &[&Chart], id: impl Fn(&str) -> String) -> Markup {
    html! {
        @if let Some(first) = charts.first() {
            p.about { (first.about) }
            @if !first.shades.is_empty() {
                ul.key.shades { @for (name, depth) in &first.shades {
                    li { span.shade style=(format!("opacity:{depth:.2}")) {} (name) }
                } }
            }
        }
        div.multiples { @for chart in charts { (figure(chart, &id(&chart.id))) } }
    }
}

/// Legend: a button for each line, and the word for crossed points. A button switches its line off and on.
fn key(lines: &[KeyEntry<'_>], crosses: Option<&str>) -> Markup {
    html! {
        ul.key { @for (number, line) in lines.iter().enumerate() { li {
            button type="button" aria-pressed="true" data-switch=(number) title=[all_names(line)] {
                // A unit is a tenth of a pixel, as in the drawings.
                svg.swatch viewBox="0 0 260 80" aria-hidden="true" {
                    line x1="0" y1="40" x2="260" y2="40" stroke-width="30" data-line=(number)
                        stroke=(format!("var({})", variable(line.style))) {}
                }
                (line.label())
            }
        } }
            @if let Some(word) = crosses { li { (CROSS) " " (word) } }
        }
    }
}

/// All names of a line whose label leaves out some.
fn all_names(line: &KeyEntry<'_>) -> Option<String> {
    (line.names.len() > 3).then(|| line.names.join(", "))
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
                                    @match (names, chart.links.get(i)) {
                                        (Some(rows), _) => (rows[i].name),
                                        (None, Some(link)) => {
                                            a href=(link.address) { (link.name) } ", "
                                            (chart.x.unit.show(*at))
                                        }
                                        (None, None) => (chart.x.unit.show(*at)),
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
