//! Errors of tables.

use plimsoll_diagnostics::foreign;
use plimsoll_results::ResultsError;
use std::path::PathBuf;

/// The reason why there are no tables.
#[derive(Debug, thiserror::Error)]
pub enum ParquetError {
    /// Results cannot be read.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// Results hold no run.
    #[error("{} has no run in it", foreign::escaped(&path.display().to_string()))]
    NoRun {
        /// Their directory.
        path: PathBuf,
    },
    /// A file is there.
    #[error("{} already exists and is not overwritten", foreign::escaped(&path.display().to_string()))]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A number does not fit its column.
    #[error(
        "{value} is too large for the column {column} of {file}: the maximum is {}",
        i64::MAX
    )]
    TooLarge {
        /// Name of the file.
        file: &'static str,
        /// The column.
        column: &'static str,
        /// The number.
        value: u64,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {reason}", foreign::escaped(&path.display().to_string()))]
    Write {
        /// The file, or its directory.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}
