//! Layout of an ASCII report: 80 columns, tables, boxes, lists of fields, prose.
//!
//! All foreign text passes through [`line()`] or [`prose`]: their output is ASCII and cannot be mistaken for a heading.

use crate::disclosure::import::NO_FIGURE;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};
use unicode_normalization::UnicodeNormalization;

/// Width of a report in columns.
pub(super) const WIDTH: usize = 80;

/// Minimum width of a column of a table.
const MIN_COLUMN_WIDTH: usize = 6;

/// Structured part of a form section. All texts except [`Part::Prose`] are ASCII lines from [`line()`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Title of the following parts; the ASCII report draws a box around the title.
    Title(String),
    /// Form entries, each a name and a value.
    Fields(Vec<(&'static str, String)>),
    /// Table: column headings and rows.
    Table(Vec<&'static str>, Vec<Vec<String>>),
    /// Paragraphs before line wrapping; a blank line ends a paragraph.
    Prose(String),
    /// Items of a bulleted list.
    List(Vec<String>),
}

/// ASCII text of a form section: the parts with a blank line between two parts; [`NONE`] without parts.
pub(super) fn layout(parts: &[Part]) -> String {
    let part = |part: &Part| match part {
        Part::Title(title) => boxed(title),
        Part::Fields(of) => fields(of),
        Part::Table(head, rows) => table(head, rows),
        Part::Prose(text) => prose(text),
        Part::List(items) => list(items),
    };
    match parts.iter().map(part).collect::<Vec<_>>().join("\n\n") {
        text if text.is_empty() => NONE.into(),
        text => text,
    }
}

/// The text as a [`Part::Prose`]; no part for a text without words.
pub(super) fn paragraphs(text: &str) -> Vec<Part> {
    match prose(text).is_empty() {
        true => vec![],
        false => vec![Part::Prose(text.to_owned())],
    }
}

/// Text in place of a text that is not filled in.
const NOT_STATED: &str = "Not stated";

/// The text of an empty section.
const NONE: &str = "None";

/// Minimum length of a row of `=` that is an underline.
const MIN_UNDERLINE: usize = 3;

/// Options of the `textwrap` library for breaking lines at spaces only, whichever features of the library other crates
/// enable.
pub(super) fn at_spaces<'a>(width: usize) -> Options<'a> {
    Options::new(width)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
}

/// Converts a text to one line of ASCII: white space becomes one space, and a row of `=` becomes a row of `-`, which is
/// no underline.
pub(super) fn line(text: &str) -> String {
    let mut ascii = String::new();
    for c in text.nfkd() {
        push_ascii(&mut ascii, c);
    }
    let mut plain = String::new();
    let mut rest = ascii.as_str();
    while let Some(at) = rest.find('=') {
        let length = rest[at..].bytes().take_while(|b| *b == b'=').count();
        let row = if length < MIN_UNDERLINE { "=" } else { "-" };
        plain.push_str(&rest[..at]);
        plain.push_str(&row.repeat(length));
        rest = &rest[at + length..];
    }
    plain.push_str(rest);
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Appends an ASCII form of a decomposed character.
fn push_ascii(out: &mut String, c: char) {
    match c {
        ' '..='~' => out.push(c),
        c if c.is_whitespace() => out.push(' '),
        // Accents, which the decomposition separates from their letters, and control characters are dropped.
        '\u{300}'..='\u{36f}' => {}
        c if c.is_control() => {}
        '\u{2010}'..='\u{2015}' | '\u{2212}' => out.push('-'),
        '\u{2018}' | '\u{2019}' => out.push('\''),
        '\u{201c}'..='\u{201e}' => out.push('"'),
        '×' => out.push('x'),
        'μ' => out.push('u'),
        '•' | '·' => out.push('*'),
        'ß' => out.push_str("ss"),
        '®' => out.push_str("(R)"),
        '©' => out.push_str("(C)"),
        '°' => out.push_str("deg"),
        _ => out.push('?'),
    }
}

/// Wraps paragraphs, which are separated by blank lines.
fn prose(text: &str) -> String {
    let mut paragraphs = vec![String::new()];
    for l in text.lines() {
        if l.trim().is_empty() {
            paragraphs.push(String::new());
        } else if let Some(last) = paragraphs.last_mut() {
            last.push_str(l);
            last.push(' ');
        }
    }
    let lines = paragraphs.iter().map(|p| line(p));
    let filled = lines
        .filter(|p| !p.is_empty())
        .map(|p| textwrap::fill(&p, at_spaces(WIDTH)));
    filled.collect::<Vec<_>>().join("\n\n")
}

/// One line of ASCII; [`NOT_STATED`] for an empty text.
pub(super) fn stated(text: &str) -> String {
    match line(text) {
        l if l.is_empty() => NOT_STATED.into(),
        l => l,
    }
}

/// A title in a box.
fn boxed(title: &str) -> String {
    let edge = format!("+{}+", "-".repeat(WIDTH - 2));
    let lines = textwrap::wrap(title, at_spaces(WIDTH - 4));
    let lines = lines
        .iter()
        .map(|l| format!("| {l:^width$} |\n", width = WIDTH - 4));
    format!("{edge}\n{}{edge}", lines.collect::<String>())
}

/// A list of items, each after a dash.
fn list(items: &[String]) -> String {
    let options = at_spaces(WIDTH)
        .initial_indent("- ")
        .subsequent_indent("  ");
    let items = items.iter().map(|item| textwrap::fill(item, &options));
    items.collect::<Vec<_>>().join("\n")
}

/// A list of names and values, one per line.
fn fields(fields: &[(&str, String)]) -> String {
    const GAP: usize = 3;
    let column = fields.iter().map(|(n, _)| n.len()).max().unwrap_or(0) + GAP;
    let mut lines = Vec::new();
    for (name, value) in fields {
        let indent = " ".repeat(column);
        let first = format!("{name:<column$}");
        let options = at_spaces(WIDTH)
            .initial_indent(&first)
            .subsequent_indent(&indent);
        lines.push(textwrap::fill(value, options));
    }
    lines.join("\n")
}

/// A table with a heading and right-aligned columns of numbers. Cells are wrapped to fit the table into the page.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let all = |column: usize| rows.iter().map(move |r| r[column].as_str());
    let longest = |column: usize| all(column).chain([head[column]]).map(str::len).max();
    let mut widths: Vec<usize> = (0..head.len()).map(|c| longest(c).unwrap_or(0)).collect();
    let room = WIDTH - (head.len() - 1);
    while widths.iter().sum::<usize>() > room {
        let widest = (0..widths.len()).max_by_key(|c| widths[*c]).unwrap_or(0);
        if widths[widest] <= MIN_COLUMN_WIDTH {
            break;
        }
        widths[widest] -= 1;
    }
    let is_number = |t: &str| t.parse::<f64>().is_ok() || t == NO_FIGURE;
    let right: Vec<bool> = (0..head.len()).map(|c| all(c).all(is_number)).collect();
    let mut lines = Vec::new();
    let titles: Vec<String> = head.iter().map(|h| (*h).to_owned()).collect();
    push_row(&mut lines, &titles, &widths, &vec![false; head.len()]);
    let rules: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
    lines.push(rules.join(" "));
    for row in rows {
        push_row(&mut lines, row, &widths, &right);
    }
    lines.join("\n")
}

/// Appends the lines of one row.
fn push_row(lines: &mut Vec<String>, row: &[String], widths: &[usize], right: &[bool]) {
    let cells: Vec<Vec<String>> = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| {
            let wrapped = textwrap::wrap(cell, at_spaces(*width));
            wrapped.into_iter().map(|l| l.into_owned()).collect()
        })
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    for i in 0..height {
        let parts = cells
            .iter()
            .zip(widths)
            .zip(right)
            .map(|((cell, width), right)| {
                let text = cell.get(i).map_or("", String::as_str);
                match right {
                    true => format!("{text:>width$}"),
                    false => format!("{text:<width$}"),
                }
            });
        let text = parts.collect::<Vec<_>>().join(" ");
        lines.push(text.trim_end().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_ascii_and_underline_nothing() {
        assert_eq!(
            line("  Größe – “x” × 2\n=== café ™ µs\u{7}"),
            "Grosse - \"x\" x 2 --- cafe TM us"
        );
        assert_eq!(line("日本 == a====b"), "?? == a----b");
    }

    #[test]
    fn a_table_fits_the_page() {
        let text = "word ".repeat(40);
        let row = vec!["1".to_owned(), line(&text), line(&text), "77".into()];
        let t = table(&["No", "Left", "Right", "Qty"], &[row]);
        assert!(t.lines().all(|l| l.len() <= WIDTH), "{t}");
        assert_eq!(t.matches("word").count(), 80);
        assert!(t.lines().nth(2).unwrap().ends_with(" 77"), "{t}");
    }

    #[test]
    fn fields_stand_below_each_other() {
        let f = fields(&[
            ("A", "x".into()),
            ("Longer", "word ".repeat(20).trim().into()),
        ]);
        let lines: Vec<&str> = f.lines().collect();
        assert_eq!(lines[0], "A        x");
        assert!(lines[2].starts_with("         word"), "{f}");
        assert!(lines.iter().all(|l| l.len() <= WIDTH));
    }

    proptest! {
        #[test]
        fn whatever_comes_in_stays_on_the_page(
            texts in prop::collection::vec("\\PC{0,60}|[= \na-z\t]{0,300}", 4),
        ) {
            let cells: Vec<String> = texts.iter().map(|t| line(t)).collect();
            let page = [
                prose(&texts[0]),
                table(&["A", "B", "C", "D"], std::slice::from_ref(&cells)),
                boxed(&cells[1]),
                fields(&[("Name", cells[2].clone())]),
            ];
            for part in page {
                prop_assert!(part.is_ascii());
                for l in part.lines() {
                    prop_assert!(l.len() <= WIDTH, "{l}");
                    let underlines = l.trim().len() >= 3 && l.trim().bytes().all(|b| b == b'=');
                    prop_assert!(!underlines, "{part}");
                }
            }
        }
    }
}
