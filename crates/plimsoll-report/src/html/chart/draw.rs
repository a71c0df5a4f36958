//! Drawing of charts as SVG.

use super::theme::{self, MAIN, Part, Role};
use super::{Axis, Chart, ChartOverlay, Column, SeriesStyle, Unit};
use plimsoll_diagnostics::foreign;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Size of a drawing in CSS pixels of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Width of the drawing in CSS pixels.
    pub width: u32,
    /// Height of the drawing in CSS pixels.
    pub height: u32,
}

/// Size of a chart's drawing on the screens of computers.
pub const WIDE: Size = Size {
    width: 960,
    height: 300,
};

/// Size of a chart's drawing on mobile phones.
pub const NARROW: Size = Size {
    width: 343,
    height: 260,
};

/// Drawing size of a chart of half the page width.
pub const HALF: Size = Size {
    width: 600,
    height: 240,
};

/// Size of a small chart's drawing beside other small charts.
pub const SMALL: Size = Size {
    width: 343,
    height: 210,
};

/// Radius of the transparent link circle around a chart point, in pixels.
const LINK_PX: u32 = 8;

/// Height of the first axis with its labels, in pixels.
const LABEL_AREA_PX: u32 = 44;

/// Distance between the drawing's top edge and the plotting area, in pixels.
const TOP_MARGIN_PX: u32 = 10;

/// Distance between the plotting area and the drawing's right edge, in pixels.
const RIGHT_MARGIN_PX: u32 = 18;

/// Width of a line, in pixels.
const LINE_PX: u32 = 2;

/// Width of a line as a share of the plotting area's height in the drawing [`WIDE`].
pub(super) const LINE_SHARE: f64 =
    LINE_PX as f64 / (WIDE.height - TOP_MARGIN_PX - LABEL_AREA_PX) as f64;

/// Length of a tick's mark, in pixels.
const TICK_PX: u32 = 4;

/// Units of the drawing per pixel of the page: finer than a pixel, because the library rounds to whole units.
const UNITS: u32 = 10;

/// Font size of every text in a chart, in CSS pixels.
const FONT_PX: f64 = 12.0;

/// Factor by which the library divides the font size.
const FONT_DIVISOR: f64 = 1.24;

/// Maximum number of points of a line with markers.
const MAX_MARKERS: usize = 40;

/// Half of the width of a cross on a point, in pixels.
const CROSS_PX: u32 = 5;

/// Cross in the key of a chart.
pub(crate) const CROSS: char = '✕';

/// Opacity of a shaded range.
const SHADE_OPACITY: f64 = 0.18;

/// Opacity of a stacked area.
const AREA_OPACITY: f64 = 0.55;

/// Line height of the texts of vertical lines, in pixels.
const MARK_LINE_PX: f64 = 16.0;

/// Maximum number of stacked texts of vertical lines.
const MARK_LEVELS: usize = 6;

/// Maximum length of the text of a vertical line, in characters.
const MAX_MARK_CHARS: usize = 32;

/// Width of the labels of the second axis, in pixels.
const TICKS_PX: u32 = 70;

/// Height of the header of a chart in a separate file, in pixels.
const HEADER_HEIGHT_PX: u32 = 58;

/// Chart drawn as SVG, with the position of its plotting area for the pointer.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// The chart as an HTML element `svg`.
    pub svg: String,
    /// Left, top, right and bottom of the plotting area, as fractions of the drawing's width and
    /// height.
    pub area: [f64; 4],
}

/// Positions along an axis, and the ticks among them.
struct DrawnAxis {
    range: std::ops::Range<f64>,
    ticks: Vec<f64>,
}

impl Ranged for DrawnAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let fraction = (value - self.range.start) / (self.range.end - self.range.start);
        from + (fraction * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => vec![],
            false => self.ticks.clone(),
        }
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.range.clone()
    }
}

type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<DrawnAxis, DrawnAxis>>;
type Fallible<T> = Result<T, DrawingAreaErrorKind<std::io::Error>>;

/// Draws a chart for a page, in the colours of the page's style sheet, without header and key.
#[must_use]
pub fn draw(chart: &Chart, size: Size) -> Drawing {
    let (svg, area) = draw_on(chart, size, 0);
    let svg = theme::for_page(&with_data_inside(&svg, size, area))
        .replace(" font-family=\"sans-serif\"", "")
        .replacen(&attributes(size), "", 1);
    let label = maud::html! { (foreign::replaced(&chart.title)) }.into_string();
    // Screen readers do not offer links inside an element of the role `img`.
    let role = if chart.links.is_empty() {
        "img"
    } else {
        "group"
    };
    let role = format!("<svg role=\"{role}\" aria-label=\"{label}\" ");
    let mut svg = svg.replacen("<svg ", &role, 1);
    if !chart.links.is_empty()
        && let Some(end) = svg.rfind("</svg>")
    {
        svg.insert_str(end, &links(chart, size, area));
    }
    Drawing { svg, area }
}

