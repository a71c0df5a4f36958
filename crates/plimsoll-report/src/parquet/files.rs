//! The three files of an export: all are written, or none.

use crate::parquet::run_facts::RunFacts;
use crate::parquet::source::sources;
use crate::parquet::table::Table;
use crate::parquet::windows::Windows;
use crate::parquet::{ParquetError, histograms, intervals, operations};
use plimsoll_results::RunDir;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// Names of the files.
pub const FILES: [&str; 3] = [
    "operations.parquet",
    "intervals.parquet",
    "histograms.parquet",
];

/// Columns of the file `file`, in order; empty if the name is not among [`FILES`].
#[must_use]
pub fn columns(file: &str) -> Vec<&'static str> {
    fn names<R>(columns: &[crate::parquet::table::Column<R>]) -> Vec<&'static str> {
        columns.iter().map(|c| c.name).collect()
    }
    match FILES.iter().position(|f| *f == file) {
        Some(0) => names(&operations::columns()),
        Some(1) => names(&intervals::columns()),
        Some(2) => names(&histograms::columns()),
        _ => vec![],
    }
}

/// Writes the tables of some results directories into `dir`, which is created if it is missing; returns the paths of
/// the files. On an error, no new file remains.
///
/// # Errors
/// If results cannot be read, if a file exists already, or if a file cannot be written.
pub fn write(results: &[PathBuf], dir: &Path) -> Result<Vec<PathBuf>, ParquetError> {
    let mut all = Vec::new();
    for path in results {
        all.extend(sources(path)?);
    }
    for path in FILES.map(|file| dir.join(file)) {
        if path.symlink_metadata().is_ok() {
            return Err(ParquetError::Exists { path });
        }
    }
    std::fs::create_dir_all(dir).map_err(|e| ParquetError::Write {
        path: dir.to_owned(),
        reason: e.to_string(),
    })?;
    let mut of_operations = Table::create(dir, FILES[0], operations::columns())?;
    let mut of_intervals = Table::create(dir, FILES[1], intervals::columns())?;
    let mut of_histograms = Table::create(dir, FILES[2], histograms::columns())?;
    for source in &all {
        let run_dir = RunDir::at(&source.path);
        let run = run_dir.read()?;
        let facts = Arc::new(RunFacts::of(&run, source));
        let windows = Windows::of(&run);
        operations::add(&mut of_operations, &facts, &run)?;
        intervals::add(&mut of_intervals, &facts, &windows, &run_dir)?;
        histograms::add(&mut of_histograms, &facts, (&run, &windows), &run_dir)?;
    }
    publish(vec![
        of_operations.finish()?,
        of_intervals.finish()?,
        of_histograms.finish()?,
    ])
}

/// Renames all files into place; if a name is taken, removes the renamed files again.
fn publish(files: Vec<(NamedTempFile, PathBuf)>) -> Result<Vec<PathBuf>, ParquetError> {
    // Synced before the rename, so a file with its final name is complete even after a power cut.
    for (file, path) in &files {
        file.as_file().sync_all().map_err(|e| ParquetError::Write {
            path: path.clone(),
            reason: e.to_string(),
        })?;
    }
    let mut published = Vec::new();
    for (file, path) in files {
        if let Err(e) = file.persist_noclobber(&path) {
            for made in &published {
                // The file was created here, and is useless without the others.
                let _ = std::fs::remove_file(made);
            }
            return Err(match e.error.kind() {
                ErrorKind::AlreadyExists => ParquetError::Exists { path },
                _ => ParquetError::Write {
                    path,
                    reason: e.error.to_string(),
                },
            });
        }
        published.push(path);
    }
    Ok(published)
}
