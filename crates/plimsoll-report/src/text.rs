//! Lines of text: wrapping and colour.

use crate::document::Tone;
use plimsoll_diagnostics::foreign;
use plimsoll_plan::Count;
use plimsoll_results::Reason;
use std::collections::BTreeMap;

/// Paint for texts: applies ANSI colours and weights if the field is true.
#[derive(Debug, Clone, Copy)]
pub struct Paint(pub bool);

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        // A name or a path may contain a line break, which must not start a new line.
        let text = foreign::escaped(text);
        if self.0 {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.into_owned()
        }
    }

    /// Escaped text in bold; without ANSI codes if colours are off.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Escaped text in the ANSI colour of a tone: green for good, yellow for doubtful, red for bad.
    #[must_use]
    pub fn tone(self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Plain => foreign::escaped(text).into_owned(),
            Tone::Good => self.with("1;32", text),
            Tone::Doubtful => self.with("1;33", text),
            Tone::Bad => self.with("1;31", text),
        }
    }
}

/// A space at which a line is not broken.
const HARD_SPACE: &str = "\u{a0}";

/// Joins parts into a list that [`paragraph`] only breaks between parts.
pub(crate) fn list(parts: &[impl AsRef<str>], separator: &str) -> String {
    let parts = parts.iter().map(|p| p.as_ref().replace(' ', HARD_SPACE));
    parts.collect::<Vec<_>>().join(separator)
}

/// List of error codes with the number of failed operations, such as `EIO 3, ENOENT 1`.
pub(crate) fn error_counts(codes: &BTreeMap<String, u64>) -> String {
    let counts = codes
        .iter()
        .map(|(code, n)| format!("{code} {}", Count(*n)));
    counts.collect::<Vec<_>>().join(", ")
}

/// Codes of reasons in parentheses, after a space; empty without reasons.
#[must_use]
pub fn reason_codes(reasons: &[Reason]) -> String {
    let codes: Vec<&str> = reasons.iter().map(|r| r.code.as_str()).collect();
    match codes.is_empty() {
        true => String::new(),
        false => format!(" ({})", codes.join(", ")),
    }
}

/// Appends `label` and `text`, broken at spaces to `width` columns; the lines after the first
/// are indented to the text. A word longer than a line, such as a path, is not broken.
pub fn paragraph(out: &mut String, label: &str, text: &str, width: usize) {
    let indent = label.chars().count();
    let room = width.saturating_sub(indent).max(20);
    out.push_str(label);
    let mut column = 0;
    for word in text.split_ascii_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > room {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(&word.replace(HARD_SPACE, " "));
        column += length;
    }
    out.push('\n');
}

/// Replaces the middle of a text that is longer than `width` columns by `…`.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.into();
    }
    let kept = width.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let begin: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{begin}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_spaces_and_indented() {
        let mut out = String::new();
        paragraph(&mut out, "note: ", "one two three four five six seven", 26);
        assert_eq!(out, "note: one two three four\n      five six seven\n");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shorten("abcdefghij", 5), "ab…ij");
        assert_eq!(shorten("abc", 5), "abc");
    }
}
