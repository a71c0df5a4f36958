//! Files that a command creates, and never overwrites.

use crate::exit::CommandError;
use std::fs::File;
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

/// Creates a file with this content, completely or not at all, also if the power fails. What is no file, such as
/// `/dev/stdout`, a device or a pipe, is written to.
///
/// # Errors
/// If a file exists there, or if it cannot be written.
pub fn create(path: &Path, content: impl AsRef<[u8]>) -> Result<(), CommandError> {
    let write = || match is_no_file(path) {
        true => File::options()
            .append(true)
            .open(path)?
            .write_all(content.as_ref()),
        false => create_whole(path, content.as_ref()),
    };
    let cannot = |e: &io::Error| format!("cannot write {}: {e}", path.display());
    write().map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => exists(path),
        ErrorKind::NotFound | ErrorKind::NotADirectory => CommandError::usage(cannot(&e)),
        _ => CommandError::failed(cannot(&e)),
    })
}

fn create_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".plimsoll-")
        .permissions(PermissionsExt::from_mode(0o666))
        .tempfile_in(dir)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|e| e.error)?;
    Ok(())
}

/// Whether a path leads to a device, a pipe, or, as `/dev/stdout` and `/dev/fd/3` do, to what a process has open.
fn is_no_file(path: &Path) -> bool {
    let is_special = |found: std::fs::Metadata| !found.is_file() && !found.is_dir();
    let is_open = ["/dev/std", "/dev/fd/", "/proc/"].iter().any(|prefix| {
        path.as_os_str()
            .as_encoded_bytes()
            .starts_with(prefix.as_bytes())
    });
    is_open || path.metadata().is_ok_and(is_special)
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
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let error = create(&link, "x").unwrap_err();
        assert!(error.message.contains("already exists"), "{error:?}");
        std::fs::remove_file(&link).unwrap();
        create(Path::new("/dev/null"), "x").unwrap();
        create(Path::new("/dev/full"), "x").unwrap_err();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
