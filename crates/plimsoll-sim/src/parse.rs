//! From a text to a system.

use crate::file::SystemFile;
use crate::resolve::resolve;
use crate::system::System;
use plimsoll_diagnostics::{Diagnostics, Problem, Source, Span};

/// Reads a system. `name` stands for the text in messages.
///
/// # Errors
/// The first thing that is not TOML or not a key or value of a system, or everything that is wrong with
/// names and figures, each with its place.
pub fn parse(text: &str, name: &str) -> Result<System, Diagnostics> {
    let source = Source::new(name, text);
    match toml::from_str::<SystemFile>(text) {
        Ok(file) => resolve(&file, &source),
        Err(e) => {
            let span = e.span().map_or(Span::default(), |range| Span {
                file: 0,
                start: text.floor_char_boundary(range.start) as u32,
                end: text.floor_char_boundary(range.end) as u32,
            });
            let problem = Problem::new(span, e.message().trim(), "here");
            Err(Diagnostics::new(vec![source], vec![problem]))
        }
    }
}
