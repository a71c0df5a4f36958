//! Filesets: trees of files and directories, as a workload defines them.

use crate::content::Content;
use crate::source::SourcePosition;
use crate::variable::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// Fileset: a tree of files and empty leaf directories, rooted at the directory `path/name` of the work directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fileset {
    /// Name of the fileset, unique in the Plan.
    pub name: String,
    /// Directory that holds the tree's root, relative to the work directory; empty for the work directory itself.
    pub path: RelPath,
    /// Number of files of the tree, at most 4 294 967 294, whether or not the files exist when the run starts.
    pub entries: u64,
    /// Number of empty leaf directories, on which makedir and removedir work.
    pub leaf_dirs: u64,
    /// Distribution of the number of files or subdirectories of each directory of the tree.
    pub width: EntriesPerDir,
    /// Target depth of a directory, drawn for each directory (the root has depth 1); null for a mean depth of
    /// `ln(entries + leaf_dirs) / ln(width)`.
    pub depth: Option<Value>,
    /// Size of a file in bytes, drawn for each file when the tree is laid out.
    pub size: Value,
    /// Preallocation: the probability in percent, 0 to 100, that a file or leaf directory exists when the run starts.
    pub prealloc_percent: u8,
    /// Filebench's `paralloc`, which has no effect: files are always created in parallel.
    pub parallel_prealloc: bool,
    /// Filebench's `reuse`, which has no effect: an identical tree of an earlier run is always reused, except by a run
    /// with verification.
    pub reuse: bool,
    /// Whether an identical tree of an earlier run is reused without a check that every file exists.
    pub trust_tree: bool,
    /// Whether only the files are created on which the Plan's workers work, and an existing tree of the same layout is
    /// repaired and extended, so that a load curve grows one data set.
    pub grows: bool,
    /// Access mode in which the flowop `openfile` opens the fileset's files.
    pub access: Access,
    /// False if the files are dropped from the page cache before the run; null if the workload does not define the
    /// attribute `cached`.
    pub cached: Option<bool>,
    /// Letters around the number in the name of a file; null if names are numbers without letters.
    pub letters: Option<Letters>,
    /// Contents of the files that exist when the run starts.
    #[serde(default, skip_serializing_if = "InitialData::is_written")]
    pub initially: InitialData,
    /// Kind of the bytes of the files at the start of the run, and of the bytes that an operation mix with these data
    /// files writes; null for the content of the run's options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// Source location of the statement that defines the fileset; null if the workload has no source text.
    pub location: Option<SourcePosition>,
}

/// Contents of the files of a fileset when the run starts, from the most to the least.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum InitialData {
    /// Every file has its planned size, and all its data are written.
    #[default]
    Written,
    /// Every file has its planned size and blocks for all bytes, without written data; as `sparse` on a target that
    /// cannot allocate blocks.
    Allocated,
    /// Every file has its planned size, without written data and without blocks.
    Sparse,
    /// Every file is empty.
    Empty,
}

impl InitialData {
    fn is_written(&self) -> bool {
        *self == Self::Written
    }
}

/// Letters around the number in the name of a file, so that names differ in length. For each file name, the number of
/// letters before the number and the number of letters after the number are drawn between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Letters {
    /// Minimum and maximum number of letters before the number, 0 to 120.
    pub before: [u8; 2],
    /// Minimum and maximum number of letters after the number, 0 to 120.
    pub after: [u8; 2],
}

/// Maximum number of letters before or after the number of a file: a name has at most 255 bytes.
pub const MAX_NAME_LETTERS: u8 = 120;

/// Distribution of the number of files or subdirectories of a directory of a fileset.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EntriesPerDir {
    /// Mean number of entries of a directory, at least 2.
    pub mean: f64,
    /// Shape of the gamma distribution from which the widths and depths of directories are drawn; null for exact
    /// widths.
    pub gamma_shape: Option<f64>,
}

/// Access mode in which the flowop `openfile` opens files of a fileset; created files are open for reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Files of the fileset are opened for reading and writing (`O_RDWR`).
    #[default]
    ReadWrite,
    /// Files of the fileset are opened for reading (`O_RDONLY`); a write to a file fails.
    ReadOnly,
    /// Files of the fileset are opened for writing (`O_WRONLY`); a read of a file fails.
    WriteOnly,
}

/// A path below the work directory: no leading slash, no `.` or `..`, no empty component. The path cannot leave the
/// work directory by its spelling.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct RelPath(String);

/// Reason why a text is not a path below the work directory ([`RelPath`]).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RelPathError {
    /// The text has a component `..` or `.`, by which a path could leave the work directory; the text as given.
    #[error("`{0}` would leave the work directory: `..` and `.` are not allowed in names")]
    Climbs(String),
    /// The path contains a NUL byte.
    #[error("a name must not contain a NUL byte")]
    Nul,
}

impl RelPath {
    /// Creates a path below the work directory from a text; leading, trailing and doubled slashes are dropped.
    ///
    /// # Errors
    /// [`RelPathError::Climbs`] for a text with a component `.` or `..`, [`RelPathError::Nul`] for a text with a NUL
    /// byte.
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

    /// Text of the path, relative to the work directory; empty for the work directory itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Path of the entry that this relative path names below the directory `dir`; `dir` itself for an empty path.
    #[must_use]
    pub fn below(&self, dir: &Path) -> PathBuf {
        match self.as_str() {
            "" => dir.to_owned(),
            path => dir.join(path),
        }
    }

    /// Relative path of the entry that `below` names in the directory of this path; an empty path adds no component.
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
    /// A fileset whose files all exist when the run starts: 10 entries per directory, exact widths and the default
    /// depth, no leaf directories, and names without letters.
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
            initially: InitialData::Written,
            content: None,
            location: None,
        }
    }

    /// Root of the fileset's tree, relative to the work directory: `path/name`.
    ///
    /// # Errors
    /// If the fileset's name has a component `..` or `.`, or a NUL byte.
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
