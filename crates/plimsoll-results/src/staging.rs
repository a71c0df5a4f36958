//! Staging of results: a hidden directory until the results are complete, with an owner file.

use crate::whole_file::{create_new, sync, sync_dir, write_all};
use crate::{
    COMMANDS_FILE, DRAFT_FILE, HISTOGRAMS_FILE, INTERVALS_FILE, LIVE_FILE, RUN_FILE, ResultsError,
    SERIES_FILE, SUT_FILE,
};
use plimsoll_runtime::{DiskCall, disk_call};
use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Prefix of the names of hidden directories; random characters follow.
const STAGING_PREFIX: &str = ".plimsoll-";

/// Number of random characters in the name of a hidden directory.
const RANDOM_CHARACTERS: usize = 6;

/// File in a hidden directory that the writer of the results keeps locked.
pub(crate) const OWNER_FILE: &str = ".owner";

/// Files in a hidden directory other than the owner file.
pub(crate) const STAGING_FILES: [&str; 8] = [
    RUN_FILE,
    SERIES_FILE,
    HISTOGRAMS_FILE,
    INTERVALS_FILE,
    LIVE_FILE,
    COMMANDS_FILE,
    DRAFT_FILE,
    SUT_FILE,
];

/// Name of the owner file before the file is locked.
pub(crate) const UNLOCKED_OWNER_FILE: &str = ".owner-unlocked";

/// Minimum age at which a hidden directory without an owner file counts as left by a crashed process: a live process
/// creates an owner file within milliseconds.
const UNCLAIMED_AGE: Duration = Duration::from_secs(60);

const MAX_OWNER_FILE_BYTES: u64 = 512;

/// The hidden directory of results in progress; dropping the value removes the directory.
pub(crate) struct StagingDir {
    dir: TempDir,
    /// Holds the lock, which the kernel releases when the process ends. Declared after `dir`: held until the directory
    /// has been removed.
    _owner: File,
}

