//! One module a subcommand.

pub mod annotate;
pub mod clean;
pub mod compare;
pub mod convert;
pub mod curve;
pub mod documents;
pub mod find;
pub mod import;
pub mod list;
pub mod md;
pub mod plan;
pub mod profile;
pub mod prune;
pub mod report;
pub mod run;
pub mod serve;
pub mod serve_nfs;
pub mod show;
pub mod study;
pub mod sut;
pub mod wan;

use crate::console;
use crate::exit::{CommandError, Exit};

/// Prints a text that is all a command has to say.
pub fn print(text: &str) -> Result<Exit, CommandError> {
    console::out(text)
        .map(|()| Exit::Valid)
        .map_err(|e| CommandError::failed(format!("cannot write to standard output: {e}")))
}
