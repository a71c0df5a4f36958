//! Operation mixes: a business metric, its processes, and the operations of each process.
//!
//! [`parse`] parses a TOML text (`docs/mix.md` describes the format, [`schema`] returns its JSON schema), and [`lower`]
//! makes a [`plimsoll_plan::Plan`] of the workload for a load and a scale. [`BUILTINS`] are the built-in workloads,
//! and [`netmist`] parses the custom workload files of SPEC's load generator.
//!
//! ```
//! use plimsoll_workload::mix::{BUILTINS, Context, lower, parse};
//! use plimsoll_plan::{Overrides, SourceKind};
//!
//! let builtin = BUILTINS.find("vda").expect("built in");
//! let workload = parse(builtin.text, builtin.name)?;
//! let context = Context {
//!     kind: SourceKind::Builtin,
//!     temp_dir: "/tmp/plimsoll-1234".into(),
//! };
//! let overrides = Overrides {
//!     load: Some(10),
//!     ..Overrides::default()
//! };
//! let plan = lower(&workload, &overrides, &context)?;
//! // Two processes per stream.
//! assert_eq!(plan.workers(), 20);
//! # Ok::<(), plimsoll_diagnostics::Diagnostics>(())
//! ```
//!
//! Netmist's custom workload files are converted to the model of TOML workloads before lowering. Each turnover file
//! belongs to one worker, so workers share only the lengths of data files, and ranks do not communicate. Operation
//! starts have a row (`OpKind::Start`) whose service time is the start delay, so windows, intervals and the merging of
//! ranks need no code for starts.

mod lower;
pub mod model;
pub mod netmist;

mod parse;
mod settings;
mod values;

pub use lower::{Context, lower};
pub use parse::{Workload, parse};
pub use values::{Size, Sizes, Time};

use crate::builtins::{Builtin, Builtins};

/// Built-in operation mixes: the TOML files of `workloads`.
pub static BUILTINS: Builtins = Builtins(include!(concat!(env!("OUT_DIR"), "/toml.rs")));

/// Returns the JSON schema of a workload file as text.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(model::File);
    let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    format!("{text}\n")
}

/// Formats a workload as TOML, without comments.
///
/// # Errors
/// If a number has no TOML form, because it is not finite or does not fit in 64 signed bits.
pub fn to_toml(file: &model::File) -> Result<String, String> {
    toml::to_string(file).map_err(|e| e.to_string())
}
