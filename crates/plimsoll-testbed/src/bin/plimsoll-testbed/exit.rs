//! Exit codes, with the same meanings as the exit codes of `plimsoll`.

use plimsoll_testbed::BedError;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// The code with which the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(u8);

impl Exit {
    /// The command succeeded.
    pub const DONE: Self = Self(0);
    /// The command failed after it had begun its work.
    pub const FAILED: Self = Self(1);
    /// Bad usage, missing software or missing rights: the command began no work.
    pub const USAGE: Self = Self(2);
    /// The user ended the command: 128 plus the number of SIGINT, as in shells.
    pub const INTERRUPTED: Self = Self(130);

    /// The code of an error.
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
