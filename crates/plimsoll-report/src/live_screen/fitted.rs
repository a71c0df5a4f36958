//! Lines that drop whole parts if the screen is narrow.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Part of a line of the live screen.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    text: String,
    style: Style,
    /// Drop order: a narrow line drops the part with the highest rank first.
    rank: usize,
    /// Separator before the part, in place of the line's separator; unused if the line drops the preceding part.
    joint: Option<&'static str>,
}

impl Part {
    pub(crate) fn new(rank: usize, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            style: Style::new(),
            rank,
            joint: None,
        }
    }

    pub(crate) fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }

    pub(crate) fn joined_by(self, joint: &'static str) -> Self {
        Self {
            joint: Some(joint),
            ..self
        }
    }
}

/// Line of the parts with the lowest ranks that fit into `width` columns. At least one part remains; a remaining part
/// that is wider than `width` ends in `…`.
pub(crate) fn fitted(parts: Vec<Part>, separator: &'static str, width: u16) -> Line<'static> {
    let width = usize::from(width);
    let mut parts: Vec<Option<Part>> = parts.into_iter().map(Some).collect();
    loop {
        let line = joined(&parts, separator);
        let left = parts.iter().enumerate();
        let left = left.filter_map(|(i, part)| Some((part.as_ref()?.rank, i)));
        match left.clone().max() {
            Some((_, last)) if line.width() > width && left.count() > 1 => parts[last] = None,
            _ => return shortened(line, width),
        }
    }
}

fn joined(parts: &[Option<Part>], separator: &'static str) -> Line<'static> {
    let mut spans = Vec::new();
    let mut has_previous = false;
    for part in parts {
        if let Some(part) = part {
            if !spans.is_empty() {
                let joint = part.joint.filter(|_| has_previous);
                spans.push(Span::raw(joint.unwrap_or(separator)));
            }
            spans.push(Span::styled(part.text.clone(), part.style));
        }
        has_previous = part.is_some();
    }
    Line::from(spans)
}

/// Shortens a line of one part to `width` columns.
fn shortened(mut line: Line<'static>, width: usize) -> Line<'static> {
    if line.width() <= width {
        return line;
    }
    if let Some(span) = line.spans.last_mut() {
        let mut text = std::mem::take(&mut span.content).into_owned();
        while !text.is_empty() && Span::raw(&*text).width() >= width {
            text.pop();
        }
        span.content = (text.trim_end().to_owned() + "…").into();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_line_drops_the_least_important_parts() {
        let line = |width| {
            let parts = vec![
                Part::new(0, "phase"),
                Part::new(3, "1:00"),
                Part::new(2, "9:00 left").joined_by(", "),
                Part::new(1, "5 errors"),
            ];
            fitted(parts, "  ", width).to_string()
        };
        assert_eq!(line(32), "phase  1:00, 9:00 left  5 errors");
        assert_eq!(line(31), "phase  9:00 left  5 errors");
        assert_eq!(line(25), "phase  5 errors");
        assert_eq!(line(14), "phase");
        assert_eq!(line(4), "pha…");
        assert_eq!(line(1), "…");
        assert_eq!(fitted(vec![], "  ", 10).to_string(), "");
    }
}
