//! Companion programs: an unknown command `NAME` runs the program `plimsoll-NAME` from the directory of this program or
//! the `PATH`.

use crate::cli;
use crate::exit::CommandError;
use clap::error::{Error, ErrorKind};
use rustix::fs::{Access, access};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Replaces this process by the companion program named on the command line, if `error` reports an unknown command. The
/// command line `help NAME` becomes `NAME --help`. Returns `None` if no such program exists, or the error if the
/// program cannot be executed.
pub fn execute(line: &[OsString], error: &Error) -> Option<CommandError> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let help = [OsString::from("--help")];
    let (name, arguments) = match line.get(1..)? {
        [first, name, ..] if first == "help" => (name, &help[..]),
        [name, rest @ ..] => (name, rest),
        [] => return None,
    };
    let program = find(name.to_str()?)?;
    let failure = Command::new(&program).args(arguments).exec();
    Some(CommandError::failed(format!(
        "cannot execute {}: {failure}",
        program.display()
    )))
}

/// Finds the companion program of a command; `None` for a command of this program.
fn find(name: &str) -> Option<PathBuf> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let is_own = cli::definition().find_subcommand(name).is_some();
    if is_own || name.starts_with('-') || !name.chars().all(is_plain) {
        return None;
    }
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|path| Some(path.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = beside.into_iter().chain(std::env::split_paths(&path));
    let mut programs = dirs.map(|dir| dir.join(format!("plimsoll-{name}")));
    programs.find(|program| program.is_file() && access(program, Access::EXEC_OK).is_ok())
}
