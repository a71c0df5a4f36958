//! Settings and files of a run of the suite.

use crate::error::{BenchError, plausible};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Space that the files of the suite need, in bytes, with some margin; in a full run and in a quick run.
const SPACE: u64 = 3 << 29;
const SPACE_QUICK: u64 = 100 << 20;

/// A run of the suite.
pub(crate) struct Bench {
    /// Whether rounds take milliseconds instead of seconds.
    pub(crate) quick: bool,
    /// Directory for the files of the suite, which is removed with its contents when the suite ends.
    scratch: tempfile::TempDir,
}

impl Bench {
    /// Creates a directory for the suite's files below `dir`.
    pub(crate) fn new(quick: bool, dir: &Path) -> Result<Self, BenchError> {
        let needed = if quick { SPACE_QUICK } else { SPACE };
        let io = |e| BenchError::io("examine", dir, std::io::Error::from(e));
        let there = rustix::fs::statvfs(dir).map_err(io)?;
        let free = there.f_bavail.saturating_mul(there.f_frsize);
        let (need_mib, free_mib) = (needed >> 20, free >> 20);
        plausible(&dir.display().to_string(), free >= needed, || {
            format!("{need_mib} MiB are needed, {free_mib} MiB are free; choose another --dir")
        })?;
        let scratch = tempfile::Builder::new()
            .prefix("plimsoll-benches-")
            .tempdir_in(dir)
            .map_err(|e| BenchError::io("create a directory in", dir, e))?;
        Ok(Self { quick, scratch })
    }

    /// `full`, or `quick` in a quick run.
    pub(crate) fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Length of a round: `full_ms` milliseconds, or 60 ms in a quick run.
    pub(crate) fn time(&self, full_ms: u64) -> Duration {
        Duration::from_millis(self.pick(full_ms, 60))
    }

    /// Number of rounds in which contenders take turns.
    pub(crate) fn rounds(&self) -> usize {
        self.pick(5, 2)
    }

    /// Creates a directory for a benchmark.
    pub(crate) fn dir(&self, name: &str) -> Result<PathBuf, BenchError> {
        let dir = self.scratch.path().join(name);
        std::fs::create_dir_all(&dir).map_err(|e| BenchError::io("create", &dir, e))?;
        Ok(dir)
    }

    /// Creates a directory beside the program, on a disk, because the suite's own directory is in memory. Dropping the
    /// returned value removes the directory.
    pub(crate) fn dir_on_disk(&self) -> Result<tempfile::TempDir, BenchError> {
        let exe = std::env::current_exe();
        let exe = exe.map_err(|e| BenchError::io("find", Path::new("the program"), e))?;
        let dir = exe.parent().unwrap_or(Path::new("."));
        tempfile::Builder::new()
            .prefix("plimsoll-benches-")
            .tempdir_in(dir)
            .map_err(|e| BenchError::io("create a directory in", dir, e))
    }

    /// Directory of criterion's earlier measurements.
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
