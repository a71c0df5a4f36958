//! Writer of a document with the results of several runs below its directory.

use crate::document::{Directory, Document};
use crate::publish::{CreatedRoot, name_of, publish};
use crate::staging::{StagingDir, lock};
use crate::whole_file::{replace, write_new};
use crate::{AbandonedRun, ResultsError, SUT_FILE};
use std::fs::File;
use std::path::Path;
use std::time::SystemTime;

/// Writer of a directory with a document that is replaced as a whole after every change, so that a killed process
/// leaves the results that it had listed. A lock keeps other writers out of the results directory.
pub struct DocumentWriter<D> {
    dir: Directory<D>,
    document: D,
    /// The open results directory, whose lock the kernel releases when the process ends.
    _lock: File,
    /// Root that this writer created, to be removed with a withdrawn directory; `None` if the root existed.
    _created_root: Option<CreatedRoot>,
    /// Whether this writer created the results directory; false if the writer resumed an existing directory.
    is_new: bool,
}

impl<D: Document> DocumentWriter<D> {
    /// Creates a results directory with `document` below the results root `root`, and a missing results root too. The
    /// results directory is named after `name` and the time of the start.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn create(
        root: &Path,
        name: &str,
        document: D,
        started: SystemTime,
    ) -> Result<Self, ResultsError> {
        let created_root = CreatedRoot::make(root)?;
        let hidden = StagingDir::create(root)?;
        write_new(&hidden.path().join(D::FILE), &document.to_json())?;
        let at = hidden.path().to_owned();
        let name = name_of(name, started);
        let path = publish(&at, root, &name, |path| hidden.published(path))?;
        Ok(Self {
            _lock: lock(&path)?,
            dir: Directory::at(&path),
            document,
            _created_root: created_root,
            is_new: true,
        })
    }

    /// Locks the directory of an existing document for further changes. Recoverable runs of killed processes in the
    /// directory become results.
    ///
    /// # Errors
    /// As [`Directory::read`]; [`ResultsError::InUse`] if another process writes to the directory.
    pub fn resume(path: &Path) -> Result<Self, ResultsError> {
        let dir = Directory::<D>::at(path);
        // Checked before the lock is taken too, so the error names a directory of another kind.
        dir.read()?;
        let lock = lock(path)?;
        for abandoned in AbandonedRun::below(path) {
            // A run that cannot be recovered stays in its hidden directory.
            let _ = abandoned.finish();
        }
        Ok(Self {
            document: dir.read()?,
            dir,
            _lock: lock,
            _created_root: None,
            is_new: false,
        })
    }

    /// The directory that contains the document and the results of its runs.
    #[must_use]
    pub fn dir(&self) -> &Directory<D> {
        &self.dir
    }

    /// The document as this writer last wrote the document to its file.
    #[must_use]
    pub fn document(&self) -> &D {
        &self.document
    }

    /// Applies `change` to the document, and replaces the document's file.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; the document's file is then unchanged.
    pub fn change(&mut self, change: impl FnOnce(&mut D)) -> Result<(), ResultsError> {
        let mut changed = self.document.clone();
        change(&mut changed);
        replace(&self.dir.file(), &changed.to_json())?;
        self.document = changed;
        Ok(())
    }

    /// Writes a file other than the document into the results directory, such as an HTML page, and replaces an existing
    /// file.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn write(&self, name: &str, text: &str) -> Result<(), ResultsError> {
        replace(&self.dir.path().join(name), text)
    }

    /// Moves a results directory into this directory, under the first free name of `name`, `name-2` and so on; returns
    /// the name.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn adopt(&self, results: &Path, name: &str) -> Result<String, ResultsError> {
        let path = publish(results, self.dir.path(), name, |_| {})?;
        Ok(Directory::<D>::at(&path).name())
    }

    /// Whether this writer created the directory, rather than resumed it.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Removes a directory that this writer created and that holds no results. A directory that holds anything else
    /// stays.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn withdraw(self) -> Result<(), ResultsError> {
        let dir = self.dir.path();
        let files = [dir.join(SUT_FILE), self.dir.file()];
        let entries = std::fs::read_dir(dir).map_err(ResultsError::io("read", dir))?;
        if !self.is_new
            || entries
                .flatten()
                .any(|entry| !files.contains(&entry.path()))
        {
            return Ok(());
        }
        for file in files.iter().filter(|file| file.exists()) {
            std::fs::remove_file(file).map_err(ResultsError::io("remove", file))?;
        }
        std::fs::remove_dir(dir).map_err(ResultsError::io("remove", dir))
    }
}
