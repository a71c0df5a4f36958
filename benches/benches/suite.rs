//! `cargo bench`: runs the program of this package and passes its arguments on.
//!
//! The suite is a program of its own because parts of it measure themselves in fresh processes,
//! and because a test runs it too.

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // Cargo adds `--bench` to the arguments of every program of `cargo bench`.
    let arguments = std::env::args_os().skip(1).filter(|a| a != "--bench");
    let status = Command::new(env!("CARGO_BIN_EXE_plimsoll-benches"))
        .args(arguments)
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("cannot start the suite: {e}");
            ExitCode::FAILURE
        }
    }
}
