//! Runs a Plan on a target: populates filesets, starts workers on their lanes, measures, cleans up.
//!
//! [`preflight`] determines the requirements of a run and whether the run may begin; [`run`] executes the run, and
//! reports events to an [`Observer`].
//!
//! | modules, lowest layer first | content |
//! | --- | --- |
//! | `program` | groups' programs, compiled for workers |
//! | `schedule` | when events are due, and which events are dropped |
//! | `sync`, `file_pool` | waiting for other workers; which files exist and are idle |
//! | `stage_state`, `worker_ends`, `run_state` | state that the workers of a process share |
//! | `worker` | a worker: `ops` of sequences, operation `mix`es, `pattern`s; `context` times operations |
//! | `run::{preflight, marker, work_dir, setup_pool, tree, populate, removal, clean}` | files around the load |
//! | `run::{lanes, load_phase, team}` | the load: threads, windows, agreement of ranks |
//! | `run::{verdict, criteria, stalls}` | reasons why a result is invalid |
//! | `run::{runner, finish}` | a run from its first phase to its last |
//!
//! # Design
//! The order at the end of a run is window, results, removal: the outcome has its verdict and is passed to
//! [`Observer::measured`] before a file is removed. [`Stop`] therefore has two levels, the run and the removal. The
//! removal does not affect the verdict.
//!
//! Preparation (choosing a file, composing its path, drawing a size) happens before the first clock reading of an
//! operation, recording after the second. Operations that never wait are plain calls on a target that completes at once
//! (`worker::ops::fast_path`); all other operations are futures.
//!
//! Every phase ends with an agreement of the ranks; a failure takes precedence over the stop that the failure caused.
//! Entries of a fileset whose files come and go are divided among ranks (`RankPart`), so that the process of an entry
//! knows whether the entry's file exists. When a rank is lost, rank 0 removes the files only after the other processes
//! have ended. MPI does not report the end of a process, so with MPI the files are left to `plimsoll clean`.

mod file_pool;
#[cfg(all(test, loom))]
mod models;
mod permutation;
mod program;
mod run;
mod run_state;
mod schedule;
mod stage_state;
mod sync;
mod tree_names;
mod worker;
mod worker_ends;
mod worker_id;

pub use file_pool::{BlockCursor, FilesetState};
pub use plimsoll_measure::{ClockKind, Outcome};
pub use run::{
    CommandEnd, EngineError, Event, Limits, Observer, PhaseInfo, Preflight, Settings, Stop, clean,
    clean_commands, direct_io, end_claim, is_left_by_run, kill_commands, preflight, run,
    run_command, run_ranks,
};
pub use stage_state::Sample;
