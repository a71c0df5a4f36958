//! What a program does to files.

use std::path::{Path, PathBuf};

/// A system call that changes a directory or the content of a file, or brings one to the device. Paths are
/// relative to the recorded directory, which is the empty path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A directory is created.
    MakeDir(PathBuf),
    /// An empty file is created.
    Create(PathBuf),
    /// A file gets this length, in bytes.
    Resize(PathBuf, u64),
    /// Bytes are written to a file.
    Write {
        /// The file.
        path: PathBuf,
        /// Position of the first byte.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A file or a directory gets another name, and replaces what had it.
    Rename {
        /// The name before.
        from: PathBuf,
        /// The name after.
        to: PathBuf,
    },
    /// A file gets a second name.
    Link {
        /// The name it has.
        from: PathBuf,
        /// The second name.
        to: PathBuf,
    },
    /// A file or an empty directory is removed.
    Remove(PathBuf),
    /// `fsync` or `fdatasync` of a file or of a directory.
    Sync(PathBuf),
}

impl Change {
    /// The path that is changed; of a rename the one before.
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

    /// Adds a change to this one, if both are writes and the second continues the first.
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

    /// Whether a full disk refuses it: it takes room.
    #[must_use]
    pub fn takes_room(&self) -> bool {
        match self {
            Self::MakeDir(_) | Self::Create(_) | Self::Link { .. } => true,
            Self::Write { bytes, .. } => !bytes.is_empty(),
            _ => false,
        }
    }

    /// Whether it may end with an I/O error of the device.
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
