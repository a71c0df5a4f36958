//! Studies: several steps on test beds, or on a server of the user, that answer one question.
//!
//! - `document`: `study.json`, with the steps of a study and the state of each step;
//! - [`report`]: the figures of the steps, and the steps as commands; `access_paths`: results of a profile over several
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
