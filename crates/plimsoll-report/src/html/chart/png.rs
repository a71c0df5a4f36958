//! Rendering of charts as PNG files.

use super::draw::UNITS;
use super::{Chart, Size, Theme, standalone};
use roxmltree::{Document, Node};
use std::sync::LazyLock;
use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, Transform};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// Pixels of the bitmap per pixel of the drawing: sharp on a screen of doubled resolution and in print up to 16 cm
/// wide.
const SCALE: u32 = 2;

/// Fonts of all pictures, regular and bold, independent of the fonts of the machine.
static FONTS: LazyLock<[Face<'static>; 2]> = LazyLock::new(|| {
    [dejavu::sans::regular(), dejavu::sans::bold()]
        .map(|font| Face::parse(font, 0).expect("the fonts of the program are whole"))
});

/// Error of the conversion of a chart to a PNG file.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The drawing is not valid XML.
    #[error("the drawing cannot be read: {0}")]
    Drawing(#[from] roxmltree::Error),
    /// There is not enough memory for a picture of this size.
    #[error("a picture of {0} by {1} pixels is too large")]
    Size(u32, u32),
    /// The picture could not be written.
    #[error("the picture cannot be written: {0}")]
    Encoding(String),
}

/// Draws a chart as a separate PNG file, with background, title and key, and two pixels for each pixel of `size`.
///
/// # Errors
/// [`PngError`] if the picture does not fit into memory or cannot be encoded.
pub fn png(chart: &Chart, size: Size, theme: Theme) -> Result<Vec<u8>, PngError> {
    let svg = standalone(chart, size, theme);
    let (width, height) = (
        size.width.saturating_mul(SCALE),
        size.height.saturating_mul(SCALE),
    );
    let pixels = Pixmap::new(width, height).ok_or(PngError::Size(width, height))?;
    let mut canvas = Canvas::new(pixels, size);
    for node in Document::parse(&svg)?.root_element().children() {
        canvas.draw(node);
    }
    canvas
        .pixels
        .encode_png()
        .map_err(|e| PngError::Encoding(e.to_string()))
}

/// A bitmap on which SVG elements are drawn; only supports the elements that [`standalone`] writes.
struct Canvas {
    pixels: Pixmap,
    /// Transformation from units of the drawing to pixels.
    transform: Transform,
    /// Width and height in units of the drawing.
    units: (f32, f32),
}

impl Canvas {
    fn new(pixels: Pixmap, size: Size) -> Self {
        let scale = SCALE as f32 / UNITS as f32;
        Self {
            pixels,
            transform: Transform::from_scale(scale, scale),
            units: ((size.width * UNITS) as f32, (size.height * UNITS) as f32),
        }
    }

    fn draw(&mut self, node: Node) {
        if !node.is_element() {
            return;
        }
        match node.tag_name().name() {
            "rect" => {
                let (width, height) = (
                    length(node, "width", self.units.0),
                    length(node, "height", self.units.1),
                );
                let (x, y) = (
                    length(node, "x", self.units.0),
                    length(node, "y", self.units.1),
                );
                let rect = Rect::from_xywh(x, y, width, height);
                self.fill(
                    node,
                    rect.map(PathBuilder::from_rect),
                    Transform::identity(),
                );
            }
            "circle" => {
                let circle = PathBuilder::from_circle(
                    number(node, "cx"),
                    number(node, "cy"),
                    number(node, "r"),
                );
                self.fill(node, circle, Transform::identity());
            }
            "polygon" => self.fill(node, path(points(node), true), Transform::identity()),
            "polyline" => self.stroke(node, path(points(node), false)),
            "line" => {
                let ends = [("x1", "y1"), ("x2", "y2")];
                let ends = ends.map(|(x, y)| (number(node, x), number(node, y)));
                self.stroke(node, path(ends.into_iter(), false));
            }
            "text" => {
                let (x, y) = (number(node, "x"), number(node, "y"));
                let turned = Transform::from_rotate_at(degrees(node), x, y);
                self.fill(node, text(node), turned);
            }
            other => unreachable!("charts have no element `{other}`"),
        }
    }

