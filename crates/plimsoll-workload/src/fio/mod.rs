//! The front end of fio's job files and command lines.
//!
//! | modules | contents |
//! | --- | --- |
//! | `options` | all options of jobs, and what becomes of each; `command_line`: all other options |
//! | `values` | numbers, expressions, times and ranges |
//! | `text` | job files and command lines as sections of settings |
//! | `job` | the settings of a section as typed values |
//! | `lower` | jobs as Plans |
//!
//! fio begins a group of jobs when the group before has ended (`stonewall`). Each group becomes a Plan of its own, so
//! that the figures of a group are of a measured window of its own.

mod command_line;
mod job;
mod lower;
mod options;
mod text;
mod values;

pub use command_line::{CommandLine, OutputFormat};
pub use lower::{Context, DepthSearch, Group, RawDevice, lower};
pub use text::{Input, Surroundings};
pub use values::Machine;

use plimsoll_diagnostics::Diagnostics;
use text::Parser;

/// Whether a name is a name of an option of fio's jobs or command line, as spelled on the command line.
#[must_use]
pub fn is_option(name: &str) -> bool {
    options::find_on_command_line(name).is_some()
        || options::refusal_of_engine(name).is_some()
        || command_line::is_option(name)
}

/// Whether jobs can set the option `name`.
#[must_use]
pub fn is_settable(name: &str) -> bool {
    options::find(name).is_some_and(|o| matches!(o.handling, options::Handling::Done))
}

/// Parses a job file with its included files. `name` is the path of the file. All jobs have the settings `sets`, names
/// of options with values, instead of their own.
///
/// # Errors
/// All problems of the texts, with their places.
pub fn parse_file(
    text: &str,
    name: &str,
    sets: &[(String, String)],
    surroundings: &Surroundings<'_>,
) -> Result<Input, Diagnostics> {
    let mut parser = Parser::new(surroundings, vec![]);
    parser.job_file(text, name);
    parser.settings_of_all(sets);
    parser.finish()
}

/// Parses a command line with its job files.
///
/// # Errors
/// All problems of the texts, with their places.
pub fn parse_command_line(
    line: &CommandLine,
    surroundings: &Surroundings<'_>,
) -> Result<Input, Diagnostics> {
    let mut parser = Parser::new(surroundings, line.sections.clone());
    parser.command_line(&line.words);
    parser.finish()
}
