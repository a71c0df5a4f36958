//! Creation of files without overwriting, and output to streams.

use crate::exit::CommandError;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Refuses a path of an existing file or directory, except a stream ([`is_stream`]).
///
/// # Errors
/// If a file or directory exists at the path.
pub fn refuse_existing(path: &Path) -> Result<(), CommandError> {
    match path.symlink_metadata() {
        Ok(_) if !is_stream(path) => Err(exists(path)),
        _ => Ok(()),
    }
}

/// Creates the file `path` with `content` completely or not at all; even on power failure, if the file system supports
/// renames without replacement or hard links. If `path` is a stream ([`is_stream`]), appends `content` to the stream.
///
/// # Errors
/// If a file or directory exists at `path`, or the file cannot be written.
pub fn create(path: &Path, content: impl AsRef<[u8]>) -> Result<(), CommandError> {
    refuse_existing(path)?;
    let write = || match is_stream(path) {
        true => {
            let mut stream = File::options().append(true).open(path)?;
            stream.write_all(content.as_ref())
        }
        false => create_whole(path, content.as_ref()),
    };
    let cannot = |e: &io::Error| format!("cannot write {}: {e}", path.display());
    write().map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => exists(path),
        ErrorKind::NotFound
        | ErrorKind::NotADirectory
        | ErrorKind::PermissionDenied
        | ErrorKind::ReadOnlyFilesystem => CommandError::usage(cannot(&e)),
        _ => CommandError::failed(cannot(&e)),
    })
}

fn create_whole(path: &Path, content: &[u8]) -> io::Result<()> {
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
    match file.persist_noclobber(path) {
        Ok(_) => Ok(()),
        Err(e) if has_no_links(&e.error) => create_in_place(path, content),
        Err(e) => Err(e.error),
    }
}

/// Whether the error shows that the file system supports neither a checked rename nor hard links.
fn has_no_links(e: &io::Error) -> bool {
    let errno = Errno::from_io_error(e);
    errno.is_some_and(|e| [Errno::NOSYS, Errno::PERM, Errno::OPNOTSUPP, Errno::INVAL].contains(&e))
}

/// Creates a file under its final name, on file systems without checked renames and hard links, and removes the file if
/// writing fails.
fn create_in_place(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    written.inspect_err(|_| {
        // An incomplete output file must not remain.
        let _ = std::fs::remove_file(path);
    })
}

/// Creates output files and their missing parent directories; if a file cannot be created, removes the files created
/// before.
///
/// # Errors
/// If one of the output files exists already, or an output file or parent directory cannot be created.
pub fn create_all<C: AsRef<[u8]>>(files: &[(PathBuf, C)]) -> Result<(), CommandError> {
    for (path, _) in files {
        refuse_existing(path)?;
    }
    for (i, (path, content)) in files.iter().enumerate() {
        let dir = path.parent().unwrap_or(Path::new("."));
        let made = std::fs::create_dir_all(dir)
            .map_err(|e| CommandError::failed(format!("cannot create {}: {e}", dir.display())));
        made.and_then(|()| create(path, content)).inspect_err(|_| {
            for (created, _) in &files[..i] {
                // Output files of the failed attempt would make the next attempt fail, because existing files are
                // refused.
                let _ = std::fs::remove_file(created);
            }
        })?;
    }
    Ok(())
}

/// Whether a path is a device, a pipe, or an open file of a process, such as `/dev/stdout` or `/dev/fd/3`.
pub fn is_stream(path: &Path) -> bool {
    let standard = ["/dev/stdin", "/dev/stdout", "/dev/stderr"];
    let is_standard = standard.iter().any(|name| path == Path::new(name));
    let is_descriptor = path.parent().is_some_and(|dir| {
        dir == Path::new("/dev/fd") || dir.starts_with("/proc") && dir.ends_with("fd")
    });
    let is_special = |found: std::fs::Metadata| !found.is_file() && !found.is_dir();
    is_standard || is_descriptor || path.metadata().is_ok_and(is_special)
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
        // The output file has the permissions of the umask, and not the mode 0600 of a temporary file.
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
        let other = dir.path().join("other");
        create_in_place(&other, b"whole").unwrap();
        create_in_place(&other, b"again").unwrap_err();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "whole");
        std::fs::remove_file(&other).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
        let set = ["a", "b/c", "b"].map(|name| (dir.path().join("set").join(name), "x"));
        create_all(&set).unwrap_err();
        assert!(!set[0].0.exists() && !set[1].0.exists());
        create_all(&set[..2]).unwrap();
        assert!(set[0].0.exists() && set[1].0.exists());
        for (stream, is_one) in [
            ("/dev/stdout", true),
            ("/dev/fd/3", true),
            ("/proc/self/fd/1", true),
            ("/dev/null", true),
            ("/proc/self/cwd/report.html", false),
            ("/dev/standard", false),
            ("/", false),
        ] {
            assert_eq!(is_stream(Path::new(stream)), is_one, "{stream}");
        }
    }
}
