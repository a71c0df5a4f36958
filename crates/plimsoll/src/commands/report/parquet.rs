//! `report --format parquet`: tables of operations, intervals and histograms of results.

use super::results::results_dirs;
use crate::commands::print;
use crate::exit::{CommandError, Exit};
use plimsoll_report::parquet::ParquetError;
use std::path::{Path, PathBuf};

/// Writes the Parquet tables of `results`, a file each, into the directory `output`, and prints the names of the files.
///
/// # Errors
/// If `output` is missing, a path holds no results that Plimsoll measured, or a file exists or cannot be written.
pub(super) fn write(results: &[PathBuf], output: Option<&Path>) -> Result<Exit, CommandError> {
    let Some(output) = output else {
        return Err(CommandError::usage(
            "tables are several files: --output says which directory they are put in",
        ));
    };
    let dirs = results_dirs(results, "parquet")?;
    let written = plimsoll_report::parquet::write(&dirs, output).map_err(|e| match e {
        ParquetError::Write { .. } => CommandError::failed(e),
        other => CommandError::usage(other),
    })?;
    let names = written.iter().map(|path| format!("{}\n", path.display()));
    print(&names.collect::<String>())
}
