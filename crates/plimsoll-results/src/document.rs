//! JSON documents with a schema version, and their directories.

use crate::{ResultsError, read_regular};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::path::{Component, Path, PathBuf};

/// A JSON document in a results directory, such as `run.json`.
pub trait Document: Serialize + DeserializeOwned + JsonSchema + Clone {
    /// Name of the document's file in a results directory, such as `run.json`.
    const FILE: &str;
    /// Schema version; raised when a field changes meaning or is removed.
    const SCHEMA: u32;
    /// Kind of the document in error messages, such as `run`.
    const KIND_NAME: &str;

    /// Checks a document for faults that editing or damage can cause.
    ///
    /// # Errors
    /// One sentence about the first fault.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Computes the fields that the document may lack but that follow from other fields.
    #[must_use]
    fn with_derived(self) -> Self {
        self
    }

    /// The document as its file holds it: pretty-printed, with a newline at the end.
    #[must_use]
    fn to_json(&self) -> String {
        // Serialising fails only for maps with keys that are not text; results have none.
        serde_json::to_string_pretty(self).expect("results always have a JSON form") + "\n"
    }
}

/// The JSON schema of a document, pretty-printed.
#[must_use]
pub fn schema<D: Document>() -> String {
    let schema = schemars::schema_for!(D);
    serde_json::to_string_pretty(schema.as_value()).expect("a JSON value always prints") + "\n"
}

/// Directory of a result, with its JSON document of type `D`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory<D> {
    path: PathBuf,
    holds: PhantomData<fn() -> D>,
}

impl<D: Document> Directory<D> {
    /// Names a results directory by its path without reading or checking anything: the directory may be missing.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            holds: PhantomData,
        }
    }

    /// Path of the results directory, which may be missing.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Last component of the path; invalid UTF-8 is replaced.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether the directory contains the document's file.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.file().is_file()
    }

    /// Reads and checks the JSON document of the directory.
    ///
    /// # Errors
    /// [`ResultsError::Schema`] if the document is of another version, [`ResultsError::Json`] if the file does not
    /// contain a document of type `D`, [`ResultsError::Lacks`] if the directory lacks the file, [`ResultsError::Io`]
    /// if the file cannot be read.
    pub fn read(&self) -> Result<D, ResultsError> {
        read(&self.file())
    }

    /// The results directory below this directory with a name from the document. `None` if the name leads out of this
    /// directory, as only a name in an edited document does.
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

/// Reads the document in the file `path`, and checks its version and its contents.
pub(crate) fn read<D: Document>(path: &Path) -> Result<D, ResultsError> {
    let document = read_as::<D, D>(path)?;
    document.check().map_err(|fault| ResultsError::Json {
        what: D::KIND_NAME,
        path: path.to_owned(),
        source: serde::de::Error::custom(fault),
    })?;
    Ok(document.with_derived())
}

/// Reads the fields `T` of a document, which is faster than reading all fields, with the errors of [`Directory::read`].
pub(crate) fn read_part<D: Document, T: DeserializeOwned>(dir: &Path) -> Result<T, ResultsError> {
    read_as::<D, T>(&dir.join(D::FILE))
}

fn read_as<D: Document, T: DeserializeOwned>(path: &Path) -> Result<T, ResultsError> {
    /// The schema version of a document, which is read first: a document of another version may have other fields.
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
