//! Custom workload files of netmist, the load generator of SPEC SFS 2014 and SPECstorage 2020.
//!
//! A file has lines `key value` in a fixed order, repeated for each workload; empty lines and lines that begin with `#`
//! are skipped. Every value is used or refused. The numbers of files and processes and the rate are not in the file:
//! Plimsoll's defaults apply, and `--set` or the converted TOML changes them.

mod convert;

use crate::mix::model::File;
use crate::mix::parse::Workload;
use plimsoll_diagnostics::{Diagnostics, MAX_ERRORS, Problem, Source, Span};
use std::sync::LazyLock;

/// Number of operations of each workload in a custom workload file: the operations of [`plimsoll_plan::MixOp::ALL`] up
/// to `Truncate`, in the order of `ALL`, and two operations of a user's own program.
const OPERATIONS: usize = 28;

/// Number of operations that netmist itself executes, without the two operations of a user's own program.
const OWN_OPERATIONS: usize = OPERATIONS - 2;

/// Size tables of a custom workload: for each table, the words with which the keys of its lines begin, and the word
/// before `min size` and `max size` in the keys of a slot's bounds.
const TABLES: [(&str, &str); 3] = [
    ("Read elem", "xfer "),
    ("Write elem", "xfer "),
    ("File size elem", ""),
];

/// Number of slots in a size table.
const SLOTS: usize = 16;

/// Number of lines of a size table: three lines for each slot, with minimum, maximum and percentage.
const TABLE_LINES: usize = 3 * SLOTS;

/// Index in [`KEYS`] of the first key after the size tables.
const FIELDS: usize = OPERATIONS + TABLES.len() * TABLE_LINES;

/// Keys of the lines that follow the name of a workload, in the order of the file: operations, size tables and other
/// fields.
static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let (operations, fields) = include_str!("netmist/keys.txt")
        .split_once("\n\n")
        .expect("two lists with an empty line between them");
    let mut keys: Vec<String> = operations.lines().map(str::to_owned).collect();
    for (table, xfer) in TABLES {
        for slot in 0..SLOTS {
            keys.push(format!("{table} {slot} {xfer}min size"));
            keys.push(format!("{table} {slot} {xfer}max size"));
            keys.push(format!("{table} {slot} percent"));
        }
    }
    keys.extend(fields.lines().map(str::to_owned));
    keys
});

/// Whether the first line of a text, after comments and empty lines, begins with `Workload name` as in a custom
/// workload file; case is ignored.
#[must_use]
pub fn is_custom_workload(text: &str) -> bool {
    let first = lines(text).next();
    first.is_some_and(|l| {
        key_of(l.text)
            .to_ascii_lowercase()
            .starts_with("workload name")
    })
}

/// Parses a custom workload file. `name` is the name of the text in messages.
///
/// # Errors
/// A line out of order, a value that is not a number, or an unsupported value.
pub fn parse(text: &str, name: &str) -> Result<Workload, Diagnostics> {
    let source = Source::new(name, text);
    let fail = |problems| Diagnostics::new(vec![source.clone()], problems);
    let file = read(text, name).map_err(fail)?;
    let toml = crate::mix::to_toml(&file).map_err(|e| fail(vec![Problem::of_text(0, e)]))?;
    let mut workload = crate::mix::parse::parse(&toml, name)?;
    workload.original = text.into();
    Ok(workload)
}

/// A line that is neither empty nor a comment.
#[derive(Clone, Copy)]
struct Line<'t> {
    text: &'t str,
    /// Byte offset of the line in the text.
    start: usize,
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    let all = text.split_inclusive('\n').map(move |whole| {
        let begin = start;
        start += whole.len();
        let text = whole.trim();
        let indent = whole.len() - whole.trim_start().len();
        Line {
            text,
            start: begin + indent,
        }
    });
    all.filter(|l| !l.text.is_empty() && !l.text.starts_with('#'))
}

impl<'t> Line<'t> {
    fn span(&self) -> Span {
        Span {
            file: 0,
            start: self.start as u32,
            end: (self.start + self.text.len()) as u32,
        }
    }

    /// The last word of the line, and its span.
    fn value(&self) -> (&'t str, Span) {
        let word = self.text.rsplit(char::is_whitespace).next();
        let word = word.expect("a text has a last word");
        let span = self.span();
        let start = span.end - word.len() as u32;
        (word, Span { start, ..span })
    }
}

/// The key of a line: all words except the last.
fn key_of(line: &str) -> String {
    let end = line.rfind(char::is_whitespace).unwrap_or(line.len());
    words(&line[..end])
}

