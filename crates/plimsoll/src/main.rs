//! Command line program of Plimsoll: parses the arguments, calls the other crates, and returns the exit code.
//!
//! - `cli`: the types of the arguments, by command; `cli/values.rs` parses the values of options.
//! - `commands`: one module per subcommand.
//! - `workload`: finds and parses workloads, with one module per language.
//! - `io500`: the phases of an IO500-style suite.
//! - `new_series`: the series described by the arguments; `load_plan`: the Plan at one load. `plimsoll-series` measures
//!   the runs.
//! - Host of a series: `console_host` (console output), `progress_display` (a run in a terminal), `signals`
//!   (interrupts).
//! - `companion`: commands that are separate programs `plimsoll-NAME`.
//! - Input and output: `series_text`, `output_options`, `exit`, `new_file`,
//!   `communicator` (ranks), `hosts` (other machines).

mod cli;
mod commands;
mod communicator;
mod companion;
mod console_host;
mod exit;
mod hosts;
mod io500;
mod io_choice;
mod load_plan;
#[cfg(feature = "mpi")]
mod mpi;
mod new_file;
mod new_series;
mod output_options;
mod progress_display;
mod series_text;
mod signals;
mod vary;
mod workload;

use clap::FromArgMatches;
use clap::error::Error;
use cli::{Cli, Command, DocsCommand, ResultsCommand, SystemsCommand, WorkloadsCommand};
use exit::{CommandError, Exit};
use plimsoll_report::console::{self, Stream};
use std::ffi::OsString;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: plimsoll_runtime::NotingAllocator = plimsoll_runtime::NotingAllocator;

fn main() -> ExitCode {
    if let Err(e) = plimsoll_runtime::prepare_for_memory_limits() {
        console::err(&format!("error: cannot catch signals: {e}\n"));
        return Exit::Failed.into();
    }
    if plimsoll_ranks::is_output_forwarded() {
        console::set_forwarded();
    }
    let line: Vec<OsString> = std::env::args_os().collect();
    let mut arguments = match arguments(&line) {
        Ok(arguments) => arguments,
        Err(e) => {
            return match companion::execute(&line, &e) {
                Some(failure) => report(failure),
                None => explain(&e),
            };
        }
    };
    // Only rank 0 displays anything.
    let is_assigned = matches!(arguments.command, Command::Rank(_));
    if let Command::Rank(args) = &arguments.command {
        match commands::rank::accept(args).map(|line| self::arguments(&line)) {
            Ok(Ok(assigned)) => arguments = assigned,
            Ok(Err(e)) => return explain(&e),
            Err(failure) => return report(failure),
        }
    }
    let ready = check_clock().and_then(|()| match is_assigned {
        true => Ok(()),
        false => arguments.command.check_live(),
    });
    let done = match ready.and_then(|()| arguments.command.add_events()) {
        Err(e) => Err(e),
        Ok(()) => run(arguments.command),
    };
    let code = match done {
        Ok(Exit::Valid) if console::has_lost_output() => lost_output(),
        Ok(exit) => exit.into(),
        Err(failure) => report(failure),
    };
    signals::ends();
    code
}

/// Checks that the system time is representable in results, names and messages.
fn check_clock() -> Result<(), CommandError> {
    let now = jiff::Timestamp::try_from(std::time::SystemTime::now());
    now.map(drop).map_err(|_| {
        CommandError::failed(
            "the clock of this machine is wrong: its time is not within the years -9999 to 9999",
        )
    })
}

/// Prints a command's error; returns the exit code.
fn report(failure: CommandError) -> ExitCode {
    console::err(&failure.message);
    failure.exit.into()
}

