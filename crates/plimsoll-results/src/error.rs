//! Errors of results.

use crate::{HISTOGRAMS_FILE, INTERVALS_FILE, RUN_FILE};
use plimsoll_diagnostics::foreign;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why results cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A call of the operating system failed.
    #[error("cannot {doing} {}: {source}", escaped_path(path))]
    Io {
        /// Verb of the action that the operating system refused, such as `write`.
        doing: &'static str,
        /// Path of the file or directory that the action was attempted on.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A directory has only some of the files of a result.
    #[error("{} is not a complete result: it lacks {}", escaped_path(dir), files.join(" and "))]
    Lacks {
        /// Results directory that lacks some of the files of a complete result.
        dir: PathBuf,
        /// Names of the files that the results directory lacks.
        files: Vec<String>,
    },
    /// A file is not a valid document of the expected kind.
    #[error("{} is not a valid result ({what}): {source}", escaped_path(path))]
    Json {
        /// Kind of document that the file should contain, such as `run`.
        what: &'static str,
        /// Path of the file that contains no valid document.
        path: PathBuf,
        /// Error of the JSON parser with line and column, or the first fault of a document that was parsed.
        source: serde_json::Error,
    },
    /// A document has another schema version than this program reads.
    #[error(
        "{} has {}; this program reads version {reads}",
        escaped_path(path),
        version(found.as_deref())
    )]
    Schema {
        /// Path of the document with another schema version.
        path: PathBuf,
        /// Schema version that the document states; `None` if the document states no version.
        found: Option<String>,
        /// Schema version that this program reads.
        reads: u32,
    },
    /// A directory contains neither `run.json` nor `series.json`.
    #[error("{} holds no results of Plimsoll", escaped_path(path))]
    None {
        /// Directory in which results were expected.
        path: PathBuf,
    },
    /// A directory contains no remains of a killed run.
    #[error(
        "{} contains no remains of a killed run, or its run is still in progress",
        escaped_path(path)
    )]
    NothingLeft {
        /// Directory that was searched for killed runs.
        path: PathBuf,
    },
    /// A directory of results contains an entry that Plimsoll did not write.
    #[error("{} is not a file of Plimsoll's", escaped_path(path))]
    Foreign {
        /// Path of the entry that Plimsoll did not write.
        path: PathBuf,
    },
    /// Another process is writing results to a directory.
    #[error("{} is being written by another process", escaped_path(path))]
    InUse {
        /// Directory that another process has locked.
        path: PathBuf,
    },
    /// A line of `intervals.csv` or `histograms.hlog` is damaged.
    #[error("{}:{line}: {reason}", escaped_path(path))]
    Damaged {
        /// Path of the damaged time series.
        path: PathBuf,
        /// Number of the damaged line, from 1.
        line: u64,
        /// Defect of the line, as a phrase.
        reason: String,
    },
}

/// Path as text for an error message, with control characters escaped, so that the message remains one line.
fn escaped_path(path: &Path) -> String {
    foreign::escaped(&path.to_string_lossy()).into_owned()
}

/// The schema version of a file, for an error message.
fn version(found: Option<&str>) -> String {
    found.map_or("no schema version".into(), |n| {
        format!("schema version {n}")
    })
}

impl ResultsError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }

    /// Converts an error of reading a file of a result. The error for a run names all missing files, not only the
    /// opened file.
    pub(crate) fn reading(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let (dir, name) = match (path.parent(), path.file_name()) {
                (Some(dir), Some(name)) if source.kind() == io::ErrorKind::NotFound => {
                    let dir = match dir.as_os_str().is_empty() {
                        true => Path::new("."),
                        false => dir,
                    };
                    (dir, name.to_string_lossy())
                }
                _ => return Self::io("read", path)(source),
            };
            if !dir.is_dir() {
                return Self::io("read", path)(source);
            }
            let mut files = vec![name.to_string()];
            if MISSING_RUN_HINT.contains(&&*name) {
                files = MISSING_RUN_HINT.map(String::from).to_vec();
                files.retain(|file| !dir.join(file).exists());
            }
            Self::Lacks {
                dir: dir.to_owned(),
                files,
            }
        }
    }
}

/// Files that every result of a run has.
pub(crate) const MISSING_RUN_HINT: [&str; 3] = [RUN_FILE, HISTOGRAMS_FILE, INTERVALS_FILE];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_whatever_the_path() {
        let path = PathBuf::from("a\nb\u{202e}");
        let error = ResultsError::None { path };
        let said = r"a\u000ab\u202e holds no results of Plimsoll";
        assert_eq!(error.to_string(), said);
    }
}
