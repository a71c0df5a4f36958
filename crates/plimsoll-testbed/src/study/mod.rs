//! Studies: several steps on test beds, or on a server of the user, that answer one question.
//!
//! - `document`: `study.json`, which says what a study does and what has been done;
//! - [`report`]: what the steps measured, and the steps as commands; `access_paths`: results of a profile over several
//!   access paths to a server.
//!
//! The program `plimsoll-testbed` designs studies and does their steps.

mod access_paths;
mod document;
pub mod report;

pub use document::{
    StepState, StudyAction, StudyBed, StudyDir, StudyResults, StudyState, StudyStep, StudyWriter,
    results_of,
};
