//! Filesets: trees of files and directories, as a workload defines them.

use crate::source::SourcePosition;
use crate::variable::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A tree of files and empty leaf directories below `path/name`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fileset {
    /// Name, unique in the Plan.
    pub name: String,
    /// Directory that holds the tree's root, relative to the work directory; may be empty.
    pub path: RelPath,
    /// Number of files.
    pub entries: u64,
    /// Number of empty directories that makedir and removedir work on.
    pub leaf_dirs: u64,
    /// Entries per directory.
    pub width: EntriesPerDir,
    /// Target depth of a directory, drawn per directory; by default the mean follows from the
    /// entries and the width.
    pub depth: Option<Value>,
    /// Bytes per file, drawn per file when the tree is laid out.
    pub size: Value,
    /// Probability in percent (0 to 100) that an entry exists when the run starts.
    pub prealloc_percent: u8,
    /// Entries are created in parallel.
    pub parallel_prealloc: bool,
    /// An identical tree of an earlier run may be reused.
    pub reuse: bool,
    /// A reused tree is taken as complete without checking every file.
    pub trust_tree: bool,
    /// Only the files that the Plan's workers work on are created. An existing tree of the same
    /// layout is repaired and extended.
    pub grows: bool,
    /// Access mode of openfile.
    pub access: Access,
    /// `Some(false)`: dropped from the page cache before the run.
    pub cached: Option<bool>,
    /// Letters around the numbers that are the names of its files; `None`: only the numbers.
    pub letters: Option<Letters>,
    /// Source location of the definition.
    pub location: Option<SourcePosition>,
}

/// Letters around the number that is the name of a file. Their number is drawn for each file, between
/// two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Letters {
    /// Minimum and maximum number of letters before the number, 0 to [`MAX_NAME_LETTERS`].
    pub before: [u8; 2],
    /// Minimum and maximum number of letters after it, 0 to [`MAX_NAME_LETTERS`].
    pub after: [u8; 2],
}

/// Maximum number of letters before or after the number of a file: a name has at most 255 bytes.
pub const MAX_NAME_LETTERS: u8 = 120;

/// Entries per directory of a [`Fileset`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EntriesPerDir {
    /// Mean number of entries of a directory, at least 2.
    pub mean: f64,
    /// Shape of the gamma distribution that widths and depths are drawn from; `None`: exact.
    pub gamma_shape: Option<f64>,
}

/// Access mode in which openfile opens the files of a fileset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// For reading and writing.
    #[default]
    ReadWrite,
    /// For reading.
    ReadOnly,
    /// For writing.
    WriteOnly,
}

/// A path below the work directory: no leading slash, no `.` or `..`, no empty component.
///
/// The type guarantees that a name cannot leave the work directory by its spelling.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct RelPath(String);

/// Reason why a text is not a [`RelPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RelPathError {
    /// The path has a component `..` or `.`.
    #[error("`{0}` would leave the work directory: `..` and `.` are not allowed in names")]
    Climbs(String),
    /// The path contains a NUL byte.
    #[error("a name must not contain a NUL byte")]
    Nul,
}

impl RelPath {
    /// Creates a path below the work directory; leading, trailing and doubled slashes are dropped.
    ///
    /// # Errors
    /// [`RelPathError::Climbs`] for `.` and `..`, [`RelPathError::Nul`] for a NUL byte.
    pub fn new(text: &str) -> Result<Self, RelPathError> {
        if text.contains('\0') {
            return Err(RelPathError::Nul);
        }
        let parts: Vec<&str> = text.split('/').filter(|p| !p.is_empty()).collect();
        if parts.iter().any(|p| *p == "." || *p == "..") {
            return Err(RelPathError::Climbs(text.into()));
        }
        Ok(Self(parts.join("/")))
    }

    /// The path as text; empty for the work directory itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// This path with `below` appended.
    #[must_use]
    pub fn join(&self, below: &RelPath) -> RelPath {
        match (self.0.is_empty(), below.0.is_empty()) {
            (true, _) => below.clone(),
            (_, true) => self.clone(),
            _ => Self(format!("{}/{}", self.0, below.0)),
        }
    }
}

impl TryFrom<String> for RelPath {
    type Error = RelPathError;

    fn try_from(text: String) -> Result<Self, RelPathError> {
        Self::new(&text)
    }
}

impl From<RelPath> for String {
    fn from(path: RelPath) -> Self {
        path.0
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Fileset {
    /// A fileset of files that all exist when the run starts: 10 entries per directory, without
    /// leaf directories, random depth or special treatment.
    #[must_use]
    pub fn new(name: &str, entries: u64, size: Value) -> Self {
        Self {
            name: name.into(),
            path: RelPath::default(),
            entries,
            leaf_dirs: 0,
            width: EntriesPerDir {
                mean: 10.0,
                gamma_shape: None,
            },
            depth: None,
            size,
            prealloc_percent: 100,
            parallel_prealloc: true,
            reuse: true,
            trust_tree: false,
            grows: false,
            access: Access::ReadWrite,
            cached: None,
            letters: None,
            location: None,
        }
    }

    /// Root of the tree, relative to the work directory: `path/name`.
    ///
    /// # Errors
    /// If the name leaves the directory.
    pub fn root(&self) -> Result<RelPath, RelPathError> {
        Ok(self.path.join(&RelPath::new(&self.name)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_climb() {
        for bad in ["..", "a/../b", "./a", "a/.", "../x"] {
            assert!(
                matches!(RelPath::new(bad), Err(RelPathError::Climbs(_))),
                "{bad}"
            );
        }
        assert_eq!(RelPath::new("//a///b/").unwrap().as_str(), "a/b");
        assert_eq!(RelPath::new("...").unwrap().as_str(), "...");
        assert!(serde_json::from_str::<RelPath>("\"../x\"").is_err());
    }
}
