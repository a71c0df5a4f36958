//! Files that a command creates, and never overwrites.

use crate::exit::CommandError;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Refuses a path at which something exists.
///
/// # Errors
/// If it does.
pub fn refuse_existing(path: &Path) -> Result<(), CommandError> {
    match path.symlink_metadata() {
        Ok(_) => Err(exists(path)),
        Err(_) => Ok(()),
    }
}

/// Creates a file with this text, completely or not at all.
///
/// # Errors
/// If something exists there, or if it cannot be written.
pub fn create(path: &Path, text: &str) -> Result<(), CommandError> {
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let write = || -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(".plimsoll-")
            .permissions(PermissionsExt::from_mode(0o666))
            .tempfile_in(dir)?;
        file.write_all(text.as_bytes())?;
        file.persist_noclobber(path).map_err(|e| e.error)?;
        Ok(())
    };
    refuse_existing(path)?;
    write().map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => CommandError::failed(format!("cannot write {}: {e}", path.display())),
    })
}

fn exists(path: &Path) -> CommandError {
    CommandError::usage(format!(
        "{} already exists and is not overwritten",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_new_and_whole_or_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new.toml");
        create(&path, "text\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "text\n");
        // As the user's mask has it, and not the owner's only.
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
        let usual = dir.path().join("usual");
        std::fs::write(&usual, "").unwrap();
        assert_eq!(mode(&path), mode(&usual));
        let error = create(&path, "other").unwrap_err();
        assert!(error.message.contains("already exists"), "{error:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "text\n");
        assert!(create(&dir.path().join("no/such"), "x").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
