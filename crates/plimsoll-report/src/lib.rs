//! Everything a person reads of a run. Each format is a module of its own, fed a
//! [`Run`](plimsoll_results::Run); nothing here measures or computes a figure.

pub mod compare;
pub mod csv;
pub mod curve;
pub mod filebench;
pub mod find;
pub mod live;
pub mod markdown;
pub mod percentiles;
pub mod points;
pub mod profile;
pub mod study;
pub mod terminal;

mod annotations;
mod format;
mod mix;
pub mod stages;
pub mod standstill;
mod table;
mod text;

pub use annotations::annotations;
pub use format::{latency, mib_per_s, rate};
