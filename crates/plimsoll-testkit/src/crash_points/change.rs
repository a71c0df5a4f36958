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
        /// Path of the file.
        path: PathBuf,
        /// Offset of the first byte in the file, in bytes.
        offset: u64,
        /// The written bytes.
        bytes: Vec<u8>,
    },
    /// Renames a file or a directory, and replaces an existing destination.
    Rename {
        /// Source path.
        from: PathBuf,
        /// Destination path.
        to: PathBuf,
    },
    /// Creates a hard link.
    Link {
        /// An existing path of the file.
        from: PathBuf,
        /// The additional path.
        to: PathBuf,
    },
    /// Removes a file or an empty directory.
    Remove(PathBuf),
    /// `fsync` or `fdatasync` of a file or of a directory.
    Sync(PathBuf),
}

impl Change {
    /// The changed path; the source path of a rename.
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

    /// Merges the next change into this change if both are writes and the second continues the first; returns whether
    /// it did.
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
