//! A directory for readers of files, one of each process.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;

/// Memory that is a file system, if there is such a place.
const IN_MEMORY: &str = "/dev/shm";

static DIR: LazyLock<TempDir> = LazyLock::new(|| {
    let mut builder = tempfile::Builder::new();
    builder.prefix("plimsoll-fuzz-");
    let in_memory = builder.tempdir_in(IN_MEMORY);
    in_memory
        .or_else(|_| builder.tempdir())
        .expect("there is a temporary directory")
});

thread_local! {
    /// The directory of this thread.
    static OWN: PathBuf = {
        let number = format!("{:?}", std::thread::current().id());
        let digits: String = number.chars().filter(char::is_ascii_digit).collect();
        let dir = DIR.path().join(digits);
        std::fs::create_dir(&dir).expect("threads have numbers of their own");
        dir
    };
}

/// A directory for readers of files. It is the same one for all inputs of a thread.
pub(crate) struct Scratch;

impl Scratch {
    /// The directory.
    pub(crate) fn dir() -> PathBuf {
        OWN.with(Clone::clone)
    }

    /// The directory, with a file of these bytes.
    pub(crate) fn with(file: &str, bytes: &[u8]) -> PathBuf {
        let dir = Self::dir();
        std::fs::write(dir.join(file), bytes).expect("the scratch directory is writable");
        dir
    }

    /// A directory below it.
    pub(crate) fn below(name: &str) -> PathBuf {
        let dir = Self::dir().join(name);
        std::fs::create_dir_all(&dir).expect("the scratch directory is writable");
        dir
    }

    /// Removes what is in a directory below it.
    pub(crate) fn clear(dir: &Path) {
        std::fs::remove_dir_all(dir).expect("the scratch directory is writable");
    }
}
