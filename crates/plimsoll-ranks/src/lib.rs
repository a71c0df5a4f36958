//! Processes that run one Plan together.
//!
//! A *rank* is one of these processes; rank 0 leads. This crate moves bytes between ranks and knows
//! nothing of what they mean. [`connect`] finds out which kind of ranks there are:
//!
//! - [`Solo`]: one process, nothing to wait for;
//! - local processes: the program starts copies of itself, joined to it by Unix sockets;
//! - MPI (feature `mpi`): the processes that `mpiexec` or `srun` started.
//!
//! Local processes and MPI differ in how a frame gets to a neighbour (`Link`); everything above is
//! the same code (`TreeGroup`): collectives along a tree, failures that flood it, an orderly end.

mod connect;
mod frame;
mod group;
mod launcher;
mod link;
mod local;
#[cfg(feature = "mpi")]
mod mpi;
mod socket;
mod solo;
mod tree;

pub use connect::{
    ConnectError, MAX_PROCESSES, connect, is_output_forwarded, is_reporting_rank, mpi_library,
    wait_for_rank_0_report,
};
pub use solo::Solo;

use std::fmt;

/// The processes that run one Plan together, as one of them sees them.
///
/// Calls to all methods come from one thread of each process, and all ranks make the same
/// collective calls (`barrier` to `sum`) in the same order. A rank that makes another one than the
/// rest is found out and fails the group.
///
/// # Errors
/// Every collective call ends with the error of the rank that failed first, as far as this one
/// knows, no matter how far the call had come: all ranks are told as soon as one
/// [fails](Ranks::fail), dies, or ends before the others. Later calls give the same error.
///
/// # The end
/// Dropping the value is the end of the group: it waits until the neighbours in the tree come to
/// their ends too, then for processes this one started. A rank that ends while others still wait
/// for it in a collective call has failed.
pub trait Ranks {
    /// The number of this rank, from 0.
    fn rank(&self) -> u32;

    /// How many ranks there are, at least 1.
    fn size(&self) -> u32;

    /// Returns when all ranks have come here.
    ///
    /// # Errors
    /// A rank has failed.
    fn barrier(&self) -> Result<(), RankError>;

    /// Gives every rank the bytes of rank 0; what the others pass is ignored. Returns at rank 0
    /// when all have them.
    ///
    /// # Errors
    /// A rank has failed.
    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, RankError>;

    /// Combines the bytes of all ranks in rank order, up a tree; the result is at rank 0, and the
    /// others get `None`.
    ///
    /// `combine(mine, theirs)` has to be associative and is called at any rank, with `mine` of the
    /// lower ranks. A rank holds at most three of the values at a time, however many ranks there
    /// are.
    ///
    /// # Errors
    /// A rank has failed.
    fn reduce(
        &self,
        mine: Vec<u8>,
        combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
    ) -> Result<Option<Vec<u8>>, RankError>;

    /// Hands the bytes of each rank to `take` at rank 0, one rank after the other in rank order.
    /// `take` is not called at other ranks. A rank holds at most three of the values at a time.
    ///
    /// # Errors
    /// A rank has failed.
    fn collect(&self, mine: Vec<u8>, take: &mut dyn FnMut(u32, Vec<u8>)) -> Result<(), RankError>;

    /// The largest of the numbers of all ranks, at every rank.
    ///
    /// # Errors
    /// A rank has failed.
    fn max(&self, mine: u64) -> Result<u64, RankError>;

    /// The smallest of the numbers of all ranks, at every rank.
    ///
    /// # Errors
    /// A rank has failed.
    fn min(&self, mine: u64) -> Result<u64, RankError>;

    /// The sum of the numbers of all ranks, at every rank; `u64::MAX` if it is larger than that.
    ///
    /// # Errors
    /// A rank has failed.
    fn sum(&self, mine: u64) -> Result<u64, RankError>;

    /// Tells all ranks that this one cannot go on, and why. Every later call of every rank gives
    /// that error, unless another rank had failed before.
    ///
    /// The reason becomes one line of at most 2000 bytes. Returns when the neighbours in the tree
    /// have answered, or after [`FAILURE_DRAIN_TIMEOUT`].
    fn fail(&self, reason: &str);

    /// After a failure: waits until the neighbours in the tree have ended, so that they change
    /// nothing any more, but not longer than `limit`; whether they have. MPI does not tell that a
    /// process has ended: there the answer is `false`, unless there are no neighbours.
    fn wait_for_ends(&self, limit: std::time::Duration) -> bool;

    /// Asks all ranks to stop the run in order. Does not wait.
    fn request_stop(&self);

    /// What ranks have said meanwhile. Never blocks; meant to be called every few milliseconds
    /// while the workers of this rank work, because news only travel through ranks that listen.
    fn poll(&self) -> GroupStatus;
}

/// How long a rank that has failed waits for its neighbours to hear of it, before it ends without
/// them.
pub const FAILURE_DRAIN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(20);

/// What [`Ranks::poll`] hears. Once a stop or a failure is heard, it is heard at every later call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupStatus {
    /// All is well.
    Nothing,
    /// A rank, maybe this one, has asked all to stop.
    Stop,
    /// A rank, maybe this one, has failed.
    Failed(RankError),
}

/// A rank that cannot go on, and why. Prints as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankError {
    /// The rank that failed.
    pub rank: u32,
    /// Why, in one line.
    pub reason: String,
}

/// Bytes of a reason at most: a failure has to fit in a message that is sent without waiting.
const MAX_REASON_BYTES: usize = 2000;

impl RankError {
    /// A failure of `rank`; line breaks of the reason become spaces, and what exceeds 2000 bytes
    /// is cut.
    pub fn new(rank: u32, reason: &str) -> Self {
        let mut line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        line.truncate(line.floor_char_boundary(MAX_REASON_BYTES));
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
        let odd = format!("a{}", "ü".repeat(9000));
        assert_eq!(RankError::new(0, &odd).reason.len(), 1999);
    }
}
