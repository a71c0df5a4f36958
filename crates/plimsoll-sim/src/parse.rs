//! Parser from a TOML text to a system.

use crate::file::SystemFile;
use crate::resolve::resolve;
use crate::system::System;
use crate::system_event::SystemEvent;
use plimsoll_diagnostics::{Diagnostics, Source, read_toml};

/// Parses a system. `name` is the name of the text in messages.
///
/// # Errors
/// The first TOML syntax error, all unknown keys and values of a wrong type, or all invalid names and figures, each
/// with its position.
pub fn parse(text: &str, name: &str) -> Result<System, Diagnostics> {
    parse_with_events(text, name, &[])
}

/// Parses a system with additional `events`.
///
/// # Errors
/// As for [`parse`], and events on parts that the system does not have.
pub fn parse_with_events(
    text: &str,
    name: &str,
    events: &[SystemEvent],
) -> Result<System, Diagnostics> {
    let source = Source::new(name, text);
    match read_toml::<SystemFile>(text, plain) {
        Ok(file) => resolve(&file, &source, events),
        Err(problems) => Err(Diagnostics::new(vec![source], problems)),
    }
}

/// The JSON schema of a system, pretty-printed.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(SystemFile);
    let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    format!("{text}\n")
}

/// Description of an expected type, without Rust type names.
fn plain(expected: &str) -> &str {
    match expected {
        "struct Event" => "a table, such as [[event]]",
        "struct Tokens" => "an empty table",
        e if e.starts_with("struct ") => "a table",
        "a map" => "a table of tables",
        "a sequence" => "an array",
        "u32" | "u64" => "a whole number, at least 0",
        "f64" => "a number",
        "a string" | "string" => "a text in quotes",
        "a boolean" => "true or false",
        other => other,
    }
}
