//! Exit codes and errors of commands.

use plimsoll_results::{Status, Verdict};
use plimsoll_series::SeriesError;
use std::process::ExitCode;

/// Exit codes of `plimsoll`, as `plimsoll --help` documents them for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Exit code of a run with a valid result, or of a command that succeeded.
    Valid = 0,
    /// Exit code of a failed run, or of a command that failed after its work had begun, such as at a write to a full
    /// disk.
    Failed = 1,
    /// Exit code after a wrong command line, or a wrong file given to the command; no run was made.
    Usage = 2,
    /// Exit code of a run or series with an invalid result, or of `compare` if a condition of `--fail-if` is met.
    Invalid = 3,
    /// Exit code of a run that the user ended: 128 plus the number of SIGINT, as in shells.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Valid => Self::Valid,
            Verdict::Invalid => Self::Invalid,
            Verdict::Failed => Self::Failed,
            Verdict::Interrupted => Self::Interrupted,
        }
    }
}

impl From<Status> for Exit {
    fn from(status: Status) -> Self {
        match status {
            Status::Valid => Self::Valid,
            Status::Invalid => Self::Invalid,
            Status::Failed | Status::Unfinished => Self::Failed,
            Status::Interrupted => Self::Interrupted,
        }
    }
}

impl From<SeriesError> for CommandError {
    fn from(e: SeriesError) -> Self {
        match e {
            SeriesError::Refused(text) => Self::usage(text),
            SeriesError::Failed(text) => Self::failed(text),
            SeriesError::RefusedAtRoot => Self::silent(Exit::Valid),
            SeriesError::RankLost => Self::silent(Exit::Failed),
        }
    }
}

/// Error that ends a command, with the exit code of the program.
#[derive(Debug)]
pub struct CommandError {
    /// Exit code with which the program ends because of the error.
    pub exit: Exit,
    /// Text of the error for standard error, in complete lines; empty if another process prints the error.
    pub message: String,
}

impl CommandError {
    /// A usage error (exit code 2): wrong options or input, noticed before any run.
    pub fn usage(message: impl std::fmt::Display) -> Self {
        Self {
            exit: Exit::Usage,
            message: format!("error: {message}\n"),
        }
    }

    /// An error without a message, on a rank or child process whose error another process prints.
    pub fn silent(exit: Exit) -> Self {
        Self {
            exit,
            message: String::new(),
        }
    }

    /// An error (exit code 1) of a command that has begun its work.
    pub fn failed(message: impl std::fmt::Display) -> Self {
        Self {
            exit: Exit::Failed,
            message: format!("error: {message}\n"),
        }
    }
}
