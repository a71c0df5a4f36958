//! `results sut`: the description of the system under test.

use super::import::refused;
use super::print;
use crate::cli::SutCommand;
use crate::exit::{CommandError, Exit};
use crate::new_file;
use plimsoll_report::disclosure::Sut;
use plimsoll_report::disclosure::sut::template;
use std::path::Path;

/// Writes or checks a description.
pub fn run(what: &SutCommand) -> Result<Exit, CommandError> {
    match what {
        SutCommand::Init { output, dir } => init(output, dir),
        SutCommand::Check { file } => check(file),
    }
}

fn init(output: &Path, dir: &Path) -> Result<Exit, CommandError> {
    if !dir.is_dir() {
        let dir = dir.display();
        return Err(CommandError::usage(format!(
            "--dir {dir} is not a directory; give one on the file system that is measured"
        )));
    }
    let text = template(&Sut::of_this_machine(dir));
    // Never overwrite: the user may have completed an existing description.
    new_file::create(output, text)?;
    match new_file::is_stream(output) {
        true => Ok(Exit::Valid),
        false => print(&format!(
            "wrote {}; complete it by hand\n",
            output.display()
        )),
    }
}

fn check(file: &Path) -> Result<Exit, CommandError> {
    let (sut, _) = read(file)?;
    let (stated, missing) = sut.stated();
    let place = file.display();
    let all = stated + missing.len();
    let mut out = format!("{place}: {stated} of {all} entries are stated\n");
    for path in missing {
        out.push_str(&format!("  {path} is not stated\n"));
    }
    print(&out)
}

/// Reads a description of the system under test; returns it parsed and as text.
///
/// # Errors
/// If the file cannot be read or is invalid; the message has the position.
pub fn read(file: &Path) -> Result<(Sut, String), CommandError> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|e| CommandError::usage(format!("cannot read {name}: {e}")))?;
    let sut = Sut::parse(&text, &name).map_err(|d| refused(&d))?;
    Ok((sut, text))
}
