//! From a text to its tables and keys.

use crate::model::File;
use plimsoll_diagnostics::{Diagnostics, MAX_ERRORS, Problem, Source, Span};
use serde::Deserialize;
use std::ops::Range;
use std::sync::Arc;
use toml::de::{DeTable, DeValue, Deserializer};

/// A parsed workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    pub(crate) source: Arc<Source>,
    pub(crate) file: File,
    /// The text before any setting was changed.
    pub(crate) original: Arc<str>,
}

impl Workload {
    /// Name of the text: a path, or the name of a built-in workload.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The tables and keys.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// One line that describes the workload; may be empty.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.file.title
    }
}

/// Parses a workload. `name` is the name of the text in messages.
///
/// # Errors
/// The first syntax error of TOML, or all unknown keys and values of a wrong type, at most ten, in
/// the order of the text.
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

/// All errors of a text. The reader ends at the first error, so it is called again without the unknown
/// key or the value of a wrong type.
fn problems(first: toml::de::Error, text: &str) -> Vec<Problem> {
    let mut problems = vec![problem(&first, text)];
    let Ok(mut table) = DeTable::parse(text) else {
        return problems;
    };
    let mut error = first;
    while problems.len() < MAX_ERRORS && error.span().is_some_and(|at| take(table.get_mut(), &at)) {
        match File::deserialize(Deserializer::from(table.clone())) {
            // A missing key may be the one that was removed.
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

/// Removes the key or value at `key` from a table, or from one in it; `false` if there is none.
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

/// The span of the value of the key `path`, in component number `i`.
pub(crate) fn value_at(text: &str, i: usize, path: &[&str]) -> Option<Span> {
    let table = DeTable::parse(text).ok()?;
    let mut at = table.get_ref().get("component")?.get_ref().get(i)?;
    for key in path {
        at = at.get_ref().get(*key)?;
    }
    Some(Span::of(0, at.span(), text))
}

/// Translates an error of the TOML reader.
pub(crate) fn problem(e: &toml::de::Error, text: &str) -> Problem {
    let span = e.span().map(|range| Span::of(0, range, text));
    let message = e.message().trim();
    let at = span.unwrap_or_default();
    if let Some(problem) = Problem::of_reader(at, message, plain) {
        return problem;
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        let message = format!("the key {key} is missing");
        return match span.filter(|s| s.end > s.start) {
            Some(span) => Problem::new(span, message, "from this table"),
            None => Problem::of_text(0, message),
        };
    }
    let first = message.lines().next().unwrap_or("this is not TOML");
    Problem::new(at, first, "here")
}

/// Description of an expected type, without the names of Rust types.
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