/// Transparent link circles over the points of a chart. The table below the chart has the same links, so the circles are
/// not in the keyboard order.
fn links(chart: &Chart, size: Size, [left, top, right, bottom]: [f64; 4]) -> String {
    let (x, y) = chart.bounds();
    let share = |axis: &Axis, (begin, end): (f64, f64), value: f64| {
        let [begin, end, at] = [begin, end, value].map(|v| axis.scale.position(v));
        (at - begin) / (end - begin)
    };
    let units = |fraction: f64, pixels: u32| (fraction * f64::from(pixels * UNITS)).round() as i32;
    let mut all = maud::PreEscaped(String::new());
    for (column, _) in chart.lines() {
        for ((at, value), link) in chart.at.iter().zip(&column.values).zip(&chart.links) {
            let Some(value) = value else { continue };
            let across = left + share(&chart.x, x, *at) * (right - left);
            let down = bottom - share(&chart.y, y, *value) * (bottom - top);
            let name = foreign::replaced(&link.name);
            all.0.push_str(
                &maud::html! {
                    a href=(link.address) aria-label=(name) tabindex="-1" {
                        circle cx=(units(across, size.width)) cy=(units(down, size.height))
                            r=(LINK_PX * UNITS) fill="transparent" {}
                    }
                }
                .into_string(),
            );
        }
    }
    all.into_string()
}

/// Draws a chart for a separate file, with background, title and key.
#[must_use]
pub fn standalone(chart: &Chart) -> String {
    let (svg, _) = draw_on(chart, WIDE, HEADER_HEIGHT_PX);
    let size = format!(" width=\"{}\" height=\"{}\"", WIDE.width, WIDE.height);
    let paper = theme::BACKGROUND[0];
    let background = format!(">\n<rect width=\"100%\" height=\"100%\" fill=\"{paper}\"/>\n");
    theme::for_file(&svg)
        .replace("\"sans-serif\"", "\"DejaVu Sans, Arial, sans-serif\"")
        .replacen(&attributes(WIDE), &size, 1)
        .replacen(">\n", &background, 1)
}

/// A drawing in placeholder colours in which an element `svg` of the class `data` contains the part that moves when the
/// time axis is zoomed. The element is as wide as the plotting area, and slightly higher.
fn with_data_inside(svg: &str, size: Size, area: [f64; 4]) -> String {
    let Some((before, data)) = theme::split_at_data(svg) else {
        return svg.to_owned();
    };
    let units = |fraction: f64, pixels: u32| (fraction * f64::from(pixels * UNITS)).round() as i32;
    let pad = (LINE_PX * UNITS) as i32;
    let (left, right) = (units(area[0], size.width), units(area[2], size.width));
    let (top, bottom) = (units(area[1], size.height), units(area[3], size.height));
    let (top, width, height) = (top - pad, right - left, bottom - top + 2 * pad);
    format!(
        "{before}<svg class=\"data\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"{left} {top} {width} {height}\">{data}</svg>"
    )
}

fn attributes(size: Size) -> String {
    format!(
        " width=\"{}\" height=\"{}\"",
        size.width * UNITS,
        size.height * UNITS
    )
}

/// Draws a chart in placeholder colours below a header of `header` pixels; returns the SVG and the plotting area.
fn draw_on(chart: &Chart, size: Size, header: u32) -> (String, [f64; 4]) {
    let mut svg = String::new();
    let units = (size.width * UNITS, size.height * UNITS);
    let area = {
        let root = SVGBackend::with_string(&mut svg, units).into_drawing_area();
        // Writing to a string cannot fail, and no font is loaded.
        paint(chart, &root, size, header).expect("writing to a string cannot fail")
    };
    // Foreign texts may contain characters that XML does not permit.
    (foreign::replaced(&svg).into_owned(), area)
}

