//! The three files of an export: all are written, or none.

use crate::parquet::facts::{RunFacts, WindowFacts, Windows};
use crate::parquet::source::sources;
use crate::parquet::table::{Cell, Table};
use crate::parquet::{ParquetError, histograms, intervals, operations};
use plimsoll_results::{IntervalRow, RunDir};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Names of the files of an export, in the order in which [`write()`] returns their paths.
pub const FILES: [&str; 3] = [
    "operations.parquet",
    "intervals.parquet",
    "histograms.parquet",
];

/// Creates the empty tables of an export, in the order of [`FILES`]. `facts` may be of any run: only the names and
/// types of the cells matter.
fn tables(dir: &Path, facts: &RunFacts) -> Result<[Table; 3], ParquetError> {
    let create = |file: &'static str, cells: &[&[Cell]]| {
        let sample = [&[&facts.cells[..]], cells].concat().concat();
        Table::create(dir, file, &sample)
    };
    let window = WindowFacts::new("run", 0, None, None);
    let interval = intervals::cells(facts, &window, &IntervalRow::default());
    let bucket = histograms::sample(facts);
    Ok([
        create(FILES[0], &[&operations::sample()])?,
        create(FILES[1], &[&window.cells, &interval])?,
        create(FILES[2], &[&window.cells, &bucket])?,
    ])
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
    std::fs::create_dir_all(dir).map_err(|e| ParquetError::write(dir, e))?;
    let mut tables = None;
    for source in &all {
        let run_dir = RunDir::at(&source.path);
        let run = run_dir.read()?;
        let facts = RunFacts::of(&run, source);
        let mut windows = Windows::of(&run);
        let [of_operations, of_intervals, of_histograms] = match &mut tables {
            Some(tables) => tables,
            none => none.insert(self::tables(dir, &facts)?),
        };
        operations::rows(&run, |row| {
            of_operations.push(facts.cells.iter().chain(row))
        })?;
        intervals::add(of_intervals, &facts, &mut windows, &run_dir)?;
        histograms::add(of_histograms, &facts, (&run, &mut windows), &run_dir)?;
    }
    let tables = tables.into_iter().flatten().map(Table::finish);
    publish(tables.collect::<Result<_, _>>()?)
}

/// Renames all files into place; if a name is taken, removes the renamed files again.
fn publish(files: Vec<(NamedTempFile, PathBuf)>) -> Result<Vec<PathBuf>, ParquetError> {
    // Synced before the rename, so a file with its final name is complete even after a power cut.
    for (file, path) in &files {
        let synced = file.as_file().sync_all();
        synced.map_err(|e| ParquetError::write(path, e))?;
    }
    let mut published = Vec::new();
    for (file, path) in files {
        if let Err(e) = file.persist_noclobber(&path) {
            for made in &published {
                // The three files of an export belong together, so the files made so far are removed.
                let _ = std::fs::remove_file(made);
            }
            return Err(match e.error.kind() {
                ErrorKind::AlreadyExists => ParquetError::Exists { path },
                _ => ParquetError::write(&path, e.error),
            });
        }
        published.push(path);
    }
    Ok(published)
}
