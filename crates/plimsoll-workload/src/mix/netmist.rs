//! Custom workload files of netmist, the load generator of SPEC SFS 2014 and SPECstorage 2020.
//!
//! A file has lines `key value` in a fixed order, repeated for each workload; empty lines and lines that begin with `#`
//! are skipped. Every value is used or refused. The numbers of files and processes and the rate are not in the file:
//! Plimsoll's defaults apply, and `--set` or the converted TOML changes them.

mod convert;
mod fields;

use crate::mix::model::File;
use crate::mix::parse::Workload;
use fields::{FIELDS, Field};
use plimsoll_diagnostics::{Diagnostics, MAX_ERRORS, Problem, Source, Span};
use plimsoll_plan::MixOp;

/// Number of operations in the table: netmist's operations and two operations of a user program.
const OPERATIONS: usize = 28;

/// Number of slots in a size table.
const SLOTS: usize = 16;

/// Whether the first line of a text is that of a custom workload file.
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
    let workload = crate::mix::parse::parse(&toml, name)?;
    Ok(Workload {
        original: text.into(),
        ..workload
    })
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

/// A number of the file and its span.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Number {
    pub(crate) value: f64,
    pub(crate) span: Span,
}

/// A workload of the file as numbers, before conversion.
#[derive(Default)]
pub(crate) struct NetmistWorkload {
    pub(crate) name: String,
    pub(crate) name_span: Span,
    pub(crate) percents: Vec<Number>,
    /// Minimum, maximum and percentage of each slot, for reads, writes and file sizes.
    pub(crate) tables: [Vec<[Number; 3]>; 3],
    pub(crate) fields: Vec<(Field, Number)>,
}

/// A line that a workload must have at some place.
#[derive(Clone)]
enum ExpectedLine {
    Name,
    Percent(usize),
    Slot {
        table: usize,
        slot: usize,
        part: usize,
    },
    Field(usize),
}

/// Beginnings of the keys of the tables' lines.
const TABLES: [&str; 3] = ["Read elem", "Write elem", "File size elem"];

impl ExpectedLine {
    /// All lines of a workload, in the order of the file.
    fn all() -> Vec<Self> {
        let mut all = vec![Self::Name];
        all.extend((0..OPERATIONS).map(Self::Percent));
        for table in 0..TABLES.len() {
            for slot in 0..SLOTS {
                all.extend((0..3).map(|part| Self::Slot { table, slot, part }));
            }
        }
        all.extend((0..FIELDS.len()).map(Self::Field));
        all
    }

    /// The key that the line must have.
    fn key(&self) -> String {
        match self {
            Self::Name => "Workload name".into(),
            Self::Percent(n) => match MixOp::ALL.get(*n).filter(|_| *n < OPERATIONS - 2) {
                Some(op) => format!("Percent {}", fields::netmist_name(*op)),
                None => format!("Percent Custom{}", n + 3 - OPERATIONS),
            },
            Self::Slot { table, slot, part } => {
                let (what, sizes) = (TABLES[*table], ["min size", "max size", "percent"]);
                let xfer = if *table < 2 && *part < 2 { "xfer " } else { "" };
                format!("{what} {slot} {xfer}{}", sizes[*part])
            }
            Self::Field(n) => FIELDS[*n].1.into(),
        }
    }

    /// Whether the key fits the line. Operations may have other names.
    fn is(&self, key: &str) -> bool {
        let lower = key.to_ascii_lowercase();
        match self {
            Self::Percent(_) => {
                let others = FIELDS.iter().any(|(_, k)| k.eq_ignore_ascii_case(key));
                lower.starts_with("percent ") && !others
            }
            Self::Slot { table, .. } if *table < 2 => {
                // The key of a slot's percentage may contain `xfer`.
                let without = |k: &str| k.to_ascii_lowercase().replace(" xfer ", " ");
                without(key) == without(&self.key())
            }
            _ => lower == self.key().to_ascii_lowercase(),
        }
    }
}

fn read(text: &str, name: &str) -> Result<File, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut workloads = Vec::new();
    let mut left = lines(text).peekable();
    if left.peek().is_none() {
        return Err(vec![Problem::of_text(0, "this file has no workload")]);
    }
    let order = ExpectedLine::all();
    while left.peek().is_some() {
        let mut raw = NetmistWorkload::default();
        for expected in &order {
            let Some(line) = left.next() else {
                let key = expected.key();
                let message = format!(
                    "the file ends where `{key}` must come: it was cut, or a line is missing"
                );
                problems.push(Problem::of_text(0, message));
                return Err(problems);
            };
            if let Err((problem, out_of_order)) = take(&mut raw, expected, line) {
                problems.push(problem);
                if out_of_order || problems.len() >= MAX_ERRORS {
                    return Err(problems);
                }
            }
        }
        workloads.push(raw);
    }
    match problems.is_empty() {
        true => convert::file(workloads, name),
        false => Err(problems),
    }
}

/// Reads a line into `raw`. The flag of an error tells whether the line is out of order.
fn take(
    raw: &mut NetmistWorkload,
    expected: &ExpectedLine,
    line: Line<'_>,
) -> Result<(), (Problem, bool)> {
    if let ExpectedLine::Name = expected {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let begins = words.len() > 2
            && words[0].eq_ignore_ascii_case("workload")
            && words[1].eq_ignore_ascii_case("name");
        if !begins {
            return Err((out_of_order(expected, line), true));
        }
        raw.name = words[2..].join("_");
        raw.name_span = line.span();
        return Ok(());
    }
    if !expected.is(&key_of(line.text)) {
        return Err((out_of_order(expected, line), true));
    }
    if let ExpectedLine::Slot { table, part: 0, .. } = expected {
        // The slot exists even if its first number is wrong, because the lines of the other parts follow.
        raw.tables[*table].push(<[Number; 3]>::default());
    }
    let (word, span) = line.value();
    let value = match word.parse::<f64>() {
        Ok(value) if value.is_finite() => value,
        _ => {
            let key = expected.key();
            let message = format!("`{key}` must be a number, is `{word}`");
            return Err((Problem::new(span, message, "not a number"), false));
        }
    };
    let number = Number { value, span };
    match expected {
        ExpectedLine::Name => unreachable!("read above"),
        ExpectedLine::Percent(_) => raw.percents.push(number),
        ExpectedLine::Slot { table, part, .. } => {
            let slots = &mut raw.tables[*table];
            slots.last_mut().expect("part 0 adds the slot")[*part] = number;
        }
        ExpectedLine::Field(n) => raw.fields.push((FIELDS[*n].0, number)),
    }
    Ok(())
}

fn out_of_order(expected: &ExpectedLine, line: Line<'_>) -> Problem {
    let key = expected.key();
    let found = key_of(line.text);
    let mut lines = ExpectedLine::all().into_iter();
    let known = lines.any(|e| e.key().eq_ignore_ascii_case(&found));
    let message = format!("expected a line `{key} VALUE`, found `{found}`");
    let problem = Problem::new(line.span(), message, "this line");
    match known {
        true => problem.help(
            "the lines of a workload have a fixed order: one is missing before this one, or too \
             many are",
        ),
        false => problem.suggest(&found, [key.as_str()]),
    }
}
