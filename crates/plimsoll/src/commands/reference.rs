//! `docs reference`: Markdown reference pages, generated from the definitions that the program uses.

mod commands;
mod language;
mod markdown;
mod schemas;
mod workloads;

use crate::exit::{CommandError, Exit};
use crate::new_file;
use std::path::{Path, PathBuf};

/// File with the list of all pages, in the format of mdBook's `SUMMARY.md`.
const LIST: &str = "SUMMARY.md";

/// A Markdown page of the reference, with its subpages.
struct Page {
    /// Path relative to the output directory.
    path: PathBuf,
    title: String,
    text: String,
    /// Subpages.
    parts: Vec<Page>,
}

impl Page {
    fn new(path: &str, title: &str, text: String) -> Self {
        Self {
            path: path.into(),
            title: title.into(),
            text,
            parts: Vec::new(),
        }
    }

    /// Pages of the tree below and including this page, depth first, in the order of `SUMMARY.md`.
    fn all(&self) -> Vec<&Page> {
        let parts = self.parts.iter().flat_map(Page::all);
        std::iter::once(self).chain(parts).collect()
    }

    /// Lines of `SUMMARY.md` for the page, indented by `depth` levels, and for its subpages.
    fn lines(&self, depth: usize) -> String {
        let (indent, path) = ("  ".repeat(depth), self.path.display());
        let line = format!("{indent}- [{}](reference/{path})\n", self.title);
        let parts = self.parts.iter().map(|p| p.lines(depth + 1));
        std::iter::once(line).chain(parts).collect()
    }
}

/// Writes all pages of the reference and their list `SUMMARY.md` to a directory.
///
/// # Errors
/// If the file of a page or `SUMMARY.md` exists already, or cannot be written.
pub fn run(dir: &Path) -> Result<Exit, CommandError> {
    let pages = [
        commands::page(),
        workloads::page()?,
        language::page(),
        schemas::files(),
        schemas::results(),
    ];
    let list: String = pages.iter().map(|p| p.lines(0)).collect();
    let all: Vec<&Page> = pages.iter().flat_map(Page::all).collect();
    let files = all.iter().map(|p| (p.path.as_path(), p.text.as_str()));
    let files: Vec<(PathBuf, &str)> = files
        .chain([(Path::new(LIST), list.as_str())])
        .map(|(path, text)| (dir.join(path), text))
        .collect();
    new_file::create_all(&files)?;
    Ok(Exit::Valid)
}
