//! Execution of runs and of series of runs, with their results, hooks and events.
//!
//! A run is the execution of a Plan on a target by all ranks ([`RunContext`]). A series makes one run after another:
//! repeated runs, load curves, searches for the load line, profiles, paired comparisons. [`drive`] is the loop for all
//! kinds of series; the rule of a kind is a [`Strategy`](plimsoll_results::Strategy), a function from the runs so far to
//! the next run.
//!
//! The crate does not depend on a console, signals or a command line: the surrounding program, or the simulator,
//! implements [`Host`].
//!
//! - `run`, `conductor`: one run with its results, hooks and events: `results_writer`, `commands`, `events`;
//! - `drive`, `ahead`: the driver loop, and processes for independent concurrent runs (`process_pool`); `prepare`: the
//!   commands and the wait before a run;
//! - `resume`, `system_text`: checks before a series is resumed;
//! - `communicator`: the ranks.
//!
//! # Design
//! The results of a run are published before any file of the run is removed, and `run.json` is replaced if removal
//! changes the outcome. If a user's command follows the last phase, results are published before the command, with a
//! note that the run had not ended.
//!
//! Events (`--event`) wait by the clock of the run, so events, windows and intervals have times of the same clock.
//! The workers wait until `Event::Started` is handled, so the thread that waits for events starts before the
//! load. When an interval ends, the events that have begun are in `live.json` before the rows of the
//! interval are written: a reader of the rows finds the event of every row.
//!
//! A run that was written but not listed, because the program was killed, is listed when the series is resumed. A
//! series whose runs share files (`Strategy::shares_files`) holds the claim of the work directory between runs
//! (`Settings::holds`), which keeps other processes out of the directory.

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
mod prepare;
mod process_pool;
mod results_writer;
mod resume;
mod run;
mod system_text;

pub use commands::RunFacts;
pub use communicator::{Communicator, SilentObserver};
pub use conductor::Conductor;
pub use config::RunConfig;
pub use drive::{drive, follow, make_alone, release_members};
pub use error::SeriesError;
pub use host::{Host, ListedRun, RunBegin, RunView, StateChange};
pub use process_pool::{EndedProcess, ProcessPool, describe_end, process_count};
pub use results_writer::Written;
pub use resume::resume;
pub use run::{
    RunContext, environment, outcome_or_refusal, refuse_among_files, refuse_results_among_files,
    run_without_results,
};
pub use system_text::fingerprint;

/// Exit code with which a `make-run` process reports that its run was refused.
pub const REFUSED_EXIT_CODE: i32 = 2;