fn paint(
    chart: &Chart,
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    size: Size,
    header: u32,
) -> Fallible<[f64; 4]> {
    if header > 0 {
        paint_header(chart, root)?;
    }
    let (x, y) = chart.bounds();
    let mut x_ticks = ticks(&chart.x, x, size.width / 80);
    let y_ticks = match chart.extra {
        ChartOverlay::Intervals(_) => vec![],
        _ => ticks(&chart.y, y, 6),
    };
    let span = chart.x.scale.position(x.1) - chart.x.scale.position(x.0);
    let pixels = f64::from(size.width.saturating_sub(90)) / span;
    without_overlap(&mut x_ticks, pixels);
    if chart.x.unit == Unit::Date {
        // The drawing's right edge would cut a wide date label.
        let end = chart.x.scale.position(x.1);
        let room = |at: f64| (end - at) * pixels + f64::from(RIGHT_MARGIN_PX);
        x_ticks.retain(|(at, label)| text_width(label) / 2.0 <= room(*at));
    }
    let mut plot = ChartBuilder::on(root)
        .margin_top((header + TOP_MARGIN_PX) * UNITS)
        .margin_right(RIGHT_MARGIN_PX * UNITS)
        .margin_left(2 * UNITS)
        .x_label_area_size(LABEL_AREA_PX * UNITS)
        .y_label_area_size(TICKS_PX * UNITS)
        .build_cartesian_2d(
            line(&chart.x, x, x_ticks.iter().map(|t| t.0)),
            line(&chart.y, y, y_ticks.iter().map(|t| t.0)),
        )?;
    paint_mesh(chart, &mut plot, &x_ticks, &y_ticks)?;
    if chart.is_over_time() {
        let mark = MAIN.of(Part::Data).stroke_width(UNITS);
        root.draw(&PathElement::new(vec![(0, 0), (0, 0)], mark))?;
    }
    paint_overlay(chart, &mut plot, x, y)?;
    paint_marks(chart, &mut plot, x, y)?;
    paint_limits(chart, &mut plot, x)?;
    match chart.is_stacked {
        true => paint_areas(chart, &mut plot)?,
        false => {
            for (number, (column, style)) in chart.lines().enumerate() {
                let color = Role::Series(style).of(Part::Line(number));
                paint_line(chart, &mut plot, column, color)?;
            }
        }
    }
    let (xs, ys) = plot.plotting_area().get_pixel_range();
    let fraction = |v: i32, of: u32| f64::from(v) / f64::from(of * UNITS);
    Ok([
        fraction(xs.start, size.width),
        fraction(ys.start, size.height),
        fraction(xs.end, size.width),
        fraction(ys.end, size.height),
    ])
}

fn paint_overlay(
    chart: &Chart,
    plot: &mut Plot<'_, '_>,
    x: (f64, f64),
    y: (f64, f64),
) -> Fallible<()> {
    let at = |x, y| (chart.x.scale.position(x), chart.y.scale.position(y));
    match &chart.extra {
        ChartOverlay::Heat(cells) => {
            plot.draw_series(cells.iter().map(|c| {
                let color = Role::Heat.placeholder().mix(c.depth.clamp(0.0, 1.0));
                Rectangle::new([at(c.x.0, c.y.0), at(c.x.1, c.y.1)], color.filled())
            }))?;
        }
        ChartOverlay::Shaded(times) => {
            let color = Role::Shade.placeholder().mix(SHADE_OPACITY);
            plot.draw_series(
                times.iter().map(|(from, to)| {
                    Rectangle::new([at(*from, y.0), at(*to, y.1)], color.filled())
                }),
            )?;
        }
        ChartOverlay::Intervals(rows) => {
            let color = Role::Series(SeriesStyle::Series(0)).placeholder();
            let style = color.stroke_width(2 * UNITS);
            let name_font = font(MAIN).pos(Pos::new(HPos::Left, VPos::Bottom));
            let heights = (1..=rows.len()).rev().map(|row| row as f64);
            // The second axis has no ticks, so the names begin in their place. A name is above the line of its interval.
            let (xs, _) = plot.plotting_area().get_pixel_range();
            let width = f64::from(xs.end - xs.start) / f64::from(UNITS);
            let room = f64::from(TICKS_PX) + width;
            let chars = ((room / text_width("m")) as usize).clamp(4, MAX_MARK_CHARS);
            let shift = (-(TICKS_PX as i32) * UNITS as i32, 0);
            for (row, height) in rows.iter().zip(heights) {
                let ends = vec![at(row.low, height), at(row.high, height)];
                plot.draw_series([PathElement::new(ends, style)])?;
                let dot = Circle::new(at(row.middle, height), 4 * UNITS, color.filled());
                plot.draw_series([dot])?;
                let name = Text::new(shorten(&row.name, chars), shift, name_font.clone());
                plot.draw_series([EmptyElement::at(at(x.0, height)) + name])?;
            }
        }
        ChartOverlay::None => {}
    }
    Ok(())
}

