//! Fuzz targets: each takes any bytes as one of Plimsoll's inputs, and panics if what must hold of them does
//! not. docs/testing.md says how they are run.
//!
//! - [`targets`]: the targets, one module each, and their table;
//! - `fuzzers/`: a program with libFuzzer for each (feature `libfuzzer`);
//! - `corpus/`: inputs of each target, which `tests/corpora.rs` gives it without a fuzzer;
//! - [`limits`]: time and memory that an input may take;
//! - `plans`, `refusals`, `documents`, `xdr`: what must hold of Plans, refusals, documents of results and
//!   encoded values; `scratch`: a directory for readers of files; `browser`: the results browser without a
//!   socket.

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

        /// A target: its name, which is that of its corpus, and what takes an input.
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
