//! The results directory of a simulated curve, which outlives the processes of an attempt.

use super::CurveScenario;
use crate::execution::{Shared, with};
use crate::results::copy;
use plimsoll_plan::Plan;
use plimsoll_results::{
    ClockKind, Configuration, Document, Environment, LoadCurve, Program, Run, Series, SeriesDir,
    SeriesKind, SeriesState, SeriesWriter, Target,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// Load of a point that the curve lists, and the point's results or the error of reading them.
pub type PointRun = (u64, Result<Box<Run>, String>);

/// State of the curve's results directory between two attempts.
pub(super) struct LeftSeries {
    /// Content of `series.json` after an attempt; the initial content if the attempt has withdrawn the series.
    pub(super) series: Series,
    /// Names of the hidden directories with unfinished results.
    pub(super) unfinished: Vec<String>,
}

/// Results directory of the simulated curve, shared by all processes of an attempt.
#[derive(Clone)]
pub(super) struct SeriesFiles(Shared<SeriesFilesState>);

struct SeriesFilesState {
    /// Content of `series.json` before the first run of the curve.
    begun: Series,
    /// Writer of the series for the next attempt; `None` after rank 0 has taken the writer, or if the series has ended.
    writer: Option<SeriesWriter>,
    root: TempDir,
}

impl SeriesFiles {
    /// A new directory with the document of a curve on the target `url`.
    pub(super) fn begin(curve: &CurveScenario, plan: &Plan, url: String) -> Self {
        let begun = document(curve, plan, url);
        let root = temporary_dir();
        Self(Arc::new(Mutex::new(SeriesFilesState {
            writer: Some(created(root.path(), &begun)),
            begun,
            root,
        })))
    }

    /// The writer of the series, for rank 0 of an attempt.
    pub(super) fn take_writer(&self) -> SeriesWriter {
        let writer = with(&self.0, |state| state.writer.take());
        writer.expect("an attempt follows only if the series has not ended")
    }

    /// Opens the series for the next attempt: resumes the series as `--resume` does, or begins a withdrawn series
    /// again.
    ///
    /// # Errors
    /// If `series.json` cannot be read, or if an unfinished series cannot be resumed.
    pub(super) fn reopen(&self) -> Result<LeftSeries, String> {
        with(&self.0, |state| {
            let root = temporary_dir();
            let Some(left) = only_entry(state.root.path()) else {
                state.writer = Some(created(root.path(), &state.begun));
                state.root = root;
                return Ok(LeftSeries {
                    series: state.begun.clone(),
                    unfinished: vec![],
                });
            };
            // Killed processes hold locks on the directory; a copy has no locks.
            let path = root.path().join("resumed");
            let unfinished = hidden_entries(&left);
            copy(&left, &path);
            state.root = root;
            let series = SeriesDir::at(&path).read().map_err(|e| e.to_string())?;
            if !series.state.can_resume() {
                return Ok(LeftSeries { series, unfinished });
            }
            let writer =
                plimsoll_series::resume(&path, series.ranks, false).map_err(|e| e.to_string())?;
            let series = writer.series().clone();
            state.writer = Some(writer);
            Ok(LeftSeries { series, unfinished })
        })
    }

    /// Reads the results of every load point that the series lists.
    pub(super) fn runs(&self, series: &Series) -> Vec<PointRun> {
        with(&self.0, |state| {
            let path = only_entry(state.root.path()).expect("the series is there");
            let dir = SeriesDir::at(&path);
            let read = series.runs.iter().map(|point| {
                let run = dir.run(point).expect("runs are below the series");
                let run = run.read().map(Box::new).map_err(|e| e.to_string());
                (point.load.expect("a point has a load"), run)
            });
            read.collect()
        })
    }
}

fn temporary_dir() -> TempDir {
    tempfile::tempdir().expect("there is a temporary directory")
}

fn created(root: &Path, series: &Series) -> SeriesWriter {
    let started = plimsoll_runtime::simulated_epoch();
    let writer = SeriesWriter::create(root, series.clone(), started);
    writer.expect("the temporary directory is writable")
}

/// Names of hidden directories in a directory.
fn hidden_entries(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("the directory is there");
    let names = entries.map(|entry| entry.expect("the directory can be read").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with('.')).collect()
}

/// The path of the only entry of a directory, if the directory is not empty.
fn only_entry(dir: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(dir).expect("the directory is there");
    let entry = entries.next()?.expect("the directory can be read");
    assert!(entries.next().is_none(), "a series has one directory");
    Some(entry.path())
}

/// The document of a curve that begins.
fn document(curve: &CurveScenario, plan: &Plan, url: String) -> Series {
    let scenario = &curve.scenario;
    Series {
        schema_version: Series::SCHEMA,
        name: plan.name.clone(),
        started_at: "2026-01-01T00:00:00Z".into(),
        state: SeriesState::Unfinished,
        stop_reason: None,
        kind: SeriesKind::Curve(LoadCurve::new(curve.loads.clone(), None)),
        runs: vec![],
        configurations: vec![Configuration {
            name: String::new(),
            filesystem: None,
            directory: String::new(),
            before: vec![],
            target: Target {
                url,
                description: String::new(),
                system: None,
            },
            plan: plan.clone(),
        }],
        percentiles_shown: None,
        program: Program::plimsoll(),
        clock: ClockKind::Real,
        interval_s: scenario.interval_ms as f64 / 1e3,
        ranks: scenario.ranks,
        events: vec![],
        notes: vec![],
        unremoved: vec![],
        environment: Environment::default(),
    }
}