/// Draws vertical lines; the texts of close lines are stacked.
fn paint_marks(
    chart: &Chart,
    plot: &mut Plot<'_, '_>,
    x: (f64, f64),
    y: (f64, f64),
) -> Fallible<()> {
    let at = |x, y| (chart.x.scale.position(x), chart.y.scale.position(y));
    let ((left, bottom), (right, top)) = (at(x.0, y.0), at(x.1, y.1));
    let (xs, ys) = plot.plotting_area().get_pixel_range();
    let pixels =
        |range: std::ops::Range<i32>| f64::from(range.end - range.start) / f64::from(UNITS);
    let (width, height) = (pixels(xs), pixels(ys));
    // A text beside a line in the middle has half of the width.
    let chars = ((width / 2.0 / text_width("m")) as usize).clamp(4, MAX_MARK_CHARS);
    let line = (top - bottom) * MARK_LINE_PX / height.max(MARK_LINE_PX);
    for (i, mark) in chart.marks.iter().enumerate() {
        let level = i % MARK_LEVELS;
        let place = chart.x.scale.position(mark.at);
        let style = MAIN.placeholder().stroke_width(UNITS);
        plot.draw_series([PathElement::new(vec![(place, bottom), (place, top)], style)])?;
        let side = match place > (left + right) / 2.0 {
            true => HPos::Right,
            false => HPos::Left,
        };
        let font = font(MAIN).pos(Pos::new(side, VPos::Top));
        let text = shorten(&mark.text, chars);
        let corner = (place, top - line * level as f64);
        plot.draw_series([Text::new(format!("\u{a0}{text}\u{a0}"), corner, font)])?;
    }
    Ok(())
}

/// Draws dashed horizontal lines, each with its text above the left end.
fn paint_limits(chart: &Chart, plot: &mut Plot<'_, '_>, x: (f64, f64)) -> Fallible<()> {
    let [left, right] = [x.0, x.1].map(|x| chart.x.scale.position(x));
    let dash = 6 * UNITS as i32;
    for limit in &chart.limits {
        let height = chart.y.scale.position(limit.at);
        let ends = [(left, height), (right, height)];
        let style = MAIN.placeholder().stroke_width(UNITS);
        plot.draw_series(DashedLineSeries::new(ends, dash, dash, style))?;
        let font = font(MAIN).pos(Pos::new(HPos::Left, VPos::Bottom));
        let text = format!("\u{a0}{}", shorten(&limit.text, MAX_MARK_CHARS));
        plot.draw_series([Text::new(text, (left, height), font)])?;
    }
    Ok(())
}

/// Shortens a text that is longer than `max` characters.
fn shorten(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.into();
    }
    let kept: String = text.chars().take(max - 1).collect();
    format!("{}…", kept.trim_end())
}

/// Positions of ticks, and their labels.
fn ticks(axis: &Axis, bounds: (f64, f64), max: u32) -> Vec<(f64, String)> {
    axis.ticks(bounds, max as usize)
        .into_iter()
        .map(|t| (axis.scale.position(t), axis.tick(t)))
        .collect()
}

/// Removes ticks whose label would touch the preceding label; `pixels` is the scale of positions.
fn without_overlap(ticks: &mut Vec<(f64, String)>, pixels: f64) {
    let mut end = f64::MIN;
    ticks.retain(|(at, label)| {
        let (middle, half) = (at * pixels, text_width(label) / 2.0);
        let free = middle - half > end;
        if free {
            end = middle + half + FONT_PX / 2.0;
        }
        free
    });
}

/// Estimated width of a text in pixels: a letter is about 0.6 times as wide as the font size.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * FONT_PX * 0.6
}

fn line(axis: &Axis, bounds: (f64, f64), ticks: impl Iterator<Item = f64>) -> DrawnAxis {
    DrawnAxis {
        range: axis.scale.position(bounds.0)..axis.scale.position(bounds.1),
        ticks: ticks.collect(),
    }
}

fn font(role: Role) -> TextStyle<'static> {
    font_of(role.placeholder())
}

fn font_of(color: RGBColor) -> TextStyle<'static> {
    let size = FONT_PX * FONT_DIVISOR * f64::from(UNITS);
    ("sans-serif", size).into_font().color(&color)
}

