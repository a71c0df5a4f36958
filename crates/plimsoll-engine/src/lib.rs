//! Runs a Plan on a target: populates filesets, starts workers on their lanes, measures, cleans.
//!
//! [`preflight`] says what a run would need and whether it would begin; [`run`] runs. What
//! happens meanwhile is told to an [`Observer`].

mod file_pool;
mod outcome;
mod program;
mod run;
mod run_state;
mod stage_state;
mod sync;
mod tree_names;
mod worker;
mod worker_ends;
mod worker_id;

pub use file_pool::{BlockCursor, FilesetState};
pub use outcome::{Cleanup, DrawnVariable, Outcome, RanOut, StageOutcome, VariableStats, Window};
pub use plimsoll_measure::ClockKind;
pub use run::{
    CommandEnd, EngineError, Event, Limits, Observer, PhaseInfo, Preflight, Settings, Stop, clean,
    clean_commands, kill_commands, preflight, release_claim, run, run_command, run_ranks,
};
pub use stage_state::Sample;
