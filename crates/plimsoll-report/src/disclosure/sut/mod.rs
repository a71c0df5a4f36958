//! Description of the system under test by the user: the file `sut.toml`.
//!
//! The file has a table for each section of both published forms. [`Sut::parse`] reads a description, [`template`]
//! writes a `sut.toml` to complete. Reports show texts that are not filled in as not stated.

mod machine;
mod model;
mod parse;
mod stated;
mod template;

#[cfg(test)]
mod tests;

pub use model::{
    Diagram, Filesystems, LoadGeneration, LoadGenerator, Material, Memory, Notes, Parameter,
    Processor, Product, Software, Storage, Sut, Switch, Transport, Tuning,
};
pub use template::template;

/// The environment variable with the file that describes the system under test, for commands that make runs.
pub const VARIABLE: &str = "PLIMSOLL_SUT";
