//! Deletion of results: only files that Plimsoll wrote, and only when no process writes to them.

use crate::staging::{self, lock};
use crate::whole_file::sync_dir;
use crate::{
    ANNOTATIONS_FILE, Annotations, COMMANDS_FILE, COMPARISON_FILE, DRAFT_FILE, Entry,
    HISTOGRAMS_FILE, INTERVALS_FILE, Kind, LIVE_FILE, ResultsError, SUT_FILE, SeriesDir,
    open_regular,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Directory in a run's results that holds the results of each rank, as `rank-N.json`.
const RANKS_DIR: &str = "ranks";

/// A checked removal of results, before anything is deleted. A lock keeps other processes from writing to the results
/// while the value lives.
///
/// Subdirectories are deleted before their parents, and the file that marks a directory as results is deleted last: an
/// interrupted removal can be repeated.
#[derive(Debug)]
pub struct Removal {
    dir: PathBuf,
    parts: Vec<RemovalPart>,
    /// Directories, one for each configuration of a profile, that contain the directories of runs.
    places: Vec<PathBuf>,
    bytes: u64,
    _lock: File,
}

/// A directory to delete, with its files in the order of deletion.
#[derive(Debug)]
struct RemovalPart {
    dir: PathBuf,
    files: Vec<PathBuf>,
}

impl Removal {
    /// Checks a results directory and everything below it.
    ///
    /// # Errors
    /// [`ResultsError::None`] if the directory holds no results, [`ResultsError::InUse`] if a run below it is in
    /// progress, [`ResultsError::Foreign`] if Plimsoll did not write everything below it; [`ResultsError`] if the
    /// results cannot be read or are damaged.
    pub fn of(dir: &Path) -> Result<Self, ResultsError> {
        let is_link = std::fs::symlink_metadata(dir).is_ok_and(|m| m.is_symlink());
        if is_link {
            return Err(ResultsError::Foreign {
                path: dir.to_owned(),
            });
        }
        let kind = Kind::of(dir)?;
        let mut removal = Self::nothing_of(dir)?;
        // A damaged directory may contain foreign files, so the removal of a damaged directory is refused.
        match kind {
            Kind::Run => _ = Entry::read(dir)?,
            _ => {
                let series = SeriesDir::at(dir).read()?;
                let configurations = series.configurations.iter();
                let below = configurations.filter(|c| !c.directory.is_empty());
                removal.places = below.map(|c| dir.join(&c.directory)).collect();
            }
        }
        removal.collect(dir, kind)?;
        Ok(removal)
    }

    /// Checks the hidden directory of a killed run.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn abandoned(dir: &Path) -> Result<Self, ResultsError> {
        let mut removal = Self::nothing_of(dir)?;
        removal.unfinished(dir)?;
        Ok(removal)
    }

    fn nothing_of(dir: &Path) -> Result<Self, ResultsError> {
        Ok(Self {
            _lock: lock(dir)?,
            dir: dir.to_owned(),
            parts: vec![],
            places: vec![],
            bytes: 0,
        })
    }

    /// Results directory, or hidden directory of a killed run, that the removal deletes.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Number of files to delete.
    #[must_use]
    pub fn files(&self) -> usize {
        self.parts.iter().map(|p| p.files.len()).sum()
    }

    /// Total size of the files to delete in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Deletes all files and directories of the removal.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; the rest can still be removed as results.
    pub fn execute(self) -> Result<(), ResultsError> {
        for RemovalPart { dir, files } in &self.parts {
            for (i, file) in files.iter().enumerate() {
                // The last file identifies the directory, also after a power cut, so the other deletions are synced
                // first.
                if i > 0 && i + 1 == files.len() {
                    sync_dir(dir).map_err(ResultsError::io("remove", file))?;
                }
                std::fs::remove_file(file).map_err(ResultsError::io("remove", file))?;
            }
            std::fs::remove_dir(dir).map_err(ResultsError::io("remove", dir))?;
        }
        Ok(())
    }

    /// Adds a results directory of a given kind and its files to the removal.
    fn collect(&mut self, dir: &Path, kind: Kind) -> Result<(), ResultsError> {
        let head = dir.join(kind.file());
        let mut files = Vec::new();
        for (path, is_dir) in entries(dir)? {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or("");
            match (kind, name, is_dir) {
                _ if path == head && !is_dir => {}
                (Kind::Run, HISTOGRAMS_FILE | INTERVALS_FILE | COMMANDS_FILE, false) => {
                    check_beginning(&path, name)?;
                    files.push(path);
                }
                (_, ANNOTATIONS_FILE, false) => {
                    Annotations::read(dir)?;
                    files.push(path);
                }
                (_, SUT_FILE, false) => files.push(path),
                (Kind::Run, RANKS_DIR, true) => self.ranks(&path)?,
                // A process that was killed just after renaming a hidden directory leaves the staging files in the
                // results.
                (Kind::Run, LIVE_FILE | DRAFT_FILE | staging::OWNER_FILE, false) => {
                    files.push(path)
                }
                // A name with the staging prefix is the temporary file of a process that was killed while replacing a
                // file.
                (_, name, false) if staging::id_of(name).is_some() => files.push(path),
                (Kind::Profile, COMPARISON_FILE, false) => files.push(path),
                (Kind::Ab, COMMANDS_FILE, false) => files.push(path),
                (kind, _, true) if kind != Kind::Run => {
                    self.below_series(&path)?;
                }
                _ => return Err(ResultsError::Foreign { path }),
            }
        }
        files.push(head);
        self.add(dir, files)
    }

    /// Adds a directory below a series to the removal: the results of a run, or the directory of a configuration.
    fn below_series(&mut self, dir: &Path) -> Result<(), ResultsError> {
        match Kind::of(dir) {
            Ok(Kind::Run) => return self.collect(dir, Kind::Run),
            Err(_) if self.places.iter().any(|p| p.starts_with(dir)) => {}
            _ => return self.unfinished(dir),
        }
        for (path, is_dir) in entries(dir)? {
            if !is_dir {
                return Err(ResultsError::Foreign { path });
            }
            self.below_series(&path)?;
        }
        self.add(dir, vec![])
    }

    /// Adds the hidden directory of a killed run to the removal.
    fn unfinished(&mut self, dir: &Path) -> Result<(), ResultsError> {
        let path = dir.to_owned();
        if !staging::is_hidden(dir) {
            return Err(ResultsError::Foreign { path });
        }
        if !staging::is_abandoned(dir) && !staging::is_unclaimed(dir) {
            return Err(ResultsError::InUse { path });
        }
        let (mut files, mut owner) = (vec![], vec![]);
        for (path, is_dir) in entries(dir)? {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or("");
            match name {
                staging::OWNER_FILE | staging::UNLOCKED_OWNER_FILE => owner.push(path),
                _ if staging::STAGING_FILES.contains(&name) && !is_dir => files.push(path),
                _ if staging::id_of(name).is_some() && !is_dir => files.push(path),
                RANKS_DIR if is_dir => self.ranks(&path)?,
                _ => return Err(ResultsError::Foreign { path }),
            }
        }
        files.extend(owner);
        self.add(dir, files)
    }

    /// Adds the directory with the results of each rank to the removal.
    fn ranks(&mut self, dir: &Path) -> Result<(), ResultsError> {
        let mut files = Vec::new();
        for (path, is_dir) in entries(dir)? {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or("");
            let number = name
                .strip_prefix("rank-")
                .and_then(|n| n.strip_suffix(".json"));
            let is_number = number.is_some_and(|n| n.parse::<u32>().is_ok());
            if is_dir || !is_number {
                return Err(ResultsError::Foreign { path });
            }
            files.push(path);
        }
        self.add(dir, files)
    }

    fn add(&mut self, dir: &Path, files: Vec<PathBuf>) -> Result<(), ResultsError> {
        for path in &files {
            let meta = std::fs::symlink_metadata(path).map_err(ResultsError::io("read", path))?;
            self.bytes += meta.len();
        }
        let dir = dir.to_owned();
        self.parts.push(RemovalPart { dir, files });
        Ok(())
    }
}

