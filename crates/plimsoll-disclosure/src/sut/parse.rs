//! Reads `sut.toml`.

use super::model::Sut;
use plimsoll_diagnostics::{Diagnostics, Problem, Source, Span};

impl Sut {
    /// Parses the text of a `sut.toml`. `name` stands for it in messages.
    ///
    /// # Errors
    /// The first error, with its place: invalid TOML, an unknown key (with a suggestion), a value of
    /// the wrong type, or a size that is negative or not a number.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnostics> {
        let fail = |problem| Diagnostics::new(vec![Source::new(name, text)], vec![problem]);
        if u32::try_from(text.len()).is_err() {
            return Err(fail(Problem::of_text(0, "the file is larger than 4 GiB")));
        }
        toml::from_str(text).map_err(|e| fail(problem(&e, text)))
    }
}

/// Converts an error of the TOML library.
fn problem(e: &toml::de::Error, text: &str) -> Problem {
    let span = Span::of(0, e.span().unwrap_or(0..0), text);
    let message = e.message().trim();
    if let Some(problem) = Problem::of_reader(span, message, plain) {
        return problem;
    }
    let mut lines = message.lines();
    let first = lines.next().unwrap_or("this is not TOML");
    let problem = Problem::new(span, first, "here");
    match lines.next() {
        Some(more) => problem.help(more.trim()),
        None => problem,
    }
}

/// What the library expects, without the names of our types.
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
