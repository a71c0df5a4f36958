//! Measuring: the clock, recorders that cost a few nanoseconds an operation, and what becomes
//! of their records: interval series and totals with exact counts and HDR histograms.
//!
//! A [`Recorder`] belongs to one lane (one OS thread). It writes only memory of its own; at the
//! end of each interval it hands a full buffer to the [`Collector`], which merges the lanes.
//! All times are nanoseconds of one [`Clock`].

pub mod clock;
mod clock_kind;
mod collector;
pub mod compare;
mod completions;
mod counts;
pub mod curve;
mod gaps;
mod in_flight;
mod interval_buffer;
mod lane_notes;
mod latency;
mod process_counts;
mod ranks;
mod recorder;
pub mod system;
mod window;
mod workers_done;

pub use clock::{Clock, Nanos};
pub use clock_kind::ClockKind;
pub use collector::{Collector, Interval, WindowTotals};
pub use completions::{Completions, SlotSet};
pub use gaps::{
    BusySpans, Gap, GapWatch, Gaps, RankStall, STALL_NS, Stall, expected_max_gap, stalls,
};
pub use in_flight::{InFlight, InFlightAges, censored_quantile};
pub use interval_buffer::RowSpec;
pub use latency::{ErrorCode, Latency, OpTotals};
pub use process_counts::ProcessCounts;
pub use ranks::{RankRow, RankStage, seven_number_summary};
pub use recorder::{LaneProgress, Recorder};
pub use window::{WindowBounds, WindowState};
pub use workers_done::WorkersDone;

/// Least latency a histogram tells from zero, in nanoseconds.
pub const MIN_LATENCY_NS: Nanos = 1;

/// Greatest latency a histogram holds (one hour, in nanoseconds); a longer one is counted here,
/// while the exact maximum keeps its true value.
pub const MAX_LATENCY_NS: Nanos = 3_600_000_000_000;

/// Significant decimal digits that histograms keep.
pub const SIGNIFICANT_DIGITS: u8 = 3;
