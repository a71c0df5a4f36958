//! Processes that run one Plan together.
//!
//! A *rank* is one of these processes; rank 0 is the root. This crate moves bytes between ranks and
//! does not interpret them. [`connect`] finds out which kind of ranks there are:
//!
//! - [`Solo`]: one process;
//! - local processes: the program starts copies of itself, joined to it by Unix sockets;
//! - hosts ([`connect_hosts`]): processes that the program starts on other machines by `ssh`;
//! - MPI: the processes that `mpiexec` or `srun` started, joined by the program ([`JoinMpi`]).
//!
//! Local processes, hosts and MPI differ in how a frame gets to a neighbour ([`Link`](link::Link)); everything above is
//! the same code ([`TreeGroup`]): collectives along a tree, failures that flood it, an orderly end.
//!
//! # Design
//! Collective calls of MPI are not used: a rank that waits in a collective call cannot leave when another rank fails,
//! and occupies a processor while it waits. `MPI_Finalize` waits for all ranks, so a rank calls `MPI_Finalize` only
//! when all ranks have got that far ("all of my subtree" goes up the tree, "all" comes down). A rank that is given up
//! therefore never meets other ranks in `MPI_Finalize`, where the launcher of Open MPI 4.1 sometimes crashes or hangs.
//!
//! Trees have different shapes: local processes are a star around rank 0, MPI has eight branches, a host has at
//! most 16 (`hosts`). Hosts are a star around rank 0, because a deeper tree would need keys between hosts or would
//! send frames twice over the same lines. A controller polls every 20 ms for failures, so a failure takes that long
//! per level of the tree to reach a rank whose workers are running.

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

/// The processes that run one Plan together, as one of them sees them.
///
/// All methods are called by one thread of each process, and all ranks make the same collective
/// calls (`barrier` to `sum`) in the same order. A rank that makes a different call is detected and
/// fails the group.
///
/// # Errors
/// A collective call returns the error of the rank that failed first, as far as this one knows,
/// however far the call has got: all ranks are informed as soon as one [fails](Ranks::fail), dies,
/// or ends before the others. Later calls return the same error.
///
/// # The end
/// Dropping the value ends the group: it waits until the neighbours in the tree end too, then for
/// processes this one started. A rank that ends while others still wait for it in a collective call
/// has failed.
pub trait Ranks {
    /// The number of this rank, from 0.
    fn rank(&self) -> u32;

    /// The number of ranks, at least 1.
    fn size(&self) -> u32;

    /// Returns when all ranks have made this call.
    fn barrier(&self) -> Result<(), RankError>;

    /// Gives every rank the bytes of rank 0; what the others pass is ignored. Returns at rank 0
    /// when all have them.
    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, RankError>;

    /// Combines the bytes of all ranks in rank order, up a tree. Returns the result at rank 0 and
    /// `None` at the others.
    ///
    /// `combine(mine, theirs)` must be associative and is called at any rank, with `mine` of the
    /// lower ranks. A rank holds at most three of the values at a time.
    fn reduce(
        &self,
        mine: Vec<u8>,
        combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
    ) -> Result<Option<Vec<u8>>, RankError>;

    /// Passes the bytes of each rank to `take` at rank 0, one rank after the other in rank order.
    /// `take` is not called at other ranks. A rank holds at most three of the values at a time.
    fn collect(&self, mine: Vec<u8>, take: &mut dyn FnMut(u32, Vec<u8>)) -> Result<(), RankError>;

    /// The largest of the numbers of all ranks, at every rank.
    fn max(&self, mine: u64) -> Result<u64, RankError>;

    /// The smallest of the numbers of all ranks, at every rank.
    fn min(&self, mine: u64) -> Result<u64, RankError>;

    /// The sum of the numbers of all ranks, at every rank; at most `u64::MAX`.
    fn sum(&self, mine: u64) -> Result<u64, RankError>;

