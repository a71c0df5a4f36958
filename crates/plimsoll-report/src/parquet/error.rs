//! Errors of Parquet exports.

use plimsoll_diagnostics::foreign;
use plimsoll_results::ResultsError;
use std::path::{Path, PathBuf};

/// Reason why the tables cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ParquetError {
    /// Results cannot be read.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// A results directory contains no run.
    #[error("{} has no run in it", foreign::escaped(&path.display().to_string()))]
    NoRun {
        /// Results directory without a run.
        path: PathBuf,
    },
    /// A file of the export exists already.
    #[error("{} already exists and is not overwritten", foreign::escaped(&path.display().to_string()))]
    Exists {
        /// Path of the existing file.
        path: PathBuf,
    },
    /// A number does not fit its column.
    #[error(
        "{value} is too large for the column {column} of {file}: the maximum is {}",
        i64::MAX
    )]
    TooLarge {
        /// Name of the file with the column.
        file: &'static str,
        /// Name of the column.
        column: &'static str,
        /// The number that is too large.
        value: u64,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {reason}", foreign::escaped(&path.display().to_string()))]
    Write {
        /// Path of the file, or of its directory.
        path: PathBuf,
        /// Reason, from the system or the Parquet library.
        reason: String,
    },
}

impl ParquetError {
    /// Error of an export whose file or directory at `path` cannot be written.
    pub(super) fn write(path: &Path, reason: impl ToString) -> Self {
        Self::Write {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}
