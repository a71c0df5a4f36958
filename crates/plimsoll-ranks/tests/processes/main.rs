//! Ranks that are real processes: copies that the program starts, and, with the feature `mpi`, the
//! processes of `mpiexec`.
//!
//! Started with `as-rank`, this program is what each rank runs (`program`); otherwise it runs the
//! tests, which start it.

mod local;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "mpi")]
mod mpiexec;
mod program;
mod run;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

/// First argument of a rank.
pub const AS_RANK: &str = "as-rank";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((AS_RANK, scenario)) = arguments.split_first().map(|(a, b)| (a.as_str(), b)) {
        return program::run(scenario);
    }
    let trials = [
        local::trials(),
        #[cfg(feature = "mpi")]
        mpi::trials(),
    ];
    libtest_mimic::run(
        &Arguments::from_args(),
        trials.into_iter().flatten().collect(),
    )
    .exit_code()
}

/// A test that fails by panicking.
fn trial(name: impl Into<String>, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}
