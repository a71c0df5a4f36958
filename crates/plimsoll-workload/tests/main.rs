//! Tests of the front ends, through their public functions.

mod fio;
mod io500;
mod ior;
mod md;
mod mdtest;
mod mix;
mod profile;
mod tables;
mod wml;

use clap::{Args, Command};

/// Parses a command line as the commands `md`, `ior` and `mdtest` do.
fn arguments<T: Args>(line: &str) -> Result<T, String> {
    let command = T::augment_args(Command::new("plimsoll")).args_override_self(true);
    let words = std::iter::once("plimsoll").chain(line.split_whitespace());
    let matches = command.try_get_matches_from(words);
    T::from_arg_matches(&matches.map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}
