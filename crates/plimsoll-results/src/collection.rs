//! Results that consist of several runs, and are written run by run.

use crate::document::{Directory, Document};
use crate::publish::{CreatedRoot, name_of, publish};
use crate::staging::{StagingDir, lock};
use crate::whole_file::{replace, write_new};
use crate::{AbandonedRun, ClockKind, ResultsError, RunWriter, SUT_FILE};
use plimsoll_plan::Plan;
use std::fs::File;
use std::path::Path;
use std::time::SystemTime;

/// A document that lists runs, whose results directories are below its own.
pub trait Collection: Document {
    /// Name of its directory, which the time of its start follows.
    fn directory_name(&self) -> String;

    /// Recomputes the figures that follow from the runs.
    fn recompute(&mut self) {}

    /// Lists runs that were written although the process ended before it listed them.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    fn list_unlisted_runs(writer: &mut CollectionWriter<Self>) -> Result<(), ResultsError> {
        let _ = writer;
        Ok(())
    }
}

/// A results directory of several runs that is being written.
///
/// The document is replaced as a whole after every run, so that a process that is killed leaves
/// the runs it had measured. The directory belongs to one writer at a time.
pub struct CollectionWriter<D> {
    dir: Directory<D>,
    document: D,
    /// Holds the lock, which the system releases when the process ends, for whatever reason.
    _lock: File,
    /// Removed if the directory is withdrawn; none if the directory was resumed.
    _created_root: Option<CreatedRoot>,
    /// Whether this writer created the directory.
    is_new: bool,
}

impl<D: Collection> CollectionWriter<D> {
    /// Creates a directory below `root`, which is created if it is missing, and writes `document`,
    /// which lists no runs yet.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn create(root: &Path, document: D, started: SystemTime) -> Result<Self, ResultsError> {
        let name = name_of(&document.directory_name(), started);
        Self::create_as(&name, root, document)
    }

    /// Creates a directory of this name; a number follows it if it is taken.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_as(name: &str, root: &Path, document: D) -> Result<Self, ResultsError> {
        let created_root = CreatedRoot::make(root)?;
        let hidden = StagingDir::create(root)?;
        write_new(&hidden.path().join(D::FILE), &document.to_json())?;
        let at = hidden.path().to_owned();
        let path = publish(&at, root, name, |path| hidden.published(path))?;
        Ok(Self {
            _lock: lock(&path)?,
            dir: Directory::at(&path),
            document,
            _created_root: created_root,
            is_new: true,
        })
    }

    /// Resumes the document in a directory.
    ///
    /// # Errors
    /// As [`Directory::read`]; [`ResultsError::InUse`] if another process writes to the directory.
    pub fn resume(path: &Path) -> Result<Self, ResultsError> {
        let dir = Directory::<D>::at(path);
        // Before the lock too, so that a directory of another kind is named as such.
        dir.read()?;
        let lock = lock(path)?;
        // The run that a killed process was measuring is a result as well. One that cannot be
        // finished stays.
        for abandoned in AbandonedRun::find(&[path.to_owned()]) {
            let _ = abandoned.finish();
        }
        let mut writer = Self {
            document: dir.read()?,
            dir,
            _lock: lock,
            _created_root: None,
            is_new: false,
        };
        D::list_unlisted_runs(&mut writer)?;
        Ok(writer)
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Directory<D> {
        &self.dir
    }

    /// The document as it was last written.
    #[must_use]
    pub fn document(&self) -> &D {
        &self.document
    }

    /// Changes the document, recomputes its figures, and writes it.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; the file is then as it was.
    pub fn change(&mut self, change: impl FnOnce(&mut D)) -> Result<(), ResultsError> {
        let mut changed = self.document.clone();
        change(&mut changed);
        changed.recompute();
        replace(&self.dir.file(), &changed.to_json())?;
        self.document = changed;
        Ok(())
    }

    /// Writes another file of the results, such as a page, over the one there is.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn write(&self, name: &str, text: &str) -> Result<(), ResultsError> {
        replace(&self.dir.path().join(name), text)
    }

    /// Whether this writer created the directory, and did not resume it.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Removes the directory of a document without runs, for instance because the first was refused. One
    /// that was resumed stays as it is, and so does one that holds anything else.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn withdraw(self) -> Result<(), ResultsError> {
        let (dir, file) = (self.dir.path(), self.dir.file());
        let sut = dir.join(SUT_FILE);
        let entries = std::fs::read_dir(dir).map_err(ResultsError::io("read", dir))?;
        let is_other = |entry: std::fs::DirEntry| ![&file, &sut].contains(&&entry.path());
        if !self.is_new || entries.flatten().any(is_other) {
            return Ok(());
        }
        if sut.exists() {
            std::fs::remove_file(&sut).map_err(ResultsError::io("remove", &sut))?;
        }
        std::fs::remove_file(&file).map_err(ResultsError::io("remove", &file))?;
        std::fs::remove_dir(dir).map_err(ResultsError::io("remove", dir))
    }

    /// A writer of the results of a run in the directory.
    pub(crate) fn run_writer(
        &self,
        name: &str,
        plan: &Plan,
        started: SystemTime,
        clock: ClockKind,
    ) -> Result<RunWriter, ResultsError> {
        RunWriter::create_as(name, self.dir.path(), plan, started, clock)
    }
}
