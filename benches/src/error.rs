//! Errors of the suite: missing tools, failed system calls and programs, implausible figures.

use std::path::Path;

/// Reasons why a benchmark gives no figures.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// No benchmark has the text of the filter in its name; the field lists the names of all benchmarks.
    #[error("no benchmark has that in its name; the benchmarks are {0}")]
    NoSuchBenchmark(String),
    /// The program `fio` cannot be started.
    #[error("fio, which is needed to compare with, is missing; install it: apt-get install fio")]
    NoFio,
    /// Another program failed, or printed something unexpected.
    #[error("{program}: {reason}")]
    Program {
        program: &'static str,
        reason: String,
    },
    /// A benchmark measured an implausible figure, such as no operations.
    #[error("{what}: {reason}")]
    Implausible { what: String, reason: String },
    /// A system call on a file or directory of the suite failed.
    #[error("cannot {action} `{path}`: {error}")]
    Io {
        action: &'static str,
        path: String,
        error: std::io::Error,
    },
    /// A system call in a minimal loop failed.
    #[error("minimal loop: {0}")]
    Call(#[from] rustix::io::Errno),
    /// The engine refused a run of the suite, or the run failed.
    #[error(transparent)]
    Engine(#[from] plimsoll_engine::EngineError),
    /// The results of a run could not be written or read again.
    #[error("{0}")]
    Results(#[from] plimsoll_results::ResultsError),
    /// A workload of the suite is wrong.
    #[error("{0}")]
    Workload(#[from] plimsoll_workload::wml::Diagnostics),
    /// A file of /proc cannot be read.
    #[error("cannot read what the kernel reports about this process or machine: {0}")]
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

    pub(crate) fn implausible(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Implausible {
            what: what.into(),
            reason: reason.into(),
        }
    }
}

/// Fails with [`BenchError::Implausible`] unless `holds`.
pub(crate) fn plausible(
    what: &str,
    holds: bool,
    reason: impl FnOnce() -> String,
) -> Result<(), BenchError> {
    match holds {
        true => Ok(()),
        false => Err(BenchError::implausible(what, reason())),
    }
}
