//! Operations of the processes of an operation mix.

use serde::{Deserialize, Serialize};

/// Operations of a process (a worker of an operation mix) in the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessCounts {
    /// Its group in the Plan.
    pub group: u32,
    /// Its number in the group.
    pub number: u32,
    /// Operations that its schedule had in the window; 0 if it has none.
    pub scheduled: u64,
    /// Operations that succeeded in the window.
    pub completed: u64,
    /// Scheduled operations that were never started, because the process was too far behind.
    pub dropped: u64,
}