/// Runs a command.
fn run(command: Command) -> Result<Exit, CommandError> {
    match command {
        Command::Run(args) => commands::run::run(&args),
        Command::Curve(args) => commands::curve::run(&args),
        Command::Find(args) => commands::find::run(&args),
        Command::Ab(args) => commands::ab::run(&args),
        Command::Fio(args) => commands::fio::run(&args),
        Command::Md(args) => commands::md::run(&args),
        Command::Io500(args) => commands::io500::run(&args),
        Command::Ior(args) => commands::pattern::run::<plimsoll_workload::ior::Options>(&args),
        Command::Mdtest(args) => {
            commands::pattern::run::<plimsoll_workload::mdtest::Options>(&args)
        }
        Command::Check(args) => commands::profile::check(*args),
        Command::Profile(args) => commands::profile::run(*args),
        Command::Resume(args) => commands::series::resume(&args),
        Command::MakeRun(args) => commands::series::make_run(&args),
        Command::Rank(_) => Err(CommandError::failed(
            "what rank 0 sent is unreadable: the command rank executes that of rank 0",
        )),
        Command::Populate(args) => commands::populate::run(&args),
        Command::Clean(args) => commands::clean::run(&args),
        Command::Workloads(command) => match command {
            WorkloadsCommand::List(args) => commands::list::run(&args),
            WorkloadsCommand::Show(args) => commands::show::run(&args),
            WorkloadsCommand::Convert(args) => commands::convert::run(&args),
        },
        Command::Report(args) => commands::report::run(&args),
        Command::Compare(args) => commands::compare::run(&args),
        Command::Results(command) => match command {
            ResultsCommand::Serve(args) => commands::serve::run(&args),
            ResultsCommand::Tag(args) => commands::annotate::tag(&args),
            ResultsCommand::Note(args) => commands::annotate::note(&args),
            ResultsCommand::Prune(args) => commands::prune::run(&args),
            ResultsCommand::Import(args) => commands::import::run(&args),
            ResultsCommand::Sut(what) => commands::sut::run(&what),
        },
        Command::Systems(command) => match command {
            SystemsCommand::List(args) => commands::systems::list(&args),
            SystemsCommand::Show { system } => commands::systems::show(&system),
            SystemsCommand::Fit(args) => commands::fit::run(&args),
            SystemsCommand::Wan(args) => commands::wan::run(&args),
            SystemsCommand::Nfs(args) => commands::emulated_nfs::run(&args),
            SystemsCommand::Hosts(args) => commands::hosts::run(&args),
        },
        Command::Docs(command) => match command {
            DocsCommand::Man { dir } => commands::documents::man(dir.as_deref()),
            DocsCommand::Completions { shell } => commands::documents::completions(shell),
            DocsCommand::Schema { form } => commands::documents::schema(form),
            DocsCommand::Reference { dir } => commands::reference::run(&dir),
        },
    }
}

/// Reports that standard output is incomplete; the results directory is not affected.
fn lost_output() -> ExitCode {
    console::err("error: cannot write all of it to standard output\n");
    Exit::Failed.into()
}

/// Parses a command line.
fn arguments(line: &[OsString]) -> Result<Cli, Error> {
    let mut definition = cli::definition().term_width(Stream::Out.help_width());
    let command = line
        .get(1)
        .and_then(|name| definition.find_subcommand(name))
        .cloned();
    let ordered = match &command {
        Some(command) if command.get_name() == cli::FIO_COMMAND => {
            Some(cli::options_first(line, command))
        }
        _ => None,
    };
    let matches = definition.try_get_matches_from_mut(ordered.as_deref().unwrap_or(line));
    let command = command.as_ref();
    let mut matches = matches.map_err(|e| cli::foreign_words::advise(e, command))?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|e| e.format(&mut definition))
}

/// Prints an argument error, or the requested help.
fn explain(e: &Error) -> ExitCode {
    // Only one process of a launcher reports.
    if plimsoll_ranks::is_reporting_rank() {
        let stream = match e.use_stderr() {
            true => Stream::Err,
            false => Stream::Out,
        };
        let text = match stream.color() {
            true => e.render().ansi().to_string(),
            false => e.render().to_string(),
        };
        match stream {
            // A closed output is not an error.
            Stream::Out => _ = console::out(&text),
            Stream::Err => console::err(&text),
        }
    }
    if console::has_lost_output() {
        return lost_output();
    }
    if e.exit_code() != 0 && !plimsoll_ranks::is_reporting_rank() {
        plimsoll_ranks::wait_for_rank_0_report();
    }
    ExitCode::from(u8::try_from(e.exit_code()).expect("clap exits with 0 or 2"))
}
