//! Ranks that `mpiexec` started, of the library this test is built with: the same program as that of ranks without MPI.
//!
//! Started with `as-rank`, this program is what each rank runs (`program`); otherwise it runs the tests, which start it.
//! Without the feature `mpi` there are none.

#[cfg(feature = "mpi")]
#[path = "../../src/mpi.rs"]
mod join;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "mpi")]
mod mpiexec;
#[cfg(feature = "mpi")]
#[path = "../../../plimsoll-ranks/tests/processes/program.rs"]
mod program;
#[cfg(feature = "mpi")]
#[path = "../../../plimsoll-ranks/tests/processes/run.rs"]
mod run;

#[cfg(feature = "mpi")]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, scenario)) if first == AS_RANK => program::run(scenario),
        _ => libtest_mimic::run(&libtest_mimic::Arguments::from_args(), mpi::trials()).exit_code(),
    }
}

#[cfg(not(feature = "mpi"))]
fn main() {}

/// First argument of a rank.
#[cfg(feature = "mpi")]
pub const AS_RANK: &str = "as-rank";

/// Ranks are joined by MPI.
#[cfg(feature = "mpi")]
pub const JOIN_MPI: Option<plimsoll_ranks::JoinMpi> = Some(join::join);
