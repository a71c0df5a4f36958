//! Filebench's profiles: a text with `DEFAULTS` and `CONFIG` blocks becomes a list of runs.
//!
//! [`parse`] reads the text into a [`Profile`]. [`Profile::cases`] makes a [`Case`] of every combination of a
//! configuration, a value from each of its lists, a load of its function, and a file system. A [`Library`] supplies the
//! parameters of workloads, so this module is independent of workloads.
//!
//! ```
//! use plimsoll_plan::Parameter;
//! use plimsoll_workload::profile::{ProfileOverrides, Library, Unavailable, parse};
//!
//! struct One;
//! impl Library for One {
//!     fn parameters(&self, _: &str) -> Result<Vec<Parameter>, Unavailable> {
//!         Ok(vec![Parameter {
//!             name: "nthreads".into(),
//!             value: "1".into(),
//!             default: "1".into(),
//!             meaning: String::new(),
//!         }])
//!     }
//!     fn parameters_of_all(&self) -> Vec<String> {
//!         vec![]
//!     }
//! }
//!
//! let text = "DEFAULTS { runtime = 60; dir = /mnt; filesystem = zfs; }
//! CONFIG read { function = generic; personality = randomread; nthreads = 1, 16; }";
//! let listed = parse(text, "my.prof")?.cases(&One, &ProfileOverrides::default())?;
//! let names: Vec<&str> = listed.cases.iter().map(|c| c.name.as_str()).collect();
//! assert_eq!(names, ["read,nthreads=1", "read,nthreads=16"]);
//! # Ok::<(), plimsoll_diagnostics::Diagnostics>(())
//! ```
//!
//! The table `functions` replaces the Perl functions of Filebench 1.x: most functions run a workload once; the others
//! are sweeps, which make several cases. A missing workload makes only its configuration unavailable; an unreadable
//! workload is an error.

mod cases;
mod filesystems;
mod functions;
mod names;
mod overrides;
mod parse;
mod values;

pub use cases::{Case, CaseList, Library, MAX_CASES, SkippedConfiguration, Unavailable};
pub use filesystems::directory_name;
pub use names::renamed_personality;
pub use overrides::{CaseFilesystem, ProfileOverrides};
pub use parse::{Profile, parse};

use crate::builtins::{Builtin, Builtins};

/// Built-in profiles: the profiles of Filebench, without the work directory, results directory and file system of the
/// Filebench author, and the profile `nfs4-opens` for the plimsoll-testbed study of the same name.
pub static BUILTINS: Builtins = Builtins(include!(concat!(env!("OUT_DIR"), "/prof.rs")));
