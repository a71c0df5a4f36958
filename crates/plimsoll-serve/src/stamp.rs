//! Stamps of files: metadata by which a change of a file is detected without reading the file.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Stamp of a file or directory: device, inode, size, and change time (`ctime`) in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    pub(crate) changed: i128,
}

impl FileStamp {
    /// Takes the stamp of a file, directory or symbolic link; `None` if nothing has the path, or the path cannot be
    /// read.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::symlink_metadata(path).ok()?;
        Some(Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            changed: i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec()),
        })
    }
}
