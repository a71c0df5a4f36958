//! JSON files with a version, written whole or not at all, and the directories that they are in.

use crate::dir::{CreatedRoot, name_of, publish};
use crate::renames::{self, Rename};
use crate::staging::{StagingDir, lock};
use crate::{AbandonedRun, ResultsError, RunDir, read_regular};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What a JSON file of results holds.
pub trait Document: Serialize + DeserializeOwned + JsonSchema {
    /// Name of the file.
    const FILE: &str;
    /// Version of its form; raised when a field changes meaning or goes.
    const SCHEMA: u32;
    /// What it is the result of, for errors.
    const KIND_NAME: &str;

    /// Fields that the version before this one called otherwise.
    const RENAMES: &[&[Rename]];

    /// Gives a document of an older version the form of this one; `false` if that version is not
    /// read. `dir` is the directory that it is in.
    fn upgrade(value: &mut serde_json::Value, from: u64, dir: &Path) -> bool {
        let _ = dir;
        let is_read = from + 1 == u64::from(Self::SCHEMA);
        if is_read {
            renames::upgrade(value, Self::RENAMES, Self::SCHEMA);
        }
        is_read
    }
}

/// The form of a document in its file: pretty-printed, with a newline at the end.
pub(crate) fn json<D: Document>(document: &D) -> String {
    // Every field has a JSON form; only a map with keys that are no text could fail.
    serde_json::to_string_pretty(document).expect("results always have a JSON form") + "\n"
}

/// The JSON schema of a document, pretty-printed.
pub(crate) fn schema<D: Document>() -> String {
    let schema = schemars::schema_for!(D);
    serde_json::to_string_pretty(schema.as_value()).expect("a JSON value always prints") + "\n"
}

/// A directory that holds a document, and what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory<D> {
    path: PathBuf,
    holds: PhantomData<fn() -> D>,
}

impl<D: Document> Directory<D> {
    /// A directory, which need not be whole: reading says what is wrong with it.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            holds: PhantomData,
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is such a document in it.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.file().is_file()
    }

    /// Reads the document.
    ///
    /// # Errors
    /// [`ResultsError::Schema`] if it was written by a program of another version,
    /// [`ResultsError::Json`] if it holds something else, [`ResultsError::Io`] if it cannot be
    /// read.
    pub fn read(&self) -> Result<D, ResultsError> {
        read(&self.file())
    }

    /// Results of a run that the document lists by the name of its directory.
    pub(crate) fn listed(&self, name: &str) -> RunDir {
        RunDir::at(&self.path.join(name))
    }

    fn file(&self) -> PathBuf {
        self.path.join(D::FILE)
    }
}

/// A directory that is being written run by run.
///
/// The document is replaced as a whole after every run, so that a process that is killed leaves
/// what it had measured. The directory belongs to one writer at a time.
pub(crate) struct Writer<D> {
    dir: Directory<D>,
    document: D,
    /// Holds the lock, which the system lifts when the process ends, however it does.
    _lock: File,
    /// Goes again if the directory is withdrawn.
    _made_root: Option<CreatedRoot>,
}

impl<D: Document> Writer<D> {
    /// Makes a directory below `root`, which is made if it is missing, and writes `document`.
    pub(crate) fn create(
        root: &Path,
        document: D,
        name: &str,
        started: SystemTime,
    ) -> Result<Self, ResultsError> {
        Self::create_as(root, document, &name_of(name, started))
    }

    /// The same, with a name that no time is added to; a number follows it if it is taken.
    pub(crate) fn create_as(root: &Path, document: D, name: &str) -> Result<Self, ResultsError> {
        let made_root = CreatedRoot::make(root)?;
        let hidden = StagingDir::create(root)?;
        write_new(&hidden.path().join(D::FILE), &json(&document))?;
        let path = publish(hidden.path(), root, name)?;
        hidden.published(&path);
        Ok(Self {
            _lock: lock(&path)?,
            dir: Directory::at(&path),
            document,
            _made_root: made_root,
        })
    }

