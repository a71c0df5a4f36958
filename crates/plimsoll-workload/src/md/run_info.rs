//! The run-info file, which stores the position at which the next run of a phase begins.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Maximum number of bytes that are read, enough for the positions of more than 100 000 ranks.
const MAX_BYTES: u64 = 4 << 20;

/// Numbers of the next objects of the ranks of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// One number for all ranks.
    Common(u64),
    /// One number per rank, in the order of the ranks; never empty.
    PerRank(Vec<u64>),
}

impl Position {
    /// The positions of the ranks in order; `None` for no ranks.
    #[must_use]
    pub fn of_ranks(positions: Vec<u64>) -> Option<Self> {
        let first = *positions.first()?;
        match positions.iter().all(|p| *p == first) {
            true => Some(Self::Common(first)),
            false => Some(Self::PerRank(positions)),
        }
    }

    /// Number of rank 0's next object.
    #[must_use]
    pub fn of_rank_0(&self) -> u64 {
        match self {
            Self::Common(position) => *position,
            Self::PerRank(each) => *each.first().expect("at least one rank"),
        }
    }
}

/// The file that stores the numbers of the next objects between runs of single phases: one line `pos: N`, as in
/// MD-Workbench. If ranks are at different positions, `N` is the position of rank 0, and a second line `ranks: N N …`
/// has the positions of all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo {
    path: PathBuf,
}

/// Reason why a run-info file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunInfoError {
    /// The file cannot be read.
    #[error(
        "cannot read the position from {}: {error}; a run of the phase before writes it, and \
         --start-item replaces it", path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is not a run-info file.
    #[error("{} is not a run-info file: expected a line such as `pos: 3000`, not `{found}`",
        path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Start of the file's first line, at most 60 characters.
        found: String,
    },
    /// The file cannot be written.
    #[error("cannot write the position to {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl RunInfo {
    /// Creates a reference to the file at `path`, without reading the file.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { path: path.into() }
    }

    /// Reads the number of the next object of each rank.
    ///
    /// # Errors
    /// If the file cannot be read or is not a run-info file.
    pub fn read(&self) -> Result<Position, RunInfoError> {
        let text = self.text().map_err(|error| RunInfoError::Read {
            path: self.path.clone(),
            error,
        })?;
        position(&text).ok_or_else(|| RunInfoError::Content {
            path: self.path.clone(),
            found: text.chars().take_while(|c| *c != '\n').take(60).collect(),
        })
    }

    /// Checks before a run that the position can be written after the run. Only a run-info file is ever replaced.
    ///
    /// # Errors
    /// If the path exists and is not a readable run-info file, or the directory is missing.
    pub fn check(&self) -> Result<(), RunInfoError> {
        if std::fs::symlink_metadata(&self.path).is_ok() {
            return self.read().map(|_| ());
        }
        check_parent(&self.path).map_err(|e| self.not_written(e))
    }

    /// Replaces the file by the numbers of the next objects.
    ///
    /// # Errors
    /// If the file cannot be written; an existing file is then unchanged.
    pub fn write(&self, position: &Position) -> Result<(), RunInfoError> {
        self.check()?;
        let replace = || -> io::Result<()> {
            let mut new = tempfile::Builder::new()
                .prefix(".plimsoll-run-info-")
                .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
                .tempfile_in(parent(&self.path))?;
            new.write_all(lines(position).as_bytes())?;
            new.as_file().sync_all()?;
            new.persist(&self.path).map_err(|e| e.error)?;
            // A file system that does not support syncing directories makes new names durable without a sync.
            let _ = std::fs::File::open(parent(&self.path)).and_then(|dir| dir.sync_all());
            Ok(())
        };
        replace().map_err(|e| self.not_written(e))
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
            .take(MAX_BYTES)
            .read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Directory of a file; `.` for a bare name.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    }
}

/// Checks that the directory of a file exists.
pub(crate) fn check_parent(path: &Path) -> io::Result<()> {
    match std::fs::metadata(parent(path))?.is_dir() {
        true => Ok(()),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}

/// Formats a position as the contents of the file.
fn lines(position: &Position) -> String {
    let first = format!("pos: {}\n", position.of_rank_0());
    match position {
        Position::Common(_) => first,
        Position::PerRank(each) => {
            let each: Vec<String> = each.iter().map(u64::to_string).collect();
            format!("{first}ranks: {}\n", each.join(" "))
        }
    }
}

/// Parses the contents of the file; `None` if they are invalid.
fn position(text: &str) -> Option<Position> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let first: u64 = first.strip_prefix("pos:")?.trim().parse().ok()?;
    if rest.trim().is_empty() {
        return Some(Position::Common(first));
    }
    let each = rest.strip_prefix("ranks:")?.trim_end();
    if each.contains('\n') {
        return None;
    }
    let each: Option<Vec<u64>> = each.split_whitespace().map(|n| n.parse().ok()).collect();
    Position::of_ranks(each?).filter(|p| p.of_rank_0() == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_come_back_as_they_were_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = RunInfo::at(&dir.path().join("mdtest.status"));
        assert!(matches!(file.read(), Err(RunInfoError::Read { .. })));
        for (position, text) in [
            (Position::Common(0), "pos: 0\n".to_owned()),
            (
                Position::PerRank(vec![7, 0, 12]),
                "pos: 7\nranks: 7 0 12\n".into(),
            ),
            (Position::Common(u64::MAX), format!("pos: {}\n", u64::MAX)),
        ] {
            file.write(&position).unwrap();
            assert_eq!(file.read().unwrap(), position);
            assert_eq!(std::fs::read_to_string(&file.path).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn other_files_are_neither_read_nor_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes");
        let file = RunInfo::at(&path);
        for text in [
            "",
            "position 3",
            "pos: x\n",
            "pos: -1",
            "pos: 1\npos: 2\n",
            "pos: 1\nranks:\n",
            "pos: 1\nranks: 1 x\n",
            "pos: 1\nranks: 2 1\n",
            "pos: 1\nranks: 1 2\nranks: 1 2\n",
        ] {
            std::fs::write(&path, text).unwrap();
            for refused in [
                file.read().map(|_| ()),
                file.check(),
                file.write(&Position::Common(7)),
            ] {
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
        assert!(matches!(
            inside.write(&Position::Common(1)),
            Err(RunInfoError::Write { .. })
        ));
    }
}
