//! Exit codes, which are those of `plimsoll`.

use plimsoll_testbed::BedError;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// The code with which the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(u8);

impl Exit {
    /// The command did what was requested.
    pub const DONE: Self = Self(0);
    /// Something that was begun failed.
    pub const FAILED: Self = Self(1);
    /// Bad usage, missing software or missing rights: nothing was begun.
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

    /// The code of a program that has ended; of a program that a signal ended, 128 plus the number of the signal.
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
