//! How the program ends.

use crate::cli::CleanupArgs;
use plimsoll_results::Verdict;
use std::process::ExitCode;

/// Codes the program ends with; scripts rely on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The result is valid, or the command did what was asked.
    Valid = 0,
    /// The run failed.
    Failed = 1,
    /// Bad usage or input: nothing was run.
    Usage = 2,
    /// The run ended, but its result is invalid.
    Invalid = 3,
    /// Somebody ended the run: 128 and the number of SIGINT, as shells say it.
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

impl CleanupArgs {
    /// The code to end with, after a clean-up that was complete or not. What was interrupted or
    /// failed says so in any case.
    pub fn exit(self, exit: Exit, is_clean: bool) -> Exit {
        match exit {
            Exit::Valid | Exit::Invalid if self.strict && !is_clean => Exit::Failed,
            exit => exit,
        }
    }
}

/// Why a command ended without doing what was asked.
#[derive(Debug)]
pub struct CommandError {
    /// The code to end with.
    pub exit: Exit,
    /// What is said on the standard error stream; complete lines, or empty.
    pub message: String,
}

impl CommandError {
    /// Bad usage or input.
    pub fn usage(message: impl std::fmt::Display) -> Self {
        Self {
            exit: Exit::Usage,
            message: format!("error: {message}\n"),
        }
    }

    /// Another process says why.
    pub fn silent(exit: Exit) -> Self {
        Self {
            exit,
            message: String::new(),
        }
    }

    /// Something that was begun could not be done.
    pub fn failed(message: impl std::fmt::Display) -> Self {
        Self {
            exit: Exit::Failed,
            message: format!("error: {message}\n"),
        }
    }
}