fn paint_mesh(
    chart: &Chart,
    plot: &mut Plot<'_, '_>,
    x_ticks: &[(f64, String)],
    y_ticks: &[(f64, String)],
) -> Fallible<()> {
    let label = |ticks: &[(f64, String)], at: f64| {
        let found = ticks.iter().find(|t| (t.0 - at).abs() < 1e-12);
        found.map_or_else(String::new, |t| t.1.clone())
    };
    let grid = Role::Grid.placeholder();
    plot.configure_mesh()
        .disable_x_mesh()
        .max_light_lines(0)
        .bold_line_style(grid.stroke_width(UNITS))
        .axis_style(grid.stroke_width(UNITS))
        .set_all_tick_mark_size(TICK_PX * UNITS)
        .label_style(font(Role::Text))
        .x_label_style(font_of(Role::Text.of(Part::Tick)))
        .axis_desc_style(font(Role::Text))
        .x_desc(chart.x.label.clone())
        .y_desc(chart.y.label.clone())
        .x_label_formatter(&|at| label(x_ticks, *at))
        .y_label_formatter(&|at| label(y_ticks, *at))
        .draw()
}

/// Draws a line that is interrupted at missing values. If there are few points, or if the chart has links, each point has a
/// marker; crossed points always have a marker.
fn paint_line(
    chart: &Chart,
    plot: &mut Plot<'_, '_>,
    column: &Column,
    color: RGBColor,
) -> Fallible<()> {
    let style = color.stroke_width(LINE_PX * UNITS);
    let crossed = &column.crossed.at;
    let at = |(x, y): (&f64, &Option<f64>)| {
        let y = y.filter(|y| chart.y.scale != super::Scale::Log || *y > 0.0)?;
        Some((chart.x.scale.position(*x), chart.y.scale.position(y)))
    };
    let points: Vec<_> = chart.at.iter().zip(&column.values).map(at).collect();
    for piece in points.split(Option::is_none) {
        let piece: Vec<(f64, f64)> = piece.iter().flatten().copied().collect();
        if piece.len() > 1 {
            plot.draw_series(LineSeries::new(piece.iter().copied(), style))?;
        }
        if piece.len() == 1 && points.len() > MAX_MARKERS && chart.links.is_empty() {
            let dot = |at: (f64, f64)| Circle::new(at, 3 * UNITS, color.filled());
            plot.draw_series(piece.into_iter().map(dot))?;
        }
    }
    for (i, at) in points
        .iter()
        .enumerate()
        .filter_map(|(i, at)| Some((i, (*at)?)))
    {
        if crossed.contains(&i) {
            plot.draw_series([Cross::new(at, CROSS_PX * UNITS, style)])?;
        } else if points.len() <= MAX_MARKERS || !chart.links.is_empty() {
            plot.draw_series([Circle::new(at, 3 * UNITS, color.filled())])?;
        }
    }
    Ok(())
}

/// Draws each series as an area on top of the preceding series.
fn paint_areas(chart: &Chart, plot: &mut Plot<'_, '_>) -> Fallible<()> {
    let mut below = vec![0.0; chart.at.len()];
    for (number, ((_, style), above)) in chart.lines().zip(chart.heights()).enumerate() {
        let color = Role::Series(style).of(Part::Line(number));
        let at = |(x, y): (&f64, &f64)| (chart.x.scale.position(*x), chart.y.scale.position(*y));
        let upper: Vec<(f64, f64)> = chart.at.iter().zip(&above).map(at).collect();
        let lower = chart.at.iter().zip(&below).map(at).rev();
        let outline: Vec<(f64, f64)> = upper.iter().copied().chain(lower).collect();
        plot.draw_series([Polygon::new(outline, color.mix(AREA_OPACITY).filled())])?;
        plot.draw_series(LineSeries::new(upper, color.stroke_width(UNITS)))?;
        below = above;
    }
    Ok(())
}

