//! Runs in progress, seen from another process: their description, and the intervals written so far.
//!
//! A run writes the same files whether or not a process observes the run: observers only read files, which the thread
//! that writes the time series appends to once per interval.

use crate::document::{Directory, Document};
use crate::intervals::CountSums;
use crate::staging;
use crate::{ClockKind, EventState, INTERVALS_FILE, IntervalRow, LIVE_FILE, ResultsError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Maximum number of bytes read at a time.
const MAX_READ_BYTES: u64 = 1 << 22;

/// The facts about a run in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveRun {
    /// Schema version of the document.
    pub schema_version: u32,
    /// Name of the workload.
    pub workload: String,
    /// Name that the results will have, but for what may follow it.
    pub name: String,
    /// When the run began: RFC 3339, in UTC.
    pub started_at: String,
    /// Clock of the run.
    pub clock: ClockKind,
    /// Root of all random choices of the run.
    pub seed: u64,
    /// Workers of the Plan.
    pub workers: u64,
    /// Process that writes the results.
    pub pid: u32,
    /// The name will say so if the run is interrupted or fails.
    pub tells_verdict: bool,
    /// Events that have begun, in the order of the times at which they were to happen; those of an interval
    /// are here before its rows are in the series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<LiveEvent>,
}

/// An event of a run in progress that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveEvent {
    /// When it was to happen, in seconds since the beginning of the run.
    pub at_s: f64,
    /// What happens.
    pub action: String,
    /// When it began, in seconds since the run's clock began.
    pub start_s: f64,
    /// How much later that was than it was to be, in seconds; null in a simulated system, where nothing is
    /// late.
    pub lateness_s: Option<f64>,
    /// Number of the window that had opened last; null before the first, as in the warm-up.
    pub window: Option<u32>,
    /// When it began, in seconds since that window opened; null without one.
    pub window_s: Option<f64>,
    /// How it ended; null as long as it has not.
    pub state: Option<EventState>,
}

impl Document for LiveRun {
    const FILE: &str = LIVE_FILE;
    const SCHEMA: u32 = 1;
    const KIND_NAME: &str = "run in progress";
}

/// Hidden directory of a run in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveDir {
    path: PathBuf,
    id: String,
}

/// State of an observed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveLocation {
    /// The run is in progress.
    InProgress,
    /// The run has ended, and its results are in this directory.
    Finished(PathBuf),
    /// The run left no results: the run was refused, or its process was killed.
    Gone,
}

impl LiveDir {
    /// Runs in progress directly below the given directories, sorted by path. `dirs` should hold a results root and the
    /// directories of the series below the root.
    #[must_use]
    pub fn find(dirs: &[PathBuf]) -> Vec<Self> {
        let mut found = Vec::new();
        for dir in dirs {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            for entry in entries {
                let is_dir = entry.file_type().is_ok_and(|t| t.is_dir());
                let name = entry.file_name();
                let id = name.to_str().and_then(staging::id_of).filter(|_| is_dir);
                let path = entry.path();
                if let Some(id) = id
                    && path.join(LIVE_FILE).is_file()
                    && !staging::is_abandoned(&path)
                {
                    let id = id.to_owned();
                    found.push(Self { path, id });
                }
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    /// A hidden directory that contains `live.json`; the run may have ended. `None` for any other directory.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        let id = path.file_name()?.to_str().and_then(staging::id_of)?;
        path.join(LIVE_FILE).is_file().then(|| Self {
            id: id.to_owned(),
            path: path.to_owned(),
        })
    }

    /// Six letters and digits from the name of the hidden directory; unique among the runs in a directory.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Path of the hidden directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the description of the run.
    ///
    /// # Errors
    /// [`ResultsError`] if the run has just ended, or if the description is of another version.
    pub fn read(&self) -> Result<LiveRun, ResultsError> {
        Directory::at(&self.path).read()
    }

    /// Opens a reader of the run's intervals, from the first interval on.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the run has just ended.
    pub fn open_reader(&self) -> Result<LiveReader, ResultsError> {
        let dir = File::open(&self.path).map_err(ResultsError::io("open", &self.path))?;
        let path = self.path.join(INTERVALS_FILE);
        let series = crate::open_regular(&path).map_err(ResultsError::io("open", &path))?;
        Ok(LiveReader {
            dir,
            series,
            run: Directory::at(&self.path),
            at: 0,
            headed: false,
            sums: CountSums::default(),
        })
    }
}

/// Reader of the intervals of a run in progress. The reader continues to the last interval even after the directory has
/// been renamed.
#[derive(Debug)]
pub struct LiveReader {
    dir: File,
    series: File,
    run: Directory<LiveRun>,
    at: u64,
    headed: bool,
    sums: CountSums,
}

impl LiveReader {
    /// Rows written since the last call, only complete lines; at most 4 MiB per call.
    ///
    /// # Errors
    /// [`ResultsError`] if the file cannot be read or is damaged.
    pub fn rows(&mut self) -> Result<Vec<IntervalRow>, ResultsError> {
        let path = Path::new(INTERVALS_FILE);
        let failed = || ResultsError::io("read", path);
        self.series
            .seek(SeekFrom::Start(self.at))
            .map_err(failed())?;
        let mut bytes = Vec::new();
        (&self.series)
            .take(MAX_READ_BYTES)
            .read_to_end(&mut bytes)
            .map_err(failed())?;
        let Some(end) = bytes.iter().rposition(|b| *b == b'\n') else {
            return Ok(vec![]);
        };
        let mut lines = &bytes[..=end];
        self.at += lines.len() as u64;
        if !self.headed {
            let head = lines.iter().position(|b| *b == b'\n').unwrap_or(end);
            lines = &lines[head + 1..];
            self.headed = true;
        }
        crate::intervals::parse(lines, path, &mut self.sums)
    }

    /// Events that have begun, including the events of all rows read so far; `None` if the run has ended.
    #[must_use]
    pub fn events(&self) -> Option<Vec<LiveEvent>> {
        self.run.read().ok().map(|run| run.events)
    }

    /// State of the run, by the present name of the open directory.
    #[must_use]
    pub fn location(&self) -> LiveLocation {
        // The kernel reports the present path of an open directory.
        let place = format!("/proc/self/fd/{}", self.dir.as_raw_fd());
        let Ok(path) = std::fs::read_link(place) else {
            return LiveLocation::Gone;
        };
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        match staging::id_of(name) {
            Some(_) if path.is_dir() && !staging::is_abandoned(&path) => LiveLocation::InProgress,
            None if path.is_dir() => LiveLocation::Finished(path),
            _ => LiveLocation::Gone,
        }
    }
}
