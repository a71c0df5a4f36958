//! `results sut`: the description of the system under test.

use super::print;
use crate::cli::SutCommand;
use crate::exit::{CommandError, Exit};
use crate::new_file;
use crate::workload::diagnosed;
use plimsoll_report::disclosure::Sut;
use plimsoll_report::disclosure::sut::{VARIABLE, template};
use std::path::Path;

/// Executes `results sut`: `init` writes a new description of the system under test, `check` lists the entries that an
/// existing description lacks.
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

/// Text of the description that is kept beside the results of a run or series; `None` unless the environment variable
/// [`VARIABLE`] names a file.
///
/// # Errors
/// The errors of [`read`], if the variable names a file.
pub fn text() -> Result<Option<String>, CommandError> {
    let file = std::env::var_os(VARIABLE).filter(|file| !file.is_empty());
    file.map(|file| Ok(read(Path::new(&file))?.1)).transpose()
}

/// Reads a description of the system under test (`sut.toml`); returns the parsed description and the text of the file.
///
/// # Errors
/// If the file cannot be read or is not a valid description; the message has the file name and the position.
pub fn read(file: &Path) -> Result<(Sut, String), CommandError> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|e| CommandError::usage(format!("cannot read {name}: {e}")))?;
    let sut = Sut::parse(&text, &name).map_err(diagnosed)?;
    Ok((sut, text))
}
