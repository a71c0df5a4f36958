//! Fuzz targets: each target takes any bytes as one of Plimsoll's inputs, and panics if a property of the input does
//! not hold. `docs/testing.md` describes how targets are run.
//!
//! - [`targets`]: the targets, one module each, and their table;
//! - `fuzzers/`: a libFuzzer program for each target (feature `libfuzzer`);
//! - `corpus/`: inputs of each target, which `tests/corpora.rs` passes to the target without a fuzzer;
//! - [`limits`]: maximum time and memory for an input;
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

        /// All targets.
        pub const ALL: &[Target] = &[$((stringify!($name), $name::run)),*];
    };
}

pub mod targets;

#[cfg(feature = "libfuzzer")]
pub use libfuzzer_sys;

/// The program of a target.
#[cfg(feature = "libfuzzer")]
#[macro_export]
macro_rules! fuzzer {
    ($target:ident) => {
        $crate::libfuzzer_sys::fuzz_target!(|data: &[u8]| {
            $crate::limits::within(|| $crate::targets::$target::run(data));
        });
    };
}
