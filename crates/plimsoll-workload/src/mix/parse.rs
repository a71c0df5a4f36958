//! Parsing of a workload's TOML text.

use crate::mix::model::File;
use plimsoll_diagnostics::{Diagnostics, Source, Span, read_toml};
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A parsed workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    pub(crate) source: Arc<Source>,
    pub(crate) file: File,
    /// The text before `--set` changed it.
    pub(crate) original: Arc<str>,
    /// Spans of all values of the text by the paths of the values, such as `component.0.files.count`.
    spans: BTreeMap<String, Span>,
}

impl Workload {
    /// A workload of a text that was parsed to `file`. `original` is the text before `--set` changed the text.
    pub(crate) fn new(source: Arc<Source>, file: File, original: Arc<str>) -> Self {
        let mut spans = BTreeMap::new();
        if let Ok(table) = DeTable::parse(&source.text) {
            for (key, value) in table.get_ref() {
                add_spans(key.get_ref(), value, &source.text, &mut spans);
            }
        }
        Self {
            source,
            file,
            original,
            spans,
        }
    }

    /// Path of the workload file, or name of the built-in workload.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The parsed tables and keys.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// One line that describes the workload; may be empty.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// Span of the value at a path of keys and indices, such as `component.0.files.count`; `None` if the workload does
    /// not contain the value.
    pub(crate) fn find(&self, path: &str) -> Option<Span> {
        self.spans.get(path).copied()
    }

    /// Span of the value at a path of keys and indices; for a missing value, the span of the innermost existing table
    /// on the path.
    pub(crate) fn span(&self, path: &str) -> Span {
        let around = || Some(self.span(path.rsplit_once('.')?.0));
        self.find(path).or_else(around).unwrap_or_default()
    }
}

/// Adds the spans of a value and of all nested values to `spans`, by the paths of the values.
fn add_spans(
    path: &str,
    value: &Spanned<DeValue<'_>>,
    text: &str,
    spans: &mut BTreeMap<String, Span>,
) {
    spans.insert(path.to_owned(), Span::of(0, value.span(), text));
    match value.get_ref() {
        DeValue::Table(table) => {
            for (key, value) in table {
                add_spans(&format!("{path}.{}", key.get_ref()), value, text, spans);
            }
        }
        DeValue::Array(array) => {
            for (number, value) in array.iter().enumerate() {
                add_spans(&format!("{path}.{number}"), value, text, spans);
            }
        }
        _ => {}
    }
}

/// Parses a workload. `name` is the name of the text in messages.
///
/// # Errors
/// The first syntax error of TOML, or all unknown keys and values of a wrong type, at most ten, in
/// the order of the text.
pub fn parse(text: &str, name: &str) -> Result<Workload, Diagnostics> {
    let source = Source::new(name, text);
    match read_toml::<File>(text, plain) {
        Ok(file) => Ok(Workload::new(source, file, text.into())),
        Err(problems) => Err(Diagnostics::new(vec![source], problems)),
    }
}

/// Description of an expected type in the terms of TOML instead of Rust.
pub(crate) fn plain(expected: &str) -> &str {
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
