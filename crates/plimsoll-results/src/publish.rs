//! Names and roots of results directories, and the final rename.

use crate::ResultsError;
use crate::whole_file::{create_dirs, rename_to_free_name, sync_dir};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum number of results with the same name and start time.
const MAX_RUNS_PER_SECOND: u32 = 10_000;

/// Root that this process created; dropping removes the root if it is empty.
pub(crate) struct CreatedRoot(PathBuf);

impl CreatedRoot {
    /// Creates a root if it is missing; `None` if the root exists.
    pub(crate) fn make(root: &Path) -> Result<Option<Self>, ResultsError> {
        let made = (!root.exists()).then(|| Self(root.to_owned()));
        create_dirs(root)?;
        Ok(made)
    }
}

impl Drop for CreatedRoot {
    fn drop(&mut self) {
        // Removing a root that is not empty fails, which is intended.
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Renames a hidden directory to the first free name, and calls `published` with the new path. On return, the directory
/// is on the device if its files were.
///
/// # Errors
/// [`ResultsError::Io`]. If only the final sync of `root` fails, the directory keeps its final name.
pub(crate) fn publish(
    hidden: &Path,
    root: &Path,
    name: &str,
    published: impl FnOnce(&Path),
) -> Result<PathBuf, ResultsError> {
    // The final name must imply that the names of the files are on the device.
    sync_dir(hidden).map_err(ResultsError::io("write", hidden))?;
    for n in 1..=MAX_RUNS_PER_SECOND {
        let path = match n {
            1 => root.join(name),
            n => root.join(format!("{name}-{n}")),
        };
        match rename_to_free_name(hidden, &path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            renamed => {
                renamed.map_err(ResultsError::io("rename the results to", &path))?;
                let synced = sync_dir(root);
                published(&path);
                synced.map_err(ResultsError::io("write the directory of", &path))?;
                return Ok(path);
            }
        }
    }
    let full = io::Error::new(
        io::ErrorKind::AlreadyExists,
        "too many results of that name",
    );
    Err(ResultsError::io("create", &root.join(name))(full))
}

/// Converts a time of day; a time outside the years -9999 to 9999 becomes the first or last time of that range.
#[must_use]
pub fn timestamp(time: SystemTime) -> jiff::Timestamp {
    jiff::Timestamp::try_from(time).unwrap_or(match time < SystemTime::UNIX_EPOCH {
        true => jiff::Timestamp::MIN,
        false => jiff::Timestamp::MAX,
    })
}

/// `WORKLOAD-YYYYmmdd-HHMMSS` in local time, with only letters, digits, `.`, `_` and `-`.
pub(crate) fn name_of(workload: &str, started: SystemTime) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = workload
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect();
    let local = timestamp(started).to_zoned(jiff::tz::TimeZone::system());
    let name = name.trim_start_matches('.');
    let name = if name.is_empty() { "run" } else { name };
    format!("{name}-{}", local.strftime("%Y%m%d-%H%M%S"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn names_of_directories_are_plain() {
        let beyond = SystemTime::UNIX_EPOCH + Duration::from_secs(400_000_000_000);
        assert!(name_of("w", beyond).starts_with("w-9999123"));
        let name = name_of("../we ird/näme", SystemTime::now());
        assert!(name.starts_with("-we-ird-n-me-20"), "{name}");
        assert!(name_of("..", SystemTime::now()).starts_with("run-20"));
    }
}
