//! Processes that run one Plan together.
//!
//! A *rank* is one process of a group; rank 0 is the root. This crate moves uninterpreted bytes between ranks.
//! [`connect`] selects the kind of ranks:
//!
//! - one process ([`Ranks::alone`]);
//! - local processes: the program starts copies of itself, connected by Unix sockets;
//! - hosts ([`connect_hosts`]): processes that the program starts on other machines by `ssh`;
//! - MPI: the processes that `mpiexec` or `srun` started, joined by the program ([`JoinMpi`]).
//!
//! Local processes, hosts and MPI differ only in the transport of a frame to a neighbour ([`Link`](link::Link)). All
//! kinds share the rest ([`Ranks`]): collective calls along a tree, flooding of failures, an orderly end.
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
mod ssh;
mod tree;

pub use connect::{
    JoinMpi, MAX_PROCESSES, check_processes, connect, is_assigned_rank, is_launched,
    is_output_forwarded, is_reporting_rank, wait_for_rank_0_report,
};
pub use connect_error::ConnectError;
pub use group::Ranks;
pub use hosts::{Host, HostGroup, ProgramCopy, connect_hosts};
pub use launcher::LaunchInfo;
pub use member::{RANK_COMMAND, accept_assignment};
#[cfg(feature = "simulation")]
pub use simulated::SimulatedNetwork;
pub use ssh::{COPY_ID_DIGITS, check_command as check_ssh};
pub use tree::TreePosition;

use std::fmt;
use std::time::Duration;

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

/// Spread of the ranks' starts, measured at rank 0 by the arrival times of messages that the ranks send when they
/// start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartSpread {
    /// Time between the first and the last start. Asymmetric transfer times cause an error of half the asymmetry.
    pub spread: Duration,
    /// Longest round-trip time of a frame through the tree between rank 0 and another rank.
    pub round_trip: Duration,
}

/// The failure of a rank. Displays as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankError {
    /// Number of the rank that failed.
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
