//! Scheduled operations of the processes of an operation mix, and scheduled events.

use serde::{Deserialize, Serialize};

/// Counts of a schedule in the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ScheduleCounts {
    /// Operations or events that were due in the window; 0 without a schedule.
    pub scheduled: u64,
    /// Operations that succeeded in the window, or events that workers used in the window.
    pub completed: u64,
    /// Operations never started, or events never used, because the workers were too far behind.
    pub dropped: u64,
}

impl ScheduleCounts {
    /// Adds the counts of another worker, process or rank.
    pub fn add(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.completed += other.completed;
        self.dropped += other.dropped;
    }
}

/// Operations of a process (a worker of an operation mix) in the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessCounts {
    /// Group of the process in the Plan.
    pub group: u32,
    /// Number of the process in the group.
    pub number: u32,
    /// Counts of the process's operations.
    pub counts: ScheduleCounts,
}
