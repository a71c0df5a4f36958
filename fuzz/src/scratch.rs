//! A directory of each thread for readers of files; removed at the end of the thread.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A file system in memory, if the machine has one at this path.
const IN_MEMORY: &str = "/dev/shm";

thread_local! {
    /// The directory of this thread. `exit`, with which libFuzzer ends, removes the directory of the main thread.
    static OWN: TempDir = {
        let mut builder = tempfile::Builder::new();
        builder.prefix("plimsoll-fuzz-");
        let in_memory = builder.tempdir_in(IN_MEMORY);
        in_memory
            .or_else(|_| builder.tempdir())
            .expect("there is a temporary directory")
    };
}

/// Name of a results directory while a run writes it.
pub(crate) const LIVE_DIR: &str = ".plimsoll-aaaaaa";

/// Directories for readers of files: one directory for each file name, shared by all inputs of a thread.
pub(crate) struct Scratch;

impl Scratch {
    /// The directory for files of a name.
    pub(crate) fn of(file: &str) -> PathBuf {
        Self::below(&format!("of-{file}"))
    }

    /// The directory for files of a name, with a file that contains these bytes.
    pub(crate) fn with(file: &str, bytes: &[u8]) -> PathBuf {
        let dir = Self::of(file);
        Self::write(&dir, file, bytes);
        dir
    }

    /// Writes a file.
    pub(crate) fn write(dir: &Path, file: &str, bytes: &[u8]) {
        std::fs::write(dir.join(file), bytes).expect("the scratch directory is writable");
    }

    /// A directory of this thread.
    pub(crate) fn below(name: &str) -> PathBuf {
        let dir = OWN.with(|own| own.path().join(name));
        std::fs::create_dir_all(&dir).expect("the scratch directory is writable");
        dir
    }

    /// Removes a directory.
    pub(crate) fn clear(dir: &Path) {
        std::fs::remove_dir_all(dir).expect("the scratch directory is writable");
    }
}