impl StagingDir {
    /// Creates a hidden directory below `root`, and removes the unrecoverable hidden directories of killed processes of
    /// this machine.
    pub(crate) fn create(root: &Path) -> Result<Self, ResultsError> {
        remove_abandoned(root);
        let created = disk_call(DiskCall::Write).and_then(|()| {
            tempfile::Builder::new()
                .prefix(STAGING_PREFIX)
                .rand_bytes(RANDOM_CHARACTERS)
                .permissions(Permissions::from_mode(0o777))
                .tempdir_in(root)
        });
        let dir = created.map_err(ResultsError::io("create a directory in", root))?;
        let owner = create_owner_file(dir.path())
            .map_err(ResultsError::io("write", &dir.path().join(OWNER_FILE)))?;
        Ok(Self { dir, _owner: owner })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Keeps the directory, which has been renamed to `path`.
    pub(crate) fn published(self, path: &Path) {
        let _moved = self.dir.keep();
        forget_progress(path);
    }
}

/// Removes the files that only runs in progress have from finished results. A file that stays does no harm.
pub(crate) fn forget_progress(dir: &Path) {
    for name in [LIVE_FILE, DRAFT_FILE, OWNER_FILE] {
        let _ = std::fs::remove_file(dir.join(name));
    }
}

/// Creates and locks the owner file. The owner file gets its final name after the lock, so other runs never find an
/// unlocked owner file.
fn create_owner_file(dir: &Path) -> io::Result<File> {
    let unlocked = dir.join(UNLOCKED_OWNER_FILE);
    let file = create_new(&unlocked)?;
    match file.lock() {
        // Without locks nobody can tell whether the owner is gone, so the directory is never removed automatically.
        Err(e) if e.kind() == io::ErrorKind::Unsupported => {
            std::fs::remove_file(&unlocked)?;
            return Ok(file);
        }
        locked => locked?,
    }
    write_all(&file, owner_line(std::process::id()).as_bytes())?;
    // An incomplete owner file would not identify the owner, and the directory could never be recovered or removed.
    sync(&file)?;
    disk_call(DiskCall::Write)?;
    std::fs::rename(&unlocked, dir.join(OWNER_FILE))?;
    // Synced before any other file exists: files that a crash leaves always have an owner file.
    sync_dir(dir)?;
    Ok(file)
}

/// Locks a results directory that grows run by run. The lock is on the directory itself, so no lock file is left
/// behind.
pub(crate) fn lock(dir: &Path) -> Result<File, ResultsError> {
    let file = File::open(dir).map_err(ResultsError::io("open", dir))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(ResultsError::InUse {
            path: dir.to_owned(),
        }),
        // Where directories cannot be locked, only the user can prevent two writers.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// Content of an owner file, with the name of the machine, because locks of other machines may be invisible on this
/// machine.
fn owner_line(process: u32) -> String {
    let uname = rustix::system::uname();
    let host = uname.nodename().to_string_lossy();
    format!("plimsoll results being written by process {process} on {host}\n")
}

/// Whether a hidden directory is recoverable once its owner is gone.
pub(crate) fn can_be_finished(dir: &Path) -> bool {
    [DRAFT_FILE, RUN_FILE]
        .iter()
        .any(|name| dir.join(name).is_file())
}

/// Removes unrecoverable hidden directories whose owners are gone. A directory that cannot be removed stays, and does
/// no harm.
fn remove_abandoned(root: &Path) {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    for entry in entries {
        let is_dir = entry.file_type().is_ok_and(|t| t.is_dir());
        if is_dir
            && entry.file_name().to_str().and_then(id_of).is_some()
            && !can_be_finished(&entry.path())
        {
            let _lock = match lock_of_gone_owner(&entry.path()) {
                None if !is_unclaimed(&entry.path()) => continue,
                lock => lock,
            };
            let _ = remove_own(&entry.path());
        }
    }
}

/// The random characters of a hidden directory's name; `None` for other names.
pub(crate) fn id_of(name: &str) -> Option<&str> {
    name.strip_prefix(STAGING_PREFIX).filter(|rest| {
        rest.len() == RANDOM_CHARACTERS && rest.bytes().all(|b| b.is_ascii_alphanumeric())
    })
}

/// Whether a directory has the name of a hidden directory.
pub(crate) fn is_hidden(dir: &Path) -> bool {
    let name = dir.file_name().and_then(|n| n.to_str());
    name.and_then(id_of).is_some()
}

/// Whether the writer of a hidden directory was a process of this machine and is gone.
pub(crate) fn is_abandoned(dir: &Path) -> bool {
    lock_of_gone_owner(dir).is_some()
}

/// Whether the writer of a hidden directory crashed before it created an owner file: the directory is empty except for
/// an unlocked owner file, and has not changed for 60 s.
pub(crate) fn is_unclaimed(dir: &Path) -> bool {
    let age = || -> io::Result<Duration> {
        let changed = std::fs::symlink_metadata(dir)?.modified()?;
        changed.elapsed().map_err(io::Error::other)
    };
    let is_other = |entry: io::Result<std::fs::DirEntry>| {
        entry.map_or(true, |entry| entry.file_name() != UNLOCKED_OWNER_FILE)
    };
    let is_empty = std::fs::read_dir(dir).is_ok_and(|mut entries| !entries.any(is_other));
    is_empty && age().is_ok_and(|age| age >= UNCLAIMED_AGE) && !is_being_claimed(dir)
}

/// Whether a process holds the owner file under its first name: the process may be slow, or the file server's clock
/// behind.
fn is_being_claimed(dir: &Path) -> bool {
    let file = File::options()
        .read(true)
        .write(true)
        .open(dir.join(UNLOCKED_OWNER_FILE));
    file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Locks the owner file of a directory; `None` if the owner still holds the lock or belongs to another machine.
pub(crate) fn lock_of_gone_owner(dir: &Path) -> Option<File> {
    let path = dir.join(OWNER_FILE);
    let is_file = |m: std::fs::Metadata| m.is_file();
    if !std::fs::symlink_metadata(&path).is_ok_and(is_file) {
        return None;
    }
    // A shared file system may require write access for an exclusive lock.
    let file = File::options().read(true).write(true).open(&path).ok()?;
    file.try_lock().ok()?;
    // Another process may have renamed or removed the directory since the open, so the lock may be on another file.
    is_at(&file, &path).then_some(())?;
    let mut text = String::new();
    let start = (&file).take(MAX_OWNER_FILE_BYTES).read_to_string(&mut text);
    start.ok()?;
    let process = text.split_ascii_whitespace().nth(6)?.parse().ok()?;
    (text == owner_line(process)).then_some(file)
}

/// Whether an open file is still the file at `path`, by device and inode number.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |m: std::fs::Metadata| (m.dev(), m.ino());
    let there = std::fs::symlink_metadata(path).map(id);
    matches!((file.metadata().map(id), there), (Ok(open), Ok(there)) if open == there)
}

/// Removes the files that a run writes, then the directory, unless it contains other files. The owner file goes last,
/// so an interrupted removal can be repeated.
fn remove_own(dir: &Path) -> io::Result<()> {
    let names = STAGING_FILES
        .iter()
        .chain([&UNLOCKED_OWNER_FILE, &OWNER_FILE]);
    let mut paths: Vec<PathBuf> = names.map(|n| dir.join(n)).collect();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if paths.contains(&entry.path()) {
            continue;
        }
        // A name with the staging prefix is the temporary file of a process that was killed while replacing a file.
        let is_new = entry.file_name().to_str().and_then(id_of).is_some();
        if !is_new || !entry.file_type()?.is_file() {
            return Ok(());
        }
        paths.insert(0, entry.path());
    }
    for path in &paths {
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    std::fs::remove_dir(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a hidden directory as a killed run leaves it.
    fn abandoned(root: &Path, name: &str, owner: &str) -> PathBuf {
        let dir = root.join(name);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join(OWNER_FILE), owner).unwrap();
        std::fs::write(dir.join(INTERVALS_FILE), "window\n").unwrap();
        dir
    }

    #[test]
    fn what_a_killed_run_left_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let left = abandoned(root.path(), ".plimsoll-aZ09xx", &owner_line(1));
        // The process was killed while it wrote its draft.
        std::fs::write(left.join(".plimsoll-bY18zz"), "{").unwrap();
        let hidden = StagingDir::create(root.path()).unwrap();
        assert!(!left.exists() && hidden.path().join(OWNER_FILE).exists());
    }

    #[test]
    fn what_a_process_left_that_crashed_before_it_had_an_owner_file_is_removed_later() {
        let root = tempfile::tempdir().unwrap();
        let dirs = [".plimsoll-aZ09xx", ".plimsoll-aZ09xy"].map(|name| root.path().join(name));
        for dir in &dirs {
            std::fs::create_dir(dir).unwrap();
        }
        std::fs::write(dirs[1].join(UNLOCKED_OWNER_FILE), "plim").unwrap();
        let _first = StagingDir::create(root.path()).unwrap();
        assert!(
            dirs.iter().all(|dir| dir.exists()),
            "they may have just begun"
        );
        let before = std::time::SystemTime::now() - 2 * UNCLAIMED_AGE;
        for dir in &dirs {
            File::open(dir).unwrap().set_modified(before).unwrap();
        }
        let _second = StagingDir::create(root.path()).unwrap();
        assert!(!dirs.iter().any(|dir| dir.exists()));
    }

    #[test]
    fn what_results_can_be_made_of_stays() {
        let root = tempfile::tempdir().unwrap();
        for (name, file) in [
            (".plimsoll-aZ09xx", DRAFT_FILE),
            (".plimsoll-aZ09xy", RUN_FILE),
        ] {
            let left = abandoned(root.path(), name, &owner_line(1));
            std::fs::write(left.join(file), "{}").unwrap();
            let _hidden = StagingDir::create(root.path()).unwrap();
            assert!(left.exists(), "{name}");
        }
    }

    #[test]
    fn a_run_that_goes_on_keeps_its_directory() {
        let root = tempfile::tempdir().unwrap();
        let first = StagingDir::create(root.path()).unwrap();
        let second = StagingDir::create(root.path()).unwrap();
        assert!(first.path().exists() && second.path().exists());
    }

    #[test]
    fn what_is_not_ours_stays() {
        let root = tempfile::tempdir().unwrap();
        let line = owner_line(1);
        let named = abandoned(root.path(), ".plimsoll-notours", &line);
        let foreign = abandoned(root.path(), ".plimsoll-aaaaaa", "somebody else\n");
        let far = line.replace(" on ", " on not-");
        let far = abandoned(root.path(), ".plimsoll-bbbbbb", &far);
        let unowned = root.path().join(".plimsoll-cccccc");
        std::fs::create_dir(&unowned).unwrap();
        let more = abandoned(root.path(), ".plimsoll-dddddd", &line);
        std::fs::write(more.join("thesis.tex"), "").unwrap();
        let target = abandoned(root.path(), "target", &line);
        let link = root.path().join(".plimsoll-eeeeee");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let _hidden = StagingDir::create(root.path()).unwrap();
        for kept in [named, foreign, far, unowned, target, link] {
            assert!(kept.exists(), "{}", kept.display());
        }
        assert!(more.join(INTERVALS_FILE).exists());
    }

    #[test]
    fn a_file_that_has_gone_is_no_lock() {
        let root = tempfile::tempdir().unwrap();
        let left = abandoned(root.path(), ".plimsoll-aZ09xx", &owner_line(1));
        let owner = left.join(OWNER_FILE);
        let file = File::open(&owner).unwrap();
        assert!(is_at(&file, &owner));
        // Another process has recovered the directory, and a new run has created one of the same name.
        std::fs::rename(&left, root.path().join("results")).unwrap();
        assert!(!is_at(&file, &owner));
        abandoned(root.path(), ".plimsoll-aZ09xx", &owner_line(1));
        assert!(!is_at(&file, &owner));
    }

    #[test]
    fn published_results_hold_no_owner_file() {
        let root = tempfile::tempdir().unwrap();
        let hidden = StagingDir::create(root.path()).unwrap();
        let path = root.path().join("results");
        std::fs::rename(hidden.path(), &path).unwrap();
        hidden.published(&path);
        assert!(path.exists() && !path.join(OWNER_FILE).exists());
    }
}
