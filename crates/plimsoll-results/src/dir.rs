//! Results directory of one run: writer and reader.

use crate::document::{Directory, Document};
use crate::error::MISSING_RUN_HINT;
use crate::histograms::{self, SparseInterval};
use crate::interval_series::IntervalSeriesWriter;
use crate::intervals::{self, IntervalRow};
use crate::publish::{CreatedRoot, name_of, publish, timestamp};
use crate::qualifier::Qualifier;
use crate::staging::StagingDir;
use crate::whole_file::{create_dirs, replace, sync_dir, sync_if_there, write_new};
use crate::{
    COMMANDS_FILE, ClockKind, DRAFT_FILE, HISTOGRAMS_FILE, INTERVALS_FILE, LIVE_FILE, LiveEvent,
    LiveRun, Percentiles, RUN_FILE, ResultsError, Run, SUT_FILE, recompute,
};
use plimsoll_measure::Interval;
use plimsoll_plan::Plan;
use plimsoll_runtime::{DiskCall, disk_call};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Results directory of one run, which contains `run.json` once the run has ended.
pub type RunDir = Directory<Run>;

/// A results directory that is being written.
///
/// The directory has a hidden name until [`RunWriter::finish`]; dropping the writer earlier removes the directory. If
/// the process is killed, [`recover`](crate::recover) makes results from the hidden directory, provided that the
/// directory holds a draft.
pub struct RunWriter {
    root: PathBuf,
    /// Declared before `dir`: dropped first, so nothing writes to the removed directory.
    series: IntervalSeriesWriter,
    dir: StagingDir,
    /// Content of `live.json`, for observers of the run.
    live: LiveRun,
    /// Declared after `dir`: dropped after the hidden directory has been removed.
    _made_root: Option<CreatedRoot>,
}

impl RunWriter {
    /// Creates the hidden directory of a run's results below the results root `root`, and a missing results root too.
    ///
    /// [`RunWriter::finish`] renames the directory to `name`, with a number appended if the name is taken; the name of
    /// an interrupted or failed run ends with the verdict. Without `name`, the directory is named after the workload
    /// and the time of the start.
    ///
    /// Times in the histogram log count from `started`, or from zero with a virtual clock: two
    /// virtual runs of one seed write the same bytes.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn create(
        root: &Path,
        plan: &Plan,
        started: SystemTime,
        clock: ClockKind,
        name: Option<&str>,
    ) -> Result<Self, ResultsError> {
        let made_root = CreatedRoot::make(root)?;
        let dir = StagingDir::create(root)?;
        let base = match clock {
            ClockKind::Real => started,
            ClockKind::Virtual => SystemTime::UNIX_EPOCH,
        };
        let series = IntervalSeriesWriter::create(dir.path(), &plan.operations, base)?;
        let live = LiveRun {
            schema_version: LiveRun::SCHEMA,
            workload: plan.name.clone(),
            name: name.map_or_else(|| name_of(&plan.name, started), str::to_owned),
            started_at: timestamp(started).to_string(),
            clock,
            seed: plan.seed,
            workers: plan.workers(),
            pid: std::process::id(),
            tells_verdict: name.is_some(),
            events: vec![],
        };
        write_new(&dir.path().join(LIVE_FILE), &live.to_json())?;
        Ok(Self {
            root: root.to_owned(),
            series,
            dir,
            live,
            _made_root: made_root,
        })
    }

    /// Appends an interval to the time series, without waiting for the disk.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system has refused an earlier interval, for instance because the file system is
    /// full. No further interval may follow.
    pub fn interval(&mut self, interval: &Interval) -> Result<(), ResultsError> {
        self.interval_with_events(interval, &[])
    }

    /// Appends an interval to the time series, with the events that began in the interval.
    ///
    /// # Errors
    /// As [`interval`](Self::interval).
    pub fn interval_with_events(
        &mut self,
        interval: &Interval,
        events: &[String],
    ) -> Result<(), ResultsError> {
        self.series.write(interval, events)
    }

    /// Waits until all intervals have been written to the files, where other processes can read them.
    ///
    /// # Errors
    /// As [`interval`](Self::interval).
    pub fn flush(&mut self) -> Result<(), ResultsError> {
        self.series.flush()
    }

    /// Shows observers of the run the events that have begun, if the list has changed. If the file system refuses, the
    /// earlier list stays.
    pub fn show_events(&mut self, events: Vec<LiveEvent>) {
        if events == self.live.events {
            return;
        }
        self.live.events = events;
        let path = self.dir.path().join(LIVE_FILE);
        self.series.replace(&path, self.live.to_json());
    }

    /// Path of the run's hidden directory, which holds the results until the results are complete.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes the description of the system under test.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses, or if the file exists.
    pub fn write_sut(&self, text: &str) -> Result<(), ResultsError> {
        write_new(&self.dir.path().join(SUT_FILE), text)
    }

    /// Writes the draft of `run.json`, without measurements. The results of a killed run are recovered from the draft
    /// and the time series.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn draft(&mut self, run: &Run) -> Result<(), ResultsError> {
        // A draft on the disk implies that the names of the time series are on the disk.
        sync_dir(self.dir.path()).map_err(ResultsError::io("write", self.dir.path()))?;
        replace(&self.dir.path().join(DRAFT_FILE), &run.to_json())?;
        // A power cut must not lose the directory.
        sync_dir(&self.root).map_err(ResultsError::io("write", self.dir.path()))
    }

    /// Writes `run.json` and renames the directory: workload, local time of the start and, if that name is taken, a
    /// number. Never overwrites anything. On return, all results are on the disk.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; the hidden directory is removed.
    pub fn finish(self, run: &Run) -> Result<RunDir, ResultsError> {
        let hidden = self.dir.path().to_owned();
        self.series.finish()?;
        for name in [COMMANDS_FILE, LIVE_FILE] {
            sync_if_there(&hidden.join(name))?;
        }
        // Replaced atomically: a `run.json` that exists is always complete.
        replace(&hidden.join(RUN_FILE), &run.to_json())?;
        let name = self.live.final_name(run.validity.verdict);
        let dir = self.dir;
        let path = publish(&hidden, &self.root, &name, |path| dir.published(path))?;
        Ok(RunDir::at(&path))
    }
}

