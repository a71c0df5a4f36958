//! Front ends: each reads a workload language and lowers a workload to a [`plimsoll_plan::Plan`].
//!
//! - [`wml`]: Filebench's Workload Model Language;
//! - [`mix`]: operation mixes in TOML, and netmist's custom workload files;
//! - [`fio`]: the job files and command lines of fio;
//! - [`io500`]: the configuration files of IO500;
//! - [`md`]: the options of MD-Workbench, mdtest and IOR;
//! - [`profile`]: Filebench's profiles, which list runs of workloads.
//!
//! Front ends are independent of targets and of the engine. Errors are [`plimsoll_diagnostics::Diagnostics`], which
//! show the place in the text.

mod builtins;
pub mod fio;
mod ini;
pub mod io500;
pub mod ior;
pub mod md;
pub mod mdtest;
pub mod mix;
pub mod profile;
mod report;
pub mod wml;

pub use builtins::{Builtin, Builtins, NamedText};
