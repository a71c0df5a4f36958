//! A report as one line: every run of white space is one space.
//!
//! Published reports have line breaks, or have all of them collapsed to spaces. The flow of both is the same text;
//! every byte of the flow has a position in the source, for errors and for line breaks.

use plimsoll_diagnostics::{Problem, Span};
use std::ops::Range;

/// A source text and its flow.
pub(super) struct TextFlow<'a> {
    pub(super) source: &'a str,
    pub(super) text: String,
    /// Offset in the source of each byte of the flow, and of the end of the flow.
    at: Vec<u32>,
    /// Offsets of the line ends in the source.
    line_ends: Vec<u32>,
}

/// A word of the flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    /// Range of the word's bytes in the flow.
    pub(super) range: Range<usize>,
}

impl Word<'_> {
    /// Whether the word consists only of the character `c`.
    pub(super) fn is_run_of(&self, c: char) -> bool {
        const MIN_RUN_LENGTH: usize = 3;
        self.text.len() >= MIN_RUN_LENGTH && self.text.chars().all(|x| x == c)
    }
}

impl<'a> TextFlow<'a> {
    /// The flow of a text, which must be shorter than 4 GiB.
    pub(super) fn new(source: &'a str) -> Self {
        let (mut text, mut at) = (String::new(), Vec::new());
        let mut space = None;
        for (offset, c) in source.char_indices() {
            if c.is_whitespace() {
                space = space.or(Some(offset));
                continue;
            }
            if let Some(offset) = space.take()
                && !text.is_empty()
            {
                text.push(' ');
                at.push(offset as u32);
            }
            text.push(c);
            at.extend((0..c.len_utf8()).map(|i| (offset + i) as u32));
        }
        at.push(source.trim_end().len() as u32);
        let ends = source.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        Self {
            source,
            text,
            at,
            line_ends: ends.map(|(i, _)| i as u32).collect(),
        }
    }

    /// Number, from 0, of the line that contains an offset of the source.
    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.line_ends.partition_point(|e| (*e as usize) < offset)
    }

    /// Byte range of line `number`, counted from 0, in the report's text, without the line end.
    pub(super) fn line(&self, number: usize) -> Range<usize> {
        let start = match number.checked_sub(1) {
            Some(before) => self.line_ends[before] as usize + 1,
            None => 0,
        };
        let end = self.line_ends.get(number).map(|e| *e as usize);
        start..end.unwrap_or(self.source.len())
    }

    /// Offset in the source of a position in the flow.
    pub(super) fn offset(&self, place: usize) -> usize {
        self.at[place.min(self.at.len() - 1)] as usize
    }

    /// Bytes of the source from which a part of the flow was made.
    pub(super) fn source_range(&self, range: &Range<usize>) -> Range<usize> {
        let start = self.offset(range.start);
        let end = match range.end {
            end if end > range.start => self.offset(end - 1) + 1,
            _ => start,
        };
        start..self.source.ceil_char_boundary(end)
    }

    /// Whether the source has a line break between two positions of the flow.
    pub(super) fn breaks_between(&self, from: usize, to: usize) -> bool {
        self.line_of(self.offset(from)) != self.line_of(self.offset(to))
    }

    /// A problem at a part of the flow.
    pub(super) fn problem(
        &self,
        range: &Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Problem {
        Problem::new(self.span(range), message, label)
    }

    /// Span in the source of a part of the flow.
    pub(super) fn span(&self, range: &Range<usize>) -> Span {
        let range = self.source_range(range);
        Span {
            file: 0,
            start: range.start as u32,
            end: range.end as u32,
        }
    }

    /// A problem at the end of the text.
    pub(super) fn problem_at_end(&self, message: impl Into<String>) -> Problem {
        let end = self.text.len();
        self.problem(&(end..end), message, "the text ends here")
    }

    /// Words of a part of the flow.
    pub(super) fn words(&self, range: Range<usize>) -> impl Iterator<Item = Word<'_>> {
        let mut start = range.start;
        self.text[range].split(' ').filter_map(move |text| {
            let word = Word {
                text,
                range: start..start + text.len(),
            };
            start += text.len() + 1;
            (!text.is_empty()).then_some(word)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn white_space_is_one_space() {
        let flow = TextFlow::new("\n a  b\r\n\tcä \n");
        assert_eq!(flow.text, "a b cä");
        let words: Vec<&str> = flow.words(0..flow.text.len()).map(|w| w.text).collect();
        assert_eq!(words, ["a", "b", "cä"]);
        assert!(flow.breaks_between(2, 4) && !flow.breaks_between(0, 2));
    }

    proptest! {
        #[test]
        fn every_word_knows_its_place(text in "[aä= \n\t]{0,60}") {
            let flow = TextFlow::new(&text);
            let words: Vec<Word> = flow.words(0..flow.text.len()).collect();
            let expected: Vec<&str> = text.split_whitespace().collect();
            prop_assert_eq!(words.iter().map(|w| w.text).collect::<Vec<_>>(), expected);
            for w in words {
                prop_assert_eq!(&text[flow.source_range(&w.range)], w.text);
            }
        }
    }
}
