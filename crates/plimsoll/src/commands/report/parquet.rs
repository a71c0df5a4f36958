//! `report --format parquet`: tables of operations, intervals and histograms of results.

use super::results::{results_dir, unreadable};
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
    let mut dirs = Vec::new();
    for path in results {
        let Some(dir) = results_dir(path) else {
            return Err(CommandError::usage(format!(
                "{} is a file, and --format parquet is made of results directories",
                path.display()
            )));
        };
        // Report killed runs by their own error.
        plimsoll_results::Kind::of(dir).map_err(|e| unreadable(dir, &e))?;
        dirs.push(dir.to_owned());
    }
    let written = plimsoll_report::parquet::write(&dirs, output).map_err(|e| match e {
        ParquetError::Write { .. } => CommandError::failed(e),
        other => CommandError::usage(other),
    })?;
    let names = written.iter().map(|path| format!("{}\n", path.display()));
    print(&names.collect::<String>())
}
