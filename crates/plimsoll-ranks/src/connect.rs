//! Selects the kind of ranks from options and environment, and connects the ranks.

use crate::launcher::{self, LaunchInfo};
use crate::{ConnectError, Ranks, Solo, local, member};
use std::time::Duration;

/// Maximum number of processes started on this machine.
pub const MAX_PROCESSES: u32 = 1024;

/// Initialises MPI and joins the processes that a launcher started; the text names the launcher in errors. Called once.
///
/// # Errors
/// MPI reports another number of processes than the launcher (the program is linked with another MPI library than the
/// launcher's), or MPI lacks the required thread support.
pub type JoinMpi = fn(&LaunchInfo, &str) -> Result<Box<dyn Ranks>, ConnectError>;

/// Joins the ranks that this process belongs to. Must be called once, early, by the thread that makes all calls, and
/// before anything reads the standard input.
///
/// The first applicable case wins: a process with an [assignment](crate::accept_assignment), or a copy started for
/// `processes`, joins the process that started it; processes of an MPI launcher are joined by `join_mpi`; with
/// `processes` of 2 and more, copies of this program are started with the same arguments; otherwise there is a single
/// rank.
///
/// # Errors
/// `processes` is 0 or above [`MAX_PROCESSES`], or is used under a launcher; a launcher started several processes that
/// MPI cannot join, or the program was built without MPI; the system cannot start processes.
pub fn connect(
    processes: Option<u32>,
    join_mpi: Option<JoinMpi>,
) -> Result<Box<dyn Ranks>, ConnectError> {
    if let Some(joined) = member::join().or_else(local::join) {
        return joined;
    }
    let launch = launcher::find(|name| std::env::var(name).ok());
    if let Some(launch) = launch.filter(|l| l.size != Some(1)) {
        return join_launched(&launch, processes, join_mpi).map_err(|error| {
            if launch.rank.is_none_or(|rank| rank == 0) {
                return error;
            }
            wait_for_rank_0_report();
            error.reported_elsewhere()
        });
    }
    match processes {
        None | Some(1) => Ok(Box::new(Solo::new())),
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

/// Checks that this process does not run with others under a launcher, where `option` cannot be used.
///
/// # Errors
/// A launcher has started several processes, or an unknown number; the message names `option`.
pub fn check_no_launcher(option: &str) -> Result<(), ConnectError> {
    let launch = launcher::find(|name| std::env::var(name).ok());
    match launch.filter(|l| l.size != Some(1)) {
        None => Ok(()),
        Some(launch) => Err(ConnectError::usage(format!(
            "{option} cannot be used here: {} has started the ranks already",
            launch.name
        ))),
    }
}

/// Whether a launcher has started this process together with others.
pub fn is_launched() -> bool {
    let launch = launcher::find(|name| std::env::var(name).ok());
    launch.is_some_and(|l| l.size != Some(1))
}

/// Whether this process has received an assignment from another process and has not joined the other ranks yet.
pub fn is_assigned_rank() -> bool {
    member::is_pending()
}

/// Whether this process reports errors in the arguments, among all processes that were started with the same arguments.
/// May be called before [`connect`].
pub fn is_reporting_rank() -> bool {
    let launch = launcher::find(|name| std::env::var(name).ok());
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

/// Whether a launcher forwards the output of this process, so that a terminal seen here belongs to the launcher. `srun
/// --pty` passes the user's own terminal on.
pub fn is_output_forwarded() -> bool {
    launcher::forwards_output(|name| std::env::var(name).ok())
}

/// Joins the processes that a launcher started.
fn join_launched(
    launch: &LaunchInfo,
    processes: Option<u32>,
    join_mpi: Option<JoinMpi>,
) -> Result<Box<dyn Ranks>, ConnectError> {
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
