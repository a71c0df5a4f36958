//! Ranks that are real processes: copies that the program starts. Those of `mpiexec` are tests of `plimsoll-mpi`.
//!
//! Started with `as-rank`, this program is what each rank runs (`program`); otherwise it runs the
//! tests, which start it.

mod local;
mod program;
mod run;

use libtest_mimic::{Arguments, Trial};
use plimsoll_ranks::JoinMpi;
use std::process::ExitCode;

/// First argument of a rank.
pub const AS_RANK: &str = "as-rank";

/// Ranks are joined without MPI.
pub const JOIN_MPI: Option<JoinMpi> = None;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((AS_RANK, scenario)) = arguments.split_first().map(|(a, b)| (a.as_str(), b)) {
        return program::run(scenario);
    }
    libtest_mimic::run(&Arguments::from_args(), local::trials()).exit_code()
}

/// A test that fails by panicking.
fn trial(name: impl Into<String>, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}