    /// Fills a path in the fill colour of a node; no effect without a path, that is, without an area.
    fn fill(&mut self, node: Node, path: Option<Path>, transform: Transform) {
        if let (Some(path), Some(paint)) = (path, paint(node, "fill")) {
            let transform = transform.post_concat(self.transform);
            let rule = FillRule::Winding;
            self.pixels.fill_path(&path, &paint, rule, transform, None);
        }
    }

    /// Strokes a path in the stroke colour of a node; no effect without a path, that is, without a length.
    fn stroke(&mut self, node: Node, path: Option<Path>) {
        if let (Some(path), Some(paint)) = (path, paint(node, "stroke")) {
            let stroke = Stroke {
                width: number(node, "stroke-width"),
                ..Stroke::default()
            };
            let transform = self.transform;
            self.pixels
                .stroke_path(&path, &paint, &stroke, transform, None);
        }
    }
}

fn attribute<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    let value = node.attribute(name);
    value.unwrap_or_else(|| panic!("a `{}` of a chart has `{name}`", node.tag_name().name()))
}

fn number(node: Node, name: &str) -> f32 {
    let value = attribute(node, name);
    value.parse().expect("coordinates of charts are numbers")
}

/// A coordinate attribute, which may be a percentage of `whole`; 0 if the attribute is missing.
fn length(node: Node, name: &str, whole: f32) -> f32 {
    match node.attribute(name) {
        None => 0.0,
        Some("100%") => whole,
        Some(_) => number(node, name),
    }
}

/// Paint of a `fill` or `stroke` attribute of the form `#rrggbb`; `None` for `none`.
fn paint(node: Node, name: &str) -> Option<Paint<'static>> {
    let hex = attribute(node, name).strip_prefix('#')?;
    let rgb = u32::from_str_radix(hex, 16).expect("colours of charts are hexadecimal");
    let [_, red, green, blue] = rgb.to_be_bytes();
    let opacity: f32 = node
        .attribute("opacity")
        .map_or(1.0, |_| number(node, "opacity"));
    let mut paint = Paint::default();
    paint.set_color(Color::from_rgba8(
        red,
        green,
        blue,
        (opacity * 255.0).round() as u8,
    ));
    Some(paint)
}

/// Corners of a polyline or polygon.
fn points<'a>(node: Node<'a, '_>) -> impl Iterator<Item = (f32, f32)> + 'a {
    let pairs = attribute(node, "points").split_ascii_whitespace();
    let coordinate = |text: &str| text.parse().expect("coordinates of charts are numbers");
    pairs.map(move |pair| {
        let (x, y) = pair.split_once(',').expect("a point has two coordinates");
        (coordinate(x), coordinate(y))
    })
}

/// A path through the points; `None` for fewer than two points.
fn path(points: impl Iterator<Item = (f32, f32)>, is_closed: bool) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for (x, y) in points {
        if builder.is_empty() {
            builder.move_to(x, y);
        } else {
            builder.line_to(x, y);
        }
    }
    if is_closed {
        builder.close();
    }
    builder.finish()
}

/// Clockwise rotation of a text about its position.
fn degrees(node: Node) -> f32 {
    let Some(transform) = node.attribute("transform") else {
        return 0.0;
    };
    let arguments = transform.strip_prefix("rotate(");
    let degrees = arguments.and_then(|a| a.split(',').next()?.parse().ok());
    degrees.expect("texts of charts are rotated about a point")
}

