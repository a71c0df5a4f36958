//! Exit codes and errors of commands.

use plimsoll_results::{Status, Verdict};
use plimsoll_series::SeriesError;
use std::process::ExitCode;

/// Exit codes of the program; scripts rely on the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The result is valid, or the command succeeded.
    Valid = 0,
    /// The run failed.
    Failed = 1,
    /// Bad usage or input. Nothing was run.
    Usage = 2,
    /// The run ended with an invalid result.
    Invalid = 3,
    /// The user ended the run: 128 plus the number of SIGINT, as in shells.
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

/// The error that ended a command.
#[derive(Debug)]
pub struct CommandError {
    /// Exit code of the program.
    pub exit: Exit,
    /// Text for standard error: complete lines, or empty.
    pub message: String,
}

impl CommandError {
    /// An error in usage or input.
    pub fn usage(message: impl std::fmt::Display) -> Self {
        Self {
            exit: Exit::Usage,
            message: format!("error: {message}\n"),
        }
    }

    /// An error that another process reports.
    pub fn silent(exit: Exit) -> Self {
        Self {
            exit,
            message: String::new(),
        }
    }

    /// A failure after the command has begun.
    pub fn failed(message: impl std::fmt::Display) -> Self {
        Self {
            exit: Exit::Failed,
            message: format!("error: {message}\n"),
        }
    }
}
