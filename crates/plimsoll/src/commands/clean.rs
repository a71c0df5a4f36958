//! `clean`: removes the files of interrupted runs.

use crate::cli::CleanArgs;
use crate::exit::{CommandError, Exit};
use plimsoll_engine::{EngineError, Settings, Stop, is_left_by_run};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Search depth for markers, in levels below the given directory.
const MAX_SEARCH_DEPTH: u32 = 3;

/// Removes the files that interrupted runs left in the work directory given to `clean`, or, without a marker there, in
/// work directories up to `MAX_SEARCH_DEPTH` levels below.
pub fn run(args: &CleanArgs) -> Result<Exit, CommandError> {
    let dir = &args.dir;
    if plimsoll_target::is_remote(&args.target) {
        return clean(args, vec![Path::new("/").join(dir)]);
    }
    if !dir.is_dir() {
        let dir = dir.display();
        return Err(CommandError::usage(format!("`{dir}` is not a directory")));
    }
    let mut marked = Vec::new();
    find(dir, MAX_SEARCH_DEPTH, &mut marked)
        .map_err(|e| CommandError::usage(format!("cannot read `{}`: {e}", dir.display())))?;
    if marked.is_empty() {
        return Err(CommandError::usage(format!(
            "neither `{0}` nor a directory up to {MAX_SEARCH_DEPTH} levels below it has a Plimsoll \
             marker: nothing to clean",
            dir.display()
        )));
    }
    clean(args, marked)
}

/// Removes the files that the marker of each directory in `marked` lists; an error in one directory sets the exit code,
/// and the files of the next directories are removed nevertheless.
fn clean(args: &CleanArgs, marked: Vec<PathBuf>) -> Result<Exit, CommandError> {
    let settings = Settings {
        target: args.target.clone(),
        ..Settings::default()
    };
    let mut said = String::new();
    let mut exit = Exit::Valid;
    for place in marked {
        let shown = place.display();
        match plimsoll_engine::clean(&place, &settings, args.force, &Stop::default()) {
            Ok(left) => {
                if left.unremoved.is_empty() {
                    _ = write!(said, "cleaned {shown}");
                } else {
                    exit = Exit::Failed;
                    for error in &left.unremoved {
                        crate::console::err(&format!("error: {error}\n"));
                    }
                    _ = write!(said, "cleaned a part of {shown}");
                }
                match left.foreign.is_empty() {
                    true => said.push('\n'),
                    false => said.push_str("; Plimsoll did not make, and left:\n"),
                }
                for path in &left.foreign {
                    _ = writeln!(said, "  {path}");
                }
            }
            // An error in one work directory is printed and does not prevent the removal in the next work directory.
            Err(e) => {
                crate::console::err(&format!("error: {e}\n"));
                exit = match (e, exit) {
                    (EngineError::Refused(_), Exit::Valid) => Exit::Usage,
                    (EngineError::Refused(_), exit) => exit,
                    _ => Exit::Failed,
                };
            }
        }
    }
    super::print(&said)?;
    Ok(exit)
}

/// Appends to `marked` the directory `dir` if it contains a marker, or the claim of a run that ended before the marker
/// was written; otherwise searches `depth` levels of subdirectories. The search for markers follows no symbolic links.
fn find(dir: &Path, depth: u32, marked: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut below = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let is_left = |is_dir| is_left_by_run(entry.file_name().as_bytes(), is_dir);
        if kind.is_file() && is_left(false) || kind.is_dir() && is_left(true) {
            marked.push(dir.to_owned());
            return Ok(());
        }
        if kind.is_dir() {
            below.push(entry.path());
        }
    }
    if depth > 0 {
        for dir in below {
            // This user cannot have left files in an unreadable directory.
            let _ = find(&dir, depth - 1, marked);
        }
    }
    Ok(())
}
