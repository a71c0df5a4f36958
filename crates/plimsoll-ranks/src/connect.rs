//! Selects the kind of ranks from options and environment, and connects the ranks.

use crate::launcher::{self, LaunchInfo};
use crate::{ConnectError, Ranks, local, member};
use std::time::Duration;

/// Maximum number of processes started on this machine.
pub const MAX_PROCESSES: u32 = 1024;

/// Initialises MPI and joins the processes that a launcher started; the text names the launcher in errors. Called once.
///
/// # Errors
/// MPI reports another number of processes than the launcher (the program is linked with another MPI library than the
/// launcher's), or MPI lacks the required thread support.
pub type JoinMpi = fn(&LaunchInfo, &str) -> Result<Ranks, ConnectError>;

/// Connects this process with the other ranks of its group. A process calls `connect` once, before anything reads the
/// standard input, on the thread that later makes all collective calls.
///
/// `connect` takes the first applicable case: a process with an [assignment](crate::accept_assignment), or a copy
/// started for `processes`, joins the process that started it; processes of an MPI launcher are joined by `join_mpi`;
/// with `processes` of 2 and more, copies of this program are started with the same arguments; without any of these
/// cases, the process is the only rank.
///
/// # Errors
/// The argument `processes` is 0 or above [`MAX_PROCESSES`], or is used under a launcher; a launcher started several
/// processes that MPI cannot join, or the program was built without MPI; the system cannot start processes.
pub fn connect(processes: Option<u32>, join_mpi: Option<JoinMpi>) -> Result<Ranks, ConnectError> {
    if let Some(joined) = member::join().or_else(local::join) {
        return joined;
    }
    if let Some(launch) = launch_of_several() {
        return join_launched(&launch, processes, join_mpi).map_err(|error| {
            if launch.rank.is_none_or(|rank| rank == 0) {
                return error;
            }
            wait_for_rank_0_report();
            error.reported_elsewhere()
        });
    }
    match processes {
        None | Some(1) => Ok(Ranks::alone()),
        Some(n) => check_processes(n).and_then(|()| local::start(n)),
    }
}

/// Checks a value of `--processes`.
///
/// # Errors
/// `processes` is 0 or above [`MAX_PROCESSES`].
pub fn check_processes(processes: u32) -> Result<(), ConnectError> {
    match processes {
        1..=MAX_PROCESSES => Ok(()),
        n => Err(ConnectError::usage(format!(
            "--processes is {n}: expected 1 to {MAX_PROCESSES}, or 0 with --hosts"
        ))),
    }
}

/// Checks that no launcher has started several processes, a case in which the command-line option `option` cannot be
/// used.
///
/// # Errors
/// A launcher has started several processes, or an unknown number of processes; the error's message names `option`.
pub fn check_no_launcher(option: &str) -> Result<(), ConnectError> {
    match launch_of_several() {
        None => Ok(()),
        Some(launch) => Err(ConnectError::usage(format!(
            "{option} cannot be used here: {} has started the ranks already",
            launch.name
        ))),
    }
}

/// Whether a launcher has started this process as one of several processes, or as one of an unknown number of
/// processes.
pub fn is_launched() -> bool {
    launch_of_several().is_some()
}

/// The launcher, such as `mpiexec`, that started this process as one of several processes, or as one of an unknown
/// number of processes; `None` without a launcher, and for a launcher that started one process.
fn launch_of_several() -> Option<LaunchInfo> {
    launcher::found().filter(|launch| launch.size != Some(1))
}

/// Whether this process has received an assignment from another process and has not joined the other ranks yet.
pub fn is_assigned_rank() -> bool {
    member::is_pending()
}

/// Whether this process reports errors in the arguments, among all processes that were started with the same arguments.
/// May be called before [`connect`].
pub fn is_reporting_rank() -> bool {
    let launch = launcher::found();
    let is_spawned = member::is_pending() || local::is_spawned_rank();
    !is_spawned && launch.and_then(|l| l.rank).is_none_or(|rank| rank == 0)
}

/// Delay before a process without a report exits with an error.
const QUIET_EXIT_DELAY: Duration = Duration::from_secs(2);

/// Delays a process that is about to exit with an error that rank 0 reports: a launcher kills all processes when the
/// first process exits with an error, and the report of rank 0 would be lost. If rank 0 ends first, the launcher also
/// ends this delay.
pub fn wait_for_rank_0_report() {
    std::thread::sleep(QUIET_EXIT_DELAY);
}

/// Whether a launcher forwards the output of this process, so that a terminal of the process belongs to the launcher
/// and not to the user. The launcher `srun --pty` forwards no output, but passes the user's own terminal on.
pub fn is_output_forwarded() -> bool {
    launcher::forwards_output(|name| std::env::var(name).ok())
}

/// Joins the processes that a launcher started.
fn join_launched(
    launch: &LaunchInfo,
    processes: Option<u32>,
    join_mpi: Option<JoinMpi>,
) -> Result<Ranks, ConnectError> {
    let started = match launch.size {
        Some(size) => format!("{} started {size} processes", launch.name),
        None => format!("{} started this process", launch.name),
    };
    if let Some(n) = processes {
        return Err(ConnectError::usage(format!(
            "--processes {n} cannot be used here: {started} already"
        )));
    }
    if !launch.mpi {
        return Err(ConnectError::usage(format!(
            "{started} that cannot reach each other; start them with srun --mpi=pmix or --mpi=pmi2"
        )));
    }
    match join_mpi {
        Some(join) => join(launch, &started),
        None => Err(ConnectError::usage(format!(
            "{started}, but this plimsoll was built without MPI; build with --features mpi"
        ))),
    }
}
