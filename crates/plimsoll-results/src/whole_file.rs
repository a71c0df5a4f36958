//! Files that are written completely or not at all, and that survive a power cut. Only this module decides the order in
//! which contents and names are synced.
//!
//! `fsync` of a file does not guarantee that the name of the file is on the device, and `fsync` of a directory does not
//! guarantee the content of the files in the directory. So a file is synced before it gets its final name, and the
//! directory of that name is synced afterwards.

use crate::ResultsError;
use plimsoll_runtime::{DiskCall, disk_call};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Creates a file with a free name.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    disk_call(DiskCall::Write)?;
    File::create_new(path)
}

/// Writes all of `bytes` at the current position of a file, the end of a file that is being written.
pub(crate) fn write_all(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    disk_call(DiskCall::Write)?;
    file.write_all(bytes)
}

/// Syncs the content of a file to the device.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    disk_call(DiskCall::Sync)?;
    file.sync_all()
}

/// Syncs the names in a directory to the device.
///
/// # Errors
/// Errors of the device. Errors of file systems that cannot sync directories are ignored.
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

/// Syncs the content of a file to the device, if the file exists.
///
/// # Errors
/// [`ResultsError::Io`] if the file system refuses.
pub(crate) fn sync_if_there(path: &Path) -> Result<(), ResultsError> {
    match File::open(path).and_then(|file| sync(&file)) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(ResultsError::io("write", path)(e)),
        _ => Ok(()),
    }
}

/// Creates a directory and its missing parents, and syncs their names to the device.
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

/// Writes and syncs a new file; the next [`sync_dir`] of its directory syncs the name.
///
/// # Errors
/// [`ResultsError::Io`] if the file system refuses, or if the file exists.
pub(crate) fn write_new(path: &Path, text: &str) -> Result<(), ResultsError> {
    let write = || -> io::Result<()> {
        let file = create_new(path)?;
        write_all(&file, text.as_bytes())?;
        sync(&file)
    };
    write().map_err(ResultsError::io("write", path))
}

/// Replaces a file atomically: the old or the new file is complete at any time.
///
/// # Errors
/// [`ResultsError::Io`] if the file system refuses; the old or the new file is then in place.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), ResultsError> {
    replace_file(path, text, true)
}

/// Replaces a file as [`replace`] does, but without a sync, which would delay the caller if the disk is being measured.
/// For files that are useless after a crash.
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

/// Renames a directory to a free name.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if the name is taken; other errors of the file system.
pub(crate) fn rename_to_free_name(from: &Path, to: &Path) -> io::Result<()> {
    disk_call(DiskCall::Write)?;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => rename_onto_empty(from, to),
        done => Ok(done?),
    }
}

/// Renames for file systems that cannot check the name in a rename, such as NFS. An empty directory reserves the name,
/// because a rename only replaces an empty directory; a crash may leave the empty directory.
fn rename_onto_empty(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir(to)?;
    disk_call(DiskCall::Write)?;
    std::fs::rename(from, to).inspect_err(|_| {
        // The directory is empty and was created here; if removing fails too, the error of the rename matters more.
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