impl Directory<Run> {
    /// Reads `run.json`, and adds the percentiles `percentiles` that the run did not store, from `histograms.hlog`;
    /// without `percentiles`, the run is as [`read`](Self::read) returns the run.
    ///
    /// # Errors
    /// As [`read`](Self::read), and as [`each_histogram`](Self::each_histogram).
    pub fn read_with(&self, percentiles: Option<&Percentiles>) -> Result<Run, ResultsError> {
        let mut run = self.read()?;
        if let Some(wanted) = percentiles {
            recompute::complete(&mut run, self.path(), wanted)?;
            run.percentiles_shown = Some(wanted.clone());
        }
        Ok(run)
    }

    /// Names of files that every run's results have and that this directory lacks.
    #[must_use]
    pub fn lacks(&self) -> Vec<&'static str> {
        let missing = |file: &&str| !self.path().join(file).exists();
        MISSING_RUN_HINT.into_iter().filter(missing).collect()
    }

    /// Replaces `run.json` atomically, for example to add a note on the removal of the workload's files.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; `run.json` is then the old or the new document, complete.
    pub fn replace_run(&self, run: &Run) -> Result<(), ResultsError> {
        sync_if_there(&self.path().join(COMMANDS_FILE))?;
        replace(&self.path().join(RUN_FILE), &run.to_json())
    }

    /// Writes a new file of the results, complete or in progress; `name` may contain one directory.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses, or if the file exists.
    pub fn add(&self, name: &str, text: &str) -> Result<(), ResultsError> {
        let path = self.path().join(name);
        let parent = path.parent().unwrap_or(self.path());
        create_dirs(parent)?;
        write_new(&path, text)?;
        sync_dir(parent).map_err(ResultsError::io("write", &path))
    }

    /// Opens `commands.log` for appending the output of a user's command, in complete results or results in progress.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn commands_log(&self) -> Result<File, ResultsError> {
        let path = self.path().join(COMMANDS_FILE);
        let call = disk_call(DiskCall::Write);
        let opened = call.and_then(|()| File::options().create(true).append(true).open(&path));
        opened.map_err(ResultsError::io("open", &path))
    }

    /// Path of `intervals.csv`: throughput and latency over time.
    #[must_use]
    pub fn intervals_path(&self) -> PathBuf {
        self.path().join(INTERVALS_FILE)
    }

    /// Reads `histograms.hlog` and calls `visit` for each histogram, in the order of the file: all histograms of an
    /// hour of intervals would not fit into memory.
    ///
    /// # Errors
    /// [`ResultsError::Damaged`] with the number of the damaged line; [`ResultsError::Lacks`] if `histograms.hlog` is
    /// missing, [`ResultsError::Io`] if the file system refuses.
    pub fn each_histogram(
        &self,
        visit: &mut dyn FnMut(SparseInterval),
    ) -> Result<(), ResultsError> {
        histograms::read_each(&self.path().join(HISTOGRAMS_FILE), visit)
    }

    /// Reads `intervals.csv`: a row for each operation in each interval.
    ///
    /// # Errors
    /// [`ResultsError::Damaged`] with the number of the damaged line; [`ResultsError::Lacks`] if `intervals.csv` is
    /// missing, [`ResultsError::Io`] if the file system refuses.
    pub fn read_intervals(&self) -> Result<Vec<IntervalRow>, ResultsError> {
        intervals::read(&self.intervals_path())
    }
}

impl Document for Run {
    const FILE: &str = RUN_FILE;
    const SCHEMA: u32 = 1;
    const KIND_NAME: &str = "run";

    fn with_derived(self) -> Self {
        let qualifiers = Qualifier::all(&self);
        Self { qualifiers, ..self }
    }
}