/// Checks that a time series or log begins as Plimsoll writes it, because a user's file may have the same name. An
/// empty file passes.
///
/// # Errors
/// [`ResultsError::Foreign`] if the file begins differently.
fn check_beginning(path: &Path, name: &str) -> Result<(), ResultsError> {
    let beginning = match name {
        INTERVALS_FILE => "window,interval,",
        HISTOGRAMS_FILE => "#[Histogram log format",
        _ => "== ",
    };
    let file = open_regular(path).map_err(ResultsError::io("read", path))?;
    let mut found = Vec::new();
    file.take(beginning.len() as u64)
        .read_to_end(&mut found)
        .map_err(ResultsError::io("read", path))?;
    if !found.is_empty() && found != beginning.as_bytes() {
        return Err(ResultsError::Foreign {
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// Entries of a directory, sorted by path: regular files (`false`) and directories (`true`).
///
/// # Errors
/// [`ResultsError::Foreign`] if an entry is anything else.
fn entries(dir: &Path) -> Result<Vec<(PathBuf, bool)>, ResultsError> {
    let failed = || ResultsError::io("list", dir);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let kind = entry.file_type().map_err(failed())?;
        if !kind.is_dir() && !kind.is_file() {
            return Err(ResultsError::Foreign { path: entry.path() });
        }
        found.push((entry.path(), kind.is_dir()));
    }
    found.sort();
    Ok(found)
}
