//! One interval of a measured window.

use crate::{Completions, Nanos, OpTotals};
use serde::{Deserialize, Serialize};

/// One interval of a window, all lanes together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Number of the window, from 1.
    pub window: u32,
    /// Number in the window, from 0.
    pub index: u64,
    /// When the window opened, in nanoseconds of the run's clock.
    pub opened: Nanos,
    /// Start, in nanoseconds since the window opened.
    pub start: Nanos,
    /// Length in nanoseconds; the last one may be shorter.
    pub length: Nanos,
    /// One entry per row of the results.
    pub rows: Vec<OpTotals>,
    /// When operations completed.
    pub completions: Completions,
}
