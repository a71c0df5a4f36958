//! Writer of a series' directory: `series.json` and the entries of the runs.

use crate::document_writer::DocumentWriter;
use crate::series::{NextRun, Series, SeriesDir, SeriesRun, SeriesState};
use crate::whole_file::write_new;
use crate::{ClockKind, Reason, ResultsError, RunDir, RunWriter, SUT_FILE};
use plimsoll_plan::Plan;
use std::path::Path;
use std::time::SystemTime;

/// Writer of the results directory of a series in progress.
pub struct SeriesWriter(DocumentWriter<Series>);

impl SeriesWriter {
    /// Creates a results directory for a series without runs below the results root `root`, and a missing results root
    /// too.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn create(
        root: &Path,
        mut series: Series,
        started: SystemTime,
    ) -> Result<Self, ResultsError> {
        series.conclude();
        let name = format!("{}-{}", series.name, series.kind.kind());
        DocumentWriter::create(root, &name, series, started).map(Self)
    }

    /// Resumes the series in a directory. Failed and interrupted runs are removed from the list and repeated; their
    /// results directories stay.
    ///
    /// # Errors
    /// As [`SeriesDir::read`]; [`ResultsError::InUse`] if another process writes to the directory.
    pub fn resume(path: &Path) -> Result<Self, ResultsError> {
        let mut writer = Self(DocumentWriter::resume(path)?);
        let series = writer.series();
        if !series.runs.iter().all(SeriesRun::is_measured) {
            writer.change(|series| series.runs.retain(SeriesRun::is_measured))?;
        }
        Ok(writer)
    }

    /// Results directory of the series.
    #[must_use]
    pub fn dir(&self) -> &SeriesDir {
        self.0.dir()
    }

    /// The series as last written to `series.json`.
    #[must_use]
    pub fn series(&self) -> &Series {
        self.0.document()
    }

    /// Changes the series, recomputes the figures that follow from its runs, and replaces `series.json`.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; `series.json` is then unchanged.
    pub fn change(&mut self, change: impl FnOnce(&mut Series)) -> Result<(), ResultsError> {
        self.0.change(|series| {
            change(series);
            series.conclude();
        })
    }

    /// Adds a finished run to the list and writes `series.json`.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; `series.json` is then unchanged.
    pub fn add(&mut self, run: SeriesRun) -> Result<(), ResultsError> {
        self.change(|series| series.runs.push(run))
    }

    /// Writes the state in which the series ends, and the reason of a stopped or failed series.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; `series.json` is then unchanged.
    pub fn end(&mut self, state: SeriesState, reason: Option<Reason>) -> Result<(), ResultsError> {
        self.change(|series| (series.state, series.stop_reason) = (state, reason))
    }

    /// Makes the entry of a run from its results directory in the directory of the series.
    ///
    /// # Errors
    /// As [`RunDir::read`].
    pub fn entry(&self, next: &NextRun, results: &RunDir) -> Result<SeriesRun, ResultsError> {
        let run = results.read()?;
        Ok(SeriesRun::of(&run, next, &self.name_of(results)))
    }

    /// Name of a run's results in the document: the path relative to the directory of the series.
    #[must_use]
    pub fn name_of(&self, results: &RunDir) -> String {
        let path = results.path();
        let below = path.strip_prefix(self.dir().path()).unwrap_or(path);
        below.to_string_lossy().into_owned()
    }

    /// Finds a run that was measured to its end but is not in the list, and makes its entry: its process ended before
    /// listing the run, or the run was measured before runs that precede it. `None` if `next` has no such results.
    #[must_use]
    pub fn unlisted(&self, next: &NextRun) -> Option<SeriesRun> {
        let series = self.series();
        let results = RunDir::at(&self.dir().within(&next.directory)?);
        let run = results.read().ok()?;
        let expected = series.plan(next).ok()?;
        let target = &series.configuration(next.configuration).target;
        let load = |plan: &Plan| plan.metric.as_ref().map(|m| m.load);
        let is_it = load(&run.plan) == load(&expected)
            && run.plan.seed == expected.seed
            && run.plan.filesets == expected.filesets
            && run.target.system == target.system;
        (is_it && run.validity.verdict.is_measured())
            .then(|| SeriesRun::of(&run, next, &next.directory))
    }

    /// Writes the description of the system under test.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses, or if the file exists.
    pub fn write_sut(&self, text: &str) -> Result<(), ResultsError> {
        write_new(&self.dir().path().join(SUT_FILE), text)
    }

    /// Writes a file other than `series.json` into the directory of the series, such as an HTML page, and replaces an
    /// existing file.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn write(&self, name: &str, text: &str) -> Result<(), ResultsError> {
        self.0.write(name, text)
    }

    /// Whether this writer created the directory of the series.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.0.is_new()
    }

    /// Whether withdrawing removes the whole series: this writer created the directory, and no run is listed.
    #[must_use]
    pub fn is_withdrawable(&self) -> bool {
        self.0.is_new() && self.series().runs.is_empty()
    }

    /// Removes the directory of a new series without runs, for instance because the first run was refused.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn withdraw(self) -> Result<(), ResultsError> {
        if !self.is_withdrawable() {
            return Ok(());
        }
        let dir = self.dir().path();
        let below = self.series().configurations.iter();
        let below = below.filter_map(|configuration| self.dir().within(&configuration.directory));
        for path in below {
            // The run directory of the refused run is empty; other configurations have no directory, or one that is not
            // empty.
            for parent in path.ancestors().take_while(|p| *p != dir) {
                let _ = std::fs::remove_dir(parent);
            }
        }
        self.0.withdraw()
    }
}

impl SeriesDir {
    /// Creates a writer of the results of a run of the series in this directory.
    ///
    /// # Errors
    /// As [`RunWriter::create`]; [`ResultsError::None`] if the directory of the run leads out of the directory of the
    /// series.
    pub fn run_writer(
        &self,
        clock: ClockKind,
        next: &NextRun,
        plan: &Plan,
        started: SystemTime,
    ) -> Result<RunWriter, ResultsError> {
        let outside = || ResultsError::None {
            path: self.path().join(&next.directory),
        };
        let path = self.within(&next.directory).ok_or_else(outside)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let root = path.parent().unwrap_or(self.path());
        RunWriter::create(root, plan, started, clock, Some(&name))
    }
}
