//! The run-info file, which stores the position at which the next run of a phase begins.

use std::io::{self, Read, Write};
use std::path::Path;

/// Maximum number of bytes that are read, enough for the positions of more than 100 000 ranks.
const MAX_BYTES: u64 = 4 << 20;

/// Number of the next object of each rank of a run, in the order of the ranks; a single number if all ranks are at the
/// same object. The list of numbers is never empty.
///
/// The run-info file stores the numbers between runs of single phases: one line `pos: N`, as in MD-Workbench. If ranks
/// are at different positions, `N` is the position of rank 0, and a second line `ranks: N N …` has the positions of all
/// ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position(pub Vec<u64>);

impl Position {
    /// The positions of the ranks in order; `None` for no ranks.
    #[must_use]
    pub fn of_ranks(mut positions: Vec<u64>) -> Option<Self> {
        let first = *positions.first()?;
        if positions.iter().all(|p| *p == first) {
            positions.truncate(1);
        }
        Some(Self(positions))
    }

    /// Number of rank 0's next object.
    #[must_use]
    pub fn of_rank_0(&self) -> u64 {
        *self.0.first().expect("at least one rank")
    }

    /// Reads the position of an earlier run from a run-info file, at most 4 MiB of the file.
    ///
    /// # Errors
    /// A sentence if the run-info file cannot be read, or has no valid line `pos: N`.
    pub fn read(path: &Path) -> Result<Self, String> {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path);
        file.and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes))
            .map_err(|e| {
                format!(
                    "cannot read the position from {}: {e}; a run of the phase before writes it, and \
                     --start-item replaces it",
                    path.display()
                )
            })?;
        let text = String::from_utf8_lossy(&bytes);
        position(&text).ok_or_else(|| {
            let found: String = text.chars().take_while(|c| *c != '\n').take(60).collect();
            format!(
                "{} is not a run-info file: expected a line such as `pos: 3000`, not `{found}`",
                path.display()
            )
        })
    }

    /// Checks before a run that the position can be written after the run. Only a run-info file is ever replaced.
    ///
    /// # Errors
    /// If the path exists and is not a readable run-info file, or the directory is missing.
    pub fn check(path: &Path) -> Result<(), String> {
        if std::fs::symlink_metadata(path).is_ok() {
            return Self::read(path).map(|_| ());
        }
        check_parent(path).map_err(|e| not_written(path, &e))
    }

    /// Writes the position into a run-info file, atomically and durably.
    ///
    /// # Errors
    /// A sentence if the run-info file cannot be written, or if the path exists and is not a run-info file; an existing
    /// file is then unchanged.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        Self::check(path)?;
        let replace = || -> io::Result<()> {
            let mut new = tempfile::Builder::new()
                .prefix(".plimsoll-run-info-")
                .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
                .tempfile_in(parent(path))?;
            new.write_all(lines(self).as_bytes())?;
            new.as_file().sync_all()?;
            new.persist(path).map_err(|e| e.error)?;
            // A file system that does not support syncing directories makes new names durable without a sync.
            let _ = std::fs::File::open(parent(path)).and_then(|dir| dir.sync_all());
            Ok(())
        };
        replace().map_err(|e| not_written(path, &e))
    }
}

fn not_written(path: &Path, error: &io::Error) -> String {
    format!("cannot write the position to {}: {error}", path.display())
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
    if position.0.len() == 1 {
        return first;
    }
    let each: Vec<String> = position.0.iter().map(u64::to_string).collect();
    format!("{first}ranks: {}\n", each.join(" "))
}

/// Parses the contents of the file; `None` if they are invalid.
fn position(text: &str) -> Option<Position> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let first: u64 = first.strip_prefix("pos:")?.trim().parse().ok()?;
    if rest.trim().is_empty() {
        return Some(Position(vec![first]));
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
        let file = dir.path().join("mdtest.status");
        let missing = Position::read(&file).unwrap_err();
        assert!(missing.starts_with("cannot read the position"), "{missing}");
        for (position, text) in [
            (vec![0], "pos: 0\n".to_owned()),
            (vec![7, 0, 12], "pos: 7\nranks: 7 0 12\n".into()),
            (vec![u64::MAX], format!("pos: {}\n", u64::MAX)),
        ] {
            let position = Position(position);
            position.write(&file).unwrap();
            assert_eq!(Position::read(&file), Ok(position));
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn other_files_are_neither_read_nor_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes");
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
                Position::read(&path).map(|_| ()),
                Position::check(&path),
                Position(vec![7]).write(&path),
            ] {
                let message = refused.unwrap_err();
                assert!(message.contains("is not a run-info file"), "{message}");
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        let refused = Position::check(&dir.path().join("missing/status"));
        assert!(refused.unwrap_err().starts_with("cannot write"));
        assert!(Position(vec![1]).write(&path.join("status")).is_err());
    }
}
