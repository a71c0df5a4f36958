//! Deterministic simulation testing of Plimsoll itself.
//!
//! From a seed, [`Scenario::draw`] draws a workload (closed loops, a mix or a pattern), a group of ranks, a network, a
//! target, with files or without, faults of the target, a disk for the results and its faults, and disturbances of the
//! processes: interrupts, kills, stops, cut connections, jumps of the time of day. [`run`] executes the scenario with
//! the real engine, ranks, lanes, recorder and results in a [`Simulation`](plimsoll_runtime::Simulation), and [`check()`]
//! compares the measurements with the rules that follow from the scenario. A [`CurveScenario`] has several loads on one
//! data set, and is resumed after disturbances. The same seed gives the same bytes, so a seed is sufficient to
//! reproduce a failure, and [`Case::shrink`] finds the smallest scenario that still fails.
//!
//! The name and the model are from TigerBeetle's simulator.

mod case;
mod check;
mod concurrent;
mod curve;
mod ends;
mod execution;
mod files;
mod pattern;
mod results;
mod scenario;
mod sessions;
mod shrink;
mod stalls;
mod violation;
mod workload;

pub use case::Case;
pub use check::check;
pub use concurrent::ConcurrentEnd;
pub use curve::{
    Attempt, AttemptEnd, AttemptScenario, CurveExecution, CurveScenario, MeasuredPoint,
    check_curve, run_curve,
};
pub use execution::{Execution, RankEnd, run};
pub use files::{FilesEnd, FilesSpec};
pub use pattern::PatternSpec;
pub use results::{Found, ReadRun, ResultsEnd, ResultsLog};
pub use scenario::{Disturbance, DisturbanceKind, Scenario};
pub use shrink::shrink;
pub use violation::Violation;
pub use workload::{Load, MixSpec, Step, ThreadsSpec, WorkloadSpec};
