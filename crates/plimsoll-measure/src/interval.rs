//! One interval of a measured window.

use crate::{Completions, Nanos, OpTotals};
use serde::{Deserialize, Serialize};

/// An interval of a window, over all lanes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Number of the window, from 1.
    pub window: u32,
    /// Number of the interval in the window, from 0.
    pub index: u64,
    /// Time of the window's opening, in nanoseconds of the run's clock.
    pub opened: Nanos,
    /// Start, in nanoseconds since the window opened.
    pub start: Nanos,
    /// Length in nanoseconds; the last interval may be shorter.
    pub length: Nanos,
    /// One entry per row of the results.
    pub rows: Vec<OpTotals>,
    /// Completion times of operations.
    pub completions: Completions,
}
