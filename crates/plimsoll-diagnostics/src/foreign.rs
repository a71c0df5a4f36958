//! Escaping of untrusted text for display: names of files, workloads and operations, notes, messages of servers and
//! commands.
//!
//! Some invisible characters alter the surrounding text: control characters move the cursor of a terminal, direction
//! marks reverse a line, zero-width characters hide within a name, and others make XML ill-formed. All outputs use the
//! same list of unprintable characters, [`is_unprintable`]. In text, an unprintable character is replaced by an escape
//! such as `\u001b`, which has the same meaning in JSON; in markup, by U+FFFD, the replacement character.
//!
//! ```
//! use plimsoll_diagnostics::foreign;
//!
//! assert_eq!(foreign::escaped("a\u{1b}]0;b\n"), r"a\u001b]0;b\u000a");
//! assert_eq!(foreign::escaped_lines("a\u{202e}\n\tb\n"), "a\\u202e\n\tb\n");
//! assert_eq!(foreign::replaced("a\0\nb"), "a\u{fffd}\nb");
//! ```

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character must not be displayed: a control character (C0, DEL, C1), direction mark, zero-width character,
/// line or paragraph separator, or a character that XML excludes.
#[must_use]
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{061c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fffe}'
                | '\u{ffff}'
        )
}

/// Escapes every unprintable character of a single-line text, such as a name.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    rewritten(text, Lines::None, escape)
}

/// Escapes the unprintable characters of a multi-line text, except line ends and tabs; CRLF becomes a line feed. JSON
/// text keeps its meaning, because the escapes, such as `\u001b`, are escapes of JSON too.
#[must_use]
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    rewritten(text, Lines::Kept, escape)
}

/// Escapes the unprintable characters of a text for a terminal, except line ends, tabs and colours; CRLF becomes a line
/// feed. An untrusted text can change nothing but the style and colour of letters.
#[must_use]
pub fn escaped_but_colors(text: &str) -> Cow<'_, str> {
    rewritten(text, Lines::Kept, |out, rest| match color(rest) {
        Some(sequence) => {
            out.push_str(sequence);
            sequence.len()
        }
        None => escape(out, rest),
    })
}

/// Replaces the unprintable characters of HTML, SVG or Markdown by U+FFFD, except line ends and tabs; CRLF becomes a
/// line feed.
#[must_use]
pub fn replaced(text: &str) -> Cow<'_, str> {
    rewritten(text, Lines::Kept, |out, rest| {
        out.push(char::REPLACEMENT_CHARACTER);
        first(rest).len_utf8()
    })
}

/// Whether line ends and tabs of a text are kept, or escaped like other control characters.
#[derive(Clone, Copy, PartialEq)]
enum Lines {
    None,
    Kept,
}

