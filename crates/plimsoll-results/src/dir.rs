//! Results directory of one run: writer and reader.

use crate::document::{Directory, Document};
use crate::error::MISSING_RUN_HINT;
use crate::histograms::{self, IntervalHistogram, SparseInterval};
use crate::interval_series::IntervalSeriesWriter;
use crate::intervals::{self, IntervalRow};
use crate::publish::{CreatedRoot, name_of, name_with_verdict, publish, timestamp};
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

/// A finished results directory.
pub type RunDir = Directory<Run>;

/// A results directory that is being written.
///
/// The directory has a hidden name until [`RunWriter::finish`]; dropping the writer earlier removes the directory. If
/// the process is killed, [`recover`](crate::recover) makes results from the hidden directory, provided that the
/// directory holds a draft.
pub struct RunWriter {
    root: PathBuf,
    name: String,
    /// Whether the name states that the run was interrupted or failed.
    tells_verdict: bool,
    /// Declared before `dir`: dropped first, so nothing writes to the removed directory.
    series: IntervalSeriesWriter,
    dir: StagingDir,
    /// Content of `live.json`, for observers of the run.
    live: LiveRun,
    /// Declared after `dir`: dropped after the hidden directory has been removed.
    _made_root: Option<CreatedRoot>,
}

impl RunWriter {
    /// Creates a hidden directory below `root`, which is created if it is missing.
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
    ) -> Result<Self, ResultsError> {
        let name = name_of(&plan.name, started);
        Self::make(&name, root, plan, (started, clock), false)
    }

    /// Creates a hidden directory that [`RunWriter::finish`] renames to `name`, with a number appended if the name is
    /// taken. The name of an interrupted or failed run ends with the verdict.
    ///
    /// # Errors
    /// As [`RunWriter::create`].
    pub fn create_as(
        name: &str,
        root: &Path,
        plan: &Plan,
        started: SystemTime,
        clock: ClockKind,
    ) -> Result<Self, ResultsError> {
        Self::make(name, root, plan, (started, clock), true)
    }

    fn make(
        name: &str,
        root: &Path,
        plan: &Plan,
        (started, clock): (SystemTime, ClockKind),
        tells_verdict: bool,
    ) -> Result<Self, ResultsError> {
        let made_root = CreatedRoot::make(root)?;
        let dir = StagingDir::create(root)?;
        let base = match clock {
            ClockKind::Real => started,
            ClockKind::Virtual => SystemTime::UNIX_EPOCH,
        };
        let series = IntervalSeriesWriter::create(dir.path(), &plan.operations, base)?;
        let live = LiveRun {
            tells_verdict,
            ..live_run(name, plan, started, clock)
        };
        write_new(&dir.path().join(LIVE_FILE), &live.to_json())?;
        Ok(Self {
            live,
            root: root.to_owned(),
            name: name.to_owned(),
            tells_verdict,
            series,
            dir,
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

    /// Hidden directory of the results until they are complete.
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

    /// Writes the draft: the run as if it ended now with nothing measured. Draft and time series suffice to make
    /// results if the process is killed.
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
        let name = name_with_verdict(self.name, self.tells_verdict, run.validity.verdict);
        let dir = self.dir;
        let path = publish(&hidden, &self.root, &name, |path| dir.published(path))?;
        Ok(RunDir::at(&path))
    }
}

fn live_run(name: &str, plan: &Plan, started: SystemTime, clock: ClockKind) -> LiveRun {
    LiveRun {
        schema_version: LiveRun::SCHEMA,
        workload: plan.name.clone(),
        name: name.to_owned(),
        started_at: timestamp(started).to_string(),
        clock,
        seed: plan.seed,
        workers: plan.workers(),
        pid: std::process::id(),
        tells_verdict: false,
        events: vec![],
    }
}

impl Directory<Run> {
    /// Reads the run, with these percentiles for tables; percentiles that the run did not store are computed from
    /// `histograms.hlog`. With `None`, the same as [`read`](Self::read).
    ///
    /// # Errors
    /// As [`read`](Self::read), and as [`read_histograms`](Self::read_histograms).
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

    /// Replaces `run.json` atomically, for example when more is known about the run.
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

    /// Reads `histograms.hlog`.
    ///
    /// # Errors
    /// [`ResultsError::Damaged`] with the number of the damaged line; [`ResultsError::Io`] if the file cannot be read.
    pub fn read_histograms(&self) -> Result<Vec<IntervalHistogram>, ResultsError> {
        histograms::read(&self.path().join(HISTOGRAMS_FILE))
    }

    /// Reads `histograms.hlog` histogram by histogram, in the order of the file: all histograms of an hour of intervals
    /// would not fit into memory.
    ///
    /// # Errors
    /// As [`read_histograms`](Self::read_histograms).
    pub fn each_histogram(
        &self,
        visit: &mut dyn FnMut(SparseInterval),
    ) -> Result<(), ResultsError> {
        histograms::read_each(&self.path().join(HISTOGRAMS_FILE), visit)
    }

    /// Reads `intervals.csv`.
    ///
    /// # Errors
    /// [`ResultsError::Damaged`] with the number of the damaged line; [`ResultsError::Io`] if the file cannot be read.
    pub fn read_intervals(&self) -> Result<Vec<IntervalRow>, ResultsError> {
        intervals::read(&self.intervals_path())
    }
}

impl Document for Run {
    const FILE: &str = RUN_FILE;
    const SCHEMA: u32 = 1;
    const KIND_NAME: &str = "run";
}
