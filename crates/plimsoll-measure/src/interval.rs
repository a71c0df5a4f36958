//! One interval of a measured window.

use crate::{Completions, Nanos, OpTotals};
use serde::{Deserialize, Serialize};

/// An interval of a window, over all lanes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Number of the measured window in the run, from 1.
    pub window: u32,
    /// Number of the interval in the window, from 0.
    pub index: u64,
    /// Time of the window's opening, in nanoseconds of the run's clock.
    pub opened: Nanos,
    /// Start of the interval, in nanoseconds since the window opened.
    pub start: Nanos,
    /// Length of the interval in nanoseconds; the last interval of a window may be shorter.
    pub length: Nanos,
    /// Totals of the operations in the interval, one entry for each row of the results.
    pub rows: Vec<OpTotals>,
    /// Slots of the interval in which operations of each row completed.
    pub completions: Completions,
}
