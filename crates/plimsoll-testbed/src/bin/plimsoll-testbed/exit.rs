//! Exit codes, with the same meanings as the exit codes of `plimsoll`.

use plimsoll_testbed::BedError;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// Exit code by which `plimsoll-testbed` tells its caller how the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(u8);

impl Exit {
    /// Exit code 0: the command succeeded.
    pub const DONE: Self = Self(0);
    /// Exit code 1: the command began its work and failed.
    pub const FAILED: Self = Self(1);
    /// Exit code 2 for bad usage, missing software or missing rights: the command began no work.
    pub const USAGE: Self = Self(2);
    /// Exit code 130, which is 128 plus the number of SIGINT, as in shells: the user interrupted the command.
    pub const INTERRUPTED: Self = Self(130);

    /// Exit code of a command that ends with the error `e`.
    pub fn of_error(e: &BedError) -> Self {
        match e {
            BedError::Failed { .. } => Self::FAILED,
            BedError::Missing(_) | BedError::Usage(_) | BedError::Rights(_) => Self::USAGE,
        }
    }

    /// The code of a program that has ended: its exit code, or 128 plus the number of the signal that ended the
    /// program.
    pub fn of_status(status: ExitStatus) -> Self {
        let code = status.code().or_else(|| Some(128 + status.signal()?));
        code.and_then(|code| u8::try_from(code).ok())
            .map_or(Self::FAILED, Self)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.0)
    }
}
