//! Connection of the ranks of a command, whether `--processes`, `--hosts` or an MPI launcher started the ranks.

use crate::cli::RankArgs;
use crate::exit::CommandError;
use plimsoll_engine::{ClockKind, Stop};
use plimsoll_ranks::{ConnectError, JoinMpi, Ranks};
use plimsoll_series::Communicator;

/// Connects the ranks that an MPI launcher started; `None` in a program built without MPI.
#[cfg(feature = "mpi")]
const JOIN_MPI: Option<JoinMpi> = Some(crate::mpi::join);
#[cfg(not(feature = "mpi"))]
const JOIN_MPI: Option<JoinMpi> = None;

/// Connects the ranks that a launcher or another process started, or starts the ranks requested by the options.
pub fn join(args: &RankArgs) -> Result<Communicator, CommandError> {
    if !args.hosts.is_given() || plimsoll_ranks::is_assigned_rank() {
        return communicator(plimsoll_ranks::connect(args.processes, JOIN_MPI));
    }
    let root_works = args.processes != Some(0);
    let processes = args.processes.unwrap_or(1).max(1);
    plimsoll_ranks::check_processes(processes).map_err(CommandError::usage)?;
    let group = args.hosts.group(processes, root_works)?;
    communicator(plimsoll_ranks::connect_hosts(&group))
}

/// Connects the ranks that an MPI launcher started, for commands without rank options; without a launcher, this process
/// is the only rank.
pub fn join_launched() -> Result<Communicator, CommandError> {
    communicator(plimsoll_ranks::connect(None, JOIN_MPI))
}

/// Connects the ranks of a pattern on a target; without a target, in real time. Also returns the number of ranks:
/// processes, or in virtual time workers of this process.
pub fn join_pattern(
    args: &RankArgs,
    target: Option<&str>,
) -> Result<(Communicator, u32), CommandError> {
    match target.map_or(ClockKind::Real, plimsoll_target::clock) {
        ClockKind::Real => {
            let communicator = join(args)?;
            let ranks = communicator.working();
            Ok((communicator, ranks))
        }
        ClockKind::Virtual if args.hosts.is_given() => Err(CommandError::usage(
            "--hosts: in virtual time all ranks run in one process: use --processes N",
        )),
        ClockKind::Virtual => Ok((join_launched()?, args.processes.unwrap_or(1))),
    }
}

fn communicator(connected: Result<Ranks, ConnectError>) -> Result<Communicator, CommandError> {
    let ranks = connected.map_err(|e| {
        let stopped = if e.is_usage() {
            CommandError::usage(&e)
        } else {
            CommandError::failed(&e)
        };
        if e.is_reported_elsewhere() {
            CommandError::silent(stopped.exit)
        } else {
            stopped
        }
    })?;
    Ok(Communicator::new(ranks))
}

/// A [`Stop`] of this rank that Ctrl-C requests, and that is forwarded to all ranks; only rank 0 prints the messages of
/// interrupts.
///
/// # Errors
/// If Ctrl-C cannot be caught.
pub fn stop_on_interrupt(communicator: &Communicator) -> Result<Stop, CommandError> {
    let stop = Stop::default();
    crate::signals::stop_on_interrupt(&stop, communicator.is_root())
        .map_err(|e| CommandError::usage(format!("cannot catch Ctrl-C: {e}")))?;
    communicator.pass_on(&stop);
    Ok(stop)
}