/// Draws title and key of a chart in a separate file.
fn paint_header(chart: &Chart, root: &DrawingArea<SVGBackend<'_>, Shift>) -> Fallible<()> {
    let unit = UNITS as i32;
    let title = font(MAIN).pos(Pos::new(HPos::Left, VPos::Top));
    let bold = TextStyle {
        font: title.font.clone().style(FontStyle::Bold),
        ..title.clone()
    };
    root.draw(&Text::new(
        chart.title.clone(),
        (14 * unit, 12 * unit),
        bold,
    ))?;
    let mut x = 14;
    let mut entry = |color: RGBAColor, name: &str| {
        let swatch = [(x * unit, 40 * unit), ((x + 12) * unit, 44 * unit)];
        root.draw(&Rectangle::new(swatch, color.filled()))?;
        let at = ((x + 17) * unit, 36 * unit);
        root.draw(&Text::new(name.to_owned(), at, title.clone()))?;
        x += 34 + text_width(name) as i32;
        Ok(())
    };
    for line in chart.key() {
        entry(
            Role::Series(line.style).placeholder().mix(1.0),
            &line.label(),
        )?;
    }
    for (name, depth) in &chart.shades {
        entry(Role::Heat.placeholder().mix(*depth), name)?;
    }
    if let Some(word) = chart.word_of_crosses() {
        let text = format!("{CROSS} {word}");
        root.draw(&Text::new(text, (x * unit, 36 * unit), title))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Column, CrossedPoints, Mark};
    use super::*;

    /// Vertical positions in a drawing, from its plotting area: 0 is the top, 1 the bottom.
    fn heights(drawing: &Drawing, size: Size, ys: &[f64]) -> Vec<f64> {
        let [_, top, _, bottom] = drawing
            .area
            .map(|edge| edge * f64::from(size.height * UNITS));
        ys.iter().map(|y| (y - top) / (bottom - top)).collect()
    }

    /// Points of the lines of a drawing that have the colour of a series.
    fn polylines(svg: &str, of: SeriesStyle) -> Vec<Vec<(f64, f64)>> {
        let color = format!("var({})", theme::Role::Series(of).variable());
        let lines = svg
            .split("<polyline")
            .skip(1)
            .filter(|l| l.contains(&color));
        let points = |line: &str| {
            let points = line.split("points=\"").nth(1).unwrap();
            let points = points.split('"').next().unwrap().split_whitespace();
            let point = |p: &str| {
                let (x, y) = p.split_once(',').unwrap();
                (x.parse().unwrap(), y.parse().unwrap())
            };
            points.map(point).collect()
        };
        lines.map(points).collect()
    }

    #[test]
    fn an_invalid_point_is_on_the_line_and_crossed_and_a_limit_has_its_height() {
        let style = SeriesStyle::Series(0);
        let values = [1.0, 2.0, 4.0].map(Some).to_vec();
        let chart = Chart {
            x: Axis::linear("load", Unit::Count),
            y: Axis::linear("latency", Unit::Milliseconds),
            at: vec![1.0, 2.0, 3.0],
            columns: vec![Column {
                crossed: CrossedPoints {
                    at: vec![2],
                    word: "invalid",
                },
                ..Column::drawn("mean", Unit::Milliseconds, values, style)
            }],
            limits: vec![Mark {
                at: 3.0,
                text: "limit 3 ms".into(),
            }],
            ..Chart::default()
        };
        let drawing = draw(&chart, WIDE);
        let lines = polylines(&drawing.svg, style);
        let line = lines.iter().find(|line| line.len() == 3).expect("one line");
        // The cross is two short lines around the third point.
        let (x, y) = (line[2].0 as u32, line[2].1 as u32);
        let half = CROSS_PX * UNITS;
        let (left, right, top, bottom) = (x - half, x + half, y - half, y + half);
        for stroke in [
            format!("x1=\"{left}\" y1=\"{top}\" x2=\"{right}\" y2=\"{bottom}\""),
            format!("x1=\"{left}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{top}\""),
        ] {
            assert!(drawing.svg.contains(&stroke), "{stroke}: {}", drawing.svg);
        }
        assert_eq!(
            drawing.svg.matches("<circle").count(),
            2,
            "two valid points"
        );
        // The axis ends at 4.2.
        let ys: Vec<f64> = line.iter().map(|p| p.1).collect();
        for (height, value) in heights(&drawing, WIDE, &ys).iter().zip([1.0, 2.0, 4.0]) {
            assert!(
                (height - (1.0 - value / 4.2)).abs() < 0.01,
                "{height} of {value}"
            );
        }
        let dashes = polylines(&drawing.svg, SeriesStyle::Main);
        let ys: Vec<f64> = dashes.iter().flatten().map(|p| p.1).collect();
        assert!(!ys.is_empty());
        for height in heights(&drawing, WIDE, &ys) {
            assert!((height - (1.0 - 3.0 / 4.2)).abs() < 0.01, "{height}");
        }
        assert!(drawing.svg.contains("limit 3 ms"));
    }
}
