//! Files that are written completely or not at all.

use crate::ResultsError;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes the names in a directory to the disk. If that cannot be requested, the system does so later.
pub(crate) fn sync_dir(dir: &Path) {
    let _ = File::open(dir).and_then(|dir| dir.sync_all());
}

/// Writes a new file to the device.
///
/// # Errors
/// [`ResultsError::Io`] if the file system refuses, or if the file is there.
pub(crate) fn write_new(path: &Path, text: &str) -> Result<(), ResultsError> {
    let write = || -> io::Result<()> {
        let mut file = File::create_new(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(ResultsError::io("write", path))
}

/// Replaces a file, so that at any time the old or the new one is complete.
///
/// # Errors
/// [`ResultsError::Io`] if the file system refuses; the file is then as it was.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), ResultsError> {
    replace_file(path, text, true)
}

/// Replaces a file as [`replace`] does, without waiting for the disk, which may be the one that is measured:
/// for a file that is of no use after a crash.
///
/// # Errors
/// As [`replace`].
pub(crate) fn replace_unsynced(path: &Path, text: &str) -> Result<(), ResultsError> {
    replace_file(path, text, false)
}

fn replace_file(path: &Path, text: &str, synced: bool) -> Result<(), ResultsError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(".plimsoll-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .tempfile_in(dir)?;
        file.write_all(text.as_bytes())?;
        if synced {
            file.as_file().sync_all()?;
        }
        file.persist(path).map_err(|e| e.error)?;
        if synced {
            sync_dir(dir);
        }
        Ok(())
    };
    write().map_err(ResultsError::io("write", path))
}
