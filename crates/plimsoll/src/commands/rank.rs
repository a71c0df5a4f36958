//! `rank`: a rank of a run of `--hosts`; rank 0 starts the first rank of each host by ssh, and the first rank starts
//! the host's other ranks.

use crate::cli::RankCommandArgs;
use crate::exit::CommandError;
use crate::hosts::{self, RankPayload};
use std::ffi::OsString;
use std::io::IsTerminal;

/// Receives the assignment from the starting process. Returns the command line of rank 0, which this process executes,
/// too.
pub fn accept(args: &RankCommandArgs) -> Result<Vec<OsString>, CommandError> {
    if std::io::stdin().is_terminal() {
        return Err(CommandError::usage(
            "rank is for plimsoll itself, which starts it with --hosts on other machines",
        ));
    }
    let checksum = match &args.copied {
        Some(id) => Some(
            hosts::remove_copied_program(id)
                .map_err(|e| CommandError::usage(format!("--copied: {e}")))?,
        ),
        None => None,
    };
    let version = env!("CARGO_PKG_VERSION");
    let payload = plimsoll_ranks::accept_assignment(version, checksum);
    let payload = payload.map_err(CommandError::usage)?;
    RankPayload::accept(&payload)
        .map_err(|e| CommandError::failed(format!("what rank 0 sent is unreadable: {e}")))
}
