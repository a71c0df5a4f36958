//! MD-Workbench's pattern and those of mdtest and IOR: from options to a Plan, and from what the
//! ranks did to the lines that scripts read.
//!
//! [`Arguments`] is the command line, [`Options`] what it means, [`lower`] makes the Plan of it.
//! While the Plan runs, [`Report`] turns each stage into lines, and [`LatencyFiles`] keeps the
//! time of every operation. [`RunInfo`] is the file by which phases that are run one at a time
//! know where they are.

mod arguments;
mod latency;
mod lines;
mod lower;
mod numbers;
mod options;
mod results;
mod run_info;

pub use arguments::{Arguments, ColdKind, PatternName};
pub use latency::{LatencyError, LatencyFiles};
pub use lines::Report;
pub use lower::lower;
pub use options::{Ior, Mdtest, Options, PatternOptions, Phases, Place, Workbench};
pub use results::position_after;
pub use run_info::{Position, RunInfo, RunInfoError};
