//! Excerpts of a text for error messages: long lines are cut around their marks, and unprintable characters are
//! escaped.

use crate::foreign;
use crate::source::Source;
use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use std::ops::Range;

/// Maximum number of characters of a line shown per mark.
const MAX_COLUMNS: usize = 120;

/// Number of characters shown before a mark, within [`MAX_COLUMNS`].
const COLUMNS_BEFORE: usize = 40;

/// Maximum number of characters of a message, label or help; the middle of a longer text is omitted.
const MAX_CHARACTERS: usize = 500;

/// Text of a source with cut lines, and the marks (underlined ranges) in the text.
#[derive(Debug)]
pub(crate) struct Excerpt {
    name: String,
    text: String,
    /// Byte ranges of the marks in the cut text, in the order given.
    pub(crate) marks: Vec<Range<usize>>,
    /// Columns of the marks in the original text, in characters from 0.
    columns: Vec<usize>,
}

impl Excerpt {
    /// Cuts a text around marks, each of which lies within one line.
    pub(crate) fn new(source: &Source, marks: &[Range<usize>]) -> Self {
        let column = |m: &Range<usize>| source.position(m.start).1 as usize - 1;
        let mut excerpt = Self {
            name: foreign::escaped(&source.name).into_owned(),
            text: String::new(),
            marks: marks.to_vec(),
            columns: marks.iter().map(column).collect(),
        };
        let mut start = 0;
        for line in source.text.split_inclusive('\n') {
            let end = start + line.len();
            // A mark after the last byte of the text belongs to the last line.
            let last = end == source.text.len();
            let here = |m: &Range<usize>| {
                m.start >= start
                    && (m.start < end || last && m.start == end && !line.ends_with('\n'))
            };
            let on_line: Vec<usize> = (0..marks.len()).filter(|i| here(&marks[*i])).collect();
            excerpt.push_line(line, start, marks, &on_line);
            start = end;
        }
        let length = excerpt.text.len();
        for (mark, given) in excerpt.marks.iter_mut().zip(marks) {
            // A mark after a final line end is on no line.
            if given.start >= start && source.text.ends_with('\n') {
                *mark = length..length;
            }
        }
        excerpt
    }

    /// Appends a line that begins at byte `start`; `on_line` are the indices of the marks on the line.
    fn push_line(&mut self, line: &str, start: usize, marks: &[Range<usize>], on_line: &[usize]) {
        let content = line.trim_end_matches('\n').trim_end_matches('\r');
        // A mark on the line end moves to the end of the content.
        let within = |at: usize| (at - start).min(content.len());
        let windows = windows(content, on_line.iter().map(|i| within(marks[*i].start)));
        let mut shown_to = 0;
        for window in windows {
            if window.start > shown_to {
                self.text.push('…');
            }
            for i in on_line {
                let mark = within(marks[*i].start)..within(marks[*i].end);
                if window.contains(&mark.start) || mark.start == window.end {
                    let end = mark.end.min(window.end);
                    let before = foreign::escaped_lines(&content[window.start..mark.start]);
                    let length = foreign::escaped_lines(&content[mark.start..end]).len();
                    let moved = self.text.len() + before.len();
                    self.marks[*i] = moved..moved + length;
                }
            }
            self.text
                .push_str(&foreign::escaped_lines(&content[window.clone()]));
            shown_to = window.end;
        }
        if shown_to < content.len() {
            self.text.push('…');
        }
        if line.ends_with('\n') {
            self.text.push('\n');
        }
    }
}

