//! The option `--live`: full-screen display of runs in progress.

use super::Command;
use crate::console::Stream;
use crate::exit::CommandError;
use plimsoll_engine::ClockKind;

impl Command {
    /// Refuses `--live` without a suitable terminal, or in virtual time.
    ///
    /// # Errors
    /// If the terminal or the clock does not support `--live`.
    pub fn check_live(&self) -> Result<(), CommandError> {
        let (output, clock) = match self {
            Self::Run(args) => (&args.manner, args.workload.how.clock()),
            Self::Curve(args) => (&args.manner, args.how.clock()),
            Self::Find(args) => (&args.manner, args.how.clock()),
            Self::Profile(args) => (&args.manner, args.how.clock()),
            Self::Check(args) => (&args.manner, args.clock()),
            Self::Ab(args) => (&args.manner, args.clock()),
            Self::Io500(args) => (&args.manner, plimsoll_target::clock(&args.target)),
            _ => return Ok(()),
        };
        if !output.live {
            return Ok(());
        }
        if clock == ClockKind::Virtual {
            return Err(CommandError::usage(
                "--live shows runs in real time, and the time of this one is virtual",
            ));
        }
        if !Stream::Err.rewrites() {
            return Err(CommandError::usage(
                "--live draws on the terminal of the standard error: that is no terminal here, or one that \
                 cannot be drawn on (TERM)",
            ));
        }
        Ok(())
    }
}
