//! Texts and the places in them.

use std::ops::Range;
use std::sync::Arc;

/// A text that spans point into: a workload file, or a setting of the command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Name of the text in messages.
    pub name: String,
    /// The text.
    pub text: String,
    /// Offset of each line's first byte.
    lines: Vec<usize>,
}

impl Source {
    /// Creates a source from a text and its name in messages.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Arc<Self> {
        let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        Arc::new(Self {
            name: name.into(),
            text: text.into(),
            lines: std::iter::once(0).chain(ends.map(|(i, _)| i + 1)).collect(),
        })
    }

    /// Line and column of a byte offset, both from 1; the column counts characters.
    #[must_use]
    pub fn position(&self, offset: usize) -> (u32, u32) {
        let offset = self.text.floor_char_boundary(offset);
        // The first line begins at 0, so at least one line begins at or before any offset.
        let line = self.lines.partition_point(|start| *start <= offset);
        let column = self.text[self.lines[line - 1]..offset].chars().count() + 1;
        (line as u32, column as u32)
    }
}

/// A piece of a source text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Index into the list of sources that the span belongs to.
    pub file: u16,
    /// First byte.
    pub start: u32,
    /// Byte after the last one.
    pub end: u32,
}

impl Span {
    /// The span of a range of bytes of `text`, cut to the text and to whole characters.
    #[must_use]
    pub fn of(file: u16, range: Range<usize>, text: &str) -> Self {
        let start = text.floor_char_boundary(range.start);
        let end = text.floor_char_boundary(range.end).max(start);
        Self {
            file,
            start: start as u32,
            end: end as u32,
        }
    }

    /// The span from the start of this one to the end of another of the same text.
    #[must_use]
    pub fn to(self, last: Span) -> Span {
        debug_assert_eq!(self.file, last.file, "spans of different texts");
        Span {
            end: last.end.max(self.end),
            ..self
        }
    }

    /// The bytes it covers.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let s = Source::new("x", "aä$\nb");
        assert_eq!(s.position(0), (1, 1));
        assert_eq!(s.position(3), (1, 3));
        assert_eq!(s.position(5), (2, 1));
        assert_eq!(s.position(999), (2, 2));
    }
}