/// Parts of a line that are shown, sorted and disjoint; `marks` are byte offsets of marks in the line.
fn windows(line: &str, marks: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    if line.len() <= MAX_COLUMNS {
        let whole = 0..line.len();
        return vec![whole];
    }
    let starts: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
    let byte = |character: usize| starts.get(character).copied().unwrap_or(line.len());
    let mut firsts: Vec<usize> = marks
        .map(|m| {
            starts
                .partition_point(|s| *s < m)
                .saturating_sub(COLUMNS_BEFORE)
        })
        .collect();
    if firsts.is_empty() {
        firsts.push(0);
    }
    firsts.sort_unstable();
    let mut windows: Vec<Range<usize>> = Vec::new();
    for first in firsts {
        let (from, to) = (byte(first), byte(first + MAX_COLUMNS));
        match windows.last_mut() {
            Some(before) if from <= before.end => before.end = to.max(before.end),
            _ => windows.push(from..to),
        }
    }
    windows
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let found = self.text.read_span(span, lines_before, lines_after)?;
        // Without context, the renderer asks for a mark's position, which is the position in the original text.
        let mut marks = self.marks.iter().zip(&self.columns);
        let at_mark = marks
            .find(|(m, _)| lines_before == 0 && lines_after == 0 && m.start == span.offset())
            .map(|(_, column)| *column);
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            found.data(),
            *found.span(),
            found.line(),
            at_mark.unwrap_or(found.column()),
            found.line_count(),
        )))
    }
}

/// Escapes a message and omits the middle of a long message.
pub(crate) fn shorten(text: &str) -> String {
    let text = &*foreign::escaped_lines(text);
    let length = text.chars().count();
    if length <= MAX_CHARACTERS {
        return text.into();
    }
    let half = MAX_CHARACTERS / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(length - half).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn marked(excerpt: &Excerpt, mark: usize) -> &str {
        &excerpt.text[excerpt.marks[mark].clone()]
    }

    #[test]
    fn marks_are_under_escapes() {
        let source = Source::new("x", "a\u{1b}b\u{202e}c\td\r\nnext\r\n");
        let e = Excerpt::new(&source, &[1..2, 2..6, 6..9, 9..10]);
        assert_eq!(e.text, "a\\u001bb\\u202ec\td\nnext\n");
        let marks: Vec<&str> = (0..4).map(|i| marked(&e, i)).collect();
        assert_eq!(marks, ["\\u001b", "b\\u202e", "c\td", ""]);
    }

    #[test]
    fn short_lines_are_left_whole() {
        let source = Source::new("x", "one\ntwo ä three\n");
        let e = Excerpt::new(&source, &[8..10, 17..17]);
        assert_eq!(e.text, source.text);
        assert_eq!(marked(&e, 0), "ä");
        assert_eq!(e.marks[1], 17..17);
    }

    #[test]
    fn a_long_line_is_cut_around_its_marks() {
        let line = format!(
            "{}HERE{}THERE{}",
            "a".repeat(1000),
            "b".repeat(1000),
            "c".repeat(999)
        );
        let source = Source::new("x", &format!("first\n{line}\nlast\n"));
        let (here, there) = (1006..1010, 2010..2015);
        let e = Excerpt::new(&source, &[there, here]);
        assert_eq!((marked(&e, 0), marked(&e, 1)), ("THERE", "HERE"));
        assert_eq!(e.text.matches('…').count(), 3);
        assert!(e.text.len() < 280, "{}", e.text);
        assert_eq!(e.columns, [2004, 1000]);
    }

    #[test]
    fn endless_messages_keep_both_ends() {
        let text = shorten(&format!("unknown `{}` here", "x".repeat(9000)));
        assert_eq!(text.chars().count(), MAX_CHARACTERS + 1);
        assert!(
            text.starts_with("unknown `x") && text.ends_with("x` here"),
            "{text}"
        );
    }

    proptest! {
        #[test]
        fn what_is_marked_stays_marked(
            text in "[aä\n]{0,400}",
            at in 0usize..400,
            length in 0usize..8,
        ) {
            let start = text.floor_char_boundary(at.min(text.len()));
            let end = text.floor_char_boundary((start + length).min(text.len()));
            let end = text[start..end].find('\n').map_or(end, |n| start + n);
            let source = Source::new("x", &text);
            let mark = start..end;
            let e = Excerpt::new(&source, std::slice::from_ref(&mark));
            prop_assert_eq!(marked(&e, 0), &text[start..end]);
            prop_assert_eq!(e.text.matches('\n').count(), text.matches('\n').count());
            let widest = e.text.lines().map(|l| l.chars().count()).max().unwrap_or(0);
            prop_assert!(widest <= MAX_COLUMNS + 2);
        }
    }
}
