//! Runs in progress, seen from another process: the settings of a run (`live.json`), and the intervals written so far.
//!
//! A run writes the same files whether or not a process observes the run: observers only read files, which the thread
//! that writes the time series appends to once per interval.

use crate::document::{Directory, Document};
use crate::intervals::CountSums;
use crate::staging;
use crate::{ClockKind, EventState, INTERVALS_FILE, IntervalRow, LIVE_FILE, ResultsError, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Maximum number of bytes of `intervals.csv` that one call of [`LiveReader::rows`] reads.
const MAX_READ_BYTES: u64 = 1 << 22;

/// Contents of `live.json`: the run's settings, written before the first interval, and the events that have begun,
/// replaced as events begin and end. Observers of the run, such as the results browser, read `live.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveRun {
    /// Version of the schema of `live.json`, which rises when a field is removed or changes meaning.
    pub schema_version: u32,
    /// Name of the run's workload.
    pub workload: String,
    /// Name of the results directory after the end of the run, without the verdict of an interrupted or failed run, and
    /// without the number that is appended if the name is taken.
    pub name: String,
    /// Time of day at which the run began: RFC 3339, in UTC.
    pub started_at: String,
    /// Clock of the run: real or virtual time.
    pub clock: ClockKind,
    /// Seed of the run, from which all random choices follow.
    pub seed: u64,
    /// Number of workers of the Plan, in all ranks.
    pub workers: u64,
    /// Process id, on the machine of rank 0, of the process that writes the results.
    pub pid: u32,
    /// Whether the name of the results directory will end with the verdict if the run is interrupted or fails.
    pub tells_verdict: bool,
    /// Events that have begun, in order of planned time. An event is listed before `intervals.csv` has the rows of the
    /// interval in which the event began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<LiveEvent>,
}

/// An event of a run in progress that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveEvent {
    /// Planned time of the event, in seconds since the workers of the run start.
    pub at_s: f64,
    /// Action of the event, such as the command `sh ./failover` or, in a simulated system, the fault `down edge.3`.
    pub action: String,
    /// Time at which the event began, in seconds since the run's clock began.
    pub start_s: f64,
    /// Time in seconds by which the event began later than planned (`at_s`); null in a simulated system, in which no
    /// event is late.
    pub lateness_s: Option<f64>,
    /// Number, from 1, of the last window that had opened when the event began; null before the first window, as in the
    /// warm-up.
    pub window: Option<u32>,
    /// Time at which the event began, in seconds since the opening of the window `window`; null before the first
    /// window.
    pub window_s: Option<f64>,
    /// State of the event after its end; null while the event is in progress.
    pub state: Option<EventState>,
}

impl LiveRun {
    /// Name of the results directory after the end of the run: ends with the verdict of an interrupted or failed run if
    /// `tells_verdict` is true.
    pub(crate) fn final_name(self, verdict: Verdict) -> String {
        match verdict {
            Verdict::Interrupted | Verdict::Failed if self.tells_verdict => {
                format!("{}-{verdict}", self.name)
            }
            _ => self.name,
        }
    }
}

impl Document for LiveRun {
    const FILE: &str = LIVE_FILE;
    const SCHEMA: u32 = 1;
    const KIND_NAME: &str = "run in progress";
}

/// Hidden directory of a run in progress, from which another process observes the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveDir {
    path: PathBuf,
    id: String,
}

/// State of a run whose reader is open: in progress, finished, or gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveLocation {
    /// The run is in progress: its directory is still hidden, and its writer is not known to be dead.
    InProgress,
    /// The run has ended; the path is the results directory.
    Finished(PathBuf),
    /// The run left no results: the run was refused, or its process was killed.
    Gone,
}

impl LiveDir {
    /// Finds the runs in progress directly below the given directories, sorted by path. `dirs` should hold a results
    /// root and the directories of the series below the root.
    #[must_use]
    pub fn find(dirs: &[PathBuf]) -> Vec<Self> {
        let entries = dirs.iter().flat_map(|dir| std::fs::read_dir(dir).ok());
        let entries = entries.flatten().flatten();
        let real = entries.filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()));
        let live = real.filter_map(|entry| Self::at(&entry.path()));
        let mut found: Vec<Self> = live.filter(|l| !staging::is_abandoned(&l.path)).collect();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    /// The run whose hidden directory, with `live.json`, is `path`; the run may have ended. The result is `None` for a
    /// directory that is not hidden or has no `live.json`.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        let id = path.file_name()?.to_str().and_then(staging::id_of)?;
        path.join(LIVE_FILE).is_file().then(|| Self {
            id: id.to_owned(),
            path: path.to_owned(),
        })
    }

    /// Id of the run: six letters and digits from the name of the hidden directory, unique among the runs in a
    /// directory.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Path of the hidden directory of the run in progress.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads `live.json`, the settings and events of the run.
    ///
    /// # Errors
    /// [`ResultsError`] if the run has just ended, or if `live.json` has another schema version.
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
    /// Reads the rows of `intervals.csv` written since the last call: complete lines, at most 4 MiB per call; empty if
    /// no complete line was written.
    ///
    /// # Errors
    /// [`ResultsError`] if `intervals.csv` cannot be read or is damaged.
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

    /// Reads the events that have begun, which include the events of all rows read so far; `None` if the run has ended.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_that_was_cut_short_tells_its_verdict() {
        let verdicts = [
            Verdict::Valid,
            Verdict::Invalid,
            Verdict::Failed,
            Verdict::Interrupted,
        ];
        let names = |tells_verdict| {
            let run = LiveRun {
                schema_version: LiveRun::SCHEMA,
                workload: "w".into(),
                name: "r".into(),
                started_at: String::new(),
                clock: ClockKind::Real,
                seed: 1,
                workers: 1,
                pid: 1,
                tells_verdict,
                events: vec![],
            };
            verdicts.map(|verdict| run.clone().final_name(verdict))
        };
        assert_eq!(names(true), ["r", "r", "r-failed", "r-interrupted"]);
        assert_eq!(names(false), ["r"; 4]);
    }
}
