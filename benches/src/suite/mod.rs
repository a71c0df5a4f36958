//! The benchmarks, one file each.

pub(crate) mod md;
pub(crate) mod md_loop;
pub(crate) mod metadata;
pub(crate) mod nfs;
pub(crate) mod overhead;
pub(crate) mod pacing;
pub(crate) mod parts;
pub(crate) mod planning;
pub(crate) mod pread;
pub(crate) mod reactor;
pub(crate) mod report;
pub(crate) mod waiting;
pub(crate) mod wan;

use crate::error::{BenchError, plausible};
use crate::table::Row;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A benchmark: its name and what measures it.
type Entry = (&'static str, fn(&Bench) -> Result<Vec<Row>, BenchError>);

/// Every benchmark, in the order of the table.
pub(crate) const ALL: &[Entry] = &[
    ("overhead", overhead::measure),
    ("pread", pread::measure),
    ("stat", metadata::stat),
    ("open-close", metadata::open_close),
    ("create-delete", metadata::create_delete),
    ("md", md::measure),
    ("planning", planning::measure),
    ("choosing", planning::choosing),
    ("reactor", reactor::measure),
    ("waiting", waiting::measure),
    ("nfs", nfs::measure),
    ("wan", wan::measure),
    ("pacing", pacing::measure),
    ("report", report::measure),
    ("parts", parts::measure),
];

/// Space that the files of the suite take, in bytes, with some to spare.
const SPACE: u64 = 3 << 29;
const SPACE_QUICK: u64 = 100 << 20;

/// How the suite is run.
pub(crate) struct Bench {
    /// Milliseconds instead of seconds.
    pub(crate) quick: bool,
    /// Removed with all its contents when the suite ends.
    scratch: tempfile::TempDir,
}

impl Bench {
    /// Makes a directory for the suite's files below `dir`.
    pub(crate) fn new(quick: bool, dir: &Path) -> Result<Self, BenchError> {
        let needed = if quick { SPACE_QUICK } else { SPACE };
        let io = |e| BenchError::io("look at", dir, std::io::Error::from(e));
        let there = rustix::fs::statvfs(dir).map_err(io)?;
        let free = there.f_bavail.saturating_mul(there.f_frsize);
        let (need_mib, free_mib) = (needed >> 20, free >> 20);
        plausible(&dir.display().to_string(), free >= needed, || {
            format!("{need_mib} MiB are needed, {free_mib} MiB are free; name another --dir")
        })?;
        let scratch = tempfile::Builder::new()
            .prefix("plimsoll-benches-")
            .tempdir_in(dir)
            .map_err(|e| BenchError::io("make a directory in", dir, e))?;
        Ok(Self { quick, scratch })
    }

    /// `full`, or `quick` in a quick run.
    pub(crate) fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Milliseconds of a round.
    pub(crate) fn time(&self, full_ms: u64) -> Duration {
        Duration::from_millis(self.pick(full_ms, 20))
    }

    /// Rounds in which contenders take turns.
    pub(crate) fn rounds(&self) -> usize {
        self.pick(5, 2)
    }

    /// A directory of the benchmark's own, which is there.
    pub(crate) fn dir(&self, name: &str) -> Result<PathBuf, BenchError> {
        let dir = self.scratch.path().join(name);
        std::fs::create_dir_all(&dir).map_err(|e| BenchError::io("make", &dir, e))?;
        Ok(dir)
    }

    /// Where criterion keeps what it measured last time, to compare with.
    pub(crate) fn history(&self) -> PathBuf {
        let target = std::env::current_exe().ok().and_then(|exe| {
            // target/PROFILE/PROGRAM
            Some(exe.parent()?.parent()?.join("criterion"))
        });
        match target {
            Some(dir) if !self.quick => dir,
            _ => self.scratch.path().join("criterion"),
        }
    }
}