/// Copies a text, and calls `write` with the remaining text at each unprintable character; `write` returns the number
/// of bytes consumed. If line ends are kept, the carriage return of CRLF is omitted.
fn rewritten(text: &str, lines: Lines, write: impl Fn(&mut String, &str) -> usize) -> Cow<'_, str> {
    let stays = |c: char| lines == Lines::Kept && matches!(c, '\n' | '\t');
    let unprintable = |c: char| is_unprintable(c) && !stays(c);
    if !text.contains(unprintable) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(unprintable) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let consumed = match lines == Lines::Kept && rest.starts_with("\r\n") {
            true => 1,
            false => write(&mut out, rest),
        };
        rest = &rest[consumed..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Appends the first character of a text as an escape; returns the length of the character in bytes.
fn escape(out: &mut String, rest: &str) -> usize {
    let c = first(rest);
    write!(out, "\\u{:04x}", u32::from(c)).expect("a string takes all text");
    c.len_utf8()
}

fn first(rest: &str) -> char {
    rest.chars()
        .next()
        .expect("an unprintable character was found")
}

/// Escape sequence at the start of a text, if the sequence sets only the style (weight, italics, underline) and the
/// foreground colour of letters, and no colour that may equal the background.
fn color(rest: &str) -> Option<&str> {
    let (numbers, _) = rest.strip_prefix("\u{1b}[")?.split_once('m')?;
    let harmless = |n: &str| {
        let digits = n.len() <= 2 && n.bytes().all(|b| b.is_ascii_digit());
        digits && matches!(n.parse(), Ok(0..=4 | 22..=24 | 31..=36 | 39 | 91..=96))
    };
    let all = numbers.is_empty() || numbers.split(';').all(harmless);
    all.then(|| &rest[.."\u{1b}[m".len() + numbers.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All characters that no output may contain, listed independently of [`is_unprintable`] from the code points of
    /// Unicode and XML.
    fn unprintable() -> impl Iterator<Item = char> {
        let ranges = [
            0..=0x1f,
            0x7f..=0x9f,
            0x61c..=0x61c,
            0x200b..=0x200f,
            0x2028..=0x202e,
            0x2060..=0x2060,
            0x2066..=0x2069,
            0xfeff..=0xfeff,
            0xfffe..=0xffff,
        ];
        ranges.into_iter().flatten().filter_map(char::from_u32)
    }

    #[test]
    fn everything_unprintable_is_escaped_and_nothing_else() {
        let all: Vec<char> = unprintable().collect();
        for c in '\0'..=char::MAX {
            let text = format!("a{c}b");
            let is = all.contains(&c);
            assert_eq!(is_unprintable(c), is, "{c:?}");
            assert_eq!(escaped(&text) != text, is, "{c:?}");
            let stays = !is || matches!(c, '\n' | '\t');
            assert_eq!(escaped_lines(&text) == text, stays, "{c:?}");
            assert_eq!(escaped_but_colors(&text) == text, stays, "{c:?}");
            assert_eq!(replaced(&text) == text, stays, "{c:?}");
        }
        assert_eq!(replaced("\u{85}\r\n\r"), "\u{fffd}\n\u{fffd}");
        assert_eq!(escaped_lines("a\r\nb\rc"), "a\nb\\u000dc");
        assert_eq!(escaped("a\r\nb"), r"a\u000d\u000ab");
        let bytes: Vec<u8> = (0..=255).collect();
        let lossy = String::from_utf8_lossy(&bytes);
        assert!(!escaped(&lossy).contains(is_unprintable));
    }

    #[test]
    fn only_colors_of_letters_pass() {
        for sequence in ["\u{1b}[0m", "\u{1b}[1;32m", "\u{1b}[m", "\u{1b}[36;1;4m"] {
            let text = format!("a{sequence}b");
            assert_eq!(escaped_but_colors(&text), text);
            assert!(!escaped_lines(&text).contains('\u{1b}'));
        }
        for sequence in [
            "\u{1b}[8m",
            "\u{1b}[30m",
            "\u{1b}[41m",
            "\u{1b}[38;5;1m",
            "\u{1b}[1;8m",
            "\u{1b}[1;;m",
            "\u{1b}[2J",
            "\u{1b}[+1m",
            "\u{1b}[001m",
            "\u{1b}]0;m",
            "\u{1b}[1",
            "\u{9b}1m",
        ] {
            let shown = escaped_but_colors(sequence);
            assert!(!shown.contains(is_unprintable), "{shown}");
        }
    }

    proptest! {
        /// Displayed text equals the original except for unprintable characters, displaying is idempotent, and colours
        /// are the only escape sequences in the result.
        #[test]
        fn texts_are_shown_as_they_are_but_for_what_is_unprintable(
            parts in prop::collection::vec(
                prop_oneof![
                    any::<char>().prop_map(String::from),
                    prop::sample::select(unprintable().collect::<Vec<_>>()).prop_map(String::from),
                    Just("\u{1b}[1;31m".to_owned()),
                    Just("\u{1b}[8m".to_owned()),
                    Just("\r\n".to_owned()),
                    "[a-z\\\\\"]{1,3}",
                ],
                0..20,
            )
        ) {
            let text = parts.concat();
            let kept = |c: &char| !is_unprintable(*c);
            let kept_or_line = |c: &char| kept(c) || matches!(c, '\n' | '\t');
            prop_assert!(escaped(&text).chars().all(|c| kept(&c)));
            for shown in [escaped_lines(&text), replaced(&text)] {
                prop_assert!(shown.chars().all(|c| kept_or_line(&c)), "{shown:?}");
            }
            let colored = escaped_but_colors(&text);
            for at in colored.match_indices('\u{1b}').map(|(at, _)| at) {
                prop_assert!(color(&colored[at..]).is_some());
            }
            let plain: String = colored.split('\u{1b}').collect();
            prop_assert!(plain.chars().all(|c| kept_or_line(&c)));
            for f in [escaped, escaped_lines, escaped_but_colors, replaced] {
                let once = f(&text);
                prop_assert_eq!(f(&once), &*once);
                let printable: String = text.chars().filter(kept).collect();
                let mut wanted = printable.chars().peekable();
                for c in once.chars() {
                    wanted.next_if_eq(&c);
                }
                prop_assert_eq!(wanted.next(), None, "nothing printable is lost");
            }
            let json = serde_json::to_string_pretty(&[&text]).unwrap();
            let read: Vec<String> = serde_json::from_str(&escaped_lines(&json)).unwrap();
            prop_assert_eq!(&read[0], &text);
        }
    }
}
