//! The loop of series, on a target that does nothing and in virtual time.
//!
//! With the argument `make-run`, this program makes one run of a series, like `plimsoll make-run`; otherwise the program
//! runs the tests. Series of the tests start this program for simultaneous runs.

mod alone;
mod fixtures;
mod host;
#[path = "../../plimsoll-results/tests/fixtures.rs"]
#[expect(dead_code, reason = "other test programs use the rest")]
mod results_fixtures;
mod resumed;
mod series;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "make-run") {
        return alone::make_run(&arguments[1..]);
    }
    let trials = [series::trials(), resumed::trials(), alone::trials()];
    let trials = trials.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A test that fails by panicking.
fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// Defines the function `trials` of a module, which returns the given functions as tests.
#[macro_export]
macro_rules! trials {
    ($($test:ident),* $(,)?) => {
        pub fn trials() -> Vec<libtest_mimic::Trial> {
            let module = module_path!().rsplit("::").next().unwrap_or_default();
            vec![$($crate::trial(&format!("{module}::{}", stringify!($test)), $test)),*]
        }
    };
}
