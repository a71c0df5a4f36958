//! Runs a Plan on a target: populates filesets, starts workers on their lanes, measures, cleans.
//!
//! [`preflight`] says what a run would need and whether it would begin; [`run`] runs. What
//! happens meanwhile is told to an [`Observer`].

mod ends;
mod outcome;
mod run;
mod shared;
mod store;
mod sync;
mod worker;

pub use outcome::{
    Cleanup, Drawn, Failure, Outcome, Populated, ProcessFigures, RanOut, Reason, StageOutcome,
    VariableStats, Window,
};
pub use run::{
    ClockKind, CommandEnd, EngineError, Event, Limits, Observer, PhaseInfo, Preflight, Settings,
    Stop, clean, clean_commands, kill_commands, leave, preflight, run, run_command, run_ranks,
};
pub use store::{FilesetState, Hand};
pub use worker::Sample;
