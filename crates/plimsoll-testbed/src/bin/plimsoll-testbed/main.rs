//! `plimsoll-testbed` starts real storage systems on this machine, loads them with `plimsoll`, injects faults, ends the
//! systems, and runs studies. `plimsoll testbed` executes `plimsoll-testbed`.
//!
//! - `cli`: the arguments; `documents`: manual pages, completions and the reference, which are generated from the
//!   arguments;
//! - `beds`: commands on beds; `list`: the kinds; `on`: commands of `plimsoll` on a bed, with the bed's targets
//!   (`placeholders`) and its description (`description`);
//! - `study`: several commands on several beds, and their report;
//! - `benchmark`: the program `plimsoll`; `exit`: exit codes; `signals`: interrupts.

mod beds;
mod benchmark;
mod cli;
mod description;
mod documents;
mod exit;
mod list;
mod on;
mod placeholders;
mod signals;
mod study;

use clap::error::Error;
use clap::{CommandFactory, FromArgMatches};
use cli::{Cli, TestbedCommand};
use exit::Exit;
use plimsoll_report::console::{self, Stream};
use plimsoll_testbed::BedError;
use std::ffi::OsString;
use std::process::ExitCode;

/// Prints the output of a command to standard output.
fn print(text: &str) -> Result<Exit, BedError> {
    console::out(text)
        .map(|()| Exit::DONE)
        .map_err(|e| BedError::failed("cannot write to standard output", e))
}

fn main() -> ExitCode {
    let line: Vec<OsString> = std::env::args_os().collect();
    let exit = match arguments(&line) {
        Ok(arguments) => run(&arguments.command, &line).unwrap_or_else(|e| {
            console::err(&format!("error: {e}\n"));
            Exit::of_error(&e)
        }),
        Err(e) => explain(&e),
    };
    match exit {
        Exit::DONE if console::has_lost_output() => {
            console::err("error: cannot write all output to standard output\n");
            Exit::FAILED.into()
        }
        exit => exit.into(),
    }
}

fn run(command: &TestbedCommand, line: &[OsString]) -> Result<Exit, BedError> {
    match command {
        TestbedCommand::List { format } => list::run(*format),
        TestbedCommand::Up(args) => beds::up(args),
        TestbedCommand::Status(args) => beds::status(args),
        TestbedCommand::Fault { name, action } => beds::fault(name, action),
        TestbedCommand::Logs { name, nodes } => beds::logs(name, nodes),
        TestbedCommand::Exec { name, command } => beds::exec(name, command),
        TestbedCommand::On { name, command } => on::on(name, command),
        TestbedCommand::With { up, command } => on::with(up, command),
        TestbedCommand::Down { names, all } => beds::down(names, *all),
        TestbedCommand::Study(command) => study::run(command, line),
        TestbedCommand::Keep { dir } => Ok(match plimsoll_testbed::keep(dir) {
            ExitCode::SUCCESS => Exit::DONE,
            _ => Exit::FAILED,
        }),
        TestbedCommand::Man { dir } => documents::man(dir),
        TestbedCommand::Completions { shell } => documents::completions(*shell),
        TestbedCommand::Reference => documents::reference(),
    }
}

/// Reads a command line.
fn arguments(line: &[OsString]) -> Result<Cli, Error> {
    let mut definition = Cli::command().term_width(Stream::Out.help_width());
    let mut matches = definition.try_get_matches_from_mut(line)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|e| e.format(&mut definition))
}

/// Prints the argument error, or the help that the user requested.
fn explain(e: &Error) -> Exit {
    let stream = match e.use_stderr() {
        true => Stream::Err,
        false => Stream::Out,
    };
    let text = match stream.color() {
        true => e.render().ansi().to_string(),
        false => e.render().to_string(),
    };
    match stream {
        // A closed pipe is not an error.
        Stream::Out => _ = console::out(&text),
        Stream::Err => console::err(&text),
    }
    match e.exit_code() {
        0 => Exit::DONE,
        _ => Exit::USAGE,
    }
}
