//! JSON files with a version, written whole or not at all.

use crate::ResultsError;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Reads a file of this version; `what` says what it is the result of, for errors.
///
/// # Errors
/// [`ResultsError::Schema`] if it was written by a program of another version,
/// [`ResultsError::Json`] if it holds something else, [`ResultsError::Io`] if it cannot be read.
pub(crate) fn read<T: DeserializeOwned>(
    path: &Path,
    schema: u32,
    what: &'static str,
) -> Result<T, ResultsError> {
    let text = std::fs::read_to_string(path).map_err(ResultsError::io("read", path))?;
    let json = |source| ResultsError::Json {
        what,
        path: path.to_owned(),
        source,
    };
    let value: serde_json::Value = serde_json::from_str(&text).map_err(json)?;
    match value.get("schema") {
        Some(n) if *n == schema => {}
        found => {
            return Err(ResultsError::Schema {
                path: path.to_owned(),
                found: found.map_or("none".into(), ToString::to_string),
                reads: schema,
            });
        }
    }
    serde_json::from_value(value).map_err(json)
}

/// Writes a file that is not there yet, down to the device.
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

/// Puts a file in the place of the one there is, so that at any time one of the two is whole.
///
/// # Errors
/// [`ResultsError::Io`] if the file system refuses; the file is then as it was.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), ResultsError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(".plimsoll-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .tempfile_in(dir)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    };
    write().map_err(ResultsError::io("write", path))
}
