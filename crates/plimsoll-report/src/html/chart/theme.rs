//! Colours of charts. Charts are drawn in placeholder colours, which are replaced by variables of the page's style
//! sheet or by the colours of a theme.

use super::{MAX_SERIES, SeriesStyle};
use plotters::style::RGBColor;

/// Colour scheme of a page: light or dark.
#[derive(Debug, Clone, Copy)]
pub enum Theme {
    /// Dark on white.
    Light,
    /// Light on black.
    Dark,
}

/// Part of a chart that has its own colour, such as the grid or one of the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Grid,
    Text,
    Series(SeriesStyle),
    Heat,
    Shade,
}

/// A role, its variable in the style sheet, and its colours in both themes.
struct Color(Role, &'static str, [&'static str; 2]);

/// Background colours of the light and the dark theme.
pub(super) const BACKGROUND: [&str; 2] = ["#ffffff", "#14181d"];

pub(super) const MAIN: Role = Role::Series(SeriesStyle::Main);

const fn series(number: usize) -> Role {
    Role::Series(SeriesStyle::Series(number))
}

/// Chart colours of the light and the dark theme; series have a contrast of at least 3:1 to the background.
const COLORS: [Color; 5 + MAX_SERIES] = [
    Color(Role::Grid, "--grid", ["#dfe3e8", "#2f3740"]),
    Color(Role::Text, "--soft", ["#4d5763", "#aab4c0"]),
    Color(MAIN, "--ink", ["#1c2229", "#eef2f6"]),
    Color(Role::Heat, "--heat", ["#1f5fae", "#6cb2eb"]),
    Color(Role::Shade, "--shade", ["#b3261e", "#f2b8b5"]),
    Color(series(0), "--s0", ["#1f6fb4", "#6cb2eb"]),
    Color(series(1), "--s1", ["#c2500a", "#f59b55"]),
    Color(series(2), "--s2", ["#1a7f4b", "#5fcf8f"]),
    Color(series(3), "--s3", ["#8b4fb8", "#c79bf2"]),
    Color(series(4), "--s4", ["#8f6b00", "#e2c044"]),
    Color(series(5), "--s5", ["#00808a", "#4fd0d9"]),
    Color(series(6), "--s6", ["#c2397a", "#f27fb2"]),
    Color(series(7), "--s7", ["#5c6670", "#97a3b0"]),
];

/// First byte of every placeholder colour, which no theme uses; the second byte is a [`Part`], and the third byte is the
/// index in [`COLORS`].
const PLACEHOLDER: u8 = 1;

/// Part of a drawing that the script of a page finds by its attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// A part that no script needs.
    Plain,
    /// Beginning of the parts that move when the time axis is zoomed. The parts last until the end of the drawing.
    Data,
    /// Label or mark of a tick of the first axis.
    Tick,
    /// A line with its number in the chart.
    Line(usize),
}

impl Part {
    /// Maximum number of a line that has attributes of its own.
    const MAX_LINE: usize = 200;

    fn byte(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Data => 1,
            Self::Tick => 2,
            Self::Line(number) => 3 + number.min(Self::MAX_LINE) as u8,
        }
    }

    /// Attributes of an element of the part, after a space.
    fn attributes(byte: u8) -> String {
        match byte {
            0 | 1 => String::new(),
            2 => " class=\"tick\"".into(),
            line => format!(" data-line=\"{}\"", line - 3),
        }
    }
}

impl Role {
    /// The position in [`COLORS`].
    fn index(self) -> usize {
        let role = match self {
            Self::Series(SeriesStyle::Series(n)) => series(n % MAX_SERIES),
            role => role,
        };
        let found = COLORS.iter().position(|c| c.0 == role);
        found.expect("every role has a colour")
    }

    /// Placeholder colour with which the chart is drawn.
    pub(crate) fn placeholder(self) -> RGBColor {
        self.of(Part::Plain)
    }

    /// Placeholder colour of a part.
    pub(crate) fn of(self, part: Part) -> RGBColor {
        RGBColor(PLACEHOLDER, part.byte(), self.index() as u8)
    }

    /// Style sheet variable with the colour of the role.
    pub(crate) fn variable(self) -> &'static str {
        COLORS[self.index()].1
    }
}

/// Replaces each placeholder colour in an SVG; `with` makes an attribute's value, in quotes, from the byte of a part and
/// a colour, and may add attributes after the value.
fn replace(svg: &str, with: impl Fn(u8, &Color) -> String) -> String {
    let begin = format!("\"#{PLACEHOLDER:02X}");
    let mut pieces = svg.split(&begin);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let byte = |at: usize| u8::from_str_radix(piece.get(at..at + 2)?, 16).ok();
        let color = byte(2).and_then(|index| COLORS.get(usize::from(index)));
        match (byte(0), color, piece.get(4..5)) {
            (Some(part), Some(color), Some("\"")) => {
                out.push_str(&with(part, color));
                out.push_str(&piece[5..]);
            }
            _ => {
                out.push_str(&begin);
                out.push_str(piece);
            }
        }
    }
    out
}

/// Replaces the placeholder colours of a drawing by variables of the page's style sheet, which follow the theme, and adds
/// the attributes of the parts.
pub(crate) fn for_page(svg: &str) -> String {
    replace(svg, |part, c| {
        format!("\"var({})\"{}", c.1, Part::attributes(part))
    })
}

/// Replaces the placeholder colours of a drawing by the light theme's colours, for a picture in a separate file.
pub(crate) fn for_file(svg: &str) -> String {
    replace(svg, |_, c| format!("\"{}\"", c.2[0]))
}

/// Splits a drawing in placeholder colours before the element that begins [`Part::Data`], and after this element; `None`
/// without such an element.
pub(crate) fn split_at_data(svg: &str) -> Option<(&str, &str)> {
    let mark = format!("\"#{PLACEHOLDER:02X}{:02X}", Part::Data.byte());
    let at = svg.find(&mark)?;
    let begin = svg[..at].rfind('<')?;
    let end = at + svg[at..].find("/>")? + "/>".len();
    Some((&svg[..begin], &svg[end..]))
}

/// Declarations of all variables in a theme, for a style sheet.
#[must_use]
pub fn style(theme: Theme) -> String {
    let at = theme as usize;
    let mut out = format!("--paper:{};", BACKGROUND[at]);
    for Color(_, variable, colors) in &COLORS {
        out.push_str(&format!("{variable}:{};", colors[at]));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance by WCAG 2.
    fn luminance(hex: &str) -> f64 {
        let channel = |at: usize| {
            let v = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if v <= 0.03928 {
                v / 12.92
            } else {
                ((v + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_line_and_word_can_be_told_from_the_background() {
        for Color(role, variable, colors) in COLORS.iter().filter(|c| c.0 != Role::Grid) {
            let needed = if *role == Role::Text { 4.5 } else { 3.0 };
            for (color, background) in colors.iter().zip(BACKGROUND) {
                assert!(contrast(color, background) >= needed, "{variable}");
            }
        }
    }

    #[test]
    fn each_role_has_a_colour_of_its_own() {
        let all: Vec<Role> = (0..MAX_SERIES)
            .map(series)
            .chain([Role::Grid, Role::Text, Role::Heat, Role::Shade, MAIN])
            .collect();
        let mut seen: Vec<usize> = all.iter().map(|r| r.index()).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..COLORS.len()).collect::<Vec<_>>());
        assert_eq!(series(9).variable(), "--s1");
    }
}
