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
    /// Number of the worker group in the Plan to which the process belongs.
    pub group: u32,
    /// Number of the process in the worker group.
    pub number: u32,
    /// Numbers of scheduled, completed and dropped operations of the process.
    pub counts: ScheduleCounts,
}
