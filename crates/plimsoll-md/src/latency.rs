//! Files with the time of every operation.

use crate::lower::{ADAPTIVE, BENCHMARK, CLEANUP, PRECREATE, row};
use crate::numbers::{exponential, seconds};
use crate::options::{Options, PatternOptions, Workbench};
use plimsoll_measure::Nanos;
use plimsoll_plan::{Operation, Plan, Stage};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// First line of each file.
const HEADER: &str = "time,runtime";

/// Writes `PREFIX-FACTOR-ITERATION-OPERATION.csv` files, named and filled as MD-Workbench's: one
/// for each stage and kind of operation, with a line for every operation.
#[derive(Debug)]
pub struct LatencyFiles {
    /// Files of each stage, by row.
    names: Vec<BTreeMap<u32, PathBuf>>,
    /// Those of the stage under way.
    open: BTreeMap<(u32, u32), BufWriter<File>>,
}

/// Why the time of every operation cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum LatencyError {
    /// A file of this name is there already.
    #[error(
        "{} is there already, and is not overwritten: move it away, or choose another prefix \
         with -L", .0.display()
    )]
    Exists(PathBuf),
    /// A file cannot be made or written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl LatencyFiles {
    /// For a run of `plan`, which was lowered from `options`; `None` if no times are asked for.
    ///
    /// # Errors
    /// When a file of the run exists already, or the directory they go to is missing. Nothing has
    /// been written then.
    pub fn new(options: &Options, plan: &Plan) -> Result<Option<Self>, LatencyError> {
        let pattern = plan.groups.first().and_then(|g| g.program.pattern());
        let (Some(prefix), Some(pattern)) = (&options.latency, pattern) else {
            return Ok(None);
        };
        let all = if options.latency_all { "-all" } else { "" };
        let names: Vec<BTreeMap<u32, PathBuf>> = pattern
            .stages
            .iter()
            .map(|stage| {
                let mut rows = BTreeMap::new();
                if stage.warm_up {
                    return rows;
                }
                stage.work.for_each_row(&mut |id| {
                    let name = name(options, stage, plan.operation(id));
                    if let Some(name) = name {
                        let mut path = prefix.clone();
                        path.push(format!("-{name}{all}.csv"));
                        rows.insert(id.0, PathBuf::from(path));
                    }
                });
                rows
            })
            .collect();
        for path in names.iter().flat_map(BTreeMap::values) {
            check(path)?;
        }
        let open = BTreeMap::new();
        Ok(Some(Self { names, open }))
    }

    /// Paths of all files of the run.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.names
            .iter()
            .flat_map(|s| s.values().map(PathBuf::as_path))
    }

    /// Adds operations of a row of a stage, in the order they were done: when each began, since
    /// the stage did, and how long it took, in nanoseconds. Ranks follow each other.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(
        &mut self,
        stage: u32,
        row: u32,
        samples: &[(Nanos, Nanos)],
    ) -> Result<(), LatencyError> {
        let of_stage = self.names.get(stage as usize);
        let Some(path) = of_stage.and_then(|s| s.get(&row)) else {
            return Ok(());
        };
        let failed = |error| LatencyError::Write {
            path: path.clone(),
            error,
        };
        let file = match self.open.entry((stage, row)) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(missing) => {
                missing.insert(begin(path).map_err(failed)?)
            }
        };
        for (start, duration) in samples {
            let (start, duration) = (seconds(*start), exponential(seconds(*duration)));
            writeln!(file, "{start:.7},{duration}").map_err(failed)?;
        }
        Ok(())
    }

    /// Ends the files of a stage; those without an operation hold the header alone.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn end_stage(&mut self, stage: u32) -> Result<(), LatencyError> {
        let of_stage = self.names.get(stage as usize);
        let rows: Vec<u32> = of_stage
            .into_iter()
            .flat_map(|s| s.keys().copied())
            .collect();
        for row in rows {
            self.add(stage, row, &[])?;
            if let Some(mut file) = self.open.remove(&(stage, row)) {
                file.flush().map_err(|error| LatencyError::Write {
                    path: self.names[stage as usize][&row].clone(),
                    error,
                })?;
            }
        }
        Ok(())
    }
}

/// Makes sure that a file can be made.
fn check(path: &Path) -> Result<(), LatencyError> {
    if std::fs::symlink_metadata(path).is_ok() {
        return Err(LatencyError::Exists(path.into()));
    }
    let dir = match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    };
    let wrong = match std::fs::metadata(dir) {
        Ok(m) if m.is_dir() => return Ok(()),
        Ok(_) => io::ErrorKind::NotADirectory.into(),
        Err(e) => e,
    };
    Err(LatencyError::Write {
        path: path.into(),
        error: wrong,
    })
}

fn begin(path: &Path) -> io::Result<BufWriter<File>> {
    let mut file = BufWriter::new(File::create_new(path)?);
    writeln!(file, "{HEADER}")?;
    Ok(file)
}

/// The part of a file's name that tells stage and operation; `None` for operations that no file
/// is kept of.
fn name(options: &Options, stage: &Stage, operation: &Operation) -> Option<String> {
    match &options.pattern {
        PatternOptions::Workbench(w) => workbench_name(w, stage, &operation.name),
        _ => {
            let operation = operation.name.replace(' ', "-");
            let stage = stage.name.replace(' ', "-");
            Some(format!("0.00-0-{stage}-{operation}"))
        }
    }
}

/// MD-Workbench names files by the waiting factor and the iteration that are set when a phase
/// ends: outside of the benchmark phase those that come before it or after it.
fn workbench_name(w: &Workbench, stage: &Stage, operation: &str) -> Option<String> {
    let measured = w.phases.benchmark && w.iterations > 0;
    let (factor, iteration, operation) = match (stage.name.as_str(), operation) {
        (PRECREATE, row::CREATE) => (w.waiting, 0, "precreate"),
        (CLEANUP, row::DELETE) => {
            let after = 2.0 * ADAPTIVE[ADAPTIVE.len() - 1];
            let factor = if w.adaptive && measured {
                after
            } else {
                w.waiting
            };
            let iteration = if measured { w.iterations } else { 0 };
            (factor, iteration, "cleanup")
        }
        (BENCHMARK, operation) => (stage.waiting_factor, stage.iteration, operation),
        _ => return None,
    };
    Some(format!("{factor:.2}-{iteration}-{operation}"))
}
