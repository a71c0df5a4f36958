//! From a text to the tables and keys in it.

use crate::model::File;
use plimsoll_diagnostics::{Diagnostics, MAX_ERRORS, Problem, Source, Span};
use serde::Deserialize;
use std::ops::Range;
use std::sync::Arc;
use toml::de::{DeTable, DeValue, Deserializer};

/// A workload as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    pub(crate) source: Arc<Source>,
    pub(crate) file: File,
    /// The text as it was given, before any setting was changed.
    pub(crate) original: Arc<str>,
}

impl Workload {
    /// Name the text was given: a path, or the name of a built-in workload.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// What is written in it.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// One line that says what it stands for; may be empty.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.file.title
    }
}

/// Reads a workload. `name` stands for the text in messages.
///
/// # Errors
/// The first thing that is no TOML, or every key that is not known and every value of the wrong
/// kind, at most ten, in the order of the text.
pub fn parse(text: &str, name: &str) -> Result<Workload, Diagnostics> {
    let source = Source::new(name, text);
    match toml::from_str::<File>(text) {
        Ok(file) => Ok(Workload {
            source,
            file,
            original: text.into(),
        }),
        Err(e) => Err(Diagnostics::new(vec![source], problems(e, text))),
    }
}

/// What is wrong with a text that could not be read: the reader ends at the first error, so that it
/// reads again without the key that is not known, or without the value of the wrong kind.
fn problems(first: toml::de::Error, text: &str) -> Vec<Problem> {
    let mut problems = vec![problem(&first, text)];
    let Ok(mut table) = DeTable::parse(text) else {
        return problems;
    };
    let mut error = first;
    while problems.len() < MAX_ERRORS && error.span().is_some_and(|at| take(table.get_mut(), &at)) {
        match File::deserialize(Deserializer::from(table.clone())) {
            // What is missing may be what was taken out.
            Err(e) if !e.message().starts_with("missing field") => {
                problems.push(problem(&e, text));
                error = e;
            }
            _ => break,
        }
    }
    problems.sort_by_key(|p| (p.whole_text, p.span.start));
    problems
}

/// Takes the key or the value at a place out of a table, or of one in it; `false` if there is none.
fn take(table: &mut DeTable<'_>, key: &Range<usize>) -> bool {
    let mut entries = table.iter();
    let found = entries.find(|(k, v)| k.span() == *key || v.span() == *key);
    if let Some(found) = found.map(|(k, _)| k.clone()) {
        table.remove(&found);
        return true;
    }
    table.iter_mut().any(|(_, v)| take_within(v.get_mut(), key))
}

fn take_within(value: &mut DeValue<'_>, key: &Range<usize>) -> bool {
    match value {
        DeValue::Table(table) => take(table, key),
        DeValue::Array(array) => array.iter_mut().any(|v| take_within(v.get_mut(), key)),
        _ => false,
    }
}

/// Where a value is written: that of the key that `path` leads to, in the component of number `i`.
pub(crate) fn value_at(text: &str, i: usize, path: &[&str]) -> Option<Span> {
    let table = DeTable::parse(text).ok()?;
    let mut at = table.get_ref().get("component")?.get_ref().get(i)?;
    for key in path {
        at = at.get_ref().get(*key)?;
    }
    Some(span_of(at.span(), text))
}

/// The bytes of a range of a text.
pub(crate) fn span_of(range: Range<usize>, text: &str) -> Span {
    let start = text.floor_char_boundary(range.start);
    let end = text.floor_char_boundary(range.end).max(start);
    Span {
        file: 0,
        start: start as u32,
        end: end as u32,
    }
}

/// What the TOML reader found wrong, in our words.
pub(crate) fn problem(e: &toml::de::Error, text: &str) -> Problem {
    let span = e.span().map(|range| span_of(range, text));
    let message = e.message().trim();
    let at = span.unwrap_or_default();
    if let Some((key, known)) = unknown(message) {
        let problem = Problem::new(
            at,
            format!("unknown key `{key}`"),
            "not a key of this table",
        );
        return problem.suggest(key, known);
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        let key = key.trim_matches('`');
        let message = format!("the key `{key}` is missing");
        return match span.filter(|s| s.end > s.start) {
            Some(span) => Problem::new(span, message, "from this table"),
            None => Problem::of_text(0, message),
        };
    }
    let found = ["invalid type: ", "invalid value: "]
        .iter()
        .find_map(|start| message.strip_prefix(start));
    if let Some(rest) = found {
        let (found, expected) = rest.split_once(", expected ").unwrap_or((rest, "another"));
        let message = format!("expected {}, found {found}", plain(expected));
        return Problem::new(at, message, "this value");
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        let mut quoted = rest.split('`').skip(1).step_by(2);
        let name = quoted.next().unwrap_or_default().to_owned();
        let problem = Problem::new(at, format!("unknown value `{name}`"), "not one of these");
        return problem.suggest(&name, quoted);
    }
    let first = message.lines().next().unwrap_or("this is no TOML");
    Problem::new(at, first, "here")
}

/// The key that is not known, and those that are.
fn unknown(message: &str) -> Option<(&str, Vec<&str>)> {
    let mut quoted = message
        .strip_prefix("unknown field ")?
        .split('`')
        .skip(1)
        .step_by(2);
    Some((quoted.next()?, quoted.collect()))
}

/// What the reader expects, without the names of our types.
fn plain(expected: &str) -> &str {
    match expected {
        "struct Operations" => "a table of operations, such as { read = 60, write = 40 }",
        e if e.starts_with("struct ") => "a table",
        "a sequence" => "an array of tables, such as [[component]]",
        "u32" | "u64" | "usize" => "a whole number, at least 0",
        "f64" => "a number",
        "a string" | "string" => "a text in quotes",
        "a boolean" => "true or false",
        other => other,
    }
}
