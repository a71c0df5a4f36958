//! mdtest: from the options of mdtest 4.0 to a Plan, and from the results of the ranks to mdtest's output lines.
//!
//! [`Arguments`] is the command line, [`Options`] has defaults filled in and contradictions refused, [`lower`] makes the
//! Plan, and [`Report`] formats the lines of a run.

mod arguments;
mod lines;
mod lower;
mod options;

pub use arguments::Arguments;
pub use lines::Report;
pub use lower::lower;
pub use options::{Options, Phases};
