//! The system under test as a person describes it: the file `sut.toml`.
//!
//! It has a table for each section of both published forms, so that a disclosure can say what was
//! measured. [`Sut::parse`] reads one, [`template`] writes one to begin with. What is not filled in
//! is said to be not stated; nothing is made up.

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
