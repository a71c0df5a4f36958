//! What can go wrong with results.

use crate::{HISTOGRAMS_FILE, INTERVALS_FILE, RUN_FILE};
use plimsoll_diagnostics::foreign;
use std::io;
use std::path::{Path, PathBuf};

/// Why results cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The file system refuses.
    #[error("cannot {doing} {}: {source}", escaped_path(path))]
    Io {
        /// What was tried, such as `write`.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A directory has only some of the files of a result.
    #[error("{} is not a complete result: it lacks {}", escaped_path(dir), files.join(" and "))]
    Lacks {
        /// The directory.
        dir: PathBuf,
        /// What it should have besides.
        files: Vec<String>,
    },
    /// A file does not hold what its name promises.
    #[error("{} is not a valid result ({what}): {source}", escaped_path(path))]
    Json {
        /// What it should be the result of, such as `run`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A file is of another version.
    #[error(
        "{} has schema {found}; this program reads schema {reads}",
        escaped_path(path)
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version that is read.
        reads: u32,
    },
    /// A directory holds no results.
    #[error("{} holds no results of Plimsoll", escaped_path(path))]
    None {
        /// The directory.
        path: PathBuf,
    },
    /// A directory holds nothing that a killed run left.
    #[error(
        "{} holds nothing of a killed run, or the run is in progress",
        escaped_path(path)
    )]
    NothingLeft {
        /// The directory.
        path: PathBuf,
    },
    /// Something that is not Plimsoll's lies among results.
    #[error("{} is no file of Plimsoll's", escaped_path(path))]
    Foreign {
        /// What lies there.
        path: PathBuf,
    },
    /// Another process is writing to a directory.
    #[error("{} is being written by another process", escaped_path(path))]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// An `intervals.csv` is damaged.
    #[error("{}:{line}: {reason}", escaped_path(path))]
    Intervals {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// A `histograms.hlog` is damaged.
    #[error("{}:{line}: {reason}", escaped_path(path))]
    Histogram {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

/// A path in an error, which remains one line.
fn escaped_path(path: &Path) -> String {
    foreign::escaped(&path.to_string_lossy()).into_owned()
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

    /// Why a file of a result cannot be read. Of a run all files that are missing are named,
    /// whichever was looked for.
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
