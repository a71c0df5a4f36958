//! Runs and series of runs.
//!
//! A run is a Plan on a target, by all ranks ([`RunContext`]). A series makes one run after another: repeated runs, load
//! curves, searches for the load line, profiles. [`drive`] is the one loop for all kinds; the rule of a kind is a
//! [`Strategy`](plimsoll_results::Strategy), a function from the runs so far to the next run.
//!
//! Nothing here knows a console, a signal or a command line: the program around a run implements [`Host`], and so does the
//! simulator.
//!
//! - `run`, `conductor`: one run, and everything around it: `results_writer`, `commands`, `events`;
//! - `drive`, `ahead`: the loop, and processes that make independent runs at the same time (`process_pool`);
//! - `resume`, `system_text`: checks before a series is resumed;
//! - `communicator`: the ranks; `loads`: lists of loads as the user writes them.
//!
//! # Design
//! Results are published before a file of the run is removed, and `run.json` is replaced if the removal changes
//! what it says. If a command of the user follows the last phase, results are published before the command, with a
//! note that the run had not ended.
//!
//! Events (`--event`) wait by the clock of the run, so events, windows and intervals have times of the same clock.
//! The workers wait until `Event::Started` is handled, so the thread that waits for events starts before the
//! load. When an interval ends, the events that have begun are in `live.json` before the rows of the
//! interval are written: a reader of the rows finds the event of every row.
//!
//! A run that was written but not listed, because the program was killed, is listed when the series is resumed. A
//! kind whose runs share files (`Strategy::shares_files`) keeps the claim of the work directory between two runs
//! (`Settings::holds`), so that no other process uses the directory meanwhile.

mod ahead;
mod command_output;
mod commands;
mod communicator;
mod conductor;
mod config;
mod drive;
mod error;
pub mod events;
mod host;
mod loads;
mod measured_run;
mod process_pool;
mod results_writer;
mod resume;
mod run;
mod system_text;

pub use commands::RunFacts;
pub use communicator::{Communicator, SilentObserver};
pub use conductor::Conductor;
pub use config::RunConfig;
pub use drive::{SeriesEnd, drive, follow, make_alone, release_members};
pub use error::SeriesError;
pub use host::{Host, ListedRun, RunBegin, RunView, StateChange};
pub use loads::{Loads, MAX_LOAD, MAX_POINTS};
pub use process_pool::{EndedProcess, ProcessPool, describe_end, process_count};
pub use results_writer::Written;
pub use resume::resume;
pub use run::{
    RunContext, below, environment, outcome_or_refusal, refuse_among_files,
    refuse_results_among_files, run_without_results,
};
pub use system_text::fingerprint;

/// Exit code of a process of this program whose run was refused.
pub const REFUSED_EXIT_CODE: i32 = 2;
