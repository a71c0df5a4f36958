//! Which ranks there are.

use crate::launcher::{self, LaunchInfo};
use crate::{Ranks, Solo, local};
use std::fmt;
use std::time::Duration;

/// Most processes that are started on this machine.
pub const MAX_PROCESSES: u32 = 1024;

/// Why the ranks could not be joined. Prints as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectError {
    message: String,
    usage: bool,
    reported_elsewhere: bool,
}

impl ConnectError {
    /// The program was called in a way that cannot work.
    pub(crate) fn usage(message: String) -> Self {
        Self {
            message,
            usage: true,
            reported_elsewhere: false,
        }
    }

    /// The system would not do it.
    pub(crate) fn failed(message: String) -> Self {
        Self {
            message,
            usage: false,
            reported_elsewhere: false,
        }
    }

    /// Whether the program was called in a way that cannot work, or else the system failed.
    pub fn is_usage(&self) -> bool {
        self.usage
    }

    /// Whether another process of the same launcher says this already, so that this one need not.
    pub fn is_reported_elsewhere(&self) -> bool {
        self.reported_elsewhere
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConnectError {}

/// Joins the ranks this process belongs to. To be called once, early, by the thread that makes all
/// calls, and before anything reads the standard input.
///
/// In this order: a process that another one started with `processes` joins that one; processes
/// that an MPI launcher started are joined by MPI; with `processes` of 2 and more this program is
/// started that often, with the same arguments; else there is one rank.
///
/// # Errors
/// `processes` is 0 or above [`MAX_PROCESSES`], or is used under a launcher; a launcher started
/// several processes that MPI cannot join; the system cannot start processes.
pub fn connect(processes: Option<u32>) -> Result<Box<dyn Ranks>, ConnectError> {
    if let Some(joined) = local::join() {
        return joined;
    }
    let launch = launcher::find(|name| std::env::var(name).ok());
    if let Some(launch) = launch.filter(|l| l.size != Some(1)) {
        return join_launched(&launch, processes).map_err(|error| {
            let quiet = launch.rank.is_some_and(|rank| rank > 0);
            if quiet {
                wait_for_rank_0_report();
            }
            ConnectError {
                reported_elsewhere: quiet,
                ..error
            }
        });
    }
    match processes {
        None | Some(1) => Ok(Box::new(Solo::new())),
        Some(n) if (2..=MAX_PROCESSES).contains(&n) => local::start(n),
        Some(n) => Err(ConnectError::usage(format!(
            "--processes is {n}: must be between 1 and {MAX_PROCESSES}"
        ))),
    }
}

/// Whether this process, of all that were started with the same arguments, is the one to say what is
/// wrong with them. Can be asked before [`connect`].
pub fn is_reporting_rank() -> bool {
    let launch = launcher::find(|name| std::env::var(name).ok());
    !local::is_spawned_rank() && launch.and_then(|l| l.rank).is_none_or(|rank| rank == 0)
}

/// How long a process that says nothing waits before it ends with an error.
const QUIET_EXIT_DELAY: Duration = Duration::from_secs(2);

/// Waits a little, for a process that is about to end with an error that rank 0 says: a launcher kills
/// all others at the first one that ends so, and what rank 0 has to say would be lost. Where rank 0
/// ends first, the launcher ends the wait as well.
pub fn wait_for_rank_0_report() {
    std::thread::sleep(QUIET_EXIT_DELAY);
}

/// Whether a launcher takes what this process writes, and writes it somewhere itself, so that a
/// terminal here is one that the launcher has made. `srun --pty` only carries the user's terminal on.
pub fn is_output_forwarded() -> bool {
    launcher::forwards_output(|name| std::env::var(name).ok())
}

/// Name and version of the MPI library this program is built with, as `Open MPI v4.1.4`; `None` if
/// it is built without.
pub fn mpi_library() -> Option<String> {
    #[cfg(feature = "mpi")]
    return Some(crate::mpi::library());
    #[cfg(not(feature = "mpi"))]
    None
}

/// Joins the processes that a launcher started.
fn join_launched(
    launch: &LaunchInfo,
    processes: Option<u32>,
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
    join_mpi(launch, &started)
}

#[cfg(feature = "mpi")]
use crate::mpi::join as join_mpi;

#[cfg(not(feature = "mpi"))]
fn join_mpi(_launch: &LaunchInfo, started: &str) -> Result<Box<dyn Ranks>, ConnectError> {
    Err(ConnectError::usage(format!(
        "{started}, but this plimsoll was built without MPI; build with --features mpi"
    )))
}
