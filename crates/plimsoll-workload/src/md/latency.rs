//! CSV files with the start and the duration of every operation (`-L`).

use crate::md::lower::{ADAPTIVE, BENCHMARK, CLEANUP, PRECREATE, row};
use crate::md::numbers::{exponential, seconds};
use crate::md::options::{Options, PatternOptions, Workbench};
use crate::md::run_info::check_parent;
use plimsoll_measure::Nanos;
use plimsoll_plan::{Operation, Plan, Stage};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// First line of each file; both columns are in seconds.
const HEADER: &str = "time,runtime";

/// Writes one CSV file for each measured stage and kind of operation, with a line for every operation. The file names
/// are `PREFIX-FACTOR-ITERATION-OPERATION.csv` for MD-Workbench's pattern, as in MD-Workbench, and
/// `PREFIX-0.00-0-STAGE-OPERATION.csv` for other patterns; with `--latency-all`, `-all` precedes `.csv`. In
/// MD-Workbench's pattern, operations on data sets have no file.
#[derive(Debug)]
pub struct LatencyFiles {
    /// Files of each stage, by row.
    names: Vec<BTreeMap<u32, PathBuf>>,
    /// Open files, by stage and row.
    open: BTreeMap<(u32, u32), BufWriter<File>>,
}

impl LatencyFiles {
    /// Chooses the names of the latency files of a run of `plan`, which was lowered from `options`; `None` without
    /// `-L`.
    ///
    /// # Errors
    /// If a latency file exists already, or the directory of a latency file does not exist. The latency files
    /// themselves are created during the run.
    pub fn new(options: &Options, plan: &Plan) -> Result<Option<Self>, String> {
        let pattern = plan.groups.first().and_then(|g| g.program.pattern());
        let arguments = &options.arguments;
        let (Some(prefix), Some(pattern)) = (&arguments.latency, pattern) else {
            return Ok(None);
        };
        let all = if arguments.latency_all { "-all" } else { "" };
        let files_of = |stage: &Stage| {
            let mut rows = BTreeMap::new();
            stage.work.for_each_row(&mut |id| {
                if let Some(name) = name(options, stage, plan.operation(id)) {
                    let mut path = prefix.clone();
                    path.push(format!("-{name}{all}.csv"));
                    rows.insert(id.0, PathBuf::from(path));
                }
            });
            rows
        };
        let names = pattern.stages.iter().map(|stage| match stage.warm_up {
            true => BTreeMap::new(),
            false => files_of(stage),
        });
        let names: Vec<BTreeMap<u32, PathBuf>> = names.collect();
        for path in names.iter().flat_map(BTreeMap::values) {
            check(path)?;
        }
        Ok(Some(Self {
            names,
            open: BTreeMap::new(),
        }))
    }

    /// Paths of all files that the run writes.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let paths = self.names.iter().flat_map(BTreeMap::values);
        paths.map(PathBuf::as_path)
    }

    /// Appends operations of a row of a stage in order: start since the beginning of the stage and service time, in
    /// nanoseconds. Samples of several ranks are appended rank by rank. Rows without a file are ignored.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&mut self, stage: u32, row: u32, samples: &[(Nanos, Nanos)]) -> Result<(), String> {
        let Some(path) = self.names[stage as usize].get(&row) else {
            return Ok(());
        };
        let failed = |e| not_written(path, &e);
        let file = match self.open.entry((stage, row)) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(missing) => missing.insert(begin(path).map_err(failed)?),
        };
        for (start, duration) in samples {
            let (start, duration) = (seconds(*start), exponential(seconds(*duration)));
            writeln!(file, "{start:.7},{duration}").map_err(failed)?;
        }
        Ok(())
    }

    /// Completes the files of a stage; the file of a row without operations contains only the header.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn end_stage(&mut self, stage: u32) -> Result<(), String> {
        let files = self.names[stage as usize].clone();
        for (row, path) in files {
            self.add(stage, row, &[])?;
            let file = self.open.remove(&(stage, row));
            let mut file = file.expect("`add` opens the file");
            file.flush().map_err(|e| not_written(&path, &e))?;
        }
        Ok(())
    }
}

/// Checks that a file does not exist and that its directory exists.
fn check(path: &Path) -> Result<(), String> {
    if std::fs::symlink_metadata(path).is_ok() {
        return Err(format!(
            "{} exists and is not overwritten: move it away, or choose another prefix with -L",
            path.display()
        ));
    }
    check_parent(path).map_err(|e| not_written(path, &e))
}

fn not_written(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

fn begin(path: &Path) -> io::Result<BufWriter<File>> {
    let mut file = BufWriter::new(File::create_new(path)?);
    writeln!(file, "{HEADER}")?;
    Ok(file)
}

/// Stage and operation in the name of a file, as `FACTOR-ITERATION-OPERATION` or `0.00-0-STAGE-OPERATION`; `None` for
/// operations without a file.
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

/// Waiting factor, iteration and operation as in MD-Workbench, which uses the values that are set when a phase ends:
/// the precreate phase has the values before the benchmark phase, and the cleanup phase has the values after it.
fn workbench_name(w: &Workbench, stage: &Stage, operation: &str) -> Option<String> {
    let measured = w.phases.benchmark && w.iterations > 0;
    let (factor, iteration, operation) = match (stage.name.as_str(), operation) {
        (PRECREATE, row::CREATE) => (w.waiting, 0, "precreate"),
        (CLEANUP, row::DELETE) => {
            let factor = match w.adaptive && measured {
                true => 2.0 * ADAPTIVE[ADAPTIVE.len() - 1],
                false => w.waiting,
            };
            let iteration = if measured { w.iterations } else { 0 };
            (factor, iteration, "cleanup")
        }
        (BENCHMARK, operation) => (stage.waiting_factor, stage.iteration, operation),
        _ => return None,
    };
    Some(format!("{factor:.2}-{iteration}-{operation}"))
}
