//! Processes that run one Plan together.
//!
//! A *rank* is one process of a group; rank 0 is the root. This crate moves bytes between ranks and does not interpret
//! them. [`connect`] selects the kind of ranks:
//!
//! - [`Solo`]: one process;
//! - local processes: the program starts copies of itself, connected by Unix sockets;
//! - hosts ([`connect_hosts`]): processes that the program starts on other machines by `ssh`;
//! - MPI: the processes that `mpiexec` or `srun` started, joined by the program ([`JoinMpi`]).
//!
//! Local processes, hosts and MPI differ only in the transport of a frame to a neighbour ([`Link`](link::Link)). All
//! kinds share the rest ([`TreeGroup`]): collective calls along a tree, flooding of failures, an orderly end.
//!
//! # Design
//! The crate does not use MPI's collective calls: a rank in an MPI collective cannot leave when another rank fails, and
//! occupies a processor while waiting. `MPI_Finalize` waits for all ranks, so a rank calls `MPI_Finalize` only when all
//! ranks have reached the end ("all of my subtree" goes up the tree, "all" comes down). A failed rank therefore never
//! aborts while other ranks are in `MPI_Finalize`, where the launcher of Open MPI 4.1 sometimes crashes or hangs.
//!
//! Tree shapes: local processes are a star around rank 0, MPI has eight branches, a host has at most 16 (`hosts`).
//! Hosts are a star around rank 0, because a deeper tree would need keys between hosts or would send frames twice over
//! the same lines. A controller polls every 20 ms for failures, so each tree level delays a failure by up to 20 ms on
//! its way to a rank with running workers.

mod connect;
mod connect_error;
pub mod frame;
mod group;
pub mod handshake;
pub mod host_list;
mod hosts;
mod keepalive;
mod launcher;
pub mod link;
mod local;
mod member;
mod panic_message;
#[cfg(feature = "simulation")]
mod simulated;
mod socket;
mod solo;
mod ssh;
mod tree;

pub use connect::{
    JoinMpi, MAX_PROCESSES, check_processes, connect, is_assigned_rank, is_launched,
    is_output_forwarded, is_reporting_rank, wait_for_rank_0_report,
};
pub use connect_error::ConnectError;
pub use group::TreeGroup;
pub use hosts::{Host, HostGroup, ProgramCopy, connect_hosts};
pub use launcher::LaunchInfo;
pub use member::{RANK_COMMAND, accept_assignment};
#[cfg(feature = "simulation")]
pub use simulated::SimulatedNetwork;
pub use solo::Solo;
pub use ssh::{COPY_ID_DIGITS, check_command as check_ssh};
pub use tree::TreePosition;

use std::fmt;
use std::time::{Duration, Instant};

/// The processes that run one Plan together, from the viewpoint of one process.
///
/// All methods are called by one thread of each process, and all ranks make the same collective calls (`barrier` to
/// `sum`) in the same order. A rank that makes a different call fails the group.
///
/// # Errors
/// A collective call returns the error of the rank that failed first, as far as the calling rank knows. A failure
/// reaches all ranks, whether they wait in a call or not, as soon as a rank [fails](Ranks::fail), dies, or ends before
/// the others. Later calls return the same error.
///
/// # The end
/// Dropping the value ends the group: the drop waits until the neighbours in the tree end too, then for the processes
/// that this process started. A rank that ends while other ranks still wait for it in a collective call has failed.
pub trait Ranks {
    /// The number of this rank, from 0.
    fn rank(&self) -> u32;

    /// The number of ranks, at least 1.
    fn size(&self) -> u32;

    /// Returns when all ranks have made this call.
    fn barrier(&self) -> Result<(), RankError>;

    /// Gives every rank the bytes of rank 0; the arguments of other ranks are ignored. Returns at rank 0 when all ranks
    /// have the bytes.
    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, RankError>;

    /// Combines the bytes of all ranks in rank order, up a tree. Returns the result at rank 0 and `None` at other
    /// ranks.
    ///
    /// `combine(mine, theirs)` must be associative and may be called at any rank; `mine` belongs to lower ranks than
    /// `theirs`. A rank holds at most three values at a time.
    fn reduce(
        &self,
        mine: Vec<u8>,
        combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
    ) -> Result<Option<Vec<u8>>, RankError>;

    /// Passes the bytes of each rank to `take` at rank 0, in rank order. `take` is not called at other ranks. A rank
    /// holds at most three values at a time.
    fn collect(&self, mine: Vec<u8>, take: &mut dyn FnMut(u32, Vec<u8>)) -> Result<(), RankError>;

    /// Maximum over all ranks, returned at every rank.
    fn max(&self, mine: u64) -> Result<u64, RankError>;

    /// Minimum over all ranks, returned at every rank.
    fn min(&self, mine: u64) -> Result<u64, RankError>;