/// Outlines of the letters of a text, in units of the drawing, before rotation; `None` if no letter has an outline.
/// Kerning is applied, but no shaping: letters that other programs join, as in Arabic, stand alone.
fn text(node: Node) -> Option<Path> {
    let font = &FONTS[usize::from(node.attribute("font-weight") == Some("bold"))];
    let size = number(node, "font-size");
    // SVG shows a line break as a space, and trims spaces at both ends of a text.
    let words = node.text().unwrap_or_default().split_ascii_whitespace();
    let glyphs: Vec<GlyphId> = words
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .map(|letter| font.glyph_index(letter).unwrap_or_default())
        .collect();
    let scale = size / f32::from(font.units_per_em());
    let (places, width) = places(font, &glyphs);
    let start = match attribute(node, "text-anchor") {
        "start" => 0.0,
        "middle" => -width / 2.0,
        "end" => -width,
        other => unreachable!("charts have no anchor `{other}`"),
    };
    let x_height = font
        .x_height()
        .map_or(size / 2.0, |height| f32::from(height) * scale);
    let below = attribute(node, "dy");
    let below = match (below.strip_suffix("em"), below.strip_suffix("ex")) {
        (Some(em), _) => em.parse::<f32>().map(|em| em * size),
        (_, Some(ex)) => ex.parse::<f32>().map(|ex| ex * x_height),
        (None, None) => below.parse(),
    };
    let below = below.expect("texts of charts are shifted by a length");
    let mut outlines = Outlines {
        path: PathBuilder::new(),
        origin: (0.0, number(node, "y") + below),
        scale,
    };
    for (glyph, place) in glyphs.into_iter().zip(places) {
        outlines.origin.0 = number(node, "x") + (start + place) * scale;
        font.outline_glyph(glyph, &mut outlines);
    }
    outlines.path.finish()
}

/// Begin of each glyph of a line, and width of the line, in units of the font.
fn places(font: &Face, glyphs: &[GlyphId]) -> (Vec<f32>, f32) {
    let kerning = |left: GlyphId, right: GlyphId| -> i16 {
        let tables = font.tables().kern.into_iter().flat_map(|k| k.subtables);
        let tables = tables.filter(|t| t.horizontal && !t.variable && !t.has_cross_stream);
        tables.filter_map(|t| t.glyphs_kerning(left, right)).sum()
    };
    let mut place = 0.0;
    let mut places = Vec::new();
    for (i, glyph) in glyphs.iter().enumerate() {
        if i > 0 {
            place += f32::from(kerning(glyphs[i - 1], *glyph));
        }
        places.push(place);
        place += f32::from(font.glyph_hor_advance(*glyph).unwrap_or(0));
    }
    (places, place)
}

/// Collector of glyph outlines; the vertical axis of a font points upwards.
struct Outlines {
    path: PathBuilder,
    /// Origin of the glyph in units of the drawing.
    origin: (f32, f32),
    /// Units of the drawing per unit of the font.
    scale: f32,
}

impl Outlines {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        let (left, base) = self.origin;
        (left + x * self.scale, base - y * self.scale)
    }
}

impl OutlineBuilder for Outlines {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::chart::{Axis, ChartOverlay, Column, SeriesStyle, Unit, WIDE};

    fn chart(title: &str) -> Chart {
        Chart {
            id: "c".into(),
            title: title.into(),
            about: String::new(),
            x: Axis::linear("time", Unit::Number),
            y: Axis::linear("operations/s", Unit::Number),
            at: vec![0.0, 1.0, 2.0],
            columns: vec![Column {
                name: "read".into(),
                unit: Unit::Number,
                values: vec![Some(1.0), Some(3.0), Some(2.0)],
                style: Some(SeriesStyle::Series(0)),
            }],
            is_stacked: false,
            extra: ChartOverlay::None,
            marks: vec![],
        }
    }

    fn pixels(title: &str, theme: Theme) -> Pixmap {
        Pixmap::decode_png(&png(&chart(title), WIDE, theme).unwrap()).unwrap()
    }

    #[test]
    fn a_picture_has_twice_the_pixels_of_the_drawing_and_its_colours() {
        for (theme, background, series) in [
            (Theme::Light, [255, 255, 255], [0x1f, 0x6f, 0xb4]),
            (Theme::Dark, [0x14, 0x18, 0x1d], [0x6c, 0xb2, 0xeb]),
        ] {
            let picture = pixels("Operations per second", theme);
            assert_eq!((picture.width(), picture.height()), (1920, 600));
            let is = |p: &tiny_skia::PremultipliedColorU8, c: [u8; 3]| {
                [p.red(), p.green(), p.blue()] == c && p.alpha() == 255
            };
            let count = |c| picture.pixels().iter().filter(|p| is(p, c)).count();
            assert!(count(background) > picture.pixels().len() * 8 / 10);
            // The series is a line across the picture, at least two pixels thick.
            assert!(count(series) > 1000, "{theme:?}: {}", count(series));
        }
    }

