//! Sections of a report: headings and their texts.

use super::flow::{TextFlow, Word};
use super::forms::known_headings;
use super::head::NO_FIGURE;
use super::number;
use super::table::INVALID_MARK;
use crate::disclosure::model::Section;
use std::ops::Range;

/// Minimum length of a line of `=` that separates parts; a shorter line underlines a heading. Reports are 80 columns
/// wide, and their longest heading has 49 characters.
const MIN_RULE_LENGTH: usize = 75;

/// A heading, and the range of the flow from the heading to the next one.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) heading: Range<usize>,
    pub(super) body: Range<usize>,
}

/// The parts below underlined headings, in order; `end` is the end of the report in the flow.
pub(super) fn parts(flow: &TextFlow, end: usize) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut from = 0;
    for word in flow.words(0..end) {
        // A line of `=` at the end of the text may be part of a longer separator that was cut.
        let cut = word.range.end == flow.text.len();
        if !word.is_run_of('=') || word.text.len() >= MIN_RULE_LENGTH || cut {
            continue;
        }
        let Some(heading) = heading_of(flow, &word, from) else {
            continue;
        };
        if let Some(before) = parts.last_mut() {
            before.body.end = heading.start.saturating_sub(1).max(before.body.start);
        }
        from = word.range.end;
        let start = (word.range.end + 1).min(end);
        parts.push(Part {
            name: flow.text[heading.clone()].to_owned(),
            heading,
            body: start..end,
        });
    }
    for part in &mut parts {
        part.body = without_rules(&flow.text, part.body.clone());
    }
    parts
}

/// The heading above a line of `=`; `None` if there is none after `from`.
fn heading_of(flow: &TextFlow, underline: &Word, from: usize) -> Option<Range<usize>> {
    let end = underline.range.start.checked_sub(1)?;
    if let Some(above) = line_above(flow, underline) {
        // The words of the line above must be the last words of the flow before the underline.
        let words = above.split_whitespace().collect::<Vec<_>>().join(" ");
        let start = end.checked_sub(words.len())?;
        let fits = start >= from && flow.text.get(start..end) == Some(&words);
        return (fits && is_heading(&words)).then_some(start..end);
    }
    let before = flow.text.get(from..end)?;
    let begins = |start: usize| start == 0 || flow.text.as_bytes()[start - 1] == b' ';
    // The width is in characters, because headings need not be ASCII.
    let width = underline.text.len();
    let as_wide = before.char_indices().rev().nth(width - 1);
    let as_wide = as_wide
        .map(|(at, _)| from + at)
        .filter(|start| begins(*start) && is_heading(&flow.text[*start..end]));
    let known = || {
        let ends = known_headings().filter(|name| before.ends_with(&**name));
        let longest = ends.map(|name| name.len()).max()?;
        Some(end - longest).filter(|start| begins(*start))
    };
    as_wide.or_else(known).map(|start| start..end)
}

/// Whether the text above an underline can be a heading; a row of the table of load points cannot.
fn is_heading(text: &str) -> bool {
    let is_cell =
        |word: &str| [NO_FIGURE, INVALID_MARK].contains(&word) || number::read(word).is_ok();
    !text.split_whitespace().all(is_cell)
        && text.len() < MIN_RULE_LENGTH
        && !text.starts_with(' ')
        && !text.contains("==")
        && !text.contains("--")
}

/// The line above an underline that has its own line; empty above the first line.
fn line_above<'a>(flow: &TextFlow<'a>, underline: &Word) -> Option<&'a str> {
    let range = flow.source_range(&underline.range);
    let number = flow.line_of(range.start);
    let line = flow.line(number);
    let blank = |range: Range<usize>| flow.source[range].trim().is_empty();
    let alone = blank(line.start..range.start) && blank(range.end..line.end);
    let above = number.checked_sub(1).map_or(0..0, |n| flow.line(n));
    alone.then(|| &flow.source[above])
}

/// A part of the flow without lines of `=` at its end.
pub(super) fn without_rules(text: &str, range: Range<usize>) -> Range<usize> {
    let piece = &text[range.clone()];
    let is_rule = |w: &str| w.len() >= MIN_RULE_LENGTH && w.bytes().all(|b| b == b'=');
    let mut kept = piece.trim_end();
    loop {
        let word = kept.rsplit(' ').next().unwrap_or("");
        match is_rule(word) {
            true => kept = kept[..kept.len() - word.len()].trim_end(),
            false => break,
        }
    }
    range.start..range.start + kept.len()
}

/// The section of a part with the line breaks of the source, without trailing blanks and without blank lines at both
/// ends.
pub(super) fn section(flow: &TextFlow, part: &Part) -> Section {
    let range = flow.source_range(&part.body);
    // The indent of the first line is part of the layout.
    let start = flow.line(flow.line_of(range.start)).start;
    let indent = match flow.source[start..range.start].trim().is_empty() {
        true => start,
        false => range.start,
    };
    let lines = flow.source[indent..range.end].lines().map(str::trim_end);
    let text = match part.body.is_empty() {
        true => String::new(),
        false => lines.collect::<Vec<_>>().join("\n"),
    };
    Section {
        name: part.name.clone(),
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(text: &str) -> Vec<(String, String)> {
        let flow = TextFlow::new(text);
        let found = parts(&flow, flow.text.len());
        let all = found.iter().map(|p| section(&flow, p));
        all.map(|s| (s.name, s.text)).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
        expected.iter().map(owned).collect()
    }

    #[test]
    fn headings_are_found_with_line_breaks_and_without() {
        let rule = "=".repeat(79);
        let text = format!(
            "{rule}\nOther Notes\n===========\n\n  a = b\n   c  d  \n\n{rule}\n\nMemory - Physical\n\
             =================\nnone\n{rule}\n"
        );
        let lines = [
            ("Other Notes", "  a = b\n   c  d"),
            ("Memory - Physical", "none"),
        ];
        assert_eq!(sections(&text), pairs(&lines));
        let flow = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let flat = [("Other Notes", "a = b c d"), ("Memory - Physical", "none")];
        assert_eq!(sections(&flow), pairs(&flat));
    }

    #[test]
    fn what_is_no_heading_is_text() {
        // The underline is longer than the text before it, and stands between words.
        assert_eq!(sections("ab ===== x"), []);
        assert_eq!(sections("some words here ======= x"), []);
        assert_eq!(
            sections("Notes ===== x ==== y"),
            pairs(&[("Notes", "x ==== y")])
        );
        // With line breaks, the line above is the heading whatever its width; a blank line is none.
        assert_eq!(
            sections("Other Notes\n=====\nx"),
            pairs(&[("Other Notes", "x")])
        );
        assert_eq!(sections("Other Notes\n\n=====\nx"), []);
    }

    #[test]
    fn known_headings_are_found_below_any_underline() {
        let text = "a b Memory - Physical ========= c";
        assert_eq!(sections(text), pairs(&[("Memory - Physical", "c")]));
        assert_eq!(sections("xMemory ======== c"), []);
        assert!(known_headings().all(|k| is_heading(&k)));
        let virtual_memory = "a b Memory - Virtual ======== c";
        assert_eq!(
            sections(virtual_memory),
            pairs(&[("Memory - Virtual", "c")])
        );
        assert_eq!(sections("a b Memory Notes ========= c"), []);
    }

    #[test]
    fn a_heading_without_text_has_an_empty_one() {
        let text = "Dataflow\n========\n\nOther Notes\n===========\nx";
        assert_eq!(
            sections(text),
            pairs(&[("Dataflow", ""), ("Other Notes", "x")])
        );
    }
}
