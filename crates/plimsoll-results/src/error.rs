//! What can go wrong with results.

use std::io;
use std::path::{Path, PathBuf};

/// Why results cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The file system refuses.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried, such as `write`.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file does not hold what its name promises.
    #[error("{} is no result of a {what}: {source}", path.display())]
    Json {
        /// What it should be the result of, such as `run`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A file is of another version.
    #[error("{} has schema {found}; this program reads schema {reads}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version that is read.
        reads: u32,
    },
    /// A directory holds no results.
    #[error("{} holds no results of Plimsoll", path.display())]
    None {
        /// The directory.
        path: PathBuf,
    },
    /// A directory holds nothing that a killed run left.
    #[error("{} holds nothing of a run that was killed, or the run goes on", path.display())]
    NothingLeft {
        /// The directory.
        path: PathBuf,
    },
    /// Something that is not Plimsoll's lies among results.
    #[error("{} is no file of Plimsoll's", path.display())]
    Foreign {
        /// What lies there.
        path: PathBuf,
    },
    /// Another process is writing to a directory.
    #[error("{} is being written by another process", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// An `intervals.csv` is damaged.
    #[error("{}:{line}: {reason}", path.display())]
    Intervals {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// A `histograms.hlog` is damaged.
    #[error("{}:{line}: {reason}", path.display())]
    Histogram {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
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
}
