//! Fuzz targets: each target reads any bytes as one kind of input of Plimsoll, such as a workload file, and panics if a
//! property of the input does not hold. `docs/testing.md` describes how targets are run.
//!
//! - [`targets`]: the targets, one module each, and their table;
//! - `fuzzer.rs`: the libFuzzer program of all targets (feature `libfuzzer`);
//! - `corpus/`: inputs of each target, which `tests/corpora.rs` passes to the target without a fuzzer;
//! - [`limits`]: maximum processor time and memory that a target may take for an input;
//! - `plans`, `refusals`, `documents`, `xdr`: properties of Plans, refusals, documents of results and encoded values;
//!   `scratch`: a directory for readers of files; `browser`: the results browser without a socket.

mod browser;
mod documents;
pub mod limits;
mod plans;
mod refusals;
mod scratch;
mod xdr;

/// Declares the modules of targets, and their table.
macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        /// A target: its name, which is also the name of its corpus, and the function that takes an input.
        pub type Target = (&'static str, fn(&[u8]));

        /// All fuzz targets, in alphabetical order.
        pub const ALL: &[Target] = &[$((stringify!($name), $name::run)),*];
    };
}

pub mod targets;

#[cfg(feature = "libfuzzer")]
pub use libfuzzer_sys;
