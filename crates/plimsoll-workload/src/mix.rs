//! Workloads as operation mixes: business metrics, their processes, and the operations of each.
//!
//! [`parse`] parses a TOML text (`docs/mix.md` describes it, [`schema`] is its JSON schema),
//! [`lower`] makes a [`plimsoll_plan::Plan`] of it for a load and a scale. [`library`] contains the
//! built-in workloads, [`netmist`] parses the custom workload files of SPEC's load generator.
//!
//! ```
//! use plimsoll_workload::mix::{Context, library, lower, parse};
//! use plimsoll_plan::{Overrides, SourceKind};
//!
//! let builtin = library::find("vda").expect("built in");
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
//! Netmist's custom workload files are converted to the same model before lowering. Turnover files belong to one worker,
//! so workers share only the lengths of data files, and ranks do not communicate. The start of an operation
//! has a row (`OpKind::Start`) whose service time is the start delay, so windows, intervals and the merging of ranks need
//! no code for starts.

pub mod library;
mod lower;
pub mod model;
pub mod netmist;

mod parse;
mod settings;
mod values;

pub use lower::{Context, lower};
pub use parse::{Workload, parse};
pub use values::{Size, Sizes, Time};

/// Returns the JSON schema of a workload as text.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(model::File);
    let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    format!("{text}\n")
}

/// Returns the TOML text of a workload, without comments.
///
/// # Errors
/// For numbers that TOML does not have: not finite, or beyond 64 signed bits.
pub fn to_toml(file: &model::File) -> Result<String, String> {
    toml::to_string(file).map_err(|e| e.to_string())
}
