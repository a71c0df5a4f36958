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
        /// The attempted action, such as `write`.
        doing: &'static str,
        /// Path of the file or directory that the action was attempted on.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A directory has only some of the files of a result.
    #[error("{} is not a complete result: it lacks {}", escaped_path(dir), files.join(" and "))]
    Lacks {
        /// The directory.
        dir: PathBuf,
        /// The missing files.
        files: Vec<String>,
    },
    /// A file is not a valid document of the expected kind.
    #[error("{} is not a valid result ({what}): {source}", escaped_path(path))]
    Json {
        /// The expected kind of document, such as `run`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the JSON parser.
        source: serde_json::Error,
    },
    /// A file has another schema version.
    #[error(
        "{} has {}; this program reads version {reads}",
        escaped_path(path),
        version(found.as_deref())
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// Schema version of the file; `None` if the file states none.
        found: Option<String>,
        /// The version that this program reads.
        reads: u32,
    },
    /// A directory holds no results.
    #[error("{} holds no results of Plimsoll", escaped_path(path))]
    None {
        /// The directory.
        path: PathBuf,
    },
    /// A directory contains no remains of a killed run.
    #[error(
        "{} contains no remains of a killed run, or its run is still in progress",
        escaped_path(path)
    )]
    NothingLeft {
        /// The directory.
        path: PathBuf,
    },
    /// An entry among results is not Plimsoll's.
    #[error("{} is not a file of Plimsoll's", escaped_path(path))]
    Foreign {
        /// The foreign entry.
        path: PathBuf,
    },
    /// Another process is writing to a directory.
    #[error("{} is being written by another process", escaped_path(path))]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A line of a time series is damaged.
    #[error("{}:{line}: {reason}", escaped_path(path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Number of the damaged line, from 1.
        line: u64,
        /// Defect of the line, as a phrase.
        reason: String,
    },
}

/// A path for an error message, which must remain one line.
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
