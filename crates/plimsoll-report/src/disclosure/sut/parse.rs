//! Reads `sut.toml`.

use super::model::Sut;
use plimsoll_diagnostics::{Diagnostics, Problem, Source, read_toml};

impl Sut {
    /// Parses the text of a `sut.toml`; errors call the file `name`.
    ///
    /// # Errors
    /// Errors with their positions: a text above 4 GiB, invalid TOML, unknown keys (with a suggestion), values of a
    /// wrong type, and sizes that are negative or not a number.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnostics> {
        let fail = |problems| Diagnostics::new(vec![Source::new(name, text)], problems);
        if u32::try_from(text.len()).is_err() {
            let problem = Problem::of_text(0, "the file is larger than 4 GiB");
            return Err(fail(vec![problem]));
        }
        read_toml(text, plain).map_err(fail)
    }
}

/// The expectation of the TOML library, without the names of Rust types.
fn plain(expected: &str) -> &str {
    match expected {
        e if e.starts_with("struct ") => "a table, such as [product]",
        "a sequence" => "an array of tables, such as [[materials]]",
        "u64" => "a whole number, at least 0",
        "f64" => "a number",
        "a string" => "a text in quotes",
        "a boolean" => "true or false",
        other => other,
    }
}