    /// Sum over all ranks, returned at every rank; saturates at `u64::MAX`.
    fn sum(&self, mine: u64) -> Result<u64, RankError>;

    /// Whether rank 0 has workers; otherwise rank 0 only coordinates the other ranks.
    fn root_works(&self) -> bool {
        true
    }

    /// At rank 0: whether all other ranks have already made the next collective call, which rank 0 has not made yet.
    /// Only calls that send values up the tree at once count: a barrier, or the agreement on a number.
    fn others_wait(&self) -> bool {
        false
    }

    /// Name of this rank's machine; `None` on the machine of rank 0.
    fn host(&self) -> Option<&str> {
        None
    }

    /// Calls `is_requested` while this rank waits for others in a collective call, and
    /// [requests a stop](Self::request_stop) once it returns true.
    fn pass_on_stop_request(&self, is_requested: Box<dyn Fn() -> bool>);

    /// Collective call that agrees on a start time. Returns the start time on the local clock, a few round trips in the
    /// future. The ranks' clocks are not compared.
    fn agree_on_start(&self) -> Result<Instant, RankError>;

    /// Collective call that reports the start of this rank; must be made right after the start. Returns the spread of
    /// all starts at rank 0, `None` at other ranks.
    fn report_start(&self, started: Instant) -> Result<Option<StartSpread>, RankError>;

    /// Informs all ranks that this rank has failed, with the reason. Every later call of every rank returns this error,
    /// unless another rank failed before.
    ///
    /// The reason is cut to one line of at most 2000 bytes. Returns when the neighbours in the tree have replied, or
    /// after [`FAILURE_DRAIN_TIMEOUT`].
    fn fail(&self, reason: &str);

    /// After a failure, combines the bytes of the ranks that can still be reached, as [`reduce`](Self::reduce) does.
    /// Rank 0 waits at most `limit` for the bytes of other ranks, and gets the result. Returns `None` at other ranks,
    /// without a failure, and with MPI, which ends all ranks of a group that has lost a rank.
    fn reduce_survivors(
        &self,
        mine: Vec<u8>,
        combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
        limit: Duration,
    ) -> Option<Vec<u8>>;

    /// After a failure, waits up to `limit` for the processes of all ranks below in the tree to end; an ended process
    /// changes no files any more. Returns whether all have ended. `false` also if the connection to a child was lost,
    /// or a child ended without reporting the ends below it. MPI does not report the end of a process: with MPI the
    /// result is `false` unless there are no ranks below.
    fn wait_for_ends(&self, limit: Duration) -> bool;

    /// Asks all ranks to stop the run in order. Does not wait.
    fn request_stop(&self);

    /// Handles received messages and returns the status of the group. Never blocks. Must be called every few
    /// milliseconds while the workers of this rank run, because messages only travel through ranks that handle
    /// messages.
    fn poll(&self) -> GroupStatus;
}

/// Maximum time that a failed rank waits for its neighbours to receive the failure before the rank ends.
pub const FAILURE_DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// Status of the group. A stop or a failure is permanent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupStatus {
    /// No stop and no failure so far.
    Nothing,
    /// A rank has asked all ranks to stop.
    Stop,
    /// A rank has failed.
    Failed(RankError),
}

/// Spread of the ranks' starts, measured by the arrival of messages that ranks sent when they started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartSpread {
    /// Time between the first and the last start. Asymmetric transfer times cause an error of half the asymmetry.
    pub spread: Duration,
    /// Longest round trip to a rank.
    pub round_trip: Duration,
}

/// The failure of a rank. Displays as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankError {
    /// The rank that failed.
    pub rank: u32,
    /// Reason of the failure, in one line.
    pub reason: String,
}

/// Maximum length of a reason in bytes: a failure must fit in a frame that is posted without waiting.
const MAX_REASON_BYTES: usize = 2000;

impl RankError {
    /// A failure of `rank`; the reason becomes one line of at most 2000 bytes.
    pub fn new(rank: u32, reason: &str) -> Self {
        let mut line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        line.truncate(line.floor_char_boundary(MAX_REASON_BYTES));
        // Truncation can leave a trailing space.
        line.truncate(line.trim_end().len());
        Self { rank, reason: line }
    }
}

impl fmt::Display for RankError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}: {}", self.rank, self.reason)
    }
}

impl std::error::Error for RankError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_short_line() {
        let error = RankError::new(3, "cannot create a:\n  no space left\n");
        assert_eq!(error.to_string(), "rank 3: cannot create a: no space left");
        assert_eq!(RankError::new(0, &"ab ".repeat(9000)).reason.len(), 2000);
        let cut = RankError::new(0, &format!("{} b", "a".repeat(1999)));
        assert_eq!(cut.reason.len(), 1999);
        assert_eq!(RankError::new(0, &cut.reason), cut);
        let odd = format!("a{}", "ü".repeat(9000));
        assert_eq!(RankError::new(0, &odd).reason.len(), 1999);
    }
}
