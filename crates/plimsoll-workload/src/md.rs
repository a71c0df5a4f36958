//! The patterns of MD-Workbench, mdtest and IOR: from command-line options to a Plan, and from the results of the ranks
//! to the output lines that scripts read.
//!
//! [`Arguments`] is the command line, [`Options`] has defaults filled in and contradictions refused, and [`lower`]
//! makes the Plan. During the run, [`Report`] formats the lines of each stage, and [`LatencyFiles`] stores the time of
//! every operation. [`Position`] is kept in a file between runs of single phases.

mod arguments;
mod latency;
mod lines;
pub(crate) mod lower;
pub(crate) mod numbers;
mod options;
mod results;
mod run_info;

pub use arguments::{Arguments, ColdKind, PatternName};
pub use latency::LatencyFiles;
pub use lines::Report;
pub(crate) use lower::{BENCHMARK, CLEANUP, PRECREATE};
pub use lower::{Part, lower, lower_part};
pub(crate) use lower::{lower_stage, row};
pub(crate) use options::MDTEST_HARD_SIZE;
pub(crate) use options::place_of;
pub use options::{ApiArguments, Io500, Options, PatternOptions, Phases, Place, Workbench};
pub use results::position_after;
pub use run_info::Position;
