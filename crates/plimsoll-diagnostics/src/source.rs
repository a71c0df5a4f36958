//! Texts that a user wrote, and positions in such texts.

use std::ops::Range;
use std::sync::Arc;

/// Text that a user wrote, such as a workload file or a setting on the command line; errors refer to spans of the text.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Name of the text in messages, such as the path of a file.
    pub name: String,
    /// Text as the user wrote it, to which the byte offsets of spans refer.
    pub text: String,
    /// Byte offset of the start of each line in the text.
    lines: Vec<usize>,
}

impl Source {
    /// Creates a source from a text and the name of the text in messages.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Arc<Self> {
        let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        Arc::new(Self {
            name: name.into(),
            text: text.into(),
            lines: std::iter::once(0).chain(ends.map(|(i, _)| i + 1)).collect(),
        })
    }

    /// Line and column of a byte offset in the text, both from 1; the column counts characters.
    #[must_use]
    pub fn position(&self, offset: usize) -> (u32, u32) {
        let offset = self.text.floor_char_boundary(offset);
        // The first line begins at 0, so at least one line begins at or before any offset.
        let line = self.lines.partition_point(|start| *start <= offset);
        let column = self.text[self.lines[line - 1]..offset].chars().count() + 1;
        (line as u32, column as u32)
    }
}

/// Byte range of a source text, to which an error refers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Index of the text in the list of sources of [`Diagnostics`](crate::Diagnostics), from 0.
    pub file: u16,
    /// Offset in the text of the first byte of the span.
    pub start: u32,
    /// Offset in the text of the byte after the last byte of the span.
    pub end: u32,
}

impl Span {
    /// Span of a byte range of `text`, which has the index `file`; the range is cut to the text and to whole
    /// characters.
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

    /// Span from the start of this span to the end of a later span in the same text.
    #[must_use]
    pub fn to(self, last: Span) -> Span {
        debug_assert_eq!(self.file, last.file, "spans of different texts");
        Span {
            end: last.end.max(self.end),
            ..self
        }
    }

    /// Offsets of the first byte of the span and of the byte after the last, as a range of the text.
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
