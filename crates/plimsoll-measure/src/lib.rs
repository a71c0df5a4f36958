//! Measurement: the clock, recorders with a cost of a few nanoseconds per operation, and interval series and totals
//! with exact counts and HDR histograms.
//!
//! A [`Recorder`] belongs to one lane (an OS thread) and writes only private memory. At the end of each interval the
//! recorder hands a full buffer to the [`Collector`], which merges the lanes. All times are nanoseconds of one
//! [`Clock`].
//!
//! | modules | content |
//! | --- | --- |
//! | `clock`, `window` | the time, and the measured window shared by all lanes |
//! | `recorder`, `interval_buffer`, `counts`, `upper_half`, `completions`, `lane_notes`, `in_flight`, `call_spans` | records of one lane |
//! | `collector`, `interval`, `latency`, `workers_done`, `ranks` | all lanes together: intervals, totals, stages |
//! | `gaps` | times without a completion, and stalls |
//! | `stationarity`, `backlog` | whether the rate stayed the same during a window, and whether the queue grew |
//! | `batches`, `warm_up` | confidence intervals of a window's figures; rules that end a warm-up |
//! | `event_effects` | effects of events on a run's throughput |
//! | `curve`, `compare` | load curves; differences between repeated runs |
//! | `student`, `regression` | Student's t distribution; linear regression of autocorrelated series |
//! | `outcome` | the outcome of a run: windows, figures of ranks, failures, notes |
//! | `simulated` | figures of a simulated storage system |
//! | `system` | counters of the process and the machine |
//!
//! # Design
//! Cells of a recorder are atomics that one thread writes with plain loads and stores: as cheap as ordinary memory, and
//! readable by the controller while a worker hangs in a system call. Buckets are numbered as in HdrHistogram (three
//! digits) and cover 64 bits, so every latency fits; sums of bytes and latencies have 128 bits.
//!
//! An operation belongs to the window in which it completes. Operations in flight at a window end have ages, which are
//! censored observations of the latency: ages count in the totals of a row and are in no histogram.
//!
//! Reading the system's counters takes milliseconds on a busy machine, so callers read the counters before releasing
//! the workers. At a window end the process counters are read first, so that the machine counters contain the process's
//! use. At the end of a run, the run's clock is compared with the system's clock, and a drift is reported.

mod backlog;
mod batches;
mod call_spans;
mod cells;
pub mod clock;
mod clock_kind;
mod collector;
pub mod compare;
mod completions;
pub mod control_groups;
mod counts;
pub mod curve;
mod event_effects;
mod gaps;
mod hosts;
mod in_flight;
mod interval;
mod interval_buffer;
mod lane_notes;
mod latency;
mod long_replies;
#[cfg(all(test, loom))]
mod models;
mod nfs_clients;
#[cfg(test)]
mod normal;
mod op_times;
mod outcome;
mod process_counts;
mod ranks;
mod recorder;
mod regression;
mod simulated;
mod stationarity;
mod student;
pub mod system;
mod upper_half;
mod warm_up;
mod window;
mod workers_done;

pub use backlog::{BacklogGrowth, WindowBacklog};
pub use batches::{Batches, Bounds, CONFIDENCE, Confidence, MIN_BATCHES};
pub use call_spans::{BusySpans, CallShape, CallSpans, Gap, STALL_NS};
pub use clock::{Clock, Nanos};
pub use clock_kind::ClockKind;
pub use collector::{Collector, WindowTotals};
pub use completions::{Completions, SlotSet};
pub use event_effects::{
    EventEffect, IntervalSummary, RECOVERED_SHARE, RECOVERY_INTERVALS, Successes, event_effects,
};
pub use gaps::{GapWatch, Gaps, RankStall, Stall, expected_max_gap, stalls};
pub use hosts::{HostCounts, StartFigures};
pub use in_flight::{InFlight, InFlightAges, Quantile, censored_quantile};
pub use interval::Interval;
pub use interval_buffer::RowSpec;
pub use latency::{ErrorCode, Latency, OpTotals, quantile_rank};
pub use long_replies::LongReplies;
pub use nfs_clients::{NfsClients, NfsSessions, NfsTransferSize};
pub use op_times::OpTimes;
pub use outcome::{
    CLIENT_SATURATED_SHARE, Cleanup, DrawnVariable, MeasuredWindow, Outcome, RanOut, RuledPhase,
    RuledWait, StageOutcome, Throttling, VariableStats,
};
pub use process_counts::{ProcessCounts, ScheduleCounts};
pub use ranks::{RankRow, RankStage, RankTotals, seven_number_summary};
pub use recorder::{LaneProgress, Recorder};
pub use simulated::{
    Bottleneck, BufferFigures, CacheFigures, ElementTotal, RowTime, SATURATED_UTILISATION,
    SimulatedWindow, StationFigures,
};
pub use stationarity::{
    IntervalCounts, MIN_INTERVALS, RateExcursion, RateJudgement, RateLevels, RateTrend,
    Stationarity,
};
pub use warm_up::{WarmUp, WarmUpCount, WarmUpFigure};
pub use window::{WindowBounds, WindowState};
pub use workers_done::WorkersDone;

/// Smallest latency that a histogram distinguishes from zero, in nanoseconds.
pub const MIN_LATENCY_NS: Nanos = 1;

/// Number of significant decimal digits of the latencies in histograms.
pub const SIGNIFICANT_DIGITS: u8 = 3;
