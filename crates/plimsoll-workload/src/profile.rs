//! Filebench's profiles: a text with `DEFAULTS` and `CONFIG` blocks becomes a list of runs.
//!
//! [`parse`] reads the text into a [`Profile`]; [`Profile::cases`] makes a [`Case`] of every
//! configuration, every value of its lists, every load of its function and every file system. What a case's workload is and
//! which parameters it has is known by a [`Library`], so that this crate knows no workload.
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
//! The table `functions` replaces the Perl functions of Filebench 1.x: most functions run a workload once; the other
//! functions are sweeps, each of which makes several cases. A workload that does not exist makes only its configuration
//! unavailable; a workload that cannot be read is an error.

mod cases;
mod filesystems;
mod functions;
pub mod library;
mod names;
mod overrides;
mod parse;
mod values;

pub use cases::{Case, CaseList, Library, MAX_CASES, NamedText, SkippedConfiguration, Unavailable};
pub use filesystems::directory_name;
pub use names::renamed_personality;
pub use overrides::{CaseFilesystem, ProfileOverrides};
pub use parse::{Profile, parse};