    /// Goes on with what is in a directory; [`ResultsError::InUse`] if another process does.
    pub(crate) fn resume(path: &Path) -> Result<Self, ResultsError> {
        let dir = Directory::<D>::at(path);
        // Before the lock too, so that what is something else is called so.
        dir.read()?;
        let lock = lock(path)?;
        // What it was measuring when it was killed is a result as well. What cannot be finished stays.
        for abandoned in AbandonedRun::find(&[path.to_owned()]) {
            let _ = abandoned.finish();
        }
        Ok(Self {
            document: dir.read()?,
            dir,
            _lock: lock,
            _made_root: None,
        })
    }

    pub(crate) fn dir(&self) -> &Directory<D> {
        &self.dir
    }

    /// As it was last written.
    pub(crate) fn document(&self) -> &D {
        &self.document
    }

    /// Changes the document and writes it; if that fails the file is as it was.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut D)) -> Result<(), ResultsError> {
        change(&mut self.document);
        replace(&self.dir.file(), &json(&self.document))
    }

    /// Takes the directory away; one that holds anything else stays, with an error.
    pub(crate) fn remove_empty(self) -> Result<(), ResultsError> {
        let (dir, file) = (self.dir.path(), self.dir.file());
        std::fs::remove_file(&file).map_err(ResultsError::io("remove", &file))?;
        std::fs::remove_dir(dir).map_err(ResultsError::io("remove", dir))
    }
}

/// Reads a file of this version, or of an older one that is still read.
pub(crate) fn read<D: Document>(path: &Path) -> Result<D, ResultsError> {
    let text = read_regular(path).map_err(ResultsError::reading(path))?;
    let value = serde_json::from_str(&text).map_err(not_json::<D>(path))?;
    let value = current::<D>(value, path)?;
    serde_json::from_value(value).map_err(not_json::<D>(path))
}

/// Reads a part of a document, which is quicker than all of it; errors as [`Directory::read`].
pub(crate) fn read_part<D: Document, T: DeserializeOwned>(dir: &Path) -> Result<T, ResultsError> {
    #[derive(serde::Deserialize)]
    struct Version {
        schema_version: Option<serde_json::Value>,
    }
    let path = &dir.join(D::FILE);
    let text = read_regular(path).map_err(ResultsError::reading(path))?;
    let version: Version = serde_json::from_str(&text).map_err(not_json::<D>(path))?;
    if version.schema_version.is_some_and(|n| n == D::SCHEMA) {
        return serde_json::from_str(&text).map_err(not_json::<D>(path));
    }
    let value = serde_json::from_str(&text).map_err(not_json::<D>(path))?;
    serde_json::from_value(current::<D>(value, path)?).map_err(not_json::<D>(path))
}

fn not_json<D: Document>(path: &Path) -> impl Fn(serde_json::Error) -> ResultsError {
    |source| ResultsError::Json {
        what: D::KIND_NAME,
        path: path.to_owned(),
        source,
    }
}

/// A document in the form of this version.
fn current<D: Document>(
    mut value: serde_json::Value,
    path: &Path,
) -> Result<serde_json::Value, ResultsError> {
    // Its name before it had the present one.
    let found = value.get("schema_version").or(value.get("schema"));
    let found = found.cloned();
    if found.as_ref().is_some_and(|n| *n == D::SCHEMA) {
        return Ok(value);
    }
    let dir = path.parent().unwrap_or(Path::new("."));
    let older = found.as_ref().and_then(serde_json::Value::as_u64);
    let older = older.filter(|n| *n < u64::from(D::SCHEMA));
    match older {
        Some(from) if D::upgrade(&mut value, from, dir) => Ok(value),
        _ => Err(ResultsError::Schema {
            path: path.to_owned(),
            found: found.map_or("none".into(), |n| n.to_string()),
            reads: D::SCHEMA,
        }),
    }
}

/// Brings the names in a directory to the disk. Where that cannot be asked for, they get there by
/// themselves.
pub(crate) fn sync_dir(dir: &Path) {
    let _ = File::open(dir).and_then(|dir| dir.sync_all());
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
        sync_dir(dir);
        Ok(())
    };
    write().map_err(ResultsError::io("write", path))
}
