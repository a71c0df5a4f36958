//! The communicator of the ranks of a command.

use crate::cli::RankArgs;
use crate::exit::{CommandError, Exit};
use plimsoll_engine::{Event, Observer, Stop};
use plimsoll_ranks::{ConnectError, JoinMpi, Ranks};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Joins the ranks that an MPI launcher started; `None` in a program that was built without MPI.
#[cfg(feature = "mpi")]
const JOIN_MPI: Option<JoinMpi> = Some(crate::mpi::join);
#[cfg(not(feature = "mpi"))]
const JOIN_MPI: Option<JoinMpi> = None;

/// The communicator of a command's ranks.
pub struct Communicator {
    ranks: Box<dyn Ranks>,
}

/// Observer of ranks other than 0, which report nothing.
pub struct SilentObserver;

impl Observer for SilentObserver {
    fn event(&mut self, _: Event<'_>) {}
}

impl Communicator {
    /// Joins the ranks that a launcher or another process started, or starts those of the options.
    pub fn join(args: &RankArgs) -> Result<Self, CommandError> {
        let connected = match args.hosts.is_given() && !plimsoll_ranks::is_assigned_rank() {
            true => {
                let processes = args.processes.unwrap_or(1);
                plimsoll_ranks::check_processes(processes).map_err(CommandError::usage)?;
                let group = args.hosts.group(processes, !args.coordinator_only)?;
                plimsoll_ranks::connect_hosts(&group)
            }
            false => plimsoll_ranks::connect(args.processes, JOIN_MPI),
        };
        Self::of(connected)
    }

    /// Joins the ranks that a launcher started; alone if there is none.
    pub fn join_launched() -> Result<Self, CommandError> {
        Self::of(plimsoll_ranks::connect(None, JOIN_MPI))
    }

    fn of(connected: Result<Box<dyn Ranks>, ConnectError>) -> Result<Self, CommandError> {
        match connected {
            Ok(ranks) => Ok(Self { ranks }),
            Err(e) => {
                let stopped = match e.is_usage() {
                    true => CommandError::usage(&e),
                    false => CommandError::failed(&e),
                };
                Err(match e.is_reported_elsewhere() {
                    true => CommandError::silent(stopped.exit),
                    false => stopped,
                })
            }
        }
    }

    /// The ranks themselves.
    pub fn ranks(&self) -> &dyn Ranks {
        &*self.ranks
    }

    /// The number of ranks.
    pub fn size(&self) -> u32 {
        self.ranks.size()
    }

    /// The number of ranks that have workers.
    pub fn working(&self) -> u32 {
        self.size() - u32::from(!self.ranks.root_works())
    }

    /// Passes a stop that is requested from this process on while it waits for other ranks.
    pub fn pass_on(&self, stop: &Stop) {
        let stop = stop.clone();
        self.ranks
            .pass_on_stop_request(Box::new(move || stop.is_requested()));
    }

    /// Whether this is rank 0, which reports.
    pub fn is_root(&self) -> bool {
        self.ranks.rank() == 0
    }

    /// Calls `make` on rank 0 and broadcasts its value.
    ///
    /// # Errors
    /// The error of `make`, which other ranks do not report again; or a lost rank.
    pub fn run_on_root_and_broadcast<T: Serialize + DeserializeOwned>(
        &self,
        make: impl FnOnce() -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        if self.size() == 1 {
            return make();
        }
        if !self.is_root() {
            let bytes = self.broadcast(vec![])?;
            return match bytes.split_first() {
                Some((0, json)) => serde_json::from_slice(json).map_err(|e| {
                    CommandError::failed(format!("what rank 0 sent is unreadable: {e}"))
                }),
                // Rank 0 reports the reason.
                _ => Err(CommandError::silent(Exit::Valid)),
            };
        }
        let made = make();
        let mut bytes = vec![u8::from(made.is_err())];
        if let Ok(value) = &made {
            serde_json::to_writer(&mut bytes, value).map_err(CommandError::failed)?;
        }
        // An error of `make` says more than one of the broadcast.
        let sent = self.broadcast(bytes);
        let value = made?;
        sent.map(|_| value)
    }

    /// Passes the texts of all ranks, in their order, to `take` on rank 0.
    pub fn collect(
        &self,
        mine: String,
        mut take: impl FnMut(u32, String),
    ) -> Result<(), CommandError> {
        let mut take = |rank, bytes: Vec<u8>| {
            take(rank, String::from_utf8_lossy(&bytes).into_owned());
        };
        self.ranks
            .collect(mine.into_bytes(), &mut take)
            .map_err(|e| self.lost(&e))
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, CommandError> {
        self.ranks.broadcast(bytes).map_err(|e| self.lost(&e))
    }

    /// The error of a lost rank, which rank 0 reports for all.
    fn lost(&self, e: &plimsoll_ranks::RankError) -> CommandError {
        match self.is_root() {
            true => CommandError::failed(e),
            false => CommandError::silent(Exit::Failed),
        }
    }
}
