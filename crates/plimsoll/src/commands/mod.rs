//! Subcommands, one module each.

pub mod ab;
pub mod annotate;
pub mod clean;
pub mod compare;
pub mod convert;
pub mod curve;
pub mod documents;
pub mod emulated_nfs;
pub mod find;
pub mod fio;
pub mod fit;
pub mod hosts;
pub mod import;
pub mod io500;
pub mod list;
pub mod md;
pub mod pattern;
pub mod plan;
pub mod populate;
pub mod profile;
pub mod prune;
pub mod rank;
pub mod reference;
pub mod report;
pub mod run;
pub mod series;
pub mod serve;
pub mod show;
pub mod sut;
pub mod systems;
mod tasks;
pub mod wan;

use crate::cli::Format;
use crate::console::{self, Stream};
use crate::exit::{CommandError, Exit};
use plimsoll_report::terminal::Layout;

/// Prints the output of a command.
pub fn print(text: &str) -> Result<Exit, CommandError> {
    console::out(text)
        .map(|()| Exit::Valid)
        .map_err(|e| CommandError::failed(format!("cannot write to standard output: {e}")))
}

/// Prints the final report of a command: a JSON document, or text after an empty line.
fn print_report(
    format: Format,
    json: impl FnOnce() -> String,
    text: impl FnOnce(Layout) -> String,
) -> Result<(), CommandError> {
    let report = match format {
        Format::Json => json(),
        Format::Text => format!("\n{}", text(Stream::Out.layout())),
    };
    print(&report).map(|_| ())
}
