//! `results tag` and `results note`: annotations of results by the user.

use super::print;
use crate::cli::{NoteArgs, TagArgs};
use crate::exit::{CommandError, Exit};
use plimsoll_results::{Annotations, Kind, ResultsError};

/// Adds and removes tags of results, and prints the resulting tags. If one of the directories given to `results tag`
/// holds no results, no tag is changed.
pub fn tag(args: &TagArgs) -> Result<Exit, CommandError> {
    if let Some(both) = args.add.iter().find(|t| args.remove.contains(t)) {
        return Err(CommandError::usage(format!(
            "`{both}` is both added and removed"
        )));
    }
    for dir in &args.results {
        let readable = Kind::of(dir).and_then(|_| Annotations::read(dir));
        readable.map_err(CommandError::usage)?;
    }
    let only_asks = args.add.is_empty() && args.remove.is_empty();
    let mut out = String::new();
    for dir in &args.results {
        let now = match only_asks {
            true => Annotations::read(dir),
            false => Annotations::change(dir, |a| {
                a.tags.retain(|t| !args.remove.contains(t));
                a.tags.extend(args.add.iter().cloned());
            }),
        };
        let tags = now.map_err(stopped)?.tag_list();
        let tags = if tags.is_empty() { "no tags" } else { &tags };
        out.push_str(&format!("{}: {tags}\n", dir.display()));
    }
    print(&out)
}

/// Writes the note of a results directory, or prints the note if no text is given.
pub fn note(args: &NoteArgs) -> Result<Exit, CommandError> {
    let dir = &args.results;
    let Some(text) = &args.text else {
        let annotations = Kind::of(dir).and_then(|_| Annotations::read(dir));
        let note = annotations.map_err(CommandError::usage)?.note;
        return match note.is_empty() {
            true => Ok(Exit::Valid),
            false => print(&format!("{note}\n")),
        };
    };
    let text = text.trim().to_owned();
    Annotations::change(dir, |a| a.note = text).map_err(stopped)?;
    Ok(Exit::Valid)
}

/// Command error: an I/O error is a failure, any other error a usage error.
fn stopped(e: ResultsError) -> CommandError {
    match e {
        ResultsError::Io { .. } => CommandError::failed(e),
        e => CommandError::usage(e),
    }
}
