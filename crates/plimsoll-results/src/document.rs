//! JSON documents with a schema version, and their directories.

use crate::{ResultsError, read_regular};
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

    /// Checks what a document that was edited or damaged may have wrong.
    ///
    /// # Errors
    /// A sentence with the first fault.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// The document as its file holds it: pretty-printed, with a newline at the end.
    #[must_use]
    fn to_json(&self) -> String {
        // Every field has a JSON form; only a map with keys that are not text could fail.
        serde_json::to_string_pretty(self).expect("results always have a JSON form") + "\n"
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

    /// The results directory with a name that the document states, below this directory. `None` if the name leads out
    /// of this directory, which only an edited document contains.
    #[must_use]
    pub fn within(&self, name: &str) -> Option<PathBuf> {
        let name = Path::new(name);
        let is_within = name.components().all(|c| matches!(c, Component::Normal(_)));
        (is_within && name != Path::new("")).then(|| self.path.join(name))
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.path.join(D::FILE)
    }
}

/// Reads a document, and checks it.
pub(crate) fn read<D: Document>(path: &Path) -> Result<D, ResultsError> {
    let document = read_as::<D, D>(path)?;
    document.check().map_err(|fault| ResultsError::Json {
        what: D::KIND_NAME,
        path: path.to_owned(),
        source: serde::de::Error::custom(fault),
    })?;
    Ok(document)
}

/// Reads a part of a document, which is faster than all of it; errors as [`Directory::read`].
pub(crate) fn read_part<D: Document, T: DeserializeOwned>(dir: &Path) -> Result<T, ResultsError> {
    read_as::<D, T>(&dir.join(D::FILE))
}

fn read_as<D: Document, T: DeserializeOwned>(path: &Path) -> Result<T, ResultsError> {
    /// The version of a document, which is read first: another version need not have the same fields.
    #[derive(serde::Deserialize)]
    struct Version {
        schema_version: Option<serde_json::Value>,
    }
    let not_json = |source| ResultsError::Json {
        what: D::KIND_NAME,
        path: path.to_owned(),
        source,
    };
    let text = read_regular(path).map_err(ResultsError::reading(path))?;
    let Version { schema_version } = serde_json::from_str(&text).map_err(not_json)?;
    if schema_version.as_ref().is_none_or(|n| *n != D::SCHEMA) {
        return Err(ResultsError::Schema {
            path: path.to_owned(),
            found: schema_version.map(|n| n.to_string()),
            reads: D::SCHEMA,
        });
    }
    serde_json::from_str(&text).map_err(not_json)
}
