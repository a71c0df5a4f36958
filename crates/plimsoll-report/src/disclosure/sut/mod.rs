//! The user's description of the system under test: the file `sut.toml`.
//!
//! It has a table for each section of both published forms. [`Sut::parse`] reads one, [`template`]
//! writes one to complete. What is not filled in is reported as not stated.

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
