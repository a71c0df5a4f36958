//! JSON documents with a schema version, and their directories.

use crate::renames::{self, Rename};
use crate::{ResultsError, Run, read_regular};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::path::{Component, Path, PathBuf};

/// A JSON document of results.
pub trait Document: Serialize + DeserializeOwned + JsonSchema + Clone {
    /// Name of the file.
    const FILE: &str;
    /// Schema version; raised when a field changes meaning or is removed.
    const SCHEMA: u32;
    /// Kind of the document, for errors.
    const KIND_NAME: &str;

    /// Fields that have another name in the previous version.
    const RENAMES: &[&[Rename]] = &[];

    /// The document as its file holds it: pretty-printed, with a newline at the end.
    #[must_use]
    fn to_json(&self) -> String {
        // Every field has a JSON form; only a map with keys that are not text could fail.
        serde_json::to_string_pretty(self).expect("results always have a JSON form") + "\n"
    }

    /// Converts a document of an older version to this one; `false` if that version is not read. `dir`
    /// is its directory.
    fn upgrade(value: &mut serde_json::Value, from: u64, dir: &Path) -> bool {
        let _ = dir;
        let is_read = from + 1 == u64::from(Self::SCHEMA);
        if is_read {
            renames::upgrade(value, Self::RENAMES, Self::SCHEMA);
        }
        is_read
    }
}

/// The JSON schema of a document, pretty-printed.
#[must_use]
pub fn schema<D: Document>() -> String {
    let schema = schemars::schema_for!(D);
    serde_json::to_string_pretty(schema.as_value()).expect("a JSON value always prints") + "\n"
}

/// A directory that holds a document and its results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory<D> {
    path: PathBuf,
    holds: PhantomData<fn() -> D>,
}

impl<D: Document> Directory<D> {
    /// A directory, which is not checked: reading it reports errors.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            holds: PhantomData,
        }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its last component.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether it holds such a document.
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

    /// A directory of results below it, by the name that the document has of it. A name that leads out of
    /// the directory is left out: no program of ours wrote it.
    pub(crate) fn within(&self, name: &str) -> Option<PathBuf> {
        let name = Path::new(name);
        let is_within = name.components().all(|c| matches!(c, Component::Normal(_)));
        (is_within && name != Path::new("")).then(|| self.path.join(name))
    }

    /// Results of a run that the document lists by the name of its directory.
    pub(crate) fn listed(&self, name: &str) -> Directory<Run> {
        Directory::at(&self.path.join(name))
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.path.join(D::FILE)
    }
}

/// Reads a file of this version, or of an older one that is still read.
pub(crate) fn read<D: Document>(path: &Path) -> Result<D, ResultsError> {
    let text = read_regular(path).map_err(ResultsError::reading(path))?;
    parse::<D, D>(&text, path)
}

/// Reads a part of a document, which is faster than all of it; errors as [`Directory::read`].
pub(crate) fn read_part<D: Document, T: DeserializeOwned>(dir: &Path) -> Result<T, ResultsError> {
    let path = &dir.join(D::FILE);
    let text = read_regular(path).map_err(ResultsError::reading(path))?;
    parse::<D, T>(&text, path)
}

/// Reads a text as the document or a part of it. Only the text of an older version becomes a JSON value on the
/// way, which has no integers of 128 bits.
fn parse<D: Document, T: DeserializeOwned>(text: &str, path: &Path) -> Result<T, ResultsError> {
    #[derive(serde::Deserialize)]
    struct Version {
        schema_version: Option<serde_json::Value>,
    }
    let version: Version = serde_json::from_str(text).map_err(not_json::<D>(path))?;
    if version.schema_version.is_some_and(|n| n == D::SCHEMA) {
        return serde_json::from_str(text).map_err(not_json::<D>(path));
    }
    let value = serde_json::from_str(text).map_err(not_json::<D>(path))?;
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
            found: found.map(|n| n.to_string()),
            reads: D::SCHEMA,
        }),
    }
}
