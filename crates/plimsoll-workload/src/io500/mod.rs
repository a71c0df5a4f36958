//! IO500's configuration files, and the phases of IO500 as Plans.
//!
//! [`Config`] has the values of a file, [`Request::new`] refuses what the program does not support, and
//! [`Request::plan`] makes the Plan of a phase from the numbers that earlier phases left.

mod config;
mod options;
mod phases;
mod request;

pub use config::Config;
pub use phases::{Mode, PHASES, Phase};
pub use request::{Circumstances, Earlier, Request};