    #[test]
    fn words_are_drawn_with_the_letters_that_come_along() {
        let (with, without) = (pixels("Operations", Theme::Light), pixels("", Theme::Light));
        let differing = with.pixels().iter().zip(without.pixels());
        let differing = differing.filter(|(a, b)| a != b).count();
        assert!(differing > 500, "{differing} pixels of the title");
        let names = FONTS.each_ref().map(|font| {
            let mut names = font.names().into_iter();
            // A font contains its name in several encodings.
            names.find_map(|name| {
                let is_full = name.name_id == ttf_parser::name_id::FULL_NAME;
                name.to_string().filter(|_| is_full)
            })
        });
        let expected = ["DejaVu Sans", "DejaVu Sans Bold"];
        assert_eq!(names, expected.map(|name| Some(name.to_owned())));
    }

    #[test]
    fn letters_stand_where_their_widths_and_kerning_put_them() {
        let [regular, _] = &*FONTS;
        let glyphs = |text: &str| -> Vec<GlyphId> {
            let letters = text.chars().map(|c| regular.glyph_index(c).unwrap());
            letters.collect()
        };
        let width = |text: &str| places(regular, &glyphs(text)).1;
        assert_eq!(width("HH"), 2.0 * width("H"));
        assert!(width("AV") < width("A") + width("V"), "letters are kerned");
        let (places, _) = places(regular, &glyphs("HiH"));
        assert_eq!(places, [0.0, width("H"), width("Hi")]);
    }

    #[test]
    fn elements_are_drawn_where_they_say() {
        let svg = r##"<svg>
            <rect width="100%" height="100%" fill="#ffffff"/>
            <rect x="10" y="10" width="20" height="20" opacity="0.5" fill="#000000" stroke="none"/>
            <line opacity="1" stroke="#ff0000" stroke-width="10" x1="0" y1="55" x2="100" y2="55"/>
            <polygon opacity="1" fill="#00ff00" points="60,0 100,0 100,40 60,40 "/>
            <circle cx="8" cy="80" r="8" opacity="1" fill="#0000ff" stroke="none" stroke-width="1"/>
            <polyline fill="none" opacity="1" stroke="#00ffff" stroke-width="10" points="85,60 85,100 "/>
            <text x="60" y="100" dy="0" text-anchor="start" font-size="40" opacity="1" fill="#123456"
                transform="rotate(270, 60, 100)">BLOCK</text>
        </svg>"##;
        let svg = svg.replace("BLOCK", "\u{2588}");
        let size = Size {
            width: 10,
            height: 10,
        };
        let mut canvas = Canvas::new(Pixmap::new(20, 20).unwrap(), size);
        let document = Document::parse(&svg).unwrap();
        for node in document.root_element().children() {
            canvas.draw(node);
        }
        // Positions in pixels; a pixel has five units.
        for ((x, y), expected) in [
            ((0, 0), [255, 255, 255]),
            ((3, 3), [127, 127, 127]),
            ((1, 10), [255, 0, 0]),
            ((15, 5), [0, 255, 0]),
            ((1, 15), [0, 0, 255]),
            ((17, 15), [0, 255, 255]),
            // A full block, rotated: it extends to the left and upwards from its position.
            ((10, 17), [0x12, 0x34, 0x56]),
            ((19, 16), [255, 255, 255]),
        ] {
            let pixel = canvas.pixels.pixel(x, y).unwrap();
            let found = [pixel.red(), pixel.green(), pixel.blue()];
            let near = found.iter().zip(expected).all(|(a, b)| a.abs_diff(b) <= 1);
            assert!(near, "{x} {y}: {found:?} instead of {expected:?}");
        }
    }
}
