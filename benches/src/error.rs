//! What can go wrong while measuring.

use std::path::Path;

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// The filter excludes everything.
    #[error("no benchmark has that in its name; there are {0}")]
    NoSuchBenchmark(String),
    /// fio is not installed.
    #[error("fio is not here to compare with; install it: apt-get install fio")]
    NoFio,
    /// Another program said something unexpected.
    #[error("{program}: {reason}")]
    Program {
        /// Its name.
        program: &'static str,
        /// What was wrong.
        reason: String,
    },
    /// A benchmark counted operations that make no sense.
    #[error("{what}: {reason}")]
    Implausible {
        /// What was measured.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A system call failed.
    #[error("cannot {action} `{path}`: {error}")]
    Io {
        /// What was to be done.
        action: &'static str,
        /// To what.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// A system call in a hand-written loop failed.
    #[error("hand-written loop: {0}")]
    Call(#[from] rustix::io::Errno),
    /// The engine refused or failed.
    #[error(transparent)]
    Engine(#[from] plimsoll_engine::EngineError),
    /// Results could not be written or read.
    #[error("{0}")]
    Results(#[from] plimsoll_results::ResultsError),
    /// A workload of the suite is wrong.
    #[error("{0}")]
    Workload(#[from] plimsoll_wml::Diagnostics),
    /// The machine does not describe itself.
    #[error("cannot read what the kernel says of this process or machine: {0}")]
    Proc(#[from] procfs::ProcError),
}

impl BenchError {
    pub(crate) fn io(action: &'static str, path: &Path, error: std::io::Error) -> Self {
        let path = path.display().to_string();
        Self::Io {
            action,
            path,
            error,
        }
    }
}

/// An [`BenchError::Implausible`] unless `holds`.
pub(crate) fn plausible(
    what: &str,
    holds: bool,
    reason: impl FnOnce() -> String,
) -> Result<(), BenchError> {
    if holds {
        return Ok(());
    }
    Err(BenchError::Implausible {
        what: what.into(),
        reason: reason(),
    })
}