/// A text with single spaces between its words.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A value of a custom workload file as a number, and the span of the value in the text.
#[derive(Debug, Clone, Copy, Default)]
struct Number {
    value: f64,
    span: Span,
}

/// A workload of a custom workload file as numbers, before the conversion to an operation mix.
struct NetmistWorkload {
    name: String,
    name_span: Span,
    /// Values of the workload's lines after the name, in the order of [`KEYS`].
    numbers: Vec<Number>,
}

impl NetmistWorkload {
    /// Percentage of each operation of the workload, in the order of the lines of the file.
    fn percents(&self) -> &[Number] {
        &self.numbers[..OPERATIONS]
    }

    /// Slots of size table number `which` of [`TABLES`], each as minimum, maximum and percentage.
    fn table(&self, which: usize) -> &[[Number; 3]] {
        let tables = &self.numbers[OPERATIONS..FIELDS];
        let (slots, _) = tables[which * TABLE_LINES..][..TABLE_LINES].as_chunks();
        slots
    }

    /// Value of the line with the key `key`, one of the fields after the size tables.
    fn field(&self, key: &str) -> Number {
        let at = KEYS.iter().position(|known| known == key);
        self.numbers[at.expect("the key is in the list")]
    }
}

/// Whether a key fits entry `number` of [`KEYS`]; case is ignored. The key of an operation may have any words after
/// `Percent `, because a file identifies operations by their position; only keys of the fields after the size tables do
/// not fit.
fn fits(number: usize, key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    let expected = KEYS[number].to_ascii_lowercase();
    if number < OPERATIONS {
        let is_field = KEYS[FIELDS..].iter().any(|f| f.eq_ignore_ascii_case(key));
        return lower.starts_with("percent ") && !is_field;
    }
    if number < OPERATIONS + 2 * TABLE_LINES {
        // The key of a slot's percentage may contain `xfer`.
        let without = |key: &str| key.replace(" xfer ", " ");
        return without(&lower) == without(&expected);
    }
    lower == expected
}

fn read(text: &str, name: &str) -> Result<File, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut workloads = Vec::new();
    let mut left = lines(text);
    while let Some(first) = left.next() {
        let mut raw = match named(first) {
            Ok(raw) => raw,
            Err(problem) => {
                problems.push(problem);
                return Err(problems);
            }
        };
        for (number, key) in KEYS.iter().enumerate() {
            let Some(line) = left.next() else {
                let message = format!(
                    "the file ends where `{key}` must come: it was cut, or a line is missing"
                );
                problems.push(Problem::of_text(0, message));
                return Err(problems);
            };
            if !fits(number, &key_of(line.text)) {
                problems.push(out_of_order(key, line));
                return Err(problems);
            }
            let (word, span) = line.value();
            let value = word.parse().ok().filter(|value: &f64| value.is_finite());
            if value.is_none() {
                let message = format!("`{key}` must be a number, is `{word}`");
                problems.push(Problem::new(span, message, "not a number"));
                if problems.len() >= MAX_ERRORS {
                    return Err(problems);
                }
            }
            let value = value.unwrap_or_default();
            raw.numbers.push(Number { value, span });
        }
        workloads.push(raw);
    }
    if workloads.is_empty() {
        return Err(vec![Problem::of_text(0, "this file has no workload")]);
    }
    match problems.is_empty() {
        true => convert::file(workloads, name),
        false => Err(problems),
    }
}

/// A workload without values, from the line `Workload name NAME` at its beginning.
fn named(line: Line<'_>) -> Result<NetmistWorkload, Problem> {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    match words.as_slice() {
        [first, second, name @ ..]
            if first.eq_ignore_ascii_case("workload")
                && second.eq_ignore_ascii_case("name")
                && !name.is_empty() =>
        {
            Ok(NetmistWorkload {
                name: name.join("_"),
                name_span: line.span(),
                numbers: Vec::new(),
            })
        }
        _ => Err(out_of_order(NAME, line)),
    }
}

/// Key of the line with which each workload of a file begins.
const NAME: &str = "Workload name";

fn out_of_order(key: &str, line: Line<'_>) -> Problem {
    let found = key_of(line.text);
    let mut keys = KEYS.iter().map(String::as_str).chain([NAME]);
    let known = keys.any(|key| key.eq_ignore_ascii_case(&found));
    let message = format!("expected a line `{key} VALUE`, found `{found}`");
    let problem = Problem::new(line.span(), message, "this line");
    match known {
        true => problem.help(
            "the lines of a workload have a fixed order: one is missing before this one, or too \
             many are",
        ),
        false => problem.suggest(&found, [key]),
    }
}
