//! The run-info file: where the next run of a phase begins.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Longest file that is looked at; one line with a number is much shorter.
const MOST_BYTES: u64 = 4096;

/// The file that keeps the number of the next object between runs of single phases: one line
/// `pos: N`, as MD-Workbench writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo {
    path: PathBuf,
}

/// Why a run-info file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunInfoError {
    /// It cannot be read.
    #[error(
        "cannot read the position from {}: {error}; it is left by a run of the phase before, and \
         --start-item gives it instead", path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It is no run-info file.
    #[error("{} is no run-info file: expected a line such as `pos: 3000`, not `{found}`",
        path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// How it begins.
        found: String,
    },
    /// It cannot be written.
    #[error("cannot write the position to {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl RunInfo {
    /// The file at this path.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { path: path.into() }
    }

    /// The number of the next object.
    ///
    /// # Errors
    /// When the file cannot be read, or is no run-info file.
    pub fn read(&self) -> Result<u64, RunInfoError> {
        let text = self.text().map_err(|error| RunInfoError::Read {
            path: self.path.clone(),
            error,
        })?;
        position(&text).ok_or_else(|| RunInfoError::Content {
            path: self.path.clone(),
            found: text.lines().next().unwrap_or("").chars().take(60).collect(),
        })
    }

    /// Makes sure, before a run, that the position can be written after it: only a run-info file
    /// is ever replaced.
    ///
    /// # Errors
    /// When something else is there, or the directory is missing.
    pub fn check(&self) -> Result<(), RunInfoError> {
        if std::fs::symlink_metadata(&self.path).is_ok() {
            return self.read().map(|_| ());
        }
        let dir = self.dir();
        match std::fs::metadata(dir) {
            Ok(m) if m.is_dir() => Ok(()),
            Ok(_) => Err(self.not_written(io::ErrorKind::NotADirectory.into())),
            Err(e) => Err(self.not_written(e)),
        }
    }

    /// Keeps the number of the next object.
    ///
    /// # Errors
    /// When the file cannot be written; then it is as it was before.
    pub fn write(&self, position: u64) -> Result<(), RunInfoError> {
        self.check()?;
        let replace = || {
            let mut new = tempfile::Builder::new()
                .prefix(".plimsoll-run-info-")
                .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
                .tempfile_in(self.dir())?;
            writeln!(new, "pos: {position}")?;
            new.as_file().sync_all()?;
            new.persist(&self.path).map_err(|e| e.error)
        };
        replace().map(|_| ()).map_err(|e| self.not_written(e))
    }

    fn dir(&self) -> &Path {
        match self.path.parent() {
            Some(dir) if dir != Path::new("") => dir,
            _ => Path::new("."),
        }
    }

    fn not_written(&self, error: io::Error) -> RunInfoError {
        RunInfoError::Write {
            path: self.path.clone(),
            error,
        }
    }

    fn text(&self) -> io::Result<String> {
        let mut bytes = Vec::new();
        std::fs::File::open(&self.path)?
            .take(MOST_BYTES)
            .read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The number in `pos: N`.
fn position(text: &str) -> Option<u64> {
    text.strip_prefix("pos:")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_come_back_as_they_were_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = RunInfo::at(&dir.path().join("mdtest.status"));
        assert!(matches!(file.read(), Err(RunInfoError::Read { .. })));
        for n in [0, 3000, u64::MAX] {
            file.write(n).unwrap();
            assert_eq!(file.read().unwrap(), n);
        }
        let text = std::fs::read_to_string(&file.path).unwrap();
        assert_eq!(text, format!("pos: {}\n", u64::MAX));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn other_files_are_neither_read_nor_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes");
        let file = RunInfo::at(&path);
        for text in ["", "position 3", "pos: x\n", "pos: -1", "pos: 1\npos: 2\n"] {
            std::fs::write(&path, text).unwrap();
            for refused in [file.read().map(|_| ()), file.check(), file.write(7)] {
                assert!(
                    matches!(refused, Err(RunInfoError::Content { .. })),
                    "{text}"
                );
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        let nowhere = RunInfo::at(&dir.path().join("missing/status"));
        assert!(matches!(nowhere.check(), Err(RunInfoError::Write { .. })));
        let inside = RunInfo::at(&path.join("status"));
        assert!(matches!(inside.write(1), Err(RunInfoError::Write { .. })));
    }
}
