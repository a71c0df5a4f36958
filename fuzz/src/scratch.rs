//! Temporary directories for targets that read files: one tree for each thread, which is removed at the end of the
//! thread.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Mount point of a file system in memory; where the path is missing, the usual directory for temporary files is used.
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

/// Name of a hidden directory of the form that runs use while they write their results.
pub(crate) const LIVE_DIR: &str = ".plimsoll-aaaaaa";

/// Directories for readers of files: one directory for each file name, shared by all inputs of a thread.
pub(crate) struct Scratch;

impl Scratch {
    /// The directory of this thread for the file name `file`, created if necessary.
    pub(crate) fn of(file: &str) -> PathBuf {
        Self::below(&format!("of-{file}"))
    }

    /// The directory of this thread for the file name `file`, after `bytes` are written to the file.
    pub(crate) fn with(file: &str, bytes: &[u8]) -> PathBuf {
        let dir = Self::of(file);
        Self::write(&dir, file, bytes);
        dir
    }

    /// Writes `bytes` to the file called `file` in `dir`, and replaces earlier contents.
    pub(crate) fn write(dir: &Path, file: &str, bytes: &[u8]) {
        std::fs::write(dir.join(file), bytes).expect("the scratch directory is writable");
    }

    /// The directory `name` in the tree of this thread, created if necessary.
    pub(crate) fn below(name: &str) -> PathBuf {
        let dir = OWN.with(|own| own.path().join(name));
        std::fs::create_dir_all(&dir).expect("the scratch directory is writable");
        dir
    }

    /// Removes a directory with all its contents.
    pub(crate) fn clear(dir: &Path) {
        std::fs::remove_dir_all(dir).expect("the scratch directory is writable");
    }
}
