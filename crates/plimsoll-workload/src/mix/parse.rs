//! Parsing of a workload's TOML text.

use crate::mix::model::File;
use plimsoll_diagnostics::{Diagnostics, Source, Span, read_toml};
use std::sync::Arc;
use toml::de::DeTable;

/// A parsed workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    pub(crate) source: Arc<Source>,
    pub(crate) file: File,
    /// The text before `--set` changed it.
    pub(crate) original: Arc<str>,
}

impl Workload {
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
}

/// Parses a workload. `name` is the name of the text in messages.
///
/// # Errors
/// The first syntax error of TOML, or all unknown keys and values of a wrong type, at most ten, in
/// the order of the text.
pub fn parse(text: &str, name: &str) -> Result<Workload, Diagnostics> {
    let source = Source::new(name, text);
    match read_toml::<File>(text, plain) {
        Ok(file) => Ok(Workload {
            source,
            file,
            original: text.into(),
        }),
        Err(problems) => Err(Diagnostics::new(vec![source], problems)),
    }
}

/// Span of the value at the key path `path` in component number `i`; `None` if the key is missing.
pub(crate) fn value_at(text: &str, i: usize, path: &[&str]) -> Option<Span> {
    let table = DeTable::parse(text).ok()?;
    let mut at = table.get_ref().get("component")?.get_ref().get(i)?;
    for key in path {
        at = at.get_ref().get(*key)?;
    }
    Some(Span::of(0, at.span(), text))
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
