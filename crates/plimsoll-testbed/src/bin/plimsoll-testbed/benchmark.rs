//! The program `plimsoll`, which loads beds.

use plimsoll_testbed::BedError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// File name of the program `plimsoll`.
const NAME: &str = "plimsoll";

/// Path of the executable of `plimsoll-testbed`.
///
/// # Errors
/// If the system does not give the path.
pub fn own_program() -> Result<PathBuf, BedError> {
    std::env::current_exe().map_err(|e| BedError::failed("cannot find this program", e))
}

/// A command of `plimsoll`: of the executable in the directory of `plimsoll-testbed`, or else of the executable on the
/// `PATH`. The directory is on the `PATH` of shell commands that `plimsoll` runs.
///
/// # Errors
/// If the system does not give the path of `plimsoll-testbed`.
pub fn command() -> Result<Command, BedError> {
    let own = own_program()?;
    let dir = own.parent().unwrap_or(Path::new("/"));
    let beside = dir.join(NAME);
    if !beside.is_file() {
        return Ok(Command::new(NAME));
    }
    let mut command = Command::new(beside);
    if let Some(path) = path_with(dir, &std::env::var_os("PATH").unwrap_or_default()) {
        command.env("PATH", path);
    }
    Ok(command)
}

/// Replaces this process by a command; returns only if the replacement fails, with the reason.
pub fn execute(mut command: Command) -> BedError {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    let program = Path::new(command.get_program()).display();
    BedError::failed(format!("cannot execute {program}"), error)
}

/// A `PATH` with a directory at its beginning. `None` if the `PATH` has the directory already, or if the name of the
/// directory cannot be an element of a `PATH`.
fn path_with(dir: &Path, path: &std::ffi::OsStr) -> Option<OsString> {
    let mut dirs = std::env::split_paths(path);
    if dirs.any(|d| d == dir) {
        return None;
    }
    let all = std::iter::once(dir.to_owned()).chain(std::env::split_paths(path));
    std::env::join_paths(all).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_the_programs_is_in_the_path_once() {
        let of = |path: &str| path_with(Path::new("/p"), path.as_ref());
        assert_eq!(of("/bin:/usr/bin"), Some("/p:/bin:/usr/bin".into()));
        assert_eq!(of("/bin:/p"), None);
        assert_eq!(path_with(Path::new("/a:b"), "/bin".as_ref()), None);
    }
}
