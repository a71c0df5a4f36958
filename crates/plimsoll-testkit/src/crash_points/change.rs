//! Changes of files and directories by a program.

use std::path::{Path, PathBuf};

/// A system call that changes a directory or the content of a file, or syncs a file or directory to the device. Paths
/// are relative to the recorded directory, which is the empty path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Creates a directory.
    MakeDir(PathBuf),
    /// Creates an empty file.
    Create(PathBuf),
    /// Sets the length of a file, in bytes.
    Resize(PathBuf, u64),
    /// Writes bytes to a file.
    Write {
        /// Path of the written file, relative to the recorded directory.
        path: PathBuf,
        /// Offset of the first written byte from the start of the file, in bytes.
        offset: u64,
        /// Written bytes, which the file contains from `offset` on.
        bytes: Vec<u8>,
    },
    /// Renames a file or a directory, and replaces an existing destination.
    Rename {
        /// Old path of the renamed file or directory; nothing is left at the path.
        from: PathBuf,
        /// New path of the renamed file or directory; the rename replaces a file or an empty directory at the path.
        to: PathBuf,
    },
    /// Creates a hard link.
    Link {
        /// Existing path of the linked file.
        from: PathBuf,
        /// Path of the new hard link to the file.
        to: PathBuf,
    },
    /// Removes a file or an empty directory.
    Remove(PathBuf),
    /// `fsync` or `fdatasync` of a file or of a directory.
    Sync(PathBuf),
}

impl Change {
    /// Path of the changed file or directory; of a rename or link, the old path.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::MakeDir(path)
            | Self::Create(path)
            | Self::Resize(path, _)
            | Self::Remove(path)
            | Self::Sync(path)
            | Self::Write { path, .. }
            | Self::Rename { from: path, .. }
            | Self::Link { from: path, .. } => path,
        }
    }

    /// Appends the next change to this change if both are writes to one file and the next write begins where this write
    /// ends; returns whether the changes were merged.
    pub(crate) fn goes_on_with(&mut self, next: &Self) -> bool {
        match (self, next) {
            (
                Self::Write {
                    path,
                    offset,
                    bytes,
                },
                Self::Write {
                    path: to,
                    offset: at,
                    bytes: more,
                },
            ) if path == to && *offset + bytes.len() as u64 == *at => {
                bytes.extend_from_slice(more);
                true
            }
            _ => false,
        }
    }

    /// Whether the change needs space, so that a full disk refuses the change.
    #[must_use]
    pub fn takes_room(&self) -> bool {
        match self {
            Self::MakeDir(_) | Self::Create(_) | Self::Link { .. } => true,
            Self::Write { bytes, .. } => !bytes.is_empty(),
            _ => false,
        }
    }

    /// Whether the change can fail with an I/O error of the device.
    #[must_use]
    pub fn reaches_device(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::Sync(_))
    }

    /// The change in a few words.
    #[must_use]
    pub fn summary(&self) -> String {
        let shown = self.path().display();
        match self {
            Self::MakeDir(_) => format!("mkdir {shown}"),
            Self::Create(_) => format!("create {shown}"),
            Self::Resize(_, bytes) => format!("truncate {shown} to {bytes}"),
            Self::Write { offset, bytes, .. } => {
                format!("write {} bytes at {offset} of {shown}", bytes.len())
            }
            Self::Rename { to, .. } => format!("rename {shown} to {}", to.display()),
            Self::Link { to, .. } => format!("link {shown} to {}", to.display()),
            Self::Remove(_) => format!("remove {shown}"),
            Self::Sync(_) => format!("fsync {shown}"),
        }
    }
}
