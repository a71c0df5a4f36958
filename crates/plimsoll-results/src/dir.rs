//! The results directory.

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
/// It has a hidden name until [`RunWriter::finish`]; dropped before that, it is removed. Of one that
/// a killed process left, [`recover`](crate::recover) makes results, if it has a draft.
pub struct RunWriter {
    root: PathBuf,
    name: String,
    /// Whether the name states that the run was interrupted or failed.
    tells_verdict: bool,
    /// Before `dir`, so that nothing is written any more when that is removed.
    series: IntervalSeriesWriter,
    dir: StagingDir,
    /// What whoever watches the run is shown of it.
    live: LiveRun,
    /// After `dir`, so that it is dropped when the hidden directory has gone.
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

    /// Creates a hidden directory whose finished form has this name; a number follows it if it is
    /// taken. The name of a run that was interrupted or failed ends with that word.
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

    /// Appends an interval to the series, without waiting for the disk.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system has refused an interval before this one, for instance because it is
    /// full. No other may follow.
    pub fn interval(&mut self, interval: &Interval) -> Result<(), ResultsError> {
        self.interval_with_events(interval, &[])
    }

    /// Appends an interval in which these events began to the series.
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

    /// Waits until all intervals have been written, so that whoever reads the directory finds them.
    ///
    /// # Errors
    /// As [`interval`](Self::interval).
    pub fn flush(&mut self) -> Result<(), ResultsError> {
        self.series.flush()
    }

    /// Shows whoever watches the run the events that have begun, if they changed. If the file system
    /// refuses, those that were shown before stay.
    pub fn show_events(&mut self, events: Vec<LiveEvent>) {
        if events == self.live.events {
            return;
        }
        self.live.events = events;
        let path = self.dir.path().join(LIVE_FILE);
        self.series.replace(&path, self.live.to_json());
    }

    /// The directory of the results while they are written.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes the description of the system under test.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses, or there is one.
    pub fn write_sut(&self, text: &str) -> Result<(), ResultsError> {
        write_new(&self.dir.path().join(SUT_FILE), text)
    }

    /// Writes what the run would be if it ended now with nothing measured: with the series, all that
    /// is needed to make results of it should the process be killed.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses, or if there is a draft.
    pub fn draft(&mut self, run: &Run) -> Result<(), ResultsError> {
        // Where there is a draft, the series have their names.
        sync_dir(self.dir.path()).map_err(ResultsError::io("write", self.dir.path()))?;
        replace(&self.dir.path().join(DRAFT_FILE), &run.to_json())?;
        // So that a power cut does not take the directory with it.
        sync_dir(&self.root).map_err(ResultsError::io("write", self.dir.path()))
    }

    /// Writes `run.json` and gives the directory its name: the workload, the local time at the
    /// start and, if that exists, a number. Never overwrites anything. When this returns, all of it is
    /// on the disk.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; the hidden directory is removed.
    pub fn finish(self, run: &Run) -> Result<RunDir, ResultsError> {
        let hidden = self.dir.path().to_owned();
        self.series.finish()?;
        for name in [COMMANDS_FILE, LIVE_FILE] {
            sync_if_there(&hidden.join(name))?;
        }
        // As a whole, so that an existing file is always complete.
        replace(&hidden.join(RUN_FILE), &run.to_json())?;
        let name = name_with_verdict(self.name, self.tells_verdict, run.validity.verdict);
        let dir = self.dir;
        let path = publish(&hidden, &self.root, &name, |path| dir.published(path))?;
        Ok(RunDir::at(&path))
    }
}

/// The facts about a run that begins.
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
    /// Reads the run, for tables that show these percentiles: what the run did not keep of them is
    /// computed from `histograms.hlog`. With none it is [`read`](Self::read).
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

    /// Names of files that every result of a run has and this one does not.
    #[must_use]
    pub fn lacks(&self) -> Vec<&'static str> {
        let missing = |file: &&str| !self.path().join(file).exists();
        MISSING_RUN_HINT.into_iter().filter(missing).collect()
    }

    /// Replaces the run, of which more is known now. At any time one of the two is there, whole.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; the run is then as it was.
    pub fn replace_run(&self, run: &Run) -> Result<(), ResultsError> {
        sync_if_there(&self.path().join(COMMANDS_FILE))?;
        replace(&self.path().join(RUN_FILE), &run.to_json())
    }

    /// Writes another file of the results, which may still be being written; `name` may have one
    /// directory in it.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses, or if the file is there.
    pub fn add(&self, name: &str, text: &str) -> Result<(), ResultsError> {
        let path = self.path().join(name);
        let parent = path.parent().unwrap_or(self.path());
        create_dirs(parent)?;
        write_new(&path, text)?;
        sync_dir(parent).map_err(ResultsError::io("write", &path))
    }

    /// Opens `commands.log`, to append what a command of the user prints; the results may still be being
    /// written.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn commands_log(&self) -> Result<File, ResultsError> {
        let path = self.path().join(COMMANDS_FILE);
        let call = disk_call(DiskCall::Write);
        let opened = call.and_then(|()| File::options().create(true).append(true).open(&path));
        opened.map_err(ResultsError::io("open", &path))
    }

    /// Path of the throughput and latency over time.
    #[must_use]
    pub fn intervals_path(&self) -> PathBuf {
        self.path().join(INTERVALS_FILE)
    }

    /// Reads `histograms.hlog`.
    ///
    /// # Errors
    /// [`ResultsError::Damaged`] with the line that is damaged, [`ResultsError::Io`] if it
    /// cannot be read.
    pub fn read_histograms(&self) -> Result<Vec<IntervalHistogram>, ResultsError> {
        histograms::read(&self.path().join(HISTOGRAMS_FILE))
    }

    /// Reads `histograms.hlog` histogram by histogram, in the order of the file. Of an hour of
    /// intervals the histograms themselves would not fit into memory.
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
    /// [`ResultsError::Damaged`] with the line that is damaged, [`ResultsError::Io`] if it
    /// cannot be read.
    pub fn read_intervals(&self) -> Result<Vec<IntervalRow>, ResultsError> {
        intervals::read(&self.intervals_path())
    }
}

impl Document for Run {
    const FILE: &str = RUN_FILE;
    const SCHEMA: u32 = 1;
    const KIND_NAME: &str = "run";
}
