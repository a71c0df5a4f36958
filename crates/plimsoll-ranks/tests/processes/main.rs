//! Ranks that are real processes: local copies of the program, and ranks of hosts. The tests of ranks under `mpiexec`
//! are in `plimsoll`.
//!
//! With the first argument `as-rank` or `rank`, this program is a rank (`program`). Otherwise the program runs the
//! tests, which start the program as ranks.

mod assigned;
mod hosts;
mod local;
mod program;
mod run;

use libtest_mimic::{Arguments, Trial};
use plimsoll_ranks::JoinMpi;
use std::process::ExitCode;

/// First argument of a rank.
pub const AS_RANK: &str = "as-rank";
/// First argument of a rank that receives an assignment from the process that started it.
pub const ASSIGNED: &str = plimsoll_ranks::RANK_COMMAND;
/// First argument of a process that tries to connect to hosts.
pub const TRY_HOSTS: &str = "try-hosts";

/// `None`: no test here joins ranks by MPI.
pub const JOIN_MPI: Option<JoinMpi> = None;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first().map(|(a, b)| (a.as_str(), b)) {
        Some((AS_RANK, scenario)) => return program::run(scenario),
        Some((ASSIGNED, _)) => return assigned::run_assigned(),
        Some((TRY_HOSTS, _)) => return assigned::try_hosts(),
        _ => {}
    }
    let trials = [local::trials(), hosts::trials()].into_iter().flatten();
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// A test that fails by panicking.
fn trial(name: impl Into<String>, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}