    /// Whether rank 0 has workers, as the others do; otherwise it only coordinates them.
    fn root_works(&self) -> bool {
        true
    }

    /// Whether all other ranks have made the next collective call, one that this one, rank 0, has not made
    /// yet, and in which values go up the tree at once: a barrier, or the agreement on a number.
    fn others_wait(&self) -> bool {
        false
    }

    /// The name of this rank's machine, if it was started there by [`connect_hosts`] elsewhere.
    fn host(&self) -> Option<&str> {
        None
    }

    /// Calls `is_requested` while this rank waits for others in a collective call, and
    /// [requests a stop](Self::request_stop) once it returns true.
    fn pass_on_stop_request(&self, is_requested: Box<dyn Fn() -> bool>);

    /// Agrees with all ranks on a moment, and returns the instant that is that moment here: a collective
    /// call, a few round trips long. Clocks of ranks are not compared.
    fn agree_on_start(&self) -> Result<Instant, RankError>;

    /// Reports that this rank started at the instant, right after it: a collective call. Returns at
    /// rank 0 how far the starts of all ranks lie apart.
    fn report_start(&self, started: Instant) -> Result<Option<StartSpread>, RankError>;

    /// Informs all ranks that this one has failed, and why. Every later call of every rank returns
    /// that error, unless another rank failed before.
    ///
    /// The reason becomes one line of at most 2000 bytes. Returns when the neighbours in the tree
    /// have replied, or after [`FAILURE_DRAIN_TIMEOUT`].
    fn fail(&self, reason: &str);

    /// After a failure, combines the bytes of the ranks that can still be reached, as
    /// [`reduce`](Self::reduce) does. Rank 0 waits for those of others for at most `limit`, and gets the
    /// result. `None` at other ranks, if there was no failure, and with MPI, which ends all ranks of a
    /// group that has lost one.
    fn reduce_survivors(
        &self,
        mine: Vec<u8>,
        combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
        limit: Duration,
    ) -> Option<Vec<u8>>;

    /// After a failure, waits until the ranks below in the tree have ended, so that they change
    /// nothing any more, but at most for `limit`. Returns whether they have: `false` also if one is lost that has
    /// others below it, whose ends are not known then. MPI does not report the end of a process: with
    /// it the result is `false`, unless there are none below.
    fn wait_for_ends(&self, limit: Duration) -> bool;

    /// Asks all ranks to stop the run in order. Does not wait.
    fn request_stop(&self);

    /// Reads messages and returns the status of the group. Never blocks; meant to be called every
    /// few milliseconds while the workers of this rank work, because status messages only travel
    /// through ranks that listen.
    fn poll(&self) -> GroupStatus;
}

/// Time that a rank that has failed waits for its neighbours to receive that, before it ends without
/// them.
pub const FAILURE_DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// The status of the group. A stop or a failure stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupStatus {
    /// All ranks work.
    Nothing,
    /// A rank, maybe this one, has asked all to stop.
    Stop,
    /// A rank, maybe this one, has failed.
    Failed(RankError),
}

/// How far apart the ranks started, by the arrivals of messages that they sent as they did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartSpread {
    /// Time between the first start and the last. Messages that take longer one way than the other
    /// make it wrong by half the difference.
    pub spread: Duration,
    /// Longest round trip to a rank.
    pub round_trip: Duration,
}

/// A rank that has failed, and why. Prints as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankError {
    /// The rank that failed.
    pub rank: u32,
    /// Why, in one line.
    pub reason: String,
}

/// Maximum length of a reason: a failure must fit in a message that is sent without waiting.
const MAX_REASON_BYTES: usize = 2000;

impl RankError {
    /// A failure of `rank`; the reason becomes one line of at most 2000 bytes.
    pub fn new(rank: u32, reason: &str) -> Self {
        let mut line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        line.truncate(line.floor_char_boundary(MAX_REASON_BYTES));
        // The cut may be behind a space.
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
