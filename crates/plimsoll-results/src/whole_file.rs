//! Files that are written completely or not at all, and stay when the power fails: the one place that knows
//! in which order contents and names are brought to the device.
//!
//! `fsync` of a file does not promise that its name is on the device, and `fsync` of a directory not that
//! what its files hold is. So a file is synced before it gets the name by which it counts, and then the
//! directory of that name.

use crate::ResultsError;
use plimsoll_runtime::{DiskCall, disk_call};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Creates a file, whose name must be free.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    disk_call(DiskCall::Write)?;
    File::create_new(path)
}

/// Appends bytes to a file.
pub(crate) fn write_all(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    disk_call(DiskCall::Write)?;
    file.write_all(bytes)
}

/// Brings the content of a file to the device.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    disk_call(DiskCall::Sync)?;
    file.sync_all()
}

/// Brings the names in a directory to the device.
///
/// # Errors
/// Those of the device. What a file system cannot do with directories, it does later.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    let dir = match dir.as_os_str().is_empty() {
        true => Path::new("."),
        false => dir,
    };
    let cannot = |e: &io::Error| {
        matches!(
            e.kind(),
            ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::PermissionDenied
        )
    };
    match File::open(dir).and_then(|dir| sync(&dir)) {
        Err(e) if !cannot(&e) => Err(e),
        _ => Ok(()),
    }
}

/// Brings the content of a file to the device, if it exists.
///
/// # Errors
/// [`ResultsError::Io`] of the file system.
pub(crate) fn sync_if_there(path: &Path) -> Result<(), ResultsError> {
    match File::open(path).and_then(|file| sync(&file)) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(ResultsError::io("write", path)(e)),
        _ => Ok(()),
    }
}

/// Creates a directory and those above it that are missing, and brings their names to the device.
///
/// # Errors
/// [`ResultsError::Io`] if the file system refuses.
pub(crate) fn create_dirs(dir: &Path) -> Result<(), ResultsError> {
    let is_missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
    let missing: Vec<PathBuf> = dir
        .ancestors()
        .take_while(is_missing)
        .map(Path::to_owned)
        .collect();
    let calls = missing.iter().try_for_each(|_| disk_call(DiskCall::Write));
    let created = calls.and_then(|()| std::fs::create_dir_all(dir));
    created.map_err(ResultsError::io("create", dir))?;
    for made in missing {
        let above = made.parent().unwrap_or(Path::new("."));
        sync_dir(above).map_err(ResultsError::io("create", &made))?;
    }
    Ok(())
}

/// Writes a new file to the device; its name follows with the next [`sync_dir`] of its directory.
///
/// # Errors
/// [`ResultsError::Io`] if the file system refuses, or if the file is there.
pub(crate) fn write_new(path: &Path, text: &str) -> Result<(), ResultsError> {
    let write = || -> io::Result<()> {
        let file = create_new(path)?;
        write_all(&file, text.as_bytes())?;
        sync(&file)
    };
    write().map_err(ResultsError::io("write", path))
}

/// Replaces a file, so that at any time the old or the new one is complete.
///
/// # Errors
/// [`ResultsError::Io`] if the file system refuses; the file is then as it was, or already the new one.
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
        disk_call(DiskCall::Write)?;
        let file = tempfile::Builder::new()
            .prefix(".plimsoll-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
            .tempfile_in(dir)?;
        write_all(file.as_file(), text.as_bytes())?;
        if synced {
            sync(file.as_file())?;
        }
        disk_call(DiskCall::Write)?;
        file.persist(path).map_err(|e| e.error)?;
        match synced {
            true => sync_dir(dir),
            false => Ok(()),
        }
    };
    write().map_err(ResultsError::io("write", path))
}

/// Gives a directory another name, unless that is taken.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if it is; those of the file system.
pub(crate) fn rename_to_free_name(from: &Path, to: &Path) -> io::Result<()> {
    disk_call(DiskCall::Write)?;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => rename_onto_empty(from, to),
        done => Ok(done?),
    }
}

/// The same for file systems that cannot check the name when they rename, such as NFS. An empty directory
/// takes the name, for only an empty one is replaced by a rename; a crash may leave it.
fn rename_onto_empty(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir(to)?;
    disk_call(DiskCall::Write)?;
    std::fs::rename(from, to).inspect_err(|_| {
        // Ours and empty; if even this fails the rename's error says more.
        let _ = std::fs::remove_dir(to);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_name_stays_as_it_is() {
        for rename in [rename_to_free_name, rename_onto_empty] {
            let root = tempfile::tempdir().unwrap();
            let (from, to) = (root.path().join("from"), root.path().join("to"));
            for dir in [&from, &to] {
                std::fs::create_dir(dir).unwrap();
            }
            std::fs::write(from.join("f"), "").unwrap();
            let error = rename(&from, &to).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists);
            assert!(from.join("f").exists() && to.exists());
            std::fs::remove_dir(&to).unwrap();
            rename(&from, &to).unwrap();
            assert!(to.join("f").exists() && !from.exists());
        }
    }

    #[test]
    fn directories_are_created_above_one_another() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c");
        create_dirs(&deep).unwrap();
        create_dirs(&deep).unwrap();
        assert!(deep.is_dir());
        std::fs::write(deep.join("f"), "").unwrap();
        let error = create_dirs(&deep.join("f/g")).unwrap_err().to_string();
        assert!(error.contains("a/b/c/f/g"), "{error}");
    }
}
